"""The default store: records in SQLite, vectors in HNSW graphs, words in inverted indexes."""

from memory_service.stores.hnsw.disk_space import SpaceSettings
from memory_service.stores.hnsw.store import HnswStore

__all__ = ["HnswStore", "SpaceSettings"]
