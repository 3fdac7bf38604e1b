/** Drives the methods of a program that turn tokens into logits, and knows where in its window it is. */

import { errorOf } from "../errors.js";
import { Tensor } from "../tensor.js";

const isTensor = (info, ranks, dtypes) => info?.kind === "tensor" && ranks.includes(info.shape.length) && dtypes.includes(info.dtype);
const INTEGERS = ["int64", "int32"];

/** One method of the form (tokens [, position or positions]) → logits. */
class TokenMethod {
  #first;
  #place;

  constructor(method) {
    this.method = method;
    const { inputs, outputs } = method.info;
    if (!isTensor(inputs[0], [1, 2], INTEGERS)) throw this.#odd(0, inputs[0], "tokens, int64 [1, length]");
    this.#first = inputs[0];
    this.bound = inputs[0].shape.at(-1);
    this.isDynamic = inputs[0].dynamic;
    this.position = "none";
    inputs.slice(1).forEach((info, i) => {
      if (i > 0 || !isTensor(info, [0, 1], INTEGERS)) throw this.#odd(i + 1, info, "positions, int64 [1] or [length], or nothing");
      this.#place = info;
      this.position = (info.shape[0] ?? 1) > 1 ? "each" : "start";
    });
    const [logits] = outputs;
    if (logits?.kind !== "tensor" || logits.shape.length < 1 || logits.shape.length > 3) {
      throw errorOf("NotSupported", `method '${method.name}' gives no logits: it is no language model`, { subject: method.name });
    }
    this.vocabSize = logits.shape.at(-1);
  }

  #odd(index, info, wanted) {
    const got = info === undefined ? "not there" : info.kind === "tensor" ? `${info.dtype} [${info.shape.join(", ")}]` : info.kind;
    const text = `method '${this.method.name}' is no decoder of a language model that LLM can drive: its input ${index} is ${got}, and ${wanted} would be understood`;
    return errorOf("NotSupported", text, { subject: this.method.name });
  }

  /** Logits of the last token of a chunk, float32. `start` is the position of the first. */
  run(chunk, start) {
    const shape = [...new Array(this.#first.shape.length - 1).fill(1), chunk.length];
    const inputs = [Tensor.from(chunk, { dtype: this.#first.dtype, shape })];
    if (this.#place !== undefined) {
      const places = this.position === "each" ? chunk.map((_, i) => start + i) : [start];
      inputs.push(Tensor.from(places, { dtype: this.#place.dtype, shape: this.#place.shape.length === 0 ? [] : [places.length] }));
    }
    const [logits] = this.method.run(inputs);
    const all = logits.dtype === "float32" ? logits.data : logits.toFloat32();
    return all.subarray(all.length - this.vocabSize);
  }
}

/** A conversation's place in a program: tokens go in at the present position, logits of the next one come out. */
export class Decoder {
  #history = []; // without caches everything so far goes in again

  /** `prefill` reads prompts, `decode` single tokens; without it the first does both. */
  constructor(prefill, decode) {
    this.prefill = new TokenMethod(prefill);
    this.decode = decode === undefined ? this.prefill : new TokenMethod(decode);
    if (this.decode.vocabSize !== this.prefill.vocabSize) {
      throw errorOf("NotSupported", `methods '${prefill.name}' and '${decode.name}' give logits for ${this.prefill.vocabSize} and ${this.decode.vocabSize} tokens: they are not of one model`);
    }
    this.hasCache = this.prefill.position !== "none";
    this.position = 0;
  }

  get vocabSize() {
    return this.prefill.vocabSize;
  }

  get methods() {
    return this.decode === this.prefill ? [this.prefill.method] : [this.prefill.method, this.decode.method];
  }

  /** Reads tokens in chunks that the program takes: after each the logits of its last token, and how many were read. */
  *feed(tokens) {
    if (!this.hasCache) {
      const history = [...this.#history, ...tokens];
      if (history.length > this.prefill.bound) {
        throw errorOf("InvalidArgument", `${history.length} tokens: this model has no cache and reads ${this.prefill.bound} at most, prompt and answer together`);
      }
      yield { logits: this.prefill.run(history, 0), count: tokens.length };
      this.#history = history;
      this.position = history.length;
      return;
    }
    for (let done = 0; done < tokens.length; ) {
      const left = tokens.length - done;
      const method = left === 1 || (left < this.prefill.bound && !this.prefill.isDynamic) ? this.decode : this.prefill;
      const count = Math.min(left, method.bound);
      const logits = method.run(tokens.slice(done, done + count), this.position);
      done += count;
      this.position += count;
      yield { logits, count };
    }
  }

  /** Continue at an earlier position. */
  moveTo(position) {
    this.position = position;
    this.#history.length = Math.min(this.#history.length, position);
  }
}
