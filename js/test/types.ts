// Checked by tsc, never run: what the types allow, and what they must refuse.
import { ArgumentError, compile, defaultRuntime, load, Runtime, Tensor } from "etude";

import wasm from "etude/etude.wasm";
import { LLM, loadTokenizer, type TokenizerLike } from "etude/llm";
import { readNpy, readNpz, writeNpy } from "etude/npy";

export async function write(): Promise<string> {
  const like: TokenizerLike = await loadTokenizer("tokenizer.json");
  const llm = await LLM.load("model.pte", { tokenizer: like, memoryLimit: 2 ** 30 });
  for await (const piece of llm.stream("Once", { maxTokens: 5, stop: "\n", signal: AbortSignal.timeout(1000) })) console.log(piece.length);
  for await (const token of llm.streamTokens([1, 2], { temperature: 0 })) console.log(token + 1);
  const arrays: Map<string, Tensor> = await readNpz("a.npz");
  console.log(arrays, writeNpy(await readNpy("a.npy")).length);
  // @ts-expect-error a prompt is a text or ids
  await llm.generate({});
  // @ts-expect-error no such option
  return (await llm.generate("Once", { max_tokens: 5 })).text;
}

export async function use(file: File): Promise<void> {
  const program = await load(file, { data: ["weights.ptd"], options: { XnnpackBackend: { num_threads: 1 } } });
  await load("model.pte", { data: "weights.ptd" });
  const names: string[] = program.methods.map((method) => method.name);
  const method = program.loadMethod(names[0], { constantLimit: 0 });
  const [output] = method.run([Tensor.from([[1, 2], [3, 4]]), new Float32Array(4), { data: new BigInt64Array(2), shape: [2] }, 1n, true, null, "text"]);
  if (output instanceof Tensor) console.log(output.shape.length, output.toFloat32());
  await compile(wasm);
  const bytes: Uint16Array = Tensor.from([1], { dtype: "float16" }).data;
  const wide: BigInt64Array = new Tensor("int64", [1], new BigInt64Array(1)).data;
  const runtime = await Runtime.create({ module: await compile(), memoryLimit: 2 ** 28 });
  console.log(bytes, wide, runtime.optionSchema("XnnpackBackend")[0].key, (await defaultRuntime()).backends);
  try {
    method.dispose();
  } catch (error) {
    if (error instanceof ArgumentError) console.log(error.status, error.subject, error.offset);
  }
  // @ts-expect-error no dtype
  Tensor.from([1], { dtype: "float33" });
  // @ts-expect-error made by load only
  new (program.constructor as typeof Runtime)();
  // @ts-expect-error int64 is bigint
  const narrow: Int32Array = wide;
  // @ts-expect-error inputs are an array
  method.run(new Float32Array(1));
  // @ts-expect-error an option is a boolean, a number or a string
  runtime.setOption("XnnpackBackend", "num_threads", null);
  // @ts-expect-error outputs are read only
  method.outputs = [];
  console.log(narrow);
}
