/** What a call removed. */
export interface Removed {
  /** Number of removed items. */
  readonly itemCount: number;
  /** Number of removed state keys. */
  readonly stateCount: number;
  /** Revision of the namespace afterwards. 0: it no longer exists. */
  readonly revision: number;
}
