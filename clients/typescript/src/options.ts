// How a client reaches its server, and what every call takes.

import { isIPv4 } from "node:net";

import { addressesOf } from "./servers.js";

/** What every method takes beside its own options. */
export interface CallOptions {
  /** Ends the call when it is aborted; the call then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds that the call may take, retries included. Undefined: the client's. Infinity: no limit. */
  readonly timeoutMs?: number | undefined;
}

/** What every write takes beside its own options. */
export interface WriteOptions extends CallOptions {
  /** Applied once, however often it is sent. Undefined: a new one for this call. */
  readonly requestId?: string | undefined;
}

/** How a client reaches its server. */
export interface ClientOptions {
  /** The namespace that the client is bound to, usually one user or one agent. Undefined: "default". */
  readonly namespace?: string | undefined;
  /**
   * Milliseconds that a call may take, retries included: 30 000 unless given. Infinity: no limit. Streams
   * have none.
   */
  readonly timeoutMs?: number | undefined;
  /**
   * How often a call is tried while the server is unavailable or has too much to do, 1 to 5: 5 unless given.
   * Writes carry a request id, so that one that is tried twice is still applied once.
   */
  readonly maxAttempts?: number | undefined;
  /**
   * Whether a call waits for a server that cannot be reached, for as long as this `timeoutMs`, rather than
   * fail after the last attempt. Undefined: once the server has answered a call, so that a wrong address is
   * told at once and nobody notices a restart.
   */
  readonly waitForReady?: boolean | undefined;
  /**
   * Milliseconds of silence after which an open call checks that the server is still there: 60 000 unless
   * given.
   */
  readonly keepaliveMs?: number | undefined;
  /** Largest message that is taken from the server, in bytes: 16 MiB unless given. */
  readonly maxReceiveBytes?: number | undefined;
  /** Encrypt the connection: true, or what to trust and to present. */
  readonly tls?: boolean | TlsOptions | undefined;
  /** An API key, or another token that does not expire: sent with every call as "authorization: Bearer ...". */
  readonly apiKey?: string | undefined;
  /**
   * Asked for the token of each call, in place of `apiKey`: for tokens that expire. What it throws, the call
   * rejects with. It is not bound by `timeoutMs`.
   */
  readonly tokenSource?: TokenSource | undefined;
  /**
   * Send credentials to another machine even without `tls`: everybody on the way can read and use them.
   */
  readonly allowInsecureToken?: boolean | undefined;
  /** Sent with every call. One named "authorization" is a credential, and needs `tls` as `apiKey` does. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Returns the token of a call. */
export type TokenSource = () => string | Promise<string>;

/** What an encrypted connection trusts and presents. All as PEM. */
export interface TlsOptions {
  /** Certificates to trust. Undefined: those that Node.js brings along. */
  readonly rootCertificates?: string | Uint8Array | undefined;
  /** The client's own certificate, for servers that ask for one. */
  readonly certificate?: string | Uint8Array | undefined;
  /** The key of the client's own certificate. */
  readonly key?: string | Uint8Array | undefined;
  /** The name that the server's certificate is for, if it is not the host of the address. */
  readonly serverName?: string | undefined;
}

const ATTEMPTS_MAX = 5;
const MIB = 1024 * 1024;

/**
 * The settings of a client, with nothing left open.
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
 * Fills in what was not given.
 *
 * @throws RangeError - a setting is out of range, or others could read the credentials
 * @throws TypeError - a header has a name or a value that HTTP does not allow
 * @internal
 */
export function settingsFrom(address: string | readonly string[], options: ClientOptions): Settings {
  const addresses = addressesOf(address);
  const { timeoutMs = 30_000, maxAttempts = ATTEMPTS_MAX, keepaliveMs = 60_000 } = options;
  const { maxReceiveBytes = 16 * MIB, waitForReady, tls = false } = options;
  if (!Number.isInteger(maxAttempts) || maxAttempts < 1 || maxAttempts > ATTEMPTS_MAX) {
    throw new RangeError(`maxAttempts must be 1 to ${ATTEMPTS_MAX}, not ${maxAttempts}`);
  }
  for (const [name, value] of Object.entries({ timeoutMs, keepaliveMs, maxReceiveBytes })) {
    if (!(value > 0)) {
      throw new RangeError(`${name} must be positive, not ${value}`);
    }
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

/** Returns what is sent with every call, once it is sure that nobody else can read it. */
function headersFrom(addresses: readonly string[], options: ClientOptions): Headers {
  const { apiKey, tokenSource, tls = false, allowInsecureToken = false } = options;
  const sent = new Headers();
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    try {
      sent.append(name, value);
    } catch {
      // The error would show the value.
      throw new TypeError(`the header ${JSON.stringify(name)} cannot be sent`);
    }
  }
  const given = [apiKey !== undefined, tokenSource !== undefined, sent.has("authorization")].filter(Boolean);
  if (given.length > 1) {
    throw new RangeError("only one of apiKey, tokenSource and the header authorization can be sent");
  }
  if (given.length > 0 && !tls && !allowInsecureToken && !addresses.every(isLoopback)) {
    throw new RangeError(
      "credentials need tls: without it, everybody on the way could read them; " +
        "allowInsecureToken sends them all the same",
    );
  }
  return apiKey === undefined ? sent : withToken(sent, apiKey);
}

/**
 * Returns headers that carry a token beside others.
 *
 * @throws RangeError - no header can carry it; the error does not show it
 * @internal
 */
export function withToken(headers: Headers, token: string): Headers {
  if (typeof token !== "string" || !/^[\x21-\x7e]+$/.test(token)) {
    throw new RangeError("the token is no text of printable ASCII characters without spaces");
  }
  const all = new Headers(headers);
  all.set("authorization", `Bearer ${token}`);
  return all;
}

/** Whether what is sent to an address stays on this machine. */
function isLoopback(address: string): boolean {
  const host = address.slice(0, address.lastIndexOf(":"));
  return host === "localhost" || host === "[::1]" || (isIPv4(host) && host.startsWith("127."));
}
