"""What a store holds after a fault, compared with what was acknowledged before it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec

from contract.builders import EVERYTHING, NOW, PLENTY, found_by_vector
from contract.cases import find_case
from contract.invariants import assert_consistent
from faults.store_workload import CASE, NAMESPACES, SCRATCH, Operation, item, state, vector_of
from memory_service.records import TextPart
from memory_service.stores.base import Store


async def look_at(data_dir: Path, operations: list[Operation]) -> tuple[dict[str, str], list[bool]]:
    """Open a data directory; return all subjects in it, and which operations it knows by their request.

    All that it holds has to be consistent.
    """
    store = find_case(CASE).make(data_dir)
    await store.open()
    try:
        found = await _read_all(store)
    finally:
        await store.close()
    # Another SQLite than the store's.
    with closing(sqlite3.connect(data_dir / "records.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        requests = set(database.execute("SELECT name, id FROM requests JOIN namespaces USING (uid)"))
    return found, [(_namespace(operation), operation.request) in requests for operation in operations]


async def _read_all(store: Store) -> dict[str, str]:
    found: dict[str, str] = {}
    for namespace in (*NAMESPACES, SCRATCH):
        await assert_consistent(store, namespace)
        positions = await store.scan(namespace, EVERYTHING, -1, newest=False)
        items = [i for i in await store.load_items(namespace, positions) if i is not None]
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
    """Return what was acknowledged before the cut and is not there, and what is there by half."""
    expected: dict[str, str | None] = {}
    lost = []
    for operation, is_known in zip(operations, known, strict=True):
        # The receipt is part of a write: where the write is in doubt, it tells what else is there.
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
