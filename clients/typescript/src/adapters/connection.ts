// What the adapters for frameworks share.

import { MemoryClient } from "../client.js";
import { invalid, typeOf } from "../invalid.js";

/** A client, and how an adapter ends its use. */
export interface Connection {
  readonly client: MemoryClient;
  /** Closes the client if it was made for the adapter. */
  close(): void;
}

/**
 * Returns a client bound to a namespace: the one given, or one made for an address.
 *
 * @param namespace - undefined: the client's, or "default" for an address
 * @throws InvalidArgumentError - the first argument is neither, or the namespace is no string
 */
export function connected(client: MemoryClient | string, namespace: string | undefined): Connection {
  if (client instanceof MemoryClient) {
    return { client: namespace === undefined ? client : client.namespace(namespace), close: () => {} };
  }
  if (typeof client !== "string") {
    throw invalid("client", `must be a MemoryClient or an address, not ${typeOf(client)}`);
  }
  const made = new MemoryClient(client, { namespace });
  return { client: made, close: () => made.close() };
}
