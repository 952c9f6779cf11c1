"""Decides which vectors a namespace accepts, and when it gives up those it has."""

from __future__ import annotations

from collections.abc import Sequence

from memory_service.data_model import CLIENT_MODEL, ItemWrite, NamespaceInfo, VectorFill
from memory_service.errors import InvalidArgument
from memory_service.records.base import ModelMismatch

REVISION_BITS = 36
PENDING = -1
"""The key of a pending vector. See `vector_key`."""


def vector_key(epoch: int, revision: int) -> int:
    """Return the key of a vector, which the namespace never reuses.

    `epoch` is the namespace's when the vector was written, `revision` that of the item whose text it was made
    from. Revision 0 means that there is no vector and none is pending. A key below that of the namespace's
    present epoch means that the item is pending, and so does PENDING.
    """
    return epoch << REVISION_BITS | revision


def written_key(epoch: int, revision: int, *, waits: bool, embedded: bool) -> int:
    """Return the key of the vector that an item is written with, or waits for, at a revision."""
    return PENDING if waits else vector_key(epoch, revision if embedded else 0)


class VectorRule:
    """The vectors a namespace accepts; its first vector, even a pending one, sets the rule.

    Use one per write, then keep its result.
    """

    def __init__(self, dimension: int, model: str) -> None:
        self.dimension = dimension
        self.model = model

    def take(self, write: ItemWrite) -> bool:
        """Check a write's vector; return whether the item is pending instead.

        Raises InvalidArgument or ModelMismatch.
        """
        vector = write.item.embedding
        if vector is None:
            return self._waits(write)
        # The model first: on that error the writer can drop the vector, because no client has sent it.
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
    """Return whether a namespace's vectors are not yet of this model. Raises ModelMismatch."""
    if info.model == model and (not dimension or info.dimension in (0, dimension)):
        return False
    if info.model == CLIENT_MODEL and not replace_client_vectors:
        raise ModelMismatch(CLIENT_MODEL)
    return True


def check_fills(info: NamespaceInfo, model: str, fills: Sequence[VectorFill]) -> int:
    """Return the dimension of a namespace with these vectors.

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
