"""Wraps every call for admission, error statuses, and draining at shutdown.

Methods are wrapped once, at registration. A grpc.aio interceptor would build the handler again for each call,
which costs a quarter of the whole call.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import grpc
from google.protobuf.message import DecodeError

from memory_service.errors import (
    InvalidArgument,
    LimitExceeded,
    MemoryServiceError,
    Overloaded,
    Unauthenticated,
    Unavailable,
)
from memory_service.limits import Limits
from memory_service.runtime.byte_budget import Held
from memory_service.runtime.caller import Holder, Owner, present_caller
from memory_service.runtime.deadline import set_remaining_s
from memory_service.runtime.event_log import EventLog
from memory_service.runtime.yielding import PLACE, give_way
from memory_service.server.access.access import Access
from memory_service.server.admission.call_queue import CallQueue, Place
from memory_service.server.admission.callers import CallRates, owner_of
from memory_service.server.auditing import Auditing, Wrap, note_request
from memory_service.server.call_counts import CallCounts
from memory_service.server.errors import abort_of, expected
from memory_service.server.methods import Audit, Method, audit_of
from memory_service.server.receiving import Receiver, Receiving
from memory_service.server.request_sizes import RequestSizes

_log = EventLog(__name__)

# A draining server closes its connections after this time without new calls.
_QUIET_S = 0.2
_OPEN_BYTES_MAX = 4096
"""Largest request without a credential.

Doubled: twice as much is decoded for anonymous callers; names are shorter.
"""
_LARGE_BYTES = 64 * 1024
"""After decoding a larger request, other calls run first. Doubled: they wait up to 1 ms longer."""
_ANSWER_COPIES = 2
"""A response exists twice until it is sent, here and in gRPC. Doubled: half as many unread responses fit."""
_REFUSAL_S_MAX = 0.5
"""Delay of a rate-limit refusal, because some clients retry at once. Doubled: those retry half as often."""

Context = grpc.aio.ServicerContext[Any, Any]
Handler = Any
Decoder = Callable[[bytes], Any]
Encoder = Callable[[Any], bytes]


class CallGuard:
    """Wraps methods, and tracks running calls."""

    def __init__(self, limits: Limits, access: Access | None = None) -> None:
        self._limits = limits
        self.receiving = Receiving(limits.held_bytes_max, limits.message_bytes_max)
        # None: every caller may do everything.
        self._access = access
        self._calls = 0
        self.queue = CallQueue(limits)
        self.counts = CallCounts(limits)
        # None: no rate limit.
        self._rates = CallRates(limits.calls_per_s_max) if limits.calls_per_s_max else None
        # The holder of each stream.
        self._streams: dict[asyncio.Task[Any], Holder] = {}
        self._streams_of: Counter[Holder] = Counter()
        # Streams whose response gRPC is sending.
        self._sending: set[asyncio.Task[Any]] = set()
        self._draining = False
        self._idle = asyncio.Event()
        self._refused_lately = True

    def guarding(self, server: grpc.aio.Server, auditing: Auditing | None = None) -> _Registrar:
        """Return a registrar for servicers, to be used in place of the server."""
        return _Registrar(server, auditing.around(self.wrap) if auditing else self.wrap)

    def wrap(self, method: str, handler: Handler) -> Handler:
        """Return the handler of a method with everything around it.

        gRPC sees streams of bytes only: requests are read, decoded and counted here, responses encoded and
        counted.
        """
        decode = _decoder(handler.request_deserializer)
        encode = _encoder(handler.response_serializer)
        sizes = RequestSizes(method, self._limits).held_bytes
        plain = decode
        new_decoder: Callable[[], Decoder] = lambda: plain
        if self._access is not None:
            new_decoder = self._access.authorising_upload(method, decode)
            decode = self._access.authorising(method, decode)
        decode = self.counts.counting(method, decode)
        new_decoder = self.counts.counting_upload(method, new_decoder)
        if handler.unary_unary:
            call = self._unary(method, handler.unary_unary, _Codec(sizes, decode, encode))
            return grpc.stream_unary_rpc_method_handler(call)
        if handler.unary_stream:
            stream = self._stream(method, handler.unary_stream, _Codec(sizes, decode, encode))
            return grpc.stream_stream_rpc_method_handler(stream)
        upload = self._upload(method, handler.stream_unary, sizes, new_decoder)
        return grpc.stream_unary_rpc_method_handler(upload, None, encode)

    def open_to_all(self, server: grpc.aio.Server) -> _Registrar:
        """Return a registrar for servicers that need no credential, such as health."""
        return _Registrar(server, self._bound)

    def _bound(self, method: str, handler: Handler) -> Handler:
        """Return the handler of a method of short requests, with counting only."""
        call = handler.unary_unary or handler.unary_stream

        async def answer(_requests: Any, context: Context) -> Any:
            raw = await self._read(method, context, self.receiving.hold(context, apart=method), _open_bytes)
            return await call(handler.request_deserializer(raw), context)

        if handler.unary_unary:
            return grpc.stream_unary_rpc_method_handler(answer, None, handler.response_serializer)
        return grpc.stream_stream_rpc_method_handler(answer, None, handler.response_serializer)

    async def admit(self, context: Context) -> None:
        """Admit a caller with a valid credential, or end the call: for methods that are not wrapped."""
        if self._access is None:
            return
        try:
            await self._access.identify(context)
        except Exception as error:
            await _abort(context, expected(error, "reflection"))

    def _unary(self, method: str, call: Callable[[Any, Context], Awaitable[Any]], codec: _Codec) -> Handler:
        access, rates = self._access, self._rates
        permission = access.permission(method) if access is not None else None
        # A completed write cannot be refused any more. Its response is about as large as its request.
        answers_anyway = audit_of(method) is not Audit.READ

        async def respond(_requests: Any, context: Context) -> Any:
            if access is not None and not access.knows(permission, context):
                await _enter(access, permission, method, context)
            if self._draining:
                await self._refuse(context)
            held = self.receiving.hold(context)
            raw = await self._read(method, context, held, codec.sizes)
            if rates is not None:
                await _hold_to_rate(rates, owner_of(raw, present_caller()).holder, context)
            remaining_s = context.time_remaining()
            if remaining_s is not None and remaining_s <= 0:
                # The caller has disconnected: sending would only make gRPC log an error.
                raise asyncio.CancelledError
            if remaining_s is not None:
                set_remaining_s(remaining_s)
            self._calls += 1
            try:
                answer = await self._in_turn(
                    raw, remaining_s, lambda: _call(call, codec.decode(raw), raw, context)
                )
                # Don't name the response: an error keeps the local variables of its frames.
                answer = _counted(held, codec.encode(answer), anyway=answers_anyway)
                if answer is None:
                    raise held.overloaded()
                return answer
            except Exception as error:
                await _abort(context, expected(error, method))
            finally:
                self._calls -= 1
                if self._draining and not self._calls:
                    self._idle.set()

        return respond

    async def _read(
        self, method: str, context: Context, held: Receiver, sizes: Callable[[bytes], int]
    ) -> bytes:
        """Return the request of a call, or end the call."""
        try:
            raw = await self.receiving.read(context, held, sizes)
        except MemoryServiceError as error:
            await _abort(context, expected(error, method))
        if raw is None:
            # The caller is gone.
            raise asyncio.CancelledError
        note_request(raw)
        return raw

    async def _in_turn(
        self, raw: bytes, remaining_s: float | None, call: Callable[[], Awaitable[Any]]
    ) -> Any:
        """Run the call when it is admitted, and return its response."""
        place = self.queue.arrive(owner_of(raw, present_caller()), remaining_s)
        try:
            if place.gate is not None:
                await place.gate
            PLACE.set(place)
            response = await call()
            if place.gate is not None:
                # Finish all calls of a batch before gRPC sends the first response: gRPC's code and ours evict
                # each other from the processor's caches.
                await asyncio.sleep(0)
            return response
        finally:
            self.queue.leave(place)

    async def _refuse(self, context: Context) -> None:
        if self._draining:
            self._refused_lately = True
            await _abort(context, Unavailable.shutting_down())
        await _abort(context, Overloaded("concurrent_streams_max", self._limits.concurrent_streams_max))

    def _stream(
        self, method: str, call: Callable[[Any, Context], AsyncIterator[Any]], codec: _Codec
    ) -> Handler:
        access = self._access
        permission = access.permission(method) if access is not None else None

        async def answer(_requests: Any, context: Context) -> AsyncIterator[bytes]:
            if access is not None and not access.knows(permission, context):
                await _enter(access, permission, method, context)
            held = self.receiving.hold(context)
            raw = await self._read(method, context, held, codec.sizes)
            owner = owner_of(raw, present_caller())
            task = await self._enter_stream(owner.holder, context)
            PLACE.set(Place(self.queue, owner))
            try:
                async for response in call(codec.decode(raw), context):
                    encoded = _counted(held, codec.encode(response))
                    if encoded is None:
                        raise held.overloaded()
                    self._sending.add(task)
                    yield encoded
                    self._sending.discard(task)
                    held.give(_ANSWER_COPIES * len(encoded))
                    if self._draining:
                        raise Unavailable.shutting_down()
            except asyncio.CancelledError:
                await self._tell_why_cancelled(task, context)
                raise
            except Exception as error:
                await _abort(context, expected(error, method))
            finally:
                self._leave_stream(task)

        return answer

    def _upload(
        self,
        method: str,
        call: Callable[[Any, Context], Awaitable[Any]],
        sizes: Callable[[bytes], int],
        new_decoder: Callable[[], Decoder],
    ) -> Handler:
        access = self._access
        permission = access.permission(method) if access is not None else None

        async def answer(_requests: Any, context: Context) -> Any:
            if access is not None and not access.knows(permission, context):
                await _enter(access, permission, method, context)
            # Namespace and size are known later.
            caller = present_caller().name or context.peer()
            task = await self._enter_stream(caller, context)
            PLACE.set(Place(self.queue, Owner(caller, b"")))
            set_remaining_s(context.time_remaining())
            messages = self.receiving.messages(context, self.receiving.hold(context), sizes)
            try:
                return await call(_decoded(messages, new_decoder()), context)
            except asyncio.CancelledError:
                await self._tell_why_cancelled(task, context)
                raise
            except grpc.aio.AbortError:
                raise
            except Exception as error:
                await _abort(context, expected(error, method))
            finally:
                self._leave_stream(task)

        return answer

    async def _enter_stream(self, holder: Holder, context: Context) -> asyncio.Task[Any]:
        """Admit a stream, or end the call.

        A holder of a quarter of the streams gets no more while only a quarter is free.
        """
        if self._rates is not None and not self._draining:
            await _hold_to_rate(self._rates, holder, context)
        free = self._limits.concurrent_streams_max - len(self._streams)
        reserve = self._limits.concurrent_streams_max // 4
        if self._draining or not free or (free <= reserve <= self._streams_of[holder]):
            await self._refuse(context)
        task = asyncio.current_task()
        assert task is not None
        self._streams[task] = holder
        self._streams_of[holder] += 1
        if self._access is not None:
            self._access.open_stream(task, context)
        return task

    def _leave_stream(self, task: asyncio.Task[Any]) -> None:
        holder = self._streams.pop(task)
        self._streams_of[holder] -= 1
        if not self._streams_of[holder]:
            del self._streams_of[holder]
        self._sending.discard(task)
        if self._access is not None:
            self._access.close_stream(task)

    async def _tell_why_cancelled(self, task: asyncio.Task[Any], context: Context) -> None:
        """End a stream with the reason, if the server cancelled it."""
        if self._draining:
            await _abort(context, Unavailable.shutting_down())
        if self._access is not None and self._access.has_ended(task):
            await _abort(context, Unauthenticated())

    async def turn_away(self, most_s: float) -> None:
        """Refuse new calls, end the streams, and return when no call has arrived for a moment.

        It returns after `most_s` at the latest. gRPC still delivers calls on their way: each gets an error
        that says to retry, rather than a closed connection.
        """
        self._draining = True
        # If cancelled while gRPC sends, a stream would end without a reason; it checks by itself afterwards.
        for task in self._streams.keys() - self._sending:
            task.cancel()
        until = asyncio.get_running_loop().time() + most_s
        while self._refused_lately and (left_s := until - asyncio.get_running_loop().time()) > 0:
            self._refused_lately = False
            await asyncio.sleep(min(_QUIET_S, left_s))

    async def finish(self, most_s: float) -> None:
        """Return when the running calls are finished, or after `most_s`. Call `turn_away` first."""
        if not self._calls:
            return
        try:
            async with asyncio.timeout(most_s):
                await self._idle.wait()
        except TimeoutError:
            _log.warning("drain_timed_out", calls=self._calls)


@dataclass(frozen=True, slots=True)
class _Codec:
    """Counts and decodes requests of a method, and encodes its responses."""

    sizes: Callable[[bytes], int]
    decode: Decoder
    encode: Encoder


class _Registrar:
    """Wraps the handlers that generated code registers."""

    def __init__(self, server: grpc.aio.Server, wrap: Wrap) -> None:
        self._server = server
        self._wrap = wrap

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """Do nothing: the same methods are also registered by name."""

    def add_registered_method_handlers(self, service: str, handlers: dict[str, Handler]) -> None:
        """Register the methods of a service."""
        wrapped = {name: self._wrap(f"/{service}/{name}", h) for name, h in handlers.items()}
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, wrapped),))


def _encoder(encode: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """Return an encoder that passes through responses that a servicer has already encoded."""

    def encoder(response: Any) -> bytes:
        return response if type(response) is bytes else encode(response)

    return encoder


def _decoder(decode: Callable[[bytes], Any]) -> Decoder:
    """Return a decoder that replaces parse errors by one that callers may see."""

    def decoder(raw: bytes) -> Any:
        try:
            return decode(raw)
        except (DecodeError, UnicodeDecodeError, ValueError):
            raise InvalidArgument("request", "cannot be decoded as the request of this method") from None

    return decoder


async def _call(
    call: Callable[[Any, Context], Awaitable[Any]], request: Any, raw: bytes, context: Context
) -> Any:
    """Return the response to a request; if decoding took long, let others run first."""
    if len(raw) > _LARGE_BYTES:
        await give_way()
    return await call(request, context)


async def _decoded(raw: AsyncIterator[bytes], decode: Decoder) -> AsyncIterator[Any]:
    async for each in raw:
        request = decode(each)
        if len(each) > _LARGE_BYTES:
            await give_way()
        yield request


async def _hold_to_rate(rates: CallRates, holder: Holder, context: Context) -> None:
    """Apply the rate limit to a call. Later messages of a stream are not counted."""
    wait_s = rates.take(holder, time.monotonic())
    if wait_s > 0:
        remaining_s = context.time_remaining()
        told_s = min(wait_s, _REFUSAL_S_MAX, math.inf if remaining_s is None else remaining_s / 2)
        await asyncio.sleep(told_s)
        await _abort(context, Overloaded.too_many_calls(rates.per_s, wait_s - told_s))


async def _enter(access: Access, permission: Method | None, method: str, context: Context) -> None:
    try:
        await access.enter(permission, context)
    except Exception as error:
        await _abort(context, expected(error, method))


def _open_bytes(raw: bytes) -> int:
    """Return the counted size of a request that needs no credential. Raises LimitExceeded."""
    if len(raw) > _OPEN_BYTES_MAX:
        raise LimitExceeded("request", "open_request_bytes_max", _OPEN_BYTES_MAX, len(raw))
    return len(raw)


def _counted(held: Held, answer: bytes, *, anyway: bool = False) -> bytes | None:
    """Count a response until it is sent, and return it; None: there is no room for it."""
    size = _ANSWER_COPIES * len(answer)
    if anyway:
        held.take_anyway(size)
    elif not held.try_take(size):
        return None
    return answer


async def _abort(context: Context, error: MemoryServiceError) -> NoReturn:
    await context.abort(*abort_of(error))
    raise AssertionError("gRPC's abort raises")
