// The client's methods for messages to an agent, its responses and its reflections.

import { Bound } from "./bound.js";
import { modeFrom } from "./convert.js";
import type { Found } from "./found.js";
import { foundOf } from "./found.js";
import { InteractionService } from "./gen/memory_service/v1/interaction_pb.js";
import { RetrieveMode as Modes } from "./gen/memory_service/v1/memory_pb.js";
import type {
  InteractionPair,
  OriginalMessageInput,
  RelevantContext,
  StoredInteraction,
} from "./interactions-model.js";
import { contextTo, originalFrom, pairTo, storedTo } from "./interactions-model.js";
import type { JsonObject } from "./json.js";
import type { RetrieveMode } from "./memory-options.js";
import type { CallOptions, WriteOptions } from "./options.js";
import type { TrustFilter } from "./trust-filter.js";
import { trustFrom } from "./provenance.js";
import { given, requestIdOf, withToken } from "./requests.js";
import type { TimeInput } from "./times.js";
import { durationFrom, int32From, objectFrom, timestampFrom } from "./values.js";

const method = InteractionService.method;

/** How a message, a response or a reflection is stored. */
export interface StoreInteractionOptions extends WriteOptions {
  /** The conversation that it belongs to. For a response, undefined or empty: that of its message. */
  readonly sessionId?: string | undefined;
  /** When it was said. Undefined: now. */
  readonly createTime?: TimeInput | undefined;
  /** For exact matching, as in { topic: "travel" }. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** JSON values to keep with it. */
  readonly metadata?: JsonObject | undefined;
  /** Milliseconds until it expires. Undefined: it never does. */
  readonly ttlMs?: number | undefined;
  /** Id of the item. Undefined or empty: the server makes one. */
  readonly id?: string | undefined;
}

/** How a response is stored, and what it answers. */
export interface StoreResponseOptions extends StoreInteractionOptions {
  /** The id of the message that it answers. Undefined or empty: see `originalMessage`. */
  readonly inResponseTo?: string | undefined;
  /**
   * Contents of that message, for callers without its id: the newest message with these contents is linked. If
   * both are missing, the response is not linked.
   */
  readonly originalMessage?: OriginalMessageInput | undefined;
  /**
   * Store the response even if its message does not exist yet. Reads link it to the message with that id, or to
   * the first with these contents that is stored later.
   */
  readonly allowMissing?: boolean | undefined;
  /** The agent that answers. Undefined or empty: "system". */
  readonly sender?: string | undefined;
}

/** How a reflection is stored. */
export interface StoreReflectionOptions extends StoreInteractionOptions {
  /** The interactions that it is about, at most 100. They need not exist. */
  readonly interactionIds?: readonly string[] | undefined;
  /** The agent that reflects. Undefined or empty: "system". */
  readonly sender?: string | undefined;
}

/** Which interactions are read. */
export interface InteractionFilter extends TrustFilter {
  /** Only interactions of this conversation, and reflections without one. */
  readonly sessionId?: string | undefined;
  /** Only messages of this sender, with the responses to them. */
  readonly sender?: string | undefined;
  /** Only interactions that have all these labels. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Only interactions whose `createTime` is at or after it. */
  readonly startTime?: TimeInput | undefined;
  /** Only interactions whose `createTime` is before it. */
  readonly endTime?: TimeInput | undefined;
}

/** How context is searched. */
export interface RelevantContextOptions extends CallOptions, InteractionFilter {
  /** Maximum number of messages and responses, up to 100. Undefined: 5. */
  readonly interactionLimit?: number | undefined;
  /** Maximum number of reflections, up to 100. Undefined: 2. */
  readonly reflectionLimit?: number | undefined;
  /** Ids to omit, such as the new message's if it is already stored. At most 100. */
  readonly excludeIds?: readonly string[] | undefined;
  /** Only results that score at least this. */
  readonly minScore?: number | undefined;
  /** How the query is matched. Undefined: by words and vectors together. */
  readonly mode?: RetrieveMode | undefined;
  /** Maximum estimated tokens of all texts together. Undefined: no limit. */
  readonly maxTokens?: number | undefined;
  /** Explain the score of each result. */
  readonly explain?: boolean | undefined;
}

/** How the last messages are read. */
export interface LastInteractionsOptions extends CallOptions, InteractionFilter {
  /** Maximum number of messages. Undefined: 5. -1: all. */
  readonly limit?: number | undefined;
  /** Number of messages to fetch at a time. Undefined: as many as fit in a response. */
  readonly pageSize?: number | undefined;
}

/** Methods for messages to an agent, its responses and its reflections, which are items. */
export abstract class InteractionMethods extends Bound {
  /**
   * Writes a message to the agent.
   *
   * @param sender - the sender, such as a user's id
   * @param content - the text of the message, at most 64 KiB
   * @returns the message as written
   * @throws AlreadyExistsError - an item with this id exists
   */
  async storeInteraction(
    sender: string,
    content: string,
    options: StoreInteractionOptions = {},
  ): Promise<StoredInteraction> {
    const request = { ...commonFields(this.boundTo, content, options), sender };
    return storedTo(await this.transport.unary(method.storeInteraction, request, options));
  }

  /**
   * Writes a response of the agent, linked to the message that it answers.
   *
   * @param content - the text of the response, at most 64 KiB
   * @returns the response as written
   * @throws NotFoundError - there is no such message, and `allowMissing` is not set
   * @throws AlreadyExistsError - an item with this id exists
   */
  async storeResponse(content: string, options: StoreResponseOptions = {}): Promise<StoredInteraction> {
    const request = {
      ...commonFields(this.boundTo, content, options),
      inResponseTo: options.inResponseTo ?? "",
      allowMissing: options.allowMissing ?? false,
      originalMessage: given(options.originalMessage, originalFrom, "originalMessage"),
      sender: options.sender ?? "",
    };
    return storedTo(await this.transport.unary(method.storeResponse, request, options));
  }

  /**
   * Writes a thought of the agent about its own actions.
   *
   * @param content - the text of the reflection, at most 64 KiB
   * @returns the reflection as written
   * @throws AlreadyExistsError - an item with this id exists
   */
  async storeReflection(content: string, options: StoreReflectionOptions = {}): Promise<StoredInteraction> {
    const request = {
      ...commonFields(this.boundTo, content, options),
      interactionIds: [...(options.interactionIds ?? [])],
      sender: options.sender ?? "",
    };
    return storedTo(await this.transport.unary(method.storeReflection, request, options));
  }

  /**
   * Returns the messages and responses that match a text best, then the reflections that do.
   *
   * @param query - usually the new message, at most 64 KiB
   */
  async retrieveRelevantContext(
    query: string,
    options: RelevantContextOptions = {},
  ): Promise<RelevantContext> {
    const request = {
      ...filterFields(options),
      namespace: this.boundTo,
      query,
      interactionLimit: given(options.interactionLimit, int32From, "interactionLimit"),
      reflectionLimit: given(options.reflectionLimit, int32From, "reflectionLimit"),
      excludeIds: [...(options.excludeIds ?? [])],
      minScore: options.minScore,
      mode: given(options.mode, modeFrom, "mode") ?? Modes.UNSPECIFIED,
      maxTokens: given(options.maxTokens, int32From, "maxTokens"),
      explain: options.explain ?? false,
    };
    return contextTo(await this.transport.unary(method.retrieveRelevantContext, request, options));
  }

  /** Returns the newest messages, newest first, each with its responses. */
  async retrieveLastInteractions(options: LastInteractionsOptions = {}): Promise<Found<InteractionPair>> {
    const request = {
      ...filterFields(options),
      namespace: this.boundTo,
      limit: given(options.limit, int32From, "limit"),
      pageSize: int32From(options.pageSize ?? 0, "pageSize"),
    };
    const pages = this.transport.pages(method.retrieveLastInteractions, withToken(request), options);
    return foundOf(pages, (page) => page.interactions.map(pairTo));
  }
}

/** The fields common to messages, responses and reflections. */
function commonFields(namespace: string, content: string, options: StoreInteractionOptions) {
  return {
    namespace,
    content,
    createTime: given(options.createTime, timestampFrom, "createTime"),
    sessionId: options.sessionId ?? "",
    id: options.id ?? "",
    labels: options.labels ?? {},
    metadata: given(options.metadata, objectFrom, "metadata"),
    ttl: given(options.ttlMs, durationFrom, "ttlMs"),
    requestId: requestIdOf(options),
  };
}

function filterFields(filter: InteractionFilter) {
  return {
    sessionId: filter.sessionId ?? "",
    sender: filter.sender ?? "",
    labels: filter.labels ?? {},
    startTime: given(filter.startTime, timestampFrom, "startTime"),
    endTime: given(filter.endTime, timestampFrom, "endTime"),
    ...trustFrom(filter),
  };
}
