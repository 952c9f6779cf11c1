// What can go wrong, for programs to act on.

/** What an error tells beside its text. */
export interface ErrorDetails {
  /** Standard gRPC code, such as "NOT_FOUND". */
  readonly code: string;
  /** Name of a value of the protos' ErrorReason, such as "ITEM_NOT_FOUND". */
  readonly reason?: string | undefined;
  /** What the reason is about. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  /** The field of the request that is at fault. */
  readonly field?: string | undefined;
  /** Milliseconds after which a retry may succeed. */
  readonly retryAfterMs?: number | undefined;
  /** What the error came from. */
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
  /** What the reason is about; which keys there are depends on it. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The field of the request that is at fault, such as "item.content". Empty: none. */
  readonly field: string;
  /** Milliseconds after which a retry may succeed. Undefined: the server did not say. */
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

/** The request is wrong and nothing was written; `field` says where. */
export class InvalidArgumentError extends MemoryServiceError {}

/** There is no such item, state, memory, document or namespace; `reason` says which. */
export class NotFoundError extends MemoryServiceError {}

/** An item or a document of this id exists already. */
export class AlreadyExistsError extends MemoryServiceError {}

/** The expected version or revision is not the current one; `metadata` tells the current one. */
export class ConflictError extends MemoryServiceError {}

/** The call does not fit the server or the present state of the namespace, as LLM_REQUIRED does not. */
export class FailedPreconditionError extends MemoryServiceError {}

/** Something is larger than a limit allows, or the server has too much to do. */
export class LimitExceededError extends MemoryServiceError {}

/** This server, or the store it runs on, does not offer what was asked for. */
export class UnsupportedError extends MemoryServiceError {}

/** The server cannot be reached, or cannot answer at the moment. */
export class UnavailableError extends MemoryServiceError {}

/** There was no answer in time. */
export class DeadlineExceededError extends MemoryServiceError {}

/** The call carries no credential, or one that is not valid. */
export class UnauthenticatedError extends MemoryServiceError {}

/** The credential does not allow this call on this namespace. */
export class PermissionDeniedError extends MemoryServiceError {}

/** The server failed in a way it did not foresee; `metadata.incident` finds the cause in its log. */
export class InternalError extends MemoryServiceError {}
