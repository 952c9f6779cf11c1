"""Rules of the store contract that do not depend on where records are kept."""

from __future__ import annotations

import numpy as np

from memory_service.errors import FailedPrecondition, InvalidArgument
from memory_service.records import CLIENT_MODEL, ItemStamp, ItemWrite, Receipt, RequestKey
from memory_service.stores.base import ModelMismatch


class VectorRule:
    """What vectors a namespace takes; the first one sets it. Use one per write, then keep its result."""

    def __init__(self, dimension: int, model: str) -> None:
        self.dimension = dimension
        self.model = model

    def take(self, write: ItemWrite) -> None:
        """Check the vector of a write. Raises InvalidArgument or ModelMismatch."""
        vector = write.item.embedding
        if vector is None:
            return
        if not self.dimension:
            self.dimension, self.model = len(vector), write.model
        elif len(vector) != self.dimension:
            raise InvalidArgument.dimension("item.embedding", self.dimension, len(vector))
        elif write.model not in (self.model, CLIENT_MODEL):
            raise ModelMismatch(self.model)


def replayed(request: RequestKey, digest: bytes, receipt: Receipt) -> Receipt:
    """Return the receipt of a request that was applied before; refuse another body."""
    if digest != request.digest:
        raise FailedPrecondition.request_id_reused(request.id)
    receipt.replayed = True
    return receipt


def stamp(write: ItemWrite) -> ItemStamp:
    """Return what the store gave an item."""
    item = write.item
    return ItemStamp(item.id, item.revision, item.position, item.create_us, item.update_us, item.expire_us)


def copy_vector(vector: np.ndarray) -> np.ndarray:
    """Return the vector in an array of its own, which nobody else can change."""
    return np.array(vector, np.float32)
