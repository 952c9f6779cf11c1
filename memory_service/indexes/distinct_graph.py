"""An HNSW graph of the distinct vectors of a namespace, and the slots of each.

Agents write the same short message over and over, and equal texts have equal vectors. An HNSW graph falls
apart on them: equal vectors link to each other and to nothing else. So the graph holds each vector once,
under the number of its group, and a group knows its slots.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from memory_service.indexes.hnsw import FloatMatrix, HnswGraph

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
_NONE = np.empty(0, np.int64)


@dataclass
class Linked:
    """The result of `link`: the groups of all slots, and the content of the graph."""

    slot_group: NDArray[np.int32]
    group_hash: NDArray[np.uint64]
    by_group: IntArray
    starts: IntArray
    single: bool
    """Whether each group has one slot, so that slots of groups can be looked up directly."""
    lone: IntArray
    """Groups that are unreachable in the graph: each search compares them with its query."""

    @classmethod
    def of(
        cls, slot_group: NDArray[np.int32], group_hash: NDArray[np.uint64], lone: IntArray = _NONE
    ) -> Linked:
        """List the slots by their groups; slots of group -1 are in none."""
        order = np.argsort(slot_group, kind="stable")
        first = int(np.searchsorted(slot_group[order], 0))
        starts = np.searchsorted(slot_group[order[first:]], np.arange(len(group_hash) + 1))
        single = bool((np.diff(starts) == 1).all())
        return cls(slot_group, group_hash, order[first:], starts, single, lone)

    def expand(
        self, groups: IntArray, scores: NDArray[np.float32]
    ) -> list[tuple[IntArray, NDArray[np.float32]]]:
        """Return for each row of groups, shape (n, k), their slots in order, each with its group's score."""
        if self.single:
            return list(zip(self.by_group[groups], scores, strict=True))
        starts = self.starts[groups]
        sizes = self.starts[groups + 1] - starts
        # The first of each group, and each slot's distance from it.
        ends = np.cumsum(sizes)
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes.ravel(), sizes.ravel())
        slots = self.by_group[np.repeat(starts, sizes.ravel()) + within]
        of_slots = np.repeat(scores, sizes.ravel())
        cuts = np.cumsum(sizes.sum(axis=1)).tolist()
        return [(slots[a:b], of_slots[a:b]) for a, b in zip([0, *cuts], cuts, strict=False)]


class DistinctGraph:
    """Covers the slots below `slot_count`. `link` is for the building thread, everything else for one other
    thread.
    """

    def __init__(self, graph: HnswGraph, linked: Linked | None = None) -> None:
        self.graph = graph
        self._linked = linked or Linked.of(np.empty(0, np.int32), np.empty(0, np.uint64))
        self._live_in_group: IntArray = np.empty(0, np.int64)
        self._marked: BoolArray = np.empty(0, np.bool_)
        self._unmarked = 0

    @property
    def slot_count(self) -> int:
        """Slots that the graph covers."""
        return len(self._linked.slot_group)

    @property
    def slot_group(self) -> NDArray[np.int32]:
        """The group of each slot, -1 for those that were dead when the graph was linked."""
        return self._linked.slot_group

    @property
    def group_hash(self) -> NDArray[np.uint64]:
        """The hash of each group's vector."""
        return self._linked.group_hash

    @property
    def lone(self) -> IntArray:
        """Groups that are unreachable in the graph."""
        return self._linked.lone

    @property
    def nbytes(self) -> int:
        """Memory taken, estimated."""
        linked = self._linked
        return self.graph.nbytes + 3 * linked.slot_group.nbytes + 4 * linked.group_hash.nbytes

    def link(
        self,
        vectors: FloatMatrix,
        slots: IntArray,
        slot_count: int,
        threads: int,
        after: Linked | None = None,
    ) -> Linked:
        """Link the vectors of live slots into the graph; pass the result to `adopt`.

        `after` is the result of a `link` that was not adopted yet.
        """
        linked = after or self._linked
        hashes = np.fromiter((xxhash.xxh3_64_intdigest(v.data) for v in vectors), np.uint64, len(vectors))
        groups = _groups_of(hashes, linked.group_hash)
        fresh = np.flatnonzero(groups < 0)
        new_hashes, first, inverse = np.unique(hashes[fresh], return_index=True, return_inverse=True)
        numbers = len(linked.group_hash) + np.arange(len(new_hashes))
        groups[fresh] = numbers[inverse]
        self.graph.add(vectors[fresh[first]], numbers, threads)
        slot_group = np.full(slot_count, -1, np.int32)
        slot_group[: len(linked.slot_group)] = linked.slot_group
        slot_group[slots] = groups
        return Linked.of(slot_group, np.concatenate([linked.group_hash, new_hashes]), linked.lone)

    def find_lone(self, linked: Linked) -> None:
        """Set the unreachable groups in the result of `link`.

        Only new groups are examined: links to older ones are hardly ever removed.
        """
        new = np.arange(len(self._linked.group_hash), len(linked.group_hash))
        asked = np.concatenate([self._linked.lone, new])
        dead = self.marked(asked)
        # A search does not find dead ones, which may come back.
        linked.lone = np.concatenate([asked[dead], self.graph.unreached(asked[~dead])])

    def marked(self, groups: IntArray) -> BoolArray:
        """Return which of these groups are marked as deleted; new ones are not."""
        flags = np.zeros(len(groups), np.bool_)
        known = groups < len(self._marked)
        flags[known] = self._marked[groups[known]]
        return flags

    def adopt(self, linked: Linked, live: BoolArray) -> None:
        """Adopt the result of `link`. `live`, of shape (slot count,), marks the slots that are live now."""
        self._linked = linked
        counted = linked.slot_group[live & (linked.slot_group >= 0)]
        self._live_in_group = np.bincount(counted, minlength=len(linked.group_hash))
        marked = np.zeros(len(linked.group_hash), np.bool_)
        marked[: len(self._marked)] = self._marked
        self._marked = self._live_in_group == 0
        self._unmarked = 0
        self.graph.mark_deleted(np.flatnonzero(self._marked & ~marked))
        self.graph.unmark_deleted(np.flatnonzero(marked & ~self._marked))

    def adopt_again(self, live: BoolArray) -> None:
        """Mark the slots that died during a failed `link`."""
        self.adopt(self._linked, live)

    def restore(self, live: BoolArray) -> None:
        """Like `adopt`, for a graph just loaded, whose file may or may not have the marks."""
        slot_group = self._linked.slot_group
        counted = slot_group[live & (slot_group >= 0)]
        self._live_in_group = np.bincount(counted, minlength=len(self._linked.group_hash))
        self._marked = self._live_in_group == 0
        self.graph.restore_deletions(np.flatnonzero(self._marked), int((~self._marked).sum()))

    def remove(self, slot: int, *, linking: bool) -> None:
        """Remove a dead slot. While another thread links, the graph is updated by `adopt` instead."""
        group = int(self._linked.slot_group[slot])
        self._live_in_group[group] -= 1
        if self._live_in_group[group]:
            return
        if linking:
            self._unmarked += 1
            return
        self._marked[group] = True
        self.graph.mark_deleted(np.array([group]))

    def search(
        self, queries: FloatMatrix, k: int, live: BoolArray | None
    ) -> list[tuple[IntArray, NDArray[np.float32]]] | None:
        """Return for each query at least k live slots of the best scores, best first; fewer if fewer are
        live.

        `live` marks the live slots; None: all. Returns None if for one of the queries the graph found fewer
        than it holds: see `HnswGraph.search`.
        """
        found = self.graph.search(queries, k + self._unmarked)
        if found is None:
            return None
        groups, scores = found
        if len(self._linked.lone):
            groups, scores = self._with_lone(queries, groups, scores)
        grown = len(self._linked.group_hash) < len(self.graph)
        if live is None and not grown:
            return self._linked.expand(groups, scores)
        return [self._live_slots(g, s, live, grown) for g, s in zip(groups, scores, strict=True)]

    def _with_lone(
        self, queries: FloatMatrix, groups: IntArray, scores: NDArray[np.float32]
    ) -> tuple[IntArray, NDArray[np.float32]]:
        """Return the same number of groups, shape (n, k), with better unreachable ones merged in."""
        k = groups.shape[1]
        lone = self._linked.lone[~self._marked[self._linked.lone]]
        # Avoid duplicates of those that the graph has found by chance.
        scores = np.where(np.isin(groups, lone), -np.inf, scores)
        groups = np.concatenate([groups, np.broadcast_to(lone, (len(queries), len(lone)))], axis=1)
        scores = np.concatenate([scores, queries @ self.graph.vectors(lone).T], axis=1)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(groups, best, 1), np.take_along_axis(scores, best, 1)

    def _live_slots(
        self, groups: IntArray, scores: NDArray[np.float32], live: BoolArray | None, grown: bool
    ) -> tuple[IntArray, NDArray[np.float32]]:
        linked = self._linked
        if grown:
            # Another thread adds groups that are not adopted yet; their slots are searched elsewhere.
            known = groups < len(linked.group_hash)
            groups, scores = groups[known], scores[known]
        ((slots, scores),) = linked.expand(groups[None], scores[None])
        if live is None:
            return slots, scores
        alive = live[slots]
        return slots[alive], scores[alive]

    def scores(self, slots: NDArray[Any], query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the inner products of a query with the vectors of linked slots, in their order."""
        return self.graph.scores(self._linked.slot_group[slots], query)

    def vectors(self, slots: NDArray[Any]) -> FloatMatrix:
        """Return the unit vectors of linked slots, in their order."""
        return self.graph.vectors(self._linked.slot_group[slots])


def _groups_of(hashes: NDArray[np.uint64], known: NDArray[np.uint64]) -> IntArray:
    """Return the existing groups for vectors with these hashes, -1 for none."""
    if not len(known):
        return np.full(len(hashes), -1, np.int64)
    order = np.argsort(known)
    at = np.minimum(np.searchsorted(known[order], hashes), len(known) - 1)
    found = order[at]
    return np.where(known[found] == hashes, found, -1)
