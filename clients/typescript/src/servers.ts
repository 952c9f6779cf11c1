// Chooses the server of a call among several over the same records, and another if it is unavailable.
//
// The order in which a namespace's calls try the servers is the same in every client: see "Several servers" in
// clients/README.md, and clients/placement.json for examples.

import { createHash } from "node:crypto";

import { MemoryServiceError, UnavailableError } from "./errors.js";
import { invalid } from "./invalid.js";
import { texts } from "./shapes.js";

/**
 * How long a failed server is tried last. Doubled, its namespaces stay twice as long at servers that have to load
 * them, and calls meet a hanging server half as often.
 */
export const PASSED_OVER_MS = 5_000;

/** Header by which proxies see the namespace of a call. */
export const NAMESPACE_HEADER = "memory-namespace";
/** Longer names are not valid namespaces, and would fill the headers. */
const HEADER_BYTES_MAX = 1024;

const PORT_MAX = 65_535;
const WEIGHT_BYTES = 8;

/**
 * Reasons of UNAVAILABLE for which to try another server; empty: no server answered. Other reasons, such as
 * LLM_UNAVAILABLE, concern what all servers share.
 */
const AWAY: ReadonlySet<string> = new Set(["", "SHUTTING_DOWN", "STORAGE_UNAVAILABLE"]);

/**
 * Returns the addresses in a comma-separated text or in a list, in the given order.
 *
 * @throws InvalidArgumentError - an address is empty, repeated, or not a host and port
 */
export function addressesOf(given: string | readonly string[]): readonly string[] {
  const entries = typeof given === "string" ? given.split(",") : given;
  texts(entries, "address");
  if (entries.length === 0) {
    throw invalid("address", "none is given");
  }
  const found: string[] = [];
  for (const [index, entry] of entries.entries()) {
    const address = entry.trim();
    if (address === "") {
      throw invalid("address", `number ${index + 1} of ${entries.length} is empty`);
    }
    const [, port] = /^[^\s/@]+:(\d+)$/.exec(address) ?? [];
    if (port === undefined) {
      throw invalid("address", `must be a host and a port, not ${JSON.stringify(address)}`);
    }
    if (Number(port) < 1 || Number(port) > PORT_MAX) {
      throw invalid("address", `the port of ${JSON.stringify(address)} is not 1 to ${PORT_MAX}`);
    }
    if (found.includes(address)) {
      throw invalid("address", `${JSON.stringify(address)} is given twice`);
    }
    found.push(address);
  }
  return found;
}

/**
 * Returns the indexes of the addresses in the order in which the calls of a namespace try them: by weight,
 * highest first; without a namespace, as given.
 */
export function orderOf(addresses: readonly string[], namespace: string): number[] {
  const indexes = [...addresses.keys()];
  if (namespace === "" || addresses.length === 1) {
    return indexes;
  }
  const weights = addresses.map((address) => weightOf(address, namespace));
  return indexes.sort((a, b) => weights[b]!.compare(weights[a]!));
}

/** Returns the weight of an address for a namespace: 8 bytes that compare as a big-endian integer. */
export function weightOf(address: string, namespace: string): Buffer {
  return createHash("sha256").update(`${address}\0${namespace}`).digest().subarray(0, WEIGHT_BYTES);
}

/** Returns the header with the namespace, encoded like grpc-message. Undefined: none is sent. */
export function headerOf(namespace: string): string | undefined {
  const percent = (byte: number) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  const isPlain = (byte: number) => byte >= 0x20 && byte <= 0x7e && byte !== 0x25;
  const bytes = new TextEncoder().encode(namespace);
  const encoded = Array.from(bytes, (byte) => (isPlain(byte) ? String.fromCharCode(byte) : percent(byte))).join("");
  return encoded !== "" && encoded.length <= HEADER_BYTES_MAX ? encoded : undefined;
}

/** Returns the namespace of a request. Empty: none. */
export function namespaceIn(request: object): string {
  const { namespace } = request as { namespace?: unknown };
  return typeof namespace === "string" ? namespace : "";
}

/** Whether a call failed because its server is unavailable, not for a reason that all servers share. */
export function isAway(error: unknown): boolean {
  return error instanceof UnavailableError && AWAY.has((error as MemoryServiceError).reason);
}

/** Servers over the same records, with their recent failures. */
export class Servers<S extends { readonly address: string }> {
  readonly #passedOverUntil = new Map<S, number>();

  constructor(readonly all: readonly S[]) {}

  /** Begins the attempts of one call at the servers. */
  begin(namespace: string): Way<S> {
    const now = performance.now();
    const order = orderOf(
      this.all.map(({ address }) => address),
      namespace,
    ).map((index) => this.all[index]!);
    const isPassedOver = (server: S) => (this.#passedOverUntil.get(server) ?? 0) > now;
    // Servers that failed recently are last.
    const way = [...order.filter((server) => !isPassedOver(server)), ...order.filter(isPassedOver)];
    return new Way(way, (server) => this.#passedOverUntil.set(server, performance.now() + PASSED_OVER_MS));
  }
}

/** The attempts of one call at the servers. */
export class Way<S> {
  readonly #servers: readonly S[];
  readonly #failed: (server: S) => void;
  #moves = 0;

  constructor(servers: readonly S[], failed: (server: S) => void) {
    this.#servers = servers;
    this.#failed = failed;
  }

  /** The server for the next attempt. */
  get server(): S {
    return this.#servers[this.#moves % this.#servers.length]!;
  }

  get length(): number {
    return this.#servers.length;
  }

  /** Notes a failed attempt; returns whether the next one goes to a server not tried yet. */
  movesOn(error: unknown): boolean {
    if (!isAway(error)) {
      return false;
    }
    this.#failed(this.server);
    this.#moves++;
    return this.#moves < this.#servers.length;
  }
}
