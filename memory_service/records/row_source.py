"""The interface between records and views: how views read rows and learn of commits.

An item is named by its position. A vector is named by its *key*, a positive integer that is never reused
within the namespace; views store and compare keys and attach no other meaning to them.
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
    """Items as columns, which all have the same length and order."""

    positions: Positions
    sessions: Sequence[str]
    create_us: NDArray[np.int64]
    expire_us: NDArray[np.int64]
    """NEVER_US if the item does not expire."""
    labels: dict[int, dict[LabelKey, str]]
    """Labels and tags as combined by `index_labels`, by place; only rows that have some."""
    kinds: NDArray[np.int8]
    vector_keys: NDArray[np.int64]
    """0 if there is no vector, or it is pending."""
    terms: Sequence[bytes]
    """As packed by `pack_terms`."""
    importances: NDArray[np.float64]
    """UNSET_IMPORTANCE if none was given."""
    use_counts: NDArray[np.int32]


class Rows(ABC):
    """The rows of a namespace at the revision in `info`, unaffected by concurrent writes.

    For one thread, and only until the work it was passed to ends. Methods that yield batches read as they are
    iterated, some thousand rows at a time: a million rows as objects would take ten times the memory of a
    view. All methods raise Unavailable if the records cannot be read.
    """

    info: NamespaceInfo

    @abstractmethod
    def above(self, position: int) -> Iterator[RowBatch]:
        """Yield the items at positions above this one, ascending; 0 yields all."""

    @abstractmethod
    def of_ids(self, ids: Collection[str], up_to: int) -> Iterator[RowBatch]:
        """Yield those of these items that exist at positions up to `up_to`, in any order."""

    @abstractmethod
    def changes(self, since: int) -> list[tuple[int, str]]:
        """Return type and subject of each change above this revision, as in the change log.

        There are fewer changes than revisions if some are no longer kept.
        """

    @abstractmethod
    def positions(self) -> Positions:
        """Return the positions of all items, in any order."""

    @abstractmethod
    def uses(self) -> tuple[Positions, NDArray[np.int64]]:
        """Return the positions of the items that were used, in any order, and their use counts."""

    @abstractmethod
    def expiries(self) -> tuple[Positions, NDArray[np.int64]]:
        """Return the positions of the items whose expiry was refreshed, in any order, and their expiry."""

    @abstractmethod
    def vector_keys(self, positions: Sequence[int]) -> NDArray[np.int64]:
        """Return the keys of the vectors of these items; 0 if an item has none or does not exist."""

    @abstractmethod
    def vectors(self, positions: Sequence[int]) -> Iterator[NDArray[np.float32]]:
        """Yield the vectors of these items as they were written, in batches of shape (n, info.dimension).

        Positions must be ascending and each item must have a vector; the vectors are yielded in the same
        order.
        """

    @abstractmethod
    def values(self, fields: Sequence[Field]) -> Iterator[tuple[Positions, list[list[Value]]]]:
        """Yield positions of items, ascending, and for each field their values.

        A value is what `value_columns.reader` reads from the item.
        """

    @abstractmethod
    def manifest(self) -> str | None:
        """Return the last manifest recorded for this namespace, if it still matches its vectors."""


class Follower:
    """Keeps something up to date with the records; this base class does nothing.

    Called on the event loop, in commit order, when a commit becomes visible to reads.
    """

    def begin(self, info: NamespaceInfo, *, emptied: bool) -> None:
        """Note that a namespace was created or emptied."""

    def end(self, namespace: str, uid: int) -> None:
        """Note that a namespace was deleted."""

    def publish(self, namespace: str, effect: Effect) -> None:
        """Note the effect of a commit on items."""

    async def absorb(self, namespace: str) -> None:
        """Finish the work left by the last large commit, in small steps between which short calls run."""

    async def save_again(self, uids: set[int]) -> set[int]:
        """Rewrite the files that may contain data deleted from these namespaces.

        Returns the namespaces whose files were rewritten; the files of the others are to be removed.
        """
        return set()

    def remove_files(self, uids: set[int]) -> None:
        """Remove the files of these namespaces."""


class RowSource(ABC):
    """The source from which views are built. For the event loop."""

    records_format: ClassVar[int]
    """Format of the rows. Snapshots built from rows of another format are not used."""

    @abstractmethod
    async def read_rows(self, namespace: str, work: Callable[[Rows], T]) -> T | None:
        """Run `work` in another thread and return its result; None if the namespace does not exist.

        The rows reflect every write acknowledged before this call. Any of them that had not been published is
        published before this returns, so that no later read sees older data. Raises what `work` raises, and
        Unavailable.
        """

    @abstractmethod
    async def keep_manifest(self, uid: int, manifest: str) -> bool:
        """Replace the manifest of a snapshot; return False if its namespace is gone.

        The manifest is lost when the namespace is emptied or its vectors are given up. Raises Unavailable and
        StorageFull.
        """


class FollowedSource(RowSource):
    """A row source that also reports commits and loads items."""

    @abstractmethod
    def follow(self, follower: Follower) -> None:
        """Report each commit to a follower from now on, in place of the previous follower."""

    @abstractmethod
    async def load_items(
        self,
        info: NamespaceInfo,
        positions: Sequence[int],
        *,
        with_embedding: bool,
        with_content: bool = True,
    ) -> list[Item | None]:
        """Return the items at these positions, in order; None for items that no longer exist, or if the
        namespace is no longer the one of `info`.

        As new as the last published commit. Items are shared: callers must not change them, except `wire`.
        Without `with_content`, contents are not read, and items have any content.
        """

    @abstractmethod
    async def manifests(self) -> list[str]:
        """Return the manifests kept for all namespaces."""
