// Facts about a decision: who made it, what failed on the way, what it cost.

import type { Degradation } from "./degradation.js";
import { degradedTo } from "./degradation.js";
import type { Degradation as ProtoDegradation } from "./gen/memory_service/v1/memory_pb.js";
import type {
  DecisionFailure as ProtoFailure,
  LlmUsage as ProtoUsage,
} from "./gen/memory_service/v1/overseer_pb.js";
import {
  DecidedBy as Deciders,
  DecisionFailureReason as FailureReasons,
} from "./gen/memory_service/v1/overseer_pb.js";
import { enumFrom, enumTo } from "./values.js";

/**
 * The decider.
 *
 * - `"llm"`: the language model. In requests: only it; if it fails, the call fails and nothing is written.
 * - `"rules"`: the server's rules. In requests: only they; no language model is called.
 * - `"unspecified"`: in answers: no decision was needed. In requests: the language model if it can, else rules.
 */
export type DecidedBy = "llm" | "rules" | "unspecified";

/** A failure on the way to a decision that did not prevent it. */
export interface DecisionFailure {
  /** For programs, such as "LLM_TIMEOUT" or "KEY_EXISTS". */
  readonly reason: string;
  /** For humans. */
  readonly message: string;
  /** The state key or the memory id that it concerns. Empty: the whole decision. */
  readonly key: string;
}

/** Use of the language model for an answer. */
export interface LlmUsage {
  /** As "provider:model". Empty: none was called. */
  readonly model: string;
  /** Number of calls, retries and repairs included. */
  readonly callCount: number;
  /** Number of questions answered from the cache instead. */
  readonly cachedCount: number;
  /** Of all calls, as counted by the provider. 0: none, or not reported. */
  readonly inputTokens: number;
  /** Of all calls, as counted by the provider. 0: none, or not reported. */
  readonly outputTokens: number;
}

/** The fields common to all answers with a decision. */
export interface Decision {
  /** The decider. */
  readonly decidedBy: DecidedBy;
  /** Failures on the way. Empty: none. */
  readonly failures: readonly DecisionFailure[];
  /** What the answer cost. Undefined: no language model was called. */
  readonly llmUsage?: LlmUsage | undefined;
  /** What the server could not do for this answer. Empty: it did everything. */
  readonly degraded: readonly Degradation[];
  /** Revision of the namespace that the answer reflects; after the write, if there was one. */
  readonly revision: number;
}

/** The fields common to all responses with a decision. */
interface ProtoDecision {
  readonly decidedBy: Deciders;
  readonly failures: readonly ProtoFailure[];
  readonly llmUsage?: ProtoUsage | undefined;
  readonly degraded: readonly ProtoDegradation[];
  readonly revision: bigint;
}

/** @internal */
export function decidedByFrom(decideBy: DecidedBy = "unspecified"): Deciders {
  return enumFrom(Deciders, decideBy, "decideBy");
}

/** @internal */
export function decidedByTo(number: Deciders): DecidedBy {
  return enumTo(Deciders, number);
}

/** @internal */
export function decisionTo(response: ProtoDecision): Decision {
  return {
    decidedBy: decidedByTo(response.decidedBy),
    failures: response.failures.map(failureTo),
    llmUsage: response.llmUsage && usageTo(response.llmUsage),
    degraded: degradedTo(response.degraded),
    revision: Number(response.revision),
  };
}

function failureTo({ reason, message, key }: ProtoFailure): DecisionFailure {
  return { reason: FailureReasons[reason] ?? "UNSPECIFIED", message, key };
}

function usageTo(usage: ProtoUsage): LlmUsage {
  return {
    model: usage.model,
    callCount: usage.callCount,
    cachedCount: usage.cachedCount,
    inputTokens: Number(usage.inputTokens),
    outputTokens: Number(usage.outputTokens),
  };
}
