// Adapters for items, state and the server itself.

import type { AdminService } from "../src/gen/memory_service/v1/admin_pb.js";
import type { MemoryService } from "../src/gen/memory_service/v1/memory_pb.js";
import type { StateService } from "../src/gen/memory_service/v1/state_pb.js";
import type {
  AddOptions,
  BatchAddOptions,
  Content,
  DeleteStateOptions,
  DeleteOptions,
  DeleteWhereOptions,
  ExportOptions,
  GetOptions,
  ImportedItem,
  ItemWriteOptions,
  JsonValue,
  ListItemsOptions,
  ListLabelValuesOptions,
  ListNamespacesOptions,
  ListQuarantinedOptions,
  ListStateKeysOptions,
  ListVersionsOptions,
  LoadStateOptions,
  MemoryClient,
  MemoryItem,
  NamespaceChanges,
  NamespaceStatsOptions,
  NewItem,
  NewStateEntry,
  OnDuplicate,
  QuarantineDecision,
  ReembedOptions,
  RenameStateOptions,
  RetrieveOptions,
  SaveStateOptions,
  SearchStateOptions,
  StateEntry,
  UndoOptions,
  UpdateNamespaceOptions,
  Vector,
  WatchOptions,
  WriteOperation,
  WriteOptions,
} from "../src/index.js";
import type { Adapters } from "./peer-adapters.js";
import { adapter, all, changesOf, required, withDerived } from "./peer-adapters.js";
import type { Native } from "./peer-messages.js";
import { Inexpressible } from "./peer-messages.js";

type Id = { id?: string };
type Revision = { revision?: number };
type Mask = { updateMask?: { paths: string[] } };

/** An item as requests have it; only imports take what its service keeps with it. */
function plain<I extends ImportedItem>(item: I | undefined, what: string): I {
  const given = required(item, what);
  if (given.kind !== undefined || given.facetJson !== undefined) {
    throw new Inexpressible(`${what}: kind and facet_json`);
  }
  return given;
}

function itemWritten(item: MemoryItem): object {
  return { item, revision: item.revision, degraded: item.degraded };
}

async function added(client: MemoryClient, items: readonly NewItem[], options: BatchAddOptions): Promise<object> {
  const written = await client.batchAdd(items, options);
  const last = written.at(-1);
  const skippedCount = items.length - written.length;
  return { items: written, revision: last?.revision, degraded: last?.degraded, skippedCount };
}

type Operation = { operation?: Native & { type: string; item?: ImportedItem & Id } & Mask };

/** Returns an operation as the client takes it. */
function operationOf({ operation }: Operation, index: number): WriteOperation {
  const where = `operations[${index}]`;
  const { type, item, updateMask, ...fields } = required(operation, where);
  if (type === "add") {
    return { type, item: plain(item, `${where}.add.item`), ...fields };
  }
  if (type === "update") {
    const { id = "", ...values } = plain(item, `${where}.update.item`);
    return { type, id, changes: changesOf(values as Native, updateMask, ITEM_CLEARED), ...fields };
  }
  if (type === "save_state") {
    required(fields["value"], `${where}.saveState.value`);
  }
  if (type === "edit_file") {
    required(fields["edit"], `${where}.editFile.edit`);
  }
  const named = {
    ...{ delete: { id: "" }, save_state: { key: "" }, delete_state: { key: "" } },
    ...{ write_file: { path: "", content: "" }, edit_file: { path: "" } },
    ...{ rename_file: { path: "", newPath: "" }, delete_file: { path: "" } },
  }[type];
  return { type, ...named, ...fields } as unknown as WriteOperation;
}

interface Retrieval extends RetrieveOptions {
  readonly queryText?: string;
  readonly queryEmbedding?: Vector;
}

async function retrieved(client: MemoryClient, retrieval: Retrieval): Promise<object> {
  const { queryText, queryEmbedding: embedding, ...rest } = retrieval;
  const options = { ...rest, embedding };
  const results = await (queryText === undefined ? client.retrieve(options) : client.retrieve(queryText, options));
  const { degraded, revision, tokenCount } = results;
  return { results, degraded, revision, tokenCount };
}

async function watched(client: MemoryClient, options: WatchOptions, take: number): Promise<object[]> {
  const responses: object[] = [];
  for await (const change of client.watch(options)) {
    responses.push({ change });
    if (responses.length === take) {
      break;
    }
  }
  return responses;
}

/** With what `update` empties a field; those not named here cannot be emptied. */
const ITEM_CLEARED = { sessionId: "", labels: {}, metadata: {}, expireTime: null, importance: null, index: null };

/** One batch of an import. */
interface Batch {
  readonly namespace?: string;
  readonly items?: readonly ImportedItem[];
  readonly states?: readonly NewStateEntry[];
  readonly onDuplicate?: OnDuplicate;
}

/** Imports batches, which have to be such as the client makes out of their records itself. */
async function imported(client: MemoryClient, batches: readonly Batch[]): Promise<object> {
  const [first, ...later] = batches;
  const { onDuplicate, namespace } = required(first, "ImportRequest");
  for (const batch of later) {
    if (![undefined, namespace].includes(batch.namespace) || ![undefined, onDuplicate].includes(batch.onDuplicate)) {
      throw new Inexpressible("ImportRequest: another namespace or on_duplicate in a later one");
    }
  }
  const records = batches.map(({ items = [], states = [] }) => [...items, ...states]);
  const sizes = records.map(({ length }) => length).filter((size) => size > 0);
  const [batchRecords] = sizes;
  if (batchRecords !== undefined && !isCut(sizes, batchRecords)) {
    throw new Inexpressible("ImportRequest: batches of several sizes");
  }
  return client.importItems(records.flat(), { onDuplicate, batchRecords });
}

/** Whether all batches have the same size; the last may have less. */
function isCut(sizes: readonly number[], size: number): boolean {
  return sizes.slice(0, -1).every((each) => each === size) && (sizes.at(-1) ?? 0) <= size;
}

const AMONG = ["sessionId", "labels", "startTime", "endTime", "kinds", "filter", "minTrust", "sources", "includeEmbedding", "orderBy", "skip"] as const;

export const MEMORY: Adapters<typeof MemoryService> = {
  add: adapter<AddOptions & { item?: ImportedItem }>(
    ["item", "requestId", "onDuplicate"],
    async (client, { item, ...options }) => {
      const { content, ...fields } = plain(item, "AddRequest.item");
      const written = await client.add(content as Content, { ...options, ...fields });
      // Nothing is written in quarantine either, but then something is degraded.
      const skipped = written.revision === 0 && written.degraded.length === 0;
      return skipped ? { skipped } : itemWritten(written);
    },
  ),
  batchAdd: adapter<BatchAddOptions & { items?: readonly ImportedItem[] }>(
    ["items", "requestId", "onDuplicate"],
    (client, { items = [], ...options }) =>
      added(client, items.map((item) => plain(item, "BatchAddRequest.items")), options),
  ),
  import: adapter<Batch & readonly Batch[]>(["items", "states", "onDuplicate"], imported),
  retrieve: adapter<{ options?: Retrieval; namespaces?: readonly string[] }>(
    ["options", "namespaces"],
    (client, { options = {}, namespaces = [] }) => retrieved(client, { ...options, namespaces }),
  ),
  get: adapter<GetOptions & Id>(["id", "includeEmbedding", "revision", "refreshTtl"], async (client, { id = "", ...options }) => ({
    item: await client.get(id, options),
  })),
  listItemVersions: adapter<ListVersionsOptions & Id>(
    ["id", "pageSize"],
    async (client, { id = "", ...options }) => ({ versions: await all(client.listItemVersions(id, options)) }),
  ),
  redactVersion: adapter<Id & Revision>(["id", "revision"], async (client, { id = "", revision = 0 }) => ({
    revision: await client.redactVersion(id, revision),
  })),
  list: adapter<ListItemsOptions>([...AMONG, "newestFirst", "pageSize"], async (client, options) => ({
    items: await all(client.listItems(options)),
  })),
  listLabelValues: adapter<ListLabelValuesOptions & { key?: string }>(
    ["key", "prefix", "pageSize"],
    async (client, { key = "", ...options }) => ({ values: await all(client.listLabelValues(key, options)) }),
  ),
  update: adapter<ItemWriteOptions & Mask & { item?: ImportedItem & Id }>(
    ["item", "updateMask", "expectedRevision", "requestId"],
    async (client, { item, updateMask, ...options }) => {
      const { id = "", ...values } = plain(item, "UpdateRequest.item");
      const changes = changesOf(values as Native, updateMask, ITEM_CLEARED);
      return itemWritten(await client.update(id, changes, options));
    },
  ),
  delete: adapter<DeleteOptions & Id>(
    ["id", "expectedRevision", "keepDerived", "requestId"],
    async (client, { id = "", ...options }) =>
      withDerived(async (onDerived) => ({ revision: await client.delete(id, { ...options, onDerived }) })),
  ),
  deleteWhere: adapter<DeleteWhereOptions>(
    ["sessionId", "labels", "kinds", "filter", "startTime", "endTime", "keepDerived", "dryRun", "requestId"],
    async (client, options) =>
      withDerived(async (onDerived) => ({
        deletedCount: await client.deleteWhere({ ...options, onDerived }),
      })),
  ),
  batchWrite: adapter<WriteOptions & { operations?: readonly Operation[] }>(
    ["operations", "requestId"],
    (client, { operations = [], ...options }) => client.batchWrite(operations.map(operationOf), options),
  ),
  reset: adapter<WriteOptions>(["requestId"], async (client, options) => {
    const { itemCount, stateCount, revision } = await client.reset(options);
    return { removedCount: itemCount, removedStateCount: stateCount, revision };
  }),
  watch: adapter<WatchOptions & { take?: number }>(
    ["afterRevision", "heartbeatIntervalMs"],
    (client, { take = 1, ...options }) => watched(client, options, take),
  ),
  export: adapter<ExportOptions>(["afterRevision", "includeEmbedding"], async (client, options) => {
    const records = await all(client.export(options));
    return records.map((record) => ("key" in record ? { state: record } : { item: record }));
  }),
};

function entryWritten(entry: StateEntry): object {
  return { entry, revision: entry.revision };
}

type Key = { key?: string };

export const STATE: Adapters<typeof StateService> = {
  saveState: adapter<SaveStateOptions & Key & { value?: JsonValue }>(
    ["key", "value", "expectedVersion", "ttlMs", "description", "requestId"],
    async (client, { key = "", value, ...options }) =>
      entryWritten(await client.saveState(key, required(value, "SaveStateRequest.value"), options)),
  ),
  loadState: adapter<LoadStateOptions & Key>(["key", "revision"], async (client, { key = "", ...options }) => ({
    entry: await client.loadState(key, options),
  })),
  listStateVersions: adapter<ListVersionsOptions & Key>(
    ["key", "pageSize"],
    async (client, { key = "", ...options }) => ({ versions: await all(client.listStateVersions(key, options)) }),
  ),
  redactStateVersion: adapter<Key & Revision>(["key", "revision"], async (client, { key = "", revision = 0 }) => ({
    revision: await client.redactStateVersion(key, revision),
  })),
  listStateKeys: adapter<ListStateKeysOptions>(["prefix", "includePreview", "pageSize"], async (client, options) => ({
    entries: await all(client.listStateKeys(options)),
  })),
  searchState: adapter<SearchStateOptions & { pattern?: string }>(
    ["pattern", "pageSize"],
    async (client, { pattern = "", ...options }) => ({ entries: await all(client.searchState(pattern, options)) }),
  ),
  deleteState: adapter<DeleteStateOptions & Key>(
    ["key", "expectedVersion", "requestId"],
    async (client, { key = "", ...options }) => ({ revision: await client.deleteState(key, options) }),
  ),
  renameState: adapter<RenameStateOptions & Key & { newKey?: string }>(
    ["key", "newKey", "expectedVersion", "requestId"],
    async (client, { key = "", newKey = "", ...options }) =>
      entryWritten(await client.renameState(key, newKey, options)),
  ),
  clearState: adapter<WriteOptions>(["requestId"], async (client, options) => {
    const { stateCount, revision } = await client.clearState(options);
    return { removedCount: stateCount, revision };
  }),
};

export const ADMIN: Adapters<typeof AdminService> = {
  getInfo: adapter<object>([], (client) => client.info()),
  listNamespaces: adapter<ListNamespacesOptions>(["prefix", "pageSize"], async (client, options) => ({
    namespaces: await all(client.listNamespaces(options)),
  })),
  getNamespaceStats: adapter<NamespaceStatsOptions>(["includeUsage"], (client, options) =>
    client.namespaceStats(options),
  ),
  updateNamespace: adapter<NamespaceChanges & UpdateNamespaceOptions & Mask>(
    ["timeZone", "defaultTtlMs", "updateMask", "expectedVersion"],
    async (client, { updateMask, expectedVersion, ...given }) => {
      const paths = updateMask?.paths ?? Object.keys(given);
      if (paths.some((path) => !["timeZone", "time_zone", "defaultTtlMs", "default_ttl"].includes(path))) {
        throw new Inexpressible("UpdateNamespaceRequest.update_mask");
      }
      const zone = paths.includes("timeZone") || paths.includes("time_zone");
      const ttl = paths.includes("defaultTtlMs") || paths.includes("default_ttl");
      if ((!zone && given.timeZone !== undefined) || (!ttl && given.defaultTtlMs !== undefined)) {
        throw new Inexpressible("UpdateNamespaceRequest: not in the mask");
      }
      const changes = {
        ...(zone && { timeZone: given.timeZone ?? "" }),
        ...(ttl && { defaultTtlMs: given.defaultTtlMs ?? null }),
      };
      return { settings: await client.updateNamespace(changes, { expectedVersion }) };
    },
  ),
  deleteNamespace: adapter<object>([], async (client) => {
    const { itemCount, stateCount } = await client.deleteNamespace();
    return { removedItemCount: itemCount, removedStateCount: stateCount };
  }),
  flush: adapter<object>([], async (client) => ({ durationMs: await client.flush() })),
  reembed: adapter<ReembedOptions>(["replaceClientVectors"], (client, options) => client.reembed(options)),
  undoWrites: adapter<UndoOptions>(
    ["writer", "credentialId", "anyWriter", "since", "dryRun", "requestId"],
    (client, options) => client.undoWrites(options),
  ),
  listQuarantined: adapter<ListQuarantinedOptions>(["pageSize"], async (client, options) => ({
    writes: await all(client.listQuarantined(options)),
  })),
  reviewQuarantined: adapter<{ id?: string; decision?: QuarantineDecision }>(
    ["id", "decision"],
    (client, { id = "", decision = "unspecified" as QuarantineDecision }) => client.reviewQuarantined(id, decision),
  ),
  backup: adapter<{ name?: string }>(["name"], (client, { name }) => client.backup(name)),
};

/** Goes through all items by the client's own iteration, or retrieves them without a limit. */
export async function iterated(client: MemoryClient, by: string): Promise<object> {
  const entries = by === "list" ? client.listItems() : await client.retrieve({ limit: -1 });
  let [count, first, last, ordered] = [0, "", "", true];
  for await (const { text } of entries) {
    first = count === 0 ? text : first;
    last = text;
    ordered &&= text === `item ${count}`;
    count += 1;
  }
  return { count, first, last, ordered };
}
