"""Rules of the store contract that do not depend on where records are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np

from memory_service.data_model import (
    CLIENT_MODEL,
    ChangeType,
    HeldWrite,
    ItemKind,
    ItemWrite,
    NamespaceInfo,
    OnDuplicate,
    Receipt,
    RequestKey,
    Since,
    StateWrite,
    VectorFill,
)
from memory_service.errors import AlreadyExists, Conflict, FailedPrecondition, InvalidArgument
from memory_service.records.base import ModelMismatch

S = TypeVar("S")
_OF_ITEMS = frozenset(
    (ChangeType.ITEM_ADDED, ChangeType.ITEM_UPDATED, ChangeType.ITEM_DELETED, ChangeType.ITEM_EXPIRED)
)


class VectorRule:
    """What vectors a namespace takes; the first one that it has, or waits for, sets it.

    Use one per write, then keep its result.
    """

    def __init__(self, dimension: int, model: str) -> None:
        self.dimension = dimension
        self.model = model

    def take(self, write: ItemWrite) -> bool:
        """Check the vector of a write; return whether the item waits for one instead.

        Raises InvalidArgument or ModelMismatch.
        """
        vector = write.item.embedding
        if vector is None:
            return self._waits(write)
        # The model first: then its writer can do without the vector, which no client has sent.
        if self.model and write.model not in (self.model, CLIENT_MODEL):
            raise ModelMismatch(self.model)
        if self.dimension and len(vector) != self.dimension:
            raise InvalidArgument.dimension("item.embedding", self.dimension, len(vector))
        self.dimension, self.model = len(vector), self.model or write.model
        return False

    def _waits(self, write: ItemWrite) -> bool:
        if not write.model or write.keep_vector:
            return False
        if not self.model:
            self.dimension, self.model = write.dimension, write.model
        fits = not write.dimension or self.dimension in (0, write.dimension)
        return write.model == self.model and fits


def check_move(info: NamespaceInfo, model: str, dimension: int, replace_client_vectors: bool) -> bool:
    """Whether the vectors of a namespace are not of this model yet. Raises ModelMismatch."""
    if info.model == model and (not dimension or info.dimension in (0, dimension)):
        return False
    if info.model == CLIENT_MODEL and not replace_client_vectors:
        raise ModelMismatch(CLIENT_MODEL)
    return True


def check_fills(info: NamespaceInfo, model: str, fills: Sequence[VectorFill]) -> int:
    """Return the dimension that a namespace has with these vectors.

    Raises ModelMismatch or InvalidArgument.
    """
    if info.model != model:
        raise ModelMismatch(info.model)
    dimension = info.dimension
    for fill in fills:
        if fill.vector is not None:
            dimension = dimension or len(fill.vector)
            if len(fill.vector) != dimension:
                raise InvalidArgument.dimension("vector", dimension, len(fill.vector))
    return dimension


def replayed(request: RequestKey, digest: bytes, receipt: Receipt) -> Receipt:
    """Return the receipt of a request that was applied before; refuse another body."""
    if digest != request.digest:
        raise FailedPrecondition.request_id_reused(request.id)
    receipt.replayed = True
    return receipt


def same_request(held: HeldWrite, other: HeldWrite) -> bool:
    """Whether two held writes came with one request; refuse one of its id with another body."""
    if held.request is None or other.request is None or held.request.id != other.request.id:
        return False
    if held.request.digest != other.request.digest:
        raise FailedPrecondition.request_id_reused(other.request.id)
    return True


def check_unchanged(
    since: Since, revision: int, changes: Iterable[tuple[ChangeType, str, ItemKind | None]]
) -> None:
    """Refuse a write where one of the changes since a revision counts; the namespace is at `revision`.

    Each has its type, its subject, and the kind of an item that is still there.
    """
    if revision < since.revision or any(_counts(since, *change) for change in changes):
        raise Conflict.changed_since(since.revision, revision)


def _counts(since: Since, change: ChangeType, subject: str, kind: ItemKind | None) -> bool:
    if change not in _OF_ITEMS:
        return change is ChangeType.RESET
    if kind is None:
        return subject in since.ids or (since.removals and bool(since.kinds))
    return subject in since.ids or kind in since.kinds


def choose(
    namespace: str,
    writes: Sequence[ItemWrite],
    stored: Callable[[ItemWrite], tuple[S | None, int]],
    on_duplicate: OnDuplicate,
    rule: VectorRule,
) -> list[tuple[int, S | None, bool]]:
    """Return the places of the writes to apply, each with what is stored and whether it waits for a vector.

    `stored` returns what there is of the item of a write, and its revision: 0 of one that is expired or not
    there. Raises Conflict, AlreadyExists, and what `VectorRule.take` does.
    """
    chosen: list[tuple[int, S | None, bool]] = []
    seen: set[str] = set()
    for at, write in enumerate(writes):
        item_id = write.item.id
        present, revision = stored(write)
        if write.expected_revision is not None and write.expected_revision != revision:
            raise Conflict.revision(item_id, write.expected_revision, revision)
        exists = item_id in seen or revision > 0
        if exists and on_duplicate is OnDuplicate.FAIL:
            raise AlreadyExists(namespace, item_id)
        if not exists or on_duplicate is OnDuplicate.REPLACE:
            seen.add(item_id)
            chosen.append((at, present, rule.take(write)))
    return chosen


def check_new_states(states: Sequence[StateWrite], version: Callable[[StateWrite], int]) -> None:
    """Raise Conflict when one of these keys exists, at `version`, or is there twice."""
    seen: set[str] = set()
    for state in states:
        current = version(state) or int(state.key in seen)
        if current:
            raise Conflict.version(state.key, 0, current)
        seen.add(state.key)


def copy_vector(vector: np.ndarray) -> np.ndarray:
    """Return the vector in an array of its own, which nobody else can change."""
    return np.array(vector, np.float32)
