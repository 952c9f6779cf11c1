// The results of a search: an array with facts about the whole answer.

import type { Degradation } from "./degradation.js";
import { degradedTo } from "./degradation.js";
import type * as pb from "./gen/memory_service/v1/memory_pb.js";

/** The entries of all pages of an answer. */
export interface Found<T> extends ReadonlyArray<T> {
  /** What the server could not do for this answer. Empty: it did everything. */
  readonly degraded: readonly Degradation[];
  /** Revision of the namespace that the answer reflects. */
  readonly revision: number;
}

/** The share of one channel in a score. */
export interface Contribution {
  /**
   * "vector", "lexical", "recency", "importance", "usage", "reranker", or a boost for what the query names or
   * quotes: "speaker", "time" or "phrase".
   */
  readonly channel: string;
  /**
   * Cosine similarity, BM25, the reranker's score, or 0 to 1 for recency, importance and usage. For a boost: the
   * score without boosts.
   */
  readonly rawScore: number;
  /** The factor of the scaled score. */
  readonly weight: number;
  /** The divisor of the raw score. */
  readonly scale: number;
  /** The share: rawScore / scale * weight. */
  readonly contribution: number;
}

/**
 * The parts of a page that the whole answer needs.
 *
 * @internal
 */
interface Page {
  readonly degraded?: readonly pb.Degradation[];
  readonly revision: bigint;
}

/**
 * Joins the pages of an answer; facts besides the entries come from the first.
 *
 * @internal
 */
export async function foundOf<P extends Page, T>(
  pages: AsyncIterable<P>,
  entriesOf: (page: P) => readonly T[],
): Promise<Found<T>> {
  let first: Page | undefined;
  const entries: T[] = [];
  for await (const page of pages) {
    first ??= page;
    for (const entry of entriesOf(page)) {
      entries.push(entry);
    }
  }
  const known = { degraded: degradedTo(first?.degraded ?? []), revision: Number(first?.revision ?? 0) };
  return Object.assign(entries, known);
}

/** @internal */
export function explanationTo(
  explanation: { readonly contributions: readonly pb.Contribution[] } | undefined,
): readonly Contribution[] {
  return (explanation?.contributions ?? []).map(({ channel, rawScore, weight, scale, contribution }) => ({
    channel,
    rawScore,
    weight,
    scale,
    contribution,
  }));
}
