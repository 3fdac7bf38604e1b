/** The library's messages as JavaScript says them: it speaks of C's parameters, and of dtypes as files do. */

import { names } from "./dtypes.js";

const DTYPES = {
  byte: "uint8", char: "int8", short: "int16", int: "int32", long: "int64", half: "float16", float: "float32", double: "float64",
  complex_half: "complex32", complex_float: "complex64", complex_double: "complex128",
};
const known = new Set(names);
const NAMES = Object.keys(DTYPES).join("|");
// some of the names are English words, too: they are dtypes before a shape, or behind words that dtypes stand behind
const BEFORE_SHAPE = new RegExp(`(?<![\\w.:'])(${NAMES})(?= \\[)`, "g");
const BEHIND_WORD = new RegExp(`\\b(expected|got|types?|of|to|from|by|between|and|be|is|are|not|no) (${NAMES})(?![\\w']|[.:][\\w:])`, "g");

// of an operator's call: " (float, long)"
const LIST = /(?<= \()[a-z0-9_]+(?:, [a-z0-9_]+)*(?=\))/g;

const PARAMETERS = [
  [/\b(memory|instruction|work|constant)_limit\b/g, (_, what) => `${what}Limit`],
  [/ \(data_path=\)/g, () => " (the option data of load)"],
  [/ask for a warning instead/g, () => 'load with unusedOptions: "ignore"'],
];

/** Dtypes of a call behind an operator's name; other words in brackets stay as they are. */
export function callInJavaScript(text) {
  return text.replace(LIST, (list) => {
    const names = list.split(", ").map((name) => DTYPES[name] ?? name);
    return names.every((name) => known.has(name)) ? names.join(", ") : list;
  });
}

/** A message of the library with the names of this package. */
export function inJavaScript(message) {
  const named = callInJavaScript(PARAMETERS.reduce((text, [found, name]) => text.replace(found, name), message));
  if (/\boption '/.test(named)) return named; // an option's "int" is a type of options, not of elements
  return named.replace(BEFORE_SHAPE, (name) => DTYPES[name]).replace(BEHIND_WORD, (_, word, name) => `${word} ${DTYPES[name]}`);
}
