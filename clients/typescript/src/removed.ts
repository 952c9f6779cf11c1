/** What a reset, a clearing or the removal of a namespace took away. */
export interface Removed {
  /** How many items were removed. */
  readonly itemCount: number;
  /** How many state keys were removed. */
  readonly stateCount: number;
  /** Revision of the namespace afterwards. 0: the namespace is gone. */
  readonly revision: number;
}
