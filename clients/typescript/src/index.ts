// The client of memory-service, which stores and finds what agents have to remember.

export * from "./errors.js";
export { MemoryClient } from "./client.js";
export { chatMessage, data, readableText, text, toolCall, toolCallResult } from "./messages.js";

export type * from "./memory-options.js";
export type * from "./user-memories-model.js";
export type * from "./user-memories-options.js";
export type {
  BackupProgress,
  BackupSummary,
  IndexStats,
  ListNamespacesOptions,
  ListQuarantinedOptions,
  NamespaceChanges,
  NamespaceSettings,
  NamespaceStats,
  NamespaceStatsOptions,
  NamespaceUsage,
  NamespaceSummary,
  UpdateNamespaceOptions,
  QuarantinedWrite,
  QuarantineDecision,
  ReembedOptions,
  Reembedding,
  ReviewedWrite,
  ServerInfo,
  UndoneWrites,
  UndoOptions,
} from "./admin.js";
export type { DecidedBy, Decision, DecisionFailure, LlmUsage } from "./decisions.js";
export type { Degradation } from "./degradation.js";
export type { Contribution, Found } from "./found.js";
export type { HealthStatus } from "./health.js";
export type { Batching, ImportRecord, OnDuplicate } from "./importing.js";
export type {
  InteractionFilter,
  LastInteractionsOptions,
  RelevantContextOptions,
  StoreInteractionOptions,
  StoreReflectionOptions,
  StoreResponseOptions,
} from "./interactions.js";
export type {
  AppendText,
  DeleteFileOptions,
  FileEdit,
  InsertText,
  ListFilesOptions,
  ReadFileOptions,
  RenameFileOptions,
  ReplaceText,
  SearchFilesOptions,
  WriteFileOptions,
} from "./files.js";
export type {
  CreatedFile,
  DeletedFiles,
  EditedFile,
  FileContent,
  FileEntry,
  FileResult,
  FileVersion,
  RenamedFiles,
  WrittenFile,
} from "./files-model.js";
export type {
  ContextResult,
  Interaction,
  InteractionKind,
  InteractionPair,
  OriginalMessage,
  OriginalMessageInput,
  RelevantContext,
  StoredInteraction,
} from "./interactions-model.js";
export type { ImportedItem, ItemKind, MemoryItem, NewItem, Provenance, SourceKind, Vector } from "./items.js";
export type { JsonObject, JsonValue } from "./json.js";
export type {
  AddDocumentOptions,
  DeleteDocumentOptions,
  DocumentFilter,
  GetDocumentOptions,
  HandleMessageOptions,
  ListDocumentsOptions,
  SearchFragmentsOptions,
  SplitOptions,
} from "./knowledge.js";
export type {
  AddedDocument,
  Document,
  FetchedDocument,
  Fragment,
  FragmentResult,
  HandledMessage,
  HandleMessageOutcome,
  RemovedDocument,
  WholeDocument,
} from "./knowledge-model.js";
export type {
  DeleteSessionOptions,
  ForkSessionOptions,
  ListSessionsOptions,
  SessionChanges,
  UpdateSessionOptions,
} from "./sessions.js";
export type { FetchedSession, Session, SessionOrigin, WrittenSession } from "./sessions-model.js";
export type {
  BinaryPart,
  ChatMessage,
  Content,
  Data,
  MessageDetails,
  Model,
  Part,
  ResultDetails,
  Role,
  Text,
  ToolCall,
  ToolCallResult,
} from "./messages.js";
export type { CallOptions, ClientOptions, TlsOptions, TokenSource, WriteOptions } from "./options.js";
export type { CheckRelevanceOptions, EvaluateForStorageOptions } from "./overseer.js";
export type { KeyDecision, KeyVerdict, Relevance, StorageDecision } from "./overseer-model.js";
export type { Removed } from "./removed.js";
export type {
  DeleteStateOptions,
  ListStateKeysOptions,
  LoadStateOptions,
  RenameStateOptions,
  SaveStateOptions,
  SearchStateOptions,
} from "./state.js";
export type { NewStateEntry, StateEntry, ValueOptions } from "./state-entries.js";
export type { TrustFilter } from "./trust-filter.js";
export type { Time, TimeInput } from "./times.js";
export type {
  AddOperation,
  BatchWritten,
  DeleteCondition,
  DeleteFileOperation,
  DeleteOperation,
  DeleteStateOperation,
  DeleteWhereOperation,
  EditFileOperation,
  RenameFileOperation,
  SaveStateOperation,
  UpdateOperation,
  WriteFileOperation,
  WriteOperation,
  WriteResult,
} from "./write-operations.js";
export type { ItemVersion, ListVersionsOptions, StateVersion, Version, VersionKind } from "./versions.js";
