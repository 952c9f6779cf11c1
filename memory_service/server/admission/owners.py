"""Whose a call is: its caller's, and of which of the caller's namespaces."""

from __future__ import annotations

from memory_service.caller import Caller, Owner

# As a varint: the only length of a namespace that takes two bytes.
_LENGTH_128 = b"\x80\x01"


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
