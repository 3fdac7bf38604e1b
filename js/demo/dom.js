/** Elements, and what several parts of the page write alike. */

export const find = (selector) => document.querySelector(selector);

/** An element with properties (`aria-…` and `role` among them) and children. */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "role" || name === "for" || name === "list") made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children);
  return made;
}

/** A list to choose from; `names` are `{value: text}`, or texts. */
export function choice(label, names, properties = {}) {
  const options = Array.isArray(names) ? names.map((name) => [name, name]) : Object.entries(names);
  return element("select", { "aria-label": label, ...properties }, ...options.map(([value, textContent]) => element("option", { value, textContent })));
}

/** A button that asks for files: the keyboard reaches it, too. */
export function fileButton(text, properties) {
  return element("label", { className: "button" }, text, element("input", { type: "file", className: "unseen", ...properties }));
}

/** What a tensor is, in words. */
export const tensorText = ({ dtype, shape, dynamic }) => `${dtype} [${shape.map((n) => (dynamic ? `≤${n}` : n)).join(", ")}]`;

export const milliseconds = (ms) => (ms < 0.1 ? `${(ms * 1000).toFixed(ms < 0.01 ? 1 : 0)} µs` : `${ms.toFixed(ms < 10 ? 2 : 0)} ms`);

/** An error that says what a person did who uses the page. */
export const mistake = (message) => Object.assign(new Error(message), { name: "Not possible" });

/** What JSON says, or undefined; whole numbers that a double would round are bigint. */
export function parsed(text) {
  try {
    return JSON.parse(text.replace(/(?<![\d.])-?\d{16,}(?![\d.e])/gi, '"$&n"'), (_, value) => (/^-?\d+n$/.test(value) ? BigInt(value.slice(0, -1)) : value));
  } catch {
    return undefined;
  }
}
