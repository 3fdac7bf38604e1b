/** Bytes of whatever names or holds a file. */

import { EtudeError, errorOf, show } from "./errors.js";

export const inNode = typeof process === "object" && process !== null && process.versions?.node !== undefined && !process.versions.bun;

function isUrl(text) {
  return /^[a-z][a-z0-9+.-]+:/i.test(text); // a letter and a colon is a drive of Windows
}

const PIECE = 2 ** 22; // bytes that are read of a file at a time

function unreadable(name, cause) {
  return errorOf(cause.code === "ENOENT" ? "NotFound" : "AccessFailed", `${name} can't be read: ${cause.message}`, { cause });
}

/** What a file of Node holds: its pieces share one buffer. It is opened when the first is asked for, so that none stays open. */
async function openFile(path) {
  const files = "node:fs/promises"; // not for bundlers to look for: a browser never comes here
  const { open, stat } = await import(/* webpackIgnore: true */ /* @vite-ignore */ files);
  const { size } = await stat(path).catch((cause) => Promise.reject(unreadable(path, cause)));
  return { size, pieces: piecesOfFile(open, path, Math.min(size || PIECE, PIECE)) }; // that of a pipe is 0
}

async function* piecesOfFile(open, path, size) {
  const buffer = new Uint8Array(size);
  let file;
  try {
    file = await open(path);
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, size);
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } catch (cause) {
    throw unreadable(path, cause);
  } finally {
    await file?.close();
  }
}

function checkResponse(response, name) {
  if (response.ok) return response;
  throw errorOf(response.status === 404 || response.status === 410 ? "NotFound" : "AccessFailed", `${name} can't be read: HTTP status ${response.status}`);
}

async function fetchUrl(url) {
  let response;
  try {
    response = await fetch(url);
  } catch (cause) {
    throw errorOf("AccessFailed", `${url} can't be read: ${cause.message}`, { cause });
  }
  return checkResponse(response, url);
}

/** The pieces of a Blob, or of the body of a Response: that may be gone. */
async function* piecesOfStream(holder, name) {
  try {
    const stream = typeof holder.stream === "function" ? holder.stream() : holder.body;
    if (stream === null || holder.bodyUsed === true) return yield new Uint8Array(await holder.arrayBuffer()); // empty, or an error
    const reader = stream.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } catch (cause) {
    if (cause instanceof EtudeError) throw cause;
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
 * What an ArrayBuffer, a view of one, a Blob or File, a Response, a URL, or a string holds: a string is in Node a path unless it
 * is a URL, elsewhere a URL. `{size, pieces}`: pieces are views that are good until the next one is asked for, `size` is how many
 * bytes they are likely to have, 0 where nobody says.
 * @returns {Promise<{size: number, pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>}>}
 */
export async function openSource(source) {
  if (!isSource(source)) throw errorOf("InvalidType", `a program is given as ${SOURCES}`);
  const bytes = bytesOf(source);
  if (bytes !== undefined) return { size: bytes.length, pieces: [bytes] };
  const response = await responseOf(source);
  if (response !== undefined) {
    // of a compressed answer it is the size of what is sent
    return { size: Number(response.headers.get("content-length")) || 0, pieces: piecesOfStream(response, response.url || "the response") };
  }
  if (typeof source?.arrayBuffer === "function") return { size: source.size ?? 0, pieces: piecesOfStream(source, source.name ?? "the Blob") };
  const text = String(source);
  return openFile(text.startsWith("file:") ? new URL(text) : text);
}

/** Those that are there already. */
function bytesOf(source) {
  if (BUFFERS.includes(kindOf(source))) return view(source);
  return ArrayBuffer.isView(source) ? view(source.buffer, source.byteOffset, source.byteLength) : undefined;
}

/** The answer for a source that is one, or a URL of the web. */
async function responseOf(source) {
  if (kindOf(source) === "[object Response]") return checkResponse(source, source.url || "the response");
  if (typeof source?.arrayBuffer === "function") return undefined;
  const text = String(source);
  return !inNode || (isUrl(text) && !text.startsWith("file:")) ? fetchUrl(text) : undefined;
}

/** All bytes of a source in one array. */
export async function readSource(source) {
  const { size, pieces } = await openSource(source);
  let [bytes, used] = [new Uint8Array(size), 0];
  for await (const piece of pieces) {
    if (used + piece.length > bytes.length) {
      const larger = new Uint8Array(Math.max(used + piece.length, 2 * bytes.length));
      larger.set(bytes.subarray(0, used));
      bytes = larger;
    }
    bytes.set(piece, used);
    used += piece.length;
  }
  return bytes.subarray(0, used);
}

/** Compiles while it is loaded, where the server says what it is. */
function compileResponse(response) {
  const type = (response.headers.get("content-type") ?? "").trim();
  if (type === "application/wasm" && typeof WebAssembly.compileStreaming === "function") return WebAssembly.compileStreaming(response);
  return readSource(response).then((bytes) => compileBytes(bytes, type));
}

function compileBytes(bytes, type = "") {
  if (bytes.length < 4 || bytes[0] !== 0 || bytes[1] !== 0x61) {
    const what = type === "" ? "" : `, it is ${type}`;
    throw errorOf("InvalidArgument", `the source is no WebAssembly module${what}: serve etude.wasm, and give compile() its URL (see "Bundlers" in the README)`);
  }
  return WebAssembly.compile(bytes);
}

const OWN = new URL("../etude.wasm", import.meta.url); // as bundlers know it

/** The module that the package carries. */
export async function compile(source = OWN) {
  if (kindOf(source) === "[object WebAssembly.Module]") return source;
  if (!isSource(source)) throw errorOf("InvalidType", `a module is given as ${SOURCES}`);
  const bytes = bytesOf(source);
  try {
    const response = bytes === undefined ? await responseOf(source) : undefined;
    return await (response === undefined ? compileBytes(bytes ?? (await readSource(source))) : compileResponse(response));
  } catch (cause) {
    // a bundler has left it behind, or a server does not have it
    if (cause.status === "NotFound" && source === OWN) cause.message += `: serve etude.wasm, and give compile() its URL (see "Bundlers" in the README)`;
    if (cause instanceof EtudeError) throw cause;
    if (!(cause instanceof WebAssembly.CompileError)) throw errorOf("AccessFailed", `the module can't be read: ${cause.message}`, { cause });
    throw errorOf("InvalidArgument", `the source is no WebAssembly module that runs here: ${cause.message}`, { cause });
  }
}
