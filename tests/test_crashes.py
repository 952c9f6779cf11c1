"""kill -9 under load: nothing acknowledged is lost, nothing is half there, the indexes agree."""

from __future__ import annotations

import copy
import random
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest

from grpc_api import SMALL_GRAPHS, Api, json_value, outcome
from memory_service.v1 import admin_pb2, state_pb2
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

KILLS = 20
THREADS = 6
NAMESPACES = ("crash/a", "crash/b")
ITEMS_PER_THREAD_MAX = 30

# What a killed server leaves a call with. Anything else is a bug of a living one.
CUT_OFF = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}


def unique_text(chance: random.Random) -> str:
    """A text with a word that no other has."""
    return f"unique{chance.getrandbits(64):016x} and some more words"


@dataclass
class Expected:
    """What a writer knows to be stored: the texts of its items by id, and the value of its counter."""

    items: dict[str, str] = field(default_factory=dict)
    counter: int = 0


@dataclass(frozen=True)
class Write:
    """One write: its call, and what it makes of what is expected when it is applied."""

    call: Callable[[Api], Any]
    apply: Callable[[Expected], None]


class Writer:
    """Writes one thing after the other until the server is gone. Its last write is then in doubt.

    Each writer has ids and a key of its own, so that what it expects does not depend on the others.
    """

    def __init__(self, name: str, namespace: str, chance: random.Random) -> None:
        self.name = name
        self.namespace = namespace
        self.expected = Expected()
        self.in_doubt: Write | None = None
        self.revision = 0  # the last one that was acknowledged
        self._chance = chance
        self._count = 0

    def run(self, api: Api, acknowledged: Callable[[], None]) -> grpc.StatusCode:
        """Writes until a call fails, and returns how it did."""
        while True:
            self.in_doubt = self._next_write()
            ended = outcome(lambda: self.finish(api))
            if ended is not grpc.StatusCode.OK:
                return ended
            acknowledged()

    def finish(self, api: Api) -> None:
        """Sends the write in doubt; after a crash for the second time, with the same request_id."""
        if self.in_doubt:
            self.revision = max(self.revision, self.in_doubt.call(api).revision)
            self.in_doubt.apply(self.expected)
            self.in_doubt = None

    def possible(self) -> list[Expected]:
        """What may be stored after a crash: with and without the write in doubt."""
        possible = [self.expected]
        if self.in_doubt:
            applied = copy.deepcopy(self.expected)
            self.in_doubt.apply(applied)
            possible.append(applied)
        return possible

    def _next_write(self) -> Write:
        full = len(self.expected.items) >= ITEMS_PER_THREAD_MAX
        kinds = [self._update, self._delete, self._delete] if full else [self._add, self._add_batch]
        if self.expected.items:
            kinds += [self._update, self._delete]
        return self._chance.choice([*kinds, self._count_up])()

    def _request_id(self) -> str:
        self._count += 1
        return f"{self.name}-{self._count}"

    def _new_items(self, count: int) -> list[pb.MemoryItem]:
        names = [f"{self.name}-{self._chance.getrandbits(64):x}" for _ in range(count)]
        return [pb.MemoryItem(id=name, text=unique_text(self._chance)) for name in names]

    def _add(self) -> Write:
        item = self._new_items(1)[0]
        request = pb.AddRequest(namespace=self.namespace, item=item, request_id=self._request_id())
        return Write(lambda api: api.memory.Add(request), lambda e: e.items.update({item.id: item.text}))

    def _add_batch(self) -> Write:
        items = self._new_items(self._chance.randint(2, 8))
        request = pb.BatchAddRequest(namespace=self.namespace, items=items, request_id=self._request_id())
        written = {item.id: item.text for item in items}
        return Write(lambda api: api.memory.BatchAdd(request), lambda e: e.items.update(written))

    def _update(self) -> Write:
        item = pb.MemoryItem(
            id=self._chance.choice(list(self.expected.items)), text=unique_text(self._chance)
        )
        request = pb.UpdateRequest(namespace=self.namespace, item=item, request_id=self._request_id())
        return Write(lambda api: api.memory.Update(request), lambda e: e.items.update({item.id: item.text}))

    def _delete(self) -> Write:
        item_id = self._chance.choice(list(self.expected.items))
        request = pb.DeleteRequest(namespace=self.namespace, id=item_id, request_id=self._request_id())
        return Write(lambda api: api.memory.Delete(request), lambda e: e.items.__delitem__(item_id))

    def _count_up(self) -> Write:
        value = self.expected.counter + 1
        request = state_pb2.SaveStateRequest(
            namespace=self.namespace,
            key=self.name,
            value=json_value(value),
            expected_version=self.expected.counter,  # its version is its value: each write adds one
            request_id=self._request_id(),
        )
        return Write(lambda api: api.state.SaveState(request), lambda e: setattr(e, "counter", value))


def flush_until_killed(api: Api) -> grpc.StatusCode:
    """Saves snapshots of the indexes all the time, so that some kills hit a snapshot half written."""
    ended = grpc.StatusCode.OK
    while ended is grpc.StatusCode.OK:
        ended = outcome(lambda: api.admin.Flush(admin_pb2.FlushRequest()))
    return ended


def run_until_killed(server: ServerProcess, writers: list[Writer], kill_after: int) -> None:
    """Lets all writers write, and kills the server after so many acknowledgements."""
    acknowledged = threading.Semaphore(0)
    apis = [Api.connect(server.address) for _ in range(len(writers) + 1)]
    with ThreadPoolExecutor(len(apis)) as pool:
        ends = [pool.submit(w.run, a, acknowledged.release) for w, a in zip(writers, apis, strict=False)]
        ends.append(pool.submit(flush_until_killed, apis[-1]))
        try:
            for _ in range(kill_after):
                assert acknowledged.acquire(timeout=60)
        finally:
            server.kill()
    assert {end.result() for end in ends} <= CUT_OFF
    for api in apis:
        api.channel.close()


def stored(api: Api, writer: Writer) -> tuple[dict[str, str], int]:
    """A writer's items and counter, as the server has them."""
    mine = [item for item in api.items(writer.namespace) if item.id.startswith(writer.name + "-")]
    request = state_pb2.SearchStateRequest(namespace=writer.namespace, pattern=writer.name)
    entries = api.state.SearchState(request).entries
    assert len({item.id for item in mine}) == len(mine)
    assert all(entry.version == entry.value.number_value for entry in entries)
    return {item.id: item.text for item in mine}, entries[0].version if entries else 0


def check_records(api: Api, writers: list[Writer]) -> None:
    """Every acknowledged write is there, and a write in doubt is there whole or not at all."""
    for writer in writers:
        assert stored(api, writer) in [(e.items, e.counter) for e in writer.possible()]
    for writer in writers:
        writer.finish(api)
        assert stored(api, writer) == (writer.expected.items, writer.expected.counter)
        assert api.stats(writer.namespace).revision >= writer.revision


def check_indexes(api: Api, namespace: str) -> None:
    """Each item is found by its vector and by its words, and nothing else is."""
    request = pb.ListRequest(namespace=namespace, page_size=1000, include_embedding=True)
    items = list(api.memory.List(request).items)
    records = list(api.memory.Export(pb.ExportRequest(namespace=namespace)))
    assert {r.item.id for r in records if r.HasField("item")} == {item.id for item in items}
    stats = api.stats(namespace)
    assert (stats.item_count, stats.embedded_count) == (len(items), len(items))
    assert stats.item_count + stats.state_count == len(records)
    lexical = pb.RETRIEVE_MODE_LEXICAL

    def find(item: pb.MemoryItem) -> None:
        assert item.text in api.found(namespace, query_embedding=item.embedding, limit=3)
        assert api.found(namespace, query_text=item.text.split()[0], mode=lexical) == [item.text]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(find, items))
    # Without a limit every item comes once: no ghost of a deleted one, none twice.
    for query in ({"query_text": "words", "mode": lexical}, {"query_embedding": items[0].embedding}):
        found = Counter(api.found(namespace, limit=-1, **query))
        assert found == Counter(item.text for item in items)


@pytest.mark.timeout(300)
def test_twenty_kills_under_load_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print(f"random seed {seed}")  # shown by pytest when the test fails
    chance = random.Random(seed)
    writers = [
        Writer(f"w{i}", NAMESPACES[i % len(NAMESPACES)], random.Random(chance.random()))
        for i in range(THREADS)
    ]
    graph_seen = False
    for number in range(KILLS + 1):
        with ServerProcess(tmp_path, env=SMALL_GRAPHS) as server:
            api = Api.connect(server.address)
            if number == 0:
                for namespace in NAMESPACES:
                    api.add(namespace, text=unique_text(chance))
            check_records(api, writers)
            for namespace in NAMESPACES:
                check_indexes(api, namespace)
                graph_seen |= api.stats(namespace).index.graph_count > 0
            api.channel.close()
            if number < KILLS:
                run_until_killed(server, writers, kill_after=chance.randint(0, 150))
    assert graph_seen  # or the test says nothing of the graph
