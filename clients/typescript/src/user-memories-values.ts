// Conversions of a user's memories to their protobuf messages and back.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";

import { decidedByTo, decisionTo } from "./decisions.js";
import type {
  Consolidation as ProtoConsolidation,
  ConsolidateMemoriesResponse,
  ExtractedMemory as ProtoExtracted,
  ExtractMemoriesResponse,
  GetPreloadedMemoriesResponse,
  Importance as ProtoImportance,
  MemoryResult as ProtoResult,
  MemorySource as ProtoSource,
  SaveMemoryResponse,
  UpdateMemoryResponse,
  UserMemory as ProtoMemory,
} from "./gen/memory_service/v1/user_memory_pb.js";
import {
  ConsolidationAction as Actions,
  ImportanceSchema,
  MemoryCategory as Categories,
  MemoryOrigin as Origins,
  MemoryOutcome as Outcomes,
  MemorySourceSchema,
  MemoryStatus as Statuses,
  OnContradiction as Contradictions,
  UserMemorySchema,
} from "./gen/memory_service/v1/user_memory_pb.js";
import { explanationTo } from "./found.js";
import { provenanceTo } from "./provenance.js";
import { given } from "./requests.js";
import type {
  Consolidation,
  Consolidations,
  ExtractedMemory,
  Extraction,
  Importance,
  MemoryCategory,
  MemoryResult,
  MemorySource,
  MemorySourceInput,
  OnContradiction,
  PreloadedMemories,
  SavedMemory,
  UpdatedMemory,
  UserMemory,
} from "./user-memories-model.js";
import type { MemoryChanges } from "./user-memories-options.js";
import {
  durationFrom,
  enumFrom,
  enumTo,
  objectFrom,
  objectTo,
  optionalTimeTo,
  timestampFrom,
} from "./values.js";

type MemoryInit = MessageInitShape<typeof UserMemorySchema>;

/** Returns the number of a category; `where` names it in errors. */
export function categoryFrom(category: MemoryCategory, where: string): Categories {
  return enumFrom(Categories, category, where);
}

/** Returns the numbers of categories. */
export function categoriesFrom(categories: readonly MemoryCategory[] = []): Categories[] {
  return categories.map((category, index) => categoryFrom(category, `categories[${index}]`));
}

/** Returns the number of a way to handle a contradiction. */
export function onContradictionFrom(value: OnContradiction | "unspecified" = "unspecified"): Contradictions {
  return enumFrom(Contradictions, value, "onContradiction");
}

/** Converts the fields of a source that a caller sets. */
export function sourceFrom(source: MemorySourceInput): MessageInitShape<typeof MemorySourceSchema> {
  const { sessionId = "", itemIds = [], quote = "", actor = "" } = source;
  return { sessionId, itemIds: [...itemIds], quote, actor };
}

function sourceTo(source: ProtoSource): MemorySource {
  return {
    sessionId: source.sessionId,
    itemIds: source.itemIds,
    quote: source.quote,
    actor: source.actor,
    origin: enumTo(Origins, source.origin),
    memoryIds: source.memoryIds,
    model: source.model,
  };
}

function importanceTo(importance: ProtoImportance): Importance {
  return {
    base: importance.base,
    boosts: importance.boosts.map(({ name, amount, reason }) => ({ name, amount, reason })),
    reductions: importance.reductions.map(({ name, amount, reason }) => ({ name, amount, reason })),
    score: importance.score,
    decayFactor: importance.decayFactor,
    currentScore: importance.currentScore,
    decidedBy: decidedByTo(importance.decidedBy),
  };
}

/** Converts to a memory. */
export function memoryTo(memory: ProtoMemory | undefined): UserMemory {
  const proto = memory ?? create(UserMemorySchema);
  return {
    id: proto.id,
    content: proto.content,
    category: enumTo(Categories, proto.category),
    reasoning: proto.reasoning,
    importance: importanceTo(proto.importance ?? create(ImportanceSchema)),
    version: Number(proto.version),
    status: enumTo(Statuses, proto.status),
    validFromTime: optionalTimeTo(proto.validFromTime),
    validUntilTime: optionalTimeTo(proto.validUntilTime),
    supersededBy: proto.supersededBy,
    supersedes: proto.supersedes,
    originalContent: proto.originalContent,
    source: sourceTo(proto.source ?? create(MemorySourceSchema)),
    createTime: optionalTimeTo(proto.createTime),
    updateTime: optionalTimeTo(proto.updateTime),
    expireTime: optionalTimeTo(proto.expireTime),
    labels: proto.labels,
    metadata: objectTo(proto.metadata),
    revision: Number(proto.revision),
    provenance: provenanceTo(proto.provenance),
  };
}

function optionalMemoryTo(memory: ProtoMemory | undefined): UserMemory | undefined {
  return memory && memoryTo(memory);
}

/**
 * Converts the corrections of a memory; `paths` names their fields. A null field is named but not set, so that
 * the server clears it.
 */
export function changesFrom(changes: MemoryChanges): { memory: MemoryInit; paths: string[] } {
  const { content, category, reasoning, importance, ttlMs, labels, metadata } = changes;
  const { validFromTime, validUntilTime, expireTime } = changes;
  const fields = { content, category, reasoning, importance, validFromTime, validUntilTime, expireTime };
  const all = { ...fields, ttl: ttlMs, labels, metadata };
  const memory = {
    content: content ?? "",
    category: categoryFrom(category ?? "unspecified", "category"),
    reasoning: reasoning ?? "",
    importance: importance === undefined ? undefined : { score: importance },
    validFromTime: given(validFromTime, timestampFrom, "validFromTime"),
    validUntilTime: given(validUntilTime ?? undefined, timestampFrom, "validUntilTime"),
    expireTime: given(expireTime ?? undefined, timestampFrom, "expireTime"),
    ttl: given(ttlMs, durationFrom, "ttlMs"),
    labels: labels ?? {},
    metadata: given(metadata, objectFrom, "metadata"),
  };
  const names = Object.entries(all).filter(([, value]) => value !== undefined);
  return { memory, paths: names.map(([name]) => snakeCase(name)) };
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Converts one memory found. */
export function memoryResultTo({ memory, score, explanation }: ProtoResult): MemoryResult {
  return { memory: memoryTo(memory), score, explanation: explanationTo(explanation) };
}

/** Converts the response of SaveMemory. */
export function savedTo(response: SaveMemoryResponse): SavedMemory {
  return {
    ...decisionTo(response),
    outcome: enumTo(Outcomes, response.outcome),
    memory: optionalMemoryTo(response.memory),
    existing: optionalMemoryTo(response.existing),
    superseded: response.superseded.map(memoryTo),
    message: response.message,
    similarity: response.similarity,
    duplicateThreshold: response.duplicateThreshold,
    reason: response.reason,
    rephrasedBy: decidedByTo(response.rephrasedBy),
  };
}

/** Converts the response of UpdateMemory. */
export function updatedTo(response: UpdateMemoryResponse): UpdatedMemory {
  return {
    ...decisionTo(response),
    outcome: enumTo(Outcomes, response.outcome),
    memory: memoryTo(response.memory),
    existing: optionalMemoryTo(response.existing),
    rephrasedBy: decidedByTo(response.rephrasedBy),
  };
}

/** Converts the response of GetPreloadedMemories. */
export function preloadedTo(response: GetPreloadedMemoriesResponse): PreloadedMemories {
  return {
    memories: response.memories.map(memoryTo),
    text: response.text,
    tokenCount: response.tokenCount,
    omittedCount: Number(response.omittedCount),
    revision: Number(response.revision),
    unchanged: response.unchanged,
  };
}

/** Converts the response of ExtractMemories. */
export function extractionTo(response: ExtractMemoriesResponse): Extraction {
  return {
    ...decisionTo(response),
    results: response.results.map(extractedTo),
    reason: response.reason,
    examinedCount: response.examinedCount,
    examinedRevision: Number(response.examinedRevision),
    more: response.more,
  };
}

function extractedTo(extracted: ProtoExtracted): ExtractedMemory {
  return {
    outcome: enumTo(Outcomes, extracted.outcome),
    memory: memoryTo(extracted.memory),
    existing: optionalMemoryTo(extracted.existing),
    superseded: extracted.superseded.map(memoryTo),
    similarity: extracted.similarity,
    decidedBy: decidedByTo(extracted.decidedBy),
    reason: extracted.reason,
    confidence: extracted.confidence,
  };
}

/** Converts the response of ConsolidateMemories. */
export function consolidationsTo(response: ConsolidateMemoriesResponse): Consolidations {
  return {
    ...decisionTo(response),
    consolidations: response.consolidations.map(consolidationTo),
    reason: response.reason,
    examinedCount: Number(response.examinedCount),
    more: response.more,
  };
}

function consolidationTo(consolidation: ProtoConsolidation): Consolidation {
  return {
    action: enumTo(Actions, consolidation.action),
    sources: consolidation.sources.map(memoryTo),
    memory: optionalMemoryTo(consolidation.memory),
    applied: consolidation.applied,
    similarity: consolidation.similarity,
    decidedBy: decidedByTo(consolidation.decidedBy),
    reason: consolidation.reason,
  };
}
