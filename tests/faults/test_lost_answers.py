"""Responses that never arrive: a repeated request is applied once and answered as the first time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from faults.cutting_proxy import CuttingProxy
from faults.scale import drawn, rounds
from file_api import Drive
from grpc_api import METHODS, SMALL_GRAPHS, Api, eventually, path, refusal, valid_request
from knowledge_api import Library
from memory_service.v1 import memory_pb2 as pb
from memory_service.v1 import overseer_pb2
from server_process import ServerProcess
from test_result_storage import asked
from test_user_memory_retries import told
from test_user_memory_retries import writes as memory_writes
from user_memories import User

# An undo proceeds in steps, and a concurrent one does the rest: see test_undo_killed.py.
REPEATABLE = [
    method
    for method in METHODS
    if "request_id" in method.input_type.fields_by_name and method.name != "UndoWrites"
]
TELLING_WHAT_WAS_WRITTEN = {
    "SaveMemory",
    "ExtractMemories",
    "ConsolidateMemories",
}
"""RPCs whose repeated response agrees in what was written, but not in how it was decided."""


def prepared(api: Api, namespace: str, method: MethodDescriptor) -> Message:
    """Return a request that writes, to a namespace that has what it needs."""
    api.add(namespace, id="old", text="old")
    api.save(namespace, "old", "old")
    library, users = Library(api, namespace), memory_writes(User(api, namespace))
    library.add("book")
    Drive(api, namespace).write("/file", "Otters swim.")
    library.says("Otters sleep holding hands.")
    request: Any = valid_request(method, namespace)
    if method.name in users:
        request = users[method.name]
    elif method.name == "EvaluateForStorage":
        request = asked(namespace, save=True)
    elif method.name == "HandleMessage":
        request = library.message()
    elif method.name in ("UpdateSession", "DeleteSession", "ForkSession"):
        api.add(namespace, session_id="s", text="said")
    elif method.name == "DeleteWhere":
        request.ClearField("session_id")
        request.kinds.append(pb.ITEM_KIND_UNSPECIFIED)
    request.request_id = "r-1"
    return request


def raw(api: Api, method: MethodDescriptor, request: Message) -> bytes:
    """Return the response as it is on the wire."""
    call = api.channel.unary_unary(path(method), request_serializer=lambda r: r.SerializeToString())
    answer: bytes = call(request)
    return answer


def as_promised(method: MethodDescriptor, answer: bytes) -> Any:
    """Return the part of a response that must be the same when a request is repeated."""
    if method.name in TELLING_WHAT_WAS_WRITTEN:
        return told(GetMessageClass(method.output_type).FromString(answer))
    return answer


def what_was_saved(answer: bytes) -> Any:
    told = overseer_pb2.EvaluateForStorageResponse.FromString(answer)
    return told.should_save, told.key, told.saved, told.entry, told.revision


def held(api: Api, namespace: str) -> tuple[int, ...]:
    """Return counts that would show a second effect."""
    stats = api.stats(namespace)
    return stats.revision, stats.item_count, stats.state_count


def lose_the_answer(
    api: Api, proxy: CuttingProxy, method: MethodDescriptor, request: Any, pool: ThreadPoolExecutor
) -> Any:
    """Send a request whose response is lost after its commit, and meanwhile send it again."""
    before = held(api, request.namespace)
    proxy.pass_all()
    lossy = Api.connect(proxy.address)
    grpc.channel_ready_future(lossy.channel).result(30)
    proxy.hold_answers()
    lost = pool.submit(raw, lossy, method, request)
    eventually(lambda: held(api, request.namespace) != before, f"{method.name} to be committed")
    after = held(api, request.namespace)
    hedges = [pool.submit(raw, api, method, request) for _ in range(3)]
    answers = [as_promised(method, hedge.result()) for hedge in hedges]
    assert answers == [answers[0]] * 3, method.name
    if method.name not in TELLING_WHAT_WAS_WRITTEN:
        eventually(
            lambda: answers[0] in proxy.answers.withheld, f"{method.name} to answer the first call alike"
        )
    proxy.cut()
    with pytest.raises(grpc.RpcError) as error:
        lost.result()
    assert error.value.code() is grpc.StatusCode.UNAVAILABLE, method.name
    lossy.channel.close()
    assert held(api, request.namespace) == after, method.name
    return answers[0]


def test_an_answer_that_was_lost_is_given_again_whatever_was_asked(tmp_path: Path) -> None:
    first, requests = {}, {}
    with ServerProcess(tmp_path, env=SMALL_GRAPHS) as server, ThreadPoolExecutor(4) as pool:
        api = Api.connect(server.address)
        with CuttingProxy(server.address) as proxy:
            for method in REPEATABLE:
                requests[method.name] = prepared(api, f"lost/{method.name}", method)
                first[method.name] = lose_the_answer(api, proxy, method, requests[method.name], pool)
        after = {name: held(api, f"lost/{name}") for name in requests}
        server.kill()
        api.channel.close()
    with ServerProcess(tmp_path, env=SMALL_GRAPHS) as server:
        api = Api.connect(server.address)
        for method in REPEATABLE:
            request = requests[method.name]
            answer = as_promised(method, raw(api, method, request))
            if method.name == "EvaluateForStorage":
                # The reason is forgotten with the process, the saved data is not.
                assert what_was_saved(answer) == what_was_saved(first[method.name])
            else:
                assert answer == first[method.name], method.name
            other = pb.AddRequest(
                namespace=request.namespace, item=pb.MemoryItem(text="other"), request_id="r-1"
            )
            assert refusal(api.memory.Add, other).reason == "REQUEST_ID_REUSED", method.name
        assert {name: held(api, f"lost/{name}") for name in requests} == after
        api.channel.close()


def until_answered(call: Callable[[], Any], again: Callable[[], Any]) -> Any:
    """Make a call, and repeat it as long as its connection is cut."""
    while True:
        try:
            return call()
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE:
                raise
            again()


def test_connections_that_are_cut_anywhere_leave_each_write_once(
    server: ServerProcess, namespace: str
) -> None:
    chance = drawn("cuts")
    api = Api.connect(server.address)
    count = rounds(30, 500)
    with CuttingProxy(server.address) as proxy:
        for number in range(count):
            request = pb.BatchAddRequest(
                namespace=namespace,
                items=[pb.MemoryItem(text=f"{number} {half}" * 20) for half in range(2)],
                request_id=f"r-{number}",
            )
            proxy.pass_all()
            way = chance.choice([proxy.requests, proxy.answers])
            way.bytes_left, way.cuts = chance.randint(0, 1500), True
            lossy = Api.connect(proxy.address)
            answer = until_answered(lambda: lossy.memory.BatchAdd(request), proxy.pass_all)  # noqa: B023
            lossy.channel.close()
            assert api.memory.BatchAdd(request) == answer
    assert [item.text[: -len(item.text) * 19 // 20] for item in api.items(namespace)] == [
        f"{number} {half}" for number in range(count) for half in range(2)
    ]
    api.channel.close()
