"""The Python client's behaviour when a server refuses, fails, is down or comes back.

The servers are gRPC's own, with handlers of a few lines: a real one rarely fails.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Self

import grpc
import pytest
from google.protobuf import any_pb2
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

import memory_client
from both_clients import connected
from memory_client import (
    AsyncMemoryClient,
    Conflict,
    DeadlineExceeded,
    InvalidArgument,
    LimitExceeded,
    MemoryClient,
    MemoryItem,
    MemoryServiceError,
    Unavailable,
)
from memory_client._calls.call import Event
from memory_client._calls.resume import Resumption
from memory_client._gen.memory_service.v1 import memory_pb2
from memory_client._status import error_from_status

Handler = Callable[[Any, grpc.ServicerContext], Any]
DOMAIN = "memory_service.v1"


def details(code: int, *messages: Message) -> tuple[tuple[str, bytes], ...]:
    """Return the trailing metadata of an error with these details."""
    status = status_pb2.Status(code=code, message="text")
    for message in messages:
        packed = any_pb2.Any()
        packed.Pack(message)
        status.details.append(packed)
    return (("grpc-status-details-bin", status.SerializeToString()),)


def refuse(context: grpc.ServicerContext, code: grpc.StatusCode, text: str, *messages: Message) -> None:
    context.set_trailing_metadata(details(code.value[0], *messages))
    context.abort(code, text)


class Server:
    """A gRPC server with the given handlers for methods of MemoryService."""

    def __init__(self, address: str = "127.0.0.1:0", **handlers: Handler) -> None:
        kinds = {
            "Watch": grpc.unary_stream_rpc_method_handler,
            "Export": grpc.unary_stream_rpc_method_handler,
            "Import": grpc.stream_unary_rpc_method_handler,
        }
        methods = memory_pb2.DESCRIPTOR.services_by_name["MemoryService"].methods_by_name
        rpcs: dict[str, Any] = {
            name: kinds.get(name, grpc.unary_unary_rpc_method_handler)(
                handler,
                request_deserializer=getattr(memory_pb2, methods[name].input_type.name).FromString,
                response_serializer=lambda response: response.SerializeToString(),
            )
            for name, handler in handlers.items()
        }
        self._server = grpc.server(ThreadPoolExecutor(4), options=[("grpc.so_reuseport", 0)])
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("memory_service.v1.MemoryService", rpcs),)
        )
        self.address = f"127.0.0.1:{self._server.add_insecure_port(address)}"

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.stop(None).wait()


def refused_with(code: grpc.StatusCode, *messages: Message) -> MemoryServiceError:
    """Return the error that a client raises for an Add that is refused like this."""
    handler: Handler = lambda request, context: refuse(context, code, "text", *messages)
    with Server(Add=handler) as server, MemoryClient(server.address, max_attempts=1) as client:
        with pytest.raises(MemoryServiceError) as caught:
            client.add("x")
        return caught.value


def test_an_error_carries_reason_metadata_and_field() -> None:
    error = refused_with(
        grpc.StatusCode.INVALID_ARGUMENT,
        error_details_pb2.ErrorInfo(
            reason="DIMENSION_MISMATCH", domain=DOMAIN, metadata={"expected": "256", "actual": "3"}
        ),
        error_details_pb2.BadRequest(
            field_violations=[error_details_pb2.BadRequest.FieldViolation(field="item.embedding")]
        ),
    )
    assert type(error) is InvalidArgument
    assert (error.code, error.reason, error.field) == (
        "INVALID_ARGUMENT",
        "DIMENSION_MISMATCH",
        "item.embedding",
    )
    assert error.metadata == {"expected": "256", "actual": "3"}
    assert error.retry_after_s is None
    assert str(error) == "text"


def test_an_error_carries_when_to_retry() -> None:
    retry = error_details_pb2.RetryInfo()
    retry.retry_delay.FromMilliseconds(1500)
    info = error_details_pb2.ErrorInfo(reason="ERROR_REASON_OVERLOADED", domain=DOMAIN)
    error = refused_with(grpc.StatusCode.RESOURCE_EXHAUSTED, info, retry)
    assert type(error) is LimitExceeded
    assert (error.reason, error.retry_after_s) == ("OVERLOADED", 1.5)


class FailsTwice:
    """Refuses the first two calls."""

    def __init__(self, code: grpc.StatusCode, **metadata: str) -> None:
        self._code, self._metadata = code, tuple(metadata.items())
        self.tried = 0

    def __call__(self, request: memory_pb2.AddRequest, context: grpc.ServicerContext) -> Any:
        self.tried += 1
        if self.tried <= 2:
            context.set_trailing_metadata([(key.replace("_", "-"), value) for key, value in self._metadata])
            context.abort(self._code, "not now")
        return memory_pb2.AddResponse(item=request.item)


@pytest.mark.parametrize(
    ("code", "metadata"),
    [
        (grpc.StatusCode.UNAVAILABLE, {}),
        (grpc.StatusCode.CANCELLED, {}),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, {"grpc_retry_pushback_ms": "1"}),
    ],
)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_what_may_pass_is_tried_again_however_large_it_is(
    kind: str, code: grpc.StatusCode, metadata: dict[str, str]
) -> None:
    fails = FailsTwice(code, **metadata)
    with Server(Add=fails) as server, contextmanager(connected)(server.address, "ns", kind) as client:
        client.add("x" * 3_000_000)
    assert fails.tried == 3


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_what_the_server_never_wants_again_is_tried_once(kind: str) -> None:
    fails = FailsTwice(grpc.StatusCode.RESOURCE_EXHAUSTED, grpc_retry_pushback_ms="-1")
    with Server(Add=fails) as server, contextmanager(connected)(server.address, "ns", kind) as client:
        with pytest.raises(LimitExceeded):
            client.add("x")
    assert fails.tried == 1


@pytest.mark.parametrize("code", [c for c in grpc.StatusCode if c is not grpc.StatusCode.OK])
def test_every_code_has_an_error(code: grpc.StatusCode) -> None:
    error = error_from_status(code.name, "text", ())
    assert error.code == code.name
    assert isinstance(error, MemoryServiceError)
    assert type(error).__name__ in memory_client.__all__


@pytest.mark.parametrize(
    "trailers",
    [(), (("grpc-status-details-bin", b"\xff\xff"),), (("grpc-status-details-bin", "text"),), (("x", b"y"),)],
)
def test_details_that_cannot_be_read_leave_code_and_text(trailers: Any) -> None:
    error = error_from_status("ABORTED", "text", trailers)
    assert type(error) is Conflict
    assert (str(error), error.reason, dict(error.metadata)) == ("text", "", {})


def test_reasons_of_another_domain_are_not_taken_for_ours() -> None:
    info = error_details_pb2.ErrorInfo(reason="ITEM_NOT_FOUND", domain="proxy.example.org")
    assert error_from_status("UNAVAILABLE", "text", details(14, info)).reason == ""


def test_no_error_shows_grpc() -> None:
    error = refused_with(grpc.StatusCode.INTERNAL)
    assert error.__cause__ is None
    assert error.__suppress_context__


# While it stops, gRPC's server refuses new calls with CANCELLED.
@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED])
def test_a_call_is_retried_with_the_same_request_id_while_the_server_is_unavailable(
    code: grpc.StatusCode,
) -> None:
    seen: list[str] = []

    def add(request: memory_pb2.AddRequest, context: grpc.ServicerContext) -> memory_pb2.AddResponse:
        seen.append(request.request_id)
        if len(seen) < 3:
            context.abort(code, "not yet")
        return memory_pb2.AddResponse(item=request.item)

    with Server(Add=add) as server, MemoryClient(server.address) as client:
        assert client.add("x").text == "x"
    assert len(seen) == 3
    assert len(set(seen)) == 1


def test_an_import_is_not_retried() -> None:
    attempts: list[int] = []

    def unavailable(requests: Iterator[Any], context: grpc.ServicerContext) -> None:
        attempts.append(len(list(requests)))
        context.abort(grpc.StatusCode.UNAVAILABLE, "no")

    with Server(Import=unavailable) as server, MemoryClient(server.address) as client:
        with pytest.raises(Unavailable):
            client.import_items([MemoryItem(content="x")])
    assert attempts == [1]


def count_items(requests: Iterator[Any], context: grpc.ServicerContext) -> memory_pb2.ImportResponse:
    return memory_pb2.ImportResponse(imported_count=sum(len(request.items) for request in requests))


def broken_records() -> Iterator[MemoryItem]:
    yield MemoryItem(content="x")
    yield MemoryItem(content="y")
    raise ValueError("line 3 is bad")


def test_an_import_whose_records_fail_raises_what_they_raise() -> None:
    with Server(Import=count_items) as server, MemoryClient(server.address) as client:
        with pytest.raises(ValueError, match="line 3 is bad"):
            client.import_items(broken_records(), batch_records=1)


async def test_an_async_import_whose_records_fail_raises_what_they_raise() -> None:
    with Server(Import=count_items) as server:
        async with AsyncMemoryClient(server.address) as client:
            with pytest.raises(ValueError, match="line 3 is bad"):
                await client.import_items(broken_records(), batch_records=1)


def refuse_import(requests: Iterator[Any], context: grpc.ServicerContext) -> None:
    next(requests)
    refuse(context, grpc.StatusCode.ALREADY_EXISTS, "there is one")


def endless_records() -> Iterator[MemoryItem]:
    while True:
        yield MemoryItem(content="x" * 1000)


def test_an_import_that_is_refused_ends_though_records_are_left() -> None:
    with Server(Import=refuse_import) as server, MemoryClient(server.address) as client:
        with pytest.raises(memory_client.AlreadyExists):
            client.import_items(endless_records())


async def test_an_async_import_that_is_refused_ends_though_records_are_left() -> None:
    with Server(Import=refuse_import) as server:
        async with AsyncMemoryClient(server.address) as client:
            with pytest.raises(memory_client.AlreadyExists):
                await client.import_items(endless_records())


async def test_an_async_import_can_be_cancelled() -> None:
    begun = asyncio.Event()

    async def stalled() -> AsyncIterator[MemoryItem]:
        yield MemoryItem(content="x")
        begun.set()
        await asyncio.Event().wait()

    with Server(Import=count_items) as server:
        async with AsyncMemoryClient(server.address) as client:
            importing = asyncio.create_task(client.import_items(stalled(), batch_records=1))
            await begun.wait()
            importing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await importing


def test_a_call_without_an_answer_ends_at_its_deadline() -> None:
    def hang(request: Any, context: grpc.ServicerContext) -> None:
        ended = threading.Event()
        context.add_callback(ended.set)
        ended.wait()

    with Server(Get=hang) as server, MemoryClient(server.address, timeout_s=0.1) as client:
        with pytest.raises(DeadlineExceeded):
            client.get("x")


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with MemoryClient("127.0.0.1:1", max_attempts=1) as client:
        with pytest.raises(Unavailable) as caught:
            client.add("x")
        assert caught.value.reason == ""
        with pytest.raises(Unavailable):
            next(client.watch())


def item_added(revision: int, *, sent_to: int | None = None) -> memory_pb2.WatchResponse:
    """Return the change of one item; `sent_to` is the last revision that is complete with it."""
    change = memory_pb2.Change(
        type=memory_pb2.CHANGE_TYPE_ITEM_ADDED, revision=revision, item_id=f"i{revision}"
    )
    return memory_pb2.WatchResponse(change=change, revision=revision if sent_to is None else sent_to)


class BreakingWatch:
    """Sends changes 1, 2, 3, … after the requested revision, and fails after each except the last."""

    def __init__(self) -> None:
        self.asked: list[int | None] = []

    def __call__(self, request: Any, context: grpc.ServicerContext) -> Iterator[memory_pb2.WatchResponse]:
        after = request.after_revision if request.HasField("after_revision") else None
        self.asked.append(after)
        yield memory_pb2.WatchResponse(revision=after or 0)
        yield item_added((after or 0) + 1)
        if len(self.asked) < 3:
            context.abort(grpc.StatusCode.UNAVAILABLE, "the server is stopping")


def test_a_watch_goes_on_where_it_broke() -> None:
    handler = BreakingWatch()
    with Server(Watch=handler) as server, MemoryClient(server.address) as client:
        assert [change.revision for change in client.watch()] == [1, 2, 3]
    assert handler.asked == [None, 1, 2]


async def test_an_async_watch_goes_on_where_it_broke() -> None:
    handler = BreakingWatch()
    with Server(Watch=handler) as server:
        async with AsyncMemoryClient(server.address) as client:
            assert [change.item_id async for change in client.watch()] == ["i1", "i2", "i3"]
    assert handler.asked == [None, 1, 2]


def test_a_watch_that_breaks_inside_a_revision_repeats_nothing() -> None:
    asked: list[int] = []

    def watch(request: Any, context: grpc.ServicerContext) -> Iterator[memory_pb2.WatchResponse]:
        asked.append(request.after_revision)
        # Two changes of revision 5; the first is sent while only revision 4 is complete.
        first = item_added(5, sent_to=4)
        first.change.item_id = "a"
        yield first
        if len(asked) == 1:
            context.abort(grpc.StatusCode.UNAVAILABLE, "the server is stopping")
        second = item_added(5)
        second.change.item_id = "b"
        yield second

    with Server(Watch=watch) as server, MemoryClient(server.address) as client:
        assert [change.item_id for change in client.watch(after_revision=4)] == ["a", "b"]
    assert asked == [4, 4]


def test_a_stream_is_given_up_when_the_server_stays_away() -> None:
    now = 0.0
    resumption = Resumption(None, 60.0, clock=lambda: now)
    assert resumption.delay_after_break() is None, "it never began"
    resumption.accept(Event(None, 3, None))
    delays = [resumption.delay_after_break() for _ in range(10)]
    assert all(delay is not None and 0 < delay <= 6 for delay in delays)
    now = 61.0
    assert resumption.delay_after_break() is None
    resumption.accept(Event(None, 4, None))
    assert resumption.delay_after_break() is not None


def test_a_stream_that_is_not_resumed_raises_other_errors_at_once() -> None:
    def export(request: Any, context: grpc.ServicerContext) -> Iterator[memory_pb2.ExportResponse]:
        yield memory_pb2.ExportResponse(item=memory_pb2.MemoryItem(id="a", revision=1, text="x"), revision=1)
        refuse(context, grpc.StatusCode.INTERNAL, "broken")

    with Server(Export=export) as server, MemoryClient(server.address) as client:
        records = client.export()
        assert next(records) is not None
        with pytest.raises(memory_client.Internal):
            next(records)


def test_a_closed_client_takes_no_calls() -> None:
    with Server() as server:
        client = MemoryClient(server.address)
        view = client.namespace("x")
        view.close()
        with pytest.raises(memory_client.Unsupported):
            client.get("x")
        client.close()
        with pytest.raises(MemoryServiceError, match="closed"):
            client.get("x")
