/** Bytes of whatever names or holds a file. */

import { errorOf } from "./errors.js";

const inNode = typeof process === "object" && process !== null && process.versions?.node !== undefined && !process.versions.bun;

function isUrl(text) {
  return /^[a-z][a-z0-9+.-]+:/i.test(text); // a letter and a colon is a drive of Windows
}

async function readFile(path) {
  const files = "node:fs/promises"; // not for bundlers to look for: a browser never comes here
  const { readFile: read } = await import(/* webpackIgnore: true */ /* @vite-ignore */ files);
  try {
    return await read(path);
  } catch (cause) {
    throw errorOf(cause.code === "ENOENT" ? "NotFound" : "AccessFailed", `${path} can't be read: ${cause.message}`, { cause });
  }
}

async function readResponse(response, name) {
  if (!response.ok) {
    throw errorOf(response.status === 404 || response.status === 410 ? "NotFound" : "AccessFailed", `${name} can't be read: HTTP status ${response.status}`);
  }
  return new Uint8Array(await response.arrayBuffer());
}

async function fetchBytes(url) {
  let response;
  try {
    response = await fetch(url);
  } catch (cause) {
    throw errorOf("AccessFailed", `${url} can't be read: ${cause.message}`, { cause });
  }
  return readResponse(response, url);
}

/**
 * The bytes of an ArrayBuffer, a view of one, a Blob or File, a Response, a URL, or a string: in Node a path unless it is a URL,
 * elsewhere a URL.
 * @returns {Promise<Uint8Array>}
 */
export async function bytesOf(source) {
  // by what they can do, since those of other windows have classes of their own
  const kind = Object.prototype.toString.call(source);
  if (kind === "[object ArrayBuffer]" || kind === "[object SharedArrayBuffer]") return new Uint8Array(source);
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  if (kind === "[object Response]") return readResponse(source, source.url || "the response");
  if (typeof source?.arrayBuffer === "function") return new Uint8Array(await source.arrayBuffer());
  if (kind === "[object URL]" || typeof source === "string") {
    const text = String(source);
    if (!inNode) return fetchBytes(text);
    if (!isUrl(text)) return readFile(text);
    return text.startsWith("file:") ? readFile(new URL(text)) : fetchBytes(text);
  }
  throw errorOf("InvalidType", "a program is given as bytes, a Blob, a Response, a URL or a path");
}

/** The module that the package carries. */
export async function compile(source = new URL("../etude.wasm", import.meta.url)) {
  if (Object.prototype.toString.call(source) === "[object WebAssembly.Module]") return source;
  return WebAssembly.compile(await bytesOf(source));
}
