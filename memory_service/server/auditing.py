"""What the audit log is told: of calls, around the guard of those that it refuses, inside it of the others;
and of API keys that were made, changed or ended."""

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

# How a call ends whose caller has left.
_LEFT = (asyncio.CancelledError, GeneratorExit)
_DENIED = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)

Context = grpc.aio.ServicerContext[Any, Any]
Handler = Any
Wrap = Callable[[str, Handler], Handler]

_KEPT: ContextVar[bool] = ContextVar("kept_in_the_audit_log", default=False)
# Emptied when the call has ended: what it has started may keep its context for longer.
_REQUEST: ContextVar[list[bytes] | None] = ContextVar("request_of_the_call", default=None)


def note_request(raw: bytes) -> None:
    """Note what the present call asks for, for the entry of one that is refused."""
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
    """One call, as its entries tell of it."""

    def __init__(self, method: str, number: int, context: Context) -> None:
        self.method, self.number, self.peer = method, number, context.peer()
        self.reads = audit_of(method) is Audit.READ
        self.namespace = ""
        self.ids: dict[str, None] = {}
        self.id_count = 0
        self.revision = 0
        self.parameters: dict[str, str] = {}
        self.begun = False
        """Whether it was let in, so that it may have changed something."""
        self.began_tight = False

    def take_request(self, request: Message) -> None:
        """Note what a request is about, what it wants done, and whether it writes."""
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
        """Return an entry of this call as it stands now."""
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
    """Tells an audit log of the calls of one server."""

    def __init__(self, log: AuditLog, *, reads: bool) -> None:
        self._log = log
        self._reads = reads
        self._numbers = itertools.count(1)

    def around(self, wrap: Wrap) -> Wrap:
        """Return what wraps a method as `wrap` does, and tells the log of its calls."""

        def audited(method: str, handler: Handler) -> Handler:
            return self._noting_refusals(method, wrap(method, self._recording(method, handler)))

        return audited

    def keys_changed(self, found: Sequence[KeyDifference], *, at_start: bool = False) -> None:
        """Keep what became of API keys. Who did it is not known: their file was changed."""
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
        """Keep what became of API keys since the log was last written. Raises CannotOpenLog."""
        known = self._log.known_keys()
        self.keys_changed(list(differences_from_told(known.keys, present, first=known.first)), at_start=True)

    # --- inside the guard: calls that are let in ----------------------------------------------

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
                # Some servicers encode their responses themselves.
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
        """Let a call in. Raises StorageFull and Unavailable where it would go unnoticed, and Overloaded."""
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
        """Whether a write was refused for a disk that was full before it began: so nothing of it was done."""
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

    # --- around the guard: calls that it refuses ----------------------------------------------

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
        # Of somebody whom no credential names nothing is believed, nor is it worth the work.
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
