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

function penalise(logits, seen, penalty) {
  const scores = Float64Array.from(logits);
  if (penalty !== 1) for (const id of new Set(seen)) if (id < scores.length) scores[id] = scores[id] > 0 ? scores[id] / penalty : scores[id] * penalty;
  return scores;
}

/** Candidates, likeliest first. `scores` have 0 as their largest. */
function candidates(scores, { topK, topP, minP }) {
  let order = [...scores.keys()];
  if (topK === 0 && topP === 1 && minP === 0) return order;
  order.sort((a, b) => scores[b] - scores[a] || a - b);
  if (topK > 0) order = order.slice(0, topK);
  const weights = order.map((id) => Math.exp(scores[id]));
  if (minP > 0) order = order.slice(0, Math.max(1, weights.filter((weight) => weight >= minP).length));
  if (topP === 1) return order;
  let left = topP * order.reduce((sum, _, i) => sum + weights[i], 0);
  const last = order.findIndex((_, i) => (left -= weights[i]) <= 0);
  return last < 0 ? order : order.slice(0, last + 1);
}

/** The next token after `seen`. */
export function choose(logits, seen, sampling, random) {
  if (logits.some(Number.isNaN) || !logits.some(Number.isFinite)) {
    throw errorOf("InvalidState", "the model gives no usable logits: its weights or its caches are damaged, or half precision is too little for it");
  }
  const scores = penalise(logits, seen, sampling.repetitionPenalty);
  const best = scores.reduce((at, score, i) => (score > scores[at] ? i : at), 0);
  if (sampling.temperature === 0) return best;
  const most = scores[best];
  const scaled = scores.map((score) => (score - most) / sampling.temperature);
  const ids = candidates(scaled, sampling);
  const weights = ids.map((id) => Math.exp(scaled[id]));
  let place = random() * weights.reduce((a, b) => a + b, 0);
  const found = weights.findIndex((weight) => (place -= weight) < 0);
  return ids[found < 0 ? ids.length - 1 : found];
}
