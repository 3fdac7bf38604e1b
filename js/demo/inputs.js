/** Inputs: made numbers, typed ones, numpy's files, pictures, and scalars. */

import { codecOf, dtypeOf } from "../src/dtypes.js";
import { Tensor } from "../src/index.js";
import { readNpy, readNpz } from "../src/npy.js";
import { choice, element, fileButton, parsed, tensorText } from "./dom.js";
import { layoutsOf, pictureInput } from "./picture.js";

const WHOLE = /^q?u?int|^bool|^bits|^float8/;
const INDEX = /^u?int(32|64)$/;
/** Made whole numbers are below that, since those of 32 and 64 bits may be indices, of which most tensors have two; 0 for floats. */
const boundOf = (dtype) => (!WHOLE.test(dtype) ? 0 : INDEX.test(dtype) || dtype === "bool" ? 2 : 10);
const size = (shape) => shape.reduce((a, b) => a * b, 1);

/** Random numbers, the same each time: `whole` ones are below that, and others nearly normal. */
function noise(whole) {
  let state = 1;
  const next = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
  if (whole) return () => Math.floor(next() * whole);
  return () => {
    let sum = -6; // of twelve: nearly normal, with deviation 1
    for (let i = 0; i < 12; i++) sum += next();
    return sum;
  };
}

const MANY = 2 ** 20; // random numbers are repeated after so many: a page must not stand still for minutes

/** How numbers are made: `[number of a place, places after which they repeat]`. */
const MADE = {
  random: (whole) => [noise(whole), MANY],
  zeros: () => [() => 0, 1],
  ones: () => [() => 1, 1],
  ramp: (whole, count) => [whole ? (i) => i % whole : (i) => i / count, Infinity],
};

/** A tensor of made numbers. */
function madeTensor(how, dtype, shape) {
  const type = dtypeOf(dtype);
  const { encode } = codecOf(dtypeOf(PARTS[dtype] ?? dtype));
  const count = size(shape) * type.lanes;
  const [next, period] = MADE[how](boundOf(dtype), count);
  const data = new type.array(count);
  const first = Math.min(count, period);
  for (let i = 0; i < first; i++) data[i] = encode(next(i));
  for (let done = first; done < count; done *= 2) data.copyWithin(done, 0, Math.min(done, count - done));
  return new Tensor(dtype, shape, data);
}

/** Dtypes that are written in parts of another: complex numbers as pairs, and as bits what has no numbers. */
const PARTS = {
  complex32: "float16", complex64: "float32", complex128: "float64", bits16: "uint16", bits8: "uint8", bits1x8: "uint8", bits2x4: "uint8", bits4x2: "uint8",
  quint4x2: "uint8", quint2x4: "uint8", float8_e5m2: "uint8", float8_e4m3fn: "uint8", float8_e5m2fnuz: "uint8", float8_e4m3fnuz: "uint8",
};
const isComplex = (dtype) => dtype.startsWith("complex");

/** A tensor of nested arrays of numbers. */
function tensorOf(numbers, dtype) {
  if (PARTS[dtype] === undefined) return Tensor.from(numbers, { dtype });
  const parts = Tensor.from(numbers, { dtype: PARTS[dtype] });
  if (isComplex(dtype) && parts.shape.at(-1) !== 2) throw new TypeError("complex numbers are pairs: [[1, 0], [0, 1]]");
  return new Tensor(dtype, isComplex(dtype) ? parts.shape.slice(0, -1) : parts.shape, parts.data);
}

const wrong = (index, text, form) => new TypeError(`input ${index}: ${text.trim() === "" ? "nothing" : `'${text.slice(0, 40)}'`} is typed: write ${form}`);

/** The tensor of an act; what goes wrong names the input. */
function named(index, act) {
  try {
    return act();
  } catch (error) {
    error.message = `input ${index}: ${error.message}`;
    throw error;
  }
}

/** The numbers that were typed for an input. */
function typed(text, info, index) {
  const numbers = parsed(text);
  const example = info.dtype === "bool" ? "[[true, false], [false, true]]" : "[[1, 2], [3, 4]]";
  if (numbers === undefined) throw wrong(index, text, `numbers in brackets, those of a matrix as ${example}; expected ${info.dtype} [${info.shape.join(", ")}]`);
  return named(index, () => tensorOf(numbers, info.dtype));
}

/** The shape that was typed for an input whose sizes may be smaller. */
function typedShape(text, info, index) {
  const shape = parsed(text);
  const fits = (n, i) => Number.isInteger(n) && n >= 0 && n <= info.shape[i];
  if (Array.isArray(shape) && shape.length === info.shape.length && shape.every(fits)) return shape;
  throw wrong(index, text, `a shape of at most ${JSON.stringify(info.shape)}`);
}

/** The name among those of an archive that has the number of an input: `0`, `in0`, `input_0`, `arr_0`. */
export const nameOf = (names, index) => names.find((name) => name === String(index) || new RegExp(`(in|input|arr)_?${index}$`).test(name));

/** The tensor in a file of numpy: of an archive the one with the input's number in its name, or the only one. */
async function readArrays(file, info, index) {
  if (!/\.npz$/i.test(file.name)) return readNpy(file);
  const arrays = await readNpz(file);
  const name = nameOf([...arrays.keys()], index);
  if (name === undefined && arrays.size > 1) throw new TypeError(`${file.name} holds ${[...arrays.keys()].join(", ")}: name one of them in${index}`);
  return arrays.get(name) ?? [...arrays.values()][0];
}

function fileInput(info, index, changed) {
  const note = element("p", { className: "note", textContent: "no file" });
  let tensor = null;
  const show = async (file) => {
    try {
      tensor = await readArrays(file, info, index);
    } catch (error) {
      throw Object.assign(error, { message: `input ${index}: ${file.name}: ${error.message}` });
    }
    // bytes of a 16-bit float that numpy has not are 16-bit numbers there
    if (info.dtype === "bfloat16" && tensor.dtype === "uint16") tensor = new Tensor("bfloat16", tensor.shape, tensor.data);
    note.textContent = `${file.name}: ${tensorText(tensor)}`;
  };
  const button = fileButton("File…", { accept: ".npy,.npz", onchange: ({ target }) => target.files.length > 0 && changed(() => show(target.files[0])) });
  const value = () => {
    if (tensor === null) throw new TypeError(`input ${index}: no file is chosen: choose or drop a .npy`);
    return tensor;
  };
  return { body: [element("div", { className: "bar" }, button), note], value, show };
}

function madeInput(info, index, changed, how, isShort) {
  const begin = isShort ? info.shape.map(() => 1) : info.shape;
  const told = { value: JSON.stringify(begin), "aria-label": `shape of input ${index}`, onchange: () => changed() };
  const shape = element("textarea", { className: "line", rows: 1, ...told });
  const value = () => {
    const sizes = info.dynamic ? typedShape(shape.value, info, index) : info.shape;
    return named(index, () => madeTensor(how.value, info.dtype, sizes));
  };
  return { body: info.dynamic ? [shape] : [], value };
}

function typedInput(info, index, changed) {
  const text = element("textarea", { placeholder: "[[1, 2], [3, 4]]", onchange: () => changed(), "aria-label": `numbers of input ${index}` });
  return { body: [text], value: () => typed(text.value, info, index), isEmpty: () => text.value === "" };
}

const PICTURE = "picture";
const NUMBERS = "numbers";
const FILE = ".npy file";

/** A tensor comes in several ways, of which one is chosen. */
function tensorInput(info, index, changed, isShort) {
  const layouts = layoutsOf(info);
  const isPicture = Object.keys(layouts).length > 0;
  const how = choice(`what input ${index} is`, [...(isPicture ? [PICTURE] : []), ...Object.keys(MADE), NUMBERS, FILE]);
  if (!isPicture && INDEX.test(info.dtype)) how.value = "ones"; // indices that most tensors have, and what may be divided by
  const made = madeInput(info, index, changed, how, isShort);
  const ways = { [NUMBERS]: typedInput(info, index, changed), [FILE]: fileInput(info, index, changed) };
  for (const name of Object.keys(MADE)) ways[name] = made;
  if (isPicture) ways[PICTURE] = pictureInput(info, index, layouts, changed);
  const boxes = new Map([...new Set(Object.values(ways))].map((way) => [way, element("div", {}, ...way.body)]));
  const way = () => ways[how.value];
  const present = () => boxes.forEach((box, of) => (box.hidden = of !== way()));
  how.onchange = () => {
    present();
    if (how.value !== FILE && !way().isEmpty?.()) changed();
  };
  present();
  const take = (file) => {
    const isArray = /\.np[yz]$/i.test(file.name);
    if (!isArray && !isPicture) throw new TypeError(`input ${index} is no picture: ${file.name} can't be put there`);
    how.value = isArray ? FILE : PICTURE;
    present();
    return way().show(file);
  };
  return { body: [how, ...boxes.values()], value: () => way().value(), take, isPicture };
}

/** A scalar that the program has no value for: the program computes with what it gets, or does without. */
function openInput(info, index, changed) {
  const text = element("input", { type: "text", size: 12, placeholder: "None", onchange: () => changed(), "aria-label": `input ${index}: a number, true, false, or nothing for None` });
  const value = () => {
    const told = text.value.trim();
    if (told === "" || told === "None") return null;
    const number = { True: true, False: false }[told] ?? parsed(told);
    if (["number", "boolean", "bigint"].includes(typeof number)) return number;
    throw wrong(index, told, "a number, true, false, or nothing for None");
  };
  return { body: [text, element("p", { className: "note", textContent: "a number, true or false; nothing is None" })], value };
}

/** What the program was exported for: it takes no other. */
function fixedInput(info) {
  const text = info.unused ? "None" : typeof info.value === "string" ? JSON.stringify(info.value) : String(info.value);
  return { body: [element("code", { textContent: text }), element("p", { className: "note", textContent: "fixed when the program was exported" })], value: () => info.value ?? null };
}

/**
 * Controls for one input: `{element, value, take, isPicture}`, where `value()` makes what the method gets and `take(file)` puts a
 * file there. `changed` is called after each change, with what is to be done before it counts. `isShort`: sizes that may be smaller
 * begin with 1.
 */
export function makeInput(info, index, changed, isShort) {
  const told = { tensor: () => tensorText(info), none: () => (info.unused ? "None" : "number or None") }[info.kind]?.() ?? info.kind;
  const head = element("h3", { id: `input-${index}` }, `input ${index}`, element("code", { textContent: told }));
  const kind = info.kind === "tensor" ? tensorInput : info.value === undefined && !info.unused ? openInput : fixedInput;
  const { body, value, take, isPicture = false } = kind(info, index, changed, isShort);
  const box = element("div", { className: "item", role: "group", "aria-labelledby": `input-${index}` }, head, ...body);
  return { element: box, value, take, isPicture };
}
