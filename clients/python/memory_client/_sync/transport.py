"""Runs calls over synchronous channels, one for each server."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc

from memory_client._arguments import check_methods
from memory_client._calls.call import Call, Event, Page, T, paged
from memory_client._calls.resume import Resumption
from memory_client._calls.servers import Attempts, Servers, header_of
from memory_client._credentials import Metadata, fetched
from memory_client._status import error_from_call
from memory_client.errors import Unavailable, closed
from memory_client.options import ClientOptions
from memory_client.unset import UNSET, Unset


class Transport:
    """Channels to the servers, each connected by its first call. Safe for use from many threads."""

    def __init__(self, options: ClientOptions) -> None:
        self.options = options
        self._metadata = options.metadata()
        self._servers = Servers(options.addresses)
        self._channels = [self._channel_to(address) for address in options.addresses]
        self._methods: dict[tuple[int, str], Any] = {}
        self._has_answered = False
        self._closed = False

    def _channel_to(self, address: str) -> grpc.Channel:
        arguments = self.options.channel_arguments(address)
        if self.options.tls:
            return grpc.secure_channel(address, self.options.channel_credentials(), options=arguments)
        return grpc.insecure_channel(address, options=arguments)

    def unary(self, call: Call[T], timeout_s: float | Unset | None = UNSET) -> T:
        """Run a call that has one response, by default with the client's timeout."""
        timeout = self.options.timeout_s if timeout_s is UNSET else timeout_s
        metadata = self._metadata_of(call)
        end = None if timeout is None else time.monotonic() + timeout
        attempts = self._attempts(call, timeout)
        while True:
            try:
                with self._ended_by_close():
                    method = self._method("unary_unary", call, attempts.server)
                    response = method(call.request, **self._settings(timeout, metadata))
            except grpc.RpcError as raised:
                error = error_from_call(raised)  # type: ignore[arg-type]
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
            time.sleep(delay)

    def pages(self, first: Call[Page[T]]) -> Iterator[Page[T]]:
        """Yield all pages of an answer, each fetched when needed."""
        call: Call[Page[T]] | None = first
        while call is not None:
            page = self.unary(call)
            yield page
            call = paged(call, page)

    def all_pages(self, first: Call[Page[T]]) -> list[Page[T]]:
        """Return all pages of an answer."""
        return list(self.pages(first))

    def entries(self, first: Call[Page[T]]) -> Iterator[T]:
        """Yield the entries of all pages of an answer."""
        for page in self.pages(first):
            yield from page.entries

    def stream(self, call: Call[T]) -> Iterator[T]:
        """Yield the responses of a call that has many. Closing the iterator ends the call."""
        attempts = self._attempts(call, None)
        while True:
            metadata = self._metadata_of(call)
            with self._ended_by_close():
                method = self._method("unary_stream", call, attempts.server)
                responses = method(call.request, **self._settings(None, metadata))
            has_begun = False
            try:
                for response in responses:
                    has_begun = True
                    yield call.read(response)
                return
            except grpc.RpcError as raised:
                error = error_from_call(raised)  # type: ignore[arg-type]
            finally:
                responses.cancel()
            delay = attempts.delay_after(error)
            if delay is None or has_begun or self._closed:
                raise error from None
            time.sleep(delay)

    def resumed(
        self, call_after: Callable[[int | None], Call[Event[T]]], resumption: Resumption
    ) -> Generator[T, None, None]:
        """Return the values of a stream that resumes where it broke. Invalid arguments are raised at once."""
        return self._resumed(call_after(resumption.position), call_after, resumption)

    def _resumed(
        self, call: Call[Event[T]], call_after: Callable[[int | None], Call[Event[T]]], resumption: Resumption
    ) -> Generator[T, None, None]:
        while True:
            try:
                for event in self.stream(call):
                    if resumption.accept(event):
                        assert event.value is not None
                        yield event.value
                return
            except Unavailable:
                delay = resumption.delay_after_break()
                if delay is None:
                    raise
            time.sleep(delay)
            call = call_after(resumption.position)

    def upload(
        self,
        call: Call[T],
        requests: Iterable[Any],
        timeout_s: float | None,
        metadata: Metadata | None = None,
    ) -> T:
        """Run a call with many requests. An exception of `requests` ends the upload and is raised here."""
        settings = self._settings(timeout_s, self._metadata_of(call) if metadata is None else metadata)
        attempts = self._attempts(call, timeout_s)
        failures: list[BaseException] = []

        def guarded() -> Iterator[Any]:
            # gRPC iterates in another thread and would only log the exception. So end the upload normally:
            # what was sent is written, and nothing hangs.
            try:
                yield from requests
            except BaseException as error:
                failures.append(error)

        try:
            with self._ended_by_close():
                response = self._method("stream_unary", call, attempts.server)(guarded(), **settings)
        except grpc.RpcError as raised:
            error = error_from_call(raised)  # type: ignore[arg-type]
            attempts.delay_after(error)
            raise (failures[0] if failures else error) from None
        if failures:
            raise failures[0]
        return call.read(response)

    def close(self) -> None:
        """End all calls and close the channels."""
        self._closed = True
        for channel in self._channels:
            channel.close()

    def _check_open(self) -> None:
        if self._closed:
            raise closed()

    @contextmanager
    def _ended_by_close(self) -> Iterator[None]:
        """Raise the error for a closed client in place of what gRPC raises when its channel is closed."""
        self._check_open()
        try:
            yield
        except ValueError:
            self._check_open()
            raise

    def _attempts(self, call: Call[Any], timeout: float | None) -> Attempts:
        attempts_max = self.options.attempts_of(call.method)
        return Attempts(self._servers, call.namespace, attempts_max, self._waits(timeout))

    def _method(self, kind: str, call: Call[Any], server: int) -> Any:
        method = self._methods.get((server, call.method))
        if method is None:
            method = self._methods[server, call.method] = getattr(self._channels[server], kind)(
                call.method,
                request_serializer=lambda request: request.SerializeToString(),
                response_deserializer=call.response_type.FromString,
            )
        return method

    def _metadata_of(self, call: Call[Any]) -> Metadata:
        """Return the metadata of a call, with the current token."""
        metadata = self._metadata + header_of(call.namespace)
        source = self.options.token_source
        return metadata if source is None else metadata + fetched(source)

    def _settings(self, timeout: float | None, metadata: Metadata) -> dict[str, Any]:
        # With several servers, another is tried instead of waiting.
        waits = len(self._channels) == 1 and self._waits(timeout)
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
