// Fields that many requests have.

import { createHash, randomUUID } from "node:crypto";

import type { WriteOptions } from "./options.js";

/** Returns the caller's request id or a new one, so that every write can be retried safely. */
export function requestIdOf(options: WriteOptions): string {
  return options.requestId ?? randomUUID();
}

/**
 * Returns a function for the request ids of the pages of a write, each different. If the caller gave one, it is
 * that of the first page, and the others derive from it, so that the whole call can be retried.
 */
export function requestIdsOf(options: WriteOptions): () => string {
  let page = 0;
  return () => {
    const { requestId } = options;
    page += 1;
    return requestId === undefined || page === 1
      ? requestIdOf(options)
      : createHash("sha256").update(`${requestId} ${page}`).digest("hex");
  };
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
