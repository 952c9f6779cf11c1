"""Watch: every change in order, resumable, with heartbeats; a slow reader costs no memory."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from grpc_api import Api, Connect, decode, exactly
from memory_service.v1 import admin_pb2, state_pb2
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

MIB = 1 << 20


def watch(api: Api, namespace: str, **fields: Any) -> Iterator[pb.WatchResponse]:
    """Return an open stream, after its first message, which must be a heartbeat."""
    stream = api.memory.Watch(pb.WatchRequest(namespace=namespace, **fields))
    assert not next(stream).HasField("change")
    return stream


def changes(stream: Iterator[pb.WatchResponse], count: int) -> list[pb.Change]:
    """Return the next changes, without the heartbeats between them."""
    return list(islice((message.change for message in stream if message.HasField("change")), count))


def what(change: pb.Change) -> tuple[str, str]:
    name = pb.ChangeType.Name(change.type).removeprefix("CHANGE_TYPE_")
    return name, change.item_id or change.state_key


def change_everything(api: Api, namespace: str) -> list[tuple[str, str]]:
    """Make one change of each kind, except expiry, and return their kinds and names."""
    api.add(namespace, id="a", text="1")
    api.memory.Update(pb.UpdateRequest(namespace=namespace, item=pb.MemoryItem(id="a", text="2")))
    api.memory.Delete(pb.DeleteRequest(namespace=namespace, id="a"))
    api.save(namespace, "k", 1)
    api.save(namespace, "k", 2)
    api.state.DeleteState(state_pb2.DeleteStateRequest(namespace=namespace, key="k"))
    api.save(namespace, "l", 1)
    api.state.ClearState(state_pb2.ClearStateRequest(namespace=namespace))
    api.memory.Reset(pb.ResetRequest(namespace=namespace))
    return [
        ("ITEM_ADDED", "a"),
        ("ITEM_UPDATED", "a"),
        ("ITEM_DELETED", "a"),
        ("STATE_SAVED", "k"),
        ("STATE_SAVED", "k"),
        ("STATE_DELETED", "k"),
        ("STATE_SAVED", "l"),
        ("STATE_CLEARED", ""),
        ("RESET", ""),
    ]


def test_the_first_message_is_a_heartbeat_with_the_present_revision(api: Api, namespace: str) -> None:
    first = next(api.memory.Watch(pb.WatchRequest(namespace=namespace)))
    assert (first.HasField("change"), first.revision) == (False, 0)
    api.add_texts(namespace, "a", "b")
    first = next(api.memory.Watch(pb.WatchRequest(namespace=namespace)))
    assert (first.HasField("change"), first.revision) == (False, 2)


def test_a_quiet_stream_sends_heartbeats(api: Api, namespace: str) -> None:
    api.add(namespace, text="a")
    stream = watch(api, namespace, heartbeat_interval=Duration(nanos=100_000_000))
    beats = list(islice(stream, 3))
    assert [(beat.HasField("change"), beat.revision) for beat in beats] == [(False, 1)] * 3


def test_every_kind_of_change_is_seen_as_it_happens(api: Api, namespace: str) -> None:
    # Each change is read before the next is made, so that none is superseded.
    stream = watch(api, namespace)
    item = api.add(namespace, id="a", text="1")
    added = changes(stream, 1)[0]
    assert (what(added), exactly(added.item)) == (("ITEM_ADDED", "a"), exactly(item))
    response = api.memory.Update(pb.UpdateRequest(namespace=namespace, item=pb.MemoryItem(id="a", text="2")))
    updated = changes(stream, 1)[0]
    assert (what(updated), exactly(updated.item)) == (("ITEM_UPDATED", "a"), exactly(response.item))
    api.memory.Delete(pb.DeleteRequest(namespace=namespace, id="a"))
    deleted = changes(stream, 1)[0]
    assert (what(deleted), deleted.HasField("item")) == (("ITEM_DELETED", "a"), False)
    api.save(namespace, "k", {"n": 1}, description="a counter")
    saved = changes(stream, 1)[0]
    loaded = api.state.LoadState(state_pb2.LoadStateRequest(namespace=namespace, key="k")).entry
    assert (what(saved), exactly(saved.state)) == (("STATE_SAVED", "k"), exactly(loaded))


def test_changes_come_in_order_with_rising_revisions(api: Api, namespace: str) -> None:
    stream = watch(api, namespace)
    with ThreadPoolExecutor(1) as pool:
        # Read while writing, so that Reset does not remove the history before it is sent.
        made = pool.submit(lambda: change_everything(api, namespace)[:-1])
        api.add(namespace + "/other", text="not to be seen")
        seen = changes(stream, 1)
        while what(seen[-1]) != ("RESET", ""):
            seen += changes(stream, 1)
        expected = made.result()
    kept = [what(change) for change in seen[:-1]]
    assert kept == expected[: len(kept)]
    revisions = [change.revision for change in seen]
    assert revisions == sorted(set(revisions))
    assert revisions[-1] == 9


def test_a_message_tells_where_to_resume(api: Api, namespace: str) -> None:
    api.add_texts(namespace, *"abcdef")
    stream = watch(api, namespace, after_revision=0)
    head = list(islice((m for m in stream if m.HasField("change")), 3))
    stream.cancel()  # type: ignore[attr-defined]
    tail = changes(watch(api, namespace, after_revision=head[-1].revision), 3)
    assert [m.change.item.text for m in head] + [change.item.text for change in tail] == list("abcdef")


def test_without_a_revision_only_what_happens_from_now_on_is_sent(api: Api, namespace: str) -> None:
    api.add(namespace, text="before")
    stream = watch(api, namespace)
    api.add(namespace, text="after")
    assert changes(stream, 1)[0].item.text == "after"


def test_a_change_that_was_superseded_comes_without_its_item(api: Api, namespace: str) -> None:
    api.add(namespace, id="a", text="1")
    api.add(namespace, id="b", text="1")
    api.memory.Update(pb.UpdateRequest(namespace=namespace, item=pb.MemoryItem(id="a", text="2")))
    api.memory.Delete(pb.DeleteRequest(namespace=namespace, id="b"))
    api.save(namespace, "k", 1)
    api.save(namespace, "k", 2)
    seen = changes(watch(api, namespace, after_revision=0), 6)
    assert [(*what(c), c.HasField("item") or c.HasField("state")) for c in seen] == [
        ("ITEM_ADDED", "a", False),
        ("ITEM_ADDED", "b", False),
        ("ITEM_UPDATED", "a", True),
        ("ITEM_DELETED", "b", False),
        ("STATE_SAVED", "k", False),
        ("STATE_SAVED", "k", True),
    ]
    assert (seen[2].item.text, seen[5].state.value.number_value) == ("2", 2)


def test_after_a_reset_the_history_begins_with_it(api: Api, namespace: str) -> None:
    api.add_texts(namespace, "a", "b")
    api.memory.Reset(pb.ResetRequest(namespace=namespace))
    api.add(namespace, id="c", text="c")
    for after in (0, 1):
        seen = changes(watch(api, namespace, after_revision=after), 2)
        assert [(what(c), c.revision) for c in seen] == [(("RESET", ""), 3), (("ITEM_ADDED", "c"), 4)]


def test_expiry_is_a_change(api: Api, namespace: str) -> None:
    stream = watch(api, namespace)
    api.add(namespace, id="a", text="x", ttl=Duration(nanos=1_000_000))
    api.save(namespace, "k", 1, ttl=Duration(nanos=1_000_000))
    seen = {what(change) for change in changes(stream, 4)}
    assert {("ITEM_EXPIRED", "a"), ("STATE_EXPIRED", "k")} <= seen


def test_imported_and_batched_items_are_seen_one_by_one(api: Api, namespace: str) -> None:
    stream = watch(api, namespace)
    api.add_texts(namespace, "a", "b")
    items = [pb.MemoryItem(text="c"), pb.MemoryItem(text="d")]
    api.memory.Import(iter([pb.ImportRequest(namespace=namespace, items=items)]))
    assert [change.item.text for change in changes(stream, 4)] == list("abcd")


def test_several_readers_see_the_same(api: Api, namespace: str) -> None:
    streams = [watch(api, namespace) for _ in range(20)]
    api.add_texts(namespace, *"abc")
    seen = [[exactly(change) for change in changes(stream, 3)] for stream in streams]
    assert seen == [seen[0]] * 20


def test_a_stream_is_not_silent_for_ever_after_its_namespace_was_deleted(api: Api, namespace: str) -> None:
    # The new namespace counts from 1 again: a stream that waits for a higher revision would miss it.
    api.add_texts(namespace, "a")
    stream = watch(api, namespace)
    api.admin.DeleteNamespace(admin_pb2.DeleteNamespaceRequest(namespace=namespace))
    api.add_texts(namespace, "b")
    assert first_change_or_error(stream) in {"b", grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.NOT_FOUND}


def first_change_or_error(stream: Iterator[pb.WatchResponse]) -> object:
    try:
        return changes(stream, 1)[0].item.text
    except grpc.RpcError as error:
        return error.code()


def test_a_stream_that_is_behind_does_not_go_on_with_the_namespace_that_came_later(
    api: Api, namespace: str
) -> None:
    # Enough for flow control to stop the stream half-way; the same ids have the same revisions.
    for number in range(60):
        request = pb.AddRequest(namespace=namespace, item=binary_item(0.5))
        request.item.id = f"{number}"
        api.memory.Add(request)
    stream = watch(api, namespace, after_revision=0)
    seen = changes(stream, 1)
    api.admin.DeleteNamespace(admin_pb2.DeleteNamespaceRequest(namespace=namespace))
    later = [pb.MemoryItem(id=f"{number}", text="later") for number in range(100)]
    api.memory.BatchAdd(pb.BatchAddRequest(namespace=namespace, items=later))
    with pytest.raises(grpc.RpcError) as caught:
        for message in stream:
            seen.append(message.change)
    assert decode(caught.value).reason == "NAMESPACE_NOT_FOUND"
    assert 1 < len(seen) < 60
    assert [change.revision for change in seen] == list(range(1, len(seen) + 1))
    assert {len(change.item.chat_message.parts) for change in seen} == {1}


def test_a_revision_that_is_yet_to_come_is_one_of_another_history_and_nothing_is_missed(
    api: Api, namespace: str
) -> None:
    api.add_texts(namespace, *"abc")
    stream = api.memory.Watch(
        pb.WatchRequest(
            namespace=namespace, after_revision=50, heartbeat_interval=Duration(nanos=100_000_000)
        )
    )
    assert [(beat.HasField("change"), beat.revision) for beat in islice(stream, 2)] == [(False, 3)] * 2
    api.add_texts(namespace, *(f"{number}" for number in range(60)))
    assert [change.revision for change in changes(stream, 60)] == list(range(4, 64))


def test_a_namespace_that_is_yet_to_come_is_watched_from_its_first_change(api: Api, namespace: str) -> None:
    stream = watch(api, namespace, after_revision=1)
    api.add_texts(namespace, "a", "b")
    assert [change.item.text for change in changes(stream, 2)] == ["a", "b"]


def test_a_stream_resumes_after_a_restart_of_the_server(
    tmp_path: Path, connect: Connect, namespace: str
) -> None:
    with ServerProcess(tmp_path) as server:
        api = connect(server)
        api.add_texts(namespace, *"abcdef")
        resume_at = changes(watch(api, namespace, after_revision=0), 2)[-1].revision
        server.kill()
    with ServerProcess(tmp_path) as server:
        api = connect(server)
        stream = watch(api, namespace, after_revision=resume_at)
        assert [change.item.text for change in changes(stream, 4)] == list("cdef")
        api.add_texts(namespace, "g")
        assert changes(stream, 1)[0].item.text == "g"


def binary_item(mebibytes: float) -> pb.MemoryItem:
    binary = pb.BinaryPart(mime_type="application/octet-stream", content=bytes(int(mebibytes * MIB)))
    message = pb.ChatMessage(role=pb.ROLE_USER, parts=[pb.Part(binary=binary)])
    return pb.MemoryItem(chat_message=message)


def write_30_mib(api: Api, namespace: str) -> None:
    for _ in range(60):
        api.memory.Add(pb.AddRequest(namespace=namespace, item=binary_item(0.5)))


@pytest.mark.parametrize("store", ["hnsw", "memory"])
def test_slow_readers_do_not_grow_the_memory_of_the_server(
    tmp_path: Path, connect: Connect, store: str
) -> None:
    with ServerProcess(tmp_path, flags=["--store", store]) as server:
        writer = connect(server)
        write_30_mib(writer, "warm-up")
        start = server.resident_bytes()
        write_30_mib(writer, "no-readers")
        without_readers = server.resident_bytes() - start
        # Each has its own connection and reads only the first message.
        streams = [watch(connect(server), "readers", after_revision=0) for _ in range(8)]
        start = server.resident_bytes()
        write_30_mib(writer, "readers")
        with_readers = server.resident_bytes() - start
        assert with_readers < without_readers + 60 * MIB  # 8 buffers of 30 MiB would be 240
        seen = changes(streams[0], 60)
    assert len({change.revision for change in seen}) == 60
    assert all(len(change.item.chat_message.parts[0].binary.content) == MIB // 2 for change in seen)
