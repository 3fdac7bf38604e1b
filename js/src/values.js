/** Values on their way into the module's memory and out of it. */

import { dtypeOf, dtypeOfArray, dtypeOfCode, holds } from "./dtypes.js";
import { errorOf } from "./errors.js";
import { KINDS } from "./metadata.js";
import { layouts } from "./structs.js";
import { isArray, isRowMajor, reorder, sizeOf, Tensor } from "./tensor.js";

const TAG = { none: 0, tensor: 1, string: 2, double: 3, int: 4, bool: 5 };
const READONLY = 2;
const ALIGNMENT = 64;
const MAX_RANK = 16;
const TENSOR = layouts.etude_tensor;
const VALUE = layouts.etude_value;
const alignUp = (size) => Math.ceil(size / ALIGNMENT) * ALIGNMENT;
const fail = (index, text, status = "InvalidArgument") => errorOf(status, `input ${index}: ${text}`);

/** The input's dtype where an array may hold it, else the array's own: that is then the library's to refuse. */
function dtypeFor(array, info, index) {
  const dtype = holds(array, dtypeOf(info.dtype)) ? info.dtype : dtypeOfArray(array);
  if (dtype === undefined) throw fail(index, `no dtype has a ${array[Symbol.toStringTag]}`, "InvalidType");
  return dtype;
}

/** The tensor that a typed array alone stands for: of the input's largest shape. */
function tensorOfArray(array, info, index) {
  const dtype = dtypeFor(array, info, index);
  if (array.length !== sizeOf(info.shape) * dtypeOf(dtype).lanes) {
    const expected = `${sizeOf(info.shape)} elements of [${info.shape.join(", ")}]`;
    throw fail(index, `an array of ${array.length} has no shape; expected ${expected}, or {data, shape}`);
  }
  return new Tensor(dtype, info.shape, array);
}

function tensorOf(value, info, index) {
  if (value instanceof Tensor) return value;
  if (isArray(value)) return tensorOfArray(value, info, index);
  if (typeof value === "object" && value !== null && isArray(value.data) && value.shape !== undefined) {
    return new Tensor(value.dtype ?? dtypeFor(value.data, info, index), value.shape, value.data, value.dimOrder);
  }
  if (Array.isArray(value) || typeof value === "number" || typeof value === "bigint" || typeof value === "boolean") {
    return Tensor.from(value, { dtype: info.dtype });
  }
  throw fail(index, `expected a ${info.dtype} tensor, got ${describe(value)}`, "InvalidType");
}

function describe(value) {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? `an object (${value.constructor?.name ?? "?"})` : typeof value;
}

/** What is to be written for a value: `{kind, scalar}`, or a tensor with its bytes in the order of the method's layout. */
function planValue(value, info, index) {
  if (info.kind === "tensor") {
    const tensor = tensorOf(value, info, index);
    const type = dtypeOf(tensor.dtype);
    const sameRank = info.dimOrder.length === tensor.shape.length;
    const order = sameRank ? info.dimOrder : tensor.shape.map((_, i) => i);
    const given = tensor.dimOrder ?? order.map((_, i) => i);
    let { data } = tensor;
    if (!given.every((dim, i) => dim === order[i])) {
      data = isRowMajor(order) ? tensor.rowMajorData : reorder(tensor.rowMajorData, tensor.shape, order, type.lanes, true);
    }
    if (tensor.shape.length > MAX_RANK) throw fail(index, `a tensor has at most ${MAX_RANK} dimensions`, "NotSupported");
    return { kind: "tensor", shape: tensor.shape, order, type, data };
  }
  if (value === null || value === undefined) return { kind: "none" };
  if (typeof value === "boolean") return { kind: "bool", scalar: value };
  if (typeof value === "string") return { kind: "string", scalar: new TextEncoder().encode(value) };
  if (typeof value === "bigint" || (typeof value === "number" && Number.isInteger(value) && info.kind !== "double")) {
    const whole = BigInt(value);
    if (BigInt.asIntN(64, whole) !== whole) throw fail(index, `${whole} has more than 64 bits`);
    return { kind: "int", scalar: whole };
  }
  if (typeof value === "number") return { kind: "double", scalar: value };
  throw fail(index, `expected ${info.kind}, got ${describe(value)}`, "InvalidType");
}

function bytesOfPlan(plan) {
  if (plan.kind === "tensor") return alignUp(TENSOR.size + 5 * MAX_RANK) + alignUp(plan.data.byteLength);
  return plan.kind === "string" ? alignUp(plan.scalar.length + 1) : 0;
}

function writeTensor(instance, ptr, { shape, order, type, data }) {
  const { view, bytes } = instance;
  const sizes = ptr + TENSOR.size;
  const orders = sizes + 4 * MAX_RANK;
  const elements = ptr + alignUp(TENSOR.size + 5 * MAX_RANK);
  bytes.fill(0, ptr, elements);
  view.setUint32(ptr + TENSOR.data, elements, true);
  view.setUint32(ptr + TENSOR.sizes, sizes, true);
  view.setUint32(ptr + TENSOR.dim_order, orders, true);
  view.setUint32(ptr + TENSOR.capacity, data.byteLength, true);
  view.setInt8(ptr + TENSOR.scalar_type, type.code);
  view.setUint8(ptr + TENSOR.rank, shape.length);
  view.setUint16(ptr + TENSOR.flags, READONLY, true);
  shape.forEach((size, i) => view.setInt32(sizes + 4 * i, size, true));
  order.forEach((dim, i) => view.setUint8(orders + i, dim));
  bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), elements);
  if (type.name === "bool") {
    for (let i = elements; i < elements + data.byteLength; i++) if (bytes[i] > 1) bytes[i] = 1;
  }
}

function writeValue(instance, ptr, plan, room) {
  const { view, bytes } = instance;
  const at = ptr + VALUE.as;
  bytes.fill(0, ptr, ptr + VALUE.size);
  view.setInt32(ptr + VALUE.tag, TAG[plan.kind], true);
  if (plan.kind === "int") view.setBigInt64(at, plan.scalar, true);
  if (plan.kind === "double") view.setFloat64(at, plan.scalar, true);
  if (plan.kind === "bool") view.setUint8(at, plan.scalar ? 1 : 0);
  if (plan.kind === "string" || plan.kind === "tensor") view.setUint32(at, room, true);
  if (plan.kind === "string") {
    view.setUint32(ptr + VALUE.count, plan.scalar.length, true);
    bytes.set(plan.scalar, room);
    bytes[room + plan.scalar.length] = 0;
  }
  if (plan.kind === "tensor") writeTensor(instance, room, plan);
}

/** Inputs as an array of etude_value, in one block of the module's memory that the caller frees. */
export function packInputs(instance, inputs, infos) {
  // more inputs than the method has are the library's to refuse
  const plans = inputs.map((value, i) => planValue(value, infos[i] ?? { kind: "none" }, i));
  const head = alignUp(VALUE.size * Math.max(plans.length, 1));
  const block = instance.alloc(plans.reduce((size, plan) => size + bytesOfPlan(plan), head));
  let room = block + head;
  plans.forEach((plan, i) => {
    writeValue(instance, block + i * VALUE.size, plan, room);
    room += bytesOfPlan(plan);
  });
  return block;
}

/** An etude_tensor as a Tensor of its own, in row-major order. */
export function unpackTensor(instance, ptr) {
  const { view } = instance;
  const type = dtypeOfCode(view.getInt8(ptr + TENSOR.scalar_type));
  const rank = view.getUint8(ptr + TENSOR.rank);
  const sizes = instance.u32(ptr + TENSOR.sizes);
  const orders = instance.u32(ptr + TENSOR.dim_order);
  const shape = Array.from({ length: rank }, (_, i) => instance.i32(sizes + 4 * i));
  const order = Array.from({ length: rank }, (_, i) => (orders === 0 ? i : instance.bytes[orders + i]));
  const start = instance.u32(ptr + TENSOR.data);
  const length = sizeOf(shape) * type.lanes;
  const size = length * type.array.BYTES_PER_ELEMENT;
  const copy = instance.bytes.slice(start, start + size);
  const data = new type.array(copy.buffer, 0, length);
  return new Tensor(type.name, shape, isRowMajor(order) ? data : reorder(data, shape, order, type.lanes));
}

/** An etude_value: int as bigint, None as null, lists as arrays. */
export function unpackValue(instance, ptr) {
  const at = ptr + VALUE.as;
  const count = instance.u32(ptr + VALUE.count);
  const list = instance.u32(at);
  const item = (i) => instance.u32(list + 4 * i);
  switch (KINDS[instance.i32(ptr + VALUE.tag)]) {
    case "tensor":
      return unpackTensor(instance, list);
    case "int":
      return instance.i64(at);
    case "double":
      return instance.view.getFloat64(at, true);
    case "bool":
      return instance.bytes[at] !== 0;
    case "string":
      return new TextDecoder().decode(instance.bytes.subarray(list, list + count));
    case "boolList":
      return Array.from(instance.bytes.subarray(list, list + count), (byte) => byte !== 0);
    case "doubleList":
      return Array.from({ length: count }, (_, i) => instance.view.getFloat64(list + 8 * i, true));
    case "intList":
    case "tensorList":
    case "optionalTensorList":
      return Array.from({ length: count }, (_, i) => (item(i) === 0 ? null : unpackValue(instance, item(i))));
    default:
      return null;
  }
}
