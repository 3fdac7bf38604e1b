/** Steps of a tokenizer.json, by their names there: from a text to words, and from tokens to a text. */

import { errorOf } from "../errors.js";
import { toBytes, toLetters } from "./bytelevel.js";
import { expressionOf, patternOf } from "./pattern.js";

const GPT2 = patternOf("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+");

function unknown(what, { type }) {
  const hint = "give any object with encode(text) and decode(ids), such as one over the package @huggingface/tokenizers";
  return errorOf("NotSupported", `this tokenizer has the ${what} '${type}', which is not read here: ${hint}`, { subject: type });
}

/** A function from text to text. */
export function normalizerOf(step) {
  switch (step?.type) {
    case undefined:
      return (text) => text;
    case "Sequence": {
      const steps = step.normalizers.map(normalizerOf);
      return (text) => steps.reduce((made, act) => act(made), text);
    }
    case "NFC":
    case "NFD":
    case "NFKC":
    case "NFKD":
      return (text) => text.normalize(step.type);
    case "Lowercase":
      return (text) => text.toLowerCase();
    case "Strip":
      return (text) => (step.strip_left ? text.trimStart() : text).slice(0, step.strip_right ? text.trimEnd().length - text.length || undefined : undefined);
    case "Prepend":
      return (text) => (text === "" ? "" : step.prepend + text);
    case "Replace": {
      const found = expressionOf(step.pattern);
      return (text) => text.replace(found, () => step.content);
    }
    default:
      throw unknown("normalizer", step);
  }
}

/** Cuts a word at what is found, which goes where `behavior` says. */
function cut(word, found, { behavior = "Isolated", invert = false }) {
  const parts = []; // [text, is it a delimiter]
  let at = 0;
  for (const { 0: match, index } of word.matchAll(found)) {
    if (index > at) parts.push([word.slice(at, index), invert]);
    parts.push([match, !invert]);
    at = index + match.length;
  }
  if (at < word.length) parts.push([word.slice(at), invert]);
  const words = [];
  let open = false; // does the last word take what comes?
  for (const [text, isDelimiter] of parts) {
    if (isDelimiter && behavior === "Removed") {
      open = false;
    } else if (behavior === "MergedWithPrevious") {
      if (isDelimiter && open) words[words.length - 1] += text;
      else words.push(text);
      open = !isDelimiter;
    } else if (behavior === "MergedWithNext") {
      if (!isDelimiter && open) words[words.length - 1] += text;
      else words.push(text);
      open = isDelimiter;
    } else if (behavior === "Contiguous") {
      if (isDelimiter && open) words[words.length - 1] += text;
      else words.push(text);
      open = isDelimiter;
    } else {
      words.push(text);
    }
  }
  return words.filter((part) => part !== ""); // an edge is a delimiter without text
}

/** A function from a word to words; `isFirst` says that the word begins the text. */
export function splitterOf(step) {
  switch (step?.type) {
    case undefined:
      return (word) => [word];
    case "Sequence": {
      const steps = step.pretokenizers.map(splitterOf);
      return (word, isFirst) => steps.reduce((words, act) => words.flatMap((part, i) => act(part, isFirst && i === 0)), [word]);
    }
    case "ByteLevel":
      return (word) => {
        const whole = step.add_prefix_space && !word.startsWith(" ") ? ` ${word}` : word;
        return (step.use_regex === false ? [whole] : cut(whole, GPT2, {})).map(toLetters);
      };
    case "Split": {
      const found = expressionOf(step.pattern);
      return (word) => cut(word, found, step);
    }
    case "Digits":
      return (word) => cut(word, step.individual_digits ? /\p{N}/gu : /\p{N}+/gu, {});
    case "Metaspace": {
      const scheme = step.prepend_scheme ?? (step.add_prefix_space === false ? "never" : "always");
      return (word, isFirst) => {
        const marked = word.replaceAll(" ", step.replacement);
        const begins = scheme === "always" || (scheme === "first" && isFirst);
        const whole = begins && !marked.startsWith(step.replacement) ? step.replacement + marked : marked;
        return step.split === false ? [whole] : cut(whole, expressionOf({ String: step.replacement }), { behavior: "MergedWithNext" });
      };
    }
    default:
      throw unknown("pre-tokenizer", step);
  }
}

const BYTE = /^<0x([0-9A-Fa-f]{2})>$/;
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Runs of `<0x..>` become the characters of their bytes, or one mark for each byte where they make none. */
function joinBytes(tokens) {
  const out = [];
  let bytes = [];
  const flush = () => {
    if (bytes.length === 0) return;
    try {
      out.push(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes)));
    } catch {
      out.push("\ufffd".repeat(bytes.length));
    }
    bytes = [];
  };
  for (const token of tokens) {
    const byte = BYTE.exec(token);
    if (byte !== null) {
      bytes.push(parseInt(byte[1], 16));
    } else {
      flush();
      out.push(token);
    }
  }
  flush();
  return out;
}

function strip(text, { content, start = 0, stop = 0 }) {
  let [from, to] = [0, text.length];
  while (from < start && text[from] === content) from += 1;
  while (text.length - to < stop && to > from && text[to - 1] === content) to -= 1;
  return text.slice(from, to);
}

/** A function from tokens to pieces of the text. */
export function joinerOf(step) {
  switch (step?.type) {
    case undefined:
      return (tokens) => [tokens.join(" ")];
    case "Sequence": {
      const steps = step.decoders.map(joinerOf);
      return (tokens) => steps.reduce((made, act) => act(made), tokens);
    }
    case "ByteLevel":
      return (tokens) => [decoder.decode(Uint8Array.from(tokens.flatMap(toBytes)))];
    case "ByteFallback":
      return joinBytes;
    case "Fuse":
      return (tokens) => [tokens.join("")];
    case "Strip":
      return (tokens) => tokens.map((token) => strip(token, step));
    case "Replace": {
      const found = expressionOf(step.pattern);
      return (tokens) => tokens.map((token) => token.replace(found, () => step.content));
    }
    case "Metaspace": {
      const scheme = step.prepend_scheme ?? (step.add_prefix_space === false ? "never" : "always");
      const asText = (token) => token.replaceAll(step.replacement, " ");
      return (tokens) => tokens.map((token, i) => (i === 0 && scheme !== "never" && token.startsWith(step.replacement) ? asText(token.slice(1)) : asText(token)));
    }
    default:
      throw unknown("decoder", step);
  }
}

/** Ids that a post-processor puts before and after those of one text: `[before, after]`. */
export function frameOf(step) {
  switch (step?.type) {
    case undefined:
    case "ByteLevel":
      return [[], []];
    case "Sequence": {
      const frames = step.processors.map(frameOf);
      return [frames.flatMap(([before]) => before).reverse(), frames.flatMap(([, after]) => after)];
    }
    case "TemplateProcessing": {
      const ids = (part) => (part.SpecialToken === undefined ? [] : step.special_tokens[part.SpecialToken.id].ids);
      const place = step.single.findIndex((part) => part.Sequence !== undefined);
      return [step.single.slice(0, place).flatMap(ids), step.single.slice(place + 1).flatMap(ids)];
    }
    default:
      throw unknown("post-processor", step);
  }
}
