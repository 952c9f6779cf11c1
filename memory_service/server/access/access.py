"""Admits calls: extracts the credential, verifies it, and enforces its permissions."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import grpc

from memory_service.errors import PermissionDenied, Unauthenticated
from memory_service.runtime.caller import Caller, present_caller, set_caller
from memory_service.runtime.clock import latest_s
from memory_service.runtime.event_log import EventLog
from memory_service.server.access.authenticator import Authenticator, Verified
from memory_service.server.access.certificates import certificate_subject
from memory_service.server.methods import SERVED, Method, Reach

Context = grpc.aio.ServicerContext[Any, Any]

REFRESH_EVERY_S = 1.0
"""Interval of checking for changed keys, and of verifying the credentials of streams again."""
_KNOWN_MAX = 10_000
_TOKEN_CHARS_MAX = 8192
_SCHEME = "bearer "
_log = EventLog(__name__)


@dataclass(slots=True)
class _Stream:
    token: str
    subject: str
    caller: Caller
    ended: bool = False


class Access:
    """Access control for one server and one event loop."""

    def __init__(
        self,
        authenticators: Sequence[Authenticator],
        *,
        with_certificates: bool = False,
    ) -> None:
        self._authenticators = authenticators
        self._with_certificates = with_certificates
        # Verified credentials by token; cleared whenever keys change.
        self._known: dict[str, Verified] = {}
        self._streams: dict[asyncio.Task[Any], _Stream] = {}
        # Credentials expired by then stay expired, even if the machine's clock is set back.
        self._latest_s = latest_s()

    def knows(self, permission: Method | None, context: Context) -> bool:
        """Admit a call at once if its token was verified before; False: `enter` must decide.

        Nearly every call takes this path, so it is no coroutine and reads only the machine's clock.
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
        """Return the requirements of a method; None: no caller may call it."""
        return SERVED.get(method)

    async def enter(self, permission: Method | None, context: Context) -> None:
        """Identify the caller of a method, before anything else is done with the call.

        Raises Unauthenticated, and PermissionDenied if the credential never permits this method.
        """
        caller = await self.identify(context)
        if permission is None or not permission.may_enter(caller.roles, caller.namespaces):
            raise PermissionDenied

    async def identify(self, context: Context) -> Caller:
        """Identify and return the caller. Raises Unauthenticated."""
        token = _token(context)
        verified = self._known.get(token) if token else None
        if verified is None or verified.expires_s <= self._now_s():
            verified = await self._verify(token, self._subject(token, context))
            if verified is None:
                raise Unauthenticated
        set_caller(verified.caller)
        return verified.caller

    def authorising(self, method: str, decode: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
        """Return a decoder for a method's requests that refuses those that the caller may not make."""
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
        """Return a factory of such decoders, one per upload.

        After the first message the namespace may be omitted, but nothing else: every message is checked.
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
            # Read in any case, so that credentials expired by the machine's clock do not become valid with it
            # again.
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
        """Return the subject of the certificate; "" if there is a token, which alone decides then."""
        return "" if token or not self._with_certificates else certificate_subject(context)

    def open_stream(self, task: asyncio.Task[Any], context: Context) -> None:
        """Start verifying the credential of an admitted stream periodically."""
        token = _token(context)
        self._streams[task] = _Stream(token, self._subject(token, context), present_caller())

    def close_stream(self, task: asyncio.Task[Any]) -> None:
        """Forget a stream that has ended."""
        self._streams.pop(task, None)

    def has_ended(self, task: asyncio.Task[Any]) -> bool:
        """Whether a stream was cancelled because its credential is no longer valid."""
        stream = self._streams.get(task)
        return stream is not None and stream.ended

    @contextlib.asynccontextmanager
    async def refreshing(self) -> AsyncIterator[None]:
        """Check for changed keys periodically while the context is open."""
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
                    # Whatever the error, drop all verified credentials; the next check will try again.
                    _log.exception("refresh_of_credentials_failed")
                    changed = True
                if changed:
                    self._known.clear()
            await self._review_streams()
            await asyncio.sleep(REFRESH_EVERY_S)

    async def _review_streams(self) -> None:
        """End the streams whose credentials are no longer valid, or have changed."""
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
    """Refuse a request with contents that the caller is not allowed to send. Runs for every call."""
    caller = present_caller()
    if in_namespace:
        others = permission.others(request) if permission.others is not None else ()
        if (request.namespace or not others) and not caller.may_use(request.namespace):
            raise PermissionDenied
        for other in others:
            if not caller.may_use(other):
                raise PermissionDenied
    if permission.added is not None and not permission.added(request) <= caller.roles:
        raise PermissionDenied


def _token(context: Context) -> str:
    """Return the bearer token of a call; "" if there is none. Raises Unauthenticated for anything else."""
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
    # An empty token is not the same as no token, which leaves the certificate to decide.
    if not token:
        raise Unauthenticated
    return token
