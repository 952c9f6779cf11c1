// Fields that many requests have.

import { randomUUID } from "node:crypto";

import type { WriteOptions } from "./options.js";

/** Returns the caller's request id or a new one, so that every write can be retried safely. */
export function requestIdOf(options: WriteOptions): string {
  return options.requestId ?? randomUUID();
}

/** Converts a field that may be left out: `given(ttlMs, durationFrom, "ttlMs")`. */
export function given<T, R>(
  value: T | undefined,
  convert: (value: T, where: string) => R,
  where: string,
): R | undefined {
  return value === undefined ? undefined : convert(value, where);
}

/** Returns what makes the request of a page: the first one's fields, and the token of the page. */
export function withToken<R extends object>(request: R): (pageToken: string) => R & { pageToken: string } {
  return (pageToken) => ({ ...request, pageToken });
}
