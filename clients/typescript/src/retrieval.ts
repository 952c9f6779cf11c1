// Conversions of retrievals and their results to protobuf messages and back.

import type { MessageInitShape } from "@bufbuild/protobuf";

import { itemTo, kindFrom, modeFrom } from "./convert.js";
import { explanationTo, foundOf } from "./found.js";
import type {
  RetrieveOptionsSchema,
  RetrieveResponse,
  RetrieveResult,
  ScoreWeightsSchema,
} from "./gen/memory_service/v1/memory_pb.js";
import { RetrieveMode as Modes } from "./gen/memory_service/v1/memory_pb.js";
import type { ItemFilter, Result, Results, RetrieveOptions, ScoreWeights } from "./memory-options.js";
import { trustFrom } from "./provenance.js";
import { given } from "./requests.js";
import { durationFrom, int32From, timestampFrom, vectorFrom } from "./values.js";
import type { DeleteCondition } from "./write-operations.js";

/** Converts the conditions of retrievals, lists and deletions. */
export function conditionFrom(condition: DeleteCondition) {
  const { sessionId = "", labels = {}, kinds = [], filter = "" } = condition;
  return {
    sessionId,
    labels: { ...labels },
    startTime: given(condition.startTime, timestampFrom, "startTime"),
    endTime: given(condition.endTime, timestampFrom, "endTime"),
    kinds: kinds.map((kind, index) => kindFrom(kind, `kinds[${index}]`)),
    filter,
  };
}

/** Converts the filters of retrievals and lists. */
export function filterFrom(filter: ItemFilter) {
  const { includeEmbedding = false, orderBy = "", skip = 0 } = filter;
  const fields = { includeEmbedding, orderBy, skip: int32From(skip, "skip") };
  return { ...conditionFrom(filter), ...trustFrom(filter), ...fields };
}

/** Converts the options of a retrieval, for its first page. */
export function retrievalFrom(
  query: string,
  options: RetrieveOptions,
): MessageInitShape<typeof RetrieveOptionsSchema> & object {
  return {
    ...filterFrom(options),
    limit: given(options.limit, int32From, "limit"),
    queryText: query,
    queryEmbedding: given(options.embedding, vectorFrom, "embedding"),
    minScore: options.minScore,
    mode: given(options.mode, modeFrom, "mode") ?? Modes.UNSPECIFIED,
    now: given(options.now, timestampFrom, "now"),
    weights: given(options.weights, weightsFrom, "weights"),
    contextWindow: int32From(options.contextWindow ?? 0, "contextWindow"),
    maxTokens: given(options.maxTokens, int32From, "maxTokens"),
    rerank: options.rerank ?? false,
    recordUsage: options.recordUsage ?? false,
    explain: options.explain ?? false,
    pageSize: int32From(options.pageSize ?? 0, "pageSize"),
    queries: [...(options.queries ?? [])],
    minRelevance: options.minRelevance,
    neighbourWeight: options.neighbourWeight,
    refreshTtl: options.refreshTtl ?? false,
    wholeExchanges: options.wholeExchanges ?? false,
    timeZone: options.timeZone ?? "",
  };
}

function weightsFrom(weights: ScoreWeights, where: string): MessageInitShape<typeof ScoreWeightsSchema> {
  const { lexical, vector, recency = 0, recencyHalfLifeMs, importance = 0, usage = 0 } = weights;
  const recencyHalfLife = given(recencyHalfLifeMs, durationFrom, `${where}.recencyHalfLifeMs`);
  return { lexical, vector, recency, recencyHalfLife, importance, usage };
}

/** Joins the pages of a retrieval. */
export async function resultsOf(pages: AsyncIterable<RetrieveResponse>): Promise<Results> {
  let tokenCount = 0;
  const found = await foundOf(pages, (page) => {
    tokenCount += page.tokenCount;
    return page.results.map(resultTo);
  });
  return Object.assign(found, { tokenCount });
}

function resultTo(result: RetrieveResult): Result {
  const item = itemTo(result.item);
  return {
    item,
    score: result.score,
    explanation: explanationTo(result.explanation),
    before: result.before.map((neighbour) => itemTo(neighbour)),
    after: result.after.map((neighbour) => itemTo(neighbour)),
    relevance: result.relevance,
    namespace: result.namespace,
    matchedQueries: [...result.matchedQueries],
    text: item.text,
  };
}
