// The client's methods for items.

import { create } from "@bufbuild/protobuf";

import { Bound } from "./bound.js";
import { changesFrom, itemFrom, itemTo, newItemFrom } from "./convert.js";
import { degradedTo } from "./degradation.js";
import { endable, resumed } from "./following.js";
import type { ImportResponse } from "./gen/memory_service/v1/memory_pb.js";
import { MemoryItemSchema, MemoryService } from "./gen/memory_service/v1/memory_pb.js";
import type { ImportRecord } from "./importing.js";
import { batches, onDuplicateFrom } from "./importing.js";
import type { MemoryItem, NewItem } from "./items.js";
import type {
  AddOptions,
  BatchAddOptions,
  Change,
  DeleteOptions,
  DeleteWhereOptions,
  ExportOptions,
  GetOptions,
  ImportOptions,
  ImportSummary,
  ItemChanges,
  ItemWriteOptions,
  LabelValue,
  ListItemsOptions,
  ListLabelValuesOptions,
  Results,
  RetrieveOptions,
  WatchOptions,
} from "./memory-options.js";
import type { Content } from "./messages.js";
import type { WriteOptions } from "./options.js";
import { changeEvent, recordEvent } from "./records.js";
import type { Removed } from "./removed.js";
import { deletedIn } from "./removed.js";
import { given, requestIdOf, withToken } from "./requests.js";
import { conditionFrom, filterFrom, resultsOf, retrievalFrom } from "./retrieval.js";
import type { StateEntry } from "./state-entries.js";
import { durationFrom, eachFrom, int32From, int64From } from "./values.js";
import type { BatchWritten, WriteOperation } from "./write-operations.js";
import { batchWrittenTo, operationFrom } from "./write-operations.js";

const method = MemoryService.method;

/** Methods that write, find, change, remove and watch items of the client's namespace. */
export abstract class MemoryMethods extends Bound {
  /**
   * Writes one item. When this resolves, it is on disk and every later read sees it.
   *
   * @param content - a string stands for plain text; see `data`, `chatMessage` and `toolCallResult`
   * @returns the item as written, without its embedding; with `onDuplicate: "skip"`, if an item with this id exists,
   *   the given item with revision 0: nothing was written
   * @throws AlreadyExistsError - an item with this id exists, and `onDuplicate` is "fail"
   * @throws InvalidArgumentError - a field is malformed, or the vector's dimension is not the namespace's
   */
  async add(content: Content | string, options: AddOptions = {}): Promise<MemoryItem> {
    const { signal, timeoutMs, requestId, onDuplicate, ...fields } = options;
    const item = newItemFrom({ ...fields, content });
    const request = {
      namespace: this.boundTo,
      item,
      requestId: requestIdOf(options),
      onDuplicate: onDuplicateFrom(onDuplicate),
    };
    const response = await this.transport.unary(method.add, request, options);
    const written = response.skipped ? create(MemoryItemSchema, { ...item, embedding: undefined }) : response.item;
    return itemTo(written, response.degraded);
  }

  /**
   * Writes up to 1000 items, all or none.
   *
   * @returns the items as written, in the same order, without those skipped by `onDuplicate: "skip"`
   * @throws AlreadyExistsError - an item with one of the ids exists, and `onDuplicate` is "fail"
   */
  async batchAdd(
    items: Iterable<NewItem | Content | string>,
    options: BatchAddOptions = {},
  ): Promise<MemoryItem[]> {
    const request = {
      namespace: this.boundTo,
      items: eachFrom(items, itemFrom, "items"),
      requestId: requestIdOf(options),
      onDuplicate: onDuplicateFrom(options.onDuplicate),
    };
    const response = await this.transport.unary(method.batchAdd, request, options);
    return response.items.map((item) => itemTo(item, response.degraded));
  }

  /**
   * Writes any number of items and state entries as fast as the server takes them.
   *
   * The records are iterated while they are sent. They are sent in batches, each written as a whole or not at
   * all. If an import breaks, or its iterable throws, earlier batches stay written; if the items have ids, send
   * them again with `onDuplicate: "skip"`. Records from `export` keep their kind.
   *
   * @throws AlreadyExistsError - an item already exists, and `onDuplicate` is "fail"
   * @throws ConflictError - a state key already exists, and `onDuplicate` is "fail"
   */
  async importItems(
    records: Iterable<ImportRecord> | AsyncIterable<ImportRecord>,
    options: ImportOptions = {},
  ): Promise<ImportSummary> {
    const requests = batches(this.boundTo, records, options);
    const response = await this.transport.upload(method.import, requests, this.boundTo, options);
    return summaryTo(response);
  }

  /**
   * Returns what an agent needs for its next step: with a query the best items, best first; without one the
   * newest items, the oldest of them first.
   *
   * @returns an array of results; its `degraded` lists what the server could not do
   * @throws InvalidArgumentError - an option is out of range, or `filter` is malformed; the message shows where
   */
  retrieve(options?: RetrieveOptions): Promise<Results>;
  retrieve(query: string, options?: RetrieveOptions): Promise<Results>;
  async retrieve(first: string | RetrieveOptions = {}, second: RetrieveOptions = {}): Promise<Results> {
    const [query, options] = typeof first === "string" ? [first, second] : ["", first];
    const fixed = retrievalFrom(query, options);
    const namespaces = [...(options.namespaces ?? [])];
    const request = (pageToken: string) => ({
      namespace: this.boundTo,
      namespaces,
      options: { ...fixed, pageToken },
    });
    return resultsOf(this.transport.pages(method.retrieve, request, options));
  }

  /**
   * Returns one item.
   *
   * @throws NotFoundError - the namespace has no item with this id, or the version is not kept
   */
  async get(id: string, options: GetOptions = {}): Promise<MemoryItem> {
    const { includeEmbedding = false, revision = 0, refreshTtl = false } = options;
    const at = int64From(revision, "revision");
    const request = { namespace: this.boundTo, id, includeEmbedding, revision: at, refreshTtl };
    return itemTo((await this.transport.unary(method.get, request, options)).item);
  }

  /** Yields the items in the order in which they were added, page by page. */
  async *listItems(options: ListItemsOptions = {}): AsyncGenerator<MemoryItem, void, undefined> {
    const request = withToken({
      ...filterFrom(options),
      namespace: this.boundTo,
      newestFirst: options.newestFirst ?? false,
      pageSize: int32From(options.pageSize ?? 0, "pageSize"),
    });
    for await (const page of this.transport.pages(method.list, request, options)) {
      for (const item of page.items) {
        yield itemTo(item);
      }
    }
  }

  /**
   * Yields the distinct values of a label in the order of their code points, page by page. Counts the items that
   * `listItems` yields by default.
   */
  async *listLabelValues(
    key: string,
    options: ListLabelValuesOptions = {},
  ): AsyncGenerator<LabelValue, void, undefined> {
    const { prefix = "", pageSize = 0 } = options;
    const request = withToken({ namespace: this.boundTo, key, prefix, pageSize: int32From(pageSize, "pageSize") });
    for await (const page of this.transport.pages(method.listLabelValues, request, options)) {
      yield* page.values.map(({ value, count }) => ({ value, count: Number(count) }));
    }
  }

  /**
   * Changes the given fields of an item; returns it as written.
   *
   * @throws NotFoundError - the namespace has no item with this id
   * @throws ConflictError - the expected revision is not the item's, which is in `metadata.current_revision`
   */
  async update(id: string, changes: ItemChanges, options: ItemWriteOptions = {}): Promise<MemoryItem> {
    const request = {
      ...changesFrom(id, changes),
      namespace: this.boundTo,
      expectedRevision: given(options.expectedRevision, int64From, "expectedRevision"),
      requestId: requestIdOf(options),
    };
    const response = await this.transport.unary(method.update, request, options);
    return itemTo(response.item, response.degraded);
  }

  /**
   * Removes an item, and what was made only from it: items that name it as a parent, facts extracted from it,
   * responses, reflections and documents, and what was made from these. An item with several parents is removed
   * with the last of them.
   *
   * @returns the namespace's revision
   * @throws NotFoundError - the namespace has no item with this id
   * @throws ConflictError - the item's revision is not `expectedRevision`
   */
  async delete(id: string, options: DeleteOptions = {}): Promise<number> {
    const request = {
      namespace: this.boundTo,
      id,
      expectedRevision: given(options.expectedRevision, int64From, "expectedRevision"),
      keepDerived: options.keepDerived ?? false,
      requestId: requestIdOf(options),
    };
    const response = await this.transport.unary(method.delete, request, options);
    options.onDerived?.(Number(response.derivedCount));
    return Number(response.revision);
  }

  /**
   * Deletes the items that meet all the given conditions, and what was made only from them, as `delete` does.
   *
   * Up to 10,000 items are deleted at a time, each time all or none. The time limit applies to each of these calls;
   * `requestId` is the id of the first one, and the others get new ones. Items that are added meanwhile stay.
   * Other documents and memories about users are deleted by their own methods.
   *
   * @returns the number of deleted items that match; with `dryRun`, of items that match
   * @throws InvalidArgumentError - no condition is given, or one is malformed
   */
  async deleteWhere(options: DeleteWhereOptions): Promise<number> {
    const { dryRun = false, keepDerived = false } = options;
    const fixed = { ...conditionFrom(options), namespace: this.boundTo, dryRun, keepDerived };
    const request = (pageToken: string) => {
      const requestId = requestIdOf(pageToken === "" ? options : {});
      return { ...fixed, pageToken, requestId };
    };
    return deletedIn(this.transport.pages(method.deleteWhere, request, options), options);
  }

  /**
   * Applies up to 1000 operations on items and state entries, all or none.
   *
   * Expected revisions and versions are compared with the namespace as it was before the batch. Only one operation
   * may name an item or a key. The `field` of an error names the operation, as in "operations[2].add.item.id".
   *
   * @throws ConflictError - a revision or version is not the expected one
   * @throws NotFoundError - an item or a key does not exist, and `allowMissing` is not set
   * @throws AlreadyExistsError - an item to be added exists, and its `onDuplicate` is "fail"
   * @throws LimitExceededError - the "delete_where" operations match more than 10,000 items
   */
  async batchWrite(operations: Iterable<WriteOperation>, options: WriteOptions = {}): Promise<BatchWritten> {
    const request = {
      namespace: this.boundTo,
      operations: eachFrom(operations, operationFrom, "operations"),
      requestId: requestIdOf(options),
    };
    return batchWrittenTo(await this.transport.unary(method.batchWrite, request, options));
  }

  /** Removes everything in the namespace: items, state and history. */
  async reset(options: WriteOptions = {}): Promise<Removed> {
    const request = { namespace: this.boundTo, requestId: requestIdOf(options) };
    const response = await this.transport.unary(method.reset, request, options);
    return {
      itemCount: Number(response.removedCount),
      stateCount: Number(response.removedStateCount),
      revision: Number(response.revision),
    };
  }

  /**
   * Yields every change to the namespace until the caller stops.
   *
   * A stream that breaks because the server is unavailable resumes where it broke, with no change lost or
   * repeated. Leaving the loop, `return()` of the iterator and the signal end the watch at once.
   *
   * @throws UnavailableError - the server could not be reached at the first attempt, or for too long
   */
  watch(options: WatchOptions = {}): AsyncGenerator<Change, void, undefined> {
    const { afterRevision, heartbeatIntervalMs, giveUpAfterMs = Infinity } = options;
    const fixed = {
      namespace: this.boundTo,
      heartbeatInterval: given(heartbeatIntervalMs, durationFrom, "heartbeatIntervalMs"),
    };
    const position = given(afterRevision, int64From, "afterRevision");
    const { transport } = this;
    const run = (signal: AbortSignal) => {
      const open = (after: bigint | undefined) =>
        transport.stream(method.watch, { ...fixed, afterRevision: after }, signal, changeEvent);
      return resumed(open, { position, giveUpAfterMs, signal, waitForReady: transport.waitForReady });
    };
    return endable(run, options.signal);
  }

  /**
   * Yields every item and every state entry of the namespace, ordered by revision; an entry has a `key`.
   *
   * A stream that breaks is taken up again where it broke, unless the server stays away for too long. To
   * continue an export of another day, pass the revision of its last record, less one, as `afterRevision`.
   *
   * @throws NotFoundError - nothing was ever written to the namespace
   */
  export(options: ExportOptions = {}): AsyncGenerator<MemoryItem | StateEntry, void, undefined> {
    const { afterRevision = 0, includeEmbedding = false, giveUpAfterMs = 60_000 } = options;
    const position = int64From(afterRevision, "afterRevision");
    const fixed = { namespace: this.boundTo, includeEmbedding };
    const { transport } = this;
    const run = (signal: AbortSignal) => {
      const open = (after: bigint = 0n) =>
        transport.stream(method.export, { ...fixed, afterRevision: after }, signal, recordEvent);
      return resumed(open, { position, giveUpAfterMs, signal, waitForReady: transport.waitForReady });
    };
    return endable(run, options.signal);
  }
}

function summaryTo(response: ImportResponse): ImportSummary {
  return {
    importedCount: Number(response.importedCount),
    skippedCount: Number(response.skippedCount),
    importedStateCount: Number(response.importedStateCount),
    skippedStateCount: Number(response.skippedStateCount),
    revision: Number(response.revision),
    degraded: degradedTo(response.degraded),
  };
}
