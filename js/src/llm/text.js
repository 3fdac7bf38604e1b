/** From token ids to text as it grows: pieces of whole characters, cut where a stop text begins. */

const BROKEN = "\ufffd";
const WINDOW = 4; // tokens that keep the spacing of what follows right
const MOST_HELD = 64;

/** Takes tokens one by one and gives the text that is certain by then. After a stop text `stopped` is true. */
export class TextStream {
  #decode;
  #stop;
  #ids;
  #shown;
  #held = "";

  /** `context` are tokens before the first: some tokenizers write a word after another one with a space, and none at the beginning. */
  constructor(decode, stop, context) {
    this.stopped = false;
    this.#decode = decode;
    this.#stop = stop;
    this.#ids = context.slice(-WINDOW);
    this.#shown = decode(this.#ids);
  }

  /** The text that a token makes certain; may be empty. */
  push(token) {
    this.#ids.push(token);
    const whole = this.#decode(this.#ids);
    if (whole.endsWith(BROKEN) && this.#ids.length < MOST_HELD) return ""; // a character that is not whole yet
    const fresh = this.#fresh(whole);
    this.#ids = this.#ids.slice(-WINDOW);
    this.#shown = this.#decode(this.#ids);
    return this.#emit(this.#held + fresh);
  }

  /** What is still held back at the end. */
  finish() {
    if (this.stopped) return "";
    const rest = this.#held + this.#fresh(this.#decode(this.#ids));
    this.#held = "";
    return this.#cut(rest);
  }

  #fresh(whole) {
    return whole.startsWith(this.#shown) ? whole.slice(this.#shown.length) : whole;
  }

  #cut(text) {
    const places = this.#stop.map((stop) => text.indexOf(stop)).filter((place) => place >= 0);
    if (places.length === 0) return text;
    this.stopped = true;
    return text.slice(0, Math.min(...places));
  }

  #emit(given) {
    const text = this.#cut(given);
    this.#held = "";
    if (this.stopped) return text;
    const most = Math.max(0, ...this.#stop.map((stop) => stop.length - 1));
    for (let length = Math.min(text.length, most); length > 0; length--) {
      const end = text.slice(-length);
      if (!this.#stop.some((stop) => stop.startsWith(end))) continue;
      this.#held = end; // may become a stop text
      return text.slice(0, -length);
    }
    return text;
  }
}
