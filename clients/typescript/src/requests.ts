// Fields that many requests have.

import { randomUUID } from "node:crypto";

import type { WriteOptions } from "./options.js";

/** Returns the caller's request id or a new one, so that every write can be retried safely. */
export function requestIdOf(options: WriteOptions): string {
  return options.requestId ?? randomUUID();
}

/** Converts an optional field: `given(ttlMs, durationFrom, "ttlMs")`. */
export function given<T, R>(
  value: T | undefined,
  convert: (value: T, where: string) => R,
  where: string,
): R | undefined {
  return value === undefined ? undefined : convert(value, where);
}

/** Returns a function that makes the request for a page from the first request and the page token. */
export function withToken<R extends object>(request: R): (pageToken: string) => R & { pageToken: string } {
  return (pageToken) => ({ ...request, pageToken });
}
