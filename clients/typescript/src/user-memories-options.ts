// What the methods that keep facts about a user take beside what they need.

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
  /** The user asked for it to be remembered, which makes it more important. */
  readonly explicitRequest?: boolean | undefined;
  /** What becomes of it if it contradicts a known one. Undefined: it supersedes that. */
  readonly onContradiction?: OnContradiction | undefined;
  /** When it began to hold. Undefined: now. */
  readonly validFromTime?: TimeInput | undefined;
  /** How long the memory lives, in milliseconds. Undefined: for ever. */
  readonly ttlMs?: number | undefined;
  /** For exact matching, as in { topic: "travel" }. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** JSON values to keep with the memory. */
  readonly metadata?: JsonObject | undefined;
  /** Save the content as it is given, not in the third person. */
  readonly keepWording?: boolean | undefined;
  /** Who is to rephrase and to compare. Undefined: the language model if it can, else rules. */
  readonly decideBy?: DecidedBy | undefined;
}

/** Which memories are read. */
export interface MemoryFilter extends TrustFilter {
  /** Only memories of one of these. Undefined or empty: of any. */
  readonly categories?: readonly MemoryCategory[] | undefined;
  /** Memories that held then. Undefined: those that hold now. */
  readonly asOfTime?: TimeInput | undefined;
  /** Only memories whose importance is now at least this. */
  readonly minImportance?: number | undefined;
  /** Only memories that have all these labels. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

/** How memories are searched. */
export interface SearchMemoriesOptions extends CallOptions, MemoryFilter {
  /** The most memories wanted. Undefined: 5. -1: all. */
  readonly limit?: number | undefined;
  /** Also memories that hold no more. Not together with `asOfTime`. */
  readonly includeHistory?: boolean | undefined;
  /** Only memories that came from this conversation. */
  readonly sessionId?: string | undefined;
  /** Only results that score at least this. */
  readonly minScore?: number | undefined;
  /** By what the query is answered. Undefined: words and vectors together. */
  readonly mode?: RetrieveMode | undefined;
  /** What the contents may take together, estimated. Undefined: no bound. */
  readonly maxTokens?: number | undefined;
  /** Add to each result how its score came about. */
  readonly explain?: boolean | undefined;
  /** How many results are fetched at a time. Undefined: as many as fit into a response. */
  readonly pageSize?: number | undefined;
}

/** How memories are listed. */
export interface ListMemoriesOptions extends CallOptions, MemoryFilter {
  /** Only these memories; those that do not exist are left out. Undefined or empty: any. At most 1000. */
  readonly ids?: readonly string[] | undefined;
  /** Also memories that hold no more. Not together with `asOfTime`. */
  readonly includeHistory?: boolean | undefined;
  /** Only memories that came from this conversation. */
  readonly sessionId?: string | undefined;
  /** Only memories whose `createTime` is at or after it. */
  readonly startTime?: TimeInput | undefined;
  /** Only memories whose `createTime` is before it. */
  readonly endTime?: TimeInput | undefined;
  /** Turn the order round. */
  readonly newestFirst?: boolean | undefined;
  /** How many are fetched at a time. Undefined: 100. */
  readonly pageSize?: number | undefined;
}

/** The fields of a memory to correct. Undefined: the field stays as it is. */
export interface MemoryChanges {
  /** The fact, which is put into the third person, embedded and rated anew. */
  readonly content?: string | undefined;
  /** What it is about. */
  readonly category?: MemoryCategory | undefined;
  /** Why it is worth remembering. */
  readonly reasoning?: string | undefined;
  /** The score of its importance. */
  readonly importance?: number | undefined;
  /** When it began to hold. */
  readonly validFromTime?: TimeInput | undefined;
  /** When it ceased to hold. Null: it still holds. */
  readonly validUntilTime?: TimeInput | null | undefined;
  /** When it ceases to exist. Null: never. */
  readonly expireTime?: TimeInput | null | undefined;
  /** Another way to give `expireTime`: milliseconds from now. */
  readonly ttlMs?: number | undefined;
  /** For exact matching. Replaced whole. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** JSON values to keep with the memory. Replaced whole. */
  readonly metadata?: JsonObject | undefined;
}

/** How a memory is corrected. */
export interface UpdateMemoryOptions extends WriteOptions {
  /** Correct it only if this is the memory's version. Undefined: always. */
  readonly expectedVersion?: number | undefined;
  /** Save the content as it is given, not in the third person. */
  readonly keepWording?: boolean | undefined;
  /** Who is to rephrase and to compare. Undefined: the language model if it can, else rules. */
  readonly decideBy?: DecidedBy | undefined;
}

/** How a memory is removed. */
export interface DeleteMemoryOptions extends WriteOptions {
  /** Remove it only if this is the memory's version. Undefined: always. */
  readonly expectedVersion?: number | undefined;
  /** Remove also the memories that it superseded or was made out of. */
  readonly includeHistory?: boolean | undefined;
}

/** What is preloaded. `categories` undefined or empty: identity, preference and relationship. */
export interface PreloadOptions extends CallOptions, MemoryFilter {
  /** What the text may take, estimated. Undefined: 1000. -1: no bound. */
  readonly maxTokens?: number | undefined;
  /** The most memories wanted, at most 1000. Undefined: 100. */
  readonly limit?: number | undefined;
}

/** Where facts are looked for, and how they are saved. Required is one of `messages` and `sessionId`. */
export interface ExtractMemoriesOptions extends WriteOptions {
  /** To look through, at most 200; they are not stored. Undefined or empty: the items of the session. */
  readonly messages?: readonly ChatMessage[] | undefined;
  /** The session to look through; with messages, the conversation that they are of. */
  readonly sessionId?: string | undefined;
  /** Only items of the session written later than this revision. Only without messages. */
  readonly afterRevision?: number | undefined;
  /** The most items of the session, the oldest first. Undefined: 100. Only without messages. */
  readonly limit?: number | undefined;
  /** Memories that were put into the conversation: what repeats them is not new. */
  readonly recalledMemoryIds?: readonly string[] | undefined;
  /** To look for. Undefined or empty: all. */
  readonly categories?: readonly MemoryCategory[] | undefined;
  /** Tell what would be saved, and write nothing. */
  readonly dryRun?: boolean | undefined;
  /** What becomes of a fact that contradicts a known one. Undefined: it supersedes that. */
  readonly onContradiction?: OnContradiction | undefined;
  /** Who is to extract. Undefined: the language model if it can, else rules. */
  readonly decideBy?: DecidedBy | undefined;
  /** Who has the memories saved, such as an agent's name. */
  readonly actor?: string | undefined;
  /** For the memories. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

/** Which memories are consolidated, and how. */
export interface ConsolidateMemoriesOptions extends WriteOptions {
  /** Tell what would be done, and write nothing. */
  readonly dryRun?: boolean | undefined;
  /** Of the memories to look at. Undefined or empty: all. */
  readonly categories?: readonly MemoryCategory[] | undefined;
  /** Of the memories to look at. Undefined or empty: all that hold. At most 1000. */
  readonly memoryIds?: readonly string[] | undefined;
  /** The cosine from which on memories are looked at together. Undefined: the embedder's own. */
  readonly similarityThreshold?: number | undefined;
  /** The most groups to work on, the most similar first. Undefined: 50. */
  readonly limit?: number | undefined;
  /** Who is to decide and to word. Undefined: the language model if it can, else rules. */
  readonly decideBy?: DecidedBy | undefined;
}
