/** Bytes as letters, as GPT-2's tokenizer writes them: those that print are themselves, others are letters from U+0100 on. */

const LETTERS = (() => {
  const prints = (byte) => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(prints(byte) ? byte : next++));
})();
const BYTES = new Map(LETTERS.map((letter, byte) => [letter, byte]));
const encoder = new TextEncoder();

/** The letters of a text's bytes. */
export const toLetters = (text) => Array.from(encoder.encode(text), (byte) => LETTERS[byte]).join("");

/** The bytes that letters stand for; those of another text as it stands. */
export function toBytes(letters) {
  const bytes = Array.from(letters, (letter) => BYTES.get(letter));
  return bytes.includes(undefined) ? [...encoder.encode(letters)] : bytes;
}
