"""The stores of test servers.

MEMORY_TEST_STORES lists the stores, of "hnsw", "postgres" and "memory", that tests of every store use,
separated by commas. Each takes about two minutes; the store in memory is not for production.
"postgres-evicting" adds that case of the contract suite in all its files.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Any

import postgres_server

_ALL = ("hnsw", "postgres", "memory")
_OF_THE_CONTRACT = "postgres-evicting"
_CHOSEN = "hnsw,postgres"


def wanted_stores() -> list[str]:
    """Return what MEMORY_TEST_STORES names."""
    wanted = os.environ.get("MEMORY_TEST_STORES", _CHOSEN).split(",")
    choice = (*_ALL, _OF_THE_CONTRACT)
    assert set(wanted) <= set(choice), f"MEMORY_TEST_STORES: choose of {', '.join(choice)}"
    return wanted


def chosen_stores() -> list[str]:
    """Return the stores that tests run over. Without a PostgreSQL server postgres is not among them."""
    wanted = [store for store in wanted_stores() if store in _ALL]
    return [store for store in wanted if store != "postgres" or postgres_server.programs() is not None]


def flags_of(store: str, data_dir: Path | None = None) -> list[str]:
    """Return a store's server options; with postgres a data folder, if there is one, gets a schema."""
    if store != "postgres":
        return ["--store", store]
    schema = f"t{uuid.uuid4().hex}" if data_dir is None else postgres_server.schema_of(data_dir)
    return ["--store", "postgres", "--postgres-dsn", postgres_server.dsn(), "--postgres-schema", schema]


def statement(data_dir: Path, text: str) -> list[tuple[Any, ...]]:
    """Execute a statement on the database of a folder's server; `$.` stands for its schema."""
    import psycopg

    with psycopg.connect(postgres_server.dsn(), autocommit=True) as connection:
        done = connection.execute(text.replace("$.", f"{postgres_server.schema_of(data_dir)}.").encode())
        return done.fetchall() if done.description else []
