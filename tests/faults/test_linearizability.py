"""Concurrent clients during crashes of the server: some sequential order explains all of their responses."""

from __future__ import annotations

import itertools
import math
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from faults.altered_server import command
from faults.histories import NEVER, Operation, linearizable
from faults.scale import drawn, rounds
from grpc_api import Api, decode, json_value
from memory_service.v1 import memory_pb2 as pb
from memory_service.v1 import state_pb2
from server_process import ServerProcess

CLIENTS = 7
OPERATIONS = rounds(1_600, 12_000)
KILLS = rounds(2, 15)
HISTORIES_MAX = 10
"""Histories of a server with a bug until it shows: one or two. Doubled, a checker that is blind to the bug
fails after twice the time.
"""
NAMESPACES = ("lin/a", "lin/b")
NAMES = ("one", "two", "three")
THE_END = "the end"
RESULTS = {
    grpc.StatusCode.NOT_FOUND: "absent",
    grpc.StatusCode.ALREADY_EXISTS: "present",
    grpc.StatusCode.ABORTED: "conflict",
}

Key = tuple[str, str, str]
"""Namespace, "item" or "state", and name."""


@dataclass
class History:
    """The requests and responses of all clients, by key. Thread-safe."""

    operations: dict[Key, list[Operation]] = field(default_factory=lambda: defaultdict(list))
    versions: dict[Key, int] = field(default_factory=dict)
    """One that was seen lately."""
    revisions: dict[str, list[tuple[int, Operation]]] = field(default_factory=lambda: defaultdict(list))
    """Of acknowledged writes, by namespace."""
    changes: dict[str, list[tuple[int, str]]] = field(default_factory=lambda: defaultdict(list))
    """Revision and subject of each event of Watch, by namespace."""
    count: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, key: Key, operation: Operation, revision: int = 0) -> None:
        with self._lock:
            self.count += 1
            self.operations[key].append(operation)
            if operation.version is not None:
                self.versions[key] = operation.version
            if revision:
                self.revisions[key[0]].append((revision, operation))

    def wrong_keys(self) -> list[Key]:
        """The keys whose responses have no possible order."""
        return [key for key, operations in self.operations.items() if not linearizable(operations)]


class Client:
    """Asks one thing after the other: reads of two kinds, and so many writes to one of each."""

    def __init__(
        self, history: History, chance: random.Random, values: itertools.count[int], writes: int
    ) -> None:
        self._history = history
        self._chance = chance
        self._values = values
        self._writes = writes

    def run(self, api: Api, until: float) -> None:
        """Ask until there are so many operations, or the server is gone."""
        while self._history.count < until:
            try:
                self._chance.choice([self._read, self._read_all, *[self._write] * self._writes])(api)
            except grpc.RpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise
                return

    def _any_key(self) -> Key:
        return (
            self._chance.choice(NAMESPACES),
            self._chance.choice(["item", "state"]),
            self._chance.choice(NAMES),
        )

    def _ask(self, key: Key, kind: str, call: Callable[[], Any], **asked: Any) -> None:
        """Make a call and note how it was answered."""
        operation = Operation(kind, time.monotonic(), **asked)
        try:
            response = call()
        except grpc.RpcError as error:
            if error.code() not in RESULTS:
                self._history.add(key, operation)
                raise
            metadata = decode(error).metadata
            current = metadata.get("current_version", metadata.get("current_revision"))
            self._history.add(
                key,
                replace(
                    operation,
                    returned=time.monotonic(),
                    result=RESULTS[error.code()],
                    version=None if current is None else int(current),
                ),
            )
            return
        operation = replace(operation, returned=time.monotonic(), result="ok")
        if kind == "delete":
            self._history.add(key, operation, response.revision)
            return
        is_item = key[1] == "item"
        told = response.item if is_item else response.entry
        operation = replace(operation, version=told.revision if is_item else told.version)
        if kind == "read":
            value = told.text if is_item else told.value.string_value
            self._history.add(key, replace(operation, value=value))
        else:
            self._history.add(key, operation, response.revision)

    def _read(self, api: Api) -> None:
        namespace, kind, name = key = self._any_key()
        if kind == "item":
            request = pb.GetRequest(namespace=namespace, id=name)
            self._ask(key, "read", lambda: api.memory.Get(request))
        else:
            load = state_pb2.LoadStateRequest(namespace=namespace, key=name)
            self._ask(key, "read", lambda: api.state.LoadState(load))

    def _read_all(self, api: Api) -> None:
        """Read all items at once, through the view of the namespace: each counts as a separate read."""
        namespace = self._chance.choice(NAMESPACES)
        called = time.monotonic()
        found = {item.id: item for item in api.items(namespace)}
        returned = time.monotonic()
        for name in NAMES:
            operation = Operation("read", called, returned, result="absent")
            if (item := found.get(name)) is not None:
                operation = replace(operation, result="ok", value=item.text, version=item.revision)
            self._history.add((namespace, "item", name), operation)

    def _write(self, api: Api) -> None:
        key = self._any_key()
        expected = self._history.versions.get(key) if self._chance.random() < 0.6 else None
        if key[1] == "item":
            self._write_item(api, key, expected)
        else:
            self._write_state(api, key, expected)

    def _write_item(self, api: Api, key: Key, expected: int | None) -> None:
        namespace, _, name = key
        item = pb.MemoryItem(id=name, text=f"v{next(self._values)}")
        kind = self._chance.choice(["create", "create", "replace", "replace", "replace", "delete"])
        if kind == "create":
            add = pb.AddRequest(namespace=namespace, item=item)
            self._ask(key, kind, lambda: api.memory.Add(add), value=item.text)
            return
        # Revision 0 is none that an item can have.
        expected = expected or None
        if kind == "replace":
            update = pb.UpdateRequest(namespace=namespace, item=item, expected_revision=expected)
            self._ask(key, kind, lambda: api.memory.Update(update), value=item.text, expected=expected)
        else:
            delete = pb.DeleteRequest(namespace=namespace, id=name, expected_revision=expected)
            self._ask(key, kind, lambda: api.memory.Delete(delete), expected=expected)

    def _write_state(self, api: Api, key: Key, expected: int | None) -> None:
        namespace, _, name = key
        value = f"v{next(self._values)}"
        if self._chance.random() < 0.8:
            save = state_pb2.SaveStateRequest(
                namespace=namespace, key=name, value=json_value(value), expected_version=expected
            )
            self._ask(key, "put", lambda: api.state.SaveState(save), value=value, expected=expected)
            return
        expected = expected or None
        delete = state_pb2.DeleteStateRequest(namespace=namespace, key=name, expected_version=expected)
        self._ask(key, "delete", lambda: api.state.DeleteState(delete), expected=expected)


def watch(api: Api, namespace: str, history: History, ended: threading.Event) -> None:
    """Note every change after the last one noted, until the server is gone or all changes were received."""
    changes = history.changes[namespace]
    stream = api.memory.Watch(
        pb.WatchRequest(
            namespace=namespace,
            after_revision=changes[-1][0] if changes else 0,
            # Of a server that loses writes no change may ever come again.
            heartbeat_interval={"seconds": 1},
        )
    )
    try:
        for event in stream:
            if event.HasField("change"):
                changes.append((event.revision, event.change.item_id or event.change.state_key))
            if ended.is_set() and event.revision >= api.stats(namespace).revision:
                return
    except grpc.RpcError as error:
        if error.code() is not grpc.StatusCode.UNAVAILABLE:
            raise


def live(server: ServerProcess, clients: Sequence[Client], history: History, until: int, kill: bool) -> None:
    """One life of a server, from the first call to its end."""
    ended = threading.Event()
    apis = [Api.connect(server.address) for _ in range(len(clients) + len(NAMESPACES))]
    with ThreadPoolExecutor(len(apis)) as pool:
        watching = [
            pool.submit(watch, api, namespace, history, ended)
            for api, namespace in zip(apis[len(clients) :], NAMESPACES, strict=True)
        ]
        # Of a server that is killed they ask until it is gone: each has a call that is never answered.
        most = math.inf if kill else until
        asking = [pool.submit(c.run, api, most) for c, api in zip(clients, apis, strict=False)]
        if kill:
            while history.count < until and not all(each.done() for each in asking):
                threading.Event().wait(0.001)
            server.kill()
        for each in asking:
            each.result()
        ended.set()
        if not kill:
            end_all(apis[0], watching)
        for each in watching:
            each.result()
    for api in apis:
        api.channel.close()


def end_all(api: Api, watching: Sequence[Future[None]]) -> None:
    """Write what ends a watch until all have; of a server that loses writes that may be one of them."""
    for number in itertools.count():
        for namespace in NAMESPACES:
            api.add(namespace, id=f"{THE_END}{number}", text=THE_END)
        if not wait(watching, timeout=2).not_done:
            return


def recorded(
    data_dir: Path, chance: random.Random, operations: int, kills: int, *, writes: int = 4, **how: Any
) -> History:
    """The history of the clients of a server that is killed that many times while they continue."""
    history, values = History(), itertools.count()
    clients = [Client(history, random.Random(chance.random()), values, writes) for _ in range(CLIENTS)]
    for life in range(kills + 1):
        with ServerProcess(data_dir, **how) as server:
            live(server, clients, history, operations * (life + 1) // (kills + 1), kill=life < kills)
    return history


@pytest.mark.timeout(900)
def test_histories_over_crashes_are_linearizable(tmp_path: Path) -> None:
    history = recorded(tmp_path, drawn("linearizability"), OPERATIONS, KILLS)
    assert history.count >= OPERATIONS
    operations = [each for one in history.operations.values() for each in one]
    assert any(each.returned == NEVER for each in operations)  # or no kill met a write
    assert {each.result for each in operations} == {"ok", "absent", "present", "conflict", "unknown"}
    assert history.wrong_keys() == []
    assert [each for namespace in NAMESPACES for each in wrong_revisions(history, namespace)] == []
    results = Counter(each.result for each in operations)
    print(
        f"{len(operations)} operations over {KILLS} kills, of {len(history.operations)} keys: {dict(results)}"
    )
    print(f"{sum(map(len, history.changes.values()))} changes told by Watch, each once and in order")


def wrong_revisions(history: History, namespace: str) -> list[str]:
    """Violations: revisions must be unique and grow with time, and Watch send each change once, in order."""
    told = history.changes[namespace]
    wrong = []
    if [revision for revision, _ in told] != list(range(1, told[-1][0] + 1)):
        wrong.append("Watch left out a change, told one twice, or in another order")
    subjects = dict(told)
    names = {
        id(operation): key[2]
        for key, operations in history.operations.items()
        for operation in operations
        if key[0] == namespace
    }
    writes = sorted(history.revisions[namespace], key=lambda write: write[0])
    if len({revision for revision, _ in writes}) != len(writes):
        wrong.append("two writes have the same revision")
    latest_call = 0.0
    for revision, operation in writes:
        if subjects.get(revision) != names[id(operation)]:
            wrong.append(f"Watch told {subjects.get(revision)} at the revision of {names[id(operation)]}")
        if operation.returned <= latest_call:
            wrong.append(f"a write that came later has a lower revision than {revision}")
        latest_call = max(latest_call, operation.called)
    unknown = [
        operation
        for key, operations in history.operations.items()
        for operation in operations
        if key[0] == namespace and operation.result == "unknown" and operation.kind != "read"
    ]
    others = [subject for _, subject in told if not subject.startswith(THE_END)]
    if len(others) - len(writes) > len(unknown):
        wrong.append("Watch told changes that nobody has made")
    return wrong


def wrong_sooner_or_later(
    folder: Path, bug: str, *, operations: int, kills: int = 0, **how: Any
) -> list[Key]:
    """Return the violations in a history of a server with a bug, or in another one if it did not show.

    Whether a bug shows depends on the timing of calls, so a single history may lack it.
    """
    chance = drawn(bug)
    for number in range(HISTORIES_MAX):
        history = recorded(folder / f"{number}", chance, operations, kills, command=command(bug), **how)
        if wrong := history.wrong_keys():
            return wrong
    return []


@pytest.mark.parametrize("bug", ["broken_compare_and_set", "stale_read", "lost_write"])
def test_a_planted_bug_is_found(tmp_path: Path, bug: str) -> None:
    assert wrong_sooner_or_later(tmp_path, bug, operations=400) != []


def test_lists_that_are_stale_by_one_write_are_found(tmp_path: Path) -> None:
    # Reads by key are right.
    assert {kind for _, kind, _ in wrong_sooner_or_later(tmp_path, "stale_view", operations=400)} == {"item"}


def test_what_is_committed_is_seen_by_nobody_before_it_is_published(tmp_path: Path) -> None:
    late, bug = "late_publication", "read_before_published"
    much_read: dict[str, Any] = {"operations": 1_000, "kills": 0, "writes": 1}
    assert recorded(tmp_path / "late", drawn(late), command=command(late), **much_read).wrong_keys() == []
    # Lists are older than what was read by its key.
    wrong = wrong_sooner_or_later(tmp_path / "bug", bug, **much_read)
    assert {kind for _, kind, _ in wrong} == {"item"}


def test_a_change_that_watch_leaves_out_is_found(tmp_path: Path) -> None:
    history = recorded(tmp_path, drawn("skipped_event"), 400, 0, command=command("skipped_event"))
    assert history.wrong_keys() == []
    assert all("Watch left out" in wrong_revisions(history, namespace)[0] for namespace in NAMESPACES)


def test_writes_that_are_acknowledged_before_their_commit_are_found_by_a_kill(tmp_path: Path) -> None:
    bug = "late_commit"
    unkilled = recorded(tmp_path / "unkilled", drawn(bug), 400, 0, command=command(bug))
    assert unkilled.wrong_keys() == []
    assert wrong_sooner_or_later(tmp_path / "killed", bug, operations=400, kills=2) != []


# The checker itself: each history is one of a register, by hand.

PUT_1 = Operation("put", 0, 1, "a", result="ok", version=1)
READ_1 = Operation("read", 2, 3, "a", result="ok", version=1)
WRONG = {
    "a read of what was never written": [PUT_1, replace(READ_1, value="b")],
    "a read of nothing after a write": [PUT_1, Operation("read", 2, 3, result="absent")],
    "a read of what was overwritten": [
        PUT_1,
        Operation("put", 2, 3, "b", result="ok", version=2),
        replace(READ_1, called=4, returned=5),
    ],
    "two compare-and-sets of one version": [
        PUT_1,
        Operation("put", 2, 9, "b", 1, "ok", 2),
        Operation("put", 2, 9, "c", 1, "ok", 3),
    ],
    "a version that was there before": [
        PUT_1,
        Operation("delete", 2, 3, result="ok"),
        Operation("put", 4, 5, "b", result="ok", version=1),
    ],
    "a conflict with the version that was expected": [PUT_1, Operation("put", 2, 3, "b", 1, "conflict", 1)],
    "a lost write that is seen and then not": [
        PUT_1,
        Operation("put", 2, NEVER, "b"),
        Operation("read", 3, 4, "b", result="ok", version=2),
        replace(READ_1, called=5, returned=6),
    ],
    "a read of a write that had not begun": [
        Operation("read", 0, 1, "a", result="ok", version=1),
        replace(PUT_1, called=2, returned=3),
    ],
}
RIGHT = {
    "a read at the same time sees the one or the other": [
        PUT_1,
        Operation("put", 2, 9, "b", result="ok", version=2),
        Operation("read", 3, 4, "b", result="ok", version=2),
        Operation("read", 3, 4, "a", result="ok", version=1),
    ],
    "a lost write happened late": [
        PUT_1,
        Operation("put", 2, NEVER, "b"),
        READ_1,
        Operation("read", 4, 5, "b", result="ok", version=2),
    ],
    "a lost write never happened": [PUT_1, Operation("put", 2, NEVER, "b", 1), READ_1],
    "what a lost write left is compared": [
        PUT_1,
        Operation("put", 2, NEVER, "b"),
        Operation("put", 3, 4, "c", 5, "ok", 6),
        Operation("put", 5, 6, "d", 5, "conflict", 6),
    ],
}


@pytest.mark.parametrize("name", WRONG)
def test_the_checker_refuses(name: str) -> None:
    assert not linearizable(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_the_checker_takes(name: str) -> None:
    assert linearizable(RIGHT[name])
