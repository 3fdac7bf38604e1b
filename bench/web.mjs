#!/usr/bin/env node
// Networks in WebAssembly: etude's package and onnxruntime-web, in turns in one process of Node, one thread each.
//
//   npm install --prefix FOLDER onnxruntime-web
//   node bench/web.mjs PACKAGE FOLDER/node_modules/onnxruntime-web NETWORKS [NAME...]
//
// PACKAGE is what js/build made. NETWORKS has for each NAME what bench/network_export.py writes: NAME.onnx, NAME.pte (portable
// operators) and NAME_x.pte (XnnpackBackend). Times are CPU time of a run, the median of ROUNDS; ratios are onnxruntime's
// time by etude's. Outputs for made-up inputs are compared.
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";

const ROUNDS = 15;
const [folder, peer, networks, ...names] = process.argv.slice(2);
const { load, Tensor } = await import(pathToFileURL(path.resolve(folder, "src/index.js")));
const ort = await import(pathToFileURL(path.resolve(peer, "dist/ort.wasm.min.mjs")));
ort.env.wasm.numThreads = 1;
ort.env.wasm.wasmPaths = String(pathToFileURL(path.resolve(peer, "dist") + path.sep));

const median = (numbers) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1];
const size = (shape) => shape.reduce((a, b) => a * b, 1);

/** Milliseconds of CPU time of an act. */
async function cost(act) {
  const before = process.cpuUsage();
  await act();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

function made({ dtype, shape }) {
  const whole = dtype.startsWith("int");
  return Tensor.from(Array.from({ length: size(shape) }, (_, i) => (whole ? 1 : Math.sin(i))), { dtype, shape });
}

function furthest(a, b) {
  return a.reduce((most, value, i) => Math.max(most, Math.abs(value - b[i])), 0);
}

for (const name of names.length > 0 ? names : ["mobilenet_v2", "minilm", "resnet_50"]) {
  const file = (ending) => path.join(networks, `${name}${ending}`);
  const programs = {};
  for (const [what, ending] of [["portable", ".pte"], ["delegated", "_x.pte"]]) {
    if (existsSync(file(ending))) programs[what] = (await load(file(ending))).loadMethod();
  }
  const inputs = Object.values(programs)[0].info.inputs.map(made);
  const session = await ort.InferenceSession.create(await readFile(file(".onnx")));
  const feeds = Object.fromEntries(session.inputNames.map((key, i) => [key, new ort.Tensor(inputs[i].dtype, inputs[i].data, inputs[i].shape)]));
  const runs = { "onnxruntime-web": async () => (await session.run(feeds))[session.outputNames[0]].data };
  for (const [what, method] of Object.entries(programs)) runs[what] = async () => method.run(inputs)[0].toFloat32();
  const times = Object.fromEntries(Object.keys(runs).map((what) => [what, []]));
  const want = await runs["onnxruntime-web"]();
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [what, run] of Object.entries(runs)) {
      const spent = await cost(run);
      if (round > 0) times[what].push(spent); // the first one warms up
    }
  }
  for (const [what, run] of Object.entries(runs)) {
    const ratio = median(times[what].map((spent, i) => times["onnxruntime-web"][i] / spent));
    console.log(`${name.padEnd(14)} ${what.padEnd(16)} ${median(times[what]).toFixed(1).padStart(7)} ms  ${ratio.toFixed(2)} x  off by ${furthest(await run(), want).toExponential(1)}`);
  }
  await session.release();
  for (const method of Object.values(programs)) method.program.dispose();
}
