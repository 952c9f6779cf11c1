// The client's methods for decisions on state: what a goal needs, and what is worth saving.

import { Bound } from "./bound.js";
import type { DecidedBy } from "./decisions.js";
import { decidedByFrom } from "./decisions.js";
import { OverseerService } from "./gen/memory_service/v1/overseer_pb.js";
import type { JsonObject, JsonValue } from "./json.js";
import type { CallOptions, WriteOptions } from "./options.js";
import type { Relevance, StorageDecision } from "./overseer-model.js";
import { relevanceTo, storageDecisionTo } from "./overseer-model.js";
import { given, requestIdOf } from "./requests.js";
import { durationFrom, int32From, objectFrom, valueFrom } from "./values.js";

const method = OverseerService.method;

/** Which state is examined, and how much of it is returned. */
export interface CheckRelevanceOptions extends CallOptions {
  /** Maximum number of entries, up to 100. Undefined: 10. 0: only decisions. */
  readonly limit?: number | undefined;
  /** Maximum estimated tokens of all values together. Undefined: 2000. -1: no limit. */
  readonly maxTokens?: number | undefined;
  /** A glob that keys must match, such as "plan/*". Undefined or empty: all keys. */
  readonly pattern?: string | undefined;
  /** Maximum number of keys to decide on, up to 200. Undefined: 50. */
  readonly maxCandidates?: number | undefined;
  /** Omit the values, and leave `contextText` empty. */
  readonly omitValues?: boolean | undefined;
  /** The decider. Undefined: the language model if it can, else rules. */
  readonly decideBy?: DecidedBy | undefined;
  /** Explain the score of each decision. */
  readonly explain?: boolean | undefined;
}

/** Facts about a tool call, and how its result is saved. */
export interface EvaluateForStorageOptions extends WriteOptions {
  /** The goal of the call. */
  readonly goal?: string | undefined;
  /** Save the result if the decision is to keep it. Otherwise only return the decision. */
  readonly save?: boolean | undefined;
  /** Arguments of the call. */
  readonly arguments?: JsonObject | undefined;
  /** The tool failed; such a result is never kept. */
  readonly isError?: boolean | undefined;
  /** Key to save under. Undefined or empty: the overseer chooses one. */
  readonly key?: string | undefined;
  /** Replace the value of an existing key, which is otherwise left unchanged. */
  readonly overwrite?: boolean | undefined;
  /** Milliseconds until a saved entry expires. Undefined: it never does. */
  readonly ttlMs?: number | undefined;
  /** The decider. Undefined: the language model if it can, else rules. */
  readonly decideBy?: DecidedBy | undefined;
}

/** Decisions on the state of the client's namespace, by a language model or else by rules. */
export abstract class OverseerMethods extends Bound {
  /**
   * Returns the state that a goal needs, with its values.
   *
   * @param goal - what the agent will work on, in plain words, at most 16 KiB
   * @throws FailedPreconditionError - `decideBy` is "llm" and the server has no model (LLM_REQUIRED)
   * @throws UnavailableError - `decideBy` is "llm" and the model failed (LLM_UNAVAILABLE)
   */
  async checkRelevance(goal: string, options: CheckRelevanceOptions = {}): Promise<Relevance> {
    const request = {
      namespace: this.boundTo,
      goal,
      limit: given(options.limit, int32From, "limit"),
      maxTokens: given(options.maxTokens, int32From, "maxTokens"),
      pattern: options.pattern ?? "",
      maxCandidates: given(options.maxCandidates, int32From, "maxCandidates"),
      omitValues: options.omitValues ?? false,
      decideBy: decidedByFrom(options.decideBy),
      explain: options.explain ?? false,
    };
    return relevanceTo(await this.transport.unary(method.checkRelevance, request, options));
  }

  /**
   * Decides whether a tool's result is worth keeping, and under which key; saves it on request.
   *
   * @param toolName - the tool that was called
   * @param result - the result, any JSON value of at most 1 MiB
   * @throws FailedPreconditionError - `decideBy` is "llm" and the server has no model (LLM_REQUIRED)
   * @throws UnavailableError - `decideBy` is "llm" and the model failed (LLM_UNAVAILABLE); nothing was written
   */
  async evaluateForStorage(
    toolName: string,
    result: JsonValue,
    options: EvaluateForStorageOptions = {},
  ): Promise<StorageDecision> {
    const request = {
      namespace: this.boundTo,
      toolName,
      result: valueFrom(result, "result"),
      goal: options.goal ?? "",
      save: options.save ?? false,
      arguments: given(options.arguments, objectFrom, "arguments"),
      isError: options.isError ?? false,
      key: options.key ?? "",
      overwrite: options.overwrite ?? false,
      ttl: given(options.ttlMs, durationFrom, "ttlMs"),
      decideBy: decidedByFrom(options.decideBy),
      requestId: requestIdOf(options),
    };
    return storageDecisionTo(await this.transport.unary(method.evaluateForStorage, request, options));
  }
}
