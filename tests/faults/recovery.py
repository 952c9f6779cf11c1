"""The contents of a store after a fault, compared with earlier acknowledged writes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from contract.builders import EVERYTHING, NOW, PLENTY, found_by_vector
from contract.cases import ENCRYPTED, KEY, find_case
from contract.invariants import assert_consistent
from faults.store_workload import CASE, NAMESPACES, SCRATCH, Operation, item, state, vector_of
from logged_events import logged_events
from memory_service.data_model import TextPart
from memory_service.records.sqlite.connection import open_unchanged
from memory_service.store import Store


class Held(NamedTuple):
    """The contents of a data directory."""

    found: dict[str, str]
    """Its subjects."""
    known: list[bool]
    """For each operation, whether it is known by its request."""
    damaged: list[str]
    """Index snapshots that the records mention and that have changed since they were recorded."""


async def look_at(data_dir: Path, operations: list[Operation], case: str = CASE) -> Held:
    """Open a data directory and check that all its contents are consistent."""
    store = find_case(case).make(data_dir)
    with logged_events() as logged:
        await store.open()
        try:
            found = await _read_all(store)
        finally:
            await store.close()
    with closing(_database(data_dir / "records.db", case)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        requests = set(database.execute("SELECT name, id FROM requests JOIN namespaces USING (uid)"))
    known = [(_namespace(operation), operation.request) in requests for operation in operations]
    return Held(found, known, [str(entry) for entry in logged if _tells_of_damage(entry)])


def _database(records: Path, case: str) -> Any:
    if case == ENCRYPTED.name:
        return open_unchanged(records, KEY.derive("records"))
    # A different SQLite from the store's.
    return sqlite3.connect(records)


def _tells_of_damage(entry: Any) -> bool:
    # Columns that are far behind the records are also left aside.
    event = entry["event"]
    return event == "index_snapshot_refused" or (
        event == "index_columns_refused" and entry["reason"] == "damaged"
    )


async def _read_all(store: Store) -> dict[str, str]:
    found: dict[str, str] = {}
    for namespace in (*NAMESPACES, SCRATCH):
        await assert_consistent(store, namespace)
        positions = await (await store.read(namespace)).scan(EVERYTHING, -1, newest=False)
        items = [i for i in await (await store.read(namespace)).load_items(positions) if i is not None]
        if items:
            # Through the graph, its snapshot and the tail, wherever a vector is.
            assert await found_by_vector(store, vector_of("any"), namespace) == {i.id for i in items}
        for one in items:
            assert isinstance(one.content, TextPart)
            found[item(namespace, one.id)] = one.content.text
        for entry in await store.scan_states(namespace, "", PLENTY, now_us=NOW):
            found[state(namespace, entry.key)] = msgspec.json.decode(entry.value_json)
    return found


def _namespace(operation: Operation) -> str:
    return next(iter(operation.effects)).split()[1]


def losses(operations: list[Operation], cut: int, found: dict[str, str], known: list[bool]) -> list[str]:
    """Return the acknowledged writes from before the cut that are missing, and the partial ones."""
    expected: dict[str, str | None] = {}
    lost = []
    for operation, is_known in zip(operations, known, strict=True):
        # The receipt is part of a write: if the write is in doubt, it shows whether the rest must exist.
        if operation.done(cut) or is_known:
            expected |= operation.effects
        if operation.done(cut) and not is_known:
            lost.append(f"request {operation.request} is lost")
        if is_known and operation.begun > cut:
            lost.append(f"request {operation.request} was never made")
    subjects = sorted(expected.keys() | found.keys())
    return lost + [
        f"{subject}: {found.get(subject)} instead of {expected.get(subject)}"
        for subject in subjects
        if found.get(subject) != expected.get(subject)
    ]
