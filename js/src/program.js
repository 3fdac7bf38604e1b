/** A program: its methods, what is known of them without loading, and loading. */

import { errorOf, show } from "./errors.js";
import { dispose, Handle, watch } from "./handle.js";
import { MethodInfo } from "./metadata.js";
import { loadMethod } from "./method.js";
import { packOptions, wantsWarning } from "./options.js";
import { openSource } from "./source.js";
import { layouts } from "./structs.js";

const VERIFICATION = ["Minimal", "InternalConsistency"];

export class Program {
  #handle;
  #instance;
  #methods;

  /** Use `load`. */
  constructor(runtime, instance, handle) {
    this.runtime = runtime;
    this.#instance = instance;
    this.#handle = handle;
    const count = instance.raw("etude_program_method_count", handle.ptr);
    this.#methods = Array.from({ length: count }, (_, i) => new MethodInfo(this, instance, handle, i));
    watch(this, handle);
  }

  /** What is known of each method. */
  get methods() {
    return this.#methods;
  }

  /** What is known of one method. */
  method(name) {
    const instance = this.#instance;
    const index = instance.frame((frame) => {
      const out = frame.alloc(4);
      instance.call("etude_program_find_method", this.#handle.live, frame.text(name), out);
      return instance.u32(out);
    });
    return this.#methods[index];
  }

  /** Load a method. The program stays as long as it is used. */
  loadMethod(name = "forward", settings) {
    return loadMethod(this, this.#instance, this.#handle, name, settings);
  }

  /** Free the program and the methods loaded from it. What is not disposed of is freed when it is collected. */
  dispose() {
    dispose(this.#handle);
  }
}
Program.prototype[Symbol.dispose ?? Symbol.for("Symbol.dispose")] = Program.prototype.dispose;

/**
 * Where the bytes of a source lie in memory of the module, `{ptr, size}`: they go there piece by piece, without a copy in between.
 * What goes beyond the likely size waits outside, since this memory never shrinks.
 */
async function keep(instance, source, kept) {
  const { size: likely, pieces } = await openSource(source);
  const take = (size) => {
    const ptr = instance.alloc(Math.max(size, 1));
    kept.add(ptr);
    return ptr;
  };
  const first = take(likely);
  const rest = [];
  let [used, size] = [0, 0];
  for await (const piece of pieces) {
    const fits = rest.length === 0 && used + piece.length <= likely;
    if (fits) instance.bytes.set(piece, first + used);
    else rest.push(piece.slice());
    used += fits ? piece.length : 0;
    size += piece.length;
  }
  if (rest.length === 0) return { ptr: first, size };
  const ptr = take(size);
  instance.bytes.copyWithin(ptr, first, first + used);
  for (const piece of rest) {
    instance.bytes.set(piece, ptr + used);
    used += piece.length;
  }
  kept.delete(first);
  instance.free(first);
  return { ptr, size };
}

/** Programs and their external data, all or none of them. */
async function keepAll(instance, sources, kept) {
  const results = await Promise.allSettled(sources.map((source) => keep(instance, source, kept)));
  const failed = results.find(({ status }) => status === "rejected");
  if (failed !== undefined) throw failed.reason;
  return results.map(({ value }) => value);
}

/** `sources` are the program and its external data. */
export async function loadProgram(runtime, instance, runtimePtr, sources, { options, unusedOptions, verification }) {
  const level = VERIFICATION.indexOf(verification);
  if (level < 0) throw errorOf("InvalidArgument", `verification is one of ${VERIFICATION.join(", ")}, not ${show(verification)}`);
  wantsWarning(unusedOptions);
  const kept = new Set(); // blocks that stay as long as the program
  let program = 0;
  try {
    const files = await keepAll(instance, sources, kept);
    program = instance.frame((frame) => {
      const loader = frame.alloc(layouts.etude_data_loader.size * files.length);
      files.forEach(({ ptr, size }, i) => instance.raw("etude_data_from_memory", loader + i * layouts.etude_data_loader.size, ptr, size));
      const layout = layouts.etude_program_config;
      const config = frame.struct("etude_program_config");
      const rows = packOptions(frame, options);
      const out = frame.alloc(4);
      const { view } = instance;
      view.setInt32(config + layout.verification, level, true);
      view.setUint32(config + layout.external, loader + layouts.etude_data_loader.size, true);
      view.setUint32(config + layout.external_count, files.length - 1, true);
      view.setUint32(config + layout.backend_options, rows.ptr, true);
      view.setUint32(config + layout.backend_options_count, rows.count, true);
      view.setUint8(config + layout.unused_options_warn, wantsWarning(unusedOptions));
      instance.call("etude_program_load", runtimePtr, loader, config, out);
      return instance.u32(out);
    });
  } finally {
    if (program === 0) for (const ptr of kept) instance.free(ptr);
  }
  const handle = new Handle("the program", program, (ptr) => {
    instance.release("etude_program_free", ptr);
    for (const block of kept) instance.free(block);
  });
  return new Program(runtime, instance, handle);
}
