/** A tensor in JavaScript's memory: dtype, shape, and a typed array with its elements. */

import { codecOf, dtypeOf, holds } from "./dtypes.js";
import { errorOf, show } from "./errors.js";
import { settingsOf } from "./settings.js";

/** Is it a typed array? */
export const isArray = (value) => ArrayBuffer.isView(value) && !(value instanceof DataView);

/** Most dimensions that a tensor has. */
export const MAX_RANK = 16;

/** Number of elements of a shape. */
export const sizeOf = (shape) => shape.reduce((size, dim) => size * dim, 1);

/** Is an order of dimensions the plain one? */
export const isRowMajor = (order) => order.every((dim, i) => dim === i);

/**
 * Elements that stand in `order` (outermost dimension first), in row-major order; with `back` the other way round.
 * An element is `lanes` numbers.
 */
export function reorder(data, shape, order, lanes, back = false) {
  const strides = new Array(shape.length);
  let stride = lanes;
  for (let i = order.length - 1; i >= 0; i--) {
    strides[order[i]] = stride;
    stride *= shape[order[i]];
  }
  const out = new data.constructor(data.length);
  const index = new Array(shape.length).fill(0);
  let other = 0;
  for (let plain = 0; plain < data.length; plain += lanes) {
    for (let lane = 0; lane < lanes; lane++) {
      if (back) out[other + lane] = data[plain + lane];
      else out[plain + lane] = data[other + lane];
    }
    for (let dim = shape.length - 1; dim >= 0; dim--) {
      other += strides[dim];
      if (++index[dim] < shape[dim]) break;
      other -= shape[dim] * strides[dim];
      index[dim] = 0;
    }
  }
  return out;
}

function checkShape(shape) {
  if (!Array.isArray(shape) || !shape.every((dim) => Number.isInteger(dim) && dim >= 0)) {
    const given = Array.isArray(shape) ? `[${shape.map(show).join(", ")}]` : show(shape);
    throw errorOf("InvalidArgument", `a shape is an array of whole numbers, not ${given}`);
  }
}

function checkOrder(order, rank) {
  const isOrder = Array.isArray(order) && order.length === rank && order.every(Number.isInteger) && isRowMajor([...order].sort((a, b) => a - b));
  if (isOrder) return;
  const given = Array.isArray(order) ? `[${order.map(show).join(", ")}]` : show(order);
  throw errorOf("InvalidArgument", `${given} is no order of ${rank} dimensions; an array has each of 0 to ${rank - 1} once`);
}

function shapeOfNested(values, shape = []) {
  if (!Array.isArray(values)) return shape;
  if (shape.length === MAX_RANK) throw errorOf("NotSupported", `a tensor has at most ${MAX_RANK} dimensions`);
  shape.push(values.length);
  return values.length > 0 ? shapeOfNested(values[0], shape) : shape;
}

function arrayOf(type, length) {
  try {
    return new type.array(length);
  } catch (cause) {
    throw errorOf("MemoryAllocationFailed", `${length} elements of ${type.name} do not fit into an array`, { cause });
  }
}

/** Writes nested arrays from element `at` on; `place` is where they stand in the whole. */
function fill(data, type, codec, values, shape, place, at) {
  const depth = place.length;
  const nested = Array.isArray(values);
  if (nested !== depth < shape.length || (nested && values.length !== shape[depth])) {
    const lacks = nested || depth === 0 ? "" : `; ${place.map((i) => `[${i}]`).join("")} is ${show(values)}`;
    throw errorOf("InvalidArgument", `nested arrays must have equal lengths${lacks}`);
  }
  if (!nested) {
    const element = codec.encode(values);
    if (element === undefined) {
      const where = depth === 0 ? "the value" : `element ${place.map((i) => `[${i}]`).join("")}`;
      throw errorOf("InvalidType", `${where} is ${show(values)}, and ${type.name} holds ${codec.range}`);
    }
    data[at] = element;
    return at + 1;
  }
  place.push(0);
  for (let i = 0; i < values.length; i++) {
    place[depth] = i;
    at = fill(data, type, codec, values[i], shape, place, at);
  }
  place.pop();
  return at;
}

export class Tensor {
  /**
   * `data` is borrowed. Its length is the product of `shape`, twice that for complex dtypes (real, imaginary). Elements are in
   * row-major order unless `dimOrder` (outermost dimension first) says another.
   */
  constructor(dtype, shape, data, dimOrder) {
    const type = dtypeOf(dtype);
    checkShape(shape);
    if (!isArray(data)) throw errorOf("InvalidType", `the elements of a ${dtype} tensor are a ${type.array.name}, not ${show(data)}`);
    if (!holds(data, type)) {
      throw errorOf("InvalidType", `the elements of a ${dtype} tensor are a ${type.array.name}, not a ${data[Symbol.toStringTag]}`);
    }
    if (data.length !== sizeOf(shape) * type.lanes) {
      throw errorOf(
        "InvalidArgument",
        `a ${dtype} tensor of shape [${shape.join(", ")}] has ${sizeOf(shape) * type.lanes} numbers, not ${data.length}` +
          (data.buffer.byteLength === 0 ? ": its buffer is empty, as that of an array is which was transferred" : ""),
      );
    }
    if (dimOrder !== undefined) checkOrder(dimOrder, shape.length);
    this.dtype = dtype;
    this.shape = [...shape];
    this.data = data.constructor === type.array ? data : new type.array(data.buffer, data.byteOffset, data.length);
    if (dimOrder !== undefined && !isRowMajor(dimOrder)) this.dimOrder = [...dimOrder];
  }

  /**
   * A tensor of numbers: a number, nested arrays, or a flat list with a `shape`. Floats are rounded; what else the dtype does not
   * hold is an ArgumentError.
   */
  static from(values, settings) {
    const { dtype = "float32", shape } = settingsOf(settings, ["dtype", "shape"], "Tensor.from");
    const type = dtypeOf(dtype);
    const codec = codecOf(type);
    if (codec.encode === undefined) throw errorOf("NotSupported", `a ${dtype} tensor is made from a typed array`);
    if (shape !== undefined) checkShape(shape);
    const flat = isArray(values) ? Array.from(values) : values;
    const found = shapeOfNested(flat);
    const data = arrayOf(type, sizeOf(found));
    fill(data, type, codec, flat, found, [], 0);
    return new Tensor(dtype, shape ?? found, data);
  }

  /** Number of elements. */
  get size() {
    return sizeOf(this.shape);
  }

  /** The elements in row-major order, without a copy where they stand so. */
  get rowMajorData() {
    return this.dimOrder === undefined ? this.data : reorder(this.data, this.shape, this.dimOrder, dtypeOf(this.dtype).lanes);
  }

  /** The elements as float32, row-major: the way to read float16 and bfloat16, whose arrays hold bits. */
  toFloat32() {
    const { decode } = codecOf(dtypeOf(this.dtype));
    const data = this.rowMajorData;
    const numbers = new Float32Array(data.length);
    for (let i = 0; i < data.length; i++) numbers[i] = decode(data[i]);
    return numbers;
  }

  /** The elements as nested arrays of numbers (bigint for int64 and uint64, boolean for bool); a plain one for rank 0. */
  toArray() {
    const type = dtypeOf(this.dtype);
    const data = this.rowMajorData;
    const is64 = this.dtype === "int64" || this.dtype === "uint64";
    const { decode } = codecOf(type);
    const element = (i) => (is64 ? data[i] : this.dtype === "bool" ? data[i] !== 0 : decode(data[i]));
    const pair = (i) => (type.lanes === 1 ? element(i) : [element(2 * i), element(2 * i + 1)]);
    let at = 0;
    const nest = (dim) => (dim === this.shape.length ? pair(at++) : Array.from({ length: this.shape[dim] }, () => nest(dim + 1)));
    return nest(0);
  }
}
