"""Between records and views: how views read records, and how they learn of commits.

An item is named by its position. A vector is named by its *key*, an integer above 0 that no other vector of
the namespace ever has; views keep it, compare it, and know no more of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from memory_service.data_model import Item, LabelKey, NamespaceInfo
from memory_service.indexes.value_column import Value
from memory_service.predicates import Field
from memory_service.records.effects import Effect

T = TypeVar("T")
Positions = NDArray[np.int64]


@dataclass(slots=True)
class RowBatch:
    """Some items as columns. Each has a value for each of them, in the same order."""

    positions: Positions
    sessions: Sequence[str]
    create_us: NDArray[np.int64]
    expire_us: NDArray[np.int64]
    """NEVER_US where it does not expire."""
    labels: dict[int, dict[LabelKey, str]]
    """Of those that have some, by place: labels and tags as `index_labels` puts them together."""
    kinds: NDArray[np.int8]
    vector_keys: NDArray[np.int64]
    """0: it has no vector, or waits for one."""
    terms: Sequence[bytes]
    """As `pack_terms` packs them."""
    importances: NDArray[np.float64]
    """UNSET_IMPORTANCE where none was given."""
    use_counts: NDArray[np.int32]


class Rows(ABC):
    """The rows of a namespace at the revision that `info` has, whatever is written meanwhile.

    For one thread, and until the work that was given it ends. What yields batches reads while it is gone
    through, some thousand rows at a time: a million of them as objects take ten times the room of a view.
    Everything raises Unavailable where the records cannot be read.
    """

    info: NamespaceInfo

    @abstractmethod
    def above(self, position: int) -> Iterator[RowBatch]:
        """Yield the items at positions above this one, ascending; above 0 are all."""

    @abstractmethod
    def of_ids(self, ids: Collection[str], up_to: int) -> Iterator[RowBatch]:
        """Yield those of these items that there are at positions not above `up_to`, in any order."""

    @abstractmethod
    def changes(self, since: int) -> list[tuple[int, str]]:
        """Return type and subject of each change above this revision, as the change log has them.

        There are fewer than revisions where some are not kept any more.
        """

    @abstractmethod
    def positions(self) -> Positions:
        """Return the positions of all items, in any order."""

    @abstractmethod
    def uses(self) -> tuple[Positions, NDArray[np.int64]]:
        """Return the positions of the items that were used, in any order, and how often each was."""

    @abstractmethod
    def vector_keys(self, positions: Sequence[int]) -> NDArray[np.int64]:
        """Return the keys of the vectors of these items, 0 for one that has none, or is not there."""

    @abstractmethod
    def vectors(self, positions: Sequence[int]) -> Iterator[NDArray[np.float32]]:
        """Yield the vectors of these items, as they were written, in batches of shape (n, info.dimension).

        The positions ascend, and each item has a vector; the vectors come in their order.
        """

    @abstractmethod
    def values(self, fields: Sequence[Field]) -> Iterator[tuple[Positions, list[list[Value]]]]:
        """Yield positions of items, ascending, and for each field their values.

        A value is what `value_columns.reader` gets out of the item.
        """

    @abstractmethod
    def manifest(self) -> str | None:
        """Return the manifest that was last recorded for this namespace and is still true of its vectors."""


class Follower:
    """What keeps something up to date with the records; here it keeps nothing.

    Called on the event loop, in the order of commits, when what was committed becomes visible to reads.
    """

    def begin(self, info: NamespaceInfo, *, emptied: bool) -> None:
        """Note that a namespace has begun, or was emptied."""

    def end(self, namespace: str, uid: int) -> None:
        """Note that a namespace was deleted."""

    def publish(self, namespace: str, effect: Effect) -> None:
        """Note what a commit did to items."""

    async def absorb(self, namespace: str) -> None:
        """Do what the last, large commit has left to do, in parts: short calls of others come between."""

    async def save_again(self, uids: set[int]) -> set[int]:
        """Write anew the files that may have something of what was deleted in these namespaces.

        Returns of which they were written; those of the others are to be removed.
        """
        return set()

    def remove_files(self, uids: set[int]) -> None:
        """Remove the files of these namespaces."""


class RowSource(ABC):
    """Where views read what they are made of. For the event loop."""

    records_format: ClassVar[int]
    """Of the rows. Snapshots of rows of another format are not used."""

    @abstractmethod
    async def read_rows(self, namespace: str, work: Callable[[Rows], T]) -> T | None:
        """Return what the work returns, which is done in another thread; None: there is no such namespace.

        The rows reflect all that was acknowledged when this was called. Whatever of them was published late
        is published when this returns, so that nobody reads something older then. Raises what the work
        raises, and Unavailable.
        """

    @abstractmethod
    async def keep_manifest(self, uid: int, manifest: str) -> bool:
        """Keep the manifest of a snapshot in the place of the one before; False: its namespace is gone.

        It is lost when the namespace is emptied, or its vectors are given up. Raises Unavailable and
        StorageFull.
        """


class FollowedSource(RowSource):
    """One that also tells what is committed, and gives items."""

    @abstractmethod
    def follow(self, follower: Follower) -> None:
        """Tell a follower of each commit from now on; in the place of the one before."""

    @abstractmethod
    async def load_items(
        self, info: NamespaceInfo, positions: Sequence[int], *, with_embedding: bool
    ) -> list[Item | None]:
        """Return the items at these positions, in their order; None where there is none any more, or the
        namespace is not the one of `info` any more.

        As new as the last commit that was published. Items are shared: callers must not change them, but for
        `wire`.
        """

    @abstractmethod
    async def manifests(self) -> list[str]:
        """Return the manifests that are kept of all namespaces."""
