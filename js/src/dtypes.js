/** Element types, by the names of PyTorch, and how JavaScript holds them. */

import { errorOf, show } from "./errors.js";

/** code of the C API, name, bytes of a stored number, its array, numbers an element. */
const ROWS = [
  [0, "uint8", Uint8Array],
  [1, "int8", Int8Array],
  [2, "int16", Int16Array],
  [3, "int32", Int32Array],
  [4, "int64", BigInt64Array],
  [5, "float16", Uint16Array],
  [6, "float32", Float32Array],
  [7, "float64", Float64Array],
  [8, "complex32", Uint16Array, 2],
  [9, "complex64", Float32Array, 2],
  [10, "complex128", Float64Array, 2],
  [11, "bool", Uint8Array],
  [12, "qint8", Int8Array],
  [13, "quint8", Uint8Array],
  [14, "qint32", Int32Array],
  [15, "bfloat16", Uint16Array],
  [16, "quint4x2", Uint8Array],
  [17, "quint2x4", Uint8Array],
  [18, "bits1x8", Uint8Array],
  [19, "bits2x4", Uint8Array],
  [20, "bits4x2", Uint8Array],
  [21, "bits8", Uint8Array],
  [22, "bits16", Uint16Array],
  [23, "float8_e5m2", Uint8Array],
  [24, "float8_e4m3fn", Uint8Array],
  [25, "float8_e5m2fnuz", Uint8Array],
  [26, "float8_e4m3fnuz", Uint8Array],
  [27, "uint16", Uint16Array],
  [28, "uint32", Uint32Array],
  [29, "uint64", BigUint64Array],
];

const types = ROWS.map(([code, name, array, lanes = 1]) => Object.freeze({ code, name, array, lanes }));
const byName = new Map(types.map((type) => [type.name, type]));

export const names = [...byName.keys()];

/** What is known of a dtype: `{code, name, array, lanes}`. */
export function dtypeOf(name) {
  const type = byName.get(name);
  if (type === undefined) {
    throw errorOf("InvalidArgument", `${show(name)} is no dtype; there are: ${names.join(", ")}`);
  }
  return type;
}

/** The dtype of a code of the C API. */
export const dtypeOfCode = (code) => types[code];

/** The kind of a typed array by name: those of other windows, and Node's Buffer, are as good. */
const nameOf = (array) => array[Symbol.toStringTag];

/** Can an array hold the elements of a dtype? Of 16-bit floats also their bits. */
export function holds(array, type) {
  const name = nameOf(array);
  if (name === "Float16Array") return type.name === "float16";
  return name === "Uint8ClampedArray" ? type.name === "uint8" : name === type.array.name;
}

/** The dtype that an array stands for where nothing else is known; undefined for none. */
export function dtypeOfArray(array) {
  const name = nameOf(array);
  if (name === "Uint16Array") return "uint16";
  return types.find((type) => holds(array, type))?.name;
}

const float = new Float32Array(1);
const bits = new Uint32Array(float.buffer);

/** Bits of the IEEE binary16 nearest to a number, ties to even. */
export function toHalf(value) {
  float[0] = value;
  const sign = (bits[0] >>> 16) & 0x8000;
  const magnitude = bits[0] & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00; // nan
  if (magnitude >= 0x477ff000) return sign | 0x7c00; // 65520 and more round to infinity
  if (magnitude < 0x38800000) {
    // in units of 2^-24, the place at which a sum between 0.5 and 1 is rounded
    float[0] = Math.abs(float[0]) + 0.5;
    return sign | (bits[0] - 0x3f000000);
  }
  return sign | ((magnitude + 0xfff + ((magnitude >>> 13) & 1) - 0x38000000) >>> 13);
}

/** The number that an IEEE binary16 stands for. */
export function fromHalf(half) {
  const exponent = (half >>> 10) & 31;
  const fraction = half & 0x3ff;
  const sign = half & 0x8000 ? -1 : 1;
  if (exponent === 31) return fraction === 0 ? sign * Infinity : NaN;
  return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1024 + fraction) * 2 ** (exponent - 25);
}

/** Bits of the bfloat16 nearest to a number, ties to even. */
export function toBfloat16(value) {
  float[0] = value;
  if (Number.isNaN(float[0])) return (bits[0] >>> 16) | 0x40;
  return (bits[0] + 0x7fff + ((bits[0] >>> 16) & 1)) >>> 16;
}

/** The number that a bfloat16 stands for. */
export function fromBfloat16(half) {
  bits[0] = half << 16;
  return float[0];
}

/** Bits of the fraction and bias of the exponent (https://arxiv.org/abs/2209.05433, 2206.02915); `fnuz`: no infinities, and the bits of -0 are NaN. */
const FLOAT8 = {
  float8_e5m2: { fraction: 2, bias: 15 },
  float8_e4m3fn: { fraction: 3, bias: 7 },
  float8_e5m2fnuz: { fraction: 2, bias: 16, fnuz: true },
  float8_e4m3fnuz: { fraction: 3, bias: 8, fnuz: true },
};

/** A function from the bits of a float8 to its number. */
function float8Decoder(name) {
  const { fraction: width, bias, fnuz = false } = FLOAT8[name];
  return (byte) => {
    if (fnuz && byte === 0x80) return NaN;
    const magnitude = byte & 0x7f;
    const sign = byte & 0x80 ? -1 : 1;
    if (name === "float8_e4m3fn" && magnitude === 0x7f) return NaN;
    if (name === "float8_e5m2" && magnitude >= 0x7c) return magnitude === 0x7c ? sign * Infinity : NaN;
    const [exponent, fraction] = [magnitude >> width, magnitude & ((1 << width) - 1)];
    return sign * (exponent === 0 ? fraction * 2 ** (1 - bias - width) : ((1 << width) + fraction) * 2 ** (exponent - bias - width));
  };
}

const isWhole = (value) => typeof value === "bigint" || Number.isInteger(value);

/** Encodes whole numbers of an array whose elements are numbers; undefined for others, as all that `encode` does. */
function wholeCodec({ array }) {
  const bits = 8 * array.BYTES_PER_ELEMENT;
  const [low, high] = array.name.startsWith("U") ? [0, 2 ** bits - 1] : [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1];
  const encode = (value) => (isWhole(value) && value >= low && value <= high ? Number(value) : undefined);
  return { encode, decode: Number, range: `whole numbers from ${low} to ${high}` };
}

function wideCodec({ array }) {
  const [low, high] = array === BigInt64Array ? [-(2n ** 63n), 2n ** 63n - 1n] : [0n, 2n ** 64n - 1n];
  const encode = (value) => (isWhole(value) && value >= low && value <= high ? BigInt(value) : undefined);
  return { encode, decode: Number, range: `whole numbers from ${low} to ${high}` };
}

/** Floats are rounded, but nothing finite becomes infinite, and a bigint must be exact as a number. */
function floatCodec(round, decode, most) {
  const encode = (value) => {
    const number = typeof value === "bigint" ? Number(value) : value;
    if (typeof number !== "number" || (typeof value === "bigint" && BigInt(number) !== value)) return undefined;
    const bits = round(number);
    return Number.isFinite(number) && !Number.isFinite(decode(bits)) ? undefined : bits;
  };
  return { encode, decode, range: `numbers from ${-most} to ${most}, infinities and NaN` };
}

const boolCodec = {
  encode: (value) => (value === true || value === 1 || value === 1n ? 1 : value === false || value === 0 || value === 0n ? 0 : undefined),
  decode: Number,
  range: "true, false, 1 and 0",
};

/**
 * How a dtype turns a number into what its array holds, and back, and the numbers that it has, in words. `encode` gives undefined
 * for what is none of them, and is undefined itself where arrays hold what is no number.
 */
export function codecOf(type) {
  switch (type.name) {
    case "float16":
      return floatCodec(toHalf, fromHalf, 65504);
    case "bfloat16":
      return floatCodec(toBfloat16, fromBfloat16, 3.3895313892515355e38);
    case "float32":
      return floatCodec(Math.fround, Number, 3.4028234663852886e38);
    case "float64":
      return floatCodec(Number, Number, Number.MAX_VALUE);
    case "complex32":
      return { decode: fromHalf };
    case "int64":
    case "uint64":
      return wideCodec(type);
    case "bool":
      return boolCodec;
    default:
      if (type.name in FLOAT8) return { decode: float8Decoder(type.name) };
      return /^(q?u?int(8|16|32))$/.test(type.name) ? wholeCodec(type) : { decode: Number };
  }
}
