// Long-term memory of LangGraph.js on a memory server. Needs the package `@langchain/langgraph-checkpoint`.

import { BaseStore } from "@langchain/langgraph-checkpoint";
import type {
  GetOperation,
  IndexConfig,
  Item,
  ListNamespacesOperation,
  Operation,
  OperationResults,
  PutOperation,
  SearchItem,
  SearchOperation,
} from "@langchain/langgraph-checkpoint";

import { connected } from "./connection.js";
import type { Connection } from "./connection.js";
import type { MemoryClient } from "../client.js";
import { NotFoundError } from "../errors.js";
import type { MemoryItem, Vector } from "../items.js";
import { filterOf } from "./langgraph-filters.js";
import * as items from "./langgraph-items.js";
import { PARTS_OF, PATH, UNINDEXED } from "./langgraph-items.js";
import type { Results, RetrieveOptions } from "../memory-options.js";
import type { WriteOperation } from "../write-operations.js";

/** Operations of a batch: the server takes 1000, and an item with vectors may need some more. */
const OPERATIONS_MAX = 900;
/** Ids in a filter, which may have 64 comparisons. */
const IDS_MAX = 50;
/** Gets of a batch that are calls; more are searches by id, for which the server loads all ids once. */
const SINGLE_GETS_MAX = 16;
/** Namespaces to look at in a call: with more, the first come later; with fewer, a suffix needs more calls. */
const NAMESPACES_AT_ONCE = 400;

/** How a store keeps and finds items. */
export interface MemoryServiceStoreOptions {
  /** Namespace of the server for the items. Undefined: the client's, or "default" for an address. */
  readonly namespace?: string | undefined;
  /** Find by these fields, and with `embeddings` by vectors of this model. Undefined: by all of a value. */
  readonly index?: Partial<IndexConfig> | undefined;
}

/**
 * A `BaseStore` on a memory server; the items are plain items of the client's namespace, which the Python client's
 * `MemoryServiceStore` also reads and writes.
 *
 *     const store = new MemoryServiceStore("127.0.0.1:50051", { namespace: "ada" });
 *     const graph = builder.compile({ store });
 *
 * Without `index.embeddings`, queries search words and the server's vectors of the fields. With it, they search these
 * vectors by cosine; then nothing else may write vectors to this namespace of the server. The puts and deletes of a
 * batch of up to 900 are applied together or not at all, after its reads.
 *
 * A namespace may have up to 30 names, together about 250 bytes, and a value up to 256 KiB of JSON. Methods reject with
 * the client's errors, or LangGraph's `InvalidNamespaceError`.
 */
export class MemoryServiceStore extends BaseStore {
  readonly #connection: Connection;
  readonly #index: Partial<IndexConfig>;

  /**
   * Makes a store; nothing is written before the first item.
   *
   * @param client - a client, which stays open, or the address of a server
   */
  constructor(client: MemoryClient | string, options: MemoryServiceStoreOptions = {}) {
    super();
    this.#connection = connected(client, options.namespace);
    this.#index = options.index ?? {};
  }

  /** Runs operations, first the reads, side by side, then the writes; returns their results. */
  override async batch<Op extends Operation[]>(operations: Op): Promise<OperationResults<Op>> {
    const all: readonly Operation[] = operations;
    const gets = all.filter(isGet);
    const found = gets.length > SINGLE_GETS_MAX ? await this.#items(gets.map(idOf)) : undefined;
    const results = await Promise.all(
      all.map((operation): Promise<unknown> | undefined => {
        if (isGet(operation)) {
          return this.#get(idOf(operation), found);
        }
        if ("namespacePrefix" in operation) {
          return this.#search(operation);
        }
        return isPut(operation) ? undefined : this.#listNamespaces(operation);
      }),
    );
    await this.#write(all.filter(isPut));
    return results as OperationResults<Op>;
  }

  /** Closes the client, unless it was given. */
  override stop(): void {
    this.#connection.close();
  }

  async #get(id: string, found: ReadonlyMap<string, MemoryItem> | undefined): Promise<Item | null> {
    try {
      const item = found === undefined ? await this.#connection.client.get(id) : found.get(id);
      return item === undefined ? null : items.itemOf(item);
    } catch (error) {
      if (error instanceof NotFoundError) {
        return null;
      }
      throw error;
    }
  }

  async #search(operation: SearchOperation): Promise<SearchItem[]> {
    const { namespacePrefix, query = "", limit = 10, offset = 0 } = operation;
    const [depth, path] = [namespacePrefix.length, items.pathOf(namespacePrefix)];
    const labels = { [`${PATH}_${depth}`]: path };
    const filter = filterOf("data.value", operation.filter);
    const newest = (options: RetrieveOptions) =>
      this.#connection.client.retrieve({ labels, filter, orderBy: "revision desc", ...options });
    if (query === "") {
      return (await newest({ limit, skip: offset })).map(({ item }) => items.itemOf(item));
    }
    const indexed = { [`${PATH}_indexed_${depth}`]: path };
    const found = await this.#best(query, { labels: indexed, filter }, limit, offset);
    if (found.length < limit && offset === 0) {
      // As LangGraph's own store, which goes on with items that have no vector.
      const rest = await newest({ limit: limit - found.length, labels: { ...labels, [UNINDEXED]: "true" } });
      found.push(...rest.map(({ item }) => items.itemOf(item)));
    }
    return found;
  }

  /** Returns the best items for the query. An item with several vectors has the score of the nearest. */
  async #best(query: string, options: RetrieveOptions, limit: number, offset: number): Promise<SearchItem[]> {
    const embedding: Vector | undefined = await this.#index.embeddings?.embedQuery(query);
    const retrieve = (count: number): Promise<Results> =>
      embedding === undefined
        ? this.#connection.client.retrieve(query, { ...options, limit: count })
        : this.#connection.client.retrieve({ ...options, limit: count, embedding, mode: "vector" });
    const wanted = offset + limit;
    const scores = new Map<string, number>();
    let found: Results;
    let count = wanted;
    for (;;) {
      found = await retrieve(count);
      for (const { item, score } of found) {
        const id = item.labels[PARTS_OF] ?? item.id;
        scores.set(id, scores.get(id) ?? score);
      }
      if (scores.size >= wanted || found.length < count) {
        break;
      }
      count *= 2;
    }
    const best = [...scores].slice(offset, wanted);
    const known = new Map(found.map(({ item }) => [item.id, item]));
    const missing = await this.#items(best.map(([id]) => id).filter((id) => !known.has(id)));
    return best.flatMap(([id, score]) => {
      const item = known.get(id) ?? missing.get(id);
      return item === undefined ? [] : [{ ...items.itemOf(item), score }];
    });
  }

  async #items(ids: readonly string[]): Promise<Map<string, MemoryItem>> {
    const distinct = [...new Set(ids)];
    const found = new Map<string, MemoryItem>();
    for (let start = 0; start < distinct.length; start += IDS_MAX) {
      const filter = `id IN (${distinct.slice(start, start + IDS_MAX).join(", ")})`;
      for (const { item } of await this.#connection.client.retrieve({ limit: -1, filter })) {
        found.set(item.id, item);
      }
    }
    return found;
  }

  async #write(puts: readonly PutOperation[]): Promise<void> {
    const last = [...new Map(puts.map((put) => [idOf(put), put])).values()];
    const texts = last.map((put) => this.#texts(put));
    const { embeddings } = this.#index;
    const vectors: Vector[] = (texts.flat().length > 0 && (await embeddings?.embedDocuments(texts.flat()))) || [];
    let taken = 0;
    let batch: WriteOperation[] = [];
    for (const [index, put] of last.entries()) {
      const own = texts[index]!;
      const end = taken + own.length;
      const operations = items.operationsOf(put, own, embeddings && vectors.slice(taken, end));
      taken = end;
      if (batch.length > 0 && batch.length + operations.length > OPERATIONS_MAX) {
        await this.#connection.client.batchWrite(batch);
        batch = [];
      }
      batch.push(...operations);
    }
    if (batch.length > 0) {
      await this.#connection.client.batchWrite(batch);
    }
  }

  /** Returns the texts by which queries find the item; each has a vector, if this store makes them. */
  #texts({ value, index }: PutOperation): string[] {
    if (value === null || index === false) {
      return [];
    }
    const paths: readonly string[] = index ?? this.#index.fields ?? ["$"];
    const texts = paths.flatMap((path) => items.textsAt(value, path));
    return this.#index.embeddings !== undefined || texts.length === 0 ? texts : [texts.join("\n")];
  }

  /** Lists namespaces from the values of labels. Only a wildcard or a suffix needs to look at many. */
  async #listNamespaces(operation: ListNamespacesOperation): Promise<string[][]> {
    const { maxDepth, limit = 100, offset = 0, matchConditions = [] } = operation;
    const prefixes = matchConditions.map(items.literalPrefix);
    const prefix = prefixes.reduce((longest, each) => (each.length > longest.length ? each : longest), []);
    const wanted = offset + limit;
    const isPrefix = matchConditions.every(({ path }, index) => path.length === prefixes[index]!.length);
    const isShortened = isPrefix && maxDepth !== undefined && prefix.length <= maxDepth;
    const conditions = isShortened ? [] : matchConditions;
    // Deeper namespaces, shortened, and those that are not as deep.
    const depths = [...Array(Math.max((maxDepth ?? 0) - 1, 0)).keys()].map((each) => `${PATH}_depth_${each + 1}`);
    const keys = isShortened ? [`${PATH}_${maxDepth}`, ...depths] : [PATH];
    const pageSize = isPrefix ? Math.min(1000, Math.max(1, wanted)) : NAMESPACES_AT_ONCE;
    const found: string[] = [];
    for (const key of wanted > 0 ? keys : []) {
      const paths = new Set<string>();
      const values = this.#connection.client.listLabelValues(key, { prefix: items.pathOf(prefix), pageSize });
      for await (const { value } of values) {
        const names = items.namesOf(value);
        if (conditions.every((each) => items.matches(each, names))) {
          paths.add(items.pathOf(names.slice(0, maxDepth)));
        }
        if (paths.size >= wanted) {
          break;
        }
      }
      found.push(...paths);
    }
    return found.sort().slice(offset, wanted).map(items.namesOf);
  }
}

function isGet(operation: Operation): operation is GetOperation {
  return "key" in operation && !("value" in operation);
}

function isPut(operation: Operation): operation is PutOperation {
  return "value" in operation;
}

function idOf({ namespace, key }: GetOperation | PutOperation): string {
  return items.idOf(namespace, key);
}
