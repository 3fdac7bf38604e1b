/** Values on their way into the module's memory and out of it. */

import { dtypeOf, dtypeOfArray, dtypeOfCode, holds } from "./dtypes.js";
import { errorOf, EtudeError, show } from "./errors.js";
import { KINDS, scalarOf } from "./metadata.js";
import { layouts } from "./structs.js";
import { isArray, isRowMajor, MAX_RANK, reorder, sizeOf, Tensor } from "./tensor.js";

const TAG = { none: 0, tensor: 1, string: 2, double: 3, int: 4, bool: 5 };
const READONLY = 2;
const ALIGNMENT = 64;
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
  if (value instanceof Tensor) return new Tensor(value.dtype, value.shape, value.data, value.dimOrder); // it may have been changed
  if (isArray(value)) return tensorOfArray(value, info, index);
  if (typeof value === "object" && value !== null && isArray(value.data) && value.shape !== undefined) {
    return new Tensor(value.dtype ?? dtypeFor(value.data, info, index), value.shape, value.data, value.dimOrder);
  }
  if (Array.isArray(value) || typeof value === "number" || typeof value === "bigint" || typeof value === "boolean") {
    return Tensor.from(value, { dtype: info.dtype });
  }
  const hint = value?.shape === undefined ? "" : ": its data is no typed array";
  throw fail(index, `expected a ${info.dtype} tensor, got ${show(value)}${hint}`, "InvalidType");
}

/** Dtype and shape against the method's, as the library does: before there is a copy. */
function checkTensor({ dtype, shape }, info, index) {
  if (dtype !== info.dtype) throw fail(index, `expected ${info.dtype}, got ${dtype}: convert it first`);
  const fits = (size, i) => size === info.shape[i] || (info.dynamic && size < info.shape[i]);
  if (shape.length === info.shape.length && shape.every(fits)) return;
  const expected = `${info.dynamic ? "at most " : ""}[${info.shape.join(", ")}]`;
  throw fail(index, `expected shape ${expected}, got [${shape.join(", ")}]`, "NotSupported");
}

/** The tensor of an input, checked; what is wrong with it names the input. */
function checkedTensor(value, info, index) {
  try {
    const tensor = tensorOf(value, info, index);
    checkTensor(tensor, info, index);
    const wrong = tensor.dtype === "bool" ? tensor.data.findIndex((byte) => byte > 1) : -1;
    if (wrong >= 0) throw fail(index, `number ${wrong} of its array is ${tensor.data[wrong]}, and a bool is 0 or 1`);
    return tensor;
  } catch (error) {
    if (!(error instanceof EtudeError) || error.message.startsWith(`input ${index}: `)) throw error;
    throw fail(index, error.message, error.status);
  }
}

/** What is to be written for a value: `{kind, scalar}`, or a tensor with its bytes in the order of the method's layout. */
function planValue(value, info, index) {
  if (info.kind === "tensor") {
    const tensor = checkedTensor(value, info, index);
    const type = dtypeOf(tensor.dtype);
    const order = info.dimOrder;
    const given = tensor.dimOrder ?? order.map((_, i) => i);
    let { data } = tensor;
    if (!given.every((dim, i) => dim === order[i])) {
      data = isRowMajor(order) ? tensor.rowMajorData : reorder(tensor.rowMajorData, tensor.shape, order, type.lanes, true);
    }
    // its size is read once: another thread may let the memory of an array grow
    return { kind: "tensor", shape: tensor.shape, order, type, data, size: data.byteLength };
  }
  if (value === null || value === undefined) return { kind: "none" };
  if (info.unused) throw fail(index, `the program was exported with None there and does not look at ${show(value)}: give null`, "InvalidType");
  if (typeof value === "boolean") return { kind: "bool", scalar: value };
  if (typeof value === "string") return { kind: "string", scalar: new TextEncoder().encode(value) };
  if (typeof value === "bigint" || (typeof value === "number" && Number.isInteger(value) && info.kind !== "double")) {
    const whole = BigInt(value);
    if (BigInt.asIntN(64, whole) !== whole) throw fail(index, `${whole} has more than 64 bits`);
    return { kind: "int", scalar: whole };
  }
  if (typeof value === "number") return { kind: "double", scalar: value };
  throw fail(index, `expected ${info.kind}, got ${show(value)}`, "InvalidType");
}

function bytesOfPlan(plan) {
  if (plan.kind === "tensor") return alignUp(TENSOR.size + 5 * MAX_RANK) + alignUp(plan.size);
  return plan.kind === "string" ? alignUp(plan.scalar.length + 1) : 0;
}

function writeTensor(instance, ptr, { shape, order, type, data, size }) {
  const { view, bytes } = instance;
  const sizes = ptr + TENSOR.size;
  const orders = sizes + 4 * MAX_RANK;
  const elements = ptr + alignUp(TENSOR.size + 5 * MAX_RANK);
  bytes.fill(0, ptr, elements);
  view.setUint32(ptr + TENSOR.data, elements, true);
  view.setUint32(ptr + TENSOR.sizes, sizes, true);
  view.setUint32(ptr + TENSOR.dim_order, orders, true);
  view.setUint32(ptr + TENSOR.capacity, size, true);
  view.setInt8(ptr + TENSOR.scalar_type, type.code);
  view.setUint8(ptr + TENSOR.rank, shape.length);
  view.setUint16(ptr + TENSOR.flags, READONLY, true);
  shape.forEach((dim, i) => view.setInt32(sizes + 4 * i, dim, true));
  order.forEach((dim, i) => view.setUint8(orders + i, dim));
  if (size > 0) bytes.set(new Uint8Array(data.buffer, data.byteOffset, size), elements);
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

/** Inputs of a method as an array of etude_value, in one block of the module's memory that the caller frees. */
export function packInputs(instance, method, inputs, infos) {
  if (inputs.length !== infos.length) {
    const were = inputs.length === 1 ? "was" : "were";
    throw errorOf("InvalidArgument", `method '${method}' takes ${infos.length} input${infos.length === 1 ? "" : "s"}, ${inputs.length} ${were} given`);
  }
  const plans = infos.map((info, i) => planValue(inputs[i], info, i));
  const head = alignUp(VALUE.size * Math.max(plans.length, 1));
  const block = instance.alloc(plans.reduce((size, plan) => size + bytesOfPlan(plan), head));
  let room = block + head;
  try {
    plans.forEach((plan, i) => {
      writeValue(instance, block + i * VALUE.size, plan, room);
      room += bytesOfPlan(plan);
    });
  } catch (error) {
    instance.free(block);
    throw error;
  }
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
  const kind = KINDS[instance.i32(ptr + VALUE.tag)];
  switch (kind) {
    case "tensor":
      return unpackTensor(instance, list);
    case "int":
    case "double":
    case "bool":
      return scalarOf(instance, kind, ptr);
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
