"""Receives messages, and counts them against the byte budget.

gRPC reports neither the size of an incoming message nor how much of it has arrived. A message that arrives at
once is therefore counted when complete; a slower one counts as the largest possible for as long as it is
pending, so that clients that send half a message each cannot exceed the budget. Without room a pending
message is refused, and its data dropped. Nothing is read before the credential is verified: until then gRPC
buffers no more than its window of 64 KiB.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any
from weakref import WeakValueDictionary

import grpc

from memory_service.errors import MemoryServiceError, Overloaded, Unsupported
from memory_service.limits import MIB
from memory_service.runtime.byte_budget import ByteBudget, Held
from memory_service.runtime.caller import present_caller
from memory_service.server.errors import abort_of

_AT_ONCE_S = 0.05
"""Messages are counted if pending in two checks this far apart.

Doubled: twice as much may arrive uncounted.
"""
_TURNS = 10
"""Turns of a busy loop that deliver complete messages first. Doubled: a check comes slightly later."""
_COPIES = 3
"""gRPC holds a message three times while delivering it: raw, in parts, whole.

Doubled: half as many slow messages may be pending.
"""
_TOGETHER = 64
"""Pending, uncounted messages per caller. Doubled: twice as many may turn out to be large."""
_LARGE_BYTES = 1 * MIB
"""Receiving 16 MiB blocks the loop for 25 ms. Doubled: several of 2 MiB may come one after another."""
_ARRIVES_WITHIN_S = 60.0
"""Doubled: a stalled client keeps its slot twice as long while others wait for one."""

# The first bytes of gzip, with which no valid message begins.
_GZIP = b"\x1f\x8b"

Context = grpc.aio.ServicerContext[Any, Any]
Sizes = Callable[[bytes], int]


class _Turns:
    """Limits how many messages of a caller may be pending.

    It starts at one, grows with each small message, and returns to one after a large one, as TCP does with
    its window.
    """

    def __init__(self) -> None:
        self._most = 1
        self._taken = 0
        self._waiting = deque[asyncio.Future[None]]()

    async def take(self) -> None:
        """Return when one more message may be pending."""
        while self._taken >= self._most:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                self._wake()
                raise
        self._taken += 1

    def give(self, *, large: bool) -> None:
        """Note that a message has arrived, or is counted."""
        self._taken -= 1
        self._most = 1 if large else min(self._most + 1, _TOGETHER)
        self._wake()

    def _wake(self) -> None:
        free = self._most - self._taken
        while free > 0 and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1


class Receiver(Held):
    """A call that receives messages, and the bytes that it holds."""

    __slots__ = ("turns",)

    def __init__(self, budget: ByteBudget, caller: str, turns: _Turns) -> None:
        super().__init__(budget, caller)
        self.turns = turns


class _Awaited:
    """A message that has not arrived completely."""

    __slots__ = ("context", "counted", "held", "late", "since", "turns")

    def __init__(self, context: Context, held: Receiver, since: float) -> None:
        self.context, self.held, self.since = context, held, since
        self.turns: _Turns | None = held.turns
        self.counted, self.late = 0, False

    def give_turn(self, *, large: bool) -> None:
        """Allow the caller's next message. Idempotent."""
        if self.turns is not None:
            self.turns.give(large=large)
            self.turns = None


class Receiving:
    """The receiving side of one event loop."""

    def __init__(self, bytes_max: int, message_bytes_max: int) -> None:
        self._budget = ByteBudget(bytes_max)
        self._late_bytes = _COPIES * message_bytes_max
        # Callers with running calls.
        self._turns = WeakValueDictionary[str, _Turns]()
        # Oldest first.
        self._awaited: dict[_Awaited, None] = {}
        self._looking = False
        self._endings = set[asyncio.Task[None]]()

    def hold(self, context: Context, *, apart: str = "") -> Receiver:
        """Return the budget of a call, valid until its response was sent.

        It belongs to the caller, or to the connection if the caller is anonymous. `apart`: it is shared only
        with calls of the same kind, which do not wait for those of other kinds.
        """
        caller = apart + (present_caller().name or context.peer())
        turns = self._turns.get(caller)
        if turns is None:
            turns = self._turns[caller] = _Turns()
        held = Receiver(self._budget, caller, turns)

        def close(_context: Context) -> None:
            held.close()

        context.add_done_callback(close)  # type: ignore[arg-type] # the stubs say that it takes its context twice
        return held

    async def read(self, context: Context, held: Receiver, sizes: Sizes = len) -> bytes | None:
        """Return the next message of a call, counted by `sizes`; None at the end.

        Raises Overloaded if there is no room, Unsupported for compressed messages, and the errors of `sizes`.
        """
        await held.turns.take()
        awaited, large = self._begin(context, held), False
        try:
            raw = await context.read()
            large = len(raw or b"") > _LARGE_BYTES
        finally:
            self._awaited.pop(awaited, None)
            awaited.give_turn(large=large)
            if awaited.counted:
                held.give(awaited.counted)
        if raw is grpc.aio.EOF:
            return None
        try:
            if raw[:2] == _GZIP:
                raise Unsupported(
                    "compression", "compressed messages are not supported: send them uncompressed"
                )
            held.take(sizes(raw))
        except MemoryServiceError as error:
            # The traceback would keep the message alive until the error is reported.
            raw, refusal = None, error.with_traceback(None)
        else:
            return raw  # type: ignore[no-any-return]
        raise refusal

    def _begin(self, context: Context, held: Receiver) -> _Awaited:
        loop = asyncio.get_running_loop()
        awaited = _Awaited(context, held, loop.time())
        self._awaited[awaited] = None
        if not self._looking:
            self._looking = True
            loop.call_later(_AT_ONCE_S, self._look)
        return awaited

    async def messages(self, context: Context, held: Receiver, sizes: Sizes = len) -> AsyncIterator[bytes]:
        """Yield the messages of a call. Each counts until the next one is requested."""
        before = held.size
        while (raw := await self.read(context, held, sizes)) is not None:
            yield raw
            held.give(held.size - before)

    def _look(self, turns: int = _TURNS) -> None:
        """Count messages pending for longer than a moment, after processing what has arrived."""
        loop = asyncio.get_running_loop()
        if turns:
            loop.call_soon(self._look, turns - 1)
            return
        now = loop.time()
        for awaited in list(self._awaited):
            if awaited.since > now - _AT_ONCE_S:
                break
            if not awaited.late:
                awaited.late = True
            elif not awaited.counted:
                self._count(awaited, now)
        self._looking = bool(self._awaited)
        if self._looking:
            loop.call_later(_AT_ONCE_S, self._look)

    def _count(self, awaited: _Awaited, now: float) -> None:
        awaited.give_turn(large=True)
        if awaited.held.try_take(self._late_bytes):
            awaited.counted = self._late_bytes
            return
        self._end(awaited)
        # A new message takes the slot of one that stalls.
        oldest = next(iter(self._awaited), None)
        if oldest is not None and oldest.since < now - _ARRIVES_WITHIN_S:
            self._end(oldest)

    def _end(self, awaited: _Awaited) -> None:
        # Don't cancel its task: gRPC would keep the received data and never free it.
        del self._awaited[awaited]
        task = asyncio.create_task(_abort(awaited.context, awaited.held.overloaded()))
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)


async def _abort(context: Context, error: Overloaded) -> None:
    # The pending read fails with the same error, or has ended meanwhile.
    with contextlib.suppress(grpc.aio.AbortError, grpc.aio.UsageError, grpc.aio.InternalError):
        await context.abort(*abort_of(error))
