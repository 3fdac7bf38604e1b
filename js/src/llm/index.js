/** etude/llm: language models. */

export { LLM } from "./model.js";
export { loadTokenizer, Tokenizer } from "./tokenizer.js";
