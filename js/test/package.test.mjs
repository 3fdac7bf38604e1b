// What the package promises beyond outputs: metadata, inputs, options, errors, memory, workers.
//
//   ETUDE_PACKAGE=FOLDER node --expose-gc --test js/test/package.test.mjs     FOLDER: what js/build made
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { runInNewContext } from "node:vm";
import { Worker } from "node:worker_threads";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const source = pathToFileURL(path.resolve(process.env.ETUDE_PACKAGE, "src") + path.sep);
const etude = await import(new URL("index.js", source));
const internal = async (name) => import(new URL(name, source));
const corpus = (name) => path.join(root, "tests/corpus", name);
const manifest = JSON.parse(await readFile(corpus("manifest.json"), "utf8")).cases;
const TORCH = { byte: "uint8", char: "int8", short: "int16", int: "int32", long: "int64", half: "float16", float: "float32", double: "float64", bool: "bool", bfloat16: "bfloat16" };

test("metadata is what the exporter says", async () => {
  let checked = 0;
  for (const [name, { files, methods }] of Object.entries(manifest)) {
    const program = await etude.load(corpus(files.pte), { data: files.ptd.map(corpus) });
    assert.deepEqual(program.methods.map((m) => m.name).sort(), Object.keys(methods).sort(), name);
    for (const [method, want] of Object.entries(methods)) {
      const info = program.method(method);
      for (const side of ["inputs", "outputs"]) {
        assert.equal(info[side].length, want[side].length, name);
        info[side].forEach((value, i) => {
          const told = want[side][i];
          if (told.kind !== "tensor") return assert.equal(value.kind, { null: "none" }[told.kind] ?? told.kind, name);
          const { dtype, shape, dimOrder, dynamic } = value;
          const expected = { dtype: TORCH[told.dtype], shape: told.sizes, dimOrder: told.dim_order, dynamic: told.shape_dynamism !== "STATIC" };
          assert.deepEqual({ dtype, shape, dimOrder, dynamic }, expected, name);
          checked += 1;
        });
      }
      assert.deepEqual([0, ...info.buffers], want.memory_arena_bytes, name);
      const counts = {};
      for (const { kind, name: operator } of info.instructions) if (kind === "kernel") counts[operator] = (counts[operator] ?? 0) + 1;
      const named = (names) => Object.entries(names).map(([key, n]) => [key.replace(/\.$/, ""), n]).sort();
      assert.deepEqual(named(counts), named(want.operators), name);
    }
    program.dispose();
  }
  assert.ok(checked > 200, `${checked} tensors`);
});

test("structs lie as the C compiler lays them out", async () => {
  const { layouts } = await internal("structs.js");
  const rows = (await readFile(path.join(root, "tests/abi/layout32.txt"), "utf8")).split("\n").map((row) => row.split(" "));
  const known = new Map(rows.map(([name, value]) => [name, Number(value)]));
  for (const [name, { size, ...members }] of Object.entries(layouts)) {
    assert.equal(size, known.get(name), name);
    for (const [member, offset] of Object.entries(members)) assert.equal(offset, known.get(`${name}.${member}`), `${name}.${member}`);
  }
});

test("every status has a class", async () => {
  const { STATUSES, errorOf } = await internal("errors.js");
  const { Instance } = await internal("instance.js");
  const instance = new Instance((await etude.defaultRuntime()).module);
  const names = new Set(Array.from({ length: 0x40 }, (_, i) => instance.statusName(i)));
  for (const rest of ["Ok", "Internal", "Unknown", "RegistrationExceedingMaxKernels", "RegistrationAlreadyRegistered"]) names.delete(rest);
  assert.deepEqual(new Set(STATUSES), names);
  const error = errorOf("OperatorMissing", "text", { subject: "s", offset: 3 });
  assert.ok(error instanceof etude.OperatorMissingError && error instanceof etude.NotSupportedError && error instanceof etude.EtudeError);
  assert.deepEqual([error.name, error.message, error.status, error.subject, error.offset], ["OperatorMissingError", "text", "OperatorMissing", "s", 3]);
});

test("16-bit floats are rounded to the nearest, ties to even", async () => {
  const { toHalf, fromHalf, toBfloat16, fromBfloat16 } = await internal("dtypes.js");
  for (let bits = 0; bits < 65536; bits++) {
    if (!Number.isNaN(fromHalf(bits))) assert.equal(toHalf(fromHalf(bits)), bits);
    if (!Number.isNaN(fromBfloat16(bits))) assert.equal(toBfloat16(fromBfloat16(bits)), bits);
  }
  // between two neighbours: below, at and above the middle
  for (let bits = 0; bits < 0x7bff; bits++) {
    const [low, high] = [fromHalf(bits), fromHalf(bits + 1)];
    const middle = (low + high) / 2;
    assert.equal(toHalf(middle), bits % 2 === 0 ? bits : bits + 1);
    assert.equal(toHalf(Math.fround(middle - (high - low) / 64)), bits);
    assert.equal(toHalf(-Math.fround(middle + (high - low) / 64)), (bits + 1) | 0x8000);
  }
  assert.deepEqual([65519.99, 65520, Infinity, -1e9, 1, 2 ** -24, 2 ** -25].map(toHalf), [0x7bff, 0x7c00, 0x7c00, 0xfc00, 0x3c00, 1, 0]);
  assert.deepEqual([1, -2, 3.3895313892515355e38, 3.4e38, 1.00390625, 1.01171875].map(toBfloat16), [0x3f80, 0xc000, 0x7f7f, 0x7f80, 0x3f80, 0x3f82]);
  assert.ok(Number.isNaN(fromHalf(toHalf(NaN))) && Number.isNaN(fromBfloat16(toBfloat16(NaN))));
});

test("8-bit floats are those of PyTorch", () => {
  const bits = Uint8Array.of(1, 8, 0x38, 0x40, 0x77, 0x7b, 0x7c, 0x7f, 0x80, 0xff);
  const golden = { // torch.tensor(bits, dtype=torch.uint8).view(dtype).float()
    float8_e5m2: [2 ** -16, 2 ** -13, 0.5, 2, 28672, 57344, Infinity, NaN, -0, NaN],
    float8_e4m3fn: [2 ** -9, 2 ** -6, 1, 2, 240, 352, 384, NaN, -0, NaN],
    float8_e5m2fnuz: [2 ** -17, 2 ** -14, 0.25, 1, 14336, 28672, 32768, 57344, NaN, -57344],
    float8_e4m3fnuz: [2 ** -10, 2 ** -7, 0.5, 1, 120, 176, 192, 240, NaN, -240],
  };
  for (const [dtype, want] of Object.entries(golden)) {
    const tensor = new etude.Tensor(dtype, [bits.length], bits);
    assert.deepEqual([...tensor.toFloat32()], want, dtype);
    assert.deepEqual(tensor.toArray(), want, dtype);
  }
});

test("an input may be a Tensor, a typed array, an object or nested arrays", async () => {
  const method = (await etude.load(corpus("add.pte"))).loadMethod();
  const ones = [[1, 1, 1], [1, 1, 1]];
  const forms = [etude.Tensor.from(ones), new Float32Array(6).fill(1), { data: new Float32Array(6).fill(1), shape: [2, 3] }, ones];
  for (const form of forms) {
    const [sum] = method.run([form, ones]);
    assert.deepEqual([sum.dtype, sum.shape, sum.toArray()], ["float32", [2, 3], [[2, 2, 2], [2, 2, 2]]]);
  }
  const [first] = method.run([ones, ones]);
  method.run([[[5, 5, 5], [5, 5, 5]], ones]);
  assert.deepEqual(first.toArray(), [[2, 2, 2], [2, 2, 2]], "outputs are copies");
  const refused = [
    [[ones], etude.ArgumentError, /2/],
    [[ones, new Float64Array(6)], etude.ArgumentError, /input 1: expected float32, got float64/],
    [[ones, new Float32Array(5)], etude.ArgumentError, /input 1: an array of 5 has no shape; expected 6 elements of \[2, 3\]/],
    [[ones, etude.Tensor.from([1, 2])], etude.EtudeError, /input 1/],
    [[ones, "text"], etude.ArgumentError, /input 1: expected a float32 tensor, got "text"/],
    [[ones, ones, ones], etude.ArgumentError, /method 'forward' takes 2 inputs, 3 were given/],
    [[ones, etude.Tensor.from([[1, 2, 3]])], etude.NotSupportedError, /input 1: expected shape \[2, 3\], got \[1, 3\]/],
    [[ones, [[1, 2, 3], [4, "a", 6]]], etude.ArgumentError, /input 1: element \[1\]\[1\] is "a", and float32 holds/],
    [[ones, null], etude.EtudeError, /input 1/],
    [[ones, [[1, 2], [3]]], etude.ArgumentError, /equal lengths/],
    [ones, etude.EtudeError, /input/],
    [5, etude.ArgumentError, /inputs are an array/],
  ];
  for (const [inputs, kind, text] of refused) {
    assert.throws(() => method.run(inputs), (error) => error instanceof kind && text.test(error.message), String(text));
  }
  method.execute(); // what was set stays set
  assert.deepEqual(method.outputs[0].toArray(), [[6, 6, 6], [6, 6, 6]]);
  assert.throws(() => new etude.Tensor("float32", [2], new Float32Array(3)), /2 numbers, not 3/);
  assert.throws(() => new etude.Tensor("int32", [2], new Float32Array(2)), /Int32Array, not a Float32Array/);
  assert.throws(() => new etude.Tensor("float33", [], new Float32Array(1)), /no dtype/);
});

test("arrays and files of other windows, and Buffers, are as good", async () => {
  const there = (code) => runInNewContext(code);
  const method = (await etude.load(corpus("add.pte"))).loadMethod();
  const [sum] = method.run([there("new Float32Array([1, 2, 3, 4, 5, 6])"), { data: there("new Float32Array(6)"), shape: there("[2, 3]") }]);
  assert.deepEqual([...sum.data], [1, 2, 3, 4, 5, 6]);
  const buffer = there("new ArrayBuffer(8)");
  await assert.rejects(etude.load(buffer), /not a \.pte/); // seen as bytes
  const bytes = new etude.Tensor("uint8", [3], Buffer.from([1, 2, 3]));
  assert.ok(bytes.data.constructor === Uint8Array);
  assert.ok(new etude.Tensor("uint8", [2], new Uint8ClampedArray([1, 2])).data.constructor === Uint8Array);
  assert.deepEqual(new etude.Tensor("uint8", [1, 2, 2], Buffer.from([1, 2, 3, 4]), [0, 2, 1]).toArray(), [[[1, 3], [2, 4]]]);
});

test("64-bit integers are BigInt, 16-bit floats are bits", async () => {
  const wide = (await etude.load(corpus("int64_arith.pte"))).loadMethod();
  const shape = wide.info.inputs[0].shape;
  const outputs = wide.run(wide.info.inputs.map((info) => etude.Tensor.from(Array.from({ length: etude.Tensor.from(0).size * shape[0] }, (_, i) => i + 1), { dtype: info.dtype })));
  assert.ok(outputs.some((output) => output.data instanceof BigInt64Array));
  assert.equal(typeof outputs.find((output) => output.dtype === "int64").toArray()[0], "bigint");
  const half = etude.Tensor.from([[1, -2.5, 65504]], { dtype: "float16" });
  assert.deepEqual([...half.data], [0x3c00, 0xc100, 0x7bff]);
  assert.deepEqual([...half.toFloat32()], [1, -2.5, 65504]);
});

test("any order of dimensions goes in, rows come out", async () => {
  const method = (await etude.load(corpus("channels_last.pte"))).loadMethod();
  const [info] = method.info.inputs;
  assert.deepEqual(info.dimOrder, [0, 2, 3, 1]);
  const [n, c, h, w] = info.shape;
  const plain = Float32Array.from({ length: n * c * h * w }, (_, i) => Math.sin(i));
  const last = new Float32Array(plain.length);
  for (let k = 0; k < c; k++) for (let y = 0; y < h; y++) for (let x = 0; x < w; x++) last[(y * w + x) * c + k] = plain[(k * h + y) * w + x];
  const [a] = method.run([new etude.Tensor("float32", info.shape, plain)]);
  const [b] = method.run([new etude.Tensor("float32", info.shape, last, [0, 2, 3, 1])]);
  assert.deepEqual(a.data, b.data);
  assert.deepEqual([...new etude.Tensor("float32", info.shape, last, [0, 2, 3, 1]).rowMajorData], [...plain]);
  assert.equal(a.dimOrder, undefined);
});

test("options: schema, values, layers, errors", async () => {
  const runtime = await etude.Runtime.create();
  assert.deepEqual(runtime.backends, ["NullBackend", "ContextBinaryBackend", "XnnpackBackend"]);
  const schema = runtime.optionSchema("XnnpackBackend");
  const mode = schema.find((option) => option.key === "workspace_sharing_mode");
  assert.equal(mode.type, "int");
  assert.ok(mode.help.length > 0 && mode.minimum === 0 && mode.choices.length === mode.maximum + 1);
  runtime.setOptions({ XnnpackBackend: { [mode.key]: 2 }, NullBackend: { copy: true } });
  assert.deepEqual([runtime.getOption("XnnpackBackend", mode.key), runtime.getOption("NullBackend", "copy")], [2, true]);
  assert.throws(() => runtime.setOptions({ NullBackend: { copy: false }, XnnpackBackend: { [mode.key]: 9 } }), etude.ArgumentError);
  assert.equal(runtime.getOption("NullBackend", "copy"), true, "all or none");
  const program = await runtime.load(corpus("x_linear.pte"), { options: { XnnpackBackend: { [mode.key]: 1 } } });
  const method = program.loadMethod("forward", { options: { XnnpackBackend: { [mode.key]: 0 } } });
  const { value, origin, layers } = method.explainOption("XnnpackBackend", mode.key);
  assert.deepEqual([value, origin, layers.method, layers.program, layers.process], [0, "method", 0, 1, 2]);
  runtime.resetOptions("XnnpackBackend", mode.key);
  assert.equal(runtime.getOption("XnnpackBackend", mode.key), mode.default);
  assert.throws(() => runtime.getOption("XnnpackBackend", "num_thread"), (e) => e instanceof etude.NotFoundError && /did you mean 'num_threads'/.test(e.message));
  for (const value of [1.5, null, undefined, {}, 2n ** 70n]) assert.throws(() => runtime.setOption("XnnpackBackend", mode.key, value), etude.ArgumentError);
  assert.throws(() => program.loadMethod("forward", { options: { NullBackend: { copy: true } } }), etude.ArgumentError);
  program.loadMethod("forward", { options: { NullBackend: { copy: true } }, unusedOptions: "ignore" });
  assert.throws(() => program.loadMethod("forward", { unusedOptions: "warn" }), /'error' or 'ignore'/);
});

test("state is kept, read, written and reset", async () => {
  const method = (await etude.load(corpus("counter.pte"))).loadMethod();
  const input = [1, 2, 3];
  const [first] = method.run([input]);
  const [second] = method.run([[2, 2, 2]]);
  assert.notDeepEqual(first.data, second.data);
  const [name] = method.stateNames;
  const kept = method.getState(name);
  method.resetState();
  assert.deepEqual(method.run([input])[0].data, first.data);
  method.setState(name, kept);
  assert.deepEqual(method.getState(name).data, kept.data);
  method.resetState(name);
  assert.throws(() => method.setState(name, etude.Tensor.from([1], { dtype: "float64" })), etude.ArgumentError);
  assert.throws(() => method.getState("nothing"), etude.NotFoundError);
});

test("a profile has the outputs of a run and every instruction", async () => {
  const method = (await etude.load(path.join(root, "examples/digits/digits.pte"))).loadMethod();
  const image = Float32Array.from({ length: 64 }, (_, i) => i % 17);
  const { outputs, instructions } = method.profile([image]);
  assert.deepEqual(outputs[0].data, method.run([image])[0].data);
  assert.deepEqual(instructions.map((i) => i.index), [...instructions.keys()]);
  assert.ok(instructions.length > 0 && instructions.every((i) => i.milliseconds >= 0));
});

test("limits end an execution, and the method works on", async () => {
  const program = await etude.load(corpus("map_loop.pte"));
  const inputs = program.method("forward").inputs.map((info) => etude.Tensor.from(new Array(info.shape.reduce((a, b) => a * b, 1)).fill(1), { dtype: info.dtype, shape: info.shape }));
  const limited = program.loadMethod("forward", { instructionLimit: 3 });
  assert.throws(() => limited.run(inputs), (error) => error.status === "InvalidProgram" && /instruction/.test(error.message));
  assert.ok(program.loadMethod().run(inputs).length > 0);
  assert.throws(() => program.loadMethod("forward", { memoryLimit: 10 }), (error) => error instanceof etude.EtudeError && error.status !== "Internal");
  assert.throws(() => program.loadMethod("forward", { workLimit: -1 }), etude.ArgumentError);
});

test("a method that a getter of its input disposes of says so", async () => {
  const program = await etude.load(corpus("add.pte"));
  for (const call of ["run", "setInputs", "profile"]) {
    const method = program.loadMethod();
    const input = { shape: [2, 3], get data() { method.dispose(); return new Float32Array(6); } };
    assert.throws(() => method[call]([input, new Float32Array(6)]), (e) => e instanceof etude.StateError && /disposed/.test(e.message), call);
  }
});

test("after a trap dispose is quiet, and the default runtime is another one", async () => {
  const { Instance } = WebAssembly;
  WebAssembly.Instance = function (...args) {
    const { exports } = new Instance(...args);
    return { exports: { ...exports, etude_method_execute() { throw new WebAssembly.RuntimeError("unreachable"); } } };
  };
  try {
    const { load, defaultRuntime } = await internal("runtime.js?trap");
    const program = await load(corpus("add.pte"));
    const method = program.loadMethod();
    const inputs = [new Float32Array(6), new Float32Array(6)];
    const { runtime } = program;
    assert.equal(runtime.failed, false);
    assert.throws(() => method.run(inputs), /the module failed in etude_method_execute: unreachable/);
    assert.throws(() => method.run(inputs), /has failed before/);
    assert.equal(runtime.failed, true);
    method.dispose();
    program.dispose();
    WebAssembly.Instance = Instance;
    assert.notEqual(await defaultRuntime(), runtime);
    assert.equal(await defaultRuntime(), await defaultRuntime());
    assert.equal((await load(corpus("add.pte"))).loadMethod().run(inputs).length, 1);
  } finally {
    WebAssembly.Instance = Instance;
  }
});

test("a program comes through a pipe", { skip: process.platform === "win32" }, async () => {
  const fifo = path.join(await mkdtemp(path.join(tmpdir(), "etude-")), "fifo");
  execFileSync("mkfifo", [fifo]);
  const [program] = await Promise.all([etude.load(fifo), writeFile(fifo, await readFile(corpus("add.pte")))]);
  assert.equal(program.methods.length, 1);
  await rm(path.dirname(fifo), { recursive: true });
});

test("an input that is None takes nothing else", async () => {
  const method = (await etude.load(corpus("nested_containers.pte"))).loadMethod();
  const { inputs } = method.info;
  assert.deepEqual(inputs.map(({ unused }) => unused), [...new Array(5).fill(undefined), true]);
  const given = inputs.slice(0, 5).map(({ shape }) => new Float32Array(shape.reduce((a, b) => a * b, 1)));
  for (const none of [null, undefined]) method.run([...given, none]);
  for (const value of [1, true, "a", [1]]) {
    assert.throws(() => method.run([...given, value]), (e) => e instanceof etude.ArgumentError && /^input 5: .*None.*: give null/.test(e.message));
  }
  const open = (await etude.load(corpus("scalar_input_symbolic.pte"))).loadMethod(); // a number that the exporter does not know
  assert.deepEqual([open.info.inputs[1].kind, open.info.inputs[1].unused], ["none", undefined]);
});

test("lifetimes of lists within themselves end", async () => {
  const { lifetimes } = await import(new URL("../demo/plan.js", source));
  const values = [
    { index: 0, kind: "tensorList", items: [0, 1, null] },
    { index: 1, kind: "tensor", buffer: 1, nbytes: 4 },
  ];
  const [life] = lifetimes({ values, instructions: [{ arguments: [] }, { arguments: [0] }], inputs: [], outputs: [] });
  assert.deepEqual([life.index, life.first, life.last], [1, 1, 1]);
});

test("what is disposed of says so; a program takes its methods along", async () => {
  const program = await etude.load(corpus("add.pte"));
  const [info] = program.methods;
  const method = program.loadMethod();
  const other = program.loadMethod();
  method.dispose();
  method.dispose();
  assert.throws(() => method.run([]), (error) => error instanceof etude.StateError && /disposed/.test(error.message));
  program[Symbol.dispose ?? Symbol.for("Symbol.dispose")]();
  assert.throws(() => other.execute(), etude.StateError);
  assert.throws(() => program.loadMethod(), etude.StateError);
  assert.throws(() => info.inputs, etude.StateError);
});

test("what nobody holds is freed", async () => {
  const runtime = await etude.Runtime.create();
  const bytes = await readFile(corpus("mobilenetv2.pte"));
  const collect = async () => {
    for (let i = 0; i < 3; i++) {
      globalThis.gc();
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  for (let i = 0; i < 4; i++) {
    (await runtime.load(bytes)).loadMethod();
    await collect();
  }
  const before = runtime.memoryBytes;
  for (let i = 0; i < 12; i++) {
    (await runtime.load(bytes)).loadMethod();
    await collect();
  }
  assert.equal(runtime.memoryBytes, before);
});

test("a thousand programs take no more memory than two", async () => {
  const runtime = await etude.Runtime.create();
  const bytes = await Promise.all(["add.pte", "x_linear.pte", "external_constants.pte"].map((name) => readFile(corpus(name))));
  const data = await readFile(corpus("external_constants.ptd"));
  const once = async (i, disposes) => {
    const program = await runtime.load(bytes[i % 3], i % 3 === 2 ? { data } : {});
    const method = program.loadMethod();
    method.run(method.info.inputs.map((info) => new Float32Array(info.shape.reduce((a, b) => a * b, 1))));
    if (disposes) program.dispose();
  };
  for (let i = 0; i < 6; i++) await once(i, true);
  const before = runtime.memoryBytes;
  for (let i = 0; i < 1000; i++) await once(i, true);
  assert.equal(runtime.memoryBytes, before, "disposed of");
  for (let i = 0; i < 1000; i++) {
    await once(i, false);
    if (i % 100 === 99) {
      globalThis.gc();
      await new Promise((resolve) => setTimeout(resolve, 2)); // finalizers have their turn
    }
  }
  assert.ok(runtime.memoryBytes <= before + 2 ** 24, `${runtime.memoryBytes - before} bytes more: collected`);
  // runtimes, too: each has a memory of its own
  for (let i = 0; i < 50; i++) await (await etude.Runtime.create({ module: runtime.module })).load(bytes[0]);
});

test("a runtime's memory grows to its limit, and what does not fit is a MemoryError", async () => {
  const runtime = await etude.Runtime.create({ memoryLimit: 8 * 2 ** 20 });
  const small = (await runtime.load(corpus("add.pte"))).loadMethod();
  const message = (e) => e instanceof etude.MemoryError && /at most 8388608, the memoryLimit of its Runtime/.test(e.message);
  await assert.rejects(runtime.load(new Uint8Array(16 * 2 ** 20)), message);
  await assert.rejects(runtime.load(new Blob([new Uint8Array(16 * 2 ** 20)])), message);
  assert.ok(runtime.memoryBytes <= 8 * 2 ** 20);
  assert.deepEqual(small.run([new Float32Array(6), new Float32Array(6).fill(2)])[0].toArray(), [[2, 2, 2], [2, 2, 2]]);
  (await runtime.load(corpus("lenet.pte"))).loadMethod();
  for (const memoryLimit of [0, 1.5, -1, 2 ** 33, NaN, "5", 5n, null]) {
    await assert.rejects(etude.Runtime.create({ memoryLimit }), (e) => e instanceof etude.ArgumentError && /memoryLimit is a whole number/.test(e.message));
  }
});

test("a file is read into the module's memory piece by piece", async () => {
  const bytes = new Uint8Array(await readFile(corpus("mobilenetv2.pte")));
  const pieces = (size) => new ReadableStream({
    start(controller) {
      for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.subarray(at, at + size));
      controller.close();
    },
  });
  const want = (await etude.load(bytes)).methods[0].buffers;
  for (const headers of [{}, { "content-length": "10" }, { "content-length": String(bytes.length) }, { "content-length": "x" }]) {
    assert.deepEqual((await etude.load(new Response(pieces(1000), { headers }))).methods[0].buffers, want);
  }
  const broken = new ReadableStream({ pull: (controller) => controller.error(new Error("the line is cut")) });
  await assert.rejects(etude.load(new Response(broken)), (e) => e instanceof etude.AccessError && /the line is cut/.test(e.message));
  await assert.rejects(etude.load(new Blob([])), etude.ProgramError);
  // what JavaScript holds of it meanwhile is one piece
  const { openSource } = await internal("source.js");
  const held = new Set();
  for await (const piece of (await openSource(corpus("mobilenetv2.pte"))).pieces) held.add(piece.buffer);
  assert.equal(held.size, 1);
});

test("a module is compiled while it comes, or from bytes, or says what it is instead", async () => {
  const wasm = await readFile(new URL("../etude.wasm", source));
  let streamed = 0;
  const original = WebAssembly.compileStreaming;
  WebAssembly.compileStreaming = (response) => ((streamed += 1), original(response));
  for (const [type, count] of [["application/wasm", 1], ["application/wasm; charset=x", 1], ["application/octet-stream", 1], ["", 1]]) {
    const module = await etude.compile(new Response(wasm, { headers: type === "" ? {} : { "content-type": type } }));
    assert.ok(module instanceof WebAssembly.Module && streamed === count, type);
  }
  WebAssembly.compileStreaming = undefined;
  assert.ok((await etude.compile(new Response(wasm, { headers: { "content-type": "application/wasm" } }))) instanceof WebAssembly.Module);
  WebAssembly.compileStreaming = original;
  const page = new Response("<!doctype html>", { headers: { "content-type": "text/html" } });
  await assert.rejects(etude.compile(page), (e) => e instanceof etude.ArgumentError && /no WebAssembly module, it is text\/html: serve etude\.wasm/.test(e.message));
  await assert.rejects(etude.compile(new Response("x", { status: 404 })), etude.NotFoundError);
  await assert.rejects(etude.compile(new Response(wasm.subarray(0, 5000), { headers: { "content-type": "application/wasm" } })), etude.ArgumentError);
});

test("blocks of memory do not overlap, and join when they are given back", async () => {
  const { Instance } = await internal("instance.js");
  const instance = new Instance((await etude.defaultRuntime()).module);
  let seed = 1;
  const random = (n) => ((seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) >>> 8) % n;
  const held = [];
  const release = (i) => {
    const [{ ptr, size, mark }] = held.splice(i, 1);
    assert.ok(instance.bytes.subarray(ptr, ptr + size).every((byte) => byte === mark), "a block was overwritten");
    instance.free(ptr);
  };
  for (let step = 0; step < 20000; step++) {
    if (held.length > 40 || (held.length > 0 && random(2) === 0)) {
      release(random(held.length));
    } else {
      const size = random(random(10) === 0 ? 200000 : 300);
      const ptr = instance.alloc(size);
      assert.equal(ptr % 64, 0);
      const mark = step % 251;
      instance.bytes.fill(mark, ptr, ptr + size);
      held.push({ ptr, size, mark });
    }
  }
  while (held.length > 0) release(0);
  const before = instance.bytes.length;
  instance.free(instance.alloc(before - 2 ** 21)); // most of it is one piece again: the rest is the module's data and stack
  assert.equal(instance.bytes.length, before);
});

test("memory may grow under a program, beyond 2 GiB", async () => {
  const { Instance } = await internal("instance.js");
  const instance = new Instance((await etude.defaultRuntime()).module);
  const runtime = new etude.Runtime(instance);
  const early = (await runtime.load(corpus("add.pte"))).loadMethod();
  instance.alloc(2 ** 31 + 2 ** 20); // pointers behind it look negative
  const late = (await runtime.load(corpus("x_linear.pte"))).loadMethod();
  assert.ok(runtime.memoryBytes > 2 ** 31);
  const want = (await etude.load(corpus("x_linear.pte"))).loadMethod();
  const input = new Float32Array(want.info.inputs[0].shape.reduce((a, b) => a * b)).fill(0.5);
  assert.deepEqual(late.run([input])[0].data, want.run([input])[0].data);
  assert.deepEqual(early.run([new Float32Array(6).fill(1), new Float32Array(6).fill(2)])[0].toArray(), [[3, 3, 3], [3, 3, 3]]);
  assert.throws(() => instance.alloc(2 ** 31), etude.MemoryError);
});

test("a module that fails says so from then on", async () => {
  const { Instance } = await internal("instance.js");
  const instance = new Instance((await etude.defaultRuntime()).module);
  const runtime = new etude.Runtime(instance);
  const method = (await runtime.load(corpus("add.pte"))).loadMethod();
  // what no caller can do: a pointer beyond the memory
  assert.throws(() => instance.raw("etude_program_method_count", 0xfffffff0), (e) => e.status === "Internal" && /failed in etude_program_method_count/.test(e.message));
  assert.throws(() => method.execute(), (e) => e instanceof etude.EtudeError && /a new Runtime is needed/.test(e.message));
  await assert.rejects(runtime.load(corpus("add.pte")), /a new Runtime is needed/);
  assert.ok((await etude.load(corpus("add.pte"))).methods.length > 0, "others go on");
});

test("files that are damaged are errors, not crashes", async () => {
  const bytes = new Uint8Array(await readFile(corpus("lenet.pte")));
  let refused = 0;
  for (let at = 0; at < 4096; at += 3) {
    const damaged = bytes.slice();
    damaged[at] ^= 0x41;
    try {
      const method = (await etude.load(damaged)).loadMethod();
      method.run(method.info.inputs.map((info) => new Float32Array(info.shape.reduce((a, b) => a * b, 1))));
      method.program.dispose();
    } catch (error) {
      assert.ok(error instanceof etude.EtudeError && error.status !== "Internal", `byte ${at}: ${error.stack}`);
      refused += 1;
    }
  }
  assert.ok(refused > 100, `${refused} refused`);
});

test("sources: path, URL, bytes, Blob; and those that are none", async () => {
  const file = corpus("add.pte");
  const bytes = await readFile(file);
  for (const source of [file, pathToFileURL(file), String(pathToFileURL(file)), bytes, bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length), new Blob([bytes]), new Response(bytes)]) {
    assert.deepEqual((await etude.load(source)).methods.map((m) => m.name), ["forward"]);
  }
  await assert.rejects(etude.load("no/such.pte"), (e) => e instanceof etude.NotFoundError && /no\/such\.pte/.test(e.message));
  await assert.rejects(etude.load(root), etude.AccessError);
  await assert.rejects(etude.load(new Response("", { status: 404 })), etude.NotFoundError);
  await assert.rejects(etude.load("http://127.0.0.1:9/x.pte"), etude.AccessError);
  await assert.rejects(etude.load(5), etude.ArgumentError);
  await assert.rejects(etude.load(new Uint8Array(0)), etude.ProgramError);
});

test("a worker gets the compiled module", async () => {
  const code = `import { parentPort, workerData } from "node:worker_threads";
    const { Runtime } = await import(workerData.index);
    const runtime = await Runtime.create({ module: workerData.module });
    const method = (await runtime.load(workerData.file)).loadMethod();
    parentPort.postMessage(method.run([new Float32Array(6).fill(1), new Float32Array(6).fill(2)])[0].data);`;
  const workerData = { index: String(new URL("index.js", source)), module: await etude.compile(), file: corpus("add.pte") };
  const results = await Promise.all([1, 2].map(() => new Promise((resolve, reject) => {
    new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`), { workerData }).on("message", resolve).on("error", reject);
  })));
  for (const result of results) assert.deepEqual([...result], [3, 3, 3, 3, 3, 3]);
});

const refuses = (act, text, kind = etude.ArgumentError) =>
  assert.throws(act, (error) => error instanceof kind && text.test(error.message) || assert.fail(`${text}: ${error.stack}`));

test("inputs of more than 4 GiB are a MemoryError, and nothing is written", async () => {
  const { Instance } = await internal("instance.js");
  const { packInputs } = await internal("values.js");
  const instance = new Instance((await etude.defaultRuntime()).module);
  const before = instance.bytes.length;
  const guard = instance.alloc(64);
  instance.bytes.fill(7, guard, guard + 64);
  // 2^29 + 16 numbers, twice, are 4 GiB and a bit, which would wrap around to a small block; nobody touches them
  const info = { kind: "tensor", dtype: "float32", shape: [2 ** 29 + 16], dimOrder: [0], dynamic: false };
  const huge = new Float32Array(2 ** 29 + 16);
  refuses(() => packInputs(instance, "m", [huge, huge], [info, info]), /no 42949\d+ bytes .* at most 4 GiB/, etude.MemoryError);
  for (const size of [2 ** 32, 2 ** 32 + 64, 2 ** 40, NaN, Infinity]) refuses(() => instance.alloc(size), /bytes/, etude.MemoryError);
  assert.ok(instance.bytes.subarray(guard, guard + 64).every((byte) => byte === 7));
  assert.ok(instance.bytes.length <= before + 2 ** 21);
  // a shape that the method does not have is refused before there is a copy
  const runtime = new etude.Runtime(instance);
  const method = (await runtime.load(corpus("add.pte"))).loadMethod();
  const bytes = runtime.memoryBytes;
  const tensor = { data: huge, shape: [2 ** 29 + 16] };
  refuses(() => method.run([tensor, tensor]), /input 0: expected shape \[2, 3\]/, etude.NotSupportedError);
  refuses(() => method.run([{ data: new Float32Array(0), shape: [0, 2 ** 32 + 3] }, tensor]), /input 0: expected shape/, etude.NotSupportedError);
  assert.equal(runtime.memoryBytes, bytes);
});

test("inputs that can't be written leave no block behind", async () => {
  const { Instance } = await internal("instance.js");
  const { packInputs } = await internal("values.js");
  const instance = new Instance((await etude.defaultRuntime()).module);
  const [taken, freed] = [[], []];
  const broken = {
    alloc: (size) => (taken.push(instance.alloc(size)), taken.at(-1)),
    free: (ptr) => (freed.push(ptr), instance.free(ptr)),
    bytes: instance.bytes,
    get view() {
      throw new TypeError("as of a Symbol");
    },
  };
  assert.throws(() => packInputs(broken, "m", [1], [{ kind: "int" }]), /as of a Symbol/);
  assert.deepEqual([freed, freed.length], [taken, 1]);
  const runtime = await etude.Runtime.create();
  const method = (await runtime.load(corpus("add.pte"))).loadMethod();
  const odd = etude.Tensor.from([[1, 2, 3], [4, 5, 6]]);
  odd.shape = [2, Symbol("three")];
  const before = runtime.memoryBytes;
  for (let i = 0; i < 20000; i++) assert.throws(() => method.run([odd, odd]), etude.ArgumentError);
  assert.equal(runtime.memoryBytes, before);
});

test("data is an array of files, or one of them; what fails is one error", async () => {
  const unhandled = [];
  const note = (reason) => unhandled.push(reason);
  process.on("unhandledRejection", note);
  const [pte, ptd] = [corpus("external_constants.pte"), corpus("external_constants.ptd")];
  const bytes = await readFile(ptd);
  for (const data of [[ptd], ptd, bytes, new Uint8Array(bytes).buffer, new Blob([bytes]), new Response(bytes), pathToFileURL(ptd), [bytes]]) {
    (await etude.load(pte, { data })).loadMethod();
  }
  for (const data of [null, 5, {}, [5], [null], [ptd, undefined], new Set([ptd]), Promise.resolve(bytes)]) {
    await assert.rejects(etude.load(pte, { data }), (e) => e instanceof etude.ArgumentError && /data/.test(e.message));
  }
  await assert.rejects(etude.load("no.pte", { data: ["a.ptd", "b.ptd", ptd] }), etude.NotFoundError);
  await assert.rejects(etude.load(pte, { data: [ptd, "a.ptd", new Response("", { status: 500 })] }), etude.EtudeError);
  await new Promise((resolve) => setTimeout(resolve, 20));
  process.off("unhandledRejection", note);
  assert.deepEqual(unhandled, []);
  const without = await etude.load(pte);
  refuses(() => without.loadMethod(), /the option data of load/, etude.EtudeError);
});

test("numbers that a dtype does not hold are errors that say where and what", async () => {
  const wrong = {
    int8: [300, -129, 128, 1.7, NaN, Infinity, "1", true, null, undefined, {}, 1n << 40n],
    uint8: [-1, 256, 0.5], int16: [32768], uint16: [65536, -1], int32: ["x", 2 ** 31, 2147483648n], uint32: [2 ** 32, -1],
    int64: [2n ** 63n, 2n ** 64n, 2 ** 63, 1.5, "1", NaN], uint64: [-1n, -1, 2n ** 64n], quint8: [256],
    bool: ["false", "", 2, -1, null, NaN, 0.5, {}], float16: [65520, "1", null], bfloat16: [3.4e38, true],
    float32: [1e39, "a", null, undefined, true, {}, 2n ** 60n + 1n, Symbol("s"), () => 1], float64: ["1", 2n ** 53n + 1n, false],
  };
  for (const [dtype, values] of Object.entries(wrong)) {
    for (const value of values) {
      refuses(() => etude.Tensor.from([[0, 1], [0, value]], { dtype }), new RegExp(`^element \\[1\\]\\[1\\] is .*, and ${dtype} holds .* `));
      refuses(() => etude.Tensor.from(value, { dtype }), /^the value is /);
    }
  }
  refuses(() => etude.Tensor.from([1, 300], { dtype: "int8" }), /element \[1\] is 300, and int8 holds whole numbers from -128 to 127$/);
  refuses(() => etude.Tensor.from(), /the value is undefined/);
  refuses(() => etude.Tensor.from("abc"), /the value is "abc", and float32 holds numbers/);
  refuses(() => etude.Tensor.from([, 1]), /element \[0\] is undefined/);
  refuses(() => etude.Tensor.from([1, [2]]), /equal lengths/);
  refuses(() => etude.Tensor.from(new Float64Array([1, 2.5]), { dtype: "int32" }), /element \[1\] is 2.5/);
  refuses(() => etude.Tensor.from([1], { dtype: "float8_e5m2" }), /typed array/, etude.NotSupportedError);
  const deep = [];
  deep.push(deep);
  refuses(() => etude.Tensor.from(deep), /at most 16 dimensions/, etude.NotSupportedError);
  const held = {
    int8: [-128, 127, 5n], uint8: [0, 255], int64: [-(2n ** 63n), 2n ** 63n - 1n, 7, 2 ** 62], uint64: [2n ** 64n - 1n], bool: [true, false, 1, 0, 1n],
    float32: [3.4028234663852886e38, Infinity, NaN, -0, 3n, 2n ** 60n], float16: [65504, -Infinity, NaN], uint32: [2 ** 32 - 1],
  };
  for (const [dtype, values] of Object.entries(held)) {
    const same = (value) => (dtype === "bool" ? Boolean(value) : dtype.endsWith("64") ? BigInt(value) : Number(value));
    assert.deepEqual(etude.Tensor.from(values, { dtype }).toArray(), values.map(same), dtype);
  }
  const method = (await etude.load(corpus("add.pte"))).loadMethod();
  const ones = [[1, 1, 1], [1, 1, 1]];
  for (const value of [[["a", "b", "c"], [1, 1, 1]], [[null, 1, 1], [1, 1, 1]], [[1, 1, true], [1, 1, 1]]]) {
    refuses(() => method.run([ones, value]), /^input 1: element \[0\]\[\d\] is /);
  }
});

test("settings that do not exist, and limits out of range, are errors", async () => {
  const program = await etude.load(corpus("add.pte"));
  refuses(() => program.loadMethod("forward", { memorylimit: 5 }), /loadMethod has no setting 'memorylimit'; did you mean 'memoryLimit'\?/);
  refuses(() => program.loadMethod("forward", { work_limit: 5 }), /did you mean 'workLimit'/);
  refuses(() => program.loadMethod("forward", { threads: 5 }), /there are: options/);
  refuses(() => etude.Tensor.from([1], { dype: "int32" }), /did you mean 'dtype'/);
  refuses(() => etude.Tensor.from([1], "int32"), /as an object/);
  await assert.rejects(etude.load(corpus("add.pte"), { dat: [] }), (e) => e instanceof etude.ArgumentError && /load has no setting 'dat'; did you mean 'data'/.test(e.message));
  await assert.rejects(program.runtime.load(corpus("add.pte"), { verificaton: "Minimal" }), /did you mean 'verification'/);
  await assert.rejects(etude.Runtime.create({ modul: 1 }), /did you mean 'module'/);
  for (const name of ["memoryLimit", "instructionLimit", "workLimit", "constantLimit"]) {
    for (const limit of [2 ** 64, 2 ** 63, -1, 1.5, NaN, Infinity, "5", null, 5n, Symbol("s"), ...(name === "constantLimit" ? [] : [0])]) {
      refuses(() => program.loadMethod("forward", { [name]: limit }), new RegExp(`${name} is a whole number`));
    }
    program.loadMethod("forward", { [name]: 2 ** 53 }).dispose();
  }
  refuses(() => program.loadMethod("forward", { memoryLimit: 10 }), /raise memoryLimit if/, etude.EtudeError);
});

test("whatever is given, what is thrown is an EtudeError", async () => {
  const file = corpus("add.pte");
  const program = await etude.load(file);
  const method = program.loadMethod();
  const counter = (await etude.load(corpus("counter.pte"))).loadMethod();
  const { runtime } = program;
  const gone = new Float32Array(6);
  const tensor = new etude.Tensor("float32", [2, 3], gone);
  const state = counter.getState(counter.stateNames[0]);
  const bytes = new Uint8Array(await readFile(file));
  for (const { buffer } of [gone, state.data, bytes]) structuredClone(buffer, { transfer: [buffer] });
  const odd = [null, 5, 1.5, "x", Symbol("s"), {}, [], true, () => 1, Object.create(null)];
  const calls = {
    seed: odd.filter((v) => v !== 5).map((v) => () => counter.setSeed(v)),
    wideSeed: [() => counter.setSeed(2n ** 64n), () => counter.setSeed(undefined)],
    loadMethod: odd.map((v) => () => program.loadMethod(v)),
    settings: odd.filter((v) => v?.constructor !== Object && !(v && Object.getPrototypeOf(Object(v)) === null)).map((v) => () => program.loadMethod("forward", v)),
    method: odd.map((v) => () => program.method(v)),
    run: odd.map((v) => () => method.run(v)),
    input: odd.map((v) => () => method.run([v, tensor])),
    transferred: [() => method.run([tensor, tensor]), () => method.run([gone, gone]), () => counter.setState(counter.stateNames[0], state)],
    state: odd.flatMap((v) => [() => counter.getState(v), () => counter.setState(counter.stateNames[0], v), () => counter.resetState(v)]),
    options: odd.flatMap((v) => [() => runtime.setOption(v, "a", 1), () => runtime.getOption("XnnpackBackend", v), () => runtime.optionSchema(v), () => runtime.resetOptions(v), () => method.explainOption(v, v)]),
    allOptions: [5, "x", [1], true, () => 1].flatMap((v) => [() => runtime.setOptions(v), () => runtime.setOptions({ XnnpackBackend: v })]),
    shape: odd.filter((v) => !Array.isArray(v)).flatMap((v) => [() => new etude.Tensor("float32", v, new Float32Array(1)), () => new etude.Tensor("float32", [v === 5 ? -1 : v], new Float32Array(1))]),
    order: ["10", [1, 1], [0], [Symbol("s"), 0], 5, null, {}].map((v) => () => new etude.Tensor("float32", [2, 3], new Float32Array(6), v)),
    dtype: odd.flatMap((v) => [() => new etude.Tensor(v, [1], new Float32Array(1)), () => etude.Tensor.from([1], { dtype: v })]),
    data: odd.map((v) => () => new etude.Tensor("float32", [1], v)),
    load: odd.map((v) => () => etude.load(v)),
    loadSettings: odd.filter((v) => v?.constructor !== Object && !(v && Object.getPrototypeOf(Object(v)) === null)).map((v) => () => etude.load(file, v)),
    runtime: odd.map((v) => () => etude.load(file, { runtime: v })),
    verification: odd.map((v) => () => etude.load(file, { verification: v })),
    unused: odd.map((v) => () => etude.load(file, { unusedOptions: v })),
    lost: [() => etude.load(bytes), () => etude.load(bytes.buffer)],
    read: [async () => { const used = new Response("x"); await used.text(); return etude.load(used); }],
    module: odd.map((v) => () => etude.Runtime.create({ module: v === null ? 5 : v })),
    modules: [async () => etude.Runtime.create({ module: await readFile(file) }), async () => etude.Runtime.create({ module: await WebAssembly.compile(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])) })],
    compile: [() => etude.compile(5), () => etude.compile(null), () => etude.compile(new Uint8Array(8)), () => etude.compile("no/such.wasm")],
  };
  const problems = [];
  for (const [name, list] of Object.entries(calls)) {
    for (const [i, call] of list.entries()) {
      try {
        await call();
        problems.push(`${name} ${i}: no error`);
      } catch (error) {
        if (!(error instanceof etude.EtudeError) || error.status === "Internal") problems.push(`${name} ${i}: ${error.stack.split("\n").slice(0, 3).join(" ")}`);
      }
    }
  }
  assert.deepEqual(problems, []);
  refuses(() => method.run([tensor, tensor]), /transferred/);
  const bools = new etude.Tensor("bool", [2], new Uint8Array([1, 2]));
  const { packInputs } = await internal("values.js");
  refuses(() => packInputs(null, "m", [bools], [{ kind: "tensor", dtype: "bool", shape: [2], dimOrder: [0] }]), /input 0: number 1 .* is 2, and a bool is 0 or 1/);
});

test("messages have JavaScript's names", async () => {
  const { inJavaScript } = await internal("messages.js");
  const told = {
    "expected float, got double: convert it first": "expected float32, got float64: convert it first",
    "the result half [2, 3] is an argument too": "the result float16 [2, 3] is an argument too",
    "argument 1 must be long, not int [4]": "argument 1 must be int64, not int32 [4]",
    "no conversion from byte to complex_float": "no conversion from uint8 to complex64",
    "the limit of work, 3, is used up: raise work_limit if the file is trusted": "the limit of work, 3, is used up: raise workLimit if the file is trusted",
    "method 'half' has no inputs; 'aten::to.float' is of char.pte": "method 'half' has no inputs; 'aten::to.float' is of char.pte",
    "aten::x.out (float, bfloat16, long)": "aten::x.out (float32, bfloat16, int64)",
    "the mode (float, slow) of it": "the mode (float, slow) of it",
    "4 bytes are needed": "4 bytes are needed",
  };
  for (const [from, to] of Object.entries(told)) assert.equal(inJavaScript(from), to);
  const text = (await readFile(corpus("add.pte"))).toString("latin1").replaceAll("aten::add", "aten::axd");
  const lacking = await etude.load(Buffer.from(text, "latin1"));
  assert.deepEqual(lacking.methods[0].missingOperators, ["aten::axd.out (float32, float32)"]);
  refuses(() => lacking.loadMethod(), /aten::axd\.out \(float32, float32\)/, etude.OperatorMissingError);
  const program = await etude.load(corpus("add.pte"));
  refuses(() => program.loadMethod("forward", { options: { NullBackend: { copy: true } } }), /leave them out, or load with unusedOptions: "ignore"/);
});
