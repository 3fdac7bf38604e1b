/** Shows what comes out: classes as bars, images as such, everything else as numbers. */

import { codecOf, dtypeOf } from "../src/dtypes.js";
import { Tensor } from "../src/index.js";
import { writeNpy } from "../src/npy.js";
import { element, tensorText } from "./dom.js";

const SHOWN = 64; // numbers
const MOST_CLASSES = 50000;
const short = (number) => (typeof number === "bigint" || Number.isInteger(number) ? String(number) : Number(number.toPrecision(4)).toString());

/** Bars of the most likely classes. */
function showClasses(numbers) {
  const order = [...numbers.keys()].sort((a, b) => numbers[b] - numbers[a]);
  const shown = numbers.length <= 10 ? [...numbers.keys()] : order.slice(0, 10);
  const low = numbers.reduce((a, b) => Math.min(a, b), 0);
  const high = numbers[order[0]];
  const sum = numbers.reduce((a, b) => a + b, 0);
  const likely = low >= 0 && Math.abs(sum - 1) < 0.01;
  const bars = shown.flatMap((i) => [
    element("span", { textContent: String(i) }),
    element("i", { className: i === order[0] ? "most" : "", style: `width:${(100 * (numbers[i] - low)) / (high - low || 1)}%` }),
    element("span", { textContent: likely ? `${(100 * numbers[i]).toFixed(1)} %` : short(numbers[i]) }),
  ]);
  const sure = likely ? `${(100 * high).toFixed(1)} % sure` : "is the largest";
  return [element("p", { className: "read" }, String(order[0]), element("small", { textContent: sure })), element("div", { className: "bars" }, ...bars)];
}

function showImage(numbers, { channels, height, width, isLast }) {
  const canvas = element("canvas", { width, height, className: "image", style: "width:100%;max-width:280px", role: "img", "aria-label": `an image of ${width} × ${height}` });
  const paper = canvas.getContext("2d");
  const image = paper.createImageData(width, height);
  const [low, high] = [numbers.reduce((a, b) => Math.min(a, b), Infinity), numbers.reduce((a, b) => Math.max(a, b), -Infinity)];
  for (let i = 0; i < width * height; i++) {
    for (let c = 0; c < 3; c++) {
      const channel = channels === 3 ? c : 0;
      image.data[4 * i + c] = (255 * (numbers[isLast ? i * channels + channel : channel * width * height + i] - low)) / (high - low || 1);
    }
    image.data[4 * i + 3] = 255;
  }
  paper.putImageData(image, 0, 0);
  return [canvas];
}

/** The first numbers of a tensor as texts: 64-bit ones whole, complex ones in pairs. */
function textsOf({ dtype, data }) {
  const { lanes } = dtypeOf(dtype);
  const first = data.subarray(0, SHOWN * lanes);
  if (dtype === "bool") return Array.from(first, (v) => String(v !== 0));
  if (first instanceof BigInt64Array || first instanceof BigUint64Array) return Array.from(first, String);
  const numbers = Array.from(first, codecOf(dtypeOf(dtype)).decode);
  if (lanes === 1) return numbers.map(short);
  return Array.from({ length: numbers.length / 2 }, (_, i) => `${short(numbers[2 * i])}${numbers[2 * i + 1] < 0 ? "" : "+"}${short(numbers[2 * i + 1])}i`);
}

/** The least and the greatest number, NaN left out, in one pass: there may be millions. */
function boundsOf({ dtype, data }) {
  const is64 = data instanceof BigInt64Array || data instanceof BigUint64Array;
  const { decode } = codecOf(dtypeOf(dtype));
  let [least, most] = [undefined, undefined];
  for (let i = 0; i < data.length; i++) {
    const number = is64 ? data[i] : decode(data[i]);
    if (least === undefined ? number === number : number < least) least = number;
    if (most === undefined ? number === number : number > most) most = number;
  }
  return [least ?? NaN, most ?? NaN];
}

function showNumbers(tensor) {
  const shown = [element("pre", { textContent: textsOf(tensor).join("  ") + (tensor.size > SHOWN ? "  …" : "") })];
  if (tensor.size <= 1 || tensor.dtype === "bool" || tensor.dtype.startsWith("complex")) return shown;
  const [least, most] = boundsOf(tensor);
  return [...shown, element("p", { className: "note", textContent: `least ${short(least)}, most ${short(most)}` })];
}

/** Could it be an image? Where its channels, height and width stand, or null. */
function imageOf({ shape }) {
  if (shape.length !== 4 || shape[0] !== 1) return null;
  const colours = (n) => n === 1 || n === 3;
  const large = (...sizes) => sizes.every((n) => n >= 16);
  if (colours(shape[1]) && large(shape[2], shape[3])) return { channels: shape[1], height: shape[2], width: shape[3], isLast: false };
  return colours(shape[3]) && large(shape[1], shape[2]) ? { channels: shape[3], height: shape[1], width: shape[2], isLast: true } : null;
}

function showTensor(tensor) {
  if (tensor.size === 0) return [element("pre", { textContent: "no elements" })];
  const { shape, dtype } = tensor;
  const isFloat = /^b?float/.test(dtype);
  const isVector = shape.length >= 1 && shape.slice(0, -1).every((n) => n === 1) && shape.at(-1) >= 2 && shape.at(-1) <= MOST_CLASSES;
  if (isVector && isFloat) {
    const numbers = tensor.toFloat32();
    if (numbers.every(Number.isFinite)) return showClasses([...numbers]);
  }
  const image = isFloat || dtype === "uint8" ? imageOf(tensor) : null;
  return image === null ? showNumbers(tensor) : showImage(tensor.toFloat32(), image);
}

const KINDS = { bigint: "int", number: "double", boolean: "bool" };

/** What a value is, in a word. */
function kindOf(value) {
  if (value instanceof Tensor) return tensorText(value);
  if (value === null) return "None";
  return Array.isArray(value) ? `list of ${value.length}` : (KINDS[typeof value] ?? typeof value);
}

function saveButton(tensor, name) {
  const save = () => {
    const url = URL.createObjectURL(new Blob([writeNpy(tensor)]));
    element("a", { href: url, download: `${name}.npy` }).click();
    URL.revokeObjectURL(url);
  };
  return element("button", { type: "button", className: "small", textContent: "Save .npy", onclick: save, "aria-label": `save ${name} as a .npy file` });
}

/** What is to be seen of a value: of a list, each of its items. */
function show(value, name) {
  if (value instanceof Tensor) return [...showTensor(value), ...(/^(bfloat16|float8|q|bits)/.test(value.dtype) ? [] : [saveButton(value, name)])];
  if (!Array.isArray(value)) return [element("pre", { textContent: typeof value === "string" ? value : value === null ? "None" : String(value) })];
  if (value.length === 0) return [element("pre", { textContent: "an empty list" })];
  if (!value.some((item) => item instanceof Tensor)) return [element("pre", { textContent: value.map((item) => (item === null ? "None" : String(item))).join("  ") })];
  const items = value.map((item, i) => element("li", {}, element("code", { textContent: kindOf(item) }), ...show(item, `${name}-${i}`)));
  return [element("ol", { start: 0 }, ...items)];
}

/** One output. */
export function showOutput(value, index) {
  const head = element("h3", { id: `output-${index}` }, `output ${index}`, element("code", { textContent: kindOf(value) }));
  return element("div", { className: "item", role: "group", "aria-labelledby": `output-${index}` }, head, ...show(value, `output-${index}`));
}
