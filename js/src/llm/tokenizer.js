/** A tokenizer.json of the byte-pair kind: those of Llama, Qwen, SmolLM, Phi, Mistral and GPT-2. */

import { errorOf, show } from "../errors.js";
import { readSource } from "../source.js";
import { PairEncoding } from "./bpe.js";
import { literal } from "./pattern.js";
import { frameOf, joinerOf, normalizerOf, splitterOf } from "./steps.js";

// as Python's etude.llm: the first that is there
const BEGINS = ["<s>", "<|begin_of_text|>", "<bos>", "<|bos|>", "<|startoftext|>"];
const ENDS = ["</s>", "<|end_of_text|>", "<eos>", "<|eos|>", "<|endoftext|>", "<|im_end|>"];

export class Tokenizer {
  #model;
  #normalize;
  #split;
  #join;
  #frame;
  #added = new Map(); // ids of tokens that stand for themselves
  #places; // expression that finds them
  #texts = [];
  #special = new Set();

  /** @param {string | object} json a tokenizer.json */
  constructor(json) {
    const file = typeof json === "string" ? parse(json) : json;
    const { model } = file ?? {};
    if (typeof model !== "object" || model === null) throw errorOf("InvalidArgument", "this is no tokenizer.json: it has no part 'model'");
    if (model.type !== undefined ? model.type !== "BPE" : model.merges === undefined) {
      const hint = "give any object with encode(text) and decode(ids) instead, such as one over the package @huggingface/tokenizers";
      throw errorOf("NotSupported", `this tokenizer is of the kind '${model.type}', and BPE is read here: ${hint}`, { subject: model.type ?? "" });
    }
    this.#model = new PairEncoding(model);
    this.#normalize = normalizerOf(file.normalizer);
    this.#split = splitterOf(file.pre_tokenizer);
    this.#join = joinerOf(file.decoder);
    this.#frame = frameOf(file.post_processor);
    for (const [text, id] of this.#model.vocab) this.#texts[id] = text;
    const added = file.added_tokens ?? [];
    for (const { id, content, special } of added) {
      this.#added.set(content, id);
      this.#texts[id] = content;
      if (special) this.#special.add(id);
    }
    // the longest first, since an expression takes the first that fits
    const found = [...added].sort((a, b) => b.content.length - a.content.length);
    const source = found.map(({ content, lstrip, rstrip }) => `${lstrip ? "\\s*" : ""}(?:${literal(content).source})${rstrip ? "\\s*" : ""}`);
    this.#places = added.length === 0 ? null : new RegExp(source.join("|"), "gu");
    const first = (names) => names.map((name) => this.#added.get(name)).find((id) => id !== undefined);
    this.vocabSize = this.#texts.length;
    this.bosId = first(BEGINS);
    const end = first(ENDS);
    this.eosIds = end === undefined ? [] : [end];
  }

  /** Ids of a text. `bos` puts the token for its beginning in front; undefined: what the file says goes before and after it. */
  encode(text, { bos } = {}) {
    if (typeof text !== "string") throw errorOf("InvalidType", `a text is a string, not ${show(text)}`);
    const ids = [];
    let at = 0;
    const plain = (part) => {
      if (part === "") return;
      for (const word of this.#split(this.#normalize(part), ids.length === 0)) if (word !== "") ids.push(...this.#model.encode(word));
    };
    for (const { 0: match, index } of this.#places === null ? [] : text.matchAll(this.#places)) {
      plain(text.slice(at, index));
      ids.push(this.#added.get(match) ?? this.#added.get(match.trim()));
      at = index + match.length;
    }
    plain(text.slice(at));
    if (bos === undefined) return [...this.#frame[0], ...ids, ...this.#frame[1]];
    return bos && this.bosId !== undefined ? [this.bosId, ...ids] : ids;
  }

  /** The text of ids, special tokens left out; U+FFFD where bytes make no character (yet). */
  decode(ids) {
    const texts = Array.from(ids).filter((id) => this.#texts[id] !== undefined && !this.#special.has(id));
    return this.#join(texts.map((id) => this.#texts[id])).join("");
  }
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw errorOf("InvalidArgument", `this is no tokenizer.json: ${cause.message}`, { cause });
  }
}

/** The tokenizer in a tokenizer.json: a path (Node), a URL, bytes, a File, a Response. */
export async function loadTokenizer(source) {
  return new Tokenizer(new TextDecoder().decode(await readSource(source)));
}
