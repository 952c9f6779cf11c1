/** What a call removed. */
export interface Removed {
  /** Number of removed items. */
  readonly itemCount: number;
  /** Number of removed state keys. */
  readonly stateCount: number;
  /** Revision of the namespace afterwards. 0: it no longer exists. */
  readonly revision: number;
}

/** A page of a deletion. */
interface DeletedPage {
  readonly deletedCount: bigint;
  readonly derivedCount: bigint;
}

/** Returns the number of items that pages deleted, and reports that of the items that were made only from these. */
export async function deletedIn(
  pages: AsyncIterable<DeletedPage>,
  options: { readonly onDerived?: ((count: number) => void) | undefined },
): Promise<number> {
  let [deleted, derived] = [0, 0];
  for await (const { deletedCount, derivedCount } of pages) {
    deleted += Number(deletedCount);
    derived += Number(derivedCount);
  }
  options.onDerived?.(derived);
  return deleted;
}
