/** From logits to the next token. The options and what they mean are those of Python's `etude.llm.Sampling`. */

import { errorOf, show } from "../errors.js";

const BOUNDS = {
  temperature: [(v) => v >= 0, "at least 0"],
  topK: [(v) => Number.isInteger(v) && v >= 0, "a whole number, at least 0 (0: all tokens)"],
  topP: [(v) => v > 0 && v <= 1, "above 0 and at most 1"],
  minP: [(v) => v >= 0 && v <= 1, "from 0 to 1"],
  repetitionPenalty: [(v) => v > 0, "above 0"],
};

/** Options of sampling, checked, with their defaults. */
export function samplingOf({ temperature = 0.8, topK = 0, topP = 1, minP = 0, repetitionPenalty = 1 }) {
  const sampling = { temperature, topK, topP, minP, repetitionPenalty };
  for (const [name, [holds, wanted]] of Object.entries(BOUNDS)) {
    const value = sampling[name];
    if (typeof value !== "number" || !Number.isFinite(value) || !holds(value)) {
      throw errorOf("InvalidArgument", `${name} must be ${wanted}, not ${show(value)}`, { subject: name });
    }
  }
  return sampling;
}

/** Numbers from 0 to 1, the same for the same seed (Mulberry32); Math.random without one. */
export function randomOf(seed) {
  if (seed === undefined) return Math.random;
  if (!Number.isSafeInteger(seed) || seed < 0) throw errorOf("InvalidArgument", `seed is a whole number, at least 0, not ${show(seed)}`, { subject: "seed" });
  let state = (seed ^ Math.floor(seed / 2 ** 32)) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The largest logit's place. */
function likeliest(scores) {
  let best = 0;
  for (let i = 1; i < scores.length; i++) if (scores[i] > scores[best]) best = i;
  return best;
}

function check(logits) {
  let usable = false;
  for (const value of logits) {
    if (Number.isNaN(value)) usable = undefined;
    if (usable === undefined) break;
    usable ||= Number.isFinite(value);
  }
  if (usable) return;
  throw errorOf("InvalidState", "the model gives no usable logits: its weights or its caches are damaged, or half precision is too little for it");
}

/** The candidates among `weights`, of which the likeliest one's is 1: the likeliest first. */
function candidates(weights, { topK, topP, minP }) {
  let sum = 0;
  for (const weight of weights) sum += weight;
  // what cannot be among them is not sorted: what is below the k-th, and what topP leaves out, which weighs less than its share together
  const kth = topK > 0 && topK < weights.length ? weights.slice().sort()[weights.length - topK] : 0;
  const least = Math.max(minP, kth, topK === 0 && topP < 1 ? ((1 - topP) * sum) / weights.length : 0);
  let ids = [];
  for (let id = 0; id < weights.length; id++) if (weights[id] >= least) ids.push(id);
  ids.sort((a, b) => weights[b] - weights[a] || a - b);
  if (topK > 0) ids = ids.slice(0, topK);
  if (topP === 1) return ids;
  // the share is one of what topK and minP leave
  let left = topP * (topK > 0 || minP > 0 ? ids.reduce((all, id) => all + weights[id], 0) : sum);
  const last = ids.findIndex((id) => (left -= weights[id]) <= 0);
  return last < 0 ? ids : ids.slice(0, last + 1);
}

/** One of `ids`, or of all where they are undefined: each as often as its weight says. */
function draw(ids, weights, random) {
  const count = ids?.length ?? weights.length;
  const idAt = (i) => (ids === undefined ? i : ids[i]);
  let sum = 0;
  for (let i = 0; i < count; i++) sum += weights[idAt(i)];
  let place = random() * sum;
  for (let i = 0; i < count; i++) if ((place -= weights[idAt(i)]) < 0) return idAt(i);
  return undefined; // of rounding
}

/** The next token after `seen`. */
export function choose(logits, seen, sampling, random) {
  const { temperature, repetitionPenalty: penalty } = sampling;
  check(logits);
  const scores = Float64Array.from(logits);
  if (penalty !== 1) for (const id of new Set(seen)) if (id < scores.length) scores[id] = scores[id] > 0 ? scores[id] / penalty : scores[id] * penalty;
  const best = likeliest(scores);
  if (temperature === 0) return best;
  const most = scores[best];
  const weights = scores; // in its place
  for (let i = 0; i < weights.length; i++) weights[i] = Math.exp((scores[i] - most) / temperature);
  const { topK, topP, minP } = sampling;
  const isOpen = topK === 0 && topP === 1 && minP === 0;
  return draw(isOpen ? undefined : candidates(weights, sampling), weights, random) ?? best;
}
