/** A loaded method: inputs in, outputs out. */

import { errorOf, show } from "./errors.js";
import { dispose, Handle, watch } from "./handle.js";
import { describeMemory } from "./metadata.js";
import { packOptions, unpackExplanation, wantsWarning } from "./options.js";
import { settingsOf } from "./settings.js";
import { layouts } from "./structs.js";
import { Tensor } from "./tensor.js";
import { packInputs, unpackTensor, unpackValue } from "./values.js";

/** Most bytes that what never changes may take, so that it is computed once. */
const CONSTANT_LIMIT = 256 * 2 ** 20;
const ALL = 0xffffffff;

export class Method {
  #handle;
  #instance;
  #inputs;
  #infos;

  /** Use `Program.loadMethod`. `inputs` is `{block}`, the memory that the method's inputs are in. */
  constructor(program, instance, handle, info, inputs) {
    this.program = program;
    this.info = info;
    this.#instance = instance;
    this.#handle = handle;
    this.#inputs = inputs;
    this.#infos = info.inputs;
    watch(this, handle);
  }

  get name() {
    return this.info.name;
  }

  /**
   * Run it: one input for each of `info.inputs`, in order. An input tensor is a `Tensor`, a `{data, shape}`, a typed array alone
   * (of the input's largest shape), or nested arrays of numbers. Outputs are copies and stay as they are.
   */
  run(inputs = []) {
    this.setInputs(inputs);
    this.execute();
    return this.outputs;
  }

  /** Copy the inputs in, all or none of them. */
  setInputs(inputs) {
    const instance = this.#instance;
    this.#handle.check();
    if (!Array.isArray(inputs)) throw errorOf("InvalidType", "inputs are an array, in the order of info.inputs");
    const block = packInputs(instance, this.name, inputs, this.#infos);
    // the method goes on using those it has, where the new ones are refused
    let unused = block;
    try {
      // read late: a getter of an input may have disposed of the method
      instance.call("etude_method_set_inputs", this.#handle.live, block, this.#infos.length);
      unused = this.#inputs.block;
      this.#inputs.block = block;
    } finally {
      if (unused !== 0) instance.free(unused);
    }
  }

  /** Run it with the inputs that are set. */
  execute() {
    this.#instance.call("etude_method_execute", this.#handle.live);
  }

  /** Outputs of the last execution, copied. */
  get outputs() {
    const instance = this.#instance;
    const method = this.#handle.live;
    return instance.frame((frame) => {
      const value = frame.struct("etude_value");
      return Array.from({ length: instance.raw("etude_method_output_count", method) }, (_, i) => {
        instance.call("etude_method_get_output", method, i, value);
        return unpackValue(instance, value);
      });
    });
  }

  /** Run it once, instruction by instruction: `{outputs, instructions}`, the latter with number and milliseconds of each one run. */
  profile(inputs = []) {
    const instance = this.#instance;
    this.setInputs(inputs);
    const method = this.#handle.live;
    const instructions = [];
    try {
      for (;;) {
        const index = instance.raw("etude_method_position", method);
        const start = performance.now();
        instance.call("etude_method_step", method);
        instructions.push({ index, milliseconds: performance.now() - start });
      }
    } catch (error) {
      if (error.status !== "EndOfMethod") {
        instance.raw("etude_method_reset", method);
        throw error;
      }
    }
    const { outputs } = this;
    instance.raw("etude_method_reset", method);
    return { outputs, instructions };
  }

  /** Names of the state buffers: what the method keeps from one execution to the next. */
  get stateNames() {
    const instance = this.#instance;
    const count = instance.raw("etude_method_state_count", this.#handle.live);
    return instance.frame((frame) => {
      const out = frame.alloc(4);
      return Array.from({ length: count }, (_, i) => {
        instance.call("etude_method_state", this.#handle.live, i, out, 0);
        return instance.text(instance.u32(out));
      });
    });
  }

  #state(name, use) {
    const instance = this.#instance;
    return instance.frame((frame) => {
      const out = frame.alloc(4);
      const tensor = frame.struct("etude_tensor");
      instance.call("etude_method_find_state", this.#handle.live, frame.text(name), out);
      const index = instance.u32(out);
      instance.call("etude_method_state", this.#handle.live, index, 0, tensor);
      return use(index, tensor, frame);
    });
  }

  /** A copy of a state buffer. */
  getState(name) {
    return this.#state(name, (_, tensor) => unpackTensor(this.#instance, tensor));
  }

  /** Overwrite a state buffer with a tensor of its dtype and shape. */
  setState(name, given) {
    const instance = this.#instance;
    if (!(given instanceof Tensor)) throw errorOf("InvalidType", `a state is set to a Tensor, not to ${show(given)}`);
    const tensor = new Tensor(given.dtype, given.shape, given.data, given.dimOrder); // it may have been changed
    this.#state(name, (index, held, frame) => {
      const now = unpackTensor(instance, held);
      if (tensor.dtype !== now.dtype || tensor.shape.join() !== now.shape.join()) {
        throw errorOf("InvalidArgument", `state '${name}' is ${now.dtype} [${now.shape}], not ${tensor.dtype} [${tensor.shape}]`, { subject: name });
      }
      const data = tensor.rowMajorData;
      const ptr = frame.alloc(Math.max(data.byteLength, 1));
      if (data.byteLength > 0) instance.bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), ptr);
      instance.call("etude_method_write_state", this.#handle.live, index, ptr, data.byteLength);
    });
  }

  /** Take a state buffer, or all of them, back to what it held when the program was loaded. */
  resetState(name) {
    if (name === undefined) this.#instance.call("etude_method_reset_state", this.#handle.live, ALL);
    else this.#state(name, (index) => this.#instance.call("etude_method_reset_state", this.#handle.live, index));
  }

  /** Start the random numbers anew. */
  setSeed(seed) {
    const isWhole = typeof seed === "bigint" || Number.isInteger(seed);
    if (!isWhole || seed < -(2n ** 63n) || seed >= 2n ** 64n) {
      throw errorOf("InvalidArgument", `a seed is a whole number from -2^63 to 2^64 - 1, not ${show(seed)}`);
    }
    this.#instance.raw("etude_method_set_seed", this.#handle.live, BigInt.asUintN(64, BigInt(seed)));
  }

  /** Bytes that the method takes now, region by region. */
  get memory() {
    const instance = this.#instance;
    return instance.frame((frame) => {
      const info = frame.struct("etude_memory_info");
      const code = instance.raw("etude_method_memory", this.#handle.live, info);
      if (code !== 0) throw errorOf(instance.statusName(code), "the memory of the method can't be told");
      return describeMemory(instance, info);
    });
  }

  /** The value of an option as this method sees it, and where it comes from. */
  explainOption(backend, key) {
    const instance = this.#instance;
    return instance.frame((frame) => {
      const out = frame.struct("etude_option_explanation");
      instance.call("etude_method_explain_option", this.#handle.live, frame.text(backend), frame.text(key), out);
      return unpackExplanation(instance, out);
    });
  }

  /** Free the method now; else it is freed when it is collected, or its program disposed of. */
  dispose() {
    dispose(this.#handle);
  }
}
Method.prototype[Symbol.dispose ?? Symbol.for("Symbol.dispose")] = Method.prototype.dispose;

/** `least` is 1 where 0 would be the library's default. */
function writeLimit(view, at, limit, name, least = 1) {
  if (limit === undefined) return;
  if (!Number.isInteger(limit) || limit < least || limit >= 2 ** 63) {
    throw errorOf("InvalidArgument", `${name} is a whole number from ${least} to 2^63 - 1, not ${show(limit)}`, { subject: name });
  }
  view.setBigUint64(at, BigInt(limit), true);
}

const SETTINGS = ["options", "unusedOptions", "constantLimit", "memoryLimit", "instructionLimit", "workLimit"];

export function loadMethod(program, instance, parent, name, settings) {
  const known = settingsOf(settings, SETTINGS, "loadMethod");
  const { options, unusedOptions = "error", constantLimit = CONSTANT_LIMIT, memoryLimit, instructionLimit, workLimit } = known;
  const layout = layouts.etude_method_config;
  const ptr = instance.frame((frame) => {
    const config = frame.struct("etude_method_config");
    const rows = packOptions(frame, options);
    const out = frame.alloc(4);
    const text = frame.text(name);
    const { view } = instance;
    view.setUint32(config + layout.backend_options, rows.ptr, true);
    view.setUint32(config + layout.backend_options_count, rows.count, true);
    view.setUint8(config + layout.unused_options_warn, wantsWarning(unusedOptions));
    writeLimit(view, config + layout.constant_limit, constantLimit, "constantLimit", 0);
    writeLimit(view, config + layout.memory_limit, memoryLimit, "memoryLimit");
    writeLimit(view, config + layout.instruction_limit, instructionLimit, "instructionLimit");
    writeLimit(view, config + layout.work_limit, workLimit, "workLimit");
    instance.call("etude_method_load", parent.live, text, config, out);
    return instance.u32(out);
  });
  const inputs = { block: 0 };
  const handle = new Handle(
    `method '${name}'`,
    ptr,
    (method) => {
      instance.release("etude_method_free", method);
      if (inputs.block !== 0) instance.free(inputs.block);
    },
    parent,
  );
  return new Method(program, instance, handle, program.method(name), inputs);
}
