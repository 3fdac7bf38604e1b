/** Bytes of whatever names or holds a file. */

import { errorOf, show } from "./errors.js";

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
  return readBody(response, name);
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

/** Read a Blob, or the body of a Response: that may be gone. */
async function readBody(holder, name) {
  try {
    return new Uint8Array(await holder.arrayBuffer());
  } catch (cause) {
    throw errorOf("AccessFailed", `${name} can't be read: ${cause.message}`, { cause });
  }
}

/** Those of an array that was transferred are gone. */
function view(buffer, ...part) {
  try {
    return new Uint8Array(buffer, ...part);
  } catch (cause) {
    throw errorOf("InvalidArgument", `the bytes can't be read: ${cause.message}`, { cause });
  }
}

const kindOf = (value) => Object.prototype.toString.call(value);
const BUFFERS = ["[object ArrayBuffer]", "[object SharedArrayBuffer]"];

/** Is it one of what `bytesOf` reads? By what it can do, since those of other windows have classes of their own. */
function isSource(value) {
  const known = typeof value === "string" || ArrayBuffer.isView(value) || typeof value?.arrayBuffer === "function";
  return known || kindOf(value) === "[object URL]" || BUFFERS.includes(kindOf(value));
}

const SOURCES = "bytes, a Blob, a Response, a URL or a path";

/** The sources of `data`: several, one, or none. */
export function sourcesOf(data = []) {
  const sources = isSource(data) ? [data] : data;
  if (!Array.isArray(sources)) throw errorOf("InvalidType", `data is an array of files, each given as ${SOURCES}, not ${show(data)}`);
  const wrong = Array.from(sources).findIndex((source) => !isSource(source));
  if (wrong >= 0) throw errorOf("InvalidType", `data[${wrong}] is ${show(sources[wrong])}; a file is given as ${SOURCES}`);
  return sources;
}

/**
 * The bytes of an ArrayBuffer, a view of one, a Blob or File, a Response, a URL, or a string: in Node a path unless it is a URL,
 * elsewhere a URL.
 * @returns {Promise<Uint8Array>}
 */
export async function bytesOf(source) {
  if (!isSource(source)) throw errorOf("InvalidType", `a program is given as ${SOURCES}`);
  if (BUFFERS.includes(kindOf(source))) return view(source);
  if (ArrayBuffer.isView(source)) return view(source.buffer, source.byteOffset, source.byteLength);
  if (kindOf(source) === "[object Response]") return readResponse(source, source.url || "the response");
  if (typeof source?.arrayBuffer === "function") return readBody(source, source.name ?? "the Blob");
  const text = String(source);
  if (!inNode) return fetchBytes(text);
  if (!isUrl(text)) return readFile(text);
  return text.startsWith("file:") ? readFile(new URL(text)) : fetchBytes(text);
}

/** The module that the package carries. */
export async function compile(source = new URL("../etude.wasm", import.meta.url)) {
  if (kindOf(source) === "[object WebAssembly.Module]") return source;
  const bytes = await bytesOf(source);
  try {
    return await WebAssembly.compile(bytes);
  } catch (cause) {
    throw errorOf("InvalidArgument", `the source is no WebAssembly module: ${cause.message}`, { cause });
  }
}
