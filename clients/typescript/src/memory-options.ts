// Options and results of the methods for items.

import type { Degradation } from "./degradation.js";
import type { Contribution, Found } from "./found.js";
import type { Batching, OnDuplicate } from "./importing.js";
import type { ItemKind, MemoryItem, NewItem, SourceKind, Vector } from "./items.js";
import type { JsonObject } from "./json.js";
import type { Content } from "./messages.js";
import type { CallOptions, WriteOptions } from "./options.js";
import type { StateEntry } from "./state-entries.js";
import type { TimeInput } from "./times.js";
import type { DeleteCondition } from "./write-operations.js";

/** The fields of an item to be added, except its content. */
export interface AddOptions extends BatchAddOptions, Omit<NewItem, "content"> {}

/** How items are added. */
export interface BatchAddOptions extends WriteOptions {
  /** What to do with an item whose id exists already. Undefined: "fail". */
  readonly onDuplicate?: OnDuplicate | undefined;
}

/** How records are imported. The time limit applies to the whole import; undefined: none. */
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

/** How a query is matched: by words and vectors, by cosine similarity of vectors, or by words alone (BM25). */
export type RetrieveMode = "hybrid" | "vector" | "lexical";

/** Which items to return. */
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
   * Only items of these kinds. Undefined or empty: those of a conversation, which are plain items, messages,
   * responses and reflections.
   */
  readonly kinds?: readonly ItemKind[] | undefined;
  /**
   * Only items for which this expression holds, such as
   * `labels.topic = "travel" AND create_time >= "2023-05-01"`; a subset of AIP-160.
   */
  readonly filter?: string | undefined;
  /** Only items that are trusted at least this much, 0 to 1. */
  readonly minTrust?: number | undefined;
  /** Only items whose content comes from these sources. Undefined or empty: from any. */
  readonly sources?: readonly SourceKind[] | undefined;
  /** Return the items' vectors. */
  readonly includeEmbedding?: boolean | undefined;
  /**
   * The order: "create_time", "update_time", "revision" or "metadata.KEY", with " desc" for descending. Undefined: the
   * order in which items were added. Not with a query.
   */
  readonly orderBy?: string | undefined;
  /** Number of items to leave out at the beginning; a retrieval without `orderBy` leaves out the newest. */
  readonly skip?: number | undefined;
}

/** Weights of the parts of a score: relative, finite and not negative, at least one positive. */
export interface ScoreWeights {
  /** Weight of words. Undefined: 0.75. */
  readonly lexical?: number | undefined;
  /** Weight of vector similarity. Undefined: 0.25. */
  readonly vector?: number | undefined;
  /** Weight of recency: 1 for an item of the time `now`, 0.5 for one a half-life older. Undefined: 0. */
  readonly recency?: number | undefined;
  /** The age at which recency is 0.5, in milliseconds. Undefined: 7 days. */
  readonly recencyHalfLifeMs?: number | undefined;
  /** Weight of importance. Undefined: 0. */
  readonly importance?: number | undefined;
  /** Weight of usage, n / (n + 3) after n uses. `recordUsage` counts them. Undefined: 0. */
  readonly usage?: number | undefined;
}

/** Which items are retrieved, and how. */
export interface RetrieveOptions extends CallOptions, ItemFilter {
  /** Maximum number of results. Undefined: 10. -1: all. The time limit applies to each page. */
  readonly limit?: number | undefined;
  /** Only results that score at least this. Only with a query. */
  readonly minScore?: number | undefined;
  /** How the query is matched. Undefined: as suits the query. */
  readonly mode?: RetrieveMode | undefined;
  /** Explain the score of each result. */
  readonly explain?: boolean | undefined;
  /** The query's vector, in place of embedding the text. */
  readonly embedding?: Vector | undefined;
  /** The time to which "yesterday" and ages of items are relative. Undefined: the time of the call. */
  readonly now?: TimeInput | undefined;
  /** Weights of the parts of a score. Undefined: the defaults. Only with a query. */
  readonly weights?: ScoreWeights | undefined;
  /** Up to this many neighbours before and after each result, 0 to 20. */
  readonly contextWindow?: number | undefined;
  /**
   * Maximum estimated tokens of the results' texts together, neighbours included, at least 1. The best results that
   * fit are returned, without a query the newest. Undefined: no limit.
   */
  readonly maxTokens?: number | undefined;
  /** Reorder the best results by the server's reranker: slower, and often better. Only with a query text. */
  readonly rerank?: boolean | undefined;
  /** Count each result as used once, for searches that weigh usage. */
  readonly recordUsage?: boolean | undefined;
  /** Number of results to fetch at a time. Undefined: as many as fit in a response. */
  readonly pageSize?: number | undefined;
  /**
   * Further texts to find items for, such as the parts of a question; at most 8. The results of all are ordered by
   * reciprocal rank fusion.
   */
  readonly queries?: readonly string[] | undefined;
  /** Further namespaces to search together with that of the client, at most 16. Only with a query. */
  readonly namespaces?: readonly string[] | undefined;
  /** Only results with at least this relevance, 0 to 1; there may be none. Only with a query. */
  readonly minRelevance?: number | undefined;
  /**
   * How much the words of an item's neighbours count, 0 to 1. 0: it is found by its own words only. Undefined: 1. Only
   * with a query.
   */
  readonly neighbourWeight?: number | undefined;
  /** Let each result live for its time to live from now; it gets no new revision. */
  readonly refreshTtl?: boolean | undefined;
  /** Leave out tool calls without all of their results, and results without their call. Only without a query. */
  readonly wholeExchanges?: boolean | undefined;
  /** Time zone of "yesterday" in the query, such as "Europe/Berlin". Undefined: the namespace's. */
  readonly timeZone?: string | undefined;
}

/** One item found. */
export interface Result {
  readonly item: MemoryItem;
  /** Higher is better; 0 without a query. Its range depends on the `RetrieveMode`. */
  readonly score: number;
  /** Shares that add up to the score. Empty without `explain`. */
  readonly explanation: readonly Contribution[];
  /** The items right before it in its session, in order. Empty without `contextWindow`. */
  readonly before: readonly MemoryItem[];
  /** The items right after it in its session, in order. */
  readonly after: readonly MemoryItem[];
  /** How much it has in common with the query, 0 to 1: words and meaning, not whether it answers. 0 without a query. */
  readonly relevance: number;
  /** The namespace of the item. Empty without `namespaces`. */
  readonly namespace: string;
  /** The indexes of the `queries` that found it. */
  readonly matchedQueries: readonly number[];
  /** The item's content as readable text. */
  readonly text: string;
}

/** The results of a retrieval, of all pages. */
export interface Results extends Found<Result> {
  /** Estimated tokens of the texts, neighbours included. 0 without `maxTokens`. */
  readonly tokenCount: number;
}

/** How one item is fetched. */
export interface GetOptions extends CallOptions {
  /** Return the item's vector; not with a revision. */
  readonly includeEmbedding?: boolean | undefined;
  /** Return the version that was written at this revision. Undefined: the current one. */
  readonly revision?: number | undefined;
  /**
   * Let it live for its time to live from now: the one of the write that set its expiry. It gets no new revision. Not
   * with a revision.
   */
  readonly refreshTtl?: boolean | undefined;
}

/** Which items are listed, and how. */
export interface ListItemsOptions extends CallOptions, ItemFilter {
  /** Reverse the order. */
  readonly newestFirst?: boolean | undefined;
  /** Number of items to fetch at a time. Undefined: 100. */
  readonly pageSize?: number | undefined;
}

/** A value of a label, and how many items have it. */
export interface LabelValue {
  readonly value: string;
  readonly count: number;
}

/** Which values of a label are listed, and how. */
export interface ListLabelValuesOptions extends CallOptions {
  /** Only values that begin with this. */
  readonly prefix?: string | undefined;
  /** Number of values to fetch at a time. Undefined: 100. */
  readonly pageSize?: number | undefined;
}

/** The fields of an item to change. Undefined: the field is left unchanged. */
export interface ItemChanges {
  /** The server embeds new content that comes without an embedding. */
  readonly content?: Content | string | undefined;
  readonly sessionId?: string | undefined;
  /** Replaced as a whole. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Replaced as a whole. */
  readonly metadata?: JsonObject | undefined;
  readonly createTime?: TimeInput | undefined;
  /** Null: the item never expires. */
  readonly expireTime?: TimeInput | null | undefined;
  /** Milliseconds until it expires, in place of `expireTime`. */
  readonly ttlMs?: number | undefined;
  readonly embedding?: Vector | undefined;
  /** Null: unset, which counts as 0.5. */
  readonly importance?: number | null | undefined;
  /** The text to search in place of the content; empty: none. Null: the content. */
  readonly index?: string | null | undefined;
}

/** How an item is changed or removed. */
export interface ItemWriteOptions extends WriteOptions {
  /** Write only if this is the item's revision. Undefined: always. */
  readonly expectedRevision?: number | undefined;
}

/** How an item is removed. */
export interface DeleteOptions extends ItemWriteOptions {
  /** Keep what was made only from it. */
  readonly keepDerived?: boolean | undefined;
  /** Called at the end with the number of further items that were removed because they were made only from it. */
  readonly onDerived?: ((count: number) => void) | undefined;
}

/** Which items `deleteWhere` deletes, and how. At least one condition is required. */
export interface DeleteWhereOptions extends WriteOptions, DeleteCondition {
  /** Keep what was made only from the items that match. */
  readonly keepDerived?: boolean | undefined;
  /** Called at the end with the number of further items that were removed because they were made only from these. */
  readonly onDerived?: ((count: number) => void) | undefined;
  /** Count the items that match, without derived ones, and delete nothing. */
  readonly dryRun?: boolean | undefined;
}

/** The type of a change to a namespace. "unspecified" is one that this client does not know. */
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

/** One change to a namespace. */
export interface Change {
  readonly type: ChangeType;
  /** Revision of the change. */
  readonly revision: number;
  /** Empty: no item changed. */
  readonly itemId: string;
  /** The item after this change. Undefined: a later change, which follows, replaced or removed it. */
  readonly item?: MemoryItem | undefined;
  /** Empty: no state changed. */
  readonly stateKey: string;
  /** The entry after this change. Undefined: as for `item`. */
  readonly state?: StateEntry | undefined;
}

/** Which changes are watched, and how. */
export interface WatchOptions {
  /** Yield changes after this revision. 0: from the beginning. Undefined: from now on. */
  readonly afterRevision?: number | undefined;
  /** How long the server may be silent, in milliseconds. Undefined: 15 000. */
  readonly heartbeatIntervalMs?: number | undefined;
  /** Fail with `UnavailableError` if the server is unavailable for longer, in milliseconds. Undefined: never. */
  readonly giveUpAfterMs?: number | undefined;
  /** When aborted, ends the watch; the iteration then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** Which records are exported, and how. */
export interface ExportOptions {
  /** Only records written after this revision. */
  readonly afterRevision?: number | undefined;
  /** Return the items' vectors. */
  readonly includeEmbedding?: boolean | undefined;
  /** Fail with `UnavailableError` if the server is unavailable for longer, in milliseconds. Undefined: 60 000. */
  readonly giveUpAfterMs?: number | undefined;
  /** When aborted, ends the export; the iteration then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}
