/** Byte-pair encoding: a word's characters, joined two by two, the pair first that was learned first (Sennrich et al., 2016). */

import { errorOf, show } from "../errors.js";

const NONE = -1;

export class PairEncoding {
  #vocab;
  #ranks = new Map(); // "left\0right" → [rank, joined]
  #model;
  #known = new Map(); // ids of words that were encoded

  /** @param model the part `model` of a tokenizer.json */
  constructor(model) {
    for (const name of ["continuing_subword_prefix", "end_of_word_suffix"]) {
      if (model[name]) throw errorOf("NotSupported", `this tokenizer has a ${name}, which is not read here`, { subject: name });
    }
    this.#model = model;
    this.#vocab = new Map(Object.entries(model.vocab));
    const { unk_token: unknown } = model;
    if (unknown != null && !this.#vocab.has(unknown)) {
      throw errorOf("InvalidArgument", `this tokenizer's unk_token ${show(unknown)} is not in its vocab`, { subject: String(unknown) });
    }
    model.merges.forEach((merge, rank) => {
      const [left, right] = typeof merge === "string" ? merge.split(" ") : merge;
      this.#ranks.set(`${left}\0${right}`, [rank, left + right]);
    });
  }

  get vocab() {
    return this.#vocab;
  }

  /** Ids of a word. */
  encode(word) {
    const whole = this.#model.ignore_merges ? this.#vocab.get(word) : undefined;
    if (whole !== undefined) return [whole];
    let ids = this.#known.get(word);
    if (ids === undefined) {
      ids = this.#idsOf(this.#join(Array.from(word)));
      if (word.length < 256 && this.#known.size < 10000) this.#known.set(word, ids);
    }
    return ids;
  }

  /** Joins the parts of a word as long as there is a pair that was learned. */
  #join(parts) {
    const count = parts.length;
    const rank = new Float64Array(count).fill(Infinity); // of the pair that begins at a part
    const next = Int32Array.from(parts, (_, i) => (i + 1 < count ? i + 1 : NONE));
    const before = Int32Array.from(parts, (_, i) => i - 1);
    const look = (i) => {
      rank[i] = next[i] === NONE ? Infinity : (this.#ranks.get(`${parts[i]}\0${parts[next[i]]}`)?.[0] ?? Infinity);
    };
    for (let i = 0; i < count; i++) look(i);
    for (;;) {
      let best = NONE;
      for (let i = 0; i !== NONE && i < count; i = next[i]) if (rank[i] < (best === NONE ? Infinity : rank[best])) best = i;
      if (best === NONE) break;
      const gone = next[best];
      parts[best] += parts[gone];
      next[best] = next[gone];
      if (next[best] !== NONE) before[next[best]] = best;
      look(best);
      if (before[best] !== NONE) look(before[best]);
    }
    const joined = [];
    for (let i = 0; i !== NONE && i < count; i = next[i]) joined.push(parts[i]);
    return joined;
  }

  #idsOf(parts) {
    const { byte_fallback: hasBytes, fuse_unk: fuses, unk_token: unknownToken } = this.#model;
    const ids = [];
    let wasUnknown = false;
    for (const part of parts) {
      const id = this.#vocab.get(part);
      const bytes = id === undefined && hasBytes ? this.#bytesOf(part) : undefined;
      if (id !== undefined) ids.push(id);
      else if (bytes !== undefined) ids.push(...bytes);
      else if (unknownToken != null && !(fuses && wasUnknown)) ids.push(this.#vocab.get(unknownToken));
      wasUnknown = id === undefined && bytes === undefined;
    }
    return ids;
  }

  /** Ids of a part's bytes, undefined where one has none. */
  #bytesOf(part) {
    const ids = Array.from(new TextEncoder().encode(part), (byte) => this.#vocab.get(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`));
    return ids.includes(undefined) ? undefined : ids;
  }
}
