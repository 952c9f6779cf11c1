// What is searched, by how far it is trusted.

import type { SourceKind } from "./items.js";

/** How far, and from where, what is searched has to be trusted. */
export interface TrustFilter {
  /** Only what is trusted at least this much, 0 to 1. */
  readonly minTrust?: number | undefined;
  /** Only what comes from one of these. Undefined or empty: from any. */
  readonly sources?: readonly SourceKind[] | undefined;
}
