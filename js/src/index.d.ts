/** Types of the package, by hand: `tsc` checks them against what the sources export (js/test/types.mjs). */

export type DType =
  | "uint8" | "int8" | "int16" | "int32" | "int64" | "uint16" | "uint32" | "uint64"
  | "float16" | "bfloat16" | "float32" | "float64" | "complex32" | "complex64" | "complex128" | "bool"
  | "qint8" | "quint8" | "qint32" | "quint4x2" | "quint2x4" | "bits1x8" | "bits2x4" | "bits4x2" | "bits8" | "bits16"
  | "float8_e5m2" | "float8_e4m3fn" | "float8_e5m2fnuz" | "float8_e4m3fnuz";

export type NumericArray =
  | Uint8Array | Uint8ClampedArray | Int8Array | Uint16Array | Int16Array | Uint32Array | Int32Array
  | Float32Array | Float64Array | BigInt64Array | BigUint64Array;

/** What holds the elements of a dtype: int64 is BigInt64Array, 16-bit floats are bits in a Uint16Array, bool is 0 and 1. */
export type ArrayOf<D extends DType> = D extends "float32" | "complex64" ? Float32Array
  : D extends "float64" | "complex128" ? Float64Array
  : D extends "int64" ? BigInt64Array
  : D extends "uint64" ? BigUint64Array
  : D extends "int32" | "qint32" ? Int32Array
  : D extends "uint32" ? Uint32Array
  : D extends "int16" ? Int16Array
  : D extends "uint16" | "float16" | "bfloat16" | "complex32" | "bits16" ? Uint16Array
  : D extends "int8" | "qint8" ? Int8Array
  : Uint8Array;

export type Nested = number | bigint | boolean | readonly Nested[];

/** Elements with dtype and shape, in JavaScript's memory. */
export class Tensor<D extends DType = DType> {
  /**
   * `data` is borrowed; its length is the product of `shape`, twice that for complex dtypes. Row-major, unless `dimOrder`
   * (outermost dimension first) says another order. Throws ArgumentError, also where the array was transferred.
   */
  constructor(dtype: D, shape: readonly number[], data: NumericArray, dimOrder?: readonly number[]);
  /**
   * From a number, nested arrays, or a flat list with `shape`; float32 unless said. Floats are rounded to the nearest. Throws
   * ArgumentError for what the dtype does not hold: fractions and numbers out of range for integers, finite numbers beyond a
   * float, anything but true, false, 1 and 0 for bool, and what is no number; NotSupportedError for dtypes that only typed
   * arrays hold (complex, float8, bits).
   */
  static from<D extends DType = "float32">(values: Nested | NumericArray, options?: { dtype?: D; shape?: readonly number[] }): Tensor<D>;
  readonly dtype: D;
  readonly shape: readonly number[];
  readonly data: ArrayOf<D>;
  /** Where it is not row-major. Outputs always are. */
  readonly dimOrder?: readonly number[];
  /** Number of elements. */
  get size(): number;
  /** The elements in row-major order; `data` itself where they stand so. */
  get rowMajorData(): ArrayOf<D>;
  /** The elements as float32, row-major: the way to read float16 and bfloat16. */
  toFloat32(): Float32Array;
  /** Nested arrays; bigint for 64-bit integers, boolean for bool, pairs for complex. */
  toArray(): Nested;
}

export type InputTensor = Tensor | { data: NumericArray; shape: readonly number[]; dtype?: DType; dimOrder?: readonly number[] } | NumericArray;
/** Integers are numbers or bigint; a typed array alone has the input's largest shape. */
export type Input = InputTensor | Nested | string | null;
/** Int is bigint, Double is number, None is null. */
export type Output = Tensor | bigint | number | boolean | string | null | readonly Output[];

export type OptionValue = boolean | number | bigint | string;
/** `{backend: {key: value}}` */
export type BackendOptions = Readonly<Record<string, Readonly<Record<string, OptionValue>>>>;

export interface OptionSchema {
  key: string;
  help: string;
  type: "bool" | "int" | "string";
  default: OptionValue;
  minimum?: number | bigint;
  maximum?: number | bigint;
  /** Strings allowed; for an int the names of `minimum`, `minimum + 1`, … */
  choices?: readonly string[];
  scope: "process" | "load" | "both";
  readOnly: boolean;
  /** A change reaches methods that are loaded already. */
  takesEffectNow: boolean;
}

export interface OptionExplanation {
  value: OptionValue;
  origin: "default" | "process" | "program" | "method";
  layers: Partial<Record<"default" | "process" | "program" | "method", OptionValue>>;
}

/** A path (Node) or URL, or the bytes themselves. */
export type Source = string | URL | ArrayBuffer | SharedArrayBuffer | ArrayBufferView | Blob | Response;

export interface ProgramOptions {
  /** External data, `.ptd` files: several, or one. */
  data?: readonly Source[] | Source;
  /** For every method loaded from the program. */
  options?: BackendOptions;
  /** What options for a backend that no method uses are; "error" unless said. */
  unusedOptions?: "error" | "ignore";
  /** How much is checked at once; the rest is checked when a method is loaded. "Minimal" unless said. */
  verification?: "Minimal" | "InternalConsistency";
}

export interface MethodOptions {
  options?: BackendOptions;
  unusedOptions?: "error" | "ignore";
  // limits are whole numbers below 2^63, and but for the first at least 1
  /** Most bytes for what is computed once, at load, such as packed weights; 256 MiB unless said, 0 = nothing. */
  constantLimit?: number;
  /** Most bytes that the file may ask for; 1 GiB unless said. */
  memoryLimit?: number;
  /** Most instructions of one execution; 10,000,000 unless said. Beyond it, as beyond workLimit, execute throws ProgramError, InvalidProgram. */
  instructionLimit?: number;
  /** Most work of one execution, in bytes of tensors taken and steps of heavy loops; 2^41 unless said. */
  workLimit?: number;
}

/** Bytes, region by region: docs/python.md has what each means. */
export interface Memory {
  structures: number;
  planned: number;
  shared: number;
  unplanned: number;
  loaded: number;
  scratch: number;
  delegates: number;
  total: number;
  peak: number;
  constants: number;
}

export interface ValueInfo {
  /** Number among the values of the method. */
  index: number;
  kind: "none" | "tensor" | "string" | "double" | "int" | "bool" | "boolList" | "doubleList" | "intList" | "tensorList" | "optionalTensorList";
  /** Int, Double, Bool, String: the value in the file. */
  value?: bigint | number | boolean | string;
  /** An input that was None at export: nothing looks at it, so that another value is refused. */
  unused?: boolean;
  /** Lists of values: how many, and in `values` which; null = None. */
  length?: number;
  items?: readonly (number | null)[];
  dtype?: DType;
  /** Tensors: the largest sizes. */
  shape?: readonly number[];
  /** Tensors: sizes may be smaller. */
  dynamic?: boolean;
  dimOrder?: readonly number[];
  nbytes?: number;
  constant?: boolean;
  state?: boolean;
  /** Its contents are in external data. */
  external?: boolean;
  name?: string;
  /** Planned tensors: which buffer, and the byte in it. */
  buffer?: number;
  offset?: number;
}

export interface Instruction {
  kind: "kernel" | "delegate" | "move" | "jumpFalse" | "free";
  /** Operator with overload, backend, or the kind. */
  name: string;
  /** Numbers of values. */
  arguments: readonly number[];
  /** jumpFalse: number of the instruction to go to. */
  target?: number;
}

/** What a program says of a method, without loading it. */
export class MethodInfo {
  private constructor();
  readonly program: Program;
  readonly name: string;
  get inputs(): ValueInfo[];
  get outputs(): ValueInfo[];
  get values(): ValueInfo[];
  get instructions(): Instruction[];
  get operators(): string[];
  /** Operators with dtypes that this build has no kernel for. */
  get missingOperators(): string[];
  /** Backend of each delegate. */
  get delegates(): string[];
  /** Bytes of each planned buffer. */
  get buffers(): number[];
  /** Bytes that loading and running take; what backends take is not known before. */
  get memory(): Memory;
}

/** A loaded method: of one thread, as all of this. Outputs are copies. */
export class Method {
  private constructor();
  readonly program: Program;
  readonly info: MethodInfo;
  get name(): string;
  /**
   * Set all inputs, execute, read all outputs.
   * Throws ArgumentError (count, kind, dtype, elements), NotSupportedError (a shape that the program was not exported for),
   * MemoryError, …; the method stays usable.
   */
  run(inputs?: readonly Input[]): Output[];
  /** The three parts of `run`. */
  setInputs(inputs: readonly Input[]): void;
  execute(): void;
  get outputs(): Output[];
  /** Run once, instruction by instruction, with the time of each: as fine as the clock of the browser. */
  profile(inputs?: readonly Input[]): { outputs: Output[]; instructions: { index: number; milliseconds: number }[] };
  /** What the method keeps between executions. */
  get stateNames(): string[];
  getState(name: string): Tensor;
  setState(name: string, tensor: Tensor): void;
  /** Back to what the file says: one, or all. */
  resetState(name?: string): void;
  /** A whole number from -2^63 to 2^64 - 1. */
  setSeed(seed: number | bigint): void;
  get memory(): Memory;
  explainOption(backend: string, key: string): OptionExplanation;
  /** Free it now, and not when it is collected. */
  dispose(): void;
}

export class Program {
  private constructor();
  readonly runtime: Runtime;
  get methods(): readonly MethodInfo[];
  /** Throws NotFoundError with the names that there are. */
  method(name: string): MethodInfo;
  /** "forward" unless said. Throws OperatorMissingError, MemoryError, ProgramError, ArgumentError (options), … */
  loadMethod(name?: string, options?: MethodOptions): Method;
  /** Free it and its methods now, and not when they are collected. */
  dispose(): void;
}

/** An instance of the module: kernels, backends, their options, and memory that all its programs share. */
export class Runtime {
  private constructor();
  /** `module`: what `compile` gives, here or in another thread. `memoryLimit`: most bytes of its memory, up to 4 GiB; beyond them MemoryError. */
  static create(options?: { module?: WebAssembly.Module; memoryLimit?: number }): Promise<Runtime>;
  /** May be posted to workers. */
  get module(): WebAssembly.Module;
  get version(): string;
  /** Has the module failed within? Then nothing of this runtime works any more; defaultRuntime() gives another one. */
  get failed(): boolean;
  get backends(): string[];
  get kernelCount(): number;
  /** Of the module's memory, which grows and never shrinks. */
  get memoryBytes(): number;
  load(source: Source, options?: ProgramOptions): Promise<Program>;
  optionSchema(backend: string): OptionSchema[];
  /** For methods loaded later; all or none of them. Throws NotFoundError, ArgumentError, NotSupportedError. */
  setOptions(options: BackendOptions): void;
  setOption(backend: string, key: string, value: OptionValue): void;
  getOption(backend: string, key: string): OptionValue;
  resetOptions(backend: string, key?: string): void;
}

/** Load a program into the runtime of this thread, or into `options.runtime`. */
export function load(source: Source, options?: ProgramOptions & { runtime?: Runtime }): Promise<Program>;
/** The runtime of this thread. */
export function defaultRuntime(): Promise<Runtime>;
/** Compile the module that the package carries, or another copy of it. */
export function compile(source?: Source | WebAssembly.Module): Promise<WebAssembly.Module>;

export interface ErrorDetails {
  status?: string;
  subject?: string;
  offset?: number;
  cause?: unknown;
}

/** Any failure of the library. */
export class EtudeError extends Error {
  constructor(message: string, details?: ErrorDetails);
  /** ExecuTorch's name: "InvalidArgument", … */
  readonly status: string;
  /** The method, operator, backend or option at fault; may be empty. */
  readonly subject: string;
  /** Byte of the file at fault. */
  readonly offset?: number;
}
/** InvalidArgument, InvalidType */
export class ArgumentError extends EtudeError {}
/** No such method, backend, option, state or file. */
export class NotFoundError extends EtudeError {}
/** Right call, wrong moment: inputs not set, disposed of, data file missing. */
export class StateError extends EtudeError {}
/** What the program, or this build, does not do: also a shape that a method was not exported for. */
export class NotSupportedError extends EtudeError {}
/** The message lists all operators that are missing. */
export class OperatorMissingError extends NotSupportedError {}
export class MemoryError extends EtudeError {}
/** A file or URL can't be read. */
export class AccessError extends EtudeError {}
/** Not a program, cut short, or damaged. */
export class ProgramError extends EtudeError {}
/** The same for external data. */
export class DataError extends EtudeError {}
/** A backend does not understand its payload. */
export class BackendError extends EtudeError {}
