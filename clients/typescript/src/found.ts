// What a search found: an array, and what is known about the whole of it.

import type { Degradation } from "./degradation.js";
import { degradedTo } from "./degradation.js";
import type * as pb from "./gen/memory_service/v1/memory_pb.js";

/** Entries of an answer, all its pages together. */
export interface Found<T> extends ReadonlyArray<T> {
  /** What the server could not do for this answer. Empty: nothing. */
  readonly degraded: readonly Degradation[];
  /** Revision of the namespace that the answer reflects. */
  readonly revision: number;
}

/** The share of one channel in a score. */
export interface Contribution {
  /**
   * "vector", "lexical", "recency", "importance", "usage", "reranker", or a boost: "speaker", "time" or "phrase"
   * for what the query names or quotes.
   */
  readonly channel: string;
  /**
   * Cosine similarity, BM25, 0 to 1 for recency, importance and usage, the reranker's own, or of a boost the
   * score without boosts.
   */
  readonly rawScore: number;
  /** What the scaled score is multiplied by. */
  readonly weight: number;
  /** What the raw score is divided by. */
  readonly scale: number;
  /** The share: rawScore / scale * weight. */
  readonly contribution: number;
}

/**
 * A page of an answer, as far as the whole answer needs it.
 *
 * @internal
 */
interface Page {
  readonly degraded?: readonly pb.Degradation[];
  readonly revision: bigint;
}

/**
 * Joins the pages of an answer; what is known beside the entries is that of the first.
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
