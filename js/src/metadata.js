/** What a program says of a method, without loading it. */

import { dtypeOfCode } from "./dtypes.js";
import { callInJavaScript } from "./messages.js";
import { layouts } from "./structs.js";

export const KINDS = [
  "none", "tensor", "string", "double", "int", "bool", "boolList", "doubleList", "intList", "tensorList", "none", "optionalTensorList",
];
const INSTRUCTIONS = ["", "kernel", "delegate", "move", "jumpFalse", "free"];
const DYNAMIC = 1;
const PLANNED = 4;
const CONSTANT = 8;
const STATE = 16;
const EXTERNAL = 64;
const NONE = 0xffffffff;
const NAME_BYTES = 128; // enough for every operator
const LISTS = new Set(["intList", "tensorList", "optionalTensorList"]);

/** The number, or text up to its NUL, of an etude_value of that kind; undefined for other kinds. */
export function scalarOf(instance, kind, value) {
  const at = value + layouts.etude_value.as;
  switch (kind) {
    case "int":
      return instance.i64(at);
    case "double":
      return instance.view.getFloat64(at, true);
    case "bool":
      return instance.bytes[at] !== 0;
    case "string":
      return instance.text(instance.u32(at));
    default:
      return undefined;
  }
}

function describeTensor(instance, ptr) {
  const info = layouts.etude_value_info;
  const rank = instance.u32(ptr + info.rank);
  const flags = instance.u32(ptr + info.flags);
  const name = instance.u32(ptr + info.name);
  const planned = (flags & PLANNED) !== 0;
  return {
    dtype: dtypeOfCode(instance.i32(ptr + info.scalar_type)).name,
    shape: Array.from({ length: rank }, (_, i) => instance.i32(ptr + info.sizes + 4 * i)),
    dynamic: (flags & DYNAMIC) !== 0,
    dimOrder: Array.from(instance.bytes.subarray(ptr + info.dim_order, ptr + info.dim_order + rank)),
    nbytes: instance.u64(ptr + info.nbytes),
    constant: (flags & CONSTANT) !== 0,
    state: (flags & STATE) !== 0,
    external: (flags & EXTERNAL) !== 0,
    ...(name === 0 ? {} : { name: instance.text(name) }),
    ...(planned ? { buffer: instance.u32(ptr + info.buffer), offset: instance.u64(ptr + info.buffer_offset) } : {}),
  };
}

/** An etude_value_info as a plain object. */
function describeValue(instance, ptr) {
  const info = layouts.etude_value_info;
  const kind = KINDS[instance.i32(ptr + info.tag)];
  const value = scalarOf(instance, kind, ptr + info.constant);
  return {
    index: instance.u32(ptr + info.value),
    kind,
    ...(kind === "tensor" ? describeTensor(instance, ptr) : {}),
    ...(value === undefined ? {} : { value }),
    ...(LISTS.has(kind) ? { length: instance.u32(ptr + info.item_count) } : {}),
  };
}

export class MethodInfo {
  #instance;
  #handle;
  #index;
  #counts;

  constructor(program, instance, handle, index) {
    this.program = program; // so that it stays
    this.#instance = instance;
    this.#handle = handle;
    this.#index = index;
    this.name = instance.text(instance.raw("etude_program_method_name", handle.ptr, index));
  }

  #count(member) {
    const instance = this.#instance;
    this.#counts ??= instance.frame((frame) => {
      const layout = layouts.etude_method_info;
      const info = frame.struct("etude_method_info");
      instance.call("etude_program_method_info", this.#handle.live, this.#index, info);
      return Object.fromEntries(Object.entries(layout).map(([name, offset]) => [name, name === "size" ? 0 : instance.u32(info + offset)]));
    });
    return this.#counts[member];
  }

  #describeAll(call, count) {
    const instance = this.#instance;
    return instance.frame((frame) => {
      const info = frame.struct("etude_value_info");
      return Array.from({ length: count }, (_, i) => {
        instance.call(call, this.#handle.live, this.#index, i, info);
        return describeValue(instance, info);
      });
    });
  }

  get inputs() {
    const inputs = this.#describeAll("etude_program_input_info", this.#count("input_count"));
    const open = inputs.filter(({ kind }) => kind === "none");
    if (open.length > 0) {
      const read = this.#read();
      for (const input of open) if (!read.has(input.index)) input.unused = true;
    }
    return inputs;
  }

  /** Numbers of the values that an instruction or the caller looks at. */
  #read() {
    const { values } = this;
    const read = new Set(this.outputs.map(({ index }) => index));
    for (const { arguments: indices } of this.instructions) {
      for (const index of indices) {
        read.add(index);
        for (const item of values[index]?.items ?? []) read.add(item);
      }
    }
    return read;
  }

  get outputs() {
    return this.#describeAll("etude_program_output_info", this.#count("output_count"));
  }

  /** All values that the method's instructions name, by number. */
  get values() {
    const values = this.#describeAll("etude_program_value_info", this.#count("value_count"));
    for (const value of values) if (value.length !== undefined) value.items = this.#items(value);
    return values;
  }

  #items(list) {
    const instance = this.#instance;
    return instance.frame((frame) => {
      const out = frame.alloc(4);
      return Array.from({ length: list.length }, (_, i) => {
        instance.call("etude_program_list_item", this.#handle.live, this.#index, list.index, i, out);
        const item = instance.u32(out);
        return item === NONE ? null : item;
      });
    });
  }

  /** Names of the operators, each once. */
  get operators() {
    return this.#names("etude_program_operator_name", this.#count("operator_count"));
  }

  #names(call, count) {
    const instance = this.#instance;
    return instance.frame((frame) => {
      const out = frame.alloc(NAME_BYTES);
      return Array.from({ length: count }, (_, i) => {
        instance.call(call, this.#handle.live, this.#index, i, out, NAME_BYTES);
        return instance.text(out);
      });
    });
  }

  /** Backend of each delegate. */
  get delegates() {
    const instance = this.#instance;
    return instance.frame((frame) => {
      const out = frame.alloc(4);
      return Array.from({ length: this.#count("delegate_count") }, (_, i) => {
        instance.call("etude_program_delegate_backend", this.#handle.live, this.#index, i, out);
        return instance.text(instance.u32(out));
      });
    });
  }

  /** Operators, with dtypes, that this build has no kernel for: with one of them the method can't be loaded. */
  get missingOperators() {
    const instance = this.#instance;
    const found = [];
    instance.frame((frame) => {
      const out = frame.alloc(NAME_BYTES * 2);
      try {
        for (;;) {
          instance.call("etude_program_missing_operator", this.#handle.live, this.#index, found.length, out, NAME_BYTES * 2);
          found.push(callInJavaScript(instance.text(out)));
        }
      } catch (error) {
        if (error.status !== "NotFound") throw error;
      }
    });
    return found;
  }

  /** What is run, in order: `{kind, name, arguments}` with numbers of values. */
  get instructions() {
    const instance = this.#instance;
    const count = this.#count("instruction_count");
    const layout = layouts.etude_instruction_info;
    const names = { kernel: this.operators, delegate: this.delegates };
    return instance.frame((frame) => {
      const infos = frame.struct("etude_instruction_info", count);
      if (count > 0) instance.call("etude_program_instructions", this.#handle.live, this.#index, 0, infos, count);
      return Array.from({ length: count }, (_, i) => {
        const at = infos + i * layout.size;
        const kind = INSTRUCTIONS[instance.i32(at + layout.kind)];
        const index = instance.u32(at + layout.index);
        const args = instance.u32(at + layout.arguments) || at + layout.operands;
        const listed = Array.from({ length: instance.u32(at + layout.argument_count) }, (__, k) => instance.u32(args + 4 * k));
        return {
          kind,
          name: names[kind]?.[index] ?? kind,
          arguments: listed,
          ...(kind === "jumpFalse" ? { target: index } : {}),
        };
      });
    });
  }

  /** Bytes of each planned buffer. */
  get buffers() {
    const instance = this.#instance;
    return instance.frame((frame) => {
      const out = frame.alloc(8);
      return Array.from({ length: this.#count("buffer_count") }, (_, i) => {
        instance.call("etude_program_buffer_size", this.#handle.live, this.#index, i, out);
        return instance.u64(out);
      });
    });
  }

  /** Bytes that loading and running the method would take; what backends take is not known before. */
  get memory() {
    const instance = this.#instance;
    return instance.frame((frame) => {
      const info = frame.struct("etude_memory_info");
      instance.call("etude_program_method_memory", this.#handle.live, this.#index, info);
      return describeMemory(instance, info);
    });
  }
}

/** An etude_memory_info as a plain object. */
export function describeMemory(instance, info) {
  const { size, struct_size, ...regions } = layouts.etude_memory_info;
  return Object.fromEntries(Object.entries(regions).map(([name, offset]) => [name, instance.u64(info + offset)]));
}
