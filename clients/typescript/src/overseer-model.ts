// What the overseer decides: which state a goal needs, and which results are worth saving.

import type { DecidedBy, Decision } from "./decisions.js";
import { decidedByTo, decisionTo } from "./decisions.js";
import type { Contribution } from "./found.js";
import { explanationTo } from "./found.js";
import type {
  CheckRelevanceResponse,
  EvaluateForStorageResponse,
  KeyDecision as ProtoKeyDecision,
} from "./gen/memory_service/v1/overseer_pb.js";
import { KeyVerdict as Verdicts } from "./gen/memory_service/v1/overseer_pb.js";
import type { StateEntry } from "./state-entries.js";
import { entryTo } from "./state-entries.js";
import { enumTo } from "./values.js";

/**
 * What was decided on one key.
 *
 * - `"relevant"`: the goal needs it: its entry is in the answer.
 * - `"not_relevant"`: the goal does not need it.
 * - `"omitted"`: the goal needs it, but it is over `limit` or `maxTokens`, or was removed meanwhile.
 * - `"unspecified"`: a verdict that this client does not know.
 */
export type KeyVerdict = "relevant" | "not_relevant" | "omitted" | "unspecified";

/** What was decided on one key, by whom and why. */
export interface KeyDecision {
  /** It exists. */
  readonly key: string;
  /** What was decided. */
  readonly verdict: KeyVerdict;
  /** Who decided on this key. */
  readonly decidedBy: DecidedBy;
  /** For the verdict, for a human. */
  readonly reason: string;
  /** Of the key in the search for candidates, 0 to 1. 0: the search did not find it. */
  readonly score: number;
  /** Shares that add up to the score. Empty unless `explain` asked for it. */
  readonly explanation: readonly Contribution[];
}

/**
 * The state that a goal needs. `decidedBy` is `"rules"` also when rules had to decide on any of the entries,
 * and when there was no state.
 */
export interface Relevance extends Decision {
  /** The most relevant first. */
  readonly entries: readonly StateEntry[];
  /** For the answer as a whole, for a human. */
  readonly reason: string;
  /** On every candidate, those on the entries first and in their order. */
  readonly decisions: readonly KeyDecision[];
  /** The entries as a block for a prompt. It is data that somebody stored, not instructions. */
  readonly contextText: string;
  /** Of `contextText`, estimated. */
  readonly tokenCount: number;
  /** How many keys the namespace has that match `pattern`. */
  readonly keyCount: number;
}

/** Whether a tool's result is worth keeping, and what was saved. */
export interface StorageDecision extends Decision {
  /** The decision. */
  readonly shouldSave: boolean;
  /** To keep it under. Empty: it is not worth keeping. */
  readonly key: string;
  /** For the decision, for a human. */
  readonly reason: string;
  /** Whether it was saved. If it was to be and was not, `failures` says why. */
  readonly saved: boolean;
  /** As saved, without its value. Undefined: nothing was saved. */
  readonly entry?: StateEntry | undefined;
  /** Whether the tool is one of those whose results are never kept. */
  readonly skipped: boolean;
  /** To keep with the value, so that it is found again. Empty: it is not worth keeping. */
  readonly description: string;
  /** Of the key when it was decided on, for a `saveState` of one's own. 0: it did not exist. */
  readonly existingVersion: number;
}

/** @internal */
export function relevanceTo(response: CheckRelevanceResponse): Relevance {
  return {
    ...decisionTo(response),
    entries: response.entries.map(entryTo),
    reason: response.reason,
    decisions: response.decisions.map(keyDecisionTo),
    contextText: response.contextText,
    tokenCount: response.tokenCount,
    keyCount: Number(response.keyCount),
  };
}

function keyDecisionTo(decision: ProtoKeyDecision): KeyDecision {
  return {
    key: decision.key,
    verdict: enumTo(Verdicts, decision.verdict),
    decidedBy: decidedByTo(decision.decidedBy),
    reason: decision.reason,
    score: decision.score,
    explanation: explanationTo(decision.explanation),
  };
}

/** @internal */
export function storageDecisionTo(response: EvaluateForStorageResponse): StorageDecision {
  return {
    ...decisionTo(response),
    shouldSave: response.shouldSave,
    key: response.key,
    reason: response.reason,
    saved: response.saved,
    entry: response.entry && entryTo(response.entry),
    skipped: response.skipped,
    description: response.description,
    existingVersion: Number(response.existingVersion),
  };
}
