/** A runtime: an instance of the module with its kernels and backends, options, and the programs loaded into it. */

import { errorOf, show } from "./errors.js";
import { Instance } from "./instance.js";
import { packOptions, unpackSchema, unpackValue } from "./options.js";
import { loadProgram } from "./program.js";
import { settingsOf } from "./settings.js";
import { compile, sourcesOf } from "./source.js";
import { layouts } from "./structs.js";

const SETTINGS = ["data", "options", "unusedOptions", "verification"];

export class Runtime {
  #instance;
  #ptr;

  /** Use `Runtime.create`. */
  constructor(instance) {
    this.#instance = instance;
    this.#ptr = instance.frame((frame) => {
      const out = frame.alloc(4);
      instance.call("etude_js_runtime", out);
      return instance.u32(out);
    });
  }

  /**
   * A runtime of its own, with memory of its own. `module` is what `compile` gives, here or in another thread; `memoryLimit` the
   * most bytes that its memory may grow to.
   */
  static async create(settings) {
    const { module, memoryLimit } = settingsOf(settings, ["module", "memoryLimit"], "Runtime.create");
    return new Runtime(new Instance(module ?? (await compile()), memoryLimit));
  }

  /** The compiled module: can be posted to workers, which then need not compile it again. */
  get module() {
    return this.#instance.module;
  }

  /** Has the module failed within? Then nothing of this runtime works any more, and another one is needed. */
  get failed() {
    return this.#instance.isBroken;
  }

  get version() {
    return this.#instance.text(this.#instance.raw("etude_version"));
  }

  /** Names of the backends. */
  get backends() {
    const count = this.#instance.raw("etude_runtime_backend_count", this.#ptr);
    return Array.from({ length: count }, (_, i) => this.#instance.text(this.#instance.raw("etude_runtime_backend_name", this.#ptr, i)));
  }

  /** Number of operators. */
  get kernelCount() {
    return this.#instance.raw("etude_runtime_kernel_count", this.#ptr);
  }

  /** Bytes that the module's memory has: it grows, and never shrinks. */
  get memoryBytes() {
    return this.#instance.bytes.length;
  }

  /** Load a program. See `load` of the package. */
  async load(source, settings) {
    const { data, options, unusedOptions = "error", verification = "Minimal" } = settingsOf(settings, SETTINGS, "load");
    return loadProgram(this, this.#instance, this.#ptr, [source, ...sourcesOf(data)], { options, unusedOptions, verification });
  }

  /** The keys that a backend understands. */
  optionSchema(backend) {
    const instance = this.#instance;
    return instance.frame((frame) => {
      const out = frame.alloc(8);
      instance.call("etude_runtime_option_schema", this.#ptr, frame.text(backend), out, out + 4);
      return unpackSchema(instance, instance.u32(out), instance.u32(out + 4));
    });
  }

  /** Set options of one or several backends for all methods loaded later, all or none of them. */
  setOptions(options) {
    this.#instance.frame((frame) => {
      const rows = packOptions(frame, options);
      this.#instance.call("etude_runtime_set_option", this.#ptr, rows.ptr, rows.count);
    });
  }

  setOption(backend, key, value) {
    for (const name of [backend, key]) {
      if (typeof name !== "string") throw errorOf("InvalidType", `a backend and its key are strings, not ${show(name)}`);
    }
    this.setOptions({ [backend]: { [key]: value } });
  }

  /** The value that counts for methods loaded now. */
  getOption(backend, key) {
    const instance = this.#instance;
    const layout = layouts.etude_option;
    return instance.frame((frame) => {
      const item = frame.struct("etude_option");
      const name = frame.text(key);
      const end = instance.bytes.indexOf(0, name);
      instance.bytes.copyWithin(item + layout.key, name, Math.min(end, name + layout.type - 1));
      instance.call("etude_runtime_get_option", this.#ptr, frame.text(backend), item);
      return unpackValue(instance, item + layout.value, instance.i32(item + layout.type));
    });
  }

  /** Take options of a backend back to their defaults: one, or all that can be set. */
  resetOptions(backend, key) {
    this.#instance.frame((frame) => {
      this.#instance.call("etude_runtime_reset_option", this.#ptr, frame.text(backend), key === undefined ? 0 : frame.text(key));
    });
  }
}

let shared;
let made; // what `shared` became

/** The runtime of this thread that `load` uses. It is made when first asked for, and anew where it has failed. */
export function defaultRuntime() {
  if (made?.failed) shared = undefined;
  shared ??= Runtime.create({ module: made?.module }).then((runtime) => (made = runtime));
  shared.catch(() => (shared = undefined)); // so that it can be tried again
  return shared;
}

/**
 * Load a program into the runtime of this thread, or into `options.runtime`.
 * @returns {Promise<import("./program.js").Program>}
 */
export async function load(source, options) {
  const { runtime, ...settings } = settingsOf(options, [...SETTINGS, "runtime"], "load");
  if (runtime !== undefined && typeof runtime?.load !== "function") throw errorOf("InvalidType", "the runtime of load is a Runtime, as Runtime.create gives");
  return (runtime ?? (await defaultRuntime())).load(source, settings);
}
