// Runs calls over HTTP/2 connections, one for each server, opened by the first call that needs it.

import type {
  DescMessage,
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import type { Transport as Connection } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";

import { InternalError, MemoryServiceError } from "./errors.js";
import { pause, SPREAD } from "./following.js";
import type { CallOptions, Settings } from "./options.js";
import { withToken } from "./options.js";
import { headerOf, NAMESPACE_HEADER, namespaceIn, Servers } from "./servers.js";
import type { Overloaded } from "./status.js";
import { errorFrom, isAbsent, isOverloaded, mayPass } from "./status.js";

const DELAY_FIRST_MS = 100;
const DELAY_MAX_MS = 2_000;
const PING_TIMEOUT_MS = 20_000;
/** The longest time limit that the header of a call can hold. */
const TIMEOUT_MAX_MS = 99_999_999;

/** Calls without a request id: the server could not tell a retry from a new call. */
const NEVER_RETRIED: ReadonlySet<string> = new Set(["Import", "Backup", "DeleteNamespace", "ReviewQuarantined"]);

interface Server {
  readonly address: string;
  readonly sessions: Http2SessionManager;
  readonly connection: Connection;
}

/** Connections to the servers. */
export class Transport {
  readonly #settings: Settings;
  readonly #servers: Servers<Server>;
  readonly #calls = new Set<AbortController>();
  #hasAnswered = false;
  #isClosed = false;

  constructor(settings: Settings) {
    this.#settings = settings;
    this.#servers = new Servers(settings.addresses.map((address) => serverAt(address, settings)));
  }

  /** Whether calls wait for an unreachable server. */
  get waitForReady(): boolean {
    return this.#settings.waitForReady ?? this.#hasAnswered;
  }

  /** Runs a call that has one response, with retries while the server is unavailable or overloaded. */
  async unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options: CallOptions = {},
  ): Promise<MessageShape<O>> {
    const { maxAttempts, timeoutMs } = this.#settings;
    const namespace = namespaceIn(request);
    const headers = await this.#headers(namespace);
    const way = this.#servers.begin(namespace);
    const begin = Date.now();
    const end = begin + (options.timeoutMs ?? timeoutMs);
    const call = this.#begin(options.signal);
    const isTriedOnce = NEVER_RETRIED.has(method.name) || maxAttempts === 1;
    let attemptsLeft = isTriedOnce ? 1 : Math.max(maxAttempts, way.length);
    try {
      for (let delay = DELAY_FIRST_MS; ; ) {
        try {
          const limit = limitOf(end - Date.now());
          const response = await way.server.connection.unary(method, call.signal, limit, headers, request);
          this.#hasAnswered = true;
          return response.message;
        } catch (raised) {
          const error = call.errorFrom(raised);
          const waits = this.waitForReady && isAbsent(error) && Date.now() < begin + timeoutMs;
          attemptsLeft -= waits ? 0 : 1;
          const isAtOnce = way.movesOn(error);
          const wait = isOverloaded(error) ? toldBy(error) : isAtOnce ? 0 : delay;
          if (!mayPass(error) || attemptsLeft <= 0 || Date.now() + wait >= end) {
            throw error;
          }
          if (!isAtOnce) {
            await pause(wait, call.signal);
            delay = Math.min(2 * delay, DELAY_MAX_MS);
          }
        }
      }
    } finally {
      call.end();
    }
  }

  /** Yields all pages of an answer, each fetched when needed; `request` makes the request from a page token. */
  async *pages<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: (pageToken: string) => MessageInitShape<I>,
    options: CallOptions = {},
  ): AsyncGenerator<MessageShape<O>, void, undefined> {
    let pageToken = "";
    do {
      const page = await this.unary(method, request(pageToken), options);
      yield page;
      pageToken = (page as MessageShape<O> & { nextPageToken: string }).nextPageToken;
    } while (pageToken !== "");
  }

  /** Yields the responses of a call that has many. Tries each server once. Leaving the iteration ends the call. */
  async *stream<I extends DescMessage, O extends DescMessage, T>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    signal: AbortSignal,
    read: (response: MessageShape<O>) => T,
  ): AsyncGenerator<T, void, undefined> {
    const namespace = namespaceIn(request);
    const headers = await this.#headers(namespace);
    const way = this.#servers.begin(namespace);
    const call = this.#begin(signal);
    try {
      for (let hasBegun = false; ; ) {
        try {
          const { connection } = way.server;
          const answer = await connection.stream(method, call.signal, 0, headers, once(request));
          for await (const response of answer.message) {
            hasBegun = true;
            this.#hasAnswered = true;
            yield read(response);
          }
          return;
        } catch (raised) {
          const error = call.errorFrom(raised);
          if (!way.movesOn(error) || hasBegun) {
            throw error;
          }
        }
      }
    } finally {
      call.end();
    }
  }

  /** Runs a call with many requests once. An error of `requests` ends the upload and is thrown here. */
  async upload<I extends DescMessage, O extends DescMessage>(
    method: DescMethodClientStreaming<I, O>,
    requests: AsyncIterable<MessageInitShape<I>>,
    namespace: string,
    options: CallOptions = {},
  ): Promise<MessageShape<O>> {
    const headers = await this.#headers(namespace);
    const way = this.#servers.begin(namespace);
    const limit = limitOf(options.timeoutMs ?? Infinity);
    const call = this.#begin(options.signal);
    const failure: { error?: unknown } = {};
    let last: MessageShape<O> | undefined;
    try {
      const noted = notedIn(failure, requests);
      const answer = await way.server.connection.stream(method, call.signal, limit, headers, noted);
      for await (const response of answer.message) {
        last = response;
      }
    } catch (raised) {
      if ("error" in failure) {
        throw failure.error;
      }
      const error = call.errorFrom(raised);
      way.movesOn(error);
      throw error;
    } finally {
      call.end();
    }
    if (last === undefined) {
      throw new InternalError("the server ended the call without an answer", { code: "INTERNAL" });
    }
    return last;
  }

  /** Ends all calls and closes the connections. */
  close(): void {
    this.#isClosed = true;
    this.#calls.forEach((call) => call.abort(closedError()));
    this.#servers.all.forEach(({ sessions }) => sessions.abort());
  }

  /** Returns the headers of a call for a namespace, with the current token. */
  async #headers(namespace: string): Promise<Headers> {
    const { tokenSource } = this.#settings;
    const headers = new Headers(this.#settings.headers);
    const told = headerOf(namespace);
    if (told !== undefined) {
      headers.set(NAMESPACE_HEADER, told);
    }
    return tokenSource === undefined ? headers : withToken(headers, await tokenSource(), "tokenSource");
  }

  /** Begins a call that the caller's signal, closing the client, or `end` ends. */
  #begin(outer: AbortSignal | undefined) {
    outer?.throwIfAborted();
    if (this.#isClosed) {
      throw closedError();
    }
    const call = new AbortController();
    const abort = () => call.abort(outer?.reason);
    outer?.addEventListener("abort", abort, { once: true });
    this.#calls.add(call);
    return {
      signal: call.signal,
      errorFrom: (raised: unknown): unknown => {
        const error = errorFrom(raised);
        this.#hasAnswered ||= error.reason !== "";
        return call.signal.aborted ? call.signal.reason : error;
      },
      end: () => {
        outer?.removeEventListener("abort", abort);
        this.#calls.delete(call);
        call.abort();
      },
    };
  }
}

function serverAt(address: string, settings: Settings): Server {
  const { tls, keepaliveMs } = settings;
  const baseUrl = `${tls ? "https" : "http"}://${address}`;
  const keepalive = { pingIntervalMs: keepaliveMs, pingTimeoutMs: PING_TIMEOUT_MS };
  const sessions = new Http2SessionManager(baseUrl, keepalive, tls && tlsSettings(tls));
  const connection = createGrpcTransport({
    baseUrl,
    sessionManager: sessions,
    readMaxBytes: settings.maxReceiveBytes,
    acceptCompression: [],
  });
  return { address, sessions, connection };
}

function closedError(): MemoryServiceError {
  return new MemoryServiceError("the client is closed", { code: "CANCELLED" });
}

/** Returns a time limit as the connection takes it: whole milliseconds, at least one; 0: none. */
function limitOf(millis: number): number {
  return millis > TIMEOUT_MAX_MS ? 0 : Math.max(1, Math.ceil(millis));
}

function tlsSettings(tls: NonNullable<Settings["tls"]>) {
  const pem = (value: string | Uint8Array | undefined) =>
    typeof value === "string" || value === undefined ? value : Buffer.from(value);
  return {
    ...(tls.rootCertificates === undefined ? {} : { ca: pem(tls.rootCertificates)! }),
    ...(tls.certificate === undefined ? {} : { cert: pem(tls.certificate)! }),
    ...(tls.key === undefined ? {} : { key: pem(tls.key)! }),
    ...(tls.serverName === undefined ? {} : { servername: tls.serverName }),
  };
}

async function* once<T>(value: T): AsyncGenerator<T> {
  yield value;
}

/**
 * Passes requests on and records the error that ends them, which the connection would wrap. Errors that the
 * connection itself throws into this generator, after the server's answer, are not recorded.
 */
async function* notedIn<T>(failure: { error?: unknown }, requests: AsyncIterable<T>): AsyncGenerator<T> {
  const iterator = requests[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { done, value } = await iterator.next().catch((error: unknown) => {
        failure.error = error;
        throw error;
      });
      if (done) {
        return;
      }
      yield value;
    }
  } finally {
    await iterator.return?.();
  }
}

/** Returns the milliseconds that the server requests before a retry: spread out, but never less. */
function toldBy(error: Overloaded): number {
  return error.retryAfterMs / (1 - SPREAD);
}
