// Runs the corpus through js/: languages.py says what is expected of a runner. Node runs it as a program, a page imports it.
//
//   node run_case.mjs PACKAGE MODEL CALLS OUT [DATA.ptd...]    PACKAGE: the folder that js/build made
//   node run_case.mjs PACKAGE --errors MODEL

const DTYPES = [
  "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32", "complex64", "complex128", "bool",
];
DTYPES[15] = "bfloat16";
const ARRAYS = {
  uint8: Uint8Array, int8: Int8Array, int16: Int16Array, int32: Int32Array, int64: BigInt64Array, float16: Uint16Array,
  float32: Float32Array, float64: Float64Array, bool: Uint8Array, bfloat16: Uint16Array,
};

/** Reads the format of examples/run_arena.c. */
class Reader {
  constructor(bytes) {
    this.bytes = new Uint8Array(bytes); // a Buffer's slices would share its memory
    this.view = new DataView(this.bytes.buffer);
    this.at = 0;
  }
  skip(size) {
    this.at += size;
    return this.at - size;
  }
  u32() {
    return this.view.getUint32(this.skip(4), true);
  }
  i64() {
    return this.view.getBigInt64(this.skip(8), true);
  }
  text() {
    const size = this.u32();
    const at = this.skip(size);
    return new TextDecoder().decode(this.bytes.subarray(at, at + size));
  }
  value(Tensor) {
    const kind = this.u32();
    switch (kind) {
      case 0: return null;
      case 1: return this.tensor(Tensor);
      case 2: return this.text();
      case 3: return this.view.getFloat64(this.skip(8), true);
      case 4: return this.i64();
      case 5: return this.i64() !== 0n;
      default: throw new Error(`a value of unknown kind ${kind}`);
    }
  }
  tensor(Tensor) {
    const dtype = DTYPES[this.u32()];
    const rank = this.u32();
    const shape = Array.from({ length: rank }, () => this.u32());
    const order = Array.from({ length: rank }, () => this.u32());
    const size = this.u32();
    this.at = Math.ceil(this.at / 16) * 16;
    const at = this.skip(size);
    const data = new ARRAYS[dtype](this.bytes.slice(at, at + size).buffer);
    return new Tensor(dtype, shape, data, order);
  }
}

class Writer {
  constructor() {
    this.parts = [];
    this.size = 0;
  }
  bytes(bytes) {
    this.parts.push(bytes);
    this.size += bytes.length;
  }
  u32(number) {
    this.bytes(new Uint8Array(Uint32Array.of(number).buffer));
  }
  i64(number) {
    this.bytes(new Uint8Array(BigInt64Array.of(number).buffer));
  }
  value(value, Tensor) {
    if (value === null) this.u32(0);
    else if (value instanceof Tensor) this.tensor(value);
    else if (typeof value === "string") {
      const text = new TextEncoder().encode(value);
      this.u32(2);
      this.u32(text.length);
      this.bytes(text);
    } else if (typeof value === "number") {
      this.u32(3);
      this.bytes(new Uint8Array(Float64Array.of(value).buffer));
    } else {
      this.u32(typeof value === "bigint" ? 4 : 5);
      this.i64(BigInt(value));
    }
  }
  tensor({ dtype, shape, data }) {
    this.u32(1);
    this.u32(DTYPES.indexOf(dtype));
    this.u32(shape.length);
    for (const size of shape) this.u32(size);
    for (let i = 0; i < shape.length; i++) this.u32(i);
    this.u32(data.byteLength);
    this.bytes(new Uint8Array((16 - (this.size % 16)) % 16));
    this.bytes(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  }
  join() {
    const all = new Uint8Array(this.size);
    let at = 0;
    for (const part of this.parts) {
      all.set(part, at);
      at += part.length;
    }
    return all;
  }
}

/** Outputs of the calls of a case, in the format of examples/run_arena.c. */
export async function runCase(etude, model, calls, data) {
  const program = await etude.load(model, { data });
  const methods = new Map();
  const [input, output] = [new Reader(calls), new Writer()];
  for (let left = input.u32(); left > 0; left--) {
    const name = input.text();
    if (!methods.has(name)) methods.set(name, program.loadMethod(name));
    const inputs = Array.from({ length: input.u32() }, () => input.value(etude.Tensor));
    const outputs = methods.get(name).run(inputs);
    output.u32(outputs.length);
    for (const value of outputs) output.value(value, etude.Tensor);
  }
  program.dispose();
  return output.join();
}

/** What happens in the steps of ERRORS in errors.py, a line for each. `model` is a path or URL, `bytes` what it names. */
export async function reportErrors(etude, model, bytes) {
  const [xnn, mode] = ["XnnpackBackend", "workspace_sharing_mode"];
  const lines = [];
  const runtime = await etude.Runtime.create();
  const attempt = async (what, act) => {
    try {
      await act();
      lines.push(`${what}: ok`);
    } catch (error) {
      lines.push(error instanceof etude.EtudeError ? `${what}: ${error.status} '${error.subject}' ${error.message}` : `${what}: ${error}`);
    }
  };
  await attempt("set", () => runtime.setOption(xnn, mode, 1));
  lines.push(`get: ${runtime.getOption(xnn, mode)}`);
  await attempt("set out of range", () => runtime.setOption(xnn, mode, 3));
  await attempt("set of wrong type", () => runtime.setOption(xnn, mode, "one"));
  await attempt("set unknown key", () => runtime.setOption(xnn, "workspace_mode", 1));
  await attempt("set unknown backend", () => runtime.setOption("XnnBackend", mode, 1));
  await attempt("set with one unknown", () => runtime.setOptions({ [xnn]: { [mode]: 2, none: true } }));
  await attempt("set long key", () => runtime.setOption(xnn, "k".repeat(64), 1));
  await attempt("set empty key", () => runtime.setOption(xnn, "", 1));
  await attempt("get unknown key", () => runtime.getOption(xnn, "workspace_mode"));
  await attempt("reset unknown key", () => runtime.resetOptions(xnn, "workspace_mode"));
  await attempt("schema of unknown backend", () => runtime.optionSchema("XnnBackend"));
  lines.push(`get: ${runtime.getOption(xnn, mode)}`);
  await attempt("reset", () => runtime.resetOptions(xnn));
  lines.push(`get: ${runtime.getOption(xnn, mode)}`);
  const program = await runtime.load(model);
  const load = (options) => program.loadMethod("forward", { options }).dispose();
  await attempt("load", () => load({ [xnn]: { [mode]: 0 } }));
  await attempt("load out of range", () => load({ [xnn]: { [mode]: 3 } }));
  await attempt("load unused option", () => load({ NullBackend: { key: 1 } }));
  await attempt("load unknown method", () => program.loadMethod("backward"));
  await attempt("load within 100 bytes", () => program.loadMethod("forward", { constantLimit: 0, memoryLimit: 100 }));
  await attempt("describe unknown method", () => program.method("backward"));
  const method = program.loadMethod("forward");
  await attempt("execute without inputs", () => method.execute());
  await attempt("too few inputs", () => method.run([]));
  await attempt("explain unknown key", () => method.explainOption(xnn, "workspace_mode"));
  await attempt("reset unknown state", () => method.resetState("cache"));
  await attempt("input of wrong type", () => method.run([1]));
  await attempt("input of wrong dtype", () => method.run([new etude.Tensor("int64", [2, 3], new BigInt64Array(6))]));
  const open = async (source, data = []) => (await runtime.load(source, { data })).loadMethod("forward").program.dispose();
  await attempt("no such file", () => open(`${model}.missing`));
  await attempt("no such data file", () => open(model, [`${model}.ptd`]));
  await attempt("copied", () => open(bytes));
  await attempt("cut short", () => open(bytes.subarray(0, bytes.length >> 1)));
  await attempt("no program", () => open(new TextEncoder().encode("not a program")));
  program.dispose();
  return lines;
}

async function main([folder, ...args]) {
  const { readFile, writeFile } = await import("node:fs/promises");
  const { pathToFileURL } = await import("node:url");
  const etude = await import(pathToFileURL(`${folder}/src/index.js`));
  if (args.length === 2 && args[0] === "--errors") {
    console.log((await reportErrors(etude, args[1], await readFile(args[1]))).join("\n"));
  } else {
    const [model, calls, out, ...data] = args;
    await writeFile(out, await runCase(etude, model, await readFile(calls), data));
    console.log(`memory ${(await etude.defaultRuntime()).memoryBytes}`);
  }
}

if (typeof process === "object" && import.meta.url.endsWith(process.argv[1]?.replaceAll("\\", "/") ?? "-")) {
  main(process.argv.slice(2)).catch((error) => {
    console.error(`${error.name}: ${error.message}`);
    process.exitCode = 1;
  });
}
