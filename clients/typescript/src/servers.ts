// Several equal servers: which of them a call goes to, and where it goes when that one is away.
//
// The order in which a namespace's calls try the servers is the same in every client: see "Several servers" in
// clients/README.md, and clients/placement.json for examples.

import { createHash } from "node:crypto";

import { MemoryServiceError, UnavailableError } from "./errors.js";

/**
 * How long a server that failed is tried last. Doubled, its namespaces stay for twice as long where they are not
 * in memory, and calls meet a server that hangs half as often.
 */
export const PASSED_OVER_MS = 5_000;

/** The header that tells proxies the namespace of a call. */
export const NAMESPACE_HEADER = "memory-namespace";
/** Longer names are no namespaces, and would fill the headers. */
const HEADER_BYTES_MAX = 1024;

const PORT_MAX = 65_535;
const WEIGHT_BYTES = 8;

/**
 * Reasons of UNAVAILABLE that another server need not have; empty: no server answered. The others, such as
 * LLM_UNAVAILABLE, are of what all servers share.
 */
const AWAY: ReadonlySet<string> = new Set(["", "SHUTTING_DOWN", "STORAGE_UNAVAILABLE"]);

/**
 * Returns the addresses that a text with commas between them holds, or a list of them, in its order.
 *
 * @throws RangeError - one is empty, is there twice, or is no host and port
 */
export function addressesOf(given: string | readonly string[]): readonly string[] {
  const entries = typeof given === "string" ? given.split(",") : given;
  if (entries.length === 0) {
    throw new RangeError("address: there is none");
  }
  const found: string[] = [];
  for (const [index, entry] of entries.entries()) {
    const address = entry.trim();
    if (address === "") {
      throw new RangeError(`address: number ${index + 1} of ${entries.length} is empty`);
    }
    const [, port] = /^[^\s/@]+:(\d+)$/.exec(address) ?? [];
    if (port === undefined) {
      throw new RangeError(`address: it must be a host and a port, not ${JSON.stringify(address)}`);
    }
    if (Number(port) < 1 || Number(port) > PORT_MAX) {
      throw new RangeError(`address: the port of ${JSON.stringify(address)} is not 1 to ${PORT_MAX}`);
    }
    if (found.includes(address)) {
      throw new RangeError(`address: ${JSON.stringify(address)} is there twice`);
    }
    found.push(address);
  }
  return found;
}

/**
 * Returns the indexes of the addresses in the order in which the calls of a namespace try them: that of their
 * weights, the highest first. Without a namespace it is the order in which they were given.
 */
export function orderOf(addresses: readonly string[], namespace: string): number[] {
  const indexes = [...addresses.keys()];
  if (namespace === "" || addresses.length === 1) {
    return indexes;
  }
  const weights = addresses.map((address) => weightOf(address, namespace));
  return indexes.sort((a, b) => weights[b]!.compare(weights[a]!));
}

/** Returns the weight that an address has for a namespace: 8 bytes, which compare as a big-endian integer. */
export function weightOf(address: string, namespace: string): Buffer {
  return createHash("sha256").update(`${address}\0${namespace}`).digest().subarray(0, WEIGHT_BYTES);
}

/** Returns what tells proxies the namespace, encoded as gRPC encodes grpc-message. Undefined: nothing is sent. */
export function headerOf(namespace: string): string | undefined {
  const percent = (byte: number) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  const isPlain = (byte: number) => byte >= 0x20 && byte <= 0x7e && byte !== 0x25;
  const bytes = new TextEncoder().encode(namespace);
  const encoded = Array.from(bytes, (byte) => (isPlain(byte) ? String.fromCharCode(byte) : percent(byte))).join("");
  return encoded !== "" && encoded.length <= HEADER_BYTES_MAX ? encoded : undefined;
}

/** Returns the namespace that a request is about. Empty: it has none. */
export function namespaceIn(request: object): string {
  const { namespace } = request as { namespace?: unknown };
  return typeof namespace === "string" ? namespace : "";
}

/** Whether a call failed because its server is away, and not for what all servers share. */
export function isAway(error: unknown): boolean {
  return error instanceof UnavailableError && AWAY.has((error as MemoryServiceError).reason);
}

/** Equal servers, some of which failed a short while ago. */
export class Servers<S extends { readonly address: string }> {
  readonly #passedOverUntil = new Map<S, number>();

  constructor(readonly all: readonly S[]) {}

  /** Returns the way of one call through the servers. */
  begin(namespace: string): Way<S> {
    const now = performance.now();
    const order = orderOf(
      this.all.map(({ address }) => address),
      namespace,
    ).map((index) => this.all[index]!);
    const isPassedOver = (server: S) => (this.#passedOverUntil.get(server) ?? 0) > now;
    // Those that failed a short while ago are the last.
    const way = [...order.filter((server) => !isPassedOver(server)), ...order.filter(isPassedOver)];
    return new Way(way, (server) => this.#passedOverUntil.set(server, performance.now() + PASSED_OVER_MS));
  }
}

/** The way of one call through the servers. */
export class Way<S> {
  readonly #servers: readonly S[];
  readonly #failed: (server: S) => void;
  #moves = 0;

  constructor(servers: readonly S[], failed: (server: S) => void) {
    this.#servers = servers;
    this.#failed = failed;
  }

  /** The server that the next attempt goes to. */
  get server(): S {
    return this.#servers[this.#moves % this.#servers.length]!;
  }

  get length(): number {
    return this.#servers.length;
  }

  /** Notes that an attempt failed; tells whether the next one goes to a server that was not tried yet. */
  movesOn(error: unknown): boolean {
    if (!isAway(error)) {
      return false;
    }
    this.#failed(this.server);
    this.#moves++;
    return this.#moves < this.#servers.length;
  }
}
