// The methods of a client that ask what of the state a goal needs, and what is worth saving.

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

/** Which state is looked at, and how much of it is wanted. */
export interface CheckRelevanceOptions extends CallOptions {
  /** The most entries wanted, at most 100. Undefined: 10. 0: only decisions. */
  readonly limit?: number | undefined;
  /** What the values may take together, estimated. Undefined: 2000. -1: no bound. */
  readonly maxTokens?: number | undefined;
  /** A glob that the keys match, such as "plan/*". Undefined or empty: all keys. */
  readonly pattern?: string | undefined;
  /** The most keys to be decided on, at most 200. Undefined: 50. */
  readonly maxCandidates?: number | undefined;
  /** Leave the values out, and `contextText` empty. */
  readonly omitValues?: boolean | undefined;
  /** Who is to decide. Undefined: the language model if it can, else rules. */
  readonly decideBy?: DecidedBy | undefined;
  /** Add to each decision how its score came about. */
  readonly explain?: boolean | undefined;
}

/** What is known of a tool's call, and how its result is saved. */
export interface EvaluateForStorageOptions extends WriteOptions {
  /** What the tool was called for. */
  readonly goal?: string | undefined;
  /** Save the result if that is what is decided. Otherwise the decision is only told. */
  readonly save?: boolean | undefined;
  /** What the tool was called with. */
  readonly arguments?: JsonObject | undefined;
  /** The tool failed; such a result is never kept. */
  readonly isError?: boolean | undefined;
  /** To save under. Undefined or empty: the overseer names one. */
  readonly key?: string | undefined;
  /** Replace the value of a key that exists. Such a key is left alone otherwise. */
  readonly overwrite?: boolean | undefined;
  /** How long a saved entry lives, in milliseconds. Undefined: until it is deleted. */
  readonly ttlMs?: number | undefined;
  /** Who is to decide. Undefined: the language model if it can, else rules. */
  readonly decideBy?: DecidedBy | undefined;
}

/** Decisions on the state of the client's namespace: by a language model, or else by rules. */
export abstract class OverseerMethods extends Bound {
  /**
   * Returns the state that a goal needs, with its values.
   *
   * @param goal - what the agent is about to work on, in plain words, at most 16 KiB
   * @throws FailedPreconditionError - `decideBy` is "llm" and the server has none (LLM_REQUIRED)
   * @throws UnavailableError - `decideBy` is "llm" and it failed (LLM_UNAVAILABLE)
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
   * Decides whether a tool's result is worth keeping, and under which key; saves it if asked to.
   *
   * @param toolName - the tool that was called
   * @param result - what it returned, any JSON value of at most 1 MiB
   * @throws FailedPreconditionError - `decideBy` is "llm" and the server has none (LLM_REQUIRED)
   * @throws UnavailableError - `decideBy` is "llm" and it failed (LLM_UNAVAILABLE); nothing was written
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
