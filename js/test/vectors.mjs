// Runs the kernels' test vectors in WebAssembly: node --no-warnings vectors.mjs check_vectors.wasm FOLDER_OF_VECTORS
import { readFile } from "node:fs/promises";
import { WASI } from "node:wasi";

const [program, vectors] = process.argv.slice(2);
const wasi = new WASI({ version: "preview1", args: ["check_vectors", "/vectors"], preopens: { "/vectors": vectors } });
const module = await WebAssembly.compile(await readFile(program));
process.exitCode = wasi.start(await WebAssembly.instantiate(module, wasi.getImportObject()));
