// Converts the transport's errors to this package's, with the details that the server sends.

import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { fromBinary } from "@bufbuild/protobuf";
import { DurationSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";

import type { ErrorDetails } from "./errors.js";
import * as errors from "./errors.js";
import { millisTo } from "./values.js";

const DOMAIN = "memory_service.v1";
const REASON = "ERROR_REASON_";

type ErrorClass = new (message: string, details: ErrorDetails) => errors.MemoryServiceError;

/** Name and class of each gRPC code. */
const CODES: Readonly<Record<number, readonly [string, ErrorClass]>> = {
  [Code.Unknown]: ["UNKNOWN", errors.MemoryServiceError],
  [Code.InvalidArgument]: ["INVALID_ARGUMENT", errors.InvalidArgumentError],
  [Code.DeadlineExceeded]: ["DEADLINE_EXCEEDED", errors.DeadlineExceededError],
  [Code.NotFound]: ["NOT_FOUND", errors.NotFoundError],
  [Code.AlreadyExists]: ["ALREADY_EXISTS", errors.AlreadyExistsError],
  [Code.PermissionDenied]: ["PERMISSION_DENIED", errors.PermissionDeniedError],
  [Code.ResourceExhausted]: ["RESOURCE_EXHAUSTED", errors.LimitExceededError],
  [Code.FailedPrecondition]: ["FAILED_PRECONDITION", errors.FailedPreconditionError],
  [Code.Aborted]: ["ABORTED", errors.ConflictError],
  [Code.OutOfRange]: ["OUT_OF_RANGE", errors.MemoryServiceError],
  [Code.Unimplemented]: ["UNIMPLEMENTED", errors.UnsupportedError],
  [Code.Internal]: ["INTERNAL", errors.InternalError],
  [Code.Unavailable]: ["UNAVAILABLE", errors.UnavailableError],
  [Code.DataLoss]: ["DATA_LOSS", errors.MemoryServiceError],
  [Code.Unauthenticated]: ["UNAUTHENTICATED", errors.UnauthenticatedError],
};

/** Codes that the transport sets for a broken connection; from a server they mean other things. */
const BROKEN = new Set([Code.Aborted, Code.Internal, Code.Unknown]);

/** Returns the error of a failed call, whatever the transport raised. */
export function errorFrom(raised: unknown): errors.MemoryServiceError {
  const error = ConnectError.from(raised);
  const [code, Kind] = CODES[codeOf(error)] ?? ["UNKNOWN", errors.MemoryServiceError];
  const details: Partial<Record<string, Uint8Array>> = {};
  for (const detail of error.details) {
    if ("type" in detail) {
      details[detail.type] ??= detail.value;
    }
  }
  return new Kind(error.rawMessage || code, { code, ...decoded(details), cause: error.cause });
}

/** The rejection of a call by an overloaded server. */
export type Overloaded = errors.LimitExceededError & { readonly retryAfterMs: number };

export function isOverloaded(error: unknown): error is Overloaded {
  return error instanceof errors.LimitExceededError && error.retryAfterMs !== undefined;
}

/** Whether the same call may succeed a little later. */
export function mayPass(error: unknown): boolean {
  return error instanceof errors.UnavailableError || isOverloaded(error);
}

/** Whether a call failed because the connection could not be made: there is no server now. */
export function isAbsent(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    // A host with several addresses fails with the errors of all of them.
    const tried: readonly unknown[] = cause instanceof AggregateError ? cause.errors : [cause];
    if (tried.some(isOfConnecting)) {
      return true;
    }
  }
  return false;
}

function isOfConnecting(error: unknown): boolean {
  return error instanceof Error && "syscall" in error && /^(connect|getaddrinfo)$/.test(String(error.syscall));
}

function codeOf(error: ConnectError): Code {
  if (error.code === Code.Canceled) {
    // This side did not cancel the call: the server shut down, perhaps as the call arrived.
    return Code.Unavailable;
  }
  const isOfServer = error.metadata.has("grpc-status") || error.metadata.has("grpc-status-details-bin");
  const isOfMessage = /^(parse|serialize) binary/.test(error.rawMessage);
  return !isOfServer && !isOfMessage && BROKEN.has(error.code) ? Code.Unavailable : error.code;
}

/** Reads the details. Unreadable ones are omitted: code and message still describe the error. */
function decoded(details: Partial<Record<string, Uint8Array>>): Partial<ErrorDetails> {
  try {
    const info = errorInfo(details["google.rpc.ErrorInfo"]);
    const retry = strings(details["google.rpc.RetryInfo"]).get(1)?.[0];
    const violation = strings(details["google.rpc.BadRequest"]).get(1)?.[0];
    return {
      ...(info.domain === DOMAIN ? { reason: info.reason, metadata: info.metadata } : {}),
      field: text(strings(violation).get(1)),
      retryAfterMs: retry && millisTo(fromBinary(DurationSchema, retry)),
    };
  } catch {
    return {};
  }
}

/** google.rpc.ErrorInfo: reason = 1, domain = 2, map<string, string> metadata = 3. */
function errorInfo(message: Uint8Array | undefined) {
  const fields = strings(message);
  const metadata: Record<string, string> = {};
  for (const entry of fields.get(3) ?? []) {
    const pair = strings(entry);
    metadata[text(pair.get(1))] = text(pair.get(2));
  }
  const name = text(fields.get(1));
  const reason = name.startsWith(REASON) ? name.slice(REASON.length) : name;
  return { reason, domain: text(fields.get(2)), metadata };
}

/** Reads the fields of a message that are strings or messages, by number. */
function strings(message: Uint8Array | undefined): Map<number, Uint8Array[]> {
  const fields = new Map<number, Uint8Array[]>();
  const reader = new BinaryReader(message ?? new Uint8Array());
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag();
    if (wireType === WireType.LengthDelimited) {
      fields.set(number, [...(fields.get(number) ?? []), reader.bytes()]);
    } else {
      reader.skip(wireType, number);
    }
  }
  return fields;
}

function text(values: readonly Uint8Array[] | undefined): string {
  return new TextDecoder().decode(values?.[0]);
}
