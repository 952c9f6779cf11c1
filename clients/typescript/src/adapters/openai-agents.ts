// Sessions of the OpenAI Agents SDK on a memory server. Needs the package `@openai/agents`.

import type { AgentInputItem, Session } from "@openai/agents";

import { connected } from "./connection.js";
import type { Connection } from "./connection.js";
import type { MemoryClient } from "../client.js";
import { ConflictError, NotFoundError } from "../errors.js";
import { invalid } from "../invalid.js";
import type { MemoryItem } from "../items.js";
import { itemsOf, recordOf, recordsOf, SESSION_LABEL } from "./session-items.js";

/** Where the items of a session are. */
export interface MemoryServiceSessionOptions {
  /** The conversation, 1 to 256 bytes. Also the `sessionId` of the items. */
  readonly sessionId: string;
  /** The namespace for the items. Undefined: the client's, or "default" for an address. */
  readonly namespace?: string | undefined;
}

/**
 * A session for `run(agent, input, { session })`.
 *
 *     const session = new MemoryServiceSession("127.0.0.1:50051", { sessionId: "trip", namespace: "ada" });
 *
 * Many processes may use a session at once. Items are returned verbatim. Each is also a chat message of the
 * namespace, which `retrieve` finds. Methods reject with the client's errors.
 */
export class MemoryServiceSession implements Session {
  readonly #connection: Connection;
  readonly #sessionId: string;
  readonly #labels: Readonly<Record<string, string>>;

  /**
   * Makes a session; nothing is written before the first item.
   *
   * @param client - a client, which stays open, or the address of a server
   * @throws InvalidArgumentError - the session's id is empty, or the first argument is neither
   */
  constructor(client: MemoryClient | string, options: MemoryServiceSessionOptions) {
    if (typeof options?.sessionId !== "string" || options.sessionId === "") {
      throw invalid("sessionId", "must be a text that is not empty");
    }
    this.#sessionId = options.sessionId;
    this.#labels = { [SESSION_LABEL]: options.sessionId };
    this.#connection = connected(client, options.namespace);
  }

  /** Returns the session's id. */
  async getSessionId(): Promise<string> {
    return this.#sessionId;
  }

  /**
   * Returns the newest items, the oldest of them first.
   *
   * @param limit - maximum number of items. Undefined: all
   */
  async getItems(limit?: number): Promise<AgentInputItem[]> {
    if (limit !== undefined && limit <= 0) {
      return [];
    }
    const found = await this.#connection.client.retrieve({ limit: limit ?? -1, labels: this.#labels });
    const items = found.flatMap(({ item }) => itemsOf(item)) as AgentInputItem[];
    // A record may have several items.
    return limit === undefined ? items : items.slice(-limit);
  }

  /**
   * Appends items, all or none. When this resolves, they are on disk.
   *
   * @throws InvalidArgumentError - an item is not JSON
   * @throws LimitExceededError - an item is larger than about 1.9 MiB as JSON, or together they are larger than a
   *   request may be: 16 MiB, where texts count twice
   */
  async addItems(items: AgentInputItem[]): Promise<void> {
    if (items.length > 0) {
      await this.#connection.client.batchAdd(recordsOf(items, this.#sessionId));
    }
  }

  /**
   * Removes and returns the newest item. Undefined: there is none. Concurrent calls, also from other processes, get
   * different items.
   */
  async popItem(): Promise<AgentInputItem | undefined> {
    for (;;) {
      const [newest] = await this.#connection.client.retrieve({ limit: 1, labels: this.#labels });
      if (newest === undefined) {
        return undefined;
      }
      const items = itemsOf(newest.item);
      const last = items.pop();
      if ((await this.#isReduced(newest.item, items)) && last !== undefined) {
        return last as AgentInputItem;
      }
    }
  }

  /** Leaves the given items in a record, or removes it if there are none. False: another client was faster. */
  async #isReduced({ id, revision }: MemoryItem, rest: readonly unknown[]): Promise<boolean> {
    const { client } = this.#connection;
    try {
      if (rest.length > 0) {
        const { content, metadata } = recordOf(rest, this.#sessionId);
        await client.update(id, { content, metadata }, { expectedRevision: revision });
      } else {
        await client.delete(id, { expectedRevision: revision });
      }
      return true;
    } catch (error) {
      if (error instanceof NotFoundError || error instanceof ConflictError) {
        return false;
      }
      throw error;
    }
  }

  /**
   * Removes the items that the session has when the call begins, up to 10,000 of them atomically. Nothing else in the
   * namespace is changed, not even other items with the session's id.
   */
  async clearSession(): Promise<void> {
    await this.#connection.client.deleteWhere({ labels: this.#labels });
  }

  /** Replaces all items, up to 10,000, atomically; the SDK calls it to compact a session. */
  async replaceHistoryWithCompaction(items: AgentInputItem[]): Promise<void> {
    const added = recordsOf(items, this.#sessionId);
    await this.#connection.client.batchWrite([
      { type: "delete_where", labels: this.#labels },
      ...added.map((item) => ({ type: "add", item }) as const),
    ]);
  }

  /** Closes the client, unless it was given. */
  close(): void {
    this.#connection.close();
  }
}
