// What the methods that keep and find items take and return.

import type { Degradation } from "./degradation.js";
import type { Contribution, Found } from "./found.js";
import type { Batching } from "./importing.js";
import type { ItemKind, MemoryItem, NewItem, SourceKind, Vector } from "./items.js";
import type { JsonObject } from "./json.js";
import type { Content } from "./messages.js";
import type { CallOptions, WriteOptions } from "./options.js";
import type { StateEntry } from "./state-entries.js";
import type { TimeInput } from "./times.js";

/** What an item that is added holds beside its content. */
export interface AddOptions extends WriteOptions, Omit<NewItem, "content"> {}

/** How records are imported. The time limit is that of the whole import; undefined: none. */
export interface ImportOptions extends CallOptions, Batching {}

/** What an import wrote. */
export interface ImportSummary {
  readonly importedCount: number;
  readonly skippedCount: number;
  readonly importedStateCount: number;
  readonly skippedStateCount: number;
  /** Revision of the namespace after the last batch. */
  readonly revision: number;
  /** What the server could not do, such as embedding the texts. */
  readonly degraded: readonly Degradation[];
}

/** By what a query is answered: words and vectors together, cosine similarity of vectors, or words alone (BM25). */
export type RetrieveMode = "hybrid" | "vector" | "lexical";

/** Which items are wanted. */
export interface ItemFilter {
  /** Only items of this conversation. */
  readonly sessionId?: string | undefined;
  /** Only items that have all these labels. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Only items whose createTime is at or after it. */
  readonly startTime?: TimeInput | undefined;
  /** Only items whose createTime is before it. */
  readonly endTime?: TimeInput | undefined;
  /**
   * Only items of one of these kinds. Undefined or empty: those of a conversation, which are plain items,
   * messages, responses and reflections.
   */
  readonly kinds?: readonly ItemKind[] | undefined;
  /**
   * Only items for which this expression holds, such as
   * `labels.topic = "travel" AND create_time >= "2023-05-01"`; a subset of AIP-160.
   */
  readonly filter?: string | undefined;
  /** Only items that are trusted at least this much, 0 to 1. */
  readonly minTrust?: number | undefined;
  /** Only items whose content comes from one of these. Undefined or empty: from any. */
  readonly sources?: readonly SourceKind[] | undefined;
  /** Return the items' vectors. */
  readonly includeEmbedding?: boolean | undefined;
}

/**
 * What a score is made of. The weights are relative: each is finite and 0 or more, and one of them above 0.
 */
export interface ScoreWeights {
  /** Of words. Undefined: 0.75. */
  readonly lexical?: number | undefined;
  /** Of the vectors' similarity. Undefined: 0.25. */
  readonly vector?: number | undefined;
  /** Of an item's age, counted from `now`: 1 for one of now, one half after a half-life. Undefined: 0. */
  readonly recency?: number | undefined;
  /** The age at which recency is one half, in milliseconds. Undefined: 7 days. */
  readonly recencyHalfLifeMs?: number | undefined;
  /** Of the items' importance. Undefined: 0. */
  readonly importance?: number | undefined;
  /** Of how often an item was used: with n uses, n / (n + 3). `recordUsage` counts them. Undefined: 0. */
  readonly usage?: number | undefined;
}

/** What is retrieved. */
export interface RetrieveOptions extends CallOptions, ItemFilter {
  /** The most results wanted. Undefined: 10. -1: all. The time limit is that of each page of them. */
  readonly limit?: number | undefined;
  /** Only results that score at least this. Only with a query. */
  readonly minScore?: number | undefined;
  /** By what the query is answered. Undefined: what fits it. */
  readonly mode?: RetrieveMode | undefined;
  /** Add to each result how its score came about. */
  readonly explain?: boolean | undefined;
  /** The query's vector, in place of embedding the text. */
  readonly embedding?: Vector | undefined;
  /** What "yesterday" in the query is relative to, and from which ages count. Undefined: the time of the call. */
  readonly now?: TimeInput | undefined;
  /** What a score is made of. Undefined: the defaults. Only with a query. */
  readonly weights?: ScoreWeights | undefined;
  /** How many neighbours come with a result, at most so many before it and after it, 0 to 20. */
  readonly contextWindow?: number | undefined;
  /**
   * What the texts of the results, with their neighbours, may take together, estimated, 1 or more: the best that
   * fit are returned, without a query the newest. Undefined: no bound.
   */
  readonly maxTokens?: number | undefined;
  /** Let the server's reranker put the best results in order: slower, and often better. Only with a query text. */
  readonly rerank?: boolean | undefined;
  /** Count each result as used once, for searches that weigh usage. */
  readonly recordUsage?: boolean | undefined;
  /** How many results are fetched at a time. Undefined: as many as fit into a response. */
  readonly pageSize?: number | undefined;
}

/** One item found. */
export interface Result {
  readonly item: MemoryItem;
  /** Higher is better; 0 without a query. Its range depends on the `RetrieveMode`. */
  readonly score: number;
  /** Shares that add up to the score. Empty unless `explain` asked for it. */
  readonly explanation: readonly Contribution[];
  /** The items of its session right before it, in their order. Empty unless `contextWindow` asked for them. */
  readonly before: readonly MemoryItem[];
  /** The items of its session right after it, in their order. */
  readonly after: readonly MemoryItem[];
  /** The item's content as readable text. */
  readonly text: string;
}

/** What a retrieval found, all its pages together. */
export interface Results extends Found<Result> {
  /** How many tokens the texts take, neighbours included, estimated. 0 unless `maxTokens` was given. */
  readonly tokenCount: number;
}

/** How one item is fetched. */
export interface GetOptions extends CallOptions {
  /** Return the item's vector. */
  readonly includeEmbedding?: boolean | undefined;
}

/** Which items are listed, and how. */
export interface ListItemsOptions extends CallOptions, ItemFilter {
  /** Turn the order round. */
  readonly newestFirst?: boolean | undefined;
  /** How many items are fetched at a time. Undefined: 100. */
  readonly pageSize?: number | undefined;
}

/** The fields of an item to change. Undefined: the field stays as it is. */
export interface ItemChanges {
  /** New content that comes without an embedding is embedded by the server. */
  readonly content?: Content | string | undefined;
  readonly sessionId?: string | undefined;
  /** Replaced whole. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Replaced whole. */
  readonly metadata?: JsonObject | undefined;
  readonly createTime?: TimeInput | undefined;
  /** Null: the item lives for ever. */
  readonly expireTime?: TimeInput | null | undefined;
  /** Another way to give `expireTime`: milliseconds from now. */
  readonly ttlMs?: number | undefined;
  readonly embedding?: Vector | undefined;
  /** Null: it is no longer said how important the item is. */
  readonly importance?: number | null | undefined;
}

/** How an item is changed or removed. */
export interface ItemWriteOptions extends WriteOptions {
  /** Do it only if this is the item's revision. Undefined: always. */
  readonly expectedRevision?: number | undefined;
}

/** What happened to a namespace. "unspecified" is a kind of change that this client does not know. */
export type ChangeType =
  | "item_added"
  | "item_updated"
  | "item_deleted"
  | "item_expired"
  | "reset"
  | "state_saved"
  | "state_deleted"
  | "state_expired"
  | "state_cleared"
  | "unspecified";

/** One change of a namespace. */
export interface Change {
  readonly type: ChangeType;
  /** Revision of the change. */
  readonly revision: number;
  /** Empty: the change is not one of an item. */
  readonly itemId: string;
  /** The item as this change left it. Undefined: a later change, which follows, replaced or removed it. */
  readonly item?: MemoryItem | undefined;
  /** Empty: the change is not one of a state. */
  readonly stateKey: string;
  /** The entry as this change left it. Undefined: as for `item`. */
  readonly state?: StateEntry | undefined;
}

/** What is watched. */
export interface WatchOptions {
  /** Changes later than this revision. 0: all from the beginning. Undefined: from now on. */
  readonly afterRevision?: number | undefined;
  /** How long the server may be silent, in milliseconds. Undefined: 15 000. */
  readonly heartbeatIntervalMs?: number | undefined;
  /** Fail with `UnavailableError` when the server is away for longer, in milliseconds. Undefined: never. */
  readonly giveUpAfterMs?: number | undefined;
  /** Ends the watch when it is aborted; the iteration then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** What is exported. */
export interface ExportOptions {
  /** Only what was written later than this revision. */
  readonly afterRevision?: number | undefined;
  /** Return the items' vectors. */
  readonly includeEmbedding?: boolean | undefined;
  /** Fail with `UnavailableError` when the server is away for longer, in milliseconds. Undefined: 60 000. */
  readonly giveUpAfterMs?: number | undefined;
  /** Ends the export when it is aborted; the iteration then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}
