"""What the domain writes to and finds in: records, and readings of them."""

from __future__ import annotations

from abc import abstractmethod

from memory_service.data_model import IndexInfo
from memory_service.reading import Reading
from memory_service.records.base import Records


class Store(Records):
    """Records that can be searched."""

    @abstractmethod
    async def read(self, namespace: str) -> Reading:
        """Return a reading that sees every write that had returned when this was called.

        A reading is for what is read together, such as one page: a caller that has to see what was written
        since MUST begin another one.
        """

    @abstractmethod
    async def index_info(self, namespace: str) -> IndexInfo:
        """Return how the vectors of a namespace are searched at present, without loading anything."""
