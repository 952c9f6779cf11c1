"""The stores that the contract is proved on. A new store is one line in STORES."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import postgres_server
from contract.alternating import Alternating, make_postgres
from memory_service.data_key import DataKey
from memory_service.indexes.settings import IndexSettings
from memory_service.records.in_memory.store import InMemoryStore
from memory_service.records.row_source import FollowedSource
from memory_service.store import Store
from memory_service.stores import SqliteStore

# So few vectors reach the graph that small cases exercise it, with a merge every few writes.
GRAPH = IndexSettings(exact_vectors_max=32, tail_vectors_max=8)
# No index outlives its use: each search begins from the files.
EVICTING = IndexSettings(exact_vectors_max=32, tail_vectors_max=8, views_bytes_max=0)


@dataclass(frozen=True)
class StoreCase:
    """A store, in one of its settings."""

    name: str
    make: Callable[[Path], Store]
    """Makes one that keeps its files, if any, in this folder."""
    snapshots: bool = False
    """It keeps files below `indexes` in its folder that can be thrown away."""
    servers: int = 1
    """How many servers the calls go to."""
    row_source: Callable[[Any], FollowedSource] | None = None
    """Gets out of an open store what views read its records by."""


def _postgres(settings: IndexSettings) -> Callable[[Path], Store]:
    return lambda data_dir: make_postgres(data_dir, settings)


POSTGRES = (
    StoreCase("postgres", _postgres(GRAPH)),
    StoreCase("postgres-evicting", _postgres(EVICTING)),
    # What one server acknowledged, the other has to see at once.
    StoreCase(
        "postgres-two", lambda data_dir: Alternating(lambda: make_postgres(data_dir, GRAPH)), servers=2
    ),
)
STORES: tuple[StoreCase, ...] = (
    StoreCase("memory", lambda _: InMemoryStore()),
    StoreCase(
        "hnsw", lambda data_dir: SqliteStore(data_dir, IndexSettings()), row_source=lambda store: store
    ),
    StoreCase("hnsw-graph", lambda data_dir: SqliteStore(data_dir, GRAPH), snapshots=True),
    StoreCase("hnsw-evicting", lambda data_dir: SqliteStore(data_dir, EVICTING), snapshots=True),
    *(POSTGRES if postgres_server.programs() else ()),
)
KEY = DataKey(b"k" * 32)
# Proofs about files also cover encrypted ones; answers do not depend on encryption.
ENCRYPTED = StoreCase("hnsw-encrypted", lambda data_dir: SqliteStore(data_dir, GRAPH, KEY), snapshots=True)


def find_case(name: str) -> StoreCase:
    """Return the case of this name."""
    return next(case for case in (*STORES, ENCRYPTED) if case.name == name)
