"""Runs calls over an asynchronous channel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import grpc

from memory_client._calls.call import Call, Event, Page, T, paged
from memory_client._calls.resume import Resumption
from memory_client._credentials import Metadata, awaited
from memory_client._status import error_from_call
from memory_client._sync.transport import Transport as BlockingTransport
from memory_client.errors import Unavailable
from memory_client.options import ClientOptions
from memory_client.unset import UNSET, Unset

_END = object()
"""Stands for the end of an iteration: StopAsyncIteration does not pass from one thread to another."""


async def _next_or_end(iterator: AsyncIterator[Any]) -> Any:
    return await anext(iterator, _END)


class Transport:
    """A channel to the server, opened by the first call, inside the event loop that it belongs to."""

    def __init__(self, options: ClientOptions) -> None:
        self.options = options
        self._metadata = options.metadata()
        self._channel: grpc.aio.Channel | None = None
        self._closed = False
        self._methods: dict[str, Any] = {}
        self._has_answered = False

    async def unary(self, call: Call[T], timeout_s: float | Unset | None = UNSET) -> T:
        """Run a call that has one response; the timeout is the client's unless one is given."""
        method = self._method("unary_unary", call)
        metadata = await self._metadata_of_now()
        try:
            response = await method(call.request, **self._settings(timeout_s, metadata))
        except grpc.aio.AioRpcError as error:
            raise error_from_call(error) from None
        self._has_answered = True
        return call.read(response)

    async def pages(self, first: Call[Page[T]]) -> AsyncIterator[Page[T]]:
        """Yield all pages of an answer, each fetched when it is asked for."""
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
        method = self._method("unary_stream", call)
        metadata = await self._metadata_of_now()
        responses = method(call.request, **self._settings(None, metadata))
        try:
            async for response in responses:
                yield call.read(response)
        except grpc.aio.AioRpcError as error:
            raise error_from_call(error) from None
        finally:
            responses.cancel()

    async def resumed(
        self, call_after: Callable[[int | None], Call[Event[T]]], resumption: Resumption
    ) -> AsyncGenerator[T, None]:
        """Yield the values of a stream that is taken up again where it broke."""
        while True:
            try:
                async with aclosing(self.stream(call_after(resumption.position))) as stream:
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

    async def upload(self, call: Call[T], requests: AsyncIterable[Any], timeout_s: float | None) -> T:
        """Run a call with many requests. An exception of `requests` ends the upload and is raised here.

        It goes over a synchronous channel of its own, in threads: grpc.aio reports INTERNAL, now and then,
        in place of the status of a server that ends an upload early.
        """
        self._check_open()
        loop = asyncio.get_running_loop()
        iterator = aiter(requests)
        metadata = await self._metadata_of_now()
        blocking = BlockingTransport(replace(self.options, token_source=None))

        def pulled() -> Iterator[Any]:
            while True:
                request = asyncio.run_coroutine_threadsafe(_next_or_end(iterator), loop).result()
                if request is _END:
                    return
                yield request

        try:
            return await asyncio.to_thread(blocking.upload, call, pulled(), timeout_s, metadata)
        finally:
            blocking.close()

    async def close(self) -> None:
        """End all calls and close the channel."""
        self._closed = True
        if self._channel is not None:
            await self._channel.close()

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("the client is closed")

    def _open(self) -> grpc.aio.Channel:
        self._check_open()
        if self._channel is None:
            arguments = self.options.channel_arguments()
            if self.options.tls:
                credentials = self.options.channel_credentials()
                self._channel = grpc.aio.secure_channel(self.options.address, credentials, options=arguments)
            else:
                self._channel = grpc.aio.insecure_channel(self.options.address, options=arguments)
        return self._channel

    def _method(self, kind: str, call: Call[Any]) -> Any:
        channel = self._open()
        method = self._methods.get(call.method)
        if method is None:
            method = self._methods[call.method] = getattr(channel, kind)(
                call.method,
                request_serializer=lambda request: request.SerializeToString(),
                response_deserializer=call.response_type.FromString,
            )
        return method

    async def _metadata_of_now(self) -> Metadata:
        source = self.options.token_source
        return self._metadata if source is None else self._metadata + await awaited(source)

    def _settings(self, timeout_s: float | Unset | None, metadata: Metadata) -> dict[str, Any]:
        timeout = self.options.timeout_s if timeout_s is UNSET else timeout_s
        # What has no limit would wait for ever, and a stream is taken up again by other means.
        waits = self._has_answered and timeout is not None
        return {
            "timeout": timeout,
            "metadata": metadata,
            "wait_for_ready": waits if self.options.wait_for_ready is None else self.options.wait_for_ready,
        }


class Bound:
    """What the methods of a client need: a transport, and the namespace they act on."""

    _transport: Transport
    _namespace: str
