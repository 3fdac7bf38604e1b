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

/** Inflates what should become `size` bytes, and stops where it becomes more. */
async function inflate(bytes, size) {
  if (inNode) {
    const zlib = "node:zlib"; // Node 18 has no raw deflate among its streams; not for bundlers to look for
    const { inflateRawSync } = await import(/* webpackIgnore: true */ /* @vite-ignore */ zlib);
    return new Uint8Array(inflateRawSync(bytes, { maxOutputLength: Math.max(size, 1) }));
  }
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const pieces = [];
  for (let left = size; ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    left -= value.length;
    if (left < 0) {
      await reader.cancel();
      throw fail(`this .npz file is damaged: an entry has more than the ${size} bytes that it says`);
    }
    pieces.push(value);
  }
  return new Uint8Array(await new Blob(pieces).arrayBuffer());
}

const CRC = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let bit = 0; bit < 8; bit++) n = n & 1 ? (n >>> 1) ^ 0xedb88320 : n >>> 1;
  return n;
});

function crcOf(bytes) {
  let crc = -1;
  for (let i = 0; i < bytes.length; i++) crc = CRC[(crc ^ bytes[i]) & 255] ^ (crc >>> 8);
  return ~crc >>> 0;
}

const [END, END64, LOCATOR64, ENTRY] = [0x06054b50, 0x06064b50, 0x07064b50, 0x02014b50];
const EXTRA64 = 1;
const BEYOND = 0xffffffff; // in place of a number that only zip64 has room for

/** Where an archive's directory begins, and how many entries it has (https://pkware.cachefly.net/webdocs/APPNOTE/APPNOTE-6.3.9.TXT). */
function directoryOf(view) {
  let end = view.byteLength - 22; // behind it a comment may stand
  while (end >= 0 && view.getUint32(end, true) !== END) end -= 1;
  if (end < 0) throw fail("this is no .npz file");
  const [count, at] = [view.getUint16(end + 10, true), view.getUint32(end + 16, true)];
  if (count !== 0xffff && at !== BEYOND) return { at, count };
  if (end < 20 || view.getUint32(end - 20, true) !== LOCATOR64) return { at, count };
  const wide = Number(view.getBigUint64(end - 12, true));
  if (view.getUint32(wide, true) !== END64) throw fail("this .npz file is damaged: its zip64 directory is not there");
  return { at: Number(view.getBigUint64(wide + 48, true)), count: Number(view.getBigUint64(wide + 32, true)) };
}

/** An entry of the directory, `next` where the following one begins. */
function entryOf(view, at) {
  if (view.getUint32(at, true) !== ENTRY) throw fail("this .npz file is damaged: an entry of its directory is not there");
  const [flags, method, crc] = [view.getUint16(at + 8, true), view.getUint16(at + 10, true), view.getUint32(at + 16, true)];
  const [name, extra, comment] = [view.getUint16(at + 28, true), view.getUint16(at + 30, true), view.getUint16(at + 32, true)];
  const numbers = [view.getUint32(at + 24, true), view.getUint32(at + 20, true), view.getUint32(at + 42, true)];
  const start = at + 46 + name;
  for (let field = start; field + 4 <= start + extra; field += 4 + view.getUint16(field + 2, true)) {
    if (view.getUint16(field, true) !== EXTRA64) continue;
    let wide = field + 4; // those that have no room, in this order
    numbers.forEach((number, i) => {
      if (number !== BEYOND) return;
      numbers[i] = Number(view.getBigUint64(wide, true));
      wide += 8;
    });
  }
  const [size, packed, local] = numbers;
  const key = new TextDecoder().decode(new Uint8Array(view.buffer, view.byteOffset + at + 46, name)).replace(/\.npy$/, "");
  return { key, isEncrypted: (flags & 1) !== 0, method, crc, size, packed, local, next: start + extra + comment };
}

/** The bytes of an entry, checked. */
async function contentOf(bytes, view, { key, isEncrypted, method, crc, size, packed, local }) {
  if (isEncrypted || (method !== 0 && method !== 8)) throw fail(`'${key}' of this .npz is ${isEncrypted ? "encrypted" : `compressed by method ${method}`}; numpy writes neither`);
  const start = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
  if (start + packed > bytes.length) throw fail(`this .npz file is damaged: '${key}' is cut short`);
  const held = bytes.subarray(start, start + packed);
  const content = method === 0 ? held : await inflate(held, size);
  if (content.length !== size) throw fail(`this .npz file is damaged: '${key}' has ${content.length} bytes, and should have ${size}`);
  if (crcOf(content) !== crc) throw fail(`this .npz file is damaged: the CRC-32 of '${key}' is another`);
  return content;
}

/** The tensors in a `.npz`, by name. */
export async function readNpz(source) {
  const bytes = await readSource(source);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const tensors = new Map();
  try {
    let { at, count } = directoryOf(view);
    for (; count > 0; count--) {
      const entry = entryOf(view, at);
      tensors.set(entry.key, parse(await contentOf(bytes, view, entry)));
      at = entry.next;
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
