/** Objects of the C API that must be freed: when asked to, or when nobody can reach them any more. */

import { errorOf } from "./errors.js";

/** What is freed, without a reference to the object that stands for it. Children are freed first. */
export class Handle {
  #free;
  #parent;
  #children = new Set();

  /** @param {string} what as messages call it */
  constructor(what, ptr, free, parent) {
    this.what = what;
    this.ptr = ptr;
    this.#free = free;
    this.#parent = parent;
    parent?.#children.add(this);
  }

  /** An error, if it has been freed. */
  check() {
    if (this.ptr === 0) throw errorOf("InvalidState", `${this.what} has been disposed of`);
  }

  /** The pointer, of what has not been freed. */
  get live() {
    this.check();
    return this.ptr;
  }

  release() {
    if (this.ptr === 0) return;
    for (const child of this.#children) child.release();
    const ptr = this.ptr;
    this.ptr = 0;
    this.#parent?.#children.delete(this);
    this.#free(ptr);
  }
}

const registry = new FinalizationRegistry((handle) => {
  try {
    handle.release();
  } catch {
    // a broken instance: there is nobody to tell, and its memory goes as a whole
  }
});

/** Free `handle` when `object` is collected. */
export function watch(object, handle) {
  registry.register(object, handle, handle);
}

/** Free it now. */
export function dispose(handle) {
  registry.unregister(handle);
  handle.release();
}
