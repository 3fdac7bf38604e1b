/** etude/npy: tensors in numpy's files (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html), and archives of them. */

import { dtypeOf } from "./dtypes.js";
import { errorOf, show } from "./errors.js";
import { inNode, readSource } from "./source.js";
import { MAX_RANK, reorder, Tensor } from "./tensor.js";

const DTYPES = {
  b1: "bool", i1: "int8", i2: "int16", i4: "int32", i8: "int64", u1: "uint8", u2: "uint16", u4: "uint32", u8: "uint64",
  f2: "float16", f4: "float32", f8: "float64", c8: "complex64", c16: "complex128",
};
const CODES = Object.fromEntries(Object.entries(DTYPES).map(([code, dtype]) => [dtype, code]));
const MAGIC = "\x93NUMPY";
const ALIGNMENT = 64;

const fail = (text) => errorOf("InvalidArgument", text);
const latin = (bytes) => String.fromCharCode(...bytes);

/** The words of a header, which is a literal of Python: `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`. */
function headerOf(text) {
  const descr = /'descr':\s*'([<>|=]?)([a-zA-Z]\d+)'/.exec(text);
  const order = /'fortran_order':\s*(True|False)/.exec(text);
  const shape = /'shape':\s*\(([\d,\s]*)\)/.exec(text);
  if (descr === null || order === null || shape === null) throw fail(`this .npy holds what is no tensor of numbers: ${text.trim().slice(0, 80)}`);
  const sizes = shape[1].split(",").map((part) => part.trim()).filter((part) => part !== "").map(Number);
  return { byteOrder: descr[1], code: descr[2], isFortran: order[1] === "True", shape: sizes };
}

function parse(bytes) {
  if (latin(bytes.subarray(0, 6)) !== MAGIC || bytes.length < 10) throw fail("this is no .npy file");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const isLong = bytes[6] >= 2;
  if (isLong && bytes.length < 12) throw fail("this .npy file is cut short");
  const start = (isLong ? 12 : 10) + (isLong ? view.getUint32(8, true) : view.getUint16(8, true));
  if (start > bytes.length) throw fail("this .npy file is cut short");
  const { byteOrder, code, isFortran, shape } = headerOf(new TextDecoder().decode(bytes.subarray(isLong ? 12 : 10, start)));
  const dtype = DTYPES[code];
  if (dtype === undefined) throw fail(`this .npy holds '${code}', and tensors are of: ${Object.keys(CODES).join(", ")}`);
  if (byteOrder === ">" && !code.endsWith("1")) throw fail("this .npy is big-endian: save array.astype(array.dtype.newbyteorder('<'))");
  if (shape.length > MAX_RANK) throw fail(`this .npy has ${shape.length} dimensions, and a tensor at most ${MAX_RANK}`);
  const { array: Type, lanes } = dtypeOf(dtype);
  const count = shape.reduce((a, b) => a * b, 1) * lanes;
  const size = count * Type.BYTES_PER_ELEMENT;
  if (!(size <= bytes.length - start)) throw fail(`this .npy file is cut short: its ${dtype} [${shape.join(", ")}] has ${size} bytes, and ${bytes.length - start} are there`);
  const data = new Type(bytes.slice(start, start + size).buffer);
  return new Tensor(dtype, shape, isFortran ? reorder(data, shape, shape.map((_, i) => shape.length - 1 - i), lanes) : data);
}

/** The tensor in a `.npy`: a path (Node), a URL, bytes, a File, a Response. */
export async function readNpy(source) {
  return parse(await readSource(source));
}

async function inflate(bytes) {
  if (inNode) {
    const zlib = "node:zlib"; // Node 18 has no raw deflate among its streams; not for bundlers to look for
    const { inflateRawSync } = await import(/* webpackIgnore: true */ /* @vite-ignore */ zlib);
    return new Uint8Array(inflateRawSync(bytes));
  }
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** The tensors in a `.npz`, by name. */
export async function readNpz(source) {
  const bytes = await readSource(source);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let end = bytes.length - 22; // of the directory, behind which a comment may stand
  while (end >= 0 && view.getUint32(end, true) !== 0x06054b50) end -= 1;
  if (end < 0) throw fail("this is no .npz file");
  const tensors = new Map();
  try {
    let at = view.getUint32(end + 16, true);
    for (let left = view.getUint16(end + 10, true); left > 0; left--) {
      const [method, packed] = [view.getUint16(at + 10, true), view.getUint32(at + 20, true)];
      const [name, extra, comment] = [view.getUint16(at + 28, true), view.getUint16(at + 30, true), view.getUint16(at + 32, true)];
      const local = view.getUint32(at + 42, true);
      const start = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
      const held = bytes.subarray(start, start + packed);
      const key = new TextDecoder().decode(bytes.subarray(at + 46, at + 46 + name)).replace(/\.npy$/, "");
      tensors.set(key, parse(method === 0 ? held : await inflate(held)));
      at += 46 + name + extra + comment;
    }
  } catch (cause) {
    if (cause.status !== undefined) throw cause;
    throw errorOf("InvalidArgument", `this .npz file is damaged: ${cause.message}`, { cause });
  }
  return tensors;
}

/** A tensor as the bytes of a `.npy`. */
export function writeNpy(tensor) {
  if (!(tensor instanceof Tensor)) throw errorOf("InvalidType", `a .npy is written of a Tensor, not of ${show(tensor)}`);
  const code = CODES[tensor.dtype];
  if (code === undefined) throw errorOf("NotSupported", `numpy has no ${tensor.dtype}: write tensor.toFloat32()`);
  const { rowMajorData: data, shape } = tensor;
  const sizes = shape.length === 1 ? `${shape[0]},` : shape.join(", ");
  const text = `{'descr': '${code.endsWith("1") ? "|" : "<"}${code}', 'fortran_order': False, 'shape': (${sizes}), }`;
  const start = Math.ceil((10 + text.length + 1) / ALIGNMENT) * ALIGNMENT;
  const bytes = new Uint8Array(start + data.byteLength);
  bytes.set(Array.from(`${MAGIC}\x01\x00\0\0${text.padEnd(start - 11)}\n`, (char) => char.charCodeAt(0)));
  new DataView(bytes.buffer).setUint16(8, start - 10, true);
  bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), start);
  return bytes;
}
