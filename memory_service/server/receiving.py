"""Reads what clients send, and counts it in the budget of bytes from then on.

gRPC says neither how large a message will be nor how much of it has come. So one that arrives at once is
counted when it is whole, and one that takes longer as the largest that there may be, for as long as it is
awaited: clients that send half a message each cannot take more than the budget. Where there is no room, one
is refused, and what has come of it is dropped. Nothing is read before the call's credential was verified:
until then gRPC keeps no more of it than its window of 64 KiB.
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
"""Counted is what is seen twice so far apart. Doubled, twice as much may have come uncounted."""
_TURNS = 10
"""Of a busy loop, in which messages that are there are handed over. Doubled, a look comes a little later."""
_COPIES = 3
"""A message is there three times while gRPC hands it over: as it came, in parts, whole. Doubled, half as many
may be awaited for longer than a moment."""
_TOGETHER = 64
"""Messages of a caller that are awaited and not counted. Doubled, twice as many may turn out to be large."""
_LARGE_BYTES = 1 * MIB
"""Taking over 16 MiB keeps the loop for 25 ms. Doubled, several of 2 MiB may come one after another."""
_ARRIVES_WITHIN_S = 60.0
"""Doubled, a client that stalls keeps its place twice as long while others wait for one."""

# What gzip begins with, and no message of ours.
_GZIP = b"\x1f\x8b"

Context = grpc.aio.ServicerContext[Any, Any]
Sizes = Callable[[bytes], int]


class _Turns:
    """How many messages of a caller are awaited: one at first, the more small ones it sends the more, and
    after a large one one again, as TCP opens and closes its window."""

    def __init__(self) -> None:
        self._most = 1
        self._taken = 0
        self._waiting = deque[asyncio.Future[None]]()

    async def take(self) -> None:
        """Return when one more may be awaited."""
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
        """Note that one has come, or is counted."""
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
    """A call that receives messages, and what it holds."""

    __slots__ = ("turns",)

    def __init__(self, budget: ByteBudget, caller: str, turns: _Turns) -> None:
        super().__init__(budget, caller)
        self.turns = turns


class _Awaited:
    """A message that has not come yet, or not all of it."""

    __slots__ = ("context", "counted", "held", "late", "since", "turns")

    def __init__(self, context: Context, held: Receiver, since: float) -> None:
        self.context, self.held, self.since = context, held, since
        self.turns: _Turns | None = held.turns
        self.counted, self.late = 0, False

    def give_turn(self, *, large: bool) -> None:
        """Let the next message of the same caller be awaited. Once more changes nothing."""
        if self.turns is not None:
            self.turns.give(large=large)
            self.turns = None


class Receiving:
    """For one event loop."""

    def __init__(self, bytes_max: int, message_bytes_max: int) -> None:
        self._budget = ByteBudget(bytes_max)
        self._late_bytes = _COPIES * message_bytes_max
        # Of callers of whom a call is under way.
        self._turns = WeakValueDictionary[str, _Turns]()
        # The oldest first.
        self._awaited: dict[_Awaited, None] = {}
        self._looking = False
        self._endings = set[asyncio.Task[None]]()

    def hold(self, context: Context, *, apart: str = "") -> Receiver:
        """Return what a call holds, until it has ended and its answer was sent.

        It is its caller's; of a caller without a name, its connection's. `apart`: of its calls of this kind
        alone, which do not wait for those of other kinds.
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
        """Return the next message of a call, counted as `sizes` says; None: there are no more.

        Raises Overloaded where there is no room for it, Unsupported for what is compressed, and what `sizes`
        raises.
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
                    "compression", "compressed messages are not supported: send them as they are"
                )
            held.take(sizes(raw))
        except MemoryServiceError as error:
            # The frames of the error would keep the message for as long as it takes to report it.
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
        """Yield the messages of a call. Each counts until the next one is asked for."""
        before = held.size
        while (raw := await self.read(context, held, sizes)) is not None:
            yield raw
            held.give(held.size - before)

    def _look(self, turns: int = _TURNS) -> None:
        """Count what has been awaited for longer than a moment, once what has come meanwhile was handled."""
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
        # Whoever comes next is to find the place of one that stalls.
        oldest = next(iter(self._awaited), None)
        if oldest is not None and oldest.since < now - _ARRIVES_WITHIN_S:
            self._end(oldest)

    def _end(self, awaited: _Awaited) -> None:
        # Not by cancelling its task: gRPC would keep what has come, and nobody would free it.
        del self._awaited[awaited]
        task = asyncio.create_task(_abort(awaited.context, awaited.held.overloaded()))
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)


async def _abort(context: Context, error: Overloaded) -> None:
    # What it waits for ends with the same error; it may have ended by itself meanwhile.
    with contextlib.suppress(grpc.aio.AbortError, grpc.aio.UsageError, grpc.aio.InternalError):
        await context.abort(*abort_of(error))
