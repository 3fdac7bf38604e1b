// Checked by tsc, never run: what the types allow, and what they must refuse.
import { ArgumentError, compile, defaultRuntime, load, Runtime, Tensor } from "etude";

export async function use(file: File): Promise<void> {
  const program = await load(file, { data: ["weights.ptd"], options: { XnnpackBackend: { num_threads: 1 } } });
  await load("model.pte", { data: "weights.ptd" });
  const names: string[] = program.methods.map((method) => method.name);
  const method = program.loadMethod(names[0], { constantLimit: 0 });
  const [output] = method.run([Tensor.from([[1, 2], [3, 4]]), new Float32Array(4), { data: new BigInt64Array(2), shape: [2] }, 1n, true, null, "text"]);
  if (output instanceof Tensor) console.log(output.shape.length, output.toFloat32());
  const bytes: Uint16Array = Tensor.from([1], { dtype: "float16" }).data;
  const wide: BigInt64Array = new Tensor("int64", [1], new BigInt64Array(1)).data;
  const runtime = await Runtime.create({ module: await compile() });
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
