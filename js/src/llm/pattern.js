/** Patterns of tokenizer files, which are Oniguruma's, as regular expressions of JavaScript. */

import { errorOf } from "../errors.js";

/** Letters of both cases, where JavaScript has no `(?i:…)` yet. */
function bothCases(char) {
  const [low, high] = [char.toLowerCase(), char.toUpperCase()];
  return low === high ? char : `[${low}${high}]`;
}

const WORD = "\\p{L}\\p{M}\\p{N}\\p{Pc}";
const HEX = "0-9A-Fa-f";
const EDGE = (before, after) => `(?:(?<=[${WORD}])${before}|(?<![${WORD}])${after})`;

/** What is Unicode's there and ASCII's in JavaScript, or has another name: outside of a class, and within one. */
const ESCAPES = {
  s: ["\\p{White_Space}", "\\p{White_Space}"], S: ["\\P{White_Space}", "\\P{White_Space}"],
  d: ["\\p{Nd}", "\\p{Nd}"], D: ["\\P{Nd}", "\\P{Nd}"],
  w: [`[${WORD}]`, WORD], W: [`[^${WORD}]`],
  h: [`[${HEX}]`, HEX], H: [`[^${HEX}]`],
  b: [EDGE(`(?![${WORD}])`, `(?=[${WORD}])`), "\\b"], B: [EDGE(`(?=[${WORD}])`, `(?![${WORD}])`)],
  A: ["^"], z: ["$"], Z: ["(?=\\n?$)"], R: ["(?:\\r\\n|[\\n\\v\\f\\r\\x85\\u2028\\u2029])"],
  a: ["\\x07", "\\x07"], e: ["\\x1b", "\\x1b"],
};

/** Those of lines, of which JavaScript knows more ends than `\n`. */
const LINES = { ".": "[^\\n]", "^": "(?<![^\\n])", $: "(?![^\\n])" };

/** A class of one letter or script, `\p{Han}` or `\p{^L}`. */
function propertyOf(letter, text) {
  const isNot = (letter === "P") !== text.startsWith("^");
  const name = text.replace("^", "");
  const known = (property) => {
    try {
      return new RegExp(`\\p{${property}}`, "u") !== null;
    } catch {
      return false;
    }
  };
  return `\\${isNot ? "P" : "p"}{${known(name) || !known(`Script=${name}`) ? name : `Script=${name}`}}`;
}

/**
 * Classes are Unicode's there, possessive quantifiers are greedy ones here (which tokenizers mean for speed), `(?i:` is spelled
 * out, and what is escaped without need is not. https://github.com/kkos/oniguruma/blob/master/doc/RE
 */
export function patternOf(source) {
  const fail = (why, cause) => errorOf("NotSupported", `the tokenizer's pattern ${JSON.stringify(source)} can't be read: ${why}`, { cause });
  let [out, at, inClass] = ["", 0, false];
  const groups = []; // is each open one without case?
  while (at < source.length) {
    const char = source[at];
    const noCase = groups.at(-1) === true;
    if (char === "\\") {
      const next = source[at + 1] ?? "";
      const property = /^\{([^}]*)\}/.exec(source.slice(at + 2));
      at += 2;
      if (next === "") throw fail("it ends within an escape");
      if (Object.hasOwn(ESCAPES, next)) {
        const text = ESCAPES[next][inClass ? 1 : 0];
        if (text === undefined) throw fail(`\\${next} within a class`);
        out += text;
      } else if (property !== null && /[pPx]/.test(next)) {
        out += next === "x" ? `\\u{${property[1]}}` : propertyOf(next, property[1]);
        at += property[0].length;
      } else if (/[\w^$\\.*+?()[\]{}|/]/.test(next) || (inClass && next === "-")) {
        out += `\\${next}`;
      } else {
        out += next;
      }
      continue;
    }
    at += 1;
    if (inClass) {
      const range = /^(?:[a-z]-[a-z]|[A-Z]-[A-Z])/.exec(source.slice(at - 1))?.[0];
      if (char === "[" || source.startsWith("&&", at - 1)) throw fail("a class within a class");
      inClass = char !== "]";
      if (noCase && range !== undefined) {
        out += range.toLowerCase() + range.toUpperCase();
        at += 2;
      } else {
        out += noCase && char.toLowerCase() !== char.toUpperCase() ? char.toLowerCase() + char.toUpperCase() : char;
      }
    } else if (char === "[") {
      inClass = true;
      out += char;
      if (source[at] === "^") out += source[at++];
    } else if (char === "(") {
      const ignores = source.startsWith("?i:", at);
      groups.push(ignores || noCase);
      out += ignores ? "(?:" : char;
      if (ignores) at += 3;
    } else if (char === ")") {
      groups.pop();
      out += char;
    } else if (char === "+" && /[?*+]/.test(source[at - 2] ?? "") && source[at - 3] !== "\\") {
      continue; // possessive
    } else if (Object.hasOwn(LINES, char)) {
      out += LINES[char];
    } else {
      out += noCase ? bothCases(char) : char;
    }
  }
  try {
    return new RegExp(out, "gu");
  } catch (cause) {
    throw fail(cause.message, cause);
  }
}

/** A literal text as an expression. */
export const literal = (text) => new RegExp(text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), "gu");

/** The expression of a file's `{Regex}` or `{String}`. */
export const expressionOf = ({ Regex, String: text }) => (Regex === undefined ? literal(text) : patternOf(Regex));
