/** A language model in a `.pte` with its tokenizer: text in, text out as it comes. */

import { errorOf, show } from "../errors.js";
import { load } from "../runtime.js";
import { Program } from "../program.js";
import { settingsOf } from "../settings.js";
import { Decoder } from "./decoder.js";
import { choose, randomOf, samplingOf } from "./sampling.js";
import { TextStream } from "./text.js";
import { loadTokenizer } from "./tokenizer.js";

const LOAD = ["tokenizer", "prefill", "decode", "runtime", "data", "options", "unusedOptions", "verification", "memoryLimit", "workLimit"];
const METHOD = ["memoryLimit", "workLimit"];
const GENERATE = ["maxTokens", "temperature", "topK", "topP", "minP", "repetitionPenalty", "stop", "seed", "fresh", "bos", "signal"];
const TURN = 16; // milliseconds after which others have theirs: a page is painted, a signal arrives

/** Lets events that wait have their turn. */
function others() {
  if (typeof setImmediate === "function") return new Promise((resolve) => setImmediate(resolve));
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel(); // timeouts would wait
    port1.onmessage = () => (port1.close(), resolve());
    port2.postMessage(null);
  });
}

/** What exporters say of a model in constant methods, with the defaults of the official runner. */
function infoOf(program, bound) {
  const constant = (name) => {
    const info = program.methods.find((method) => method.name === name);
    const values = info === undefined || info.inputs.length > 0 ? [] : info.outputs.map((output) => output.value);
    return values.filter((value) => ["bigint", "number", "boolean"].includes(typeof value)).map(Number);
  };
  const number = (name, otherwise) => constant(name)[0] ?? otherwise;
  const maxSeqLen = number("get_max_seq_len", bound) || bound;
  return {
    maxSeqLen,
    maxContext: number("get_max_context_len", maxSeqLen) || maxSeqLen,
    bosId: number("get_bos_id", undefined),
    eosIds: [...constant("get_eos_ids"), ...constant("get_eos_id")],
    hasCache: number("use_kv_cache", 1) !== 0,
  };
}

function textsOf(stop = []) {
  const texts = typeof stop === "string" ? [stop] : stop;
  if (Array.isArray(texts) && texts.every((text) => typeof text === "string" && text !== "")) return texts;
  throw errorOf("InvalidType", `stop is a text or an array of texts, none of them empty, not ${show(stop)}`, { subject: "stop" });
}

export class LLM {
  #decoder;
  #tokens = []; // what the caches hold
  #unread = []; // the token that was given out last, until it goes in
  #running; // the generation at work
  #canRewind;
  #ownsProgram;

  /** Use `LLM.load`. */
  constructor(program, tokenizer, prefill, decode, ownsProgram) {
    this.program = program;
    this.tokenizer = tokenizer;
    this.#decoder = new Decoder(prefill, decode);
    this.info = infoOf(program, this.#decoder.prefill.bound);
    if (!this.info.hasCache) this.#decoder.hasCache = false;
    this.#canRewind = this.#decoder.methods.every((method) => method.stateNames.every((name) => this.#isByPosition(method.getState(name))));
    this.#ownsProgram = ownsProgram;
  }

  /**
   * `source` is what `load` takes, or a Program; `tokenizer` a tokenizer.json likewise, or an object with `encode(text)` and
   * `decode(ids)`. Without one prompts are token ids. `prefill` and `decode` name methods that have other names.
   */
  static async load(source, settings) {
    const { tokenizer, prefill, decode, ...rest } = settingsOf(settings, LOAD, "LLM.load");
    const limits = Object.fromEntries(Object.entries(rest).filter(([name]) => METHOD.includes(name)));
    const loading = Object.fromEntries(Object.entries(rest).filter(([name]) => !METHOD.includes(name)));
    const isGiven = source instanceof Program;
    const isReader = typeof tokenizer?.encode === "function" && typeof tokenizer?.decode === "function";
    const reader = tokenizer === undefined || isReader ? tokenizer : await loadTokenizer(tokenizer);
    const program = isGiven ? source : await load(source, loading);
    try {
      const names = program.methods.map((method) => method.name);
      const reads = prefill ?? ["forward", "prefill"].find((name) => names.includes(name));
      if (reads === undefined) {
        throw errorOf("NotSupported", `the program has neither a method 'forward' nor 'prefill' (it has: ${names.join(", ")}): name its methods, {prefill, decode}`);
      }
      const steps = decode ?? (names.includes("decode") && reads !== "decode" ? "decode" : undefined);
      return new LLM(program, reader, program.loadMethod(reads, limits), steps && program.loadMethod(steps, limits), !isGiven);
    } catch (error) {
      if (!isGiven) program.dispose();
      throw error;
    }
  }

  /** Tokens that the caches hold. */
  get tokens() {
    return [...this.#tokens];
  }

  /** The whole text that follows a prompt: `{text, tokens, …}`. */
  async generate(prompt, settings) {
    const stream = this.stream(prompt, settings);
    for (;;) {
      const { done, value } = await stream.next();
      if (done) return value;
    }
  }

  /** The text that follows a prompt, in pieces of whole characters as they come; the generator returns what `generate` does. */
  stream(prompt, settings) {
    const { stop, ...rest } = settingsOf(settings, GENERATE, "stream");
    if (this.tokenizer === undefined) throw errorOf("InvalidState", "text needs a tokenizer: LLM.load(source, {tokenizer}); ids do without: streamTokens");
    const ids = this.#encode(prompt, rest.bos);
    const text = new TextStream((tokens) => this.tokenizer.decode(tokens), textsOf(stop), ids);
    return this.#pieces(text, this.#tokensAfter(ids, rest));
  }

  /** The token ids that follow a prompt, as they come; an end token is the last. */
  streamTokens(prompt, settings) {
    const known = settingsOf(settings, GENERATE.filter((name) => name !== "stop"), "streamTokens");
    return this.#tokensAfter(this.#encode(prompt, known.bos), known);
  }

  async *#pieces(text, tokens) {
    const ends = this.#ends();
    let written = "";
    let result;
    try {
      for (;;) {
        const { done, value } = await tokens.next();
        if (done) {
          result = value;
          break;
        }
        const piece = ends.includes(value) ? "" : text.push(value);
        written += piece;
        if (piece !== "") yield piece;
        if (text.stopped) {
          ({ value: result } = await tokens.return({ finishReason: "stop" }));
          break;
        }
      }
    } finally {
      await tokens.return(); // the reader has enough
    }
    const rest = text.finish();
    if (rest !== "") yield rest;
    return { ...this.last, ...result, ...(text.stopped ? { finishReason: "stop" } : {}), text: written + rest };
  }

  #tokensAfter(ids, { maxTokens, seed, signal, fresh = true, bos, ...rest }) {
    if (maxTokens !== undefined && !(Number.isSafeInteger(maxTokens) && maxTokens >= 1)) {
      throw errorOf("InvalidArgument", `maxTokens is a whole number, at least 1, not ${show(maxTokens)}`, { subject: "maxTokens" });
    }
    if (signal !== undefined && typeof signal?.aborted !== "boolean") throw errorOf("InvalidType", `signal is an AbortSignal, not ${show(signal)}`);
    return this.#run(ids, { maxTokens, signal, fresh, sampling: samplingOf(rest), random: randomOf(seed) });
  }

  async *#run(ids, { maxTokens = Infinity, signal, fresh, sampling, random }) {
    if (this.#running !== undefined) throw errorOf("InvalidState", "this LLM is generating already: finish that first, end it with reset(), or load another one");
    const done = { tokens: [], promptTokens: ids.length, reusedTokens: 0, finishReason: "interrupted", promptMilliseconds: 0, milliseconds: 0 };
    this.last = done;
    this.#running = done;
    const check = () => {
      if (this.#running !== done) throw errorOf("InvalidState", "this generation was ended by reset()");
      signal?.throwIfAborted();
    };
    try {
      const reused = fresh ? this.#rewind(ids) : 0;
      done.reusedTokens = reused;
      const unread = [...this.#unread, ...ids.slice(reused)];
      if (unread.length >= this.#room() + (this.#decoder.hasCache ? 0 : 1)) {
        const held = this.#decoder.position + this.#unread.length;
        const taken = held > 0 ? `, of which ${held} are taken` : "";
        throw errorOf("InvalidArgument", `the prompt has ${ids.length} tokens, and the model's window holds ${this.info.maxContext}${taken}: shorten the prompt`);
      }
      let clock = performance.now();
      const turn = async () => {
        check();
        if (performance.now() - clock < TURN) return;
        await others();
        clock = performance.now();
        check();
      };
      let logits;
      const begin = performance.now();
      for (logits of this.#feed(unread)) await turn();
      done.promptMilliseconds = performance.now() - begin;
      for (;;) {
        const token = choose(logits, [...this.#tokens, ...done.tokens.slice(-1)], sampling, random);
        done.tokens.push(token);
        if (this.#ends().includes(token)) done.finishReason = "stop";
        else if (done.tokens.length >= maxTokens) done.finishReason = "length";
        else if (this.#room() < 1) done.finishReason = "window";
        this.#unread = [token];
        yield token;
        if (done.finishReason !== "interrupted") return done;
        await turn();
        const start = performance.now();
        for (logits of this.#feed([token]));
        done.milliseconds += performance.now() - start;
      }
    } finally {
      if (this.#running === done) this.#running = undefined;
    }
  }

  *#feed(ids) {
    let read = 0;
    for (const { logits, count } of this.#decoder.feed(ids)) {
      this.#tokens.push(...ids.slice(read, read + count));
      this.#unread = []; // it is the first that goes in
      read += count;
      yield logits;
    }
  }

  /** Goes to where a new prompt differs from what the caches hold; how many of its tokens need not be read. */
  #rewind(ids) {
    let same = 0;
    while (same < Math.min(ids.length - 1, this.#tokens.length) && ids[same] === this.#tokens[same]) same += 1;
    if (!this.#decoder.hasCache || (same < this.#decoder.position && !this.#canRewind)) same = 0;
    this.#decoder.moveTo(same);
    this.#tokens.length = same;
    this.#unread = [];
    // a recurrent state counts from what it was at load
    if (same === 0 && !this.#canRewind) for (const method of this.#decoder.methods) method.resetState();
    return same;
  }

  /** Is a state a cache by position, in which nothing behind the present position counts? Rings and recurrent states are not. */
  #isByPosition({ shape }) {
    return shape.length > 2 && shape.slice(1, 3).includes(this.info.maxContext);
  }

  #room() {
    if (!this.#decoder.hasCache) return this.#decoder.prefill.bound - this.#decoder.position;
    const isEndless = this.info.maxSeqLen < this.info.maxContext && !this.#canRewind; // a sliding window
    return this.info.maxContext - (isEndless ? 0 : this.#decoder.position);
  }

  #ends() {
    return this.info.eosIds.length > 0 ? this.info.eosIds : [...(this.tokenizer?.eosIds ?? [])];
  }

  #encode(prompt, bos) {
    let ids = prompt;
    if (typeof prompt === "string") {
      if (this.tokenizer === undefined) throw errorOf("InvalidState", "text needs a tokenizer: LLM.load(source, {tokenizer}); ids do without");
      ids = this.tokenizer.encode(prompt, bos === undefined ? undefined : { bos });
    }
    if (!(Array.isArray(ids) || ArrayBuffer.isView(ids))) throw errorOf("InvalidType", `a prompt is a text, or an array of token ids, not ${show(prompt)}`);
    const tokens = Array.from(ids, (id) => (typeof id === "bigint" ? Number(id) : id));
    if (bos && typeof prompt !== "string") tokens.unshift(...[this.tokenizer?.bosId ?? this.info.bosId].filter((id) => id !== undefined));
    if (tokens.length === 0) throw errorOf("InvalidArgument", "the prompt is empty: give at least one token");
    const limit = this.#decoder.vocabSize;
    const wrong = tokens.findIndex((id) => !Number.isInteger(id) || id < 0 || id >= limit);
    if (wrong < 0) return tokens;
    throw errorOf("InvalidArgument", `token ${wrong} of the prompt is ${show(tokens[wrong])}, and the model knows ${limit} tokens, counted from 0: does the tokenizer belong to it?`);
  }

  /** Begin anew: position 0, and caches as they were at load. A generation at work ends: who reads on there gets an error. */
  reset() {
    this.#running = undefined;
    this.#unread = [];
    this.#decoder.moveTo(0);
    this.#tokens.length = 0;
    for (const method of this.#decoder.methods) method.resetState();
  }

  /** Free the model now, and not when it is collected. */
  dispose() {
    if (this.#ownsProgram) this.program.dispose();
    else for (const method of this.#decoder.methods) method.dispose();
  }
}
LLM.prototype[Symbol.dispose ?? Symbol.for("Symbol.dispose")] = LLM.prototype.dispose;
