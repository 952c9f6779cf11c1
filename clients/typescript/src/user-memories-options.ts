// Options of the methods for facts about a user.

import type { DecidedBy } from "./decisions.js";
import type { JsonObject } from "./json.js";
import type { RetrieveMode } from "./memory-options.js";
import type { ChatMessage } from "./messages.js";
import type { CallOptions, WriteOptions } from "./options.js";
import type { TrustFilter } from "./trust-filter.js";
import type { TimeInput } from "./times.js";
import type { MemoryCategory, MemorySourceInput, OnContradiction } from "./user-memories-model.js";

/** How a fact is saved. */
export interface SaveMemoryOptions extends WriteOptions {
  /** Where it came from: session, items, quote, actor. */
  readonly source?: MemorySourceInput | undefined;
  /** The user asked to remember it, which makes it more important. */
  readonly explicitRequest?: boolean | undefined;
  /** What to do if it contradicts a known one. Undefined: supersede that one. */
  readonly onContradiction?: OnContradiction | undefined;
  /** When it began to hold. Undefined: now. */
  readonly validFromTime?: TimeInput | undefined;
  /** Milliseconds until the memory expires. Undefined: it never does. */
  readonly ttlMs?: number | undefined;
  /** For exact matching, as in { topic: "travel" }. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** JSON values to store with the memory. */
  readonly metadata?: JsonObject | undefined;
  /** Save the content as given, not in the third person. */
  readonly keepWording?: boolean | undefined;
  /** The decider. Undefined: the language model if it can, else rules. */
  readonly decideBy?: DecidedBy | undefined;
}

/** Which memories are read. */
export interface MemoryFilter extends TrustFilter {
  /** Only memories of these categories. Undefined or empty: of any. */
  readonly categories?: readonly MemoryCategory[] | undefined;
  /** Memories that held at this time. Undefined: those that hold now. */
  readonly asOfTime?: TimeInput | undefined;
  /** Only memories whose current importance is at least this. */
  readonly minImportance?: number | undefined;
  /** Only memories that have all these labels. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

/** How memories are searched. */
export interface SearchMemoriesOptions extends CallOptions, MemoryFilter {
  /** Maximum number of memories. Undefined: 5. -1: all. */
  readonly limit?: number | undefined;
  /** Also memories that no longer hold. Not together with `asOfTime`. */
  readonly includeHistory?: boolean | undefined;
  /** Only memories that came from this conversation. */
  readonly sessionId?: string | undefined;
  /** Only results that score at least this. */
  readonly minScore?: number | undefined;
  /** How the query is matched. Undefined: by words and vectors together. */
  readonly mode?: RetrieveMode | undefined;
  /** Maximum estimated tokens of all contents together. Undefined: no limit. */
  readonly maxTokens?: number | undefined;
  /** Explain the score of each result. */
  readonly explain?: boolean | undefined;
  /** Number of results to fetch at a time. Undefined: as many as fit in a response. */
  readonly pageSize?: number | undefined;
}

/** How memories are listed. */
export interface ListMemoriesOptions extends CallOptions, MemoryFilter {
  /** Only these memories, at most 1000; missing ones are skipped. Undefined or empty: any. */
  readonly ids?: readonly string[] | undefined;
  /** Also memories that no longer hold. Not together with `asOfTime`. */
  readonly includeHistory?: boolean | undefined;
  /** Only memories that came from this conversation. */
  readonly sessionId?: string | undefined;
  /** Only memories whose `createTime` is at or after it. */
  readonly startTime?: TimeInput | undefined;
  /** Only memories whose `createTime` is before it. */
  readonly endTime?: TimeInput | undefined;
  /** Reverse the order. */
  readonly newestFirst?: boolean | undefined;
  /** Number to fetch at a time. Undefined: 100. */
  readonly pageSize?: number | undefined;
}

/** The fields of a memory to correct. Undefined: the field is left unchanged. */
export interface MemoryChanges {
  /** The fact, which is put into the third person, embedded and rated again. */
  readonly content?: string | undefined;
  /** What it is about. */
  readonly category?: MemoryCategory | undefined;
  /** Why it is worth remembering. */
  readonly reasoning?: string | undefined;
  /** The score of its importance. */
  readonly importance?: number | undefined;
  /** When it began to hold. */
  readonly validFromTime?: TimeInput | undefined;
  /** The first moment at which it no longer holds. Null: it still holds. */
  readonly validUntilTime?: TimeInput | null | undefined;
  /** When it expires. Null: never. */
  readonly expireTime?: TimeInput | null | undefined;
  /** Milliseconds until it expires, in place of `expireTime`. */
  readonly ttlMs?: number | undefined;
  /** For exact matching. Replaced as a whole. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** JSON values to store with the memory. Replaced as a whole. */
  readonly metadata?: JsonObject | undefined;
}

/** How a memory is corrected. */
export interface UpdateMemoryOptions extends WriteOptions {
  /** Correct it only if this is the memory's version. Undefined: always. */
  readonly expectedVersion?: number | undefined;
  /** Save the content as given, not in the third person. */
  readonly keepWording?: boolean | undefined;
  /** The decider. Undefined: the language model if it can, else rules. */
  readonly decideBy?: DecidedBy | undefined;
}

/** How a memory is removed. */
export interface DeleteMemoryOptions extends WriteOptions {
  /** Remove it only if this is the memory's version. Undefined: always. */
  readonly expectedVersion?: number | undefined;
  /** Also remove the memories that it superseded or was derived from. */
  readonly includeHistory?: boolean | undefined;
  /** Keep what was made only from the removed memories. */
  readonly keepDerived?: boolean | undefined;
}

/** Which memories are preloaded. `categories` undefined or empty: identity, preference and relationship. */
export interface PreloadOptions extends CallOptions, MemoryFilter {
  /** Maximum estimated tokens of the text. Undefined: 1000. -1: no limit. */
  readonly maxTokens?: number | undefined;
  /** Maximum number of memories, up to 1000. Undefined: 100. */
  readonly limit?: number | undefined;
  /**
   * The revision of an earlier result with the same options. If the text is known to be the same since, the
   * result is `unchanged` and has no text and memories. Undefined: always return them.
   */
  readonly ifNotRevision?: number | undefined;
}

/** Where to look for facts, and how to save them. One of `messages` and `sessionId` is required. */
export interface ExtractMemoriesOptions extends WriteOptions {
  /** Messages to examine, at most 200; they are not stored. Undefined or empty: the session's items. */
  readonly messages?: readonly ChatMessage[] | undefined;
  /** The session to examine; with messages, the conversation that they belong to. */
  readonly sessionId?: string | undefined;
  /** Examine items written after this revision. Only without messages. */
  readonly afterRevision?: number | undefined;
  /** Maximum number of items of the session, oldest first. Undefined: 100. Only without messages. */
  readonly limit?: number | undefined;
  /** Memories recalled into the conversation, so that repeating them is not new. */
  readonly recalledMemoryIds?: readonly string[] | undefined;
  /** Categories to look for. Undefined or empty: all. */
  readonly categories?: readonly MemoryCategory[] | undefined;
  /** Return what would be saved, and write nothing. */
  readonly dryRun?: boolean | undefined;
  /** What to do with a fact that contradicts a known one. Undefined: supersede that one. */
  readonly onContradiction?: OnContradiction | undefined;
  /** The decider. Undefined: the language model if it can, else rules. */
  readonly decideBy?: DecidedBy | undefined;
  /** The actor that saves the memories, such as an agent's name. */
  readonly actor?: string | undefined;
  /** Labels of the memories. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

/** Which memories are consolidated, and how. */
export interface ConsolidateMemoriesOptions extends WriteOptions {
  /** Return what would be done, and write nothing. */
  readonly dryRun?: boolean | undefined;
  /** Categories to examine. Undefined or empty: all. */
  readonly categories?: readonly MemoryCategory[] | undefined;
  /** Memories to examine, at most 1000. Undefined or empty: all that hold. */
  readonly memoryIds?: readonly string[] | undefined;
  /** Cosine similarity from which memories are grouped. Undefined: the embedder's default. */
  readonly similarityThreshold?: number | undefined;
  /** Maximum number of groups to work on, most similar first. Undefined: 50. */
  readonly limit?: number | undefined;
  /** The decider. Undefined: the language model if it can, else rules. */
  readonly decideBy?: DecidedBy | undefined;
}
