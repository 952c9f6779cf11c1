"""A request_id makes a retry safe: applied once, same response, also concurrently or after a restart."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from operator import attrgetter
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message

from grpc_api import Api, Connect, exactly, json_value, refusal, texts_of
from memory_service.v1 import admin_pb2, state_pb2
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

WRITES = (
    "memory.Add",
    "memory.BatchAdd",
    "memory.Update",
    "memory.Delete",
    "memory.Reset",
    "state.SaveState",
    "state.DeleteState",
    "state.RenameState",
    "state.ClearState",
)


def request_of(rpc: str, namespace: str) -> Message:
    """A write with a request_id, to a namespace that holds an item and a state called "old"."""
    common: dict[str, Any] = {"namespace": namespace, "request_id": "r-1"}
    items = [pb.MemoryItem(text="x"), pb.MemoryItem(text="y")]
    requests: dict[str, Message] = {
        "memory.Add": pb.AddRequest(item=items[0], **common),
        "memory.BatchAdd": pb.BatchAddRequest(items=items, **common),
        "memory.Update": pb.UpdateRequest(item=pb.MemoryItem(id="old", text="new"), **common),
        "memory.Delete": pb.DeleteRequest(id="old", **common),
        "memory.Reset": pb.ResetRequest(**common),
        "state.SaveState": state_pb2.SaveStateRequest(key="k", value=json_value(1), **common),
        "state.DeleteState": state_pb2.DeleteStateRequest(key="old", **common),
        "state.RenameState": state_pb2.RenameStateRequest(key="old", new_key="k", **common),
        "state.ClearState": state_pb2.ClearStateRequest(**common),
    }
    return requests[rpc]


def call(api: Api, rpc: str, request: Message) -> Message:
    response: Message = attrgetter(rpc)(api)(request)
    return response


def with_an_old_item_and_state(api: Api, namespace: str) -> None:
    api.add(namespace, id="old", text="old")
    api.save(namespace, "old", "old")


@pytest.mark.parametrize("rpc", WRITES)
def test_a_repeated_request_is_applied_once_and_answered_alike(api: Api, namespace: str, rpc: str) -> None:
    with_an_old_item_and_state(api, namespace)
    request = request_of(rpc, namespace)
    first, before = call(api, rpc, request), api.stats(namespace)
    assert exactly(call(api, rpc, request)) == exactly(first)
    assert api.stats(namespace) == before


@pytest.mark.parametrize("rpc", WRITES)
@pytest.mark.parametrize("other", ["memory.Add", "state.SaveState"])
def test_a_request_id_with_another_body_is_refused(api: Api, namespace: str, rpc: str, other: str) -> None:
    with_an_old_item_and_state(api, namespace)
    first = call(api, rpc, request_of(rpc, namespace))
    before = api.stats(namespace)
    bodies: dict[str, Message] = {
        "memory.Add": pb.AddRequest(item=pb.MemoryItem(text="z"), request_id="r-1", namespace=namespace),
        "state.SaveState": state_pb2.SaveStateRequest(
            key="z", value=json_value(2), request_id="r-1", namespace=namespace
        ),
    }
    error = refusal(attrgetter(other)(api), bodies[other])
    assert (error.code, error.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "REQUEST_ID_REUSED")
    assert error.metadata == {"request_id": "r-1"}
    assert api.stats(namespace) == before
    assert exactly(call(api, rpc, request_of(rpc, namespace))) == exactly(first)


def test_requests_are_remembered_after_a_restart(tmp_path: Path, connect: Connect) -> None:
    namespaces = {rpc: f"ns/{rpc}" for rpc in WRITES}
    with ServerProcess(tmp_path) as server:
        api = connect(server)
        for namespace in namespaces.values():
            with_an_old_item_and_state(api, namespace)
        first = {rpc: exactly(call(api, rpc, request_of(rpc, ns))) for rpc, ns in namespaces.items()}
        before = [api.stats(namespace).revision for namespace in namespaces.values()]
        server.kill()
    with ServerProcess(tmp_path) as server:
        api = connect(server)
        again = {rpc: exactly(call(api, rpc, request_of(rpc, ns))) for rpc, ns in namespaces.items()}
        altered = pb.AddRequest(
            namespace=namespaces["memory.Add"], item=pb.MemoryItem(text="other"), request_id="r-1"
        )
        assert refusal(api.memory.Add, altered).reason == "REQUEST_ID_REUSED"
        assert [api.stats(namespace).revision for namespace in namespaces.values()] == before
    assert again == first


def test_one_request_sent_twenty_times_at_once_is_applied_once(api: Api, namespace: str) -> None:
    request = pb.AddRequest(namespace=namespace, item=pb.MemoryItem(text="x"), request_id="r")
    with ThreadPoolExecutor(20) as pool:
        answers = {exactly(response) for response in pool.map(api.memory.Add, [request] * 20)}
    assert len(answers) == 1
    assert len(api.items(namespace)) == 1


def everybodys(namespace: str) -> admin_pb2.UndoWritesRequest:
    """Return an undo of all writes so far."""
    request = admin_pb2.UndoWritesRequest(namespace=namespace, any_writer=True, request_id="r-1")
    request.since.FromSeconds(1)
    return request


@pytest.mark.parametrize("rpc", ["memory.Reset", "state.ClearState", "admin.UndoWrites"])
def test_what_had_nothing_to_remove_removes_nothing_when_it_is_repeated(
    api: Api, namespace: str, rpc: str
) -> None:
    """The namespace was empty before, but a late retry must not remove later writes."""
    request = everybodys(namespace) if rpc == "admin.UndoWrites" else request_of(rpc, namespace)
    first = call(api, rpc, request)
    with_an_old_item_and_state(api, namespace)
    assert exactly(call(api, rpc, request)) == exactly(first)
    assert texts_of(api.items(namespace)) == ["old"]
    assert api.state.LoadState(state_pb2.LoadStateRequest(namespace=namespace, key="old")).entry.key == "old"


def test_one_undo_sent_several_times_at_once_answers_each_with_all_that_it_did(
    api: Api, namespace: str
) -> None:
    """It takes several steps, between which other writes happen."""
    for _ in range(2):
        api.add_texts(namespace, *(str(number) for number in range(500)))
    with ThreadPoolExecutor(4) as pool:
        answers = {
            exactly(response) for response in pool.map(api.admin.UndoWrites, [everybodys(namespace)] * 4)
        }
    assert len(answers) == 1
    assert api.admin.UndoWrites(everybodys(namespace)).removed_count == 1000
    assert api.items(namespace) == []


def test_a_replay_does_not_bring_back_what_was_deleted(api: Api, namespace: str) -> None:
    request = pb.AddRequest(namespace=namespace, item=pb.MemoryItem(text="x"), request_id="r")
    first = api.memory.Add(request)
    api.memory.Delete(pb.DeleteRequest(namespace=namespace, id=first.item.id))
    assert exactly(api.memory.Add(request)) == exactly(first)
    assert api.items(namespace) == []


def test_a_request_id_belongs_to_its_namespace(api: Api, namespace: str) -> None:
    for name in (namespace, namespace + "/b"):
        item = pb.MemoryItem(text=name)
        api.memory.Add(pb.AddRequest(namespace=name, item=item, request_id="r"))
        assert texts_of(api.items(name)) == [name]


def test_a_refused_request_may_be_sent_again(api: Api, namespace: str) -> None:
    api.add(namespace, id="a", text="in the way")
    request = pb.AddRequest(namespace=namespace, item=pb.MemoryItem(id="a", text="x"), request_id="r")
    assert refusal(api.memory.Add, request).reason == "ITEM_ALREADY_EXISTS"
    api.memory.Delete(pb.DeleteRequest(namespace=namespace, id="a"))
    assert api.memory.Add(request).item.text == "x"
