// Decisions of the overseer: which state a goal needs, and which results are worth saving.

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
 * The verdict on one key.
 *
 * - `"relevant"`: the goal needs it: its entry is in the answer.
 * - `"not_relevant"`: the goal does not need it.
 * - `"omitted"`: the goal needs it, but it exceeds `limit` or `maxTokens`, or was removed meanwhile.
 * - `"unspecified"`: a verdict that this client does not know.
 */
export type KeyVerdict = "relevant" | "not_relevant" | "omitted" | "unspecified";

/** The decision on one key, its decider and its reason. */
export interface KeyDecision {
  /** The key, which exists. */
  readonly key: string;
  /** The verdict. */
  readonly verdict: KeyVerdict;
  /** The decider for this key. */
  readonly decidedBy: DecidedBy;
  /** Reason for the verdict, for humans. */
  readonly reason: string;
  /** Score of the key in the search for candidates, 0 to 1. 0: not found by the search. */
  readonly score: number;
  /** Shares that add up to the score. Empty without `explain`. */
  readonly explanation: readonly Contribution[];
}

/**
 * The state that a goal needs. `decidedBy` is `"rules"` also if rules decided on only some of the entries, or if
 * there was no state.
 */
export interface Relevance extends Decision {
  /** Most relevant first. */
  readonly entries: readonly StateEntry[];
  /** Reason for the whole answer, for humans. */
  readonly reason: string;
  /** One for each candidate: first those on the entries, in the same order. */
  readonly decisions: readonly KeyDecision[];
  /** The entries as a block for a prompt. It is stored data, not instructions. */
  readonly contextText: string;
  /** Estimated tokens of `contextText`. */
  readonly tokenCount: number;
  /** Number of keys in the namespace that match `pattern`. */
  readonly keyCount: number;
}

/** Whether a tool's result is worth keeping, and what was saved. */
export interface StorageDecision extends Decision {
  /** The decision. */
  readonly shouldSave: boolean;
  /** The key to keep it under. Empty: it is not worth keeping. */
  readonly key: string;
  /** Reason for the decision, for humans. */
  readonly reason: string;
  /** Whether it was saved. If it should have been but was not, `failures` has the reason. */
  readonly saved: boolean;
  /** The entry as saved, without its value. Undefined: nothing was saved. */
  readonly entry?: StateEntry | undefined;
  /** Whether results of this tool are never kept. */
  readonly skipped: boolean;
  /** A description to store with the value, by which it is found. Empty: it is not worth keeping. */
  readonly description: string;
  /** Version of the key at the time of the decision, for your own `saveState`. 0: it did not exist. */
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
