"""Runs calls over a synchronous channel."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

import grpc

from memory_client._calls.call import Call, Event, Page, T, paged
from memory_client._calls.resume import Resumption
from memory_client._credentials import Metadata, fetched
from memory_client._status import error_from_call
from memory_client.errors import Unavailable
from memory_client.options import ClientOptions
from memory_client.unset import UNSET, Unset


class Transport:
    """A channel to the server. Safe for use from many threads."""

    def __init__(self, options: ClientOptions) -> None:
        self.options = options
        self._metadata = options.metadata()
        arguments = options.channel_arguments()
        if options.tls:
            credentials = options.channel_credentials()
            self._channel = grpc.secure_channel(options.address, credentials, options=arguments)
        else:
            self._channel = grpc.insecure_channel(options.address, options=arguments)
        self._methods: dict[str, Any] = {}
        self._has_answered = False

    def unary(self, call: Call[T], timeout_s: float | Unset | None = UNSET) -> T:
        """Run a call that has one response; the timeout is the client's unless one is given."""
        method = self._method("unary_unary", call)
        metadata = self._metadata_of_now()
        try:
            response = method(call.request, **self._settings(timeout_s, metadata))
        except grpc.RpcError as error:
            raise error_from_call(error) from None  # type: ignore[arg-type]
        self._has_answered = True
        return call.read(response)

    def pages(self, first: Call[Page[T]]) -> Iterator[Page[T]]:
        """Yield all pages of an answer, each fetched when it is asked for."""
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
        method = self._method("unary_stream", call)
        responses = method(call.request, **self._settings(None, self._metadata_of_now()))
        try:
            for response in responses:
                yield call.read(response)
        except grpc.RpcError as error:
            raise error_from_call(error) from None  # type: ignore[arg-type]
        finally:
            responses.cancel()

    def resumed(
        self, call_after: Callable[[int | None], Call[Event[T]]], resumption: Resumption
    ) -> Generator[T, None, None]:
        """Yield the values of a stream that is taken up again where it broke."""
        while True:
            try:
                for event in self.stream(call_after(resumption.position)):
                    if resumption.accept(event):
                        assert event.value is not None
                        yield event.value
                return
            except Unavailable:
                delay = resumption.delay_after_break()
                if delay is None:
                    raise
            time.sleep(delay)

    def upload(
        self,
        call: Call[T],
        requests: Iterable[Any],
        timeout_s: float | None,
        metadata: Metadata | None = None,
    ) -> T:
        """Run a call with many requests. An exception of `requests` ends the upload and is raised here."""
        settings = self._settings(timeout_s, self._metadata_of_now() if metadata is None else metadata)
        failures: list[BaseException] = []

        def guarded() -> Iterator[Any]:
            # gRPC iterates in a thread of its own and would only log the exception, so that the upload
            # is ended in good order instead: what was sent is written, nothing hangs in between.
            try:
                yield from requests
            except BaseException as error:
                failures.append(error)

        try:
            response = self._method("stream_unary", call)(guarded(), **settings)
        except grpc.RpcError as error:
            raise (failures[0] if failures else error_from_call(error)) from None  # type: ignore[arg-type]
        if failures:
            raise failures[0]
        return call.read(response)

    def close(self) -> None:
        """End all calls and close the channel."""
        self._channel.close()

    def _method(self, kind: str, call: Call[Any]) -> Any:
        method = self._methods.get(call.method)
        if method is None:
            method = self._methods[call.method] = getattr(self._channel, kind)(
                call.method,
                request_serializer=lambda request: request.SerializeToString(),
                response_deserializer=call.response_type.FromString,
            )
        return method

    def _metadata_of_now(self) -> Metadata:
        source = self.options.token_source
        return self._metadata if source is None else self._metadata + fetched(source)

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
