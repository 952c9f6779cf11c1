"""The Python client against a real server: every method, in both clients."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from memory_client import (
    AlreadyExists,
    AsyncMemoryClient,
    BinaryPart,
    Change,
    ChangeType,
    ChatMessage,
    Conflict,
    Content,
    HealthStatus,
    InvalidArgument,
    MemoryClient,
    MemoryItem,
    Model,
    NotFound,
    Role,
    StateEntry,
    ToolCall,
    ToolCallResult,
    chat_message,
    tool_call_result,
)
from server_process import ServerProcess

TIME = datetime(2026, 1, 31, 12, 30, 15, 123456, UTC)


@pytest.fixture
def client(server: ServerProcess, namespace: str) -> Iterator[MemoryClient]:
    with MemoryClient(server.address, namespace=namespace) as client:
        yield client


@pytest_asyncio.fixture
async def aclient(server: ServerProcess, namespace: str) -> AsyncIterator[AsyncMemoryClient]:
    async with AsyncMemoryClient(server.address, namespace=namespace) as client:
        yield client


WHOLE_MESSAGE = ChatMessage(
    Role.ASSISTANT,
    (
        "Here is what I found",
        {"found": [1, 2.5, None, {"deep": True}]},
        BinaryPart(b"\x00\xff", "image/png", "cat.png", "https://example.org/cat.png", 2),
        BinaryPart(mime_type="video/mp4", content_length=-1),
        ToolCall("search", {"q": "tea"}, "call_1"),
        ToolCallResult("search", ["tea"], "call_1", is_error=True),
    ),
    name="Bot",
    message_id="msg_1",
    model=Model("openai", "gpt-5"),
    create_time=TIME,
)


@pytest.mark.parametrize(
    "content",
    [
        "Ada likes tea",
        {"likes": ["tea"]},
        WHOLE_MESSAGE,
        tool_call_result("search", {"n": 1}, tool_call_id="c"),
    ],
    ids=["text", "data", "chat_message", "tool_call_result"],
)
def test_what_is_added_is_got_back_whole(client: MemoryClient, content: Content) -> None:
    added = client.add(
        content,
        session_id="s",
        labels={"topic": "travel"},
        metadata={"source": {"page": 3}},
        create_time=TIME,
        id="mine",
    )
    assert added.update_time is not None
    assert added == MemoryItem(
        content=content,
        id="mine",
        session_id="s",
        create_time=TIME,
        update_time=added.update_time,
        labels={"topic": "travel"},
        metadata={"source": {"page": 3}},
        revision=1,
    )
    assert client.get("mine") == added


def test_embeddings_are_returned_where_they_are_asked_for(client: MemoryClient) -> None:
    added = client.add("tea", embedding=np.array([0.5, -0.25, 1.0], dtype=np.float32))
    assert added.embedding is None
    assert client.get(added.id).embedding is None
    assert client.get(added.id, include_embedding=True).embedding == (0.5, -0.25, 1.0)
    found = client.retrieve(embedding=[0.5, -0.25, 1.0], include_embedding=True)
    assert found[0].item.embedding == (0.5, -0.25, 1.0)
    assert found[0].score == pytest.approx(1, abs=1e-5)


def test_a_time_to_live_is_a_timedelta_or_seconds(client: MemoryClient) -> None:
    for ttl in (timedelta(hours=1), 3600):
        item = client.add("x", ttl=ttl)
        assert item.expire_time is not None and item.update_time is not None
        assert abs(item.expire_time - item.update_time - timedelta(hours=1)) < timedelta(minutes=1)


def test_a_batch_is_written_whole_or_not_at_all(client: MemoryClient) -> None:
    added = client.batch_add(["a", chat_message("user", "b"), MemoryItem(content={"c": 1}, id="c")])
    assert [item.text for item in added] == ["a", "b", '{"c":1}']
    with pytest.raises(AlreadyExists) as caught:
        client.batch_add(["d", MemoryItem(content="e", id="c")])
    assert (caught.value.reason, caught.value.metadata["id"]) == ("ITEM_ALREADY_EXISTS", "c")
    assert len(list(client.list_items())) == 3


def test_the_same_request_id_writes_once(client: MemoryClient) -> None:
    first = client.add("x", request_id="r")
    assert client.add("x", request_id="r") == first
    assert [item.id for item in client.list_items()] == [first.id]


def test_a_query_finds_the_best_and_none_the_newest(client: MemoryClient) -> None:
    client.batch_add(["Ada likes green tea", "Bob plays the piano", "The train leaves at noon"])
    best = client.retrieve("piano", limit=1, explain=True)
    assert [result.text for result in best] == ["Bob plays the piano"]
    assert sum(share.contribution for share in best[0].explanation) == pytest.approx(best[0].score, abs=1e-5)
    newest = client.retrieve(limit=2)
    assert [result.text for result in newest] == ["Bob plays the piano", "The train leaves at noon"]
    assert (newest.revision, newest.degraded) == (3, ())
    assert [result.text for result in client.retrieve("tea", mode="lexical")] == ["Ada likes green tea"]


def test_filters(client: MemoryClient) -> None:
    client.add("one", session_id="s", labels={"a": "1", "b": "2"}, create_time=TIME)
    client.add("two", session_id="t", labels={"a": "1"}, create_time=TIME + timedelta(days=1))
    for find in (client.retrieve, lambda **filters: list(client.list_items(**filters))):
        assert [found.text for found in find(session_id="s")] == ["one"]
        assert [found.text for found in find(labels={"a": "1", "b": "2"})] == ["one"]
        assert [found.text for found in find(start_time=TIME + timedelta(seconds=1))] == ["two"]
        assert [found.text for found in find(end_time=TIME + timedelta(seconds=1))] == ["one"]


def test_everything_is_retrieved_over_many_pages(client: MemoryClient) -> None:
    texts = [f"number {i}" for i in range(2500)]
    client.import_items(MemoryItem(content=text) for text in texts)
    assert [result.text for result in client.retrieve(limit=-1)] == texts
    assert [result.text for result in client.retrieve(limit=1500)] == texts[-1500:]
    assert client.retrieve(limit=0) == []
    assert [item.text for item in client.list_items(page_size=1000)] == texts
    assert next(client.list_items(newest_first=True)).text == texts[-1]


def test_an_update_changes_what_is_given(client: MemoryClient) -> None:
    item = client.add("old", labels={"a": "1"}, metadata={"m": 1}, ttl=3600)
    changed = client.update(item.id, content="new", labels={}, expire_time=None)
    assert (changed.content, changed.labels, changed.metadata, changed.expire_time) == (
        "new",
        {},
        {"m": 1},
        None,
    )
    with pytest.raises(Conflict) as caught:
        client.update(item.id, content="newer", expected_revision=item.revision)
    assert caught.value.reason == "REVISION_MISMATCH"
    assert caught.value.metadata["current_revision"] == str(changed.revision)
    assert client.update(item.id, session_id="s", expected_revision=changed.revision).session_id == "s"
    assert client.get(item.id).content == "new"


def test_delete_and_reset(client: MemoryClient) -> None:
    first, _ = client.batch_add(["a", "b"])
    with pytest.raises(Conflict):
        client.delete(first.id, expected_revision=99)
    assert client.delete(first.id) == 3
    with pytest.raises(NotFound) as caught:
        client.get(first.id)
    assert caught.value.reason == "ITEM_NOT_FOUND"
    client.save_state("k", 1)
    removed = client.reset()
    assert (removed.item_count, removed.state_count) == (1, 1)
    assert client.retrieve(limit=-1) == []


def test_a_namespace_of_its_own_over_the_same_channel(client: MemoryClient, namespace: str) -> None:
    client.add("here")
    with client.namespace(namespace + "/other") as other:
        other.add("there")
        assert [result.text for result in other.retrieve()] == ["there"]
    assert [result.text for result in client.retrieve()] == ["here"]


@pytest.mark.parametrize("name", ["", "../../etc", " a", "a//b"])
def test_a_namespace_that_cannot_be_is_refused(client: MemoryClient, name: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        client.namespace(name).add("x")
    assert caught.value.field == "namespace"


def test_an_import_is_resumable(client: MemoryClient) -> None:
    records = [MemoryItem(content=f"n{i}", id=f"i{i}") for i in range(10)] + [StateEntry(key="k", value=None)]
    first = client.import_items(records[:5])
    assert (first.imported_count, first.skipped_count) == (5, 0)
    again = client.import_items(records, on_duplicate="skip", batch_records=3)
    assert (again.imported_count, again.skipped_count, again.imported_state_count) == (5, 5, 1)
    with pytest.raises(AlreadyExists):
        client.import_items(records)
    replaced = client.import_items(records, on_duplicate="replace")
    assert (replaced.imported_count, replaced.imported_state_count) == (10, 1)


def test_an_import_of_nothing(client: MemoryClient) -> None:
    assert client.import_items([]).imported_count == 0


def test_an_export_is_imported_exactly(client: MemoryClient, namespace: str) -> None:
    # First, so that the namespace stores vectors of clients.
    client.add("vector", embedding=[1.0, 0.5, 0.25], id="v")
    client.add(WHOLE_MESSAGE, session_id="s", labels={"a": "b"}, metadata={"m": 1}, create_time=TIME)
    client.save_state("plan", {"step": 1}, description="d")
    records = list(client.export(include_embedding=True))
    copy = client.namespace(namespace + "/copy")
    copy.import_items(records)
    copied = list(copy.export(include_embedding=True))
    assert [essence(record) for record in copied] == [essence(record) for record in records]
    last = records[-1].revision
    assert list(client.export(after_revision=last - 1)) == records[-1:]


def essence(record: MemoryItem | StateEntry) -> object:
    """Return what an import keeps: everything except the fields that the server sets on each write."""
    if isinstance(record, StateEntry):
        return record.key, record.value, record.description, record.expire_time
    kept = ("id", "session_id", "content", "create_time", "expire_time", "labels", "metadata", "embedding")
    return [getattr(record, name) for name in kept]


def test_a_watch_tells_every_change(client: MemoryClient) -> None:
    item = client.add("a")
    client.update(item.id, content="b")
    client.save_state("k", 1)
    client.delete_state("k")
    client.delete(item.id)
    changes = list(islice(client.watch(after_revision=0), 5))
    assert [change.type for change in changes] == [
        ChangeType.ITEM_ADDED,
        ChangeType.ITEM_UPDATED,
        ChangeType.STATE_SAVED,
        ChangeType.STATE_DELETED,
        ChangeType.ITEM_DELETED,
    ]
    assert [change.item_id or change.state_key for change in changes] == [item.id, item.id, "k", "k", item.id]


def test_a_watch_tells_changes_as_they_happen(client: MemoryClient) -> None:
    revision = client.add("before").revision
    watching = client.watch(after_revision=revision)
    seen: list[Change] = []
    reader = threading.Thread(target=lambda: seen.append(next(watching)))
    reader.start()
    client.add("after")
    reader.join()
    assert seen[0].item is not None
    assert seen[0].item.text == "after"


def test_a_watch_outlives_its_server(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as first, MemoryClient(first.address, namespace="n") as client:
        client.add("before")
        changes = client.watch(after_revision=0)
        assert next(changes).item_id
        first.kill()
        restarted = ServerProcess(tmp_path, flags=["--address", first.address])
        with restarted:
            assert restarted.address == first.address
            with MemoryClient(first.address, namespace="n") as other:
                other.add("after")
            change = next(changes)
            assert change.item is not None
            assert change.item.text == "after"


def test_state_is_versioned(client: MemoryClient) -> None:
    assert client.save_state("plan", {"step": 1}, expected_version=0, description="d").version == 1
    assert client.save_state("plan", {"step": 2}, expected_version=1, ttl=3600).version == 2
    with pytest.raises(Conflict) as caught:
        client.save_state("plan", {}, expected_version=1)
    assert (caught.value.reason, caught.value.metadata["current_version"]) == ("VERSION_MISMATCH", "2")
    entry = client.load_state("plan")
    assert (entry.value, entry.version, entry.description) == ({"step": 2}, 2, "d")
    assert entry.expire_time is not None


def test_state_is_listed_searched_and_removed(client: MemoryClient) -> None:
    for key, value in (("plan/a", None), ("plan/b", "text"), ("other", [1])):
        client.save_state(key, value)
    assert [entry.key for entry in client.list_state_keys()] == ["other", "plan/a", "plan/b"]
    assert [entry.preview for entry in client.list_state_keys(include_preview=True)] == [
        "[1]",
        "null",
        '"text"',
    ]
    assert [entry.key for entry in client.list_state_keys(page_size=1)] == ["other", "plan/a", "plan/b"]
    assert [(entry.key, entry.value) for entry in client.search_state("plan/*")] == [
        ("plan/a", None),
        ("plan/b", "text"),
    ]
    client.delete_state("plan/a", expected_version=1)
    with pytest.raises(NotFound) as caught:
        client.load_state("plan/a")
    assert caught.value.reason == "STATE_NOT_FOUND"
    assert client.clear_state().state_count == 2


def test_administration(client: MemoryClient, namespace: str) -> None:
    with pytest.raises(NotFound) as caught:
        client.namespace_stats()
    assert caught.value.reason == "NAMESPACE_NOT_FOUND"
    client.add("a")
    stats = client.namespace_stats()
    assert (stats.namespace, stats.item_count, stats.revision) == (namespace, 1, 1)
    assert (stats.embedded_count, stats.pending_count) == (1, 0)
    moved = client.reembed()
    assert (moved.pending_count, moved.embedding_model, moved.revision) == (0, stats.embedding_model, 1)
    assert [found.namespace for found in client.list_namespaces(prefix=namespace)] == [namespace]
    info = client.info()
    assert info.store == "hnsw"
    assert info.start_time is not None and info.start_time.tzinfo is UTC
    assert info.limits
    assert client.health() is HealthStatus.SERVING
    assert client.flush() >= timedelta()
    backup = client.backup()
    assert backup.size_bytes > 0
    assert client.delete_namespace().item_count == 1
    assert client.retrieve() == []


async def test_the_async_client_does_the_same(aclient: AsyncMemoryClient) -> None:
    added = await aclient.add(chat_message("user", "I like tea", name="Ada"), session_id="s")
    assert await aclient.get(added.id) == added
    await aclient.batch_add(["piano", "train"])
    assert [result.text for result in await aclient.retrieve("tea", limit=1)] == ["I like tea"]
    assert [item.text async for item in aclient.list_items(page_size=1)] == ["I like tea", "piano", "train"]
    changed = await aclient.update(added.id, content="I like coffee")
    assert changed.text == "I like coffee"
    with pytest.raises(NotFound):
        await aclient.delete("no such item")
    changes = aclient.watch(after_revision=0)
    assert (await anext(changes)).type is ChangeType.ITEM_ADDED
    assert [record.revision async for record in aclient.export()] == [2, 3, 4]
    assert (await aclient.reset()).item_count == 3


async def test_the_async_client_imports_both_kinds_of_iterables(aclient: AsyncMemoryClient) -> None:
    async def stream() -> AsyncIterator[MemoryItem | StateEntry]:
        for number in range(10):
            yield MemoryItem(content=f"n{number}")

    assert (await aclient.import_items(stream(), batch_records=3)).imported_count == 10
    assert (await aclient.import_items([StateEntry(key="k", value=1)])).imported_state_count == 1
    assert len(await aclient.retrieve(limit=-1)) == 10


def test_values_of_a_label_are_listed_page_by_page(client: MemoryClient) -> None:
    client.batch_add([MemoryItem(content="x", labels={"k": value}) for value in ("b", "c", "a", "b")])
    listed = [(found.value, found.count) for found in client.list_label_values("k", page_size=1)]
    assert listed == [("a", 1), ("b", 2), ("c", 1)]
    assert [found.value for found in client.list_label_values("k", prefix="b")] == ["b"]


async def test_the_async_client_keeps_state_and_administers(
    aclient: AsyncMemoryClient, namespace: str
) -> None:
    assert (await aclient.save_state("k", [1, None])).version == 1
    assert (await aclient.load_state("k")).value == [1, None]
    assert [entry.key async for entry in aclient.list_state_keys()] == ["k"]
    assert [entry.value async for entry in aclient.search_state("?")] == [[1, None]]
    assert await aclient.delete_state("k") == 2
    assert (await aclient.clear_state()).state_count == 0
    assert (await aclient.info()).version
    assert [found.namespace async for found in aclient.list_namespaces(prefix=namespace)] == [namespace]
    assert (await aclient.namespace_stats()).item_count == 0
    assert (await aclient.reembed()).pending_count == 0
    assert await aclient.health() is HealthStatus.SERVING
    assert await aclient.flush() >= timedelta()
    assert (await aclient.backup()).size_bytes > 0
    await aclient.namespace(namespace).delete_namespace()
