// What the arguments of all methods may be. The compiler checks the names of options against their types.

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
  FileEdit,
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
import type {
  BinaryPart,
  ChatMessage,
  Content,
  Data,
  Model,
  Part,
  Text,
  ToolCall,
  ToolCallResult,
} from "./messages.js";
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
import { typeOf } from "./invalid.js";
import type { Check, Names, Shape } from "./shapes.js";
import {
  bytes,
  callable,
  converted,
  each,
  either,
  flag,
  json,
  labels,
  limit,
  list,
  number,
  orNull,
  requireOptions,
  signal,
  text,
  texts,
} from "./shapes.js";

const PEM = either("string", text, bytes);
const TLS: Names<TlsOptions> = {
  ...each(PEM, "rootCertificates", "certificate", "key"),
  serverName: text,
};

/** The options of a client. */
export const CLIENT: Names<ClientOptions> = {
  ...each(number, "timeoutMs", "maxAttempts", "keepaliveMs", "maxReceiveBytes"),
  ...each(flag, "waitForReady", "allowInsecureToken"),
  namespace: text,
  tls: either("boolean", flag, TLS),
  apiKey: text,
  tokenSource: callable,
  headers: labels,
};

const CALL: Names<CallOptions> = { signal, timeoutMs: limit };
const WRITE: Names<WriteOptions> = { ...CALL, requestId: text };
const PAGES: Names<SearchStateOptions & ListQuarantinedOptions> = { ...CALL, pageSize: converted };
const TRUST: Names<TrustFilter> = { minTrust: number, sources: list(converted) };
const WITH_REVISION: Names<ItemWriteOptions> = { ...WRITE, expectedRevision: converted };
const WITH_VERSION: Names<DeleteStateOptions & RenameStateOptions> = {
  ...WRITE,
  expectedVersion: converted,
};

const PROVENANCE: Names<Provenance> = {
  ...each(text, "writer", "credentialId", "sourceUri", "model"),
  ...each(converted, "source", "writeTime"),
  parentIds: texts,
  trust: number,
};

const FIELDS: Names<Omit<AddOptions, keyof WriteOptions | "onDuplicate">> = {
  ...each(text, "id", "sessionId", "index"),
  ...each(converted, "createTime", "expireTime", "ttlMs", "metadata", "embedding"),
  labels,
  importance: number,
  provenance: PROVENANCE,
};

/** The properties of an item to be written or imported, which may be one that the server returned. */
export const ITEM: Names<ImportedItem & MemoryItem> = {
  ...FIELDS,
  ...each(converted, "content", "kind", "updateTime", "revision", "text", "speaker", "degraded"),
  facetJson: text,
};

/** The properties of a state entry to be imported, which may be one that the server returned. */
export const STATE_ENTRY: Names<NewStateEntry & StateEntry> = {
  ...each(text, "key", "description"),
  ...each(converted, "version", "sizeBytes", "preview", "createTime", "updateTime", "expireTime", "revision"),
  value: json,
};

const MODEL: Names<Model> = each(text, "provider", "id");

/** The properties of a chat message. */
export const MESSAGE: Names<ChatMessage> = {
  ...each(converted, "type", "role", "createTime"),
  ...each(text, "name", "messageId"),
  model: MODEL,
  parts: list(converted),
};

const TEXT: Names<Text> = { type: text, text };
const DATA: Names<Data> = { type: text, data: converted };
const TOOL_CALL: Names<ToolCall> = { ...each(text, "type", "name", "toolCallId"), arguments: converted };
const TOOL_RESULT: Names<ToolCallResult> = {
  ...each(text, "type", "name", "toolCallId"),
  result: json,
  isError: flag,
};
const BINARY: Names<BinaryPart> = {
  ...each(text, "type", "mimeType", "name", "url"),
  content: bytes,
  contentLength: converted,
};

/** The properties of each kind of content. */
export const CONTENTS: { readonly [C in Content as C["type"]]: Names<C> } = {
  text: TEXT,
  data: DATA,
  chat_message: MESSAGE,
  tool_call_result: TOOL_RESULT,
};

/** The properties of each kind of part of a message. */
export const PARTS: { readonly [P in Part as P["type"]]: Names<P> } = {
  text: TEXT,
  data: DATA,
  binary: BINARY,
  tool_call: TOOL_CALL,
  tool_call_result: TOOL_RESULT,
};

const CHANGES: Names<ItemChanges> = {
  ...each(converted, "content", "metadata", "createTime", "ttlMs", "embedding"),
  expireTime: orNull(converted),
  sessionId: text,
  labels,
  importance: orNull(number),
  index: orNull(text),
};

const CONDITION: Names<DeleteCondition> = {
  ...each(text, "sessionId", "filter"),
  ...each(converted, "startTime", "endTime"),
  labels,
  kinds: list(converted),
};

const VALUE: Names<Omit<SaveStateOptions, keyof WriteOptions>> = {
  ...each(converted, "expectedVersion", "ttlMs"),
  description: text,
};

/** The properties of each edit of a file. */
export const EDITS: { readonly [E in FileEdit as E["type"]]: Names<E> } = {
  replace: each(text, "type", "oldText", "newText"),
  insert: { ...each(text, "type", "text"), afterLine: converted },
  append: each(text, "type", "text"),
};

/** The properties of each operation of a batch. */
export const OPERATIONS: { readonly [O in WriteOperation as O["type"]]: Names<O> } = {
  add: { type: text, ...each(converted, "item", "onDuplicate") },
  update: { ...each(text, "type", "id"), changes: CHANGES, expectedRevision: converted },
  delete: { ...each(text, "type", "id"), expectedRevision: converted, ...each(flag, "allowMissing", "keepDerived") },
  delete_where: { type: text, ...CONDITION, keepDerived: flag },
  save_state: { ...each(text, "type", "key"), value: json, ...VALUE },
  delete_state: { ...each(text, "type", "key"), expectedVersion: converted, allowMissing: flag },
  write_file: { ...each(text, "type", "path", "content", "expectedSha256"), expectedVersion: converted },
  edit_file: { ...each(text, "type", "path", "expectedSha256"), ...each(converted, "edit", "expectedVersion") },
  rename_file: { ...each(text, "type", "path", "newPath"), expectedVersion: converted },
  delete_file: { ...each(text, "type", "path"), expectedVersion: converted, recursive: flag },
};

const ADD: Names<AddOptions> = { ...WRITE, ...FIELDS, onDuplicate: converted };
const BATCH_ADD: Names<BatchAddOptions> = { ...WRITE, onDuplicate: converted };
const IMPORT: Names<ImportOptions> = { ...CALL, ...each(converted, "onDuplicate", "batchRecords") };
const GET: Names<GetOptions> = { ...CALL, ...each(flag, "includeEmbedding", "refreshTtl"), revision: converted };
const AMONG: Names<ItemFilter> = {
  ...CONDITION,
  ...TRUST,
  includeEmbedding: flag,
  orderBy: text,
  skip: converted,
};
const LIST: Names<ListItemsOptions> = { ...PAGES, ...AMONG, newestFirst: flag };
const DERIVED = { keepDerived: flag, onDerived: callable };
const DELETE: Names<DeleteOptions> = { ...WITH_REVISION, ...DERIVED };
const DELETE_WHERE: Names<DeleteWhereOptions> = { ...WRITE, ...CONDITION, ...DERIVED, dryRun: flag };
const LIST_LABELS: Names<ListLabelValuesOptions> = { ...PAGES, prefix: text };

const WEIGHTS: Names<ScoreWeights> = {
  ...each(number, "lexical", "vector", "recency", "importance", "usage"),
  recencyHalfLifeMs: converted,
};

const MATCHED = { ...each(converted, "limit", "mode", "maxTokens"), minScore: number, explain: flag };

const RETRIEVE: Names<RetrieveOptions> = {
  ...PAGES,
  ...AMONG,
  ...MATCHED,
  ...each(converted, "embedding", "now", "contextWindow"),
  ...each(flag, "rerank", "recordUsage", "refreshTtl", "wholeExchanges"),
  ...each(texts, "queries", "namespaces"),
  ...each(number, "minRelevance", "neighbourWeight"),
  timeZone: text,
  weights: WEIGHTS,
};

/** A query, or the options of a retrieval without one. */
const QUERY: Check = (value, where) => {
  if (typeOf(value) === "object") {
    requireOptions(value, RETRIEVE);
  } else {
    text(value, where);
  }
};

const WATCH: Names<WatchOptions> = {
  ...each(converted, "afterRevision", "heartbeatIntervalMs"),
  giveUpAfterMs: limit,
  signal,
};

const EXPORT: Names<ExportOptions> = {
  afterRevision: converted,
  includeEmbedding: flag,
  giveUpAfterMs: limit,
  signal,
};

const SAVE_STATE: Names<SaveStateOptions> = { ...WRITE, ...VALUE };
const LIST_VERSIONS: Names<ListVersionsOptions> = PAGES;
const LOAD_STATE: Names<LoadStateOptions> = { ...CALL, revision: converted };
const LIST_STATE: Names<ListStateKeysOptions> = { ...PAGES, prefix: text, includePreview: flag };

const MEMORIES: Names<MemoryFilter> = {
  ...TRUST,
  categories: list(converted),
  asOfTime: converted,
  minImportance: number,
  labels,
};

const SOURCE: Names<MemorySource> = {
  ...each(text, "sessionId", "quote", "actor"),
  ...each(converted, "origin", "memoryIds", "model"),
  itemIds: texts,
};

const SAVE_MEMORY: Names<SaveMemoryOptions> = {
  ...WRITE,
  ...each(flag, "explicitRequest", "keepWording"),
  ...each(converted, "onContradiction", "validFromTime", "ttlMs", "metadata", "decideBy"),
  labels,
  source: SOURCE,
};

const SEARCH_MEMORIES: Names<SearchMemoriesOptions> = {
  ...PAGES,
  ...MEMORIES,
  ...MATCHED,
  includeHistory: flag,
  sessionId: text,
};

const LIST_MEMORIES: Names<ListMemoriesOptions> = {
  ...PAGES,
  ...MEMORIES,
  ...each(flag, "includeHistory", "newestFirst"),
  ...each(converted, "startTime", "endTime"),
  ids: texts,
  sessionId: text,
};

const MEMORY_CHANGES: Names<MemoryChanges> = {
  ...each(text, "content", "reasoning"),
  ...each(converted, "category", "validFromTime", "ttlMs", "metadata"),
  ...each(orNull(converted), "validUntilTime", "expireTime"),
  importance: number,
  labels,
};

const UPDATE_MEMORY: Names<UpdateMemoryOptions> = { ...WITH_VERSION, keepWording: flag, decideBy: converted };
const DELETE_MEMORY: Names<DeleteMemoryOptions> = { ...WITH_VERSION, ...each(flag, "includeHistory", "keepDerived") };
const PRELOAD: Names<PreloadOptions> = {
  ...CALL,
  ...MEMORIES,
  ...each(converted, "maxTokens", "limit", "ifNotRevision"),
};

const EXTRACT: Names<ExtractMemoriesOptions> = {
  ...WRITE,
  ...each(text, "sessionId", "actor"),
  ...each(converted, "afterRevision", "limit", "onContradiction", "decideBy"),
  messages: list(converted),
  recalledMemoryIds: texts,
  categories: list(converted),
  dryRun: flag,
  labels,
};

const CONSOLIDATE: Names<ConsolidateMemoriesOptions> = {
  ...WRITE,
  ...each(converted, "limit", "decideBy"),
  dryRun: flag,
  categories: list(converted),
  memoryIds: texts,
  similarityThreshold: number,
};

const ORIGINAL: Names<OriginalMessage> = {
  ...each(text, "content", "sender"),
  ...each(converted, "createTime", "provenance"),
};

const STORE: Names<StoreInteractionOptions> = {
  ...WRITE,
  ...each(text, "sessionId", "id"),
  ...each(converted, "createTime", "metadata", "ttlMs"),
  labels,
};

const STORE_RESPONSE: Names<StoreResponseOptions> = {
  ...STORE,
  ...each(text, "inResponseTo", "sender"),
  allowMissing: flag,
  originalMessage: ORIGINAL,
};

const STORE_REFLECTION: Names<StoreReflectionOptions> = { ...STORE, interactionIds: texts, sender: text };

const NAMESPACE_STATS: Names<NamespaceStatsOptions> = { ...CALL, includeUsage: flag };

const DELETE_DOCUMENT: Names<DeleteDocumentOptions> = { ...WITH_VERSION, keepDerived: flag };

const DOCUMENTS: Names<DocumentFilter> = {
  ...TRUST,
  ...each(converted, "startTime", "endTime"),
  sessionId: text,
  labels,
};

const INTERACTIONS: Names<InteractionFilter> = { ...DOCUMENTS, sender: text };

const CONTEXT: Names<RelevantContextOptions> = {
  ...CALL,
  ...INTERACTIONS,
  ...each(converted, "interactionLimit", "reflectionLimit", "mode", "maxTokens"),
  excludeIds: texts,
  minScore: number,
  explain: flag,
};

const LAST: Names<LastInteractionsOptions> = { ...PAGES, ...INTERACTIONS, limit: converted };
const SPLIT: Names<SplitOptions> = each(converted, "maxCharacters", "overlapCharacters");

const HANDLE: Names<HandleMessageOptions> = {
  ...WRITE,
  ...SPLIT,
  ...each(text, "messageId", "agentName"),
  ...each(converted, "maxRecentMessages", "metadata"),
  commands: texts,
  labels,
};

const ADD_DOCUMENT: Names<AddDocumentOptions> = {
  ...WITH_VERSION,
  ...SPLIT,
  ...each(text, "title", "source", "sessionId", "id"),
  ...each(converted, "metadata", "createTime", "expireTime", "ttlMs"),
  labels,
  replace: flag,
};

const GET_DOCUMENT: Names<GetDocumentOptions> = { ...PAGES, includeFragments: flag };
const LIST_DOCUMENTS: Names<ListDocumentsOptions> = { ...PAGES, ...DOCUMENTS, newestFirst: flag };
const FRAGMENTS: Names<SearchFragmentsOptions> = { ...PAGES, ...DOCUMENTS, ...MATCHED, documentIds: texts };

const LIST_SESSIONS: Names<ListSessionsOptions> = { ...PAGES, prefix: text, labels };
const SESSION_CHANGES: Names<SessionChanges> = { title: text, labels, metadata: converted };
const UPDATE_SESSION: Names<UpdateSessionOptions> = { ...WITH_VERSION, allowMissing: flag };
const DELETE_SESSION: Names<DeleteSessionOptions> = { ...WRITE, ...DERIVED };
const FORK_SESSION: Names<ForkSessionOptions> = {
  ...WRITE,
  ...each(text, "newSessionId", "untilItemId"),
  untilRevision: converted,
};
const READ_FILE: Names<ReadFileOptions> = {
  ...CALL,
  ...each(converted, "startLine", "endLine", "version", "maxCharacters"),
};
const RENAME_FILE: Names<RenameFileOptions> = WITH_VERSION;
const WRITE_FILE: Names<WriteFileOptions> = { ...WITH_VERSION, expectedSha256: text };
const DELETE_FILE: Names<DeleteFileOptions> = { ...WITH_VERSION, recursive: flag };
const LIST_FILES: Names<ListFilesOptions> = { ...PAGES, path: text, depth: converted };
const SEARCH_FILES: Names<SearchFilesOptions> = { ...CALL, path: text, ...each(converted, "limit", "maxCharacters") };

const RELEVANCE: Names<CheckRelevanceOptions> = {
  ...CALL,
  ...each(converted, "limit", "maxTokens", "maxCandidates", "decideBy"),
  ...each(flag, "omitValues", "explain"),
  pattern: text,
};

const EVALUATE: Names<EvaluateForStorageOptions> = {
  ...WRITE,
  ...each(text, "goal", "key"),
  ...each(flag, "save", "isError", "overwrite"),
  ...each(converted, "arguments", "ttlMs", "decideBy"),
};

const SETTINGS: Names<NamespaceChanges> = { timeZone: text, defaultTtlMs: orNull(converted) };
const UPDATE_NAMESPACE: Names<UpdateNamespaceOptions> = { ...CALL, expectedVersion: converted };
const LIST_NAMESPACES: Names<ListNamespacesOptions> = { ...PAGES, prefix: text };
const REEMBED: Names<ReembedOptions> = { ...CALL, replaceClientVectors: flag };

const UNDO: Names<UndoOptions> = {
  ...WRITE,
  ...each(text, "writer", "credentialId"),
  ...each(flag, "anyWriter", "dryRun"),
  since: converted,
};

/** Methods that take options. */
type Method = Exclude<keyof MemoryClient, "namespace" | "close" | symbol>;

type LastOf<P extends readonly unknown[]> = Required<P> extends readonly [...unknown[], infer Last] ? Last : never;

/** For each method, its arguments in order. */
export const ARGUMENTS: {
  readonly [M in Method]: Shape & { readonly options: Names<LastOf<Parameters<MemoryClient[M]>>> };
} = {
  add: { content: converted, options: ADD },
  batchAdd: { items: converted, options: BATCH_ADD },
  importItems: { records: converted, options: IMPORT },
  retrieve: { query: QUERY, options: RETRIEVE },
  get: { id: text, options: GET },
  listItems: { options: LIST },
  listLabelValues: { key: text, options: LIST_LABELS },
  update: { id: text, changes: CHANGES, options: WITH_REVISION },
  delete: { id: text, options: DELETE },
  deleteWhere: { options: DELETE_WHERE },
  batchWrite: { operations: converted, options: WRITE },
  reset: { options: WRITE },
  watch: { options: WATCH },
  export: { options: EXPORT },
  saveState: { key: text, value: json, options: SAVE_STATE },
  loadState: { key: text, options: LOAD_STATE },
  listStateKeys: { options: LIST_STATE },
  searchState: { pattern: text, options: PAGES },
  deleteState: { key: text, options: WITH_VERSION },
  renameState: { key: text, newKey: text, options: WITH_VERSION },
  clearState: { options: WRITE },
  listItemVersions: { id: text, options: LIST_VERSIONS },
  redactVersion: { id: text, revision: converted, options: CALL },
  listStateVersions: { key: text, options: LIST_VERSIONS },
  redactStateVersion: { key: text, revision: converted, options: CALL },
  saveMemory: { content: text, category: converted, reasoning: text, options: SAVE_MEMORY },
  searchMemories: { query: text, options: SEARCH_MEMORIES },
  listMemories: { options: LIST_MEMORIES },
  updateMemory: { id: text, changes: MEMORY_CHANGES, options: UPDATE_MEMORY },
  deleteMemory: { id: text, options: DELETE_MEMORY },
  getPreloadedMemories: { options: PRELOAD },
  extractMemories: { options: EXTRACT },
  consolidateMemories: { options: CONSOLIDATE },
  storeInteraction: { sender: text, content: text, options: STORE },
  storeResponse: { content: text, options: STORE_RESPONSE },
  storeReflection: { content: text, options: STORE_REFLECTION },
  retrieveRelevantContext: { query: text, options: CONTEXT },
  retrieveLastInteractions: { options: LAST },
  handleMessage: { sessionId: text, text, options: HANDLE },
  addDocument: { text, options: ADD_DOCUMENT },
  getDocument: { id: text, options: GET_DOCUMENT },
  listDocuments: { options: LIST_DOCUMENTS },
  deleteDocument: { id: text, options: DELETE_DOCUMENT },
  searchFragments: { query: text, options: FRAGMENTS },
  listSessions: { options: LIST_SESSIONS },
  getSession: { sessionId: text, options: CALL },
  updateSession: { sessionId: text, changes: SESSION_CHANGES, options: UPDATE_SESSION },
  deleteSession: { sessionId: text, options: DELETE_SESSION },
  forkSession: { sessionId: text, options: FORK_SESSION },
  readFile: { path: text, options: READ_FILE },
  writeFile: { path: text, content: text, options: WRITE_FILE },
  editFile: { path: text, edit: converted, options: WRITE_FILE },
  renameFile: { path: text, newPath: text, options: RENAME_FILE },
  deleteFile: { path: text, options: DELETE_FILE },
  listFiles: { options: LIST_FILES },
  searchFiles: { query: text, options: SEARCH_FILES },
  listFileVersions: { path: text, options: LIST_VERSIONS },
  redactFileVersion: { path: text, version: converted, options: CALL },
  checkRelevance: { goal: text, options: RELEVANCE },
  evaluateForStorage: { toolName: text, result: json, options: EVALUATE },
  info: { options: CALL },
  listNamespaces: { options: LIST_NAMESPACES },
  updateNamespace: { changes: SETTINGS, options: UPDATE_NAMESPACE },
  namespaceStats: { options: NAMESPACE_STATS },
  deleteNamespace: { options: CALL },
  reembed: { options: REEMBED },
  undoWrites: { options: UNDO },
  listQuarantined: { options: PAGES },
  reviewQuarantined: { id: text, decision: converted, options: CALL },
  flush: { options: CALL },
  backup: { name: text, options: CALL },
  health: { service: text, options: CALL },
};
