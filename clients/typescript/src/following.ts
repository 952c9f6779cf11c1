// Streams that resume after a break of the connection, until the caller ends them.

import { setTimeout as sleep } from "node:timers/promises";

import { isAbsent, mayPass } from "./status.js";

const DELAY_FIRST_MS = 100;
const DELAY_MAX_MS = 5_000;
/** Random variation of a pause, as a fraction. */
export const SPREAD = 0.2;

/** One message of a stream that can be resumed. */
export interface Event<T> {
  /** What the caller gets. Undefined: a heartbeat. */
  readonly value: T | undefined;
  /** Revision up to which everything has been sent, from which to resume. */
  readonly revision: bigint;
  /** Identifies this event among those sent since that revision. */
  readonly key: string;
}

/** Where a stream begins, and what to do when it breaks. */
export interface Course {
  /** Begin after this revision. Undefined: where the server begins. */
  readonly position: bigint | undefined;
  /** Give up if the server is unavailable for longer. Infinity: never. */
  readonly giveUpAfterMs: number;
  /** Also wait for a server that cannot be reached at first. */
  readonly waitForReady: boolean;
  readonly signal: AbortSignal;
}

/**
 * Yields the values of a stream that resumes where it broke.
 *
 * A break may fall between the events of one revision. The server then sends that revision again from its
 * beginning, and `seen` has the events that the caller has already got.
 */
export async function* resumed<T>(
  open: (position: bigint | undefined) => AsyncIterable<Event<T>>,
  course: Course,
): AsyncGenerator<T, void, undefined> {
  let position = course.position;
  let hasBegun = false;
  let awaySince: number | undefined;
  let breaks = 0;
  const seen = new Set<string>();
  for (;;) {
    try {
      for await (const event of open(position)) {
        hasBegun = true;
        awaySince = undefined;
        breaks = 0;
        const isNew = event.value !== undefined && !seen.has(event.key);
        if (position === undefined || event.revision > position) {
          position = event.revision;
          seen.clear();
        } else {
          seen.add(event.key);
        }
        if (isNew) {
          yield event.value as T;
        }
      }
      return;
    } catch (error) {
      awaySince ??= Date.now();
      const goesOn = hasBegun ? Date.now() - awaySince <= course.giveUpAfterMs : mayBegin(error, course);
      if (!mayPass(error) || !goesOn) {
        throw error;
      }
    }
    await pause(Math.min(DELAY_FIRST_MS * 2 ** breaks++, DELAY_MAX_MS), course.signal);
  }
}

/** Whether to retry a stream that never began. Otherwise the address is probably wrong. */
function mayBegin(error: unknown, course: Course): boolean {
  return course.waitForReady && isAbsent(error);
}

/**
 * Waits for about the given time. If the signal is aborted, throws its reason.
 *
 * The time is spread out, so that clients do not all return at once after a restart of the server.
 */
export async function pause(millis: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(millis * (1 - SPREAD + 2 * SPREAD * Math.random()), undefined, { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}

/**
 * Makes an iterator over a stream that `return()` ends at once, even while `next()` waits for an event; a plain
 * async generator would first wait for the event. `run` gets the signal that ends the stream.
 */
export function endable<T>(
  run: (signal: AbortSignal) => AsyncGenerator<T, void, undefined>,
  outer: AbortSignal | undefined,
): AsyncGenerator<T, void, undefined> {
  const ended = new AbortController();
  const abort = () => ended.abort(outer?.reason);
  const inner = run(ended.signal);
  let isReturned = false;
  if (outer?.aborted) {
    abort();
  }
  outer?.addEventListener("abort", abort, { once: true });
  const release = () => outer?.removeEventListener("abort", abort);
  const end = async (): Promise<IteratorResult<T, void>> => {
    isReturned = true;
    release();
    ended.abort();
    await inner.return();
    return { done: true, value: undefined };
  };
  return {
    async next() {
      try {
        const result = await inner.next();
        if (result.done) {
          release();
        }
        return result;
      } catch (error) {
        release();
        if (isReturned) {
          return { done: true, value: undefined };
        }
        throw error;
      }
    },
    return: end,
    async throw(error) {
      await end();
      throw error;
    },
    [Symbol.asyncIterator]() {
      return this;
    },
    async [Symbol.asyncDispose]() {
      await end();
    },
  };
}
