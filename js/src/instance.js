/** An instance of the WebAssembly module: its memory, and calls whose failures are exceptions. */

import { EtudeError, errorOf, show } from "./errors.js";
import { inJavaScript } from "./messages.js";
import { layouts } from "./structs.js";

const ERROR_BYTES = 8192; // long enough for the lists of operators that some messages are
const NO_OFFSET = 0xffffffffffffffffn;
const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** Addresses have 32 bits: a size beyond them would wrap around. */
const MOST_BYTES = 2 ** 32 - 1;

/** Bytes by which memory grows. */
const PAGE = 65536;

/** ABI of the C library that these sources are written for. */
const ABI_VERSION = 2;

function exportsOf(module) {
  if (Object.prototype.toString.call(module) !== "[object WebAssembly.Module]") {
    throw errorOf("InvalidType", `a module is what compile(source) gives, a WebAssembly.Module, not ${show(module)}`);
  }
  const names = new Set(WebAssembly.Module.exports(module).map(({ name }) => name));
  if (!["memory", "_initialize", "etude_abi_version", "etude_js_runtime", "etude_js_limit"].every((name) => names.has(name))) {
    throw errorOf("InvalidArgument", "the module is another than etude.wasm of this package");
  }
  try {
    return new WebAssembly.Instance(module, {}).exports;
  } catch (cause) {
    if (cause instanceof RangeError) throw errorOf("MemoryAllocationFailed", `no memory for an instance of the module: ${cause.message}`, { cause });
    throw errorOf("InvalidArgument", `the module can't be instantiated: ${cause.message}`, { cause });
  }
}

export class Instance {
  #view;
  #bytes;
  #broken;

  /**
   * @param {WebAssembly.Module} module
   * @param {number} [limit] most bytes of its memory
   */
  constructor(module, limit = MOST_BYTES) {
    if (!Number.isInteger(limit) || limit < PAGE || limit > 2 ** 32) {
      throw errorOf("InvalidArgument", `memoryLimit is a whole number from ${PAGE} to 2^32, not ${show(limit)}`, { subject: "memoryLimit" });
    }
    this.module = module;
    this.limit = limit;
    this.exports = exportsOf(module);
    this.exports._initialize();
    const abi = this.exports.etude_abi_version();
    if (abi !== ABI_VERSION) throw new EtudeError(`the module has version ${abi} of the binary interface, and this package needs ${ABI_VERSION}`);
    this.#renew();
    this.exports.etude_js_limit(Math.floor(limit / PAGE));
    this.errorPtr = this.alloc(ERROR_BYTES);
  }

  #renew() {
    this.#view = new DataView(this.exports.memory.buffer);
    this.#bytes = new Uint8Array(this.exports.memory.buffer);
  }

  /** The memory as it is now: not to be kept over a call, which may let it grow. */
  get view() {
    if (this.#view.buffer !== this.exports.memory.buffer) this.#renew();
    return this.#view;
  }

  get bytes() {
    if (this.#view.buffer !== this.exports.memory.buffer) this.#renew();
    return this.#bytes;
  }

  /** Call an exported function; pointers and numbers that it returns are unsigned. */
  raw(name, ...args) {
    if (this.#broken !== undefined) throw new EtudeError("the module has failed before; a new Runtime is needed", { cause: this.#broken });
    try {
      const result = this.exports[name](...args);
      return typeof result === "number" ? result >>> 0 : result;
    } catch (cause) {
      // a trap leaves the instance in the middle of something: nothing that it holds can be trusted any more
      this.#broken = cause;
      throw new EtudeError(`the module failed in ${name}: ${cause.message}`, { cause });
    }
  }

  /** Has a trap ended the use of this instance? */
  get isBroken() {
    return this.#broken !== undefined;
  }

  /** Call a function that frees something: nothing, where the whole instance is lost. */
  release(name, ptr) {
    if (!this.isBroken) this.raw(name, ptr);
  }

  /** Call a function that returns a status and takes an error report last. */
  call(name, ...args) {
    const error = layouts.etude_error;
    this.view.setUint32(this.errorPtr + error.struct_size, ERROR_BYTES, true);
    this.bytes[this.errorPtr + error.message] = 0;
    const code = this.raw(name, ...args, this.errorPtr);
    if (code !== 0) throw this.#report(code, name);
  }

  #report(code, name) {
    const error = layouts.etude_error;
    const status = this.statusName(code);
    const offset = this.view.getBigUint64(this.errorPtr + error.offset, true);
    return errorOf(status, inJavaScript(this.text(this.errorPtr + error.message)) || `${name} failed: ${status}`, {
      subject: this.text(this.errorPtr + error.subject),
      offset: offset === NO_OFFSET ? undefined : Number(offset),
    });
  }

  /** Name of a status, as ExecuTorch spells it. */
  statusName(code) {
    return this.text(this.raw("etude_status_name", code));
  }

  /** Memory of the module, to be given back with `free`. */
  alloc(size) {
    const ptr = size <= MOST_BYTES ? this.raw("etude_js_alloc", size) : 0;
    if (ptr === 0) {
      const most = this.limit >= MOST_BYTES ? "4 GiB" : `${this.limit}, the memoryLimit of its Runtime`;
      throw errorOf("MemoryAllocationFailed", `no ${size} bytes of the module's memory are left; it has ${this.bytes.length}, and at most ${most}`);
    }
    return ptr;
  }

  free(ptr) {
    this.release("etude_js_free", ptr);
  }

  /** Run `body` with a frame: memory that is given back at the end. */
  frame(body) {
    const frame = new Frame(this);
    try {
      return body(frame);
    } finally {
      frame.release();
    }
  }

  /** A C string. */
  text(ptr) {
    const end = this.bytes.indexOf(0, ptr);
    return decoder.decode(this.bytes.subarray(ptr, end));
  }

  u32(ptr) {
    return this.view.getUint32(ptr, true);
  }

  i32(ptr) {
    return this.view.getInt32(ptr, true);
  }

  /** A 64-bit size, offset or count: those of a 32-bit memory are exact. */
  u64(ptr) {
    return Number(this.view.getBigUint64(ptr, true));
  }

  i64(ptr) {
    return this.view.getBigInt64(ptr, true);
  }
}

/** Zeroed memory for the arguments of a call. */
class Frame {
  #blocks = [];

  constructor(instance) {
    this.instance = instance;
  }

  alloc(size) {
    const ptr = this.instance.alloc(size);
    this.#blocks.push(ptr);
    this.instance.bytes.fill(0, ptr, ptr + size);
    return ptr;
  }

  /** A struct of the C API whose `struct_size`, if it has one, is filled in. */
  struct(name, count = 1) {
    const layout = layouts[name];
    const ptr = this.alloc(layout.size * count);
    for (let i = 0; i < count && layout.struct_size !== undefined; i++) {
      this.instance.view.setUint32(ptr + i * layout.size + layout.struct_size, layout.size, true);
    }
    return ptr;
  }

  /** A C string. */
  text(value) {
    if (typeof value !== "string") throw errorOf("InvalidType", `a name or a text is a string, not ${show(value)}`);
    const bytes = encoder.encode(value);
    if (bytes.includes(0)) throw errorOf("InvalidArgument", `'${value}' has a NUL within`);
    const ptr = this.alloc(bytes.length + 1);
    this.instance.bytes.set(bytes, ptr);
    return ptr;
  }

  release() {
    for (const ptr of this.#blocks) {
      try {
        this.instance.free(ptr);
      } catch {
        return; // the instance is broken, which the exception on its way says
      }
    }
  }
}
