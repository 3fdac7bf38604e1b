// The cases of the corpus, in a worker that gets the module compiled.
import { load, Runtime, Tensor } from "/package/src/index.js";
import { runCase } from "/languages/run_case.mjs";

const post = (path, body) => fetch(path, { method: "POST", body });

onmessage = async ({ data: { module, cases } }) => {
  const runtime = await Runtime.create({ module });
  const etude = { Tensor, load: (source, options) => load(source, { ...options, runtime }) };
  for (const { name, model, data } of cases) {
    const calls = new Uint8Array(await (await fetch(`/calls/${name}`)).arrayBuffer());
    try {
      await post(`/result/${name}`, await runCase(etude, model, calls, data));
    } catch (error) {
      await post(`/error/${name}`, `${error.name}: ${error.message}`);
    }
  }
  await post("/memory", String(runtime.memoryBytes));
  postMessage(null);
};
