/** Patterns of tokenizer files, which are Oniguruma's, as regular expressions of JavaScript. */

import { errorOf } from "../errors.js";

/** Letters of both cases, where JavaScript has no `(?i:…)` yet. */
function bothCases(char) {
  const [low, high] = [char.toLowerCase(), char.toUpperCase()];
  return low === high ? char : `[${low}${high}]`;
}

/**
 * `\s` is Unicode's white space there, possessive quantifiers are greedy ones here (which tokenizers mean for speed), `(?i:` is
 * spelled out, and what is escaped without need is not.
 */
export function patternOf(source) {
  let [out, at, inClass] = ["", 0, false];
  const groups = []; // is each open one without case?
  while (at < source.length) {
    const char = source[at];
    if (char === "\\") {
      const next = source[at + 1];
      at += 2;
      if (next === "s" || next === "S") out += next === "s" ? "\\p{White_Space}" : "\\P{White_Space}";
      else if (next === "A" || next === "z") out += next === "A" ? "^" : "$";
      else if (/[\w^$\\.*+?()[\]{}|/]/.test(next) || (inClass && next === "-")) out += `\\${next}`;
      else out += next;
      continue;
    }
    at += 1;
    if (inClass) {
      inClass = char !== "]";
      out += char === "[" ? "\\[" : char;
    } else if (char === "[") {
      inClass = true;
      out += char;
      if (source[at] === "^") out += source[at++];
    } else if (char === "(") {
      const noCase = source.startsWith("?i:", at);
      groups.push(noCase || groups.at(-1) === true);
      out += noCase ? "(?:" : char;
      if (noCase) at += 3;
    } else if (char === ")") {
      groups.pop();
      out += char;
    } else if (char === "+" && /[?*+]/.test(source[at - 2] ?? "") && source[at - 3] !== "\\") {
      continue; // possessive
    } else {
      out += groups.at(-1) === true ? bothCases(char) : char;
    }
  }
  try {
    return new RegExp(out, "gu");
  } catch (cause) {
    throw errorOf("NotSupported", `the tokenizer's pattern ${JSON.stringify(source)} can't be read: ${cause.message}`, { cause });
  }
}

/** A literal text as an expression. */
export const literal = (text) => new RegExp(text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), "gu");

/** The expression of a file's `{Regex}` or `{String}`. */
export const expressionOf = ({ Regex, String: text }) => (Regex === undefined ? literal(text) : patternOf(Regex));
