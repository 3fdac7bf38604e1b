/** What goes wrong: one class for each kind of failure, all of them EtudeError. */

export class EtudeError extends Error {
  /**
   * @param {string} message one sentence: what, where, what to do
   * @param {{status?: string, subject?: string, offset?: number, cause?: unknown}} [details]
   */
  constructor(message, { status = "Internal", subject = "", offset, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.status = status;
    this.subject = subject;
    this.offset = offset;
  }
}

export class ArgumentError extends EtudeError {}
export class NotFoundError extends EtudeError {}
export class StateError extends EtudeError {}
export class NotSupportedError extends EtudeError {}
export class OperatorMissingError extends NotSupportedError {}
export class MemoryError extends EtudeError {}
export class AccessError extends EtudeError {}
export class ProgramError extends EtudeError {}
export class DataError extends EtudeError {}
export class BackendError extends EtudeError {}

/** Class of each status; the names are those of ExecuTorch's `Error`. */
const CLASSES = {
  InvalidState: StateError,
  EndOfMethod: StateError,
  AlreadyLoaded: StateError,
  NotSupported: NotSupportedError,
  NotImplemented: NotSupportedError,
  InvalidArgument: ArgumentError,
  InvalidType: ArgumentError,
  OperatorMissing: OperatorMissingError,
  NotFound: NotFoundError,
  MemoryAllocationFailed: MemoryError,
  OutOfResources: MemoryError,
  AccessFailed: AccessError,
  InvalidProgram: ProgramError,
  InvalidExternalData: DataError,
  DelegateInvalidCompatibility: BackendError,
  DelegateMemoryAllocationFailed: MemoryError,
  DelegateInvalidHandle: BackendError,
};

/** The error of a status. */
export function errorOf(status, message, details = {}) {
  return new (CLASSES[status] ?? EtudeError)(message, { ...details, status });
}

/** Statuses with a class of their own, for the test that every status of the library has one. */
export const STATUSES = Object.keys(CLASSES);

/** A value as messages show it. */
export function show(value) {
  if (typeof value === "string") return value.length > 40 ? `${JSON.stringify(value.slice(0, 40))}…` : JSON.stringify(value);
  if (typeof value === "object" && value !== null) return `an object (${value.constructor?.name ?? "?"})`;
  return typeof value === "bigint" ? `${value}n` : Object.is(value, -0) ? "-0" : typeof value === "function" ? "a function" : String(value);
}
