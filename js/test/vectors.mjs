// Runs the kernels' test vectors in WebAssembly: node --no-warnings vectors.mjs check_vectors.wasm FOLDER_OF_VECTORS
// Prints what the program says, and its line of the table of targets (tests/systems/matrix.py).
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { WASI } from "node:wasi";

const [program, vectors] = process.argv.slice(2);
const folder = mkdtempSync(path.join(tmpdir(), "etude-"));
const said = path.join(folder, "said");
const stdout = openSync(said, "w");
try {
  const wasi = new WASI({ version: "preview1", args: ["check_vectors", "/vectors"], preopens: { "/vectors": vectors }, stdout });
  const bytes = readFileSync(program);
  const instance = await WebAssembly.instantiate(await WebAssembly.compile(bytes), wasi.getImportObject());
  process.exitCode = wasi.start(instance);
  const text = readFileSync(said, "utf8");
  process.stdout.write(text);
  const [, passed, failed] = /^(\d+) passed, (\d+) failed$/m.exec(text) ?? [];
  const number = (n) => Number(n).toLocaleString("en");
  const memory = `module's memory ${(instance.exports.memory.buffer.byteLength / 1e6).toFixed(1)} MB`;
  const cells = ["wasm32, kernels", `WASI of Node ${process.version}`, `${number(passed)} calls right, ${failed} wrong`, "vectors of PyTorch", `program ${number(bytes.length)} B`, memory];
  console.log(`matrix: ${cells.join(" | ")}`);
} finally {
  closeSync(stdout);
  rmSync(folder, { recursive: true });
}
