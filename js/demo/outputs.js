/** Shows what comes out: classes as bars, images as such, everything else as numbers. */

import { Tensor } from "../src/index.js";

const element = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};
const short = (number) => (Number.isInteger(number) ? String(number) : Number(number.toPrecision(4)).toString());

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

function showImage(tensor, numbers) {
  const [channels, height, width] = tensor.shape.slice(-3);
  const canvas = element("canvas", { width, height, className: "image", style: "width:100%;max-width:280px" });
  const paper = canvas.getContext("2d");
  const image = paper.createImageData(width, height);
  const [low, high] = [numbers.reduce((a, b) => Math.min(a, b), Infinity), numbers.reduce((a, b) => Math.max(a, b), -Infinity)];
  for (let i = 0; i < width * height; i++) {
    for (let c = 0; c < 3; c++) image.data[4 * i + c] = (255 * (numbers[(channels === 3 ? c : 0) * width * height + i] - low)) / (high - low || 1);
    image.data[4 * i + 3] = 255;
  }
  paper.putImageData(image, 0, 0);
  return [canvas];
}

function showNumbers(numbers) {
  const some = Array.from(numbers.slice(0, 64), short).join("  ");
  const text = numbers.length > 64 ? `${some}  …` : some;
  const range = numbers.length > 1 ? `least ${short(numbers.reduce((a, b) => Math.min(a, b)))}, most ${short(numbers.reduce((a, b) => Math.max(a, b)))}` : "";
  return [element("pre", { textContent: text }), element("p", { className: "note", textContent: range })];
}

function showTensor(tensor) {
  if (tensor.size === 0) return [element("pre", { textContent: "no elements" })];
  const numbers = tensor.toFloat32();
  const { shape } = tensor;
  const isVector = shape.length >= 1 && shape.slice(0, -1).every((n) => n === 1) && shape.at(-1) >= 2 && shape.at(-1) <= 50000;
  if (isVector && tensor.dtype.includes("float") && numbers.every(Number.isFinite)) return showClasses([...numbers]);
  const isImage = shape.length === 4 && shape[0] === 1 && (shape[1] === 1 || shape[1] === 3) && shape[2] >= 16 && shape[3] >= 16;
  return isImage ? showImage(tensor, numbers) : showNumbers(numbers);
}

/** One output. */
export function showOutput(value, index) {
  const isTensor = value instanceof Tensor;
  const told = isTensor ? `${value.dtype} [${value.shape.join(", ")}]` : typeof value;
  const head = element("h3", {}, `output ${index}`, element("code", { textContent: told }));
  return element("div", { className: "item" }, head, ...(isTensor ? showTensor(value) : [element("pre", { textContent: String(value) })]));
}
