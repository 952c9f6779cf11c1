// How a client reaches its server, and the options of every call.

import { isIPv4 } from "node:net";

import { invalid } from "./invalid.js";
import { addressesOf } from "./servers.js";

/** Options that every method takes. */
export interface CallOptions {
  /** When aborted, ends the call, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Maximum duration of the call in milliseconds, retries included. Undefined: the client's. Infinity: no limit. */
  readonly timeoutMs?: number | undefined;
}

/** Options that every write takes. */
export interface WriteOptions extends CallOptions {
  /** Makes a retry safe: the write is applied once. Undefined: a new id for this call. */
  readonly requestId?: string | undefined;
}

/** How a client reaches its server. */
export interface ClientOptions {
  /** The namespace that the client is bound to, usually one user or one agent. Undefined: "default". */
  readonly namespace?: string | undefined;
  /**
   * Maximum duration of a call in milliseconds, retries included, by default 30 000. Infinity: no limit. Streams
   * have no limit.
   */
  readonly timeoutMs?: number | undefined;
  /**
   * How often a call is tried while the server is unavailable or overloaded, 1 to 5, by default 5. Writes carry
   * a request id, so that a retried write is applied once.
   */
  readonly maxAttempts?: number | undefined;
  /**
   * Whether a call waits for an unreachable server, for as long as this `timeoutMs`, instead of failing after
   * the last attempt. Undefined: only after the server has answered a call, so that a wrong address is reported
   * soon and a restart goes unnoticed.
   */
  readonly waitForReady?: boolean | undefined;
  /** Milliseconds of silence after which an open call checks that the server is there, by default 60 000. */
  readonly keepaliveMs?: number | undefined;
  /** Largest message accepted from the server, in bytes, by default 16 MiB. */
  readonly maxReceiveBytes?: number | undefined;
  /** Encrypt the connection: true, or the certificates to trust and to present. */
  readonly tls?: boolean | TlsOptions | undefined;
  /** An API key or another token that does not expire, sent with every call as "authorization: Bearer ...". */
  readonly apiKey?: string | undefined;
  /**
   * Called for the token of each call, in place of `apiKey`, for tokens that expire. If it throws, the call
   * rejects with its error. `timeoutMs` does not limit it.
   */
  readonly tokenSource?: TokenSource | undefined;
  /** Send credentials to another machine even without `tls`: anything on the network path can read them. */
  readonly allowInsecureToken?: boolean | undefined;
  /** Sent with every call. A header named "authorization" is a credential and needs `tls`, as `apiKey` does. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Returns the token of a call. */
export type TokenSource = () => string | Promise<string>;

/** The certificates that an encrypted connection trusts and presents, as PEM. */
export interface TlsOptions {
  /** CA certificates to trust. Undefined: those that come with Node.js. */
  readonly rootCertificates?: string | Uint8Array | undefined;
  /** The client's own certificate, for servers that ask for one. */
  readonly certificate?: string | Uint8Array | undefined;
  /** The private key of the client's certificate. */
  readonly key?: string | Uint8Array | undefined;
  /** The name in the server's certificate, if it is not the host of the address. */
  readonly serverName?: string | undefined;
}

const ATTEMPTS_MAX = 5;
const MIB = 1024 * 1024;
/** Length of a message, which gRPC sends in 32 bits. */
const RECEIVE_BYTES_MAX = 2 ** 32 - 1;

/**
 * The settings of a client, with all defaults filled in.
 *
 * @internal
 */
export interface Settings {
  readonly addresses: readonly string[];
  readonly timeoutMs: number;
  readonly maxAttempts: number;
  readonly waitForReady: boolean | undefined;
  readonly keepaliveMs: number;
  readonly maxReceiveBytes: number;
  readonly tls: TlsOptions | undefined;
  readonly headers: Headers;
  readonly tokenSource: TokenSource | undefined;
}

/**
 * Fills in the defaults.
 *
 * @throws InvalidArgumentError - a setting is out of range, credentials would be sent unencrypted, or the name or value
 *   of a header is not allowed in HTTP
 * @internal
 */
export function settingsFrom(address: string | readonly string[], options: ClientOptions): Settings {
  const addresses = addressesOf(address);
  const { timeoutMs = 30_000, maxAttempts = ATTEMPTS_MAX, keepaliveMs = 60_000 } = options;
  const { maxReceiveBytes = 16 * MIB, waitForReady, tls = false } = options;
  if (!Number.isInteger(maxAttempts) || maxAttempts < 1 || maxAttempts > ATTEMPTS_MAX) {
    throw invalid("maxAttempts", `must be 1 to ${ATTEMPTS_MAX}, not ${maxAttempts}`);
  }
  for (const [name, value] of Object.entries({ timeoutMs, keepaliveMs, maxReceiveBytes })) {
    if (!(value > 0)) {
      throw invalid(name, `must be positive, not ${value}`);
    }
  }
  if (maxReceiveBytes > RECEIVE_BYTES_MAX) {
    throw invalid("maxReceiveBytes", `must be at most ${RECEIVE_BYTES_MAX}, not ${maxReceiveBytes}`);
  }
  return {
    addresses,
    timeoutMs,
    maxAttempts,
    waitForReady,
    keepaliveMs,
    maxReceiveBytes,
    tls: tls === true ? {} : tls || undefined,
    headers: headersFrom(addresses, options),
    tokenSource: options.tokenSource,
  };
}

/** Returns the headers of every call, and rejects credentials that would be sent unencrypted. */
function headersFrom(addresses: readonly string[], options: ClientOptions): Headers {
  const { apiKey, tokenSource, tls = false, allowInsecureToken = false } = options;
  const sent = new Headers();
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    try {
      sent.append(name, value);
    } catch {
      // The error would show the value.
      throw invalid("headers", `the header ${JSON.stringify(name)} cannot be sent`);
    }
  }
  const credentials = { apiKey, tokenSource, headers: sent.get("authorization") ?? undefined };
  const given = Object.entries(credentials).filter(([, value]) => value !== undefined);
  const nameOfCredential = given[0]?.[0] ?? "";
  if (given.length > 1) {
    throw invalid(nameOfCredential, "only one of apiKey, tokenSource and an authorization header can be given");
  }
  if (given.length > 0 && !tls && !allowInsecureToken && !addresses.every(isLoopback)) {
    throw invalid(
      nameOfCredential,
      "credentials need tls: without it, anything on the network path could read them; " +
        "allowInsecureToken sends them anyway",
    );
  }
  return apiKey === undefined ? sent : withToken(sent, apiKey, "apiKey");
}

/**
 * Returns headers with a token added; `where` names it in errors.
 *
 * @throws InvalidArgumentError - no header can carry it; the error does not show it
 * @internal
 */
export function withToken(headers: Headers, token: string, where: string): Headers {
  if (typeof token !== "string" || !/^[\x21-\x7e]+$/.test(token)) {
    throw invalid(where, "the token must be printable ASCII text without spaces");
  }
  const all = new Headers(headers);
  all.set("authorization", `Bearer ${token}`);
  return all;
}

/** Whether data sent to an address stays on this machine. */
function isLoopback(address: string): boolean {
  const host = address.slice(0, address.lastIndexOf(":"));
  return host === "localhost" || host === "[::1]" || (isIPv4(host) && host.startsWith("127."));
}
