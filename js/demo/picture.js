/** Pictures as inputs: read from a file or drawn, fitted, laid out and normalised. */

import { Tensor } from "../src/index.js";
import { choice, element, fileButton, parsed } from "./dom.js";

const IMAGENET = { mean: [0.485, 0.456, 0.406], deviation: [0.229, 0.224, 0.225] };
const FLOATS = ["float32", "float64", "float16", "bfloat16"];
const LAYOUTS = { NCHW: [1, 2, 3], NHWC: [3, 1, 2] }; // where channels, height and width stand
const LEAST = 3; // height and width of what may be a picture

/** What a grey or colour value of 0 … 1 becomes. */
const RANGES = {
  "0 … 1": (v) => v,
  "0 … 16": (v) => Math.round(v * 16),
  "0 … 255": (v) => Math.round(v * 255),
  "-1 … 1": (v) => 2 * v - 1,
  ImageNet: (v, channel) => (v - IMAGENET.mean[channel]) / IMAGENET.deviation[channel],
};
const OWN = "(v − mean) / deviation";

/** Where a picture goes on a canvas: `[x, y, width, height]`. */
const FITS = {
  stretched: (picture, canvas) => [0, 0, canvas.width, canvas.height],
  "cropped to fill": (picture, canvas) => centred(picture, canvas, Math.max),
  "whole, with bars": (picture, canvas) => centred(picture, canvas, Math.min),
};

function centred(picture, canvas, choose) {
  const scale = choose(canvas.width / picture.width, canvas.height / picture.height);
  const [width, height] = [picture.width * scale, picture.height * scale];
  return [(canvas.width - width) / 2, (canvas.height - height) / 2, width, height];
}

/** Layouts by which an input could be a picture of one channel or three: `{NCHW: {channels, height, width}, …}`; empty for none. */
export function layoutsOf({ kind, shape, dtype, dynamic }) {
  const found = {};
  if (kind !== "tensor" || shape.length !== 4 || (shape[0] !== 1 && !dynamic) || !(FLOATS.includes(dtype) || dtype === "uint8")) return found;
  for (const [name, places] of Object.entries(LAYOUTS)) {
    const [channels, height, width] = places.map((place) => shape[place]);
    if ((channels === 1 || channels === 3) && height >= LEAST && width >= LEAST) found[name] = { channels, height, width };
  }
  return found;
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
  const pad = element("canvas", { width: 200, height: 200, className: "draw", role: "img", "aria-label": "pad to draw on with the mouse, a pen or a finger" });
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
      middle.filter = "invert(1)";
      middle.drawImage(pad, box.left, box.top, box.width, box.height, ...centred(box, large, Math.min));
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

/** Something to look at before there is a picture. */
function shade(canvas) {
  const paper = canvas.getContext("2d");
  const colours = paper.createLinearGradient(0, 0, canvas.width, canvas.height);
  for (const [at, colour] of [[0, "#24c"], [0.5, "#ed8"], [1, "#b32"]]) colours.addColorStop(at, colour);
  paper.fillStyle = colours;
  paper.fillRect(0, 0, canvas.width, canvas.height);
}

function numbersOf(text, index, what) {
  const numbers = parsed(`[${text}]`);
  if (Array.isArray(numbers) && [1, 3].includes(numbers.length) && numbers.every(Number.isFinite)) return numbers;
  throw new TypeError(`input ${index}: the ${what} '${text}' is typed: write a number, or three with commas`);
}

/** Controls for an input that could be a picture: `{body, value, show}`; `show(file)` puts a picture on it. */
export function pictureInput(info, index, layouts, changed) {
  const name = `input ${index}`;
  const layout = choice(`layout of ${name}`, Object.keys(layouts), { title: "batch, channels, height, width: their order in the input" });
  const fit = choice(`how the picture of ${name} is resized`, Object.keys(FITS), { title: "how the picture becomes as large as the input" });
  const ranges = info.dtype === "uint8" ? ["0 … 255", "0 … 16"] : [...Object.keys(RANGES), OWN];
  const range = choice(`values of the picture of ${name}`, ranges, { title: "what the picture's values become" });
  const [mean, deviation] = ["mean", "deviation"].map((what) =>
    element("input", { type: "text", value: IMAGENET[what].join(", "), size: 14, "aria-label": `${what} of ${name}`, title: `${what} of values from 0 to 1`, onchange: () => changed() }),
  );
  const own = element("div", { className: "bar", hidden: true }, mean, deviation);
  const file = fileButton("Picture…", { accept: "image/*", onchange: ({ target }) => target.files.length > 0 && changed(() => show(target.files[0])) });
  const stage = element("div", { className: "pad" });
  const buttons = element("div", { className: "bar" }, file);
  let seen;
  let picture = null; // as it was read
  const size = () => layouts[layout.value];

  const paint = () => {
    const paper = seen.getContext("2d");
    paper.fillStyle = "#000";
    paper.fillRect(0, 0, seen.width, seen.height);
    paper.imageSmoothingQuality = "high";
    paper.drawImage(picture, ...FITS[fit.value](picture, seen));
  };
  async function show(given) {
    try {
      picture = await createImageBitmap(given);
    } catch (cause) {
      throw new TypeError(`${name}: ${given.name} can't be read as a picture`, { cause });
    }
    paint();
  }
  const build = () => {
    const { channels, height, width } = size();
    seen = element("canvas", { width, height, className: "seen", style: `width:${Math.min(width * 10, 96)}px`, role: "img", "aria-label": `picture of ${name} as the program gets it` });
    const parts = [element("figure", {}, seen, element("figcaption", { textContent: `${width} × ${height}, as it is read` }))];
    buttons.querySelector("button")?.remove();
    if (channels === 1) {
      const { pad, clear } = drawingPad(seen, () => {
        picture = null;
        changed();
      });
      parts.unshift(element("figure", {}, pad, element("figcaption", { textContent: "draw here" })));
      buttons.prepend(element("button", { type: "button", textContent: "Clear", onclick: () => ((picture = null), clear(), changed()) }));
    } else if (picture === null) {
      shade(seen);
    }
    if (picture !== null) paint();
    stage.replaceChildren(...parts);
  };
  layout.onchange = () => changed(build);
  fit.onchange = () => changed(() => picture !== null && paint());
  range.onchange = () => {
    own.hidden = range.value !== OWN;
    changed();
  };
  range.value = info.dtype === "uint8" ? "0 … 255" : size().height === 8 ? "0 … 16" : size().channels === 3 ? "ImageNet" : "0 … 1";
  build();
  const value = () => {
    const { channels, height, width } = size();
    const area = height * width;
    const means = range.value === OWN && numbersOf(mean.value, index, "mean");
    const deviations = range.value === OWN && numbersOf(deviation.value, index, "deviation");
    const scaled = range.value === OWN ? (v, c) => (v - means[c % means.length]) / deviations[c % deviations.length] : RANGES[range.value];
    const plain = pixels(seen, channels);
    const numbers = new Float32Array(plain.length);
    const isLast = layout.value === "NHWC";
    plain.forEach((v, i) => {
      const channel = Math.floor(i / area);
      numbers[isLast ? (i % area) * channels + channel : i] = scaled(v, channels === 1 ? 0 : channel);
    });
    return Tensor.from(numbers, { dtype: info.dtype, shape: [1, ...info.shape.slice(1)] });
  };
  const controls = element("div", { className: "bar" }, layout, fit, range);
  return { body: [stage, buttons, controls, own], value, show };
}
