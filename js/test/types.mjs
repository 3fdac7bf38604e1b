// The types against the sources: `node types.mjs PACKAGE TYPESCRIPT`, folders of the package and of an installed typescript.
// types.ts must compile, and every export and every member that a class has must be declared, and no other.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const [folder, typescript] = process.argv.slice(2).map((name) => path.resolve(name));
const ts = createRequire(import.meta.url)(typescript);
const entries = {};
for (const [entry, { types, default: module }] of Object.entries(JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8")).exports)) {
  if (module?.endsWith(".js")) entries[path.posix.join("etude", entry)] = { file: path.join(folder, types), values: await import(pathToFileURL(path.join(folder, module))) };
}
const test = path.join(path.dirname(fileURLToPath(import.meta.url)), "types.ts");
// what the README begins with must compile, too
const begin = path.join(mkdtempSync(path.join(tmpdir(), "etude-")), "readme.ts");
writeFileSync(begin, /```js\n([^]*?)```/.exec(readFileSync(path.join(folder, "README.md"), "utf8"))[1]);
const program = ts.createProgram([test, begin], {
  strict: true, noEmit: true, target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler, types: [], paths: Object.fromEntries(Object.entries(entries).map(([entry, { file }]) => [entry, [file]])),
});
const problems = ts.getPreEmitDiagnostics(program).map((d) => `${path.basename(d.file?.fileName ?? "")}: ${ts.flattenDiagnosticMessageText(d.messageText, " ")}`);
rmSync(path.dirname(begin), { recursive: true });

const checker = program.getTypeChecker();
const isValue = (symbol) => (symbol.flags & ts.SymbolFlags.Value) !== 0;
const compare = (what, wanted, found) => {
  for (const name of wanted) if (!found.has(name)) problems.push(`${what}.${name} is not declared`);
  for (const name of found) if (!wanted.has(name)) problems.push(`${what}.${name} is declared, and not there`);
};
let [exported, members] = [0, 0];
const isMember = (name) => typeof name === "string" && name !== "constructor";
for (const [entry, { file, values }] of Object.entries(entries)) {
  const module = checker.getSymbolAtLocation(program.getSourceFile(file));
  const types = new Map(checker.getExportsOfModule(module).filter(isValue).map((symbol) => [symbol.name, symbol]));
  compare(entry, new Set(Object.keys(values)), new Set(types.keys()));
  exported += types.size;
  for (const [name, symbol] of types) {
    if (typeof values[name] !== "function" || (symbol.flags & ts.SymbolFlags.Class) === 0) continue;
    // properties that the constructor sets are declared readonly, and stand on no prototype
    const onPrototype = [...symbol.members.values()].filter((m) => (m.flags & (ts.SymbolFlags.Method | ts.SymbolFlags.Accessor)) !== 0);
    compare(name, new Set(Reflect.ownKeys(values[name].prototype).filter(isMember)), new Set(onPrototype.map((m) => m.name)));
    const statics = Reflect.ownKeys(values[name]).filter((key) => isMember(key) && !["length", "name", "prototype"].includes(key));
    compare(`${name} (static)`, new Set(statics), new Set([...symbol.exports.keys()].filter((key) => key !== "prototype")));
    members += onPrototype.length;
  }
}
for (const problem of problems) console.log(`FAILED ${problem}`);
console.log(`types (typescript ${ts.version}): ${exported} exports, ${members} methods and properties; ${problems.length === 0 ? 1 : 0} passed, ${problems.length} failed`);
process.exitCode = problems.length === 0 ? 0 : 1;
