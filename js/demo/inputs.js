/** Inputs that are made: numbers, images, and what is drawn. */

import { Tensor } from "../src/index.js";

const WHOLE = /^u?int|^bool/;
const INDEX = /^u?int(32|64)$/;
/** Made whole numbers are below that, since those of 32 and 64 bits may be indices, of which most tensors have two; 0 for floats. */
const boundOf = (dtype) => (!WHOLE.test(dtype) ? 0 : INDEX.test(dtype) || dtype === "bool" ? 2 : 10);
const size = (shape) => shape.reduce((a, b) => a * b, 1);
const element = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};

/** Numbers of equal likelihood, the same each time. */
function* random(seed = 1) {
  for (let state = seed; ; ) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield state / 2 ** 32;
  }
}

/** `whole` numbers are below that, and others nearly normal. */
function noise(count, whole) {
  const numbers = random();
  const next = () => numbers.next().value;
  // a sum of twelve is nearly normal, with deviation 1
  return Array.from({ length: count }, () => (whole ? Math.floor(next() * whole) : Array.from({ length: 12 }, next).reduce((a, b) => a + b) - 6));
}

const MADE = {
  random: (count, whole) => noise(count, whole),
  zeros: (count) => new Array(count).fill(0),
  ones: (count) => new Array(count).fill(1),
  ramp: (count, whole) => Array.from({ length: count }, (_, i) => (whole ? i % whole : i / count)),
};

/** What a grey or colour value of 0 … 1 becomes. */
const RANGES = {
  "0 … 1": (v) => v,
  "0 … 16": (v) => Math.round(v * 16),
  "0 … 255": (v) => v * 255,
  "-1 … 1": (v) => 2 * v - 1,
  ImageNet: (v, channel) => (v - [0.485, 0.456, 0.406][channel % 3]) / [0.229, 0.224, 0.225][channel % 3],
};

/** Could it be an image, of one channel or three? `{channels, height, width}` or null. */
function imageOf({ kind, shape, dtype }) {
  if (kind !== "tensor" || shape.length !== 4 || shape[0] !== 1 || WHOLE.test(dtype)) return null;
  const [, channels, height, width] = shape;
  return (channels === 1 || channels === 3) && height >= 4 && width >= 4 ? { channels, height, width } : null;
}

/** Values of a canvas, 0 … 1, channel by channel. */
function pixels(canvas, channels) {
  const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const area = width * height;
  const out = new Float32Array(channels * area);
  for (let i = 0; i < area; i++) {
    const rgb = [data[4 * i], data[4 * i + 1], data[4 * i + 2]];
    if (channels === 1) out[i] = (0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]) / 255;
    else for (let c = 0; c < 3; c++) out[c * area + i] = rgb[c] / 255;
  }
  return out;
}

/** The box of what is drawn in black on white, or null. */
function inkOf(canvas) {
  const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let [left, top, right, bottom] = [width, height, -1, -1];
  for (let i = 0; i < width * height; i++) {
    if (data[4 * i] > 127) continue;
    const [x, y] = [i % width, Math.floor(i / width)];
    [left, top, right, bottom] = [Math.min(left, x), Math.min(top, y), Math.max(right, x), Math.max(bottom, y)];
  }
  return right < 0 ? null : { left, top, width: right - left + 1, height: bottom - top + 1 };
}

/** A pad to draw on; what is drawn is fitted into `seen`, white on black, as the sets of handwritten digits are. */
function drawingPad(seen, changed) {
  const pad = element("canvas", { width: 200, height: 200, className: "draw", ariaLabel: "draw here" });
  const ink = pad.getContext("2d", { willReadFrequently: true });
  const large = element("canvas", { width: seen.width * 4, height: seen.height * 4 });
  let last = null;
  const clear = () => {
    ink.fillStyle = "#fff";
    ink.fillRect(0, 0, pad.width, pad.height);
    see();
  };
  function see() {
    const box = inkOf(pad);
    const small = seen.getContext("2d", { willReadFrequently: true });
    const middle = large.getContext("2d");
    middle.fillStyle = "#000";
    middle.fillRect(0, 0, large.width, large.height);
    if (box !== null) {
      const scale = Math.min(large.width / box.width, large.height / box.height);
      const [w, h] = [box.width * scale, box.height * scale];
      middle.filter = "invert(1)";
      middle.drawImage(pad, box.left, box.top, box.width, box.height, (large.width - w) / 2, (large.height - h) / 2, w, h);
      middle.filter = "none";
    }
    small.imageSmoothingQuality = "high";
    small.drawImage(large, 0, 0, seen.width, seen.height);
  }
  const point = (event) => {
    const box = pad.getBoundingClientRect();
    return [((event.clientX - box.left) * pad.width) / box.width, ((event.clientY - box.top) * pad.height) / box.height];
  };
  pad.addEventListener("pointerdown", (event) => {
    last = point(event);
    if (event.isTrusted) pad.setPointerCapture(event.pointerId);
  });
  pad.addEventListener("pointermove", (event) => {
    if (last === null) return;
    const next = point(event);
    Object.assign(ink, { lineWidth: 18, lineCap: "round", strokeStyle: "#000" });
    ink.beginPath();
    ink.moveTo(...last);
    ink.lineTo(...next);
    ink.stroke();
    last = next;
    see();
  });
  const lift = () => {
    if (last !== null) changed();
    last = null;
  };
  pad.addEventListener("pointerup", lift);
  pad.addEventListener("pointercancel", lift);
  clear();
  return { pad, clear };
}

/** Shows a picture on a canvas, the whole of it stretched. */
async function showImage(file, canvas, index) {
  let picture;
  try {
    picture = await createImageBitmap(file);
  } catch (cause) {
    throw new TypeError(`input ${index}: ${file.name} can't be read as a picture`, { cause });
  }
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
}

function imageInput(info, index, image, changed) {
  const seen = element("canvas", { width: image.width, height: image.height, className: "seen", style: `width:${Math.min(image.width * 10, 96)}px` });
  const range = element("select", { title: "what the values of the picture become", onchange: () => changed() });
  range.append(...Object.keys(RANGES).map((name) => element("option", { textContent: name })));
  range.value = image.height === 8 && image.width === 8 ? "0 … 16" : image.channels === 3 ? "ImageNet" : "0 … 1";
  const file = element("input", { type: "file", accept: "image/*", hidden: true });
  file.onchange = () => {
    const [picture] = file.files;
    if (picture !== undefined) changed(() => showImage(picture, seen, index));
  };
  const parts = [element("figure", {}, seen, element("figcaption", { textContent: `${image.width} × ${image.height}, as it is read` }))];
  const buttons = [element("label", { className: "button", textContent: "Picture…" }, file), range];
  if (image.channels === 1) {
    const { pad, clear } = drawingPad(seen, changed);
    parts.unshift(element("figure", {}, pad, element("figcaption", { textContent: "draw here" })));
    buttons.unshift(element("button", { type: "button", textContent: "Clear", onclick: () => (clear(), changed()) }));
  } else {
    const shade = seen.getContext("2d").createLinearGradient(0, 0, image.width, image.height);
    for (const [at, colour] of [[0, "#24c"], [0.5, "#ed8"], [1, "#b32"]]) shade.addColorStop(at, colour);
    seen.getContext("2d").fillStyle = shade;
    seen.getContext("2d").fillRect(0, 0, image.width, image.height);
  }
  const value = () => {
    const area = image.width * image.height;
    const numbers = pixels(seen, image.channels).map((v, i) => RANGES[range.value](v, Math.floor(i / area)));
    return Tensor.from(numbers, { dtype: info.dtype, shape: info.shape });
  };
  return { body: [element("div", { className: "pad" }, ...parts), element("div", { className: "bar" }, ...buttons)], value };
}

const wrong = (index, text, form) => new TypeError(`input ${index}: ${text.trim() === "" ? "nothing" : `'${text.slice(0, 40)}'`} is typed: write ${form}`);

/** What JSON says, or undefined; whole numbers that a double would round are bigint. */
function parsed(text) {
  try {
    return JSON.parse(text.replace(/(?<![\d.])-?\d{16,}(?![\d.e])/gi, '"$&n"'), (_, value) => (/^-?\d+n$/.test(value) ? BigInt(value.slice(0, -1)) : value));
  } catch {
    return undefined;
  }
}

/** The numbers that were typed for an input. */
function typed(text, info, index) {
  const numbers = parsed(text);
  const example = info.dtype === "bool" ? "[[true, false], [false, true]]" : "[[1, 2], [3, 4]]";
  if (numbers === undefined) throw wrong(index, text, `numbers in brackets, those of a matrix as ${example}; expected ${info.dtype} [${info.shape.join(", ")}]`);
  try {
    return Tensor.from(numbers, { dtype: info.dtype });
  } catch (error) {
    error.message = `input ${index}: ${error.message}`;
    throw error;
  }
}

/** The shape that was typed for an input whose sizes may be smaller. */
function typedShape(text, info, index) {
  const shape = parsed(text);
  const fits = (n, i) => Number.isInteger(n) && n >= 0 && n <= info.shape[i];
  if (Array.isArray(shape) && shape.length === info.shape.length && shape.every(fits)) return shape;
  throw wrong(index, text, `a shape of at most ${JSON.stringify(info.shape)}`);
}

function numbersInput(info, index, changed) {
  const shape = element("textarea", { style: "min-height:0", rows: 1, value: JSON.stringify(info.shape), onchange: () => changed() });
  const text = element("textarea", { hidden: true, placeholder: "[[1, 2], [3, 4]]", onchange: () => changed() });
  const how = element("select", {}, ...[...Object.keys(MADE), "numbers"].map((name) => element("option", { textContent: name })));
  if (INDEX.test(info.dtype)) how.value = "ones"; // indices that most tensors have, and what may be divided by
  how.onchange = () => {
    text.hidden = how.value !== "numbers";
    shape.hidden = !text.hidden || !info.dynamic;
    if (text.hidden || text.value !== "") changed();
  };
  shape.hidden = !info.dynamic;
  const value = () => {
    if (how.value === "numbers") return typed(text.value, info, index);
    const sizes = info.dynamic ? typedShape(shape.value, info, index) : info.shape;
    const numbers = MADE[how.value](size(sizes), boundOf(info.dtype));
    return Tensor.from(numbers, { dtype: info.dtype, shape: sizes });
  };
  return { body: [how, " ", shape, text], value };
}

/** Controls for one input: `{element, value}`, where `value()` makes what the method gets. `changed` is called after each change. */
export function makeInput(info, index, changed) {
  const told = info.kind === "tensor" ? `${info.dtype} [${info.shape.map((n) => (info.dynamic ? `≤${n}` : n)).join(", ")}]` : info.kind;
  const head = element("h3", {}, `input ${index}`, element("code", { textContent: told }));
  const image = imageOf(info);
  const made = image ? imageInput(info, index, image, changed) : info.kind === "tensor" ? numbersInput(info, index, changed) : null;
  const fixed = element("code", { textContent: String(info.value ?? "None") });
  return { element: element("div", { className: "item" }, head, ...(made?.body ?? [fixed])), value: made?.value ?? (() => info.value ?? null) };
}
