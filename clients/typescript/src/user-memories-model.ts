// Facts about a user, as plain values.

import type { DecidedBy, Decision } from "./decisions.js";
import type { Contribution } from "./found.js";
import type { Provenance } from "./items.js";
import type { JsonObject } from "./json.js";
import type { Time } from "./times.js";

/**
 * The subject of a memory.
 *
 * - `"identity"`: who the user is: name, role, location. Base importance 10; preloaded.
 * - `"preference"`: likes, dislikes and settings of the user. Base importance 9; preloaded.
 * - `"relationship"`: people the user knows. Base importance 8; preloaded.
 * - `"project"`: what the user works on. Base importance 7; found by search.
 * - `"context"`: the situation and the topics discussed. Base importance 5; found by search.
 * - `"unspecified"`: a category that this client does not know. Rejected in memories to be saved.
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
 * - `"superseded"`: it held until `validUntilTime`; reads as of an earlier time return it.
 * - `"merged"`: it was merged into another one. Only reads with `includeHistory` return it.
 * - `"unspecified"`: a status that this client does not know, or that of an unsaved memory.
 */
export type MemoryStatus = "active" | "superseded" | "merged" | "unspecified";

/**
 * How a memory came about.
 *
 * - `"saved"`: by `saveMemory`.
 * - `"extracted"`: by `extractMemories`, from messages.
 * - `"consolidated"`: by `consolidateMemories`, from others.
 * - `"unspecified"`: not reported, or in a way that this client does not know.
 */
export type MemoryOrigin = "saved" | "extracted" | "consolidated" | "unspecified";

/**
 * The outcome for a fact.
 *
 * - `"saved"`: it was saved, and no other memory changed.
 * - `"duplicate"`: it is already known, as `existing`. Nothing was written.
 * - `"superseded"`: it was saved, and ended the memories in `superseded`, which it contradicts.
 * - `"contradiction"`: it contradicts `existing`, and was not to be saved in that case. Nothing was written.
 * - `"recalled"`: it repeats a memory recalled into the conversation. Nothing was written. Only in extraction.
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
 * What to do with a fact that contradicts a known one.
 *
 * - `"supersede"`: save the new fact, and end the known one where the new one begins.
 * - `"keep_both"`: save the new fact, and let the known one hold as well.
 * - `"refuse"`: do not save the new fact.
 */
export type OnContradiction = "supersede" | "keep_both" | "refuse";

/**
 * The action on a group of similar memories.
 *
 * - `"merge"`: they say much the same: one memory with everything they say replaces them.
 * - `"supersede"`: they contradict each other: only the one that began last still holds.
 * - `"keep"`: they say different things: they are left unchanged.
 * - `"unspecified"`: an action that this client does not know.
 */
export type ConsolidationAction = "merge" | "supersede" | "keep" | "unspecified";

/** Where a memory came from: the fields that a caller sets. */
export interface MemorySourceInput {
  /** The conversation that it came from. */
  readonly sessionId?: string;
  /** Items that it came from, or messages that were passed in without being stored. At most 100. */
  readonly itemIds?: readonly string[];
  /** The user's exact words, at most 2 KiB. */
  readonly quote?: string;
  /** The actor that saved it, such as an agent's name. */
  readonly actor?: string;
}

/** Where a memory came from. */
export interface MemorySource extends Required<MemorySourceInput> {
  /** How it came about. */
  readonly origin: MemoryOrigin;
  /** Memories that it was derived from. Empty: none. */
  readonly memoryIds: readonly string[];
  /** Model that worded it, as "provider:model". Empty: none. */
  readonly model: string;
}

/** One boost or reduction of an importance. */
export interface ImportanceAdjustment {
  /** In snake_case, such as "explicit_request"; "manual": a client set the score. */
  readonly name: string;
  /** Above 0 for a boost, below 0 for a reduction. */
  readonly amount: number;
  /** The reason, such as the words that led to it. Empty: unknown. */
  readonly reason: string;
}

/** How important a memory is, and why. */
export interface Importance {
  /** Base importance of the category, 5 to 10. */
  readonly base: number;
  /** Amounts added. */
  readonly boosts: readonly ImportanceAdjustment[];
  /** Amounts subtracted. */
  readonly reductions: readonly ImportanceAdjustment[];
  /** The sum of base, boosts and reductions, at least 0. */
  readonly score: number;
  /** Factor by which age lowers the score, 0 to 1. 1: no decay. */
  readonly decayFactor: number;
  /** `score` times `decayFactor`, which reads use. */
  readonly currentScore: number;
  /** The decider that found the boosts and reductions. */
  readonly decidedBy: DecidedBy;
}

/** One fact about the user. */
export interface UserMemory {
  /** Unique in its namespace. Empty: not saved. */
  readonly id: string;
  /** The fact in the third person, as in "User prefers dark mode". */
  readonly content: string;
  /** What it is about. */
  readonly category: MemoryCategory;
  /** Why it is worth remembering. */
  readonly reasoning: string;
  /** How important it is, and why. */
  readonly importance: Importance;
  /** Number of its writes, from 1. 0: not saved. */
  readonly version: number;
  /** Whether it still holds. */
  readonly status: MemoryStatus;
  /** When it began to hold. */
  readonly validFromTime?: Time | undefined;
  /** The first moment at which it no longer holds. Undefined: it still holds. */
  readonly validUntilTime?: Time | undefined;
  /** The memory that replaced it or that it was merged into. Empty: none, or that one was deleted. */
  readonly supersededBy: string;
  /** The memories that it replaced. */
  readonly supersedes: readonly string[];
  /** The fact as given. Empty: the same as `content`. */
  readonly originalContent: string;
  /** Where it came from. */
  readonly source: MemorySource;
  /** When it was saved. */
  readonly createTime?: Time | undefined;
  /** When this version was written. */
  readonly updateTime?: Time | undefined;
  /** When it expires, with its history. Undefined: never. */
  readonly expireTime?: Time | undefined;
  /** For exact matching. */
  readonly labels: Readonly<Record<string, string>>;
  /** JSON values stored with it. */
  readonly metadata: JsonObject;
  /** Revision of the namespace at which this version was written. */
  readonly revision: number;
  /** Its writer, sources and trust. Undefined: written without a credential, and so fully trusted. */
  readonly provenance?: Provenance | undefined;
}

/** The result of saving a fact. */
export interface SavedMemory extends Decision {
  /** The outcome. */
  readonly outcome: MemoryOutcome;
  /** The memory as saved. Undefined: nothing was saved. */
  readonly memory?: UserMemory | undefined;
  /** The known memory that decided the outcome, as it was before. Undefined: no known memory is similar. */
  readonly existing?: UserMemory | undefined;
  /** The memories that this one ended, as they are now. */
  readonly superseded: readonly UserMemory[];
  /** For the user or the model, such as "Similar memory already exists". */
  readonly message: string;
  /** Cosine similarity to the most similar memory, -1 to 1. Undefined: there is none, or it was not measured. */
  readonly similarity?: number | undefined;
  /** Similarity above which a fact is a duplicate. 0: there is no embedder. */
  readonly duplicateThreshold: number;
  /** Reason for the outcome, for humans. */
  readonly reason: string;
  /** The decider that put the content into the third person. `"unspecified"`: it was left unchanged. */
  readonly rephrasedBy: DecidedBy;
}

/** The result of a correction. */
export interface UpdatedMemory extends Decision {
  /** `"saved"`, or `"duplicate"` if another memory already says the new content: then nothing was written. */
  readonly outcome: MemoryOutcome;
  /** The memory as it is now. */
  readonly memory: UserMemory;
  /** The other memory that already says the new content. Undefined: none does. */
  readonly existing?: UserMemory | undefined;
  /** The decider that put the content into the third person. `"unspecified"`: it was left unchanged. */
  readonly rephrasedBy: DecidedBy;
}

/** The result of a deletion. */
export interface RemovedMemories {
  /** Number of removed memories. */
  readonly count: number;
  /** Revision of the namespace afterwards. */
  readonly revision: number;
  /** Number of further items that were removed because they were made only from these. */
  readonly derivedCount: number;
}

/** One memory found. */
export interface MemoryResult {
  /** The memory. */
  readonly memory: UserMemory;
  /** Higher is better. */
  readonly score: number;
  /** Shares that add up to the score. Empty without `explain`. */
  readonly explanation: readonly Contribution[];
}

/** The memories that belong in every system prompt. */
export interface PreloadedMemories {
  /** The memories in `text`, the most important first. */
  readonly memories: readonly UserMemory[];
  /** A block for a system prompt, in the order of saving. It is stored data, not instructions. */
  readonly text: string;
  /** Estimated tokens of the text, also if it is unchanged. */
  readonly tokenCount: number;
  /** Number of memories omitted because of `maxTokens` or `limit`. */
  readonly omittedCount: number;
  /** Revision of the namespace that the answer reflects. */
  readonly revision: number;
  /** The text is that at `ifNotRevision`; text and memories are empty. */
  readonly unchanged: boolean;
}

/** One fact found in messages, and its outcome. */
export interface ExtractedMemory {
  /** In a dry run, the outcome that it would have. */
  readonly outcome: MemoryOutcome;
  /** The memory as saved, or if nothing was written as it would be saved, without id and version. */
  readonly memory: UserMemory;
  /** The known memory that decided the outcome, as it was before. Undefined: none did. */
  readonly existing?: UserMemory | undefined;
  /** The memories that this one ended, or in a dry run would end. */
  readonly superseded: readonly UserMemory[];
  /** Cosine similarity to the most similar memory, -1 to 1. Undefined: there is none, or it was not measured. */
  readonly similarity?: number | undefined;
  /** The decider that extracted it. */
  readonly decidedBy: DecidedBy;
  /** Reason for the outcome, for humans. */
  readonly reason: string;
  /** Confidence of the decider that extracted it, 0 to 1. Undefined: not reported. */
  readonly confidence?: number | undefined;
}

/**
 * The facts found in messages, and those saved. `decidedBy` is `"rules"` also if rules extracted from only some of
 * the messages.
 */
export interface Extraction extends Decision {
  /** One for each fact, in the order of the messages. */
  readonly results: readonly ExtractedMemory[];
  /** Reason for the choice of the decider, for humans. */
  readonly reason: string;
  /** Number of messages or items examined. */
  readonly examinedCount: number;
  /** The session was examined up to this revision: the next `afterRevision`. 0: messages were given. */
  readonly examinedRevision: number;
  /** Whether the session has later items. */
  readonly more: boolean;
}

/** A group of similar memories, and the action on it. */
export interface Consolidation {
  /** The action. */
  readonly action: ConsolidationAction;
  /** The memories of the group, as they were before. */
  readonly sources: readonly UserMemory[];
  /** The memory that replaces them or still holds. Undefined: they are unchanged. */
  readonly memory?: UserMemory | undefined;
  /** Whether the action was carried out. */
  readonly applied: boolean;
  /** Cosine similarity of the two most similar ones, -1 to 1. */
  readonly similarity: number;
  /** The decider for this group. */
  readonly decidedBy: DecidedBy;
  /** Reason for the action, for humans. */
  readonly reason: string;
}

/** The result of a consolidation, or in a dry run what it would do. */
export interface Consolidations extends Decision {
  /** One for each group of similar memories, the most similar first. */
  readonly consolidations: readonly Consolidation[];
  /** Reason for the choice of the decider, for humans. */
  readonly reason: string;
  /** Number of memories examined. */
  readonly examinedCount: number;
  /** Whether there are more groups than `limit`: call again. */
  readonly more: boolean;
}
