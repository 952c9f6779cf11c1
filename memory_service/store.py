"""The domain's interface to storage: records, and readings of them."""

from __future__ import annotations

from abc import abstractmethod

from memory_service.data_model import IndexInfo
from memory_service.reading import Reading
from memory_service.records.base import Records


class Store(Records):
    """Records that can be searched."""

    @abstractmethod
    async def read(self, namespace: str) -> Reading:
        """Return a reading that sees every write that returned before this call.

        Use a reading for data that belongs together, such as one page; to see later writes, a caller MUST
        start another one.
        """

    @abstractmethod
    async def index_info(self, namespace: str) -> IndexInfo:
        """Return how the vectors of a namespace are currently searched, without loading anything."""
