"""Runs calls over asynchronous channels, one for each server."""

from __future__ import annotations

import asyncio
import threading
import time
from asyncio import AbstractEventLoop
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from dataclasses import replace
from typing import Any

import grpc

from memory_client._arguments import check_methods
from memory_client._calls.call import Call, Event, Page, T, paged
from memory_client._calls.resume import Resumption
from memory_client._calls.servers import Attempts, Servers, header_of
from memory_client._credentials import Metadata, awaited
from memory_client._status import error_from_call
from memory_client._sync.transport import Transport as BlockingTransport
from memory_client.errors import MemoryServiceError, Unavailable, closed
from memory_client.options import ClientOptions
from memory_client.unset import UNSET, Unset

_END = object()
"""Marks the end of an iteration: StopAsyncIteration cannot pass from one thread to another."""


async def _ended(generator: AsyncGenerator[None, None]) -> None:
    await generator.aclose()


async def _next_or_end(iterator: AsyncIterator[Any]) -> Any:
    return await anext(iterator, _END)


class _Connections:
    """The channels of one event loop, each opened by its first call. Other loops cannot use them."""

    def __init__(self, options: ClientOptions) -> None:
        self._options = options
        self._channels: dict[int, grpc.aio.Channel] = {}
        self._methods: dict[tuple[int, str], Any] = {}
        self.life: AsyncGenerator[None, None] | None = None
        """Closes the channels when it ends, at the latest when `asyncio.run` shuts the loop down."""

    def method(self, kind: str, call: Call[Any], server: int) -> Any:
        method = self._methods.get((server, call.method))
        if method is None:
            method = self._methods[server, call.method] = getattr(self._channel(server), kind)(
                call.method,
                request_serializer=lambda request: request.SerializeToString(),
                response_deserializer=call.response_type.FromString,
            )
        return method

    def _channel(self, server: int) -> grpc.aio.Channel:
        channel = self._channels.get(server)
        if channel is None:
            address = self._options.addresses[server]
            arguments = self._options.channel_arguments(address)
            if self._options.tls:
                credentials = self._options.channel_credentials()
                channel = grpc.aio.secure_channel(address, credentials, options=arguments)
            else:
                channel = grpc.aio.insecure_channel(address, options=arguments)
            self._channels[server] = channel
        return channel

    async def begin(self, loops: dict[AbstractEventLoop, _Connections]) -> None:
        """Begin the life of the channels in the running loop, which leaves `loops` at its end."""
        self.life = _life(self._channels, loops)
        await anext(self.life)


async def _life(
    channels: dict[int, grpc.aio.Channel], loops: dict[AbstractEventLoop, _Connections]
) -> AsyncGenerator[None, None]:
    # The event loop knows every generator that has begun, and ends it when it is shut down.
    try:
        yield
    finally:
        loops.pop(asyncio.get_running_loop(), None)
        for channel in list(channels.values()):
            await channel.close()


class Transport:
    """Runs calls in any event loop; each loop has its own channels to the servers."""

    def __init__(self, options: ClientOptions) -> None:
        self.options = options
        self._metadata = options.metadata()
        self._servers = Servers(options.addresses)
        self._loops: dict[AbstractEventLoop, _Connections] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._has_answered = False

    async def unary(self, call: Call[T], timeout_s: float | Unset | None = UNSET) -> T:
        """Run a call that has one response, by default with the client's timeout."""
        connections = await self._connections()
        timeout = self.options.timeout_s if timeout_s is UNSET else timeout_s
        metadata = await self._metadata_of(call)
        end = None if timeout is None else time.monotonic() + timeout
        attempts = self._attempts(call, timeout)
        while True:
            try:
                with self._ended_by_close():
                    method = connections.method("unary_unary", call, attempts.server)
                    response = await method(call.request, **self._settings(timeout, metadata))
            except grpc.aio.AioRpcError as raised:
                error = error_from_call(raised)
            else:
                self._has_answered = True
                return call.read(response)
            delay = attempts.delay_after(error)
            if delay is None or self._closed:
                raise error from None
            if end is not None:
                timeout = end - time.monotonic() - delay
                if timeout <= 0:
                    raise error from None
            await asyncio.sleep(delay)

    async def pages(self, first: Call[Page[T]]) -> AsyncIterator[Page[T]]:
        """Yield all pages of an answer, each fetched when needed."""
        call: Call[Page[T]] | None = first
        while call is not None:
            page = await self.unary(call)
            yield page
            call = paged(call, page)

    async def all_pages(self, first: Call[Page[T]]) -> list[Page[T]]:
        """Return all pages of an answer."""
        return [page async for page in self.pages(first)]

    async def entries(self, first: Call[Page[T]]) -> AsyncIterator[T]:
        """Yield the entries of all pages of an answer."""
        async for page in self.pages(first):
            for entry in page.entries:
                yield entry

    async def stream(self, call: Call[T]) -> AsyncGenerator[T, None]:
        """Yield the responses of a call that has many. Closing the iterator ends the call."""
        connections = await self._connections()
        attempts = self._attempts(call, None)
        while True:
            metadata = await self._metadata_of(call)
            with self._ended_by_close():
                method = connections.method("unary_stream", call, attempts.server)
                responses = method(call.request, **self._settings(None, metadata))
            has_begun = False
            try:
                with self._ended_by_close():
                    async for response in responses:
                        has_begun = True
                        yield call.read(response)
                return
            except grpc.aio.AioRpcError as raised:
                error = error_from_call(raised)
            finally:
                responses.cancel()
            delay = attempts.delay_after(error)
            if delay is None or has_begun or self._closed:
                raise error from None
            await asyncio.sleep(delay)

    def resumed(
        self, call_after: Callable[[int | None], Call[Event[T]]], resumption: Resumption
    ) -> AsyncGenerator[T, None]:
        """Return the values of a stream that resumes where it broke. Invalid arguments are raised at once."""
        return self._resumed(call_after(resumption.position), call_after, resumption)

    async def _resumed(
        self, call: Call[Event[T]], call_after: Callable[[int | None], Call[Event[T]]], resumption: Resumption
    ) -> AsyncGenerator[T, None]:
        while True:
            try:
                async with aclosing(self.stream(call)) as stream:
                    async for event in stream:
                        if resumption.accept(event):
                            assert event.value is not None
                            yield event.value
                return
            except Unavailable:
                delay = resumption.delay_after_break()
                if delay is None:
                    raise
            await asyncio.sleep(delay)
            call = call_after(resumption.position)

    async def upload(self, call: Call[T], requests: AsyncIterable[Any], timeout_s: float | None) -> T:
        """Run a call with many requests. An exception of `requests` ends the upload and is raised here.

        It uses its own synchronous channel, in threads: if a server ends an upload early, grpc.aio sometimes
        reports INTERNAL in place of the server's status.
        """
        self._check_open()
        loop = asyncio.get_running_loop()
        iterator = aiter(requests)
        metadata = await self._metadata_of(call)
        attempts = self._attempts(call, timeout_s)
        address = self._servers.addresses[attempts.server]
        blocking = BlockingTransport(replace(self.options, address=[address], token_source=None))

        def pulled() -> Iterator[Any]:
            while True:
                request = asyncio.run_coroutine_threadsafe(_next_or_end(iterator), loop).result()
                if request is _END:
                    return
                yield request

        try:
            return await asyncio.to_thread(blocking.upload, call, pulled(), timeout_s, metadata)
        except MemoryServiceError as error:
            attempts.delay_after(error)
            raise
        finally:
            blocking.close()

    async def close(self) -> None:
        """End all calls and close the channels, those of other event loops as soon as these run."""
        self._closed = True
        with self._lock:
            loops = dict(self._loops)
            self._loops.clear()
        for loop, connections in loops.items():
            if connections.life is None:
                continue
            if loop is asyncio.get_running_loop():
                await connections.life.aclose()
            elif loop.is_running():
                with suppress(RuntimeError):  # It has just ended, which closed the channels.
                    asyncio.run_coroutine_threadsafe(_ended(connections.life), loop)

    def _check_open(self) -> None:
        if self._closed:
            raise closed()

    async def _connections(self) -> _Connections:
        """Return the channels of the running event loop."""
        self._check_open()
        loop = asyncio.get_running_loop()
        connections = self._loops.get(loop)
        if connections is None:
            connections = _Connections(self.options)
            with self._lock:
                for other in [other for other in self._loops if other.is_closed()]:
                    del self._loops[other]  # It was not shut down: dropping the channels closes them.
                self._loops[loop] = connections
            await connections.begin(self._loops)
        return connections

    @contextmanager
    def _ended_by_close(self) -> Iterator[None]:
        """Raise the error for a closed client in place of what gRPC raises when its channel is closed."""
        try:
            yield
        except grpc.aio.UsageError:
            raise closed() from None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._closed and not (task and task.cancelling()):
                raise closed() from None
            raise

    def _attempts(self, call: Call[Any], timeout: float | None) -> Attempts:
        attempts_max = self.options.attempts_of(call.method)
        return Attempts(self._servers, call.namespace, attempts_max, self._waits(timeout))

    async def _metadata_of(self, call: Call[Any]) -> Metadata:
        """Return the metadata of a call, with the current token."""
        metadata = self._metadata + header_of(call.namespace)
        source = self.options.token_source
        return metadata if source is None else metadata + await awaited(source)

    def _settings(self, timeout: float | None, metadata: Metadata) -> dict[str, Any]:
        # With several servers, another is tried instead of waiting.
        waits = len(self._servers.addresses) == 1 and self._waits(timeout)
        return {"timeout": timeout, "metadata": metadata, "wait_for_ready": waits}

    def _waits(self, timeout: float | None) -> bool:
        """Whether a call waits for an unreachable server."""
        if self.options.wait_for_ready is not None:
            return self.options.wait_for_ready
        # A call without a limit would wait for ever; streams resume by themselves.
        return self._has_answered and timeout is not None


class Bound:
    """What a client's methods need: a transport and a namespace."""

    _transport: Transport
    _namespace: str

    def __init_subclass__(cls, **options: Any) -> None:
        """Let the methods of a direct subclass name invalid arguments."""
        super().__init_subclass__(**options)
        if Bound in cls.__bases__:
            check_methods(cls)
