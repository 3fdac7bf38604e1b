// Language models and numpy's files: etude/llm against the package `tokenizers` and the official runner, etude/npy against numpy.
//
//   ETUDE_PACKAGE=FOLDER node --test js/test/llm.test.mjs     FOLDER: what js/build made
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const root = path.resolve(here, "../..");
const source = pathToFileURL(path.resolve(process.env.ETUDE_PACKAGE, "src") + path.sep);
const etude = await import(new URL("index.js", source));
const { LLM, loadTokenizer, Tokenizer } = await import(new URL("llm/index.js", source));
const { readNpy, readNpz, writeNpy } = await import(new URL("npy.js", source));
const story = (name) => path.join(root, "examples/story", name);
const llm = (name) => path.join(root, "tests/llm", name);
const json = async (name) => JSON.parse(await readFile(name, "utf8"));
const openStory = () => LLM.load(story("story.pte"), { tokenizer: story("tokenizer.json") });
const collect = async (stream) => {
  const pieces = [];
  for await (const piece of stream) pieces.push(piece);
  return pieces;
};

test("ids and texts of tokenizers are those of the package tokenizers", async () => {
  let checks = 0;
  for (const { name, tokenizer: file, rows } of await json(path.join(here, "tokenizers.json"))) {
    const tokenizer = new Tokenizer(file);
    for (const [text, ids, plain, whole, parts] of rows) {
      const told = `${name}: ${JSON.stringify(text)}`;
      assert.deepEqual(tokenizer.encode(text), ids, told);
      assert.deepEqual(tokenizer.encode(text, { bos: false }), plain, told);
      assert.equal(tokenizer.decode(plain), whole, told);
      parts.forEach((part, i) => assert.equal(tokenizer.decode(plain.slice(0, i + 1)), part, told));
      checks += 3 + parts.length;
    }
  }
  assert.ok(checks > 1000, `${checks} checks`);
  for (const [text, kind, words] of [
    ["no json", etude.ArgumentError, /no tokenizer\.json/],
    ["{}", etude.ArgumentError, /no part 'model'/],
    ['{"model": {"type": "Unigram", "vocab": []}}', etude.NotSupportedError, /'Unigram'.*@huggingface\/tokenizers/],
    ['{"model": {"type": "BPE", "vocab": {}, "merges": []}, "pre_tokenizer": {"type": "BertPreTokenizer"}}', etude.NotSupportedError, /pre-tokenizer 'BertPreTokenizer'/],
  ]) {
    assert.throws(() => new Tokenizer(text), (e) => e instanceof kind && words.test(e.message), text);
  }
});

test("patterns cut as Oniguruma does", async () => {
  const { splitterOf } = await import(new URL("llm/steps.js", source));
  const split = (Regex) => splitterOf({ type: "Split", pattern: { Regex }, behavior: "Isolated" });
  const rows = [ // words of pre_tokenizers.Split(Regex(pattern), "isolated") of the package tokenizers
    [String.raw`\w+|\s|[^\w\s]`, "\u00e9\u00e9 na\u00efve_x, \u0663\u0664", ["\u00e9\u00e9", " ", "na\u00efve_x", ",", " ", "\u0663\u0664"]],
    [String.raw`\d+|\D`, "a\u0661\u0662b 34", ["a", "\u0661\u0662", "b", " ", "34"]],
    [String.raw`\W+`, "\u00e9t\u00e9, l\u00e0!", ["\u00e9t\u00e9", ", ", "l\u00e0", "!"]],
    [String.raw`\b`, "l\u2019\u00e9t\u00e9 est l\u00e0", ["l", "\u2019", "\u00e9t\u00e9", " ", "est", " ", "l\u00e0"]],
    [String.raw`.`, "a\r\u2028b\nc", ["a", "\r", "\u2028", "b", "\n", "c"]],
    [String.raw`^.+`, "ab\ncd\nef", ["ab", "\n", "cd", "\n", "ef"]],
    [String.raw`\w$`, "ab\ncd\n", ["a", "b", "\nc", "d", "\n"]],
    [String.raw`'(?i:[sdmt]|ll)|[a-z]+`, "It'S we'LL a'x", ["I", "t", "'S", " ", "we", "'LL", " ", "a", "'", "x"]],
    [String.raw`(?i:[a-f]+)`, "xAbFg", ["x", "AbF", "g"]],
    [String.raw`\p{Han}+`, "ab\u6f22\u5b57c", ["ab", "\u6f22\u5b57", "c"]],
    [String.raw`\p{^L}+`, "ab12c", ["ab", "12", "c"]],
    [String.raw`\h+`, "xyzAF09g", ["xyz", "AF09", "g"]],
    [String.raw`[\d\-]+`, "a1-\u0663b", ["a", "1-\u0663", "b"]],
    [String.raw`\x{61}+`, "baac", ["b", "aa", "c"]],
    [String.raw`\R`, "a\r\nb\nc", ["a", "\r\n", "b", "\n", "c"]],
    [String.raw`x\Z`, "axx\n", ["ax", "x", "\n"]],
  ];
  for (const [pattern, text, words] of rows) assert.deepEqual(split(pattern)(text), words, pattern);
  for (const pattern of [String.raw`[\W]`, "[a[b]]", "[a&&b]", String.raw`\X`, "(?<!a", String.raw`\p{Nothing}`, "\\"]) {
    assert.throws(() => split(pattern), (e) => e instanceof etude.NotSupportedError && /pattern/.test(e.message), pattern);
  }
  const lacking = { model: { type: "BPE", vocab: { a: 0 }, merges: [], unk_token: "<unk>" } };
  assert.throws(() => new Tokenizer(lacking), (e) => e instanceof etude.ArgumentError && /unk_token "<unk>"/.test(e.message));
});

test("tokens are those of the official runner", async () => {
  const { runs } = await json(llm("runner.json"));
  const conversations = [[]];
  for (const turn of runs["l_runner bytelevel.json"].by_hand) {
    if (turn.reset) conversations.push([]);
    if (turn.ids) conversations.at(-1).push(turn);
  }
  const model = await LLM.load(llm("l_runner.pte"));
  let turns = 0;
  for (const conversation of conversations) {
    let before = [];
    for (const { prompt_ids: prompt, ids } of conversation) {
      assert.deepEqual(await collect(model.streamTokens([...before, ...prompt], { temperature: 0, maxTokens: ids.length })), ids);
      before = [...before, ...prompt, ...ids.slice(0, -1)]; // the runner goes on without the last token that it gave out
      turns += 1;
    }
  }
  assert.ok(turns >= 4, `${turns} turns`);
});

test("the first token of each kind of program is the likeliest of the golden logits", async () => {
  let programs = 0;
  for (const [name, { calls: [[method, number]], methods, files }] of Object.entries((await json(llm("manifest.json"))).cases)) {
    const arrays = await readNpz(llm(files.npz));
    const prefix = number === 0 ? `${method}__` : `${method}__s${number}_`;
    const [tokens, logits] = [arrays.get(`${prefix}in0`), arrays.get(`${prefix}rt0`) ?? arrays.get(`${prefix}out0`)];
    if (!["forward", "prefill"].includes(method) || methods[method].sets[number].inputs.length > 2 || name === "o_bert" || !tokens.dtype.startsWith("int")) continue;
    const all = logits.dtype === "uint16" ? new etude.Tensor("bfloat16", logits.shape, logits.data).toFloat32() : logits.toFloat32();
    const last = all.subarray(all.length - logits.shape.at(-1));
    const want = last.reduce((best, value, i) => (value > last[best] ? i : best), 0);
    const model = await LLM.load(llm(files.pte), { data: files.ptd.map(llm) });
    assert.deepEqual(await collect(model.streamTokens([...tokens.data].map(Number), { temperature: 0, maxTokens: 1 })), [want], name);
    programs += 1;
  }
  assert.ok(programs >= 8, `${programs} programs`);
});

test("a text comes in pieces, ends where it should, and is the same for the same seed", async () => {
  const model = await openStory();
  const prompt = "Once upon a time there was a";
  const pieces = await collect(model.stream(prompt, { temperature: 0, maxTokens: 40 }));
  const whole = await model.generate(prompt, { temperature: 0, maxTokens: 40 });
  assert.equal(pieces.join(""), whole.text);
  assert.ok(pieces.length > 10 && whole.text.startsWith(" brave "), whole.text);
  assert.deepEqual([whole.finishReason, whole.tokens.length, whole.promptTokens, whole.reusedTokens], ["length", 40, 7, 6]);
  const other = await (await openStory()).generate(prompt, { temperature: 0, maxTokens: 40 });
  assert.equal(other.text, whole.text, "what the caches hold is as good as what is read");
  const stopped = await model.generate(prompt, { temperature: 0, stop: ["beaver called", "never"] });
  assert.deepEqual([stopped.text, stopped.finishReason], [" brave ", "stop"]);
  const ended = await model.generate(prompt, { temperature: 0 });
  assert.ok(model.info.eosIds.includes(ended.tokens.at(-1)) && ended.finishReason === "stop" && !ended.text.includes("</s>"));
  const seeded = async (seed) => (await model.generate(prompt, { seed, maxTokens: 30 })).text;
  assert.equal(await seeded(5), await seeded(5));
  assert.notEqual(await seeded(5), await seeded(6));
  const narrow = await model.generate(prompt, { topK: 1, temperature: 2, maxTokens: 40 });
  assert.equal(narrow.text, whole.text, "of one candidate it is the likeliest");
  assert.equal((await model.generate(prompt, { topP: 1e-9, maxTokens: 40 })).text, whole.text);
  assert.equal((await model.generate(prompt, { minP: 1, maxTokens: 40 })).text, whole.text);
  assert.notEqual((await model.generate(prompt, { temperature: 0, repetitionPenalty: 30, maxTokens: 40 })).text, whole.text);
});

test("a generation can be left, and cancelled by a signal", async () => {
  const model = await openStory();
  const prompt = "Once upon a time there was a";
  const want = await (await openStory()).generate(prompt, { temperature: 0, maxTokens: 40 });
  for await (const piece of model.stream(prompt, { temperature: 0 })) if (piece !== "") break;
  assert.equal(model.last.finishReason, "interrupted");
  const control = new AbortController();
  const stream = model.stream(prompt, { temperature: 0, signal: control.signal });
  await stream.next();
  await assert.rejects(model.generate("a"), etude.StateError);
  control.abort();
  await assert.rejects(collect(stream), { name: "AbortError" });
  await assert.rejects(model.generate(prompt, { signal: AbortSignal.abort() }), { name: "AbortError" });
  assert.equal((await model.generate(prompt, { temperature: 0, maxTokens: 40 })).text, want.text, "it can be used on");
  const first = await model.generate(prompt, { temperature: 0, maxTokens: 20 });
  const [, next] = want.tokens.slice(first.tokens.length - 1);
  const rest = await model.generate([next], { temperature: 0, maxTokens: 19, fresh: false });
  assert.equal(model.tokenizer.decode([...first.tokens, next, ...rest.tokens]).trimStart(), want.text.trimStart(), "it goes on where it was");
  // a stream that is left without an end
  const left = model.streamTokens([1, 2, 3]);
  await left.next();
  model.reset();
  assert.equal((await model.generate(prompt, { temperature: 0, maxTokens: 40 })).text, want.text);
  await assert.rejects(left.next(), (e) => e instanceof etude.StateError && /ended by reset/.test(e.message));
  // events have their turn meanwhile
  let ticks = 0;
  const timer = setInterval(() => (ticks += 1), 1);
  for (let i = 0; i < 3; i++) await model.generate(prompt, { seed: i });
  clearInterval(timer);
  assert.ok(ticks > 0);
});

test("what goes on knows all that was given out", async () => {
  const [model, other] = [await openStory(), await openStory()];
  const greedy = { temperature: 0, maxTokens: 8 };
  const begin = model.tokenizer.encode("Once upon a time there was a");
  const then = model.tokenizer.encode(" who");
  for (const count of [1, 2, 5]) {
    const { tokens } = await model.generate(begin, { ...greedy, maxTokens: count });
    const { text } = await model.generate(then, { ...greedy, fresh: false });
    assert.equal(text, (await other.generate([...begin, ...tokens, ...then], greedy)).text, `${count} tokens`);
    assert.deepEqual(model.tokens.slice(0, -7), [...begin, ...tokens, ...then]);
    const given = [];
    for await (const token of model.streamTokens(begin, { temperature: 0 })) if (given.push(token) === count) break;
    assert.equal((await model.generate(then, { ...greedy, fresh: false })).text, text, `left after ${count}`);
  }
});

test("any object with encode and decode is a tokenizer; ids do without", async () => {
  const reader = await loadTokenizer(story("tokenizer.json"));
  const like = { encode: (text) => reader.encode(text), decode: (ids) => reader.decode(ids) };
  const model = await LLM.load(await etude.load(story("story.pte")), { tokenizer: like });
  const { text, tokens } = await model.generate("Once upon a", { temperature: 0, maxTokens: 5 });
  const bare = await LLM.load(story("story.pte"));
  assert.deepEqual(await collect(bare.streamTokens(reader.encode("Once upon a"), { temperature: 0, maxTokens: 5 })), tokens);
  assert.equal(reader.decode(tokens), text);
  await assert.rejects(async () => bare.generate("text"), etude.StateError);
});

test("what can't be generated is an error with a reason", async () => {
  const model = await openStory();
  const wrong = [
    [[], /the prompt is empty/], [[640], /token 0 of the prompt is 640, and the model knows 640/], [[-1], /is -1/], [[1.5], /is 1.5/], [5, /not 5/],
    [new Array(400).fill(1), /has 400 tokens, and the model's window holds 384/],
  ];
  for (const [prompt, text] of wrong) await assert.rejects(async () => model.generate(prompt), (e) => e instanceof etude.ArgumentError && text.test(e.message));
  for (const [name, values] of Object.entries({
    maxTokens: [0, -1, 1.5, "5", NaN], temperature: [-1, NaN, "1"], topK: [-1, 1.5], topP: [0, 1.1], minP: [-1, 2], repetitionPenalty: [0, -1], seed: [-1, 1.5, "a"],
    stop: ["", [""], 5, [5]], signal: [5, {}], maxtokens: [5],
  })) {
    for (const value of values) await assert.rejects(async () => model.generate("a", { [name]: value }), etude.ArgumentError, `${name} ${value}`);
  }
  await assert.rejects(LLM.load(path.join(root, "tests/corpus/add.pte")), (e) => e instanceof etude.NotSupportedError && /input 0 is float32 \[2, 3\]/.test(e.message));
  await assert.rejects(LLM.load(path.join(root, "tests/corpus/constant_methods.pte"), { prefill: "nothing" }), etude.NotFoundError);
  await assert.rejects(LLM.load(story("story.pte"), { tokeniser: 5 }), /did you mean 'tokenizer'/);
  model.dispose();
  await assert.rejects(async () => model.generate("a"), etude.StateError);
});

test("numpy's files are read and written", async () => {
  const corpus = path.join(root, "tests/corpus");
  const { cases } = await json(path.join(corpus, "manifest.json"));
  const seen = new Set();
  for (const { files } of Object.values(cases)) {
    for (const [name, tensor] of await readNpz(path.join(corpus, files.npz))) {
      seen.add(tensor.dtype);
      const again = await readNpy(writeNpy(tensor));
      assert.deepEqual([again.dtype, again.shape, again.data], [tensor.dtype, tensor.shape, tensor.data], name);
    }
  }
  assert.ok(["float32", "int64", "bool", "int32"].every((dtype) => seen.has(dtype)), [...seen].join());
  // as numpy 1.26 writes numpy.array([[1, 2], [3, 4]], order="F", dtype="i2")
  const text = "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 2), }".padEnd(117) + "\n";
  const fortran = Buffer.concat([Buffer.from("\x93NUMPY\x01\0\x76\0", "latin1"), Buffer.from(text), Buffer.from([1, 0, 3, 0, 2, 0, 4, 0])]);
  assert.deepEqual((await readNpy(fortran)).toArray(), [[1, 2], [3, 4]]);
  for (const [bytes, words] of [
    [Buffer.from("text"), /no \.npy file/], [fortran.subarray(0, 20), /cut short/], [fortran.subarray(0, fortran.length - 1), /has 8 bytes, and 7 are there/],
    [Buffer.from(fortran.toString("latin1").replace("<i2", ">i2"), "latin1"), /big-endian/], [Buffer.from(fortran.toString("latin1").replace("<i2", "<U2"), "latin1"), /'U2'/],
    [Buffer.from(fortran.toString("latin1").replace("'<i2'", "[('a', '<i2')]"), "latin1"), /no tensor of numbers/],
  ]) {
    await assert.rejects(readNpy(bytes), (e) => e instanceof etude.ArgumentError && words.test(e.message), String(words));
  }
  await assert.rejects(readNpz(Buffer.from("PK")), etude.ArgumentError);
});

test("a damaged .npz is an error, and one with zip64 is read", async () => {
  const write = (code) => execFileSync("python3", ["-c", `import io, struct, sys, zipfile\n${code}`], { input: fortran, maxBuffer: 2 ** 26 });
  const fortran = Buffer.from(writeNpy(etude.Tensor.from([[1, 2], [3, 4]])));
  const made = (method) => write(`
out = io.BytesIO()
with zipfile.ZipFile(out, "w", zipfile.${method}) as archive:
    archive.writestr("in0.npy", sys.stdin.buffer.read())
sys.stdout.buffer.write(out.getvalue())`);
  for (const method of ["ZIP_STORED", "ZIP_DEFLATED"]) {
    const whole = made(method);
    assert.deepEqual((await readNpz(whole)).get("in0").toArray(), [[1, 2], [3, 4]]);
    const entry = whole.indexOf("PK\x01\x02", 0, "latin1");
    const changed = (at, value) => {
      const bytes = Buffer.from(whole);
      bytes.writeUInt32LE(value, at);
      return bytes;
    };
    for (const bytes of [changed(entry + 16, 5), changed(entry + 24, 8), changed(entry + 24, 2 ** 31), changed(entry + 20, 2 ** 31), changed(entry, 0)]) {
      await assert.rejects(readNpz(bytes), (e) => e instanceof etude.ArgumentError && /damaged/.test(e.message));
    }
    await assert.rejects(readNpz(changed(entry + 8, 1)), /encrypted/);
  }
  await assert.rejects(readNpz(made("ZIP_LZMA")), /method 14/);
  const wide = write(`
zipfile.ZIP64_LIMIT = 10  # all numbers beyond that are written as zip64 has them
out = io.BytesIO()
with zipfile.ZipFile(out, "w") as archive:
    archive.writestr("in0.npy", sys.stdin.buffer.read())
sys.stdout.buffer.write(out.getvalue())`);
  assert.ok(wide.includes(Buffer.from("PK\x06\x06", "latin1")));
  assert.deepEqual((await readNpz(wide)).get("in0").toArray(), [[1, 2], [3, 4]]);
});
