"""An event loop that hears at once of all that gRPC has for it.

gRPC's poller thread writes a byte into a socket for each of its events; the loop, woken by it, handles all
the events that there are, but reads one byte. So a busy loop is woken again and again for nothing, and when
some 280 bytes are unread the poller waits in its write: what happens next, a call of health perhaps, is
heard of many turns of the loop later.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import uvloop

# More than there is room for in the socket: it holds some hundreds of writes of a byte each.
_WAKE_UPS_MAX = 4096


class EventLoop(uvloop.Loop):
    """uvloop's, but that gRPC's wake-ups are all read when its events are handled."""

    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:  # type: ignore[override]
        """Call back when there is something to read."""
        if _handles_grpc_events(callback):
            super().add_reader(fd, _after_the_last_wake_up, fd, callback)
        else:
            super().add_reader(fd, callback, *args)


def _handles_grpc_events(callback: Any) -> bool:
    return getattr(getattr(callback, "func", None), "__name__", "") == "_handle_events"


def _after_the_last_wake_up(wake_ups: socket.socket, handle_events: Callable[[], None]) -> None:
    """Handle gRPC's events after all their wake-ups were read, but one, which gRPC reads itself.

    Not before: an event comes before its wake-up, and one whose wake-up is read has to be handled.
    """
    unread = len(wake_ups.recv(_WAKE_UPS_MAX, socket.MSG_PEEK))
    if unread > 1:
        wake_ups.recv(unread - 1)
    handle_events()
