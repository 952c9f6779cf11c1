// How the corpus' calls become calls of the client: one small adapter for each RPC.

import type { DescService } from "@bufbuild/protobuf";

import type { MemoryClient } from "../src/index.js";
import type { Native } from "./peer-messages.js";
import { Inexpressible } from "./peer-messages.js";

/** Makes one RPC through the client's public methods. */
export interface Adapter {
  /** Fields of the request that it passes on; others are inexpressible. `namespace` is taken by all. */
  readonly sent: readonly string[];
  /** Makes the call; returns the fields of the response, or of each response of a stream. */
  readonly call: (client: MemoryClient, request: never) => Promise<object>;
}

/** An adapter for each method of a service. */
export type Adapters<S extends DescService> = Readonly<Record<keyof S["method"], Adapter>>;

/** Makes an adapter; `R` is what the client's method takes, so that the compiler knows of each name in `sent`. */
export function adapter<R>(
  sent: readonly (keyof R & string)[],
  call: (client: MemoryClient, request: R) => Promise<object>,
): Adapter {
  return { sent, call };
}

/** Returns a message that has to be there. */
export function required<T>(value: T | undefined, what: string): T {
  if (value === undefined) {
    throw new Inexpressible(`${what}: unset`);
  }
  return value;
}

/** Returns all entries of an iteration. */
export async function all<T>(entries: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const entry of entries) {
    list.push(entry);
  }
  return list;
}

/**
 * Returns the changes of an update. The client's mask names exactly the given fields, so that a value outside
 * the mask cannot be sent; `cleared` has the empty value of each field that only the mask names.
 */
export function changesOf(values: Native, mask: { paths: string[] } | undefined, cleared: Native): Native {
  if (mask === undefined || mask.paths.length === 0) {
    return values;
  }
  const names = mask.paths.map(nativeName);
  const unnamed = Object.keys(values).find((name) => !names.includes(name));
  if (unnamed !== undefined) {
    throw new Inexpressible(`${unnamed}: not in the mask`);
  }
  return Object.fromEntries(names.map((name) => [name, required(values[name] ?? cleared[name], name)]));
}

function nativeName(path: string): string {
  if (["text", "data", "chat_message", "tool_call_result"].includes(path)) {
    return "content";
  }
  return path === "ttl" ? "ttlMs" : path.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}

/** Returns what a deletion returned, with the number of derived items that it reported. */
export async function withDerived(
  deletion: (onDerived: (count: number) => void) => Promise<object>,
): Promise<object> {
  let derivedCount = 0;
  const deleted = await deletion((count) => (derivedCount = count));
  return { ...deleted, derivedCount };
}
