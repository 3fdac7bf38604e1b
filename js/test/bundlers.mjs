// The package in bundlers, as strangers use it: node bundlers.mjs FOLDER OUT
//
// FOLDER has etude (its tarball installed), esbuild, vite and typescript in node_modules. OUT gets a page for each, whose title becomes
// what add.pte gives, for browser.py; the program for Node is run here, from ES modules and CommonJS, whole and bundled.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

const [folder, out] = process.argv.slice(2).map((name) => path.resolve(name));
const add = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../tests/corpus/add.pte");
const tool = (name) => path.join(folder, "node_modules", name);
const run = (program, ...args) => execFileSync(process.execPath, [program, ...args], { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
const esbuild = (options) => createRequire(path.join(folder, "package.json"))("esbuild").buildSync({ bundle: true, format: "esm", logLevel: "silent", absWorkingDir: folder, ...options });
const file = (name, text) => (writeFileSync(path.join(folder, name), text), path.join(folder, name));
const USE = `const [sum] = program.loadMethod().run([new Float32Array(6).fill(1), new Float32Array(6).fill(2)]);`;
const WANT = "[[3,3,3],[3,3,3]]";
const found = {};
const attempt = (name, act) => {
  try {
    found[name] = act() ?? "";
  } catch (error) {
    found[name] = `${error.message}\n${error.stdout ?? ""}${error.stderr ?? ""}`.slice(-1500);
  }
};
const prints = (...args) => {
  const got = run(...args).trim();
  return got === WANT ? "" : got;
};

cpSync(add, path.join(folder, "add.pte"));
const PRINT = `console.log(JSON.stringify(sum.toArray()));`;
const esm = file("use.mjs", `import { load } from "etude"; const program = await load("add.pte"); ${USE} ${PRINT}`);
const cjs = file("use.cjs", `import("etude").then(async ({ load }) => { const program = await load("add.pte"); ${USE} ${PRINT} });`);
attempt("Node, ES modules", () => prints(esm));
attempt("Node, CommonJS", () => prints(cjs));
const [major, minor] = process.versions.node.split(".").map(Number);
if (major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19)) {
  const required = file("required.cjs", `const { load } = require("etude"); load("add.pte").then((program) => { ${USE} ${PRINT} });`);
  attempt("Node, require", () => prints(required));
}
const whole = file("whole.mjs", `import { compile, load, Runtime } from "etude"; import wasm from "etude/etude.wasm";
  const runtime = await Runtime.create({ module: await compile(wasm) }); const program = await load("add.pte", { runtime }); ${USE} ${PRINT}`);
attempt("esbuild, one file for Node", () => {
  esbuild({ entryPoints: [whole], platform: "node", target: "node18", loader: { ".wasm": "binary" }, outfile: "one/whole.mjs" });
  return prints("one/whole.mjs");
});
for (const [kind, options] of [["nodenext", ["--module", "nodenext"]], ["bundler", ["--module", "esnext", "--moduleResolution", "bundler"]]]) {
  const source = file(`strict-${kind}.mts`, `import { load, Tensor } from "etude"; import { LLM } from "etude/llm"; import { readNpy } from "etude/npy"; import wasm from "etude/etude.wasm";
    const program = await load("add.pte"); const [sum] = program.loadMethod().run([await readNpy("a.npy")]);
    if (sum instanceof Tensor) console.log(sum.shape.length, LLM.name, typeof wasm);`);
  attempt(`TypeScript, ${kind}`, () => void run(path.join(tool("typescript"), "bin/tsc"), source, "--noEmit", "--strict", "--target", "es2022", ...options));
}

const page = (name, script) => `<!doctype html><title>${name}</title><script type="module" src="${script}"></script>`;
const shown = (where) => `const program = await load(${where}); ${USE} document.title = JSON.stringify(sum.toArray());`;
attempt("vite, build", () => {
  mkdirSync(path.join(folder, "site/public"), { recursive: true });
  cpSync(add, path.join(folder, "site/public/add.pte"));
  file("site/index.html", page("vite", "/main.js"));
  file("site/main.js", `import { load } from "etude"; ${shown('"add.pte"')}`);
  run(path.join(tool("vite"), "bin/vite.js"), "build", "site", "--base", "./", "--outDir", path.join(out, "vite"), "--emptyOutDir");
});
attempt("vite, the README's worker", () => {
  const readme = readFileSync(path.join(tool("etude"), "README.md"), "utf8");
  const [, onPage, inWorker] = /```js\n\/\/ page\.js\n([^`]*)\n\/\/ worker\.js\n([^`]*)```/.exec(readme);
  mkdirSync(path.join(folder, "threads/public"), { recursive: true });
  cpSync(add, path.join(folder, "threads/public/add.pte"));
  file("threads/index.html", page("worker", "/page.js"));
  file("threads/worker.js", inWorker);
  const given = onPage.replace('"model.pte"', 'String(new URL("add.pte", location.href))').replace("[new Float32Array(6)]", "[new Float32Array(6).fill(1), new Float32Array(6).fill(2)]");
  file("threads/page.js", given.replace("console.log(data)", "{ document.title = JSON.stringify([[...data.slice(0, 3)], [...data.slice(3)]]); }"));
  run(path.join(tool("vite"), "bin/vite.js"), "build", "threads", "--base", "./", "--outDir", path.join(out, "worker"), "--emptyOutDir");
});
attempt("esbuild, file beside", () => {
  const source = file("beside.js", `import { compile, load, Runtime } from "etude"; import wasm from "etude/etude.wasm";
    const runtime = await Runtime.create({ module: await compile(new URL(wasm, import.meta.url)) }); ${shown('"add.pte", { runtime }')}`);
  esbuild({ entryPoints: [source], loader: { ".wasm": "file" }, outfile: path.join(out, "esbuild/main.js") });
  writeFileSync(path.join(out, "esbuild/index.html"), page("esbuild", "main.js"));
  cpSync(add, path.join(out, "esbuild/add.pte"));
});
for (const [name, problem] of Object.entries(found)) if (problem !== "") console.log(`FAILED ${name}: ${problem}`);
const failed = Object.values(found).filter((problem) => problem !== "").length;
console.log(`package in bundlers and Node ${process.version}: ${Object.keys(found).length - failed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
