/** Types of etude/llm, by hand: checked as those of the package are. */

import type { Program, ProgramOptions, Runtime, Source } from "../index.js";

/** What LLM needs of a tokenizer: that of `loadTokenizer`, or any object like it. */
export interface TokenizerLike {
  encode(text: string, options?: { bos?: boolean }): readonly number[];
  /** U+FFFD where bytes make no character yet. */
  decode(ids: readonly number[]): string;
  readonly bosId?: number;
  readonly eosIds?: readonly number[];
}

/** A tokenizer.json of the byte-pair kind. */
export class Tokenizer implements TokenizerLike {
  /** Throws ArgumentError for what is no tokenizer.json, NotSupportedError for kinds and steps that are not read here. */
  constructor(json: string | object);
  readonly vocabSize: number;
  readonly bosId?: number;
  readonly eosIds: readonly number[];
  /** Special tokens that are written out in the text count as such. `bos`: the token for its beginning in front; undefined = as the file says. */
  encode(text: string, options?: { bos?: boolean }): number[];
  decode(ids: Iterable<number>): string;
}

/** Read a tokenizer.json. */
export function loadTokenizer(source: Source): Promise<Tokenizer>;

export interface LLMOptions extends ProgramOptions {
  /** A tokenizer.json, or an object; without one prompts are token ids. */
  tokenizer?: Source | TokenizerLike;
  /** Methods that read prompts and single tokens: "forward", or "prefill" and "decode" unless said. */
  prefill?: string;
  decode?: string;
  runtime?: Runtime;
  /** As for `loadMethod`. */
  memoryLimit?: number;
  workLimit?: number;
}

export interface GenerateOptions {
  /** Most tokens; to the end of the window unless said. */
  maxTokens?: number;
  /** 0 takes the likeliest token; 0.8 unless said. */
  temperature?: number;
  /** Only the likeliest tokens: by number (0 = all), by probability together, by share of the likeliest one's. */
  topK?: number;
  topP?: number;
  minP?: number;
  /** Above 1 discourages tokens that occurred. */
  repetitionPenalty?: number;
  /** The same seed gives the same text. */
  seed?: number;
  /** false continues behind the last token that was given out; else the prompt begins a text, and what the caches hold of it is not read again. */
  fresh?: boolean;
  /** Put the token for the beginning of a text in front. */
  bos?: boolean;
  /** Ends the generation with the signal's reason; what was read stays in the caches. */
  signal?: AbortSignal;
}

export interface TextOptions extends GenerateOptions {
  /** Texts that end it and do not belong to the result. */
  stop?: string | readonly string[];
}

export interface TokenGeneration {
  /** An end token is the last of them. */
  tokens: number[];
  promptTokens: number;
  /** Of the prompt, in the caches already. */
  reusedTokens: number;
  /** An end token or a stop text; maxTokens; the model's window is full; the reader left. */
  finishReason: "stop" | "length" | "window" | "interrupted";
  promptMilliseconds: number;
  /** Of the tokens after the first. */
  milliseconds: number;
}

export interface Generation extends TokenGeneration {
  /** Without the prompt. */
  text: string;
}

/** What the program's constant methods say. */
export interface ModelInfo {
  maxSeqLen: number;
  maxContext: number;
  bosId?: number;
  eosIds: readonly number[];
  hasCache: boolean;
}

/** A decoder-only language model of the llama and optimum exporters. One generation at a time. */
export class LLM {
  private constructor();
  /** Throws what `load` and `loadMethod` do, and NotSupportedError for a program that is no such model. */
  static load(source: Source | Program, options?: LLMOptions): Promise<LLM>;
  readonly program: Program;
  readonly tokenizer?: TokenizerLike;
  readonly info: ModelInfo;
  /** The latest generation, also while it runs. */
  readonly last?: TokenGeneration;
  /** Tokens that the caches hold. */
  get tokens(): number[];
  /** The whole text that follows a prompt. */
  generate(prompt: string | readonly number[], options?: TextOptions): Promise<Generation>;
  /** The same in pieces of whole characters as they come. `break` ends it. Events have their turn between tokens. */
  stream(prompt: string | readonly number[], options?: TextOptions): AsyncGenerator<string, Generation, void>;
  /** The token ids that follow a prompt, as they come. */
  streamTokens(prompt: string | readonly number[], options?: GenerateOptions): AsyncGenerator<number, TokenGeneration, void>;
  /** Begin anew. A generation at work ends, such as that of a stream which was left: reading on there is a StateError. */
  reset(): void;
  /** Free the model now, and not when it is collected. */
  dispose(): void;
}
