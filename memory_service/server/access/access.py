"""Lets a call in: finds its credential, has it verified, and holds it to what it may do."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
import structlog

from memory_service.errors import PermissionDenied, Unauthenticated
from memory_service.runtime.caller import Caller, present_caller, set_caller
from memory_service.runtime.clock import latest_s
from memory_service.server.access.authenticator import Authenticator, Verified
from memory_service.server.access.certificates import certificate_subject
from memory_service.server.methods import SERVED, Method, Reach

Context = grpc.aio.ServicerContext[Any, Any]

REFRESH_EVERY_S = 1.0
"""How often changed keys are looked for, and the credentials of streams verified again."""
_KNOWN_MAX = 10_000
_TOKEN_CHARS_MAX = 8192
_SCHEME = "bearer "
_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Stream:
    token: str
    subject: str
    caller: Caller
    ended: bool = False


class Access:
    """For one server and one event loop."""

    def __init__(
        self,
        authenticators: Sequence[Authenticator],
        *,
        with_certificates: bool = False,
    ) -> None:
        self._authenticators = authenticators
        self._with_certificates = with_certificates
        # What was verified, by its token; emptied when anything changes that it was verified by.
        self._known: dict[str, Verified] = {}
        self._streams: dict[asyncio.Task[Any], _Stream] = {}
        # What has expired by then stays so, however the machine's clock is set.
        self._latest_s = latest_s()

    def knows(self, permission: Method | None, context: Context) -> bool:
        """Let a call in at once whose token was verified before; False: `enter` has to decide.

        Nearly every call comes this way, so it is no coroutine, and looks at the machine's clock alone.
        """
        try:
            verified = self._known.get(_token(context))
        except Unauthenticated:
            return False
        if verified is None or permission is None:
            return False
        if verified.expires_s <= self._latest_s or verified.expires_s <= time.time():
            return False
        caller = verified.caller
        if not permission.may_enter(caller.roles, caller.namespaces):
            return False
        set_caller(caller)
        return True

    def permission(self, method: str) -> Method | None:
        """Return what a method needs; None: nobody may call it."""
        return SERVED.get(method)

    async def enter(self, permission: Method | None, context: Context) -> None:
        """Note who makes a call of a method, before anything else is done with it.

        Raises Unauthenticated, and PermissionDenied where the credential is not good for the method at all.
        """
        caller = await self.identify(context)
        if permission is None or not permission.may_enter(caller.roles, caller.namespaces):
            raise PermissionDenied

    async def identify(self, context: Context) -> Caller:
        """Note who makes a call, and return them. Raises Unauthenticated."""
        token = _token(context)
        verified = self._known.get(token) if token else None
        if verified is None or verified.expires_s <= self._now_s():
            verified = await self._verify(token, self._subject(token, context))
            if verified is None:
                raise Unauthenticated
        set_caller(verified.caller)
        return verified.caller

    def authorising(self, method: str, decode: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
        """Return a decoder for a method's requests that refuses those which the caller may not make."""
        permission = SERVED.get(method)
        if permission is None:
            return _refuse
        in_namespace = permission.reach is Reach.NAMESPACE

        def decoder(raw: bytes) -> Any:
            request = decode(raw)
            _check(permission, request, in_namespace=in_namespace)
            return request

        return decoder

    def authorising_upload(self, method: str, decode: Callable[[bytes], Any]) -> Callable[[], Any]:
        """Return what makes such a decoder for an upload.

        After the first message one may leave the namespace out, and nothing else: what a message holds is
        checked in each of them.
        """
        permission = SERVED.get(method)
        if permission is None:
            return lambda: _refuse
        of_namespaces = permission.reach is Reach.NAMESPACE

        def begin() -> Callable[[bytes], Any]:
            begun = False

            def decoder(raw: bytes) -> Any:
                nonlocal begun
                request = decode(raw)
                in_namespace = of_namespaces and (not begun or bool(request.namespace))
                _check(permission, request, in_namespace=in_namespace)
                begun = True
                return request

            return decoder

        return begin

    async def _verify(self, token: str, subject: str) -> Verified | None:
        for authenticator in self._authenticators:
            verified = (
                await authenticator.verify_token(token) if token else authenticator.verify_peer(subject)
            )
            # Looked at in any case: what has expired by the machine's clock is not to come back with it.
            now_s = self._now_s()
            if verified is not None and verified.expires_s > now_s:
                if token:
                    self._remember(token, verified)
                return verified
        return None

    def _now_s(self) -> float:
        self._latest_s = latest_s()
        return self._latest_s

    def _remember(self, token: str, verified: Verified) -> None:
        self._known.pop(token, None)
        if len(self._known) >= _KNOWN_MAX:
            del self._known[next(iter(self._known))]
        self._known[token] = verified

    def _subject(self, token: str, context: Context) -> str:
        """Return whom a certificate names, where that counts: who presents a token is judged by it alone."""
        return "" if token or not self._with_certificates else certificate_subject(context)

    def open_stream(self, task: asyncio.Task[Any], context: Context) -> None:
        """Have the credential of a stream that was let in verified again and again."""
        token = _token(context)
        self._streams[task] = _Stream(token, self._subject(token, context), present_caller())

    def close_stream(self, task: asyncio.Task[Any]) -> None:
        """Forget a stream that has ended."""
        self._streams.pop(task, None)

    def has_ended(self, task: asyncio.Task[Any]) -> bool:
        """Whether a stream was cancelled because its credential is not good any more."""
        stream = self._streams.get(task)
        return stream is not None and stream.ended

    @contextlib.asynccontextmanager
    async def refreshing(self) -> AsyncIterator[None]:
        """Follow changes of keys as long as the context lasts."""
        task = asyncio.create_task(self._refresh())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _refresh(self) -> None:
        while True:
            for authenticator in self._authenticators:
                try:
                    changed = await authenticator.refresh()
                except Exception:
                    # Whatever it was: nothing that was verified before counts, and the next look is due.
                    _log.exception("refresh_of_credentials_failed")
                    changed = True
                if changed:
                    self._known.clear()
            await self._review_streams()
            await asyncio.sleep(REFRESH_EVERY_S)

    async def _review_streams(self) -> None:
        """End the streams whose credentials are not good any more, or not what they were."""
        now_s = self._now_s()
        for task, stream in list(self._streams.items()):
            verified = self._known.get(stream.token)
            if verified is None or verified.expires_s <= now_s:
                verified = await self._verify(stream.token, stream.subject)
            good = verified is not None and verified.caller == stream.caller
            if not good and not stream.ended and task in self._streams:
                stream.ended = True
                task.cancel()


def _refuse(raw: bytes) -> Any:
    raise PermissionDenied


def _check(permission: Method, request: Any, *, in_namespace: bool) -> None:
    """Refuse a request that the caller may not make, by what it holds. Runs for every call."""
    caller = present_caller()
    if in_namespace:
        name = request.namespace
        # A name is found without a look at each pattern.
        if name not in caller.namespaces and not caller.may_use(name):
            raise PermissionDenied
    if permission.added is not None and not permission.added(request) <= caller.roles:
        raise PermissionDenied


def _token(context: Context) -> str:
    """Return the bearer token of a call; "" where it has none. Raises Unauthenticated for anything else."""
    found: Any = None
    for key, value in context.invocation_metadata() or ():
        if key == "authorization":
            if found is not None:
                raise Unauthenticated
            found = value
    if found is None:
        return ""
    if not isinstance(found, str) or len(found) > _TOKEN_CHARS_MAX or found[:7].lower() != _SCHEME:
        raise Unauthenticated
    token = found[7:].strip()
    # None at all would be the call of somebody who presents nothing, and may have a certificate.
    if not token:
        raise Unauthenticated
    return token
