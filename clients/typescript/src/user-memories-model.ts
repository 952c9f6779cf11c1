// Facts about a user, as plain values.

import type { DecidedBy, Decision } from "./decisions.js";
import type { Contribution } from "./found.js";
import type { Provenance } from "./items.js";
import type { JsonObject } from "./json.js";
import type { Time } from "./times.js";

/**
 * What a memory is about.
 *
 * - `"identity"`: who the user is: name, role, location. Base importance 10; preloaded.
 * - `"preference"`: what the user likes, dislikes and has set. Base importance 9; preloaded.
 * - `"relationship"`: whom the user knows. Base importance 8; preloaded.
 * - `"project"`: what the user works on. Base importance 7; found by search.
 * - `"context"`: the situation and what was discussed. Base importance 5; found by search.
 * - `"unspecified"`: a category that this client does not know. Refused in memories that are saved.
 */
export type MemoryCategory =
  | "identity"
  | "preference"
  | "relationship"
  | "project"
  | "context"
  | "unspecified";

/**
 * Whether a memory still holds.
 *
 * - `"active"`: it holds.
 * - `"superseded"`: it held until `validUntilTime`; reads as of an earlier time show it.
 * - `"merged"`: it was merged into another one. Only reads with `includeHistory` show it.
 * - `"unspecified"`: a status that this client does not know, or that of a memory that is not saved.
 */
export type MemoryStatus = "active" | "superseded" | "merged" | "unspecified";

/**
 * How a memory came about.
 *
 * - `"saved"`: by `saveMemory`.
 * - `"extracted"`: by `extractMemories`, out of messages.
 * - `"consolidated"`: by `consolidateMemories`, out of others.
 * - `"unspecified"`: not told, or in a way that this client does not know.
 */
export type MemoryOrigin = "saved" | "extracted" | "consolidated" | "unspecified";

/**
 * What became of a fact.
 *
 * - `"saved"`: it was saved, and no other memory changed.
 * - `"duplicate"`: it is known already: `existing` says it. Nothing was written.
 * - `"superseded"`: it was saved, and ended the memories that it contradicts: they are in `superseded`.
 * - `"contradiction"`: it contradicts `existing`, and was not to be saved then. Nothing was written.
 * - `"recalled"`: it repeats what was recalled into the conversation. Nothing was written. Only in extraction.
 * - `"rejected"`: it is not worth remembering. Nothing was written. Only in extraction.
 * - `"unspecified"`: an outcome that this client does not know.
 */
export type MemoryOutcome =
  | "saved"
  | "duplicate"
  | "superseded"
  | "contradiction"
  | "recalled"
  | "rejected"
  | "unspecified";

/**
 * What becomes of a fact that contradicts a known one.
 *
 * - `"supersede"`: the new fact is saved, and the known one ends where the new one begins.
 * - `"keep_both"`: the new fact is saved, and the known one goes on holding.
 * - `"refuse"`: the new fact is not saved.
 */
export type OnContradiction = "supersede" | "keep_both" | "refuse";

/**
 * What is done to a group of similar memories.
 *
 * - `"merge"`: they say much the same: one memory that says it all takes their place.
 * - `"supersede"`: they contradict each other: the one that began last goes on holding.
 * - `"keep"`: they say different things: they stay as they are.
 * - `"unspecified"`: an action that this client does not know.
 */
export type ConsolidationAction = "merge" | "supersede" | "keep" | "unspecified";

/** Where a memory came from, as far as a caller says so. */
export interface MemorySourceInput {
  /** The conversation that it came from. */
  readonly sessionId?: string;
  /** Items that it came from, or messages that were handed over without being stored. At most 100. */
  readonly itemIds?: readonly string[];
  /** What the user said, word for word, at most 2 KiB. */
  readonly quote?: string;
  /** Who saved it, such as an agent's name. */
  readonly actor?: string;
}

/** Where a memory came from. */
export interface MemorySource extends Required<MemorySourceInput> {
  /** How it came about. */
  readonly origin: MemoryOrigin;
  /** Memories that it was made out of. Empty: of none. */
  readonly memoryIds: readonly string[];
  /** Model that worded it, as "provider:model". Empty: none did. */
  readonly model: string;
}

/** One boost or reduction of an importance. */
export interface ImportanceAdjustment {
  /** In snake_case, such as "explicit_request"; "manual": somebody set the score. */
  readonly name: string;
  /** Above 0 for a boost, below 0 for a reduction. */
  readonly amount: number;
  /** Such as the words that it was found by. Empty: none is known. */
  readonly reason: string;
}

/** How important a memory is, and why. */
export interface Importance {
  /** Of the category, 5 to 10. */
  readonly base: number;
  /** What was added. */
  readonly boosts: readonly ImportanceAdjustment[];
  /** What was taken off. */
  readonly reductions: readonly ImportanceAdjustment[];
  /** The sum of base, boosts and reductions, and not below 0. */
  readonly score: number;
  /** What age has brought the score down to, 0 to 1. 1: no decay. */
  readonly decayFactor: number;
  /** `score` times `decayFactor`. Reads go by it. */
  readonly currentScore: number;
  /** Who found the boosts and reductions. */
  readonly decidedBy: DecidedBy;
}

/** One fact about the user. */
export interface UserMemory {
  /** Names it inside its namespace. Empty: it is not saved. */
  readonly id: string;
  /** The fact in the third person, as in "User prefers dark mode". */
  readonly content: string;
  /** What it is about. */
  readonly category: MemoryCategory;
  /** Why it is worth remembering. */
  readonly reasoning: string;
  /** How important it is, and why. */
  readonly importance: Importance;
  /** Counts its writes: 1 for the first. 0: it is not saved. */
  readonly version: number;
  /** Whether it still holds. */
  readonly status: MemoryStatus;
  /** When it began to hold. */
  readonly validFromTime?: Time | undefined;
  /** When it ceased to hold: the first moment that it does not. Undefined: it still holds. */
  readonly validUntilTime?: Time | undefined;
  /** The memory that took its place or that it was merged into. Empty: none, or it was deleted. */
  readonly supersededBy: string;
  /** The memories whose place it took. */
  readonly supersedes: readonly string[];
  /** The fact as it was given. Empty: just like `content`. */
  readonly originalContent: string;
  /** Where it came from. */
  readonly source: MemorySource;
  /** When it was saved. */
  readonly createTime?: Time | undefined;
  /** When this version was written. */
  readonly updateTime?: Time | undefined;
  /** When it ceases to exist, history included. Undefined: never. */
  readonly expireTime?: Time | undefined;
  /** For exact matching. */
  readonly labels: Readonly<Record<string, string>>;
  /** JSON values kept with it. */
  readonly metadata: JsonObject;
  /** Revision of the namespace at which this version was written. */
  readonly revision: number;
  /**
   * Who wrote it, out of what, and how far it is trusted. Undefined: nobody with a name wrote it, so that it is
   * trusted.
   */
  readonly provenance?: Provenance | undefined;
}

/** What became of a fact that was to be saved. */
export interface SavedMemory extends Decision {
  /** What became of it. */
  readonly outcome: MemoryOutcome;
  /** As saved. Undefined: nothing was saved. */
  readonly memory?: UserMemory | undefined;
  /** The known memory that decided the outcome, as it was before. Undefined: the fact is like no other. */
  readonly existing?: UserMemory | undefined;
  /** The memories that ended with this one, as they now stand. */
  readonly superseded: readonly UserMemory[];
  /** For the user or the model, such as "Similar memory already exists". */
  readonly message: string;
  /** To the most similar memory known, a cosine from -1 to 1. Undefined: none is known, or not measured. */
  readonly similarity?: number | undefined;
  /** What the similarity must be above for a duplicate. 0: there is no embedder. */
  readonly duplicateThreshold: number;
  /** For the outcome, for a human. */
  readonly reason: string;
  /** Who put the content into the third person. `"unspecified"`: it was left as it is. */
  readonly rephrasedBy: DecidedBy;
}

/** What became of a correction. */
export interface UpdatedMemory extends Decision {
  /** `"saved"`, or `"duplicate"` when another memory says the new content already: nothing was written then. */
  readonly outcome: MemoryOutcome;
  /** As it now stands. */
  readonly memory: UserMemory;
  /** The other memory that says the new content already. Undefined: none does. */
  readonly existing?: UserMemory | undefined;
  /** Who put the content into the third person. `"unspecified"`: it was left as it is. */
  readonly rephrasedBy: DecidedBy;
}

/** What a deletion removed. */
export interface RemovedMemories {
  /** How many memories were removed. */
  readonly count: number;
  /** Revision of the namespace afterwards. */
  readonly revision: number;
}

/** One memory found. */
export interface MemoryResult {
  /** What was found. */
  readonly memory: UserMemory;
  /** Higher is better. */
  readonly score: number;
  /** Shares that add up to the score. Empty unless `explain` asked for it. */
  readonly explanation: readonly Contribution[];
}

/** What belongs into every system prompt. */
export interface PreloadedMemories {
  /** Those in `text`, the most important first. */
  readonly memories: readonly UserMemory[];
  /** A block for a system prompt. It is data that somebody stored, not instructions. */
  readonly text: string;
  /** Of the text, estimated. */
  readonly tokenCount: number;
  /** How many memories were left out for `maxTokens` or `limit`. */
  readonly omittedCount: number;
  /** Revision of the namespace that the answer reflects. */
  readonly revision: number;
}

/** One fact that was found in messages, and what became of it. */
export interface ExtractedMemory {
  /** In a dry run the outcome that it would have. */
  readonly outcome: MemoryOutcome;
  /** As saved; where nothing was written what it would be, without id and version. */
  readonly memory: UserMemory;
  /** The known memory that decided the outcome, as it was before. Undefined: none did. */
  readonly existing?: UserMemory | undefined;
  /** The memories that ended with this one; in a dry run those that would end. */
  readonly superseded: readonly UserMemory[];
  /** To the most similar memory known, a cosine from -1 to 1. Undefined: none is known, or not measured. */
  readonly similarity?: number | undefined;
  /** Who extracted it. */
  readonly decidedBy: DecidedBy;
  /** For the outcome, for a human. */
  readonly reason: string;
  /** Of the one who extracted it, 0 to 1. Undefined: not told. */
  readonly confidence?: number | undefined;
}

/** What was found in messages, and saved. `decidedBy` is `"rules"` also when rules had to for some of them. */
export interface Extraction extends Decision {
  /** One for each fact, in the order in which they were said. */
  readonly results: readonly ExtractedMemory[];
  /** Why it was they who extracted, for a human. */
  readonly reason: string;
  /** How many messages or items were looked through. */
  readonly examinedCount: number;
  /** Up to which the session was looked through: the next `afterRevision`. 0: it was messages. */
  readonly examinedRevision: number;
  /** Whether the session holds later items. */
  readonly more: boolean;
}

/** A group of similar memories, and what is done to it. */
export interface Consolidation {
  /** What was decided on. */
  readonly action: ConsolidationAction;
  /** The memories of the group, as they were before. */
  readonly sources: readonly UserMemory[];
  /** What takes their place or goes on holding. Undefined: they stay as they are. */
  readonly memory?: UserMemory | undefined;
  /** Whether it was done. */
  readonly applied: boolean;
  /** Of the two most similar ones, a cosine from -1 to 1. */
  readonly similarity: number;
  /** Who decided on this group. */
  readonly decidedBy: DecidedBy;
  /** For the action, for a human. */
  readonly reason: string;
}

/** What a consolidation did, or in a dry run would do. */
export interface Consolidations extends Decision {
  /** One for each group of similar memories, the most similar first. */
  readonly consolidations: readonly Consolidation[];
  /** Why it was they who decided, for a human. */
  readonly reason: string;
  /** How many memories were looked at. */
  readonly examinedCount: number;
  /** Whether there are more groups than `limit`: call again. */
  readonly more: boolean;
}
