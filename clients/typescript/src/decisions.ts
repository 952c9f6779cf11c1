// What there is to say of a decision: who made it, what went wrong on the way, what it cost.

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
 * Who decided, or is to decide.
 *
 * - `"llm"`: the language model. In requests: it alone; where it fails the call fails and nothing is written.
 * - `"rules"`: the server's rules. In requests: they alone; no language model is asked.
 * - `"unspecified"`: in answers: nobody, as there was nothing to do. In requests: the language model if it
 *   can, else rules.
 */
export type DecidedBy = "llm" | "rules" | "unspecified";

/** Something that went wrong on the way to a decision, and was got over. */
export interface DecisionFailure {
  /** Such as "LLM_TIMEOUT" or "KEY_EXISTS", for programs. */
  readonly reason: string;
  /** For humans. */
  readonly message: string;
  /** Key of the state, or id of the memory, that it is about. Empty: the whole decision. */
  readonly key: string;
}

/** What an answer cost at the language model. */
export interface LlmUsage {
  /** As "provider:model". Empty: none was asked. */
  readonly model: string;
  /** How many times it was called, retries and repairs included. */
  readonly callCount: number;
  /** How many questions were answered from the cache instead. */
  readonly cachedCount: number;
  /** Of all calls, as the provider counts them. 0: none, or not told. */
  readonly inputTokens: number;
  /** Of all calls, as the provider counts them. 0: none, or not told. */
  readonly outputTokens: number;
}

/** What every answer with a decision says of it. */
export interface Decision {
  /** Who decided. */
  readonly decidedBy: DecidedBy;
  /** What went wrong on the way. Empty: nothing. */
  readonly failures: readonly DecisionFailure[];
  /** What the answer cost. Undefined: no language model was asked. */
  readonly llmUsage?: LlmUsage | undefined;
  /** What the server could not do for this answer. Empty: nothing. */
  readonly degraded: readonly Degradation[];
  /** Revision of the namespace that the answer reflects; after the write, if there was one. */
  readonly revision: number;
}

/** What the responses with a decision have in common. */
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
