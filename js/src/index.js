/** etude: run ExecuTorch programs in browsers, workers and Node. */

export {
  AccessError,
  ArgumentError,
  BackendError,
  DataError,
  EtudeError,
  MemoryError,
  NotFoundError,
  NotSupportedError,
  OperatorMissingError,
  ProgramError,
  StateError,
} from "./errors.js";
export { MethodInfo } from "./metadata.js";
export { Method } from "./method.js";
export { Program } from "./program.js";
export { defaultRuntime, load, Runtime } from "./runtime.js";
export { compile } from "./source.js";
export { Tensor } from "./tensor.js";
