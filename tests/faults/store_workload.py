"""A process that uses a store on a recorded disk, and reports when each write was acknowledged.

Usage: python -m faults.store_workload DATA_DIR REPORT NUMBER CASE [--normal] [--on IMAGE]; its environment is
that of a `Disk`. The disk starts with the contents of the image, if there is one: the result of an earlier
loss of power.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import numpy as np

from contract.builders import NOW, build_request, build_state, build_write, words_found
from contract.cases import find_case
from faults.disk import Disk, put
from memory_service.data_model import OnDuplicate, Vector
from memory_service.operations import AddItems, RemoveItems, SaveStates
from memory_service.stores import SqliteStore

CASE = "hnsw-graph"
NAMESPACES = ("ada", "bob")
SCRATCH = "scratch"
DIMENSION = 8
_OPERATIONS = 240
_OPERATIONS_ON_AN_IMAGE = 40
_IDS = 60


class Operation(msgspec.Struct):
    """A write: the new contents of its subjects (None: removed), and its place in the disk's record."""

    effects: dict[str, str | None]
    request: str
    begun: int = 0
    acknowledged: int | None = None

    def done(self, cut: int) -> bool:
        """Whether it was acknowledged when the power was lost."""
        return self.acknowledged is not None and self.acknowledged <= cut


class Work(msgspec.Struct):
    """The writes, and when the store was first opening and open, in the disk's record."""

    operations: list[Operation]
    opening: int
    opened: int


def vector_of(text: str) -> Vector:
    """Return the vector of a text."""
    return np.random.default_rng(list(text.encode())).standard_normal(DIMENSION).astype(np.float32)


def item(namespace: str, item_id: str) -> str:
    """Return the name of an item among the subjects."""
    return f"item {namespace} {item_id}"


def state(namespace: str, key: str) -> str:
    """Return the name of a state among the subjects."""
    return f"state {namespace} {key}"


Call = Callable[[SqliteStore], Awaitable[object]]


class Plan:
    """Draws one write after the other; those of a round have no subject in common.

    `name` is the prefix of all names, which keeps them distinct from those of another plan.
    """

    def __init__(self, chance: random.Random, name: str = "r") -> None:
        self._chance = chance
        self._prefix = name
        self._count = 0
        self._there: dict[str, set[str]] = {name: set() for name in (*NAMESPACES, SCRATCH)}

    def fill(self, namespace: str) -> tuple[Operation, Call]:
        """Return a write of enough items for a graph, whose snapshot is saved."""
        self._count += 1
        return self._items(namespace, [f"i{n}" for n in range(_IDS)])

    def round(self) -> list[tuple[Operation, Call]]:
        """Return writes to make at the same time."""
        taken: set[str] = set()
        drawn = []
        for _ in range(self._chance.randint(1, 6)):
            operation, call = self._draw(taken)
            taken |= operation.effects.keys()
            drawn.append((operation, call))
        return drawn

    def _draw(self, taken: set[str]) -> tuple[Operation, Call]:
        self._count += 1
        was_reset = item(SCRATCH, "i0") in taken and state(SCRATCH, "0") in taken
        namespace = self._chance.choice((*NAMESPACES, *NAMESPACES, *(() if was_reset else (SCRATCH,))))
        free = [f"i{n}" for n in range(_IDS) if item(namespace, f"i{n}") not in taken]
        there = sorted(self._there[namespace] & set(free))
        kinds = [self._put, self._batch, self._save_state, self._mixed]
        if len(there) > 5:
            kinds.append(self._delete)
        if namespace == SCRATCH and not any(f" {SCRATCH} " in subject for subject in taken):
            kinds.append(self._reset)
        return self._chance.choice(kinds)(namespace, there if there else free, free, taken)

    def _name(self) -> str:
        return f"{self._prefix}{self._count}"

    def _items(self, namespace: str, ids: list[str]) -> tuple[Operation, Call]:
        texts = {item_id: f"kiwi {self._name()} {item_id}" for item_id in ids}
        self._there[namespace] |= texts.keys()
        writes = [build_write(item_id, text, vector_of(text)) for item_id, text in texts.items()]
        effects: dict[str, str | None] = {item(namespace, item_id): text for item_id, text in texts.items()}
        request = build_request(self._name())
        return Operation(effects, request.id), lambda store: store.add_items(
            namespace, writes, on_duplicate=OnDuplicate.REPLACE, request=request
        )

    def _put(self, namespace: str, there: list[str], free: list[str], _: set[str]) -> tuple[Operation, Call]:
        return self._items(namespace, [self._chance.choice(free)])

    def _batch(
        self, namespace: str, there: list[str], free: list[str], _: set[str]
    ) -> tuple[Operation, Call]:
        return self._items(namespace, self._chance.sample(free, min(len(free), self._chance.randint(2, 12))))

    def _delete(
        self, namespace: str, there: list[str], free: list[str], _: set[str]
    ) -> tuple[Operation, Call]:
        item_id = self._chance.choice(there)
        self._there[namespace].discard(item_id)
        request = build_request(self._name())
        return Operation({item(namespace, item_id): None}, request.id), lambda store: store.delete_item(
            namespace, item_id, now_us=NOW, request=request
        )

    def _save_state(
        self, namespace: str, there: list[str], free: list[str], taken: set[str]
    ) -> tuple[Operation, Call]:
        keys = [key for key in map(str, range(20)) if state(namespace, key) not in taken]
        key, value, request = self._chance.choice(keys), self._name(), build_request(self._name())
        return Operation({state(namespace, key): value}, request.id), lambda store: store.save_state(
            namespace, build_state(key, value), request=request
        )

    def _mixed(
        self, namespace: str, there: list[str], free: list[str], taken: set[str]
    ) -> tuple[Operation, Call]:
        """Return a put, a removal and a save in one write."""
        put, gone = self._chance.sample(free, 2)
        keys = [key for key in map(str, range(20)) if state(namespace, key) not in taken]
        key, text, value = self._chance.choice(keys), f"kiwi {self._name()} {put}", self._name()
        self._there[namespace] = self._there[namespace] - {gone} | {put}
        effects = {item(namespace, put): text, item(namespace, gone): None, state(namespace, key): value}
        operations = [
            SaveStates([build_state(key, value)]),
            AddItems([build_write(put, text, vector_of(text))], OnDuplicate.REPLACE),
            RemoveItems([gone]),
        ]
        request = build_request(self._name())
        return Operation(effects, request.id), lambda store: store.write(
            namespace, operations, request=request
        )

    def _reset(
        self, namespace: str, there: list[str], free: list[str], _: set[str]
    ) -> tuple[Operation, Call]:
        self._there[namespace].clear()
        effects: dict[str, str | None] = {item(namespace, f"i{n}"): None for n in range(_IDS)}
        effects |= {state(namespace, str(n)): None for n in range(20)}
        request = build_request(self._name())
        return Operation(effects, request.id), lambda store: store.reset(namespace, request=request)


async def _make(disk: Disk, store: SqliteStore, operation: Operation, call: Call) -> None:
    operation.begun = disk["records"]
    await call(store)
    operation.acknowledged = disk["records"]


async def work(
    data_dir: Path, disk: Disk, chance: random.Random, case: str, *, is_new: bool, normal: bool
) -> Work:
    """Write, flush and reopen; return the writes."""
    # Each process that uses the same folder draws its own names.
    plan, made = Plan(chance, f"r{chance.randrange(1 << 32)}-"), list[Operation]()
    opening = disk["records"]
    store = await _open(data_dir, case, normal=normal)
    opened = disk["records"]
    has_flushed = False
    while len(made) < (_OPERATIONS if is_new else _OPERATIONS_ON_AN_IMAGE):
        drawn = plan.round() if made or not is_new else [plan.fill(NAMESPACES[0])]
        made += (operation for operation, _ in drawn)
        calls = [_make(disk, store, operation, call) for operation, call in drawn]
        if chance.random() < 0.1:
            calls.append(store.flush())
        await asyncio.gather(*calls)
        if not has_flushed and len(made) > _OPERATIONS // 2:
            # A namespace that was not read since the store was opened has no index to save.
            await words_found(store, "kiwi", NAMESPACES[0])
            await store.flush()
            has_flushed = True
        if chance.random() < 0.03:
            await store.close()
            store = await _open(data_dir, case, normal=normal)
    await store.close()
    return Work(made, opening, opened)


async def _open(data_dir: Path, case: str, *, normal: bool) -> SqliteStore:
    store = find_case(case).make(data_dir)
    assert isinstance(store, SqliteStore)
    await store.open()
    if normal:
        store._writer.execute("PRAGMA synchronous = NORMAL")
    return store


if __name__ == "__main__":
    given = argparse.ArgumentParser()
    given.add_argument("data_dir", type=Path)
    given.add_argument("report", type=Path)
    given.add_argument("number")
    given.add_argument("case")
    given.add_argument("--normal", action="store_true")
    given.add_argument("--on", type=Path)
    args = given.parse_args()
    if args.on is not None:
        put(args.on, args.data_dir)
    done = work(
        args.data_dir,
        Disk.present(),
        random.Random(args.number),
        args.case,
        is_new=args.on is None,
        normal=args.normal,
    )
    args.report.write_bytes(msgspec.json.encode(asyncio.run(done)))
