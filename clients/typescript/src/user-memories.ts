// The client's methods for facts about a user.

import { Bound } from "./bound.js";
import { messageFrom, modeFrom } from "./convert.js";
import { decidedByFrom } from "./decisions.js";
import type { Found } from "./found.js";
import { foundOf } from "./found.js";
import { RetrieveMode as Modes } from "./gen/memory_service/v1/memory_pb.js";
import { UserMemoryService } from "./gen/memory_service/v1/user_memory_pb.js";
import { within } from "./invalid.js";
import { trustFrom } from "./provenance.js";
import { given, requestIdOf, withToken } from "./requests.js";
import type {
  Consolidations,
  Extraction,
  MemoryCategory,
  MemoryResult,
  PreloadedMemories,
  RemovedMemories,
  SavedMemory,
  UpdatedMemory,
  UserMemory,
} from "./user-memories-model.js";
import type {
  ConsolidateMemoriesOptions,
  DeleteMemoryOptions,
  ExtractMemoriesOptions,
  ListMemoriesOptions,
  MemoryChanges,
  PreloadOptions,
  SaveMemoryOptions,
  SearchMemoriesOptions,
  UpdateMemoryOptions,
} from "./user-memories-options.js";
import {
  categoriesFrom,
  categoryFrom,
  changesFrom,
  consolidationsTo,
  extractionTo,
  memoryResultTo,
  memoryTo,
  onContradictionFrom,
  preloadedTo,
  savedTo,
  sourceFrom,
  updatedTo,
} from "./user-memories-values.js";
import { durationFrom, eachFrom, int32From, int64From, objectFrom, timestampFrom } from "./values.js";

const method = UserMemoryService.method;

/** Methods for facts about a user: each once, with importance, source and the time when it holds. */
export abstract class UserMemoryMethods extends Bound {
  /**
   * Saves a fact in the third person, unless it is already known.
   *
   * A fact that contradicts a known one replaces it; the history keeps the old one with its end.
   *
   * @param content - the fact, 10 to 500 characters
   * @param category - what it is about, such as "preference"
   * @param reasoning - why it is worth remembering, 10 to 200 characters
   * @throws InvalidArgumentError - a field is missing, too short, too long or malformed
   * @throws FailedPreconditionError - `decideBy` is "llm" and the server has no model (LLM_REQUIRED)
   * @throws UnavailableError - `decideBy` is "llm" and the model failed (LLM_UNAVAILABLE); nothing was written
   */
  async saveMemory(
    content: string,
    category: MemoryCategory,
    reasoning: string,
    options: SaveMemoryOptions = {},
  ): Promise<SavedMemory> {
    const request = {
      namespace: this.boundTo,
      content,
      category: categoryFrom(category, "category"),
      reasoning,
      requestId: requestIdOf(options),
      source: given(options.source, sourceFrom, "source"),
      explicitRequest: options.explicitRequest ?? false,
      onContradiction: onContradictionFrom(options.onContradiction),
      validFromTime: given(options.validFromTime, timestampFrom, "validFromTime"),
      ttl: given(options.ttlMs, durationFrom, "ttlMs"),
      labels: options.labels ?? {},
      metadata: given(options.metadata, objectFrom, "metadata"),
      keepWording: options.keepWording ?? false,
      decideBy: decidedByFrom(options.decideBy),
    };
    return savedTo(await this.transport.unary(method.saveMemory, request, options));
  }

  /**
   * Returns the memories that match a text best, best first.
   *
   * @param query - a text to find memories for, at most 64 KiB
   */
  async searchMemories(query: string, options: SearchMemoriesOptions = {}): Promise<Found<MemoryResult>> {
    const request = {
      namespace: this.boundTo,
      query,
      categories: categoriesFrom(options.categories),
      limit: given(options.limit, int32From, "limit"),
      asOfTime: given(options.asOfTime, timestampFrom, "asOfTime"),
      includeHistory: options.includeHistory ?? false,
      minImportance: options.minImportance,
      labels: options.labels ?? {},
      sessionId: options.sessionId ?? "",
      minScore: options.minScore,
      mode: given(options.mode, modeFrom, "mode") ?? Modes.UNSPECIFIED,
      maxTokens: given(options.maxTokens, int32From, "maxTokens"),
      explain: options.explain ?? false,
      pageSize: int32From(options.pageSize ?? 0, "pageSize"),
      ...trustFrom(options),
    };
    const pages = this.transport.pages(method.searchMemories, withToken(request), options);
    return foundOf(pages, (page) => page.results.map(memoryResultTo));
  }

  /** Yields the memories in the order in which they were saved, page by page. */
  async *listMemories(options: ListMemoriesOptions = {}): AsyncGenerator<UserMemory, void, undefined> {
    const request = {
      namespace: this.boundTo,
      categories: categoriesFrom(options.categories),
      ids: [...(options.ids ?? [])],
      asOfTime: given(options.asOfTime, timestampFrom, "asOfTime"),
      includeHistory: options.includeHistory ?? false,
      minImportance: options.minImportance,
      labels: options.labels ?? {},
      sessionId: options.sessionId ?? "",
      startTime: given(options.startTime, timestampFrom, "startTime"),
      endTime: given(options.endTime, timestampFrom, "endTime"),
      newestFirst: options.newestFirst ?? false,
      pageSize: int32From(options.pageSize ?? 0, "pageSize"),
      ...trustFrom(options),
    };
    for await (const page of this.transport.pages(method.listMemories, withToken(request), options)) {
      yield* page.memories.map(memoryTo);
    }
  }

  /**
   * Corrects the given fields of a memory, for the whole time that it holds.
   *
   * For a change in the world, such as a move to another city, save a new fact instead.
   *
   * @throws NotFoundError - the namespace has no memory with this id
   * @throws ConflictError - the expected version is not the memory's, which is in `metadata.current_version`
   */
  async updateMemory(
    id: string,
    changes: MemoryChanges,
    options: UpdateMemoryOptions = {},
  ): Promise<UpdatedMemory> {
    const { memory, paths } = within("changes", () => changesFrom(changes));
    const request = {
      namespace: this.boundTo,
      memory: { ...memory, id },
      updateMask: { paths },
      expectedVersion: given(options.expectedVersion, int64From, "expectedVersion"),
      requestId: requestIdOf(options),
      keepWording: options.keepWording ?? false,
      decideBy: decidedByFrom(options.decideBy),
    };
    return updatedTo(await this.transport.unary(method.updateMemory, request, options));
  }

  /**
   * Removes a memory, and what was made only from it, from the records and from every index.
   *
   * `includeHistory` also removes the memories that it superseded or was derived from. Otherwise they stay in the
   * history, and none of them holds again.
   *
   * @throws NotFoundError - the namespace has no memory with this id
   * @throws ConflictError - the memory's version is not `expectedVersion`
   */
  async deleteMemory(id: string, options: DeleteMemoryOptions = {}): Promise<RemovedMemories> {
    const request = {
      namespace: this.boundTo,
      id,
      expectedVersion: given(options.expectedVersion, int64From, "expectedVersion"),
      includeHistory: options.includeHistory ?? false,
      keepDerived: options.keepDerived ?? false,
      requestId: requestIdOf(options),
    };
    const response = await this.transport.unary(method.deleteMemory, request, options);
    return {
      count: Number(response.removedCount),
      revision: Number(response.revision),
      derivedCount: Number(response.derivedCount),
    };
  }

  /** Returns the memories that belong in every system prompt, also as a block of text for it. */
  async getPreloadedMemories(options: PreloadOptions = {}): Promise<PreloadedMemories> {
    const request = {
      namespace: this.boundTo,
      maxTokens: given(options.maxTokens, int32From, "maxTokens"),
      categories: categoriesFrom(options.categories),
      limit: given(options.limit, int32From, "limit"),
      minImportance: options.minImportance,
      asOfTime: given(options.asOfTime, timestampFrom, "asOfTime"),
      labels: options.labels ?? {},
      ...trustFrom(options),
      ifNotRevision: given(options.ifNotRevision, int64From, "ifNotRevision"),
    };
    return preloadedTo(await this.transport.unary(method.getPreloadedMemories, request, options));
  }

  /**
   * Finds facts about the user in messages or in the items of a session, and saves them.
   *
   * @throws FailedPreconditionError - `decideBy` is "llm" and the server has no model (LLM_REQUIRED)
   * @throws UnavailableError - `decideBy` is "llm" and the model failed (LLM_UNAVAILABLE); nothing was written
   */
  async extractMemories(options: ExtractMemoriesOptions): Promise<Extraction> {
    const request = {
      namespace: this.boundTo,
      messages: eachFrom(options.messages ?? [], messageFrom, "messages"),
      sessionId: options.sessionId ?? "",
      afterRevision: int64From(options.afterRevision ?? 0, "afterRevision"),
      limit: given(options.limit, int32From, "limit"),
      recalledMemoryIds: [...(options.recalledMemoryIds ?? [])],
      categories: categoriesFrom(options.categories),
      dryRun: options.dryRun ?? false,
      onContradiction: onContradictionFrom(options.onContradiction),
      decideBy: decidedByFrom(options.decideBy),
      actor: options.actor ?? "",
      labels: options.labels ?? {},
      requestId: requestIdOf(options),
    };
    return extractionTo(await this.transport.unary(method.extractMemories, request, options));
  }

  /**
   * Merges memories that say much the same, and ends those that a later one contradicts.
   *
   * @throws FailedPreconditionError - `decideBy` is "llm" and the server has no model (LLM_REQUIRED)
   * @throws UnavailableError - `decideBy` is "llm" and the model failed (LLM_UNAVAILABLE); nothing was written
   */
  async consolidateMemories(options: ConsolidateMemoriesOptions = {}): Promise<Consolidations> {
    const request = {
      namespace: this.boundTo,
      dryRun: options.dryRun ?? false,
      categories: categoriesFrom(options.categories),
      memoryIds: [...(options.memoryIds ?? [])],
      similarityThreshold: options.similarityThreshold,
      limit: given(options.limit, int32From, "limit"),
      decideBy: decidedByFrom(options.decideBy),
      requestId: requestIdOf(options),
    };
    return consolidationsTo(await this.transport.unary(method.consolidateMemories, request, options));
  }
}
