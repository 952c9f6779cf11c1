// The names of all options. The compiler checks them against the types of the options.

import type {
  ListNamespacesOptions,
  ListQuarantinedOptions,
  NamespaceChanges,
  NamespaceStatsOptions,
  ReembedOptions,
  UndoOptions,
  UpdateNamespaceOptions,
} from "./admin.js";
import type { MemoryClient } from "./client.js";
import type {
  DeleteFileOptions,
  ListFilesOptions,
  ReadFileOptions,
  RenameFileOptions,
  SearchFilesOptions,
  WriteFileOptions,
} from "./files.js";
import type {
  InteractionFilter,
  LastInteractionsOptions,
  RelevantContextOptions,
  StoreInteractionOptions,
  StoreReflectionOptions,
  StoreResponseOptions,
} from "./interactions.js";
import type { OriginalMessage } from "./interactions-model.js";
import type { ImportedItem, MemoryItem, Provenance } from "./items.js";
import type {
  AddDocumentOptions,
  DeleteDocumentOptions,
  DocumentFilter,
  GetDocumentOptions,
  HandleMessageOptions,
  ListDocumentsOptions,
  SearchFragmentsOptions,
  SplitOptions,
} from "./knowledge.js";
import type { Known, Names } from "./known-options.js";
import { named } from "./known-options.js";
import type {
  AddOptions,
  BatchAddOptions,
  DeleteOptions,
  DeleteWhereOptions,
  ExportOptions,
  GetOptions,
  ImportOptions,
  ItemChanges,
  ItemFilter,
  ItemWriteOptions,
  ListItemsOptions,
  ListLabelValuesOptions,
  RetrieveOptions,
  ScoreWeights,
  WatchOptions,
} from "./memory-options.js";
import type { CallOptions, ClientOptions, TlsOptions, WriteOptions } from "./options.js";
import type { CheckRelevanceOptions, EvaluateForStorageOptions } from "./overseer.js";
import type {
  DeleteSessionOptions,
  ForkSessionOptions,
  ListSessionsOptions,
  SessionChanges,
  UpdateSessionOptions,
} from "./sessions.js";
import type {
  DeleteStateOptions,
  ListStateKeysOptions,
  LoadStateOptions,
  RenameStateOptions,
  SaveStateOptions,
  SearchStateOptions,
} from "./state.js";
import type { NewStateEntry, StateEntry } from "./state-entries.js";
import type { ListVersionsOptions } from "./versions.js";
import type { TrustFilter } from "./trust-filter.js";
import type { MemorySource } from "./user-memories-model.js";
import type {
  ConsolidateMemoriesOptions,
  DeleteMemoryOptions,
  ExtractMemoriesOptions,
  ListMemoriesOptions,
  MemoryChanges,
  MemoryFilter,
  PreloadOptions,
  SaveMemoryOptions,
  SearchMemoriesOptions,
  UpdateMemoryOptions,
} from "./user-memories-options.js";
import type { DeleteCondition, WriteOperation } from "./write-operations.js";

const TLS: Names<TlsOptions> = named("rootCertificates", "certificate", "key", "serverName");

/** The options of a client. */
export const CLIENT: Names<ClientOptions> = {
  ...named(
    "namespace",
    "timeoutMs",
    "maxAttempts",
    "waitForReady",
    "keepaliveMs",
    "maxReceiveBytes",
    "apiKey",
    "tokenSource",
    "allowInsecureToken",
    "headers",
  ),
  tls: TLS,
};

const CALL: Names<CallOptions> = named("signal", "timeoutMs");
const WRITE: Names<WriteOptions> = { ...CALL, requestId: true };
const PAGES: Names<SearchStateOptions & ListQuarantinedOptions> = { ...CALL, pageSize: true };
const TRUST: Names<TrustFilter> = named("minTrust", "sources");
const WITH_REVISION: Names<ItemWriteOptions> = { ...WRITE, expectedRevision: true };
const WITH_VERSION: Names<DeleteStateOptions & RenameStateOptions> = { ...WRITE, expectedVersion: true };

const PROVENANCE: Names<Provenance> = named(
  "writer", "credentialId", "source", "sourceUri", "parentIds", "model", "trust", "writeTime",
);

const FIELDS: Names<Omit<AddOptions, keyof WriteOptions | "onDuplicate">> = {
  ...named(
    "id",
    "sessionId",
    "createTime",
    "expireTime",
    "ttlMs",
    "labels",
    "metadata",
    "embedding",
    "importance",
    "index",
  ),
  provenance: PROVENANCE,
};

/** The properties of an item to be written or imported, which may be one that the server returned. */
export const ITEM: Names<ImportedItem & MemoryItem> = {
  ...FIELDS,
  ...named("content", "kind", "facetJson", "updateTime", "revision", "text", "speaker", "degraded"),
};

/** The properties of a state entry to be imported, which may be one that the server returned. */
export const STATE_ENTRY: Names<NewStateEntry & StateEntry> = named(
  "key",
  "value",
  "version",
  "description",
  "sizeBytes",
  "preview",
  "createTime",
  "updateTime",
  "expireTime",
  "revision",
);

const CHANGES: Names<ItemChanges> = named(
  "content", "sessionId", "labels", "metadata", "createTime", "expireTime", "ttlMs", "embedding", "importance",
  "index",
);

const CONDITION: Names<DeleteCondition> = named("sessionId", "labels", "kinds", "filter", "startTime", "endTime");

const VALUE: Names<Omit<SaveStateOptions, keyof WriteOptions>> = named("expectedVersion", "ttlMs", "description");

/** The properties of each operation of a batch. */
export const OPERATIONS: { readonly [O in WriteOperation as O["type"]]: Names<O> } = {
  add: { type: true, item: true, onDuplicate: true },
  update: { type: true, id: true, changes: CHANGES, expectedRevision: true },
  delete: { type: true, id: true, expectedRevision: true, allowMissing: true, keepDerived: true },
  delete_where: { type: true, ...CONDITION, keepDerived: true },
  save_state: { type: true, key: true, value: true, ...VALUE },
  delete_state: { type: true, key: true, expectedVersion: true, allowMissing: true },
  write_file: { type: true, path: true, content: true, expectedVersion: true, expectedSha256: true },
  edit_file: { type: true, path: true, edit: true, expectedVersion: true, expectedSha256: true },
  rename_file: { type: true, path: true, newPath: true, expectedVersion: true },
  delete_file: { type: true, path: true, recursive: true, expectedVersion: true },
};

const ADD: Names<AddOptions> = { ...WRITE, ...FIELDS, onDuplicate: true };
const BATCH_ADD: Names<BatchAddOptions> = { ...WRITE, onDuplicate: true };
const IMPORT: Names<ImportOptions> = { ...CALL, ...named("onDuplicate", "batchRecords") };
const GET: Names<GetOptions> = { ...CALL, includeEmbedding: true, revision: true, refreshTtl: true };
const AMONG: Names<ItemFilter> = {
  ...CONDITION,
  ...TRUST,
  ...named("includeEmbedding", "orderBy", "skip"),
};
const LIST: Names<ListItemsOptions> = { ...PAGES, ...AMONG, newestFirst: true };
const DELETE: Names<DeleteOptions> = { ...WITH_REVISION, ...named("keepDerived", "onDerived") };
const DELETE_WHERE: Names<DeleteWhereOptions> = { ...WRITE, ...CONDITION, ...named("keepDerived", "onDerived", "dryRun") };
const LIST_LABELS: Names<ListLabelValuesOptions> = { ...PAGES, prefix: true };

const WEIGHTS: Names<ScoreWeights> = named(
  "lexical", "vector", "recency", "recencyHalfLifeMs", "importance", "usage",
);

const MATCHED = named("limit", "minScore", "mode", "maxTokens", "explain");

const RETRIEVE: Names<RetrieveOptions> = {
  ...PAGES,
  ...AMONG,
  ...MATCHED,
  ...named("embedding", "now", "contextWindow", "rerank", "recordUsage", "queries", "namespaces", "minRelevance"),
  ...named("neighbourWeight", "refreshTtl", "wholeExchanges", "timeZone"),
  weights: WEIGHTS,
};

const WATCH: Names<WatchOptions> = named("afterRevision", "heartbeatIntervalMs", "giveUpAfterMs", "signal");

const EXPORT: Names<ExportOptions> = named("afterRevision", "includeEmbedding", "giveUpAfterMs", "signal");

const SAVE_STATE: Names<SaveStateOptions> = { ...WRITE, ...VALUE };
const LIST_VERSIONS: Names<ListVersionsOptions> = PAGES;
const LOAD_STATE: Names<LoadStateOptions> = { ...CALL, revision: true };
const LIST_STATE: Names<ListStateKeysOptions> = { ...PAGES, prefix: true, includePreview: true };

const MEMORIES: Names<MemoryFilter> = { ...TRUST, ...named("categories", "asOfTime", "minImportance", "labels") };

const SOURCE: Names<MemorySource> = named("sessionId", "itemIds", "quote", "actor", "origin", "memoryIds", "model");

const SAVE_MEMORY: Names<SaveMemoryOptions> = {
  ...WRITE,
  ...named(
    "explicitRequest",
    "onContradiction",
    "validFromTime",
    "ttlMs",
    "labels",
    "metadata",
    "keepWording",
    "decideBy",
  ),
  source: SOURCE,
};

const SEARCH_MEMORIES: Names<SearchMemoriesOptions> = {
  ...PAGES,
  ...MEMORIES,
  ...MATCHED,
  ...named("includeHistory", "sessionId"),
};

const LIST_MEMORIES: Names<ListMemoriesOptions> = {
  ...PAGES,
  ...MEMORIES,
  ...named("ids", "includeHistory", "sessionId", "startTime", "endTime", "newestFirst"),
};

const MEMORY_CHANGES: Names<MemoryChanges> = named(
  "content",
  "category",
  "reasoning",
  "importance",
  "validFromTime",
  "validUntilTime",
  "expireTime",
  "ttlMs",
  "labels",
  "metadata",
);

const UPDATE_MEMORY: Names<UpdateMemoryOptions> = { ...WITH_VERSION, ...named("keepWording", "decideBy") };
const DELETE_MEMORY: Names<DeleteMemoryOptions> = { ...WITH_VERSION, ...named("includeHistory", "keepDerived") };
const PRELOAD: Names<PreloadOptions> = { ...CALL, ...MEMORIES, ...named("maxTokens", "limit", "ifNotRevision") };

const EXTRACT: Names<ExtractMemoriesOptions> = {
  ...WRITE,
  ...named(
    "messages",
    "sessionId",
    "afterRevision",
    "limit",
    "recalledMemoryIds",
    "categories",
    "dryRun",
    "onContradiction",
    "decideBy",
    "actor",
    "labels",
  ),
};

const CONSOLIDATE: Names<ConsolidateMemoriesOptions> = {
  ...WRITE,
  ...named("dryRun", "categories", "memoryIds", "similarityThreshold", "limit", "decideBy"),
};

const ORIGINAL: Names<OriginalMessage> = named("content", "sender", "createTime", "provenance");

const STORE: Names<StoreInteractionOptions> = {
  ...WRITE,
  ...named("sessionId", "createTime", "labels", "metadata", "ttlMs", "id"),
};

const STORE_RESPONSE: Names<StoreResponseOptions> = {
  ...STORE,
  ...named("inResponseTo", "allowMissing", "sender"),
  originalMessage: ORIGINAL,
};

const STORE_REFLECTION: Names<StoreReflectionOptions> = { ...STORE, ...named("interactionIds", "sender") };

const NAMESPACE_STATS: Names<NamespaceStatsOptions> = { ...CALL, includeUsage: true };

const DELETE_DOCUMENT: Names<DeleteDocumentOptions> = { ...WITH_VERSION, keepDerived: true };

const DOCUMENTS: Names<DocumentFilter> = { ...TRUST, ...named("sessionId", "labels", "startTime", "endTime") };

const INTERACTIONS: Names<InteractionFilter> = { ...DOCUMENTS, sender: true };

const CONTEXT: Names<RelevantContextOptions> = {
  ...CALL,
  ...INTERACTIONS,
  ...named("interactionLimit", "reflectionLimit", "excludeIds", "minScore", "mode", "maxTokens", "explain"),
};

const LAST: Names<LastInteractionsOptions> = { ...PAGES, ...INTERACTIONS, limit: true };
const SPLIT: Names<SplitOptions> = named("maxCharacters", "overlapCharacters");

const HANDLE: Names<HandleMessageOptions> = {
  ...WRITE,
  ...SPLIT,
  ...named("messageId", "agentName", "commands", "maxRecentMessages", "labels", "metadata"),
};

const ADD_DOCUMENT: Names<AddDocumentOptions> = {
  ...WITH_VERSION,
  ...SPLIT,
  ...named(
    "title",
    "source",
    "sessionId",
    "labels",
    "metadata",
    "createTime",
    "expireTime",
    "ttlMs",
    "id",
    "replace",
  ),
};

const GET_DOCUMENT: Names<GetDocumentOptions> = { ...PAGES, includeFragments: true };
const LIST_DOCUMENTS: Names<ListDocumentsOptions> = { ...PAGES, ...DOCUMENTS, newestFirst: true };
const FRAGMENTS: Names<SearchFragmentsOptions> = { ...PAGES, ...DOCUMENTS, ...MATCHED, documentIds: true };

const LIST_SESSIONS: Names<ListSessionsOptions> = { ...PAGES, ...named("prefix", "labels") };
const SESSION_CHANGES: Names<SessionChanges> = named("title", "labels", "metadata");
const UPDATE_SESSION: Names<UpdateSessionOptions> = { ...WITH_VERSION, allowMissing: true };
const DELETE_SESSION: Names<DeleteSessionOptions> = { ...WRITE, ...named("keepDerived", "onDerived") };
const FORK_SESSION: Names<ForkSessionOptions> = {
  ...WRITE,
  ...named("newSessionId", "untilItemId", "untilRevision"),
};
const READ_FILE: Names<ReadFileOptions> = {
  ...CALL,
  ...named("startLine", "endLine", "version", "maxCharacters"),
};
const RENAME_FILE: Names<RenameFileOptions> = WITH_VERSION;
const WRITE_FILE: Names<WriteFileOptions> = { ...WITH_VERSION, expectedSha256: true };
const DELETE_FILE: Names<DeleteFileOptions> = { ...WITH_VERSION, recursive: true };
const LIST_FILES: Names<ListFilesOptions> = { ...PAGES, ...named("path", "depth") };
const SEARCH_FILES: Names<SearchFilesOptions> = { ...CALL, ...named("path", "limit", "maxCharacters") };

const RELEVANCE: Names<CheckRelevanceOptions> = {
  ...CALL,
  ...named("limit", "maxTokens", "pattern", "maxCandidates", "omitValues", "decideBy", "explain"),
};

const EVALUATE: Names<EvaluateForStorageOptions> = {
  ...WRITE,
  ...named("goal", "save", "arguments", "isError", "key", "overwrite", "ttlMs", "decideBy"),
};

const SETTINGS: Names<NamespaceChanges> = named("timeZone", "defaultTtlMs");
const UPDATE_NAMESPACE: Names<UpdateNamespaceOptions> = { ...CALL, expectedVersion: true };
const LIST_NAMESPACES: Names<ListNamespacesOptions> = { ...PAGES, prefix: true };
const REEMBED: Names<ReembedOptions> = { ...CALL, replaceClientVectors: true };

const UNDO: Names<UndoOptions> = { ...WRITE, ...named("since", "writer", "credentialId", "anyWriter", "dryRun") };

/** Methods that take options. */
type Method = Exclude<keyof MemoryClient, "namespace" | "close" | symbol>;

type WithLast<P extends readonly unknown[]> =
  Required<P> extends readonly [...infer Before, infer Last]
    ? readonly [...{ [I in keyof Before]: Known | null }, Names<Last>]
    : never;

/** For each method, the names of its arguments' properties. Null: an argument that has no options. */
export const ARGUMENTS: { readonly [M in Method]: WithLast<Parameters<MemoryClient[M]>> } = {
  add: [null, ADD],
  batchAdd: [null, BATCH_ADD],
  importItems: [null, IMPORT],
  retrieve: [RETRIEVE, RETRIEVE],
  get: [null, GET],
  listItems: [LIST],
  listLabelValues: [null, LIST_LABELS],
  update: [null, CHANGES, WITH_REVISION],
  delete: [null, DELETE],
  deleteWhere: [DELETE_WHERE],
  batchWrite: [null, WRITE],
  reset: [WRITE],
  watch: [WATCH],
  export: [EXPORT],
  saveState: [null, null, SAVE_STATE],
  loadState: [null, LOAD_STATE],
  listStateKeys: [LIST_STATE],
  searchState: [null, PAGES],
  deleteState: [null, WITH_VERSION],
  renameState: [null, null, WITH_VERSION],
  clearState: [WRITE],
  listItemVersions: [null, LIST_VERSIONS],
  redactVersion: [null, null, CALL],
  listStateVersions: [null, LIST_VERSIONS],
  redactStateVersion: [null, null, CALL],
  saveMemory: [null, null, null, SAVE_MEMORY],
  searchMemories: [null, SEARCH_MEMORIES],
  listMemories: [LIST_MEMORIES],
  updateMemory: [null, MEMORY_CHANGES, UPDATE_MEMORY],
  deleteMemory: [null, DELETE_MEMORY],
  getPreloadedMemories: [PRELOAD],
  extractMemories: [EXTRACT],
  consolidateMemories: [CONSOLIDATE],
  storeInteraction: [null, null, STORE],
  storeResponse: [null, STORE_RESPONSE],
  storeReflection: [null, STORE_REFLECTION],
  retrieveRelevantContext: [null, CONTEXT],
  retrieveLastInteractions: [LAST],
  handleMessage: [null, null, HANDLE],
  addDocument: [null, ADD_DOCUMENT],
  getDocument: [null, GET_DOCUMENT],
  listDocuments: [LIST_DOCUMENTS],
  deleteDocument: [null, DELETE_DOCUMENT],
  searchFragments: [null, FRAGMENTS],
  listSessions: [LIST_SESSIONS],
  getSession: [null, CALL],
  updateSession: [null, SESSION_CHANGES, UPDATE_SESSION],
  deleteSession: [null, DELETE_SESSION],
  forkSession: [null, FORK_SESSION],
  readFile: [null, READ_FILE],
  writeFile: [null, null, WRITE_FILE],
  editFile: [null, null, WRITE_FILE],
  renameFile: [null, null, RENAME_FILE],
  deleteFile: [null, DELETE_FILE],
  listFiles: [LIST_FILES],
  searchFiles: [null, SEARCH_FILES],
  listFileVersions: [null, LIST_VERSIONS],
  redactFileVersion: [null, null, CALL],
  checkRelevance: [null, RELEVANCE],
  evaluateForStorage: [null, null, EVALUATE],
  info: [CALL],
  listNamespaces: [LIST_NAMESPACES],
  updateNamespace: [SETTINGS, UPDATE_NAMESPACE],
  namespaceStats: [NAMESPACE_STATS],
  deleteNamespace: [CALL],
  reembed: [REEMBED],
  undoWrites: [UNDO],
  listQuarantined: [PAGES],
  reviewQuarantined: [null, null, CALL],
  flush: [CALL],
  backup: [null, CALL],
  health: [null, CALL],
};
