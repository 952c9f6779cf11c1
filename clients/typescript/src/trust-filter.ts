// Filters by trust and source.

import type { SourceKind } from "./items.js";

/** The least trust and the sources of results. */
export interface TrustFilter {
  /** Only results that are trusted at least this much, 0 to 1. */
  readonly minTrust?: number | undefined;
  /** Only results from these sources. Undefined or empty: from any. */
  readonly sources?: readonly SourceKind[] | undefined;
}
