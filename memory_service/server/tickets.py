"""A call while it waits and is answered, and whose it is."""

from __future__ import annotations

import asyncio

from memory_service.runtime.caller import Caller, Owner

# As a varint: the only length of a namespace that takes two bytes.
_LENGTH_128 = b"\x80\x01"


class Ticket:
    """A call from its arrival to its answer. `gate` is what it awaits before it starts; None: nothing."""

    __slots__ = ("gate", "let_in", "owner", "raw", "until")

    def __init__(self, raw: bytes, caller: Caller) -> None:
        self.raw = raw
        self.owner = owner_of(raw, caller)
        self.gate: asyncio.Future[None] | None = None
        self.until: float | None = None
        """The time of `time.perf_counter` at which its caller stops waiting; None: never."""
        self.let_in = True

    def wait(self, gate: asyncio.Future[None], until: float | None) -> None:
        """Have it wait for its gate."""
        self.gate, self.until, self.let_in = gate, until, False

    def waits(self) -> bool:
        """Whether its caller still waits for it to start."""
        return self.gate is not None and not self.gate.done()


def owner_of(raw: bytes, caller: Caller) -> Owner:
    """Return whose a request is.

    The namespace is the first field of every request that has one. It is read off the bytes, for a
    call that may be refused is not worth decoding: a client that writes its fields in another order
    waits in the queue of all those of its caller that do.
    """
    if len(raw) < 2 or raw[0] != 0x0A:
        return Owner(caller.name, b"")
    if raw[1:3] == _LENGTH_128:
        return Owner(caller.name, raw[3 : 3 + 128])
    # No namespace is longer.
    return Owner(caller.name, raw[2 : 2 + raw[1]] if raw[1] < 128 else b"")
