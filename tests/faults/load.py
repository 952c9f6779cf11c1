"""Writers that know what must be stored, whenever their server is killed; and checks that it is.

Each writer makes one write at a time, with its own ids and keys, so that its expectations do not depend on
the others. A write left unanswered by a crash is in doubt: it may be stored or not, entirely or not at all.
It is then sent again with the same request id, and must be stored exactly once.
"""

from __future__ import annotations

import copy
import random
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf.duration_pb2 import Duration

from faults.scale import rounds
from grpc_api import Api, eventually, json_value, outcome
from memory_service.v1 import (
    admin_pb2,
    knowledge_pb2,
    knowledge_pb2_grpc,
    state_pb2,
    user_memory_pb2,
    user_memory_pb2_grpc,
)
from memory_service.v1 import memory_pb2 as pb

SHARED = ("crash/a", "crash/b")
OWN = ("crash/own-a", "crash/own-b")
FACTS = "crash/facts"
DOCUMENTS = "crash/documents"
MOVING = "crash/moving"
EXPIRING = "crash/expiring"
ITEMS_PER_WRITER_MAX = 30
LOOKED_UP = rounds(6, 12)
"""How many items of a namespace are looked up one by one; a query always returns all of them."""

# The codes of calls that a killed server cuts off. Any other is a bug of a running one.
CUT_OFF = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}

SWEEP = {"MEMORY_SERVICE_SWEEP": "0.1"}
"""Expired items are removed soon, so that crashes happen during the sweep."""


def unique_text(chance: random.Random) -> str:
    """Return a text with a word that no other has."""
    return f"unique{chance.getrandbits(64):016x} and some more words"


@dataclass
class Records:
    """Stored or expected data: texts and values by id or key."""

    items: dict[str, str] = field(default_factory=dict)
    states: dict[str, float] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    documents: dict[str, str] = field(default_factory=dict)


Step = Callable[[Records], object]


@dataclass(frozen=True)
class Write:
    """One write: its call, and its effects on the records, as steps. A crash may leave any prefix of them."""

    call: Callable[[Api], Any]
    steps: Sequence[Step]
    answered: Callable[[Any], object] = lambda response: None


class Writer(ABC):
    """Makes one write after the other until the server is gone. Its last write is then in doubt."""

    def __init__(self, name: str, namespace: str, chance: random.Random) -> None:
        self.name = name
        self.namespace = namespace
        self.expected = Records()
        self.in_doubt: Write | None = None
        self.revision = 0  # of the last acknowledged write
        self.acknowledged_count = 0
        self.chance = chance
        self._count = 0

    def run(self, api: Api, acknowledged: Callable[[], None]) -> grpc.StatusCode:
        """Write until a call fails, and return its status code."""
        while True:
            if self.in_doubt is None:
                self.in_doubt = self.next_write()
            ended = outcome(lambda: self.finish(api))
            if ended is not grpc.StatusCode.OK:
                return ended
            acknowledged()

    def finish(self, api: Api) -> None:
        """Send the write in doubt; after a crash for the second time, with the same request_id."""
        if self.in_doubt:
            response = self.in_doubt.call(api)
            assert response.revision >= self.revision
            self.revision = response.revision
            self.acknowledged_count += 1
            for step in self.in_doubt.steps:
                step(self.expected)
            self.in_doubt.answered(response)
            self.in_doubt = None

    def possible(self) -> Iterator[Records]:
        """Yield what a crash may leave: without the write in doubt, then with one more of its steps each."""
        records = copy.deepcopy(self.expected)
        yield copy.deepcopy(records)
        for step in self.in_doubt.steps if self.in_doubt else ():
            step(records)
            yield copy.deepcopy(records)

    def request_id(self) -> str:
        """Return a new request id."""
        self._count += 1
        return f"{self.name}-{self._count}"

    @abstractmethod
    def next_write(self) -> Write:
        """Return the next write."""

    @abstractmethod
    def stored(self, api: Api) -> Records:
        """Return what the server has stored for this writer."""


class ItemWriter(Writer):
    """Items and states. In its own namespace it also resets everything."""

    def __init__(self, name: str, namespace: str, chance: random.Random) -> None:
        super().__init__(name, namespace, chance)
        self._versions: dict[str, int] = {}

    def next_write(self) -> Write:
        items, states = self.expected.items, self.expected.states
        full = len(items) >= ITEMS_PER_WRITER_MAX
        kinds = [self._update, self._delete, self._delete] if full else [self._add, self._batch, self._import]
        if items:
            kinds += [self._update, self._delete, self._mixed]
        if states:
            kinds += [self._delete_state]
        if self.namespace in OWN and self.chance.random() < 0.03:
            kinds = [self._reset, self._clear_states]
        return self.chance.choice([*kinds, self._save_state])()

    def _new_items(self, count: int) -> list[pb.MemoryItem]:
        names = [f"{self.name}-{self.chance.getrandbits(64):x}" for _ in range(count)]
        return [pb.MemoryItem(id=name, text=unique_text(self.chance)) for name in names]

    def _add(self) -> Write:
        item = self._new_items(1)[0]
        request = pb.AddRequest(namespace=self.namespace, item=item, request_id=self.request_id())
        return Write(lambda api: api.memory.Add(request), [lambda r: r.items.update({item.id: item.text})])

    def _batch(self) -> Write:
        items = self._new_items(self.chance.randint(2, 8))
        request = pb.BatchAddRequest(namespace=self.namespace, items=items, request_id=self.request_id())
        written = {item.id: item.text for item in items}
        return Write(lambda api: api.memory.BatchAdd(request), [lambda r: r.items.update(written)])

    def _import(self) -> Write:
        """Import two messages, of which the second may be missing. Without a request id: it replaces."""
        halves = [self._new_items(self.chance.randint(1, 4)) for _ in range(2)]
        requests = [
            pb.ImportRequest(namespace=self.namespace, items=items, on_duplicate=pb.ON_DUPLICATE_REPLACE)
            for items in halves
        ]
        written = [{item.id: item.text for item in items} for items in halves]
        steps = [lambda r, texts=texts: r.items.update(texts) for texts in written]
        return Write(lambda api: api.memory.Import(iter(requests)), steps)

    def _update(self) -> Write:
        item = pb.MemoryItem(id=self.chance.choice(list(self.expected.items)), text=unique_text(self.chance))
        request = pb.UpdateRequest(namespace=self.namespace, item=item, request_id=self.request_id())
        return Write(lambda api: api.memory.Update(request), [lambda r: r.items.update({item.id: item.text})])

    def _delete(self) -> Write:
        item_id = self.chance.choice(list(self.expected.items))
        request = pb.DeleteRequest(namespace=self.namespace, id=item_id, request_id=self.request_id())
        return Write(lambda api: api.memory.Delete(request), [lambda r: r.items.pop(item_id)])

    def _mixed(self) -> Write:
        """Make operations of every kind in one batch, which has a single step."""
        new, changed = self._new_items(2)
        changed.id = self.chance.choice(list(self.expected.items))
        others = [item_id for item_id in self.expected.items if item_id != changed.id]
        gone = self.chance.sample(others, min(len(others), 2))
        key, value = f"{self.name}-{self.chance.randint(0, 2)}", float(self.chance.getrandbits(32))
        operations = [
            pb.WriteOperation(add=pb.AddOperation(item=new)),
            *(pb.WriteOperation(delete=pb.DeleteOperation(id=item_id)) for item_id in gone),
            pb.WriteOperation(
                save_state=pb.SaveStateOperation(
                    key=key, value=json_value(value), expected_version=self._versions.get(key, 0)
                )
            ),
            pb.WriteOperation(update=pb.UpdateOperation(item=changed)),
        ]
        request = pb.BatchWriteRequest(
            namespace=self.namespace, operations=operations, request_id=self.request_id()
        )

        def step(records: Records) -> None:
            records.items.update({new.id: new.text, changed.id: changed.text})
            records.states[key] = value
            for item_id in gone:
                del records.items[item_id]

        def answered(response: pb.BatchWriteResponse) -> None:
            version = response.results[-2].version
            assert version > self._versions.get(key, 0)
            self._versions[key] = version

        return Write(lambda api: api.memory.BatchWrite(request), [step], answered)

    def _save_state(self) -> Write:
        """Compare and set: the version is the one in the last response."""
        key, value = f"{self.name}-{self.chance.randint(0, 2)}", float(self.chance.getrandbits(32))
        request = state_pb2.SaveStateRequest(
            namespace=self.namespace,
            key=key,
            value=json_value(value),
            expected_version=self._versions.get(key, 0),
            request_id=self.request_id(),
        )

        def answered(response: state_pb2.SaveStateResponse) -> None:
            assert response.entry.version > self._versions.get(key, 0)
            self._versions[key] = response.entry.version

        return Write(
            lambda api: api.state.SaveState(request), [lambda r: r.states.update({key: value})], answered
        )

    def _delete_state(self) -> Write:
        key = self.chance.choice(list(self.expected.states))
        request = state_pb2.DeleteStateRequest(
            namespace=self.namespace,
            key=key,
            expected_version=self._versions[key],
            request_id=self.request_id(),
        )
        return Write(
            lambda api: api.state.DeleteState(request),
            [lambda r: r.states.pop(key)],
            lambda _: self._versions.pop(key),
        )

    def _reset(self) -> Write:
        request = pb.ResetRequest(namespace=self.namespace, request_id=self.request_id())
        empty = [lambda r: (r.items.clear(), r.states.clear())]
        return Write(lambda api: api.memory.Reset(request), empty, lambda _: self._versions.clear())

    def _clear_states(self) -> Write:
        request = state_pb2.ClearStateRequest(namespace=self.namespace, request_id=self.request_id())
        return Write(
            lambda api: api.state.ClearState(request),
            [lambda r: r.states.clear()],
            lambda _: self._versions.clear(),
        )

    def stored(self, api: Api) -> Records:
        mine = [item for item in api.items(self.namespace) if item.id.startswith(self.name + "-")]
        request = state_pb2.SearchStateRequest(namespace=self.namespace, pattern=f"{self.name}-*")
        entries = api.state.SearchState(request).entries
        assert len({item.id for item in mine}) == len(mine)
        states = {entry.key: entry.value.number_value for entry in entries}
        if self.in_doubt is None:
            assert {entry.key: entry.version for entry in entries} == self._versions
        return Records(items={item.id: item.text for item in mine}, states=states)


class FactWriter(Writer):
    """Facts about users."""

    def __init__(self, name: str, namespace: str, chance: random.Random) -> None:
        super().__init__(name, namespace, chance)
        self._ids: dict[str, str] = {}

    def next_write(self) -> Write:
        if self._ids and (len(self._ids) >= ITEMS_PER_WRITER_MAX or self.chance.random() < 0.3):
            return self._delete()
        # No content resembles another, or the fact would count as an update of the other.
        content = " ".join(f"{self.chance.getrandbits(40):010x}" for _ in range(4))
        request = user_memory_pb2.SaveMemoryRequest(
            namespace=self.namespace,
            content=content,
            category=user_memory_pb2.MEMORY_CATEGORY_CONTEXT,
            reasoning="It will matter in later conversations",
            keep_wording=True,
            request_id=self.request_id(),
        )

        def answered(response: user_memory_pb2.SaveMemoryResponse) -> None:
            assert response.outcome == user_memory_pb2.MEMORY_OUTCOME_SAVED
            self._ids[content] = response.memory.id

        return Write(
            lambda api: facts(api).SaveMemory(request),
            [lambda r: r.facts.update({content: content})],
            answered,
        )

    def _delete(self) -> Write:
        content = self.chance.choice(list(self._ids))
        request = user_memory_pb2.DeleteMemoryRequest(
            namespace=self.namespace, id=self._ids[content], request_id=self.request_id()
        )
        return Write(
            lambda api: facts(api).DeleteMemory(request),
            [lambda r: r.facts.pop(content)],
            lambda _: self._ids.pop(content),
        )

    def stored(self, api: Api) -> Records:
        request = user_memory_pb2.ListMemoriesRequest(
            namespace=self.namespace, page_size=1000, include_history=True
        )
        memories = facts(api).ListMemories(request).memories
        contents = [memory.content for memory in memories]
        assert len(set(contents)) == len(contents)
        if self.in_doubt is None:
            assert {memory.content: memory.id for memory in memories} == self._ids
        return Records(facts={content: content for content in contents})


class DocumentWriter(Writer):
    """Documents of several fragments each."""

    def next_write(self) -> Write:
        documents = self.expected.documents
        if documents and (len(documents) >= 5 or self.chance.random() < 0.3):
            return self._delete()
        new = documents and self.chance.random() < 0.3
        name = self.chance.choice(list(documents)) if new else f"{self.name}-{self.chance.getrandbits(64):x}"
        text = "\n\n".join(unique_text(self.chance) * 3 for _ in range(self.chance.randint(1, 20)))
        request = knowledge_pb2.AddDocumentRequest(
            namespace=self.namespace,
            document=knowledge_pb2.Document(id=name, text=text),
            replace=True,
            request_id=self.request_id(),
        )
        return Write(
            lambda api: knowledge(api).AddDocument(request), [lambda r: r.documents.update({name: text})]
        )

    def _delete(self) -> Write:
        name = self.chance.choice(list(self.expected.documents))
        request = knowledge_pb2.DeleteDocumentRequest(
            namespace=self.namespace, id=name, request_id=self.request_id()
        )
        return Write(lambda api: knowledge(api).DeleteDocument(request), [lambda r: r.documents.pop(name)])

    def stored(self, api: Api) -> Records:
        service = knowledge(api)
        listed = service.ListDocuments(
            knowledge_pb2.ListDocumentsRequest(namespace=self.namespace, page_size=1000)
        )
        texts = {}
        for each in listed.documents:
            document = service.GetDocument(
                knowledge_pb2.GetDocumentRequest(
                    namespace=self.namespace, id=each.id, include_fragments=True, page_size=1000
                )
            )
            assert len(document.fragments) == document.document.fragment_count > 0
            texts[each.id] = document.document.text
        return Records(documents=texts)


def facts(api: Api) -> Any:
    """Return the stub of UserMemoryService."""
    return user_memory_pb2_grpc.UserMemoryServiceStub(api.channel)


def knowledge(api: Api) -> Any:
    """Return the stub of KnowledgeService."""
    return knowledge_pb2_grpc.KnowledgeServiceStub(api.channel)


def all_writers(chance: random.Random) -> list[Writer]:
    """Return two writers in each shared namespace, one in each of the others."""
    kinds = [
        *((ItemWriter, namespace) for namespace in (*SHARED, *SHARED, *OWN)),
        (FactWriter, FACTS),
        (DocumentWriter, DOCUMENTS),
    ]
    return [
        kind(f"w{number}", namespace, random.Random(chance.random()))
        for number, (kind, namespace) in enumerate(kinds)
    ]


# Other work during the load: each function repeats its work until the server is gone.


def flush(api: Api, number: int) -> None:
    """Save snapshots of the indexes, so that some kills hit a half-written one."""
    api.admin.Flush(admin_pb2.FlushRequest())


def back_up(api: Api, number: int) -> None:
    """Make a backup under a new name."""
    api.admin.Backup(admin_pb2.BackupRequest())


def let_expire(api: Api, number: int) -> None:
    """Add an item and a state that expire at once, for the sweep."""
    soon = Duration(nanos=1_000_000)
    api.add(EXPIRING, text="short", ttl=soon)
    api.save(EXPIRING, f"key-{number}", "short", ttl=soon)


def move(api: Api, number: int) -> None:
    """Fill a namespace with a client's vectors, and then with those of the server's model."""
    api.memory.Reset(pb.ResetRequest(namespace=MOVING))
    items = [
        pb.MemoryItem(text=f"{number} {at}", embedding=pb.Embedding(values=[1, at, 0])) for at in range(80)
    ]
    api.memory.BatchAdd(pb.BatchAddRequest(namespace=MOVING, items=items))
    api.admin.Reembed(admin_pb2.ReembedRequest(namespace=MOVING, replace_client_vectors=True))
    eventually(lambda: api.stats(MOVING).pending_count == 0, "the move to end")


DISTURBANCES = (flush, back_up, let_expire, move)


def again_and_again(work: Callable[[Api, int], None], api: Api, ended: threading.Event) -> grpc.StatusCode:
    """Repeat one of DISTURBANCES, and return how it ended."""
    number = 0
    while not ended.is_set():
        number += 1
        code = outcome(lambda number=number: work(api, number))
        if code is not grpc.StatusCode.OK:
            return code
    return grpc.StatusCode.CANCELLED


@contextmanager
def under_load(
    address: str,
    writers: Sequence[Writer],
    disturbances: Sequence[Callable[[Api, int], None]] = DISTURBANCES,
) -> Iterator[threading.Semaphore]:
    """Run all writers during the block. The server MUST be gone at the end.

    The yielded semaphore is released at each acknowledgement.
    """
    acknowledged = threading.Semaphore(0)
    ended = threading.Event()
    apis = [Api.connect(address) for _ in range(len(writers) + len(disturbances))]
    with ThreadPoolExecutor(len(apis)) as pool:
        ends = [pool.submit(w.run, a, acknowledged.release) for w, a in zip(writers, apis, strict=False)]
        for work, api in zip(disturbances, apis[len(writers) :], strict=True):
            ends.append(pool.submit(again_and_again, work, api, ended))
        try:
            yield acknowledged
        finally:
            ended.set()
    assert {end.result() for end in ends} <= CUT_OFF
    for api in apis:
        api.channel.close()


def check_records(api: Api, writers: Sequence[Writer]) -> None:
    """Check that every acknowledged write is there, and a write in doubt entirely or not at all."""
    for writer in writers:
        assert writer.stored(api) in list(writer.possible())
    for writer in writers:
        writer.finish(api)
        assert writer.stored(api) == writer.expected
        if writer.revision:
            assert api.stats(writer.namespace).revision >= writer.revision


def check_views(api: Api, namespace: str) -> None:
    """Check that each item is found by its vector and by its words, and nothing else is."""
    request = pb.ListRequest(namespace=namespace, page_size=1000, include_embedding=True)
    items = list(api.memory.List(request).items)
    stats = check_counts(api, namespace)
    assert (stats.item_count, stats.embedded_count) == (len(items), len(items))
    lexical = pb.RETRIEVE_MODE_LEXICAL

    def find(item: pb.MemoryItem) -> None:
        assert api.get(namespace, item.id).text == item.text
        assert item.text in api.found(namespace, query_embedding=item.embedding, limit=3)
        assert api.found(namespace, query_text=item.text.split()[0], mode=lexical) == [item.text]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(find, random.sample(items, min(len(items), LOOKED_UP))))
    if not items:
        return
    # Without a limit every item is returned once: no deleted ones, no duplicates.
    for query in ({"query_text": "words", "mode": lexical}, {"query_embedding": items[0].embedding}, {}):
        found = Counter(api.found(namespace, limit=-1, **query))
        assert found == Counter(item.text for item in items)


def check_counts(api: Api, namespace: str) -> admin_pb2.GetNamespaceStatsResponse:
    """Check that an export has as many records as are counted, none newer than the namespace's revision."""
    stats = api.stats(namespace)
    records = list(api.memory.Export(pb.ExportRequest(namespace=namespace)))
    ids = [record.item.id for record in records if record.HasField("item")]
    keys = [record.state.key for record in records if record.HasField("state")]
    assert (len(set(ids)), len(set(keys))) == (stats.item_count, stats.state_count)
    assert len(records) == len(ids) + len(keys) == stats.item_count + stats.state_count
    assert all(record.revision <= stats.revision for record in records)
    return stats


def check_all(api: Api, writers: Sequence[Writer]) -> None:
    """Check everything that must hold after a crash."""
    check_records(api, writers)
    names = {
        info.namespace for info in api.admin.ListNamespaces(admin_pb2.ListNamespacesRequest()).namespaces
    }
    for namespace in names & {*SHARED, *OWN}:
        check_views(api, namespace)
    for namespace in names & {FACTS, DOCUMENTS}:
        check_counts(api, namespace)
    if FACTS in names:
        check_facts_found(api, writers)
    if EXPIRING in names:
        assert api.items(EXPIRING) == api.found(EXPIRING, query_text="short", limit=-1) == []
        eventually(lambda: not held(api, EXPIRING), "the sweep to go on")
        check_counts(api, EXPIRING)
    if MOVING in names:
        eventually(lambda: api.stats(MOVING).pending_count == 0, "the move to go on")
        stats = check_counts(api, MOVING)
        assert stats.embedded_count == stats.item_count


def held(api: Api, namespace: str) -> int:
    """Return how many items and states a namespace counts."""
    stats = api.stats(namespace)
    return int(stats.item_count + stats.state_count)


def check_facts_found(api: Api, writers: Sequence[Writer]) -> None:
    """Check that the facts in a list are also found."""
    for content in [content for writer in writers for content in writer.expected.facts][:5]:
        request = user_memory_pb2.SearchMemoriesRequest(namespace=FACTS, query=content, limit=3)
        assert content in [result.memory.content for result in facts(api).SearchMemories(request).results]
