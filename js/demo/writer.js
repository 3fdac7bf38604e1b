/** A language model writes: its tokenizer, a prompt, and the text as it comes. */

import { LLM, loadTokenizer } from "../src/llm/index.js";
import { find, mistake } from "./dom.js";

let program = null;
let model = null; // loaded when something is first asked of it
let tokenizer = null;
let control = null; // of what is being written

/** Has a program a method that takes tokens and gives logits? */
export function canWrite({ methods }) {
  const reader = methods.find(({ name }) => name === "forward") ?? methods.find(({ name }) => name === "prefill");
  const [tokens, ...rest] = reader?.inputs ?? [];
  const [logits] = reader?.outputs ?? [];
  const isWhole = (info) => info?.kind === "tensor" && /^int(32|64)$/.test(info.dtype) && info.shape.length <= 2;
  return isWhole(tokens) && rest.length <= 1 && rest.every(isWhole) && logits?.kind === "tensor" && logits.dtype.includes("float") && logits.shape.length >= 2;
}

function present() {
  find("#writer").hidden = program === null || !canWrite(program);
  find("#write").disabled = control !== null;
  find("#stop").disabled = control === null;
  find("#tokenizer").textContent = tokenizer === null ? "Drop the model's tokenizer.json here, or choose it: without one the prompt is numbers of tokens." : `${tokenizer.vocabSize} tokens are known.`;
}

/** A program was opened, with its tokenizer if that came along. */
export function setProgram(opened, reader) {
  control?.abort();
  program = opened;
  model = null;
  tokenizer = reader ?? null;
  find("#written").replaceChildren();
  find("#speed").textContent = "";
  find("#prompt").value = tokenizer === null ? "" : "Once upon a time there was a";
  present();
}

/** A tokenizer.json was dropped or chosen. */
export async function setTokenizer(source) {
  if (program === null || !canWrite(program)) throw mistake("a tokenizer.json belongs to a language model: open its .pte first, or drop both at once");
  tokenizer = await loadTokenizer(source);
  model = null;
  present();
}

export const stop = () => control?.abort();

function numberOf(selector, what) {
  const { value } = find(selector);
  if (value.trim() === "" || !Number.isFinite(Number(value))) throw mistake(`${what}: write a number, not '${value}'`);
  return Number(value);
}

/** Write what follows the prompt. */
export async function write() {
  const prompt = find("#prompt").value;
  const ids = tokenizer === null ? prompt.split(/[\s,]+/).filter(Boolean).map(Number) : prompt;
  if (tokenizer === null && (ids.length === 0 || !ids.every(Number.isInteger))) throw mistake("without a tokenizer.json a prompt is numbers of tokens, such as 1 43 72");
  const options = { temperature: numberOf("#temperature", "temperature"), maxTokens: numberOf("#most", "most tokens") };
  const mine = new AbortController();
  control = mine;
  present();
  const written = find("#written");
  const fresh = document.createElement("mark");
  written.replaceChildren(prompt, tokenizer === null ? " " : "", fresh);
  try {
    model ??= await LLM.load(program, tokenizer === null ? {} : { tokenizer });
    const stream = tokenizer === null ? model.streamTokens(ids, { ...options, signal: mine.signal }) : model.stream(ids, { ...options, signal: mine.signal });
    for await (const piece of stream) {
      fresh.append(tokenizer === null ? `${piece} ` : piece);
      const { tokens, milliseconds } = model.last;
      if (tokens.length > 1) find("#speed").textContent = `${tokens.length} tokens, ${Math.round((1000 * (tokens.length - 1)) / milliseconds)} a second`;
    }
  } catch (error) {
    if (!mine.signal.aborted) throw error;
  } finally {
    if (control === mine) control = null;
    present();
  }
}
