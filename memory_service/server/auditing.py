"""Audit entries for calls, and for API keys that are created, changed or revoked.

Refused calls are recorded outside the guard, all others inside it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import grpc
from google.protobuf import descriptor_pool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from memory_service.audit.entries import Entry
from memory_service.audit.log import QUEUED_ENTRIES_MAX, AuditLog
from memory_service.credentials.api_keys import ApiKey
from memory_service.credentials.key_differences import KeyDifference, differences_from_told
from memory_service.errors import MemoryServiceError, Overloaded, StorageFull
from memory_service.runtime.caller import present_caller
from memory_service.runtime.clock import now_us
from memory_service.runtime.yielding import aside
from memory_service.server.audited_fields import ID_CHARS_MAX, IDS_MAX, ids_of, parameters_of
from memory_service.server.errors import code_of
from memory_service.server.methods import Audit, audit_of, may_write, writes

# The errors that end a call whose caller has disconnected.
_LEFT = (asyncio.CancelledError, GeneratorExit)
_DENIED = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)

Context = grpc.aio.ServicerContext[Any, Any]
Handler = Any
Wrap = Callable[[str, Handler], Handler]

_KEPT: ContextVar[bool] = ContextVar("kept_in_the_audit_log", default=False)
# Cleared when the call ends, because tasks that it started may keep the context for longer.
_REQUEST: ContextVar[list[bytes] | None] = ContextVar("request_of_the_call", default=None)


def note_request(raw: bytes) -> None:
    """Keep the current call's request, for the entry in case it is refused."""
    if (noted := _REQUEST.get()) is not None:
        noted.append(raw)


@contextlib.contextmanager
def _noting_request() -> Iterator[None]:
    noted: list[bytes] = []
    _REQUEST.set(noted)
    try:
        yield
    finally:
        noted.clear()


class _Call:
    """The data of one call for its audit entries."""

    def __init__(self, method: str, number: int, context: Context) -> None:
        self.method, self.number, self.peer = method, number, context.peer()
        self.reads = audit_of(method) is Audit.READ
        self.namespace = ""
        self.ids: dict[str, None] = {}
        self.id_count = 0
        self.revision = 0
        self.parameters: dict[str, str] = {}
        self.begun = False
        """Whether the call was admitted, so that it may have changed something."""
        self.began_tight = False

    def take_request(self, request: Message) -> None:
        """Note the subjects and parameters of a request, and whether it writes."""
        self.reads = not writes(self.method, request)
        self.parameters = parameters_of(request)
        self.take(request)

    def take(self, message: Message) -> None:
        """Note the namespace, ids and revision of a request or response."""
        names = message.DESCRIPTOR.fields_by_name
        if not self.namespace and "namespace" in names:
            self.namespace = message.namespace[:ID_CHARS_MAX]  # type: ignore[attr-defined]
        if "revision" in names:
            self.revision = message.revision or self.revision  # type: ignore[attr-defined]
        for found in ids_of(message):
            short = found[:ID_CHARS_MAX]
            if short in self.ids:
                continue
            self.id_count += 1
            if len(self.ids) < IDS_MAX:
                self.ids[short] = None

    def entry(self, event: str, decision: str = "allowed", code: str = "") -> Entry:
        """Return an entry with the current state of this call."""
        caller = present_caller()
        return Entry(
            event=event,
            time_us=now_us(),
            rpc=self.method,
            call=self.number,
            caller=caller.name,
            credential=caller.credential_id,
            peer=self.peer,
            namespace=self.namespace,
            ids=list(self.ids),
            id_count=self.id_count,
            parameters=self.parameters,
            decision=decision,
            code=code,
            revision=self.revision,
        )


class Auditing:
    """Records the calls of one server in an audit log."""

    def __init__(self, log: AuditLog, *, reads: bool) -> None:
        self._log = log
        self._reads = reads
        self._numbers = itertools.count(1)

    def around(self, wrap: Wrap) -> Wrap:
        """Return a wrapper of methods that applies `wrap` and records their calls."""

        def audited(method: str, handler: Handler) -> Handler:
            return self._noting_refusals(method, wrap(method, self._recording(method, handler)))

        return audited

    def keys_changed(self, found: Sequence[KeyDifference], *, at_start: bool = False) -> None:
        """Record changes of API keys. Their author is unknown: the file was changed."""
        for key in found:
            self._log.append(
                Entry(
                    event=f"key_{key.kind}",
                    time_us=now_us(),
                    ids=[key.key_id],
                    id_count=1,
                    principal=key.principal,
                    before=key.before,
                    after=key.after,
                    at_start=at_start,
                )
            )

    def keys_found(self, present: Iterable[ApiKey]) -> None:
        """Record changes of API keys since the log was last written. Raises CannotOpenLog."""
        known = self._log.known_keys()
        self.keys_changed(list(differences_from_told(known.keys, present, first=known.first)), at_start=True)

    # --- inside the guard: admitted calls --------------------------------------------------------

    def _recording(self, method: str, handler: Handler) -> Handler:
        if audit_of(method) is Audit.READ and not self._reads:
            return self._recording_writes(method, handler)
        if handler.unary_unary:
            return handler._replace(unary_unary=self._unary(method, handler.unary_unary))
        if handler.unary_stream:
            return handler._replace(unary_stream=self._stream(method, handler.unary_stream))
        return handler._replace(stream_unary=self._upload(method, handler.stream_unary))

    def _recording_writes(self, method: str, handler: Handler) -> Handler:
        if not may_write(method):
            return handler
        call, recorded = handler.unary_unary, self._unary(method, handler.unary_unary)

        def answer(request: Message, context: Context) -> Awaitable[Any]:
            return (recorded if writes(method, request) else call)(request, context)  # type: ignore[no-any-return]

        return handler._replace(unary_unary=answer)

    def _unary(self, method: str, call: Callable[[Any, Context], Awaitable[Any]]) -> Any:
        response_type = _response_type(method)

        async def answer(request: Message, context: Context) -> Any:
            told = _Call(method, next(self._numbers), context)
            told.take_request(request)
            try:
                await self._begin(told)
                response = await call(request, context)
            except BaseException as error:
                self._failed(told, error)
                raise
            if not told.reads:
                # Some servicers encode their own responses.
                encoded = isinstance(response, bytes)
                told.take(response_type.FromString(response) if encoded else response)
            self._ended(told)
            return response

        return answer

    def _stream(self, method: str, call: Callable[[Any, Context], AsyncIterator[Any]]) -> Any:
        async def answer(request: Message, context: Context) -> AsyncIterator[Any]:
            told = _Call(method, next(self._numbers), context)
            told.take_request(request)
            try:
                await self._begin(told)
                self._keep(told, told.entry("intent"))
                async for response in call(request, context):
                    yield response
            except BaseException as error:
                self._failed(told, error)
                raise
            self._ended(told)

        return answer

    def _upload(self, method: str, call: Callable[[Any, Context], Awaitable[Any]]) -> Any:
        async def answer(requests: AsyncIterator[Message], context: Context) -> Any:
            told = _Call(method, next(self._numbers), context)

            async def taken() -> AsyncIterator[Message]:
                begun = False
                async for request in requests:
                    if begun:
                        told.take(request)
                    else:
                        told.take_request(request)
                        await self._begin(told)
                        self._keep(told, told.entry("intent"))
                        begun = True
                    yield request

            try:
                response = await call(taken(), context)
            except BaseException as error:
                self._failed(told, error)
                raise
            told.take(response)
            self._ended(told)
            return response

        return answer

    async def _begin(self, told: _Call) -> None:
        """Record the start of a call. Raises StorageFull and Unavailable if that fails, and Overloaded."""
        if told.reads:
            return
        if self._log.failing or audit_of(told.method) is Audit.AHEAD:
            await aside(self._log.write_ahead(told.entry("intent")))
        elif self._log.full:
            raise Overloaded("queued_audit_entries_max", QUEUED_ENTRIES_MAX)
        told.begun, told.began_tight = True, self._log.tight

    def _failed(self, told: _Call, error: BaseException) -> None:
        if isinstance(error, MemoryServiceError):
            code = code_of(error)
        elif isinstance(error, _LEFT):
            code = grpc.StatusCode.CANCELLED
        else:
            code = grpc.StatusCode.INTERNAL
        entry = told.entry("call", "denied" if code in _DENIED else "failed", code.name)
        self._keep(told, entry, spared=not told.begun or self._met_full_disk(told, error))

    def _met_full_disk(self, told: _Call, error: BaseException) -> bool:
        """Whether a write failed because the disk was full before it began, so that it changed nothing."""
        always_tight = told.began_tight and self._log.tight
        return always_tight and isinstance(error, StorageFull) and audit_of(told.method) is Audit.WRITE

    def _ended(self, told: _Call) -> None:
        self._keep(told, told.entry("call", "allowed", "OK"))

    def _keep(self, told: _Call, entry: Entry, *, spared: bool = False) -> None:
        _KEPT.set(True)
        if told.reads or spared:
            self._log.append_spared(entry)
        else:
            self._log.append(entry)

    # --- around the guard: refused calls --------------------------------------------------------

    def _noting_refusals(self, method: str, handler: Handler) -> Handler:
        if handler.stream_stream:
            return handler._replace(stream_stream=self._noting_streams(method, handler.stream_stream))
        answer = handler.stream_unary

        async def noted(requests: Any, context: Context) -> Any:
            with _noting_request():
                try:
                    return await answer(requests, context)
                except BaseException as error:
                    self._refused(method, context, error)
                    raise

        return handler._replace(stream_unary=noted)

    def _noting_streams(self, method: str, answer: Callable[[Any, Context], AsyncIterator[Any]]) -> Any:
        async def noted(requests: Any, context: Context) -> AsyncIterator[Any]:
            with _noting_request():
                try:
                    async for response in answer(requests, context):
                        yield response
                except BaseException as error:
                    self._refused(method, context, error)
                    raise

        return noted

    def _refused(self, method: str, context: Context, error: BaseException) -> None:
        code = _status_of(context, error)
        if _KEPT.get() or code is grpc.StatusCode.OK:
            return
        unasked = code not in _DENIED and not self._reads
        if unasked and not may_write(method):
            return
        told = _Call(method, next(self._numbers), context)
        # Don't decode unauthenticated requests.
        request = _REQUEST.get()
        if code is not grpc.StatusCode.UNAUTHENTICATED and request:
            with contextlib.suppress(DecodeError):
                told.take_request(_request_type(method).FromString(request[0]))
        if not (unasked and told.reads):
            self._log.append_spared(told.entry("call", "denied" if code in _DENIED else "failed", code.name))


def _status_of(context: Context, error: BaseException) -> grpc.StatusCode:
    number = context.code()
    if number is None and isinstance(error, _LEFT):
        return grpc.StatusCode.CANCELLED
    return next(
        (code for code in grpc.StatusCode if number in (code, code.value[0])), grpc.StatusCode.UNKNOWN
    )


@lru_cache(None)
def _types(method: str) -> tuple[type[Message], type[Message]]:
    found = descriptor_pool.Default().FindMethodByName(method.lstrip("/").replace("/", "."))
    return GetMessageClass(found.input_type), GetMessageClass(found.output_type)


def _request_type(method: str) -> type[Message]:
    return _types(method)[0]


def _response_type(method: str) -> type[Message]:
    return _types(method)[1]
