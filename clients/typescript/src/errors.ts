// The errors of the client.

/** The properties of an error besides its message. */
export interface ErrorDetails {
  /** Standard gRPC code, such as "NOT_FOUND". */
  readonly code: string;
  /** Name of a value of the protos' ErrorReason, such as "ITEM_NOT_FOUND". */
  readonly reason?: string | undefined;
  /** Details of the error. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  /** The invalid field of the request. */
  readonly field?: string | undefined;
  /** Milliseconds after which a retry may succeed. */
  readonly retryAfterMs?: number | undefined;
  /** The cause of the error. */
  readonly cause?: unknown;
}

/** A call failed. `message` is a sentence for humans; the other properties are for programs. */
export class MemoryServiceError extends Error {
  /** Standard gRPC code, such as "NOT_FOUND". */
  readonly code: string;
  /**
   * Name of a value of the protos' ErrorReason, such as "ITEM_NOT_FOUND"; never changes its meaning.
   * Empty: the error did not come from the server itself.
   */
  readonly reason: string;
  /** Details of the error; its keys depend on the reason. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The invalid field of the request, such as "item.content". Empty: none. */
  readonly field: string;
  /** Milliseconds after which a retry may succeed. Undefined: not reported. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, details: ErrorDetails) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = new.target.name;
    this.code = details.code;
    this.reason = details.reason ?? "";
    this.metadata = Object.freeze({ ...details.metadata });
    this.field = details.field || this.metadata["field"] || "";
    this.retryAfterMs = details.retryAfterMs;
  }
}

/** The request is invalid, and nothing was written; `field` names the invalid field. */
export class InvalidArgumentError extends MemoryServiceError {}

/** There is no such item, state, memory, document or namespace; `reason` shows which. */
export class NotFoundError extends MemoryServiceError {}

/** An item or document with this id already exists. */
export class AlreadyExistsError extends MemoryServiceError {}

/** The expected version or revision is not the current one, which is in `metadata`. */
export class ConflictError extends MemoryServiceError {}

/** The server or the current state of the namespace does not allow the call, as for LLM_REQUIRED. */
export class FailedPreconditionError extends MemoryServiceError {}

/** Something exceeds a limit, or the server is overloaded. */
export class LimitExceededError extends MemoryServiceError {}

/** This server, or its store, does not support the call. */
export class UnsupportedError extends MemoryServiceError {}

/** The server cannot be reached, or cannot answer now. */
export class UnavailableError extends MemoryServiceError {}

/** No answer arrived in time. */
export class DeadlineExceededError extends MemoryServiceError {}

/** The call has no credential, or an invalid one. */
export class UnauthenticatedError extends MemoryServiceError {}

/** The credential does not allow this call on this namespace. */
export class PermissionDeniedError extends MemoryServiceError {}

/** The server failed unexpectedly; `metadata.incident` identifies the entry in its log. */
export class InternalError extends MemoryServiceError {}
