/** Options of backends in the C API's form, and back. The library checks them, not this. */

import { errorOf, show } from "./errors.js";
import { layouts } from "./structs.js";

const BOOL = 0;
const INT = 1;
const TYPES = ["bool", "int", "string"];
const ORIGINS = ["default", "process", "program", "method"];
const SCOPES = ["", "process", "load", "both"];

const isPlain = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

function addOption(frame, options, key, value) {
  const { instance } = frame;
  const name = frame.text(key);
  if (typeof value === "boolean") return instance.call("etude_options_add_bool", options, name, value ? 1 : 0);
  if (typeof value === "string") return instance.call("etude_options_add_string", options, name, frame.text(value));
  if (typeof value === "bigint" || Number.isInteger(value)) {
    const whole = BigInt(value);
    if (BigInt.asIntN(64, whole) !== whole) throw errorOf("InvalidArgument", `option '${key}': ${whole} has more than 64 bits`, { subject: key });
    return instance.call("etude_options_add_int", options, name, whole);
  }
  throw errorOf("InvalidType", `option '${key}': a value is a boolean, a whole number or a string`, { subject: key });
}

/** Is an option for a backend that is not used an error? */
export function wantsWarning(unusedOptions) {
  if (unusedOptions !== "error" && unusedOptions !== "ignore") {
    throw errorOf("InvalidArgument", `unusedOptions is 'error' or 'ignore', not ${show(unusedOptions)}`);
  }
  return unusedOptions === "ignore" ? 1 : 0;
}

/** `{backend: {key: value}}` as an array of etude_backend_options: `{ptr, count}`. */
export function packOptions(frame, options) {
  if (!isPlain(options ?? {})) throw errorOf("InvalidType", `options are {backend: {key: value}}, not ${show(options)}`);
  const rows = Object.entries(options ?? {});
  const row = layouts.etude_backend_options.size;
  const ptr = rows.length === 0 ? 0 : frame.alloc(row * rows.length);
  rows.forEach(([backend, values], i) => {
    if (!isPlain(values)) {
      throw errorOf("InvalidType", `options are {backend: {key: value}}, and those of '${backend}' are ${show(values)}`, { subject: backend });
    }
    const items = Object.entries(values);
    const container = frame.struct("etude_options");
    frame.instance.raw("etude_options_init", container, frame.struct("etude_option", Math.max(items.length, 1)), items.length);
    for (const [key, value] of items) addOption(frame, container, key, value);
    frame.instance.call("etude_backend_options_init", ptr + i * row, frame.text(backend), container);
  });
  return { ptr, count: rows.length };
}

const plain = (value) => (value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value);

/** The value of an etude_option_value of a type. */
export function unpackValue(instance, ptr, type) {
  if (type === BOOL) return instance.bytes[ptr] !== 0;
  return type === INT ? plain(instance.i64(ptr)) : instance.text(ptr);
}

/** The C API's schema as plain objects. */
export function unpackSchema(instance, ptr, count) {
  const row = layouts.etude_option_schema;
  return Array.from({ length: count }, (_, i) => {
    const at = ptr + i * row.size;
    const type = instance.i32(at + row.type);
    const flags = instance.u32(at + row.flags);
    const text = instance.u32(at + row.default_string);
    const minimum = plain(instance.i64(at + row.minimum));
    const maximum = plain(instance.i64(at + row.maximum));
    const choices = [];
    for (let list = instance.u32(at + row.choices); list !== 0 && instance.u32(list) !== 0; list += 4) choices.push(instance.text(instance.u32(list)));
    const value = plain(instance.i64(at + row.default_value));
    return {
      key: instance.text(instance.u32(at + row.key)),
      help: instance.text(instance.u32(at + row.help)),
      type: TYPES[type],
      default: type === BOOL ? value !== 0 : type === INT ? value : text === 0 ? "" : instance.text(text),
      ...(type === INT && (minimum !== 0 || maximum !== 0) ? { minimum, maximum } : {}),
      ...(choices.length > 0 ? { choices } : {}),
      scope: SCOPES[instance.u32(at + row.scopes) & 3],
      readOnly: (flags & 1) !== 0,
      takesEffectNow: (flags & 2) !== 0,
    };
  });
}

/** An etude_option_explanation: the value in each layer that has one, and which counts. */
export function unpackExplanation(instance, ptr) {
  const row = layouts.etude_option_explanation;
  const type = instance.i32(ptr + row.type);
  const set = instance.u32(ptr + row.is_set);
  const size = layouts.etude_option.size - layouts.etude_option.value;
  const layers = {};
  ORIGINS.forEach((origin, i) => {
    if ((set >> i) & 1) layers[origin] = unpackValue(instance, ptr + row.values + i * size, type);
  });
  const origin = ORIGINS[instance.i32(ptr + row.winner)];
  return { value: layers[origin], origin, layers };
}
