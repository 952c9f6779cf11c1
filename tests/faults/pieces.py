"""The longest uninterrupted work of the event loop of a server that runs as `altered_server.py pieces`."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults.altered_server import command
from server_process import ServerProcess


@dataclass(frozen=True)
class Spent:
    """CPU time of the event loop: of its longest piece, that piece's task, and of all pieces."""

    longest_ms: float
    total_ms: float
    at: str


@dataclass(frozen=True)
class TimedServer:
    """A server whose event loop is measured."""

    process: ServerProcess
    socket: Path

    def spent(self) -> Spent:
        """Return the figures of its loop since the last call."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
            asked.settimeout(60)
            asked.connect(str(self.socket))
            told = b"".join(iter(lambda: asked.recv(4096), b"")).decode()
        longest, total, at = told.rstrip("\n").split(" ", 2)
        return Spent(float(longest), float(total), at)


@contextmanager
def timed_server(folder: Path, *flags: str, **how: Any) -> Iterator[TimedServer]:
    """Start a server whose event loop is measured."""
    path = folder / "pieces"
    env = {"PIECES_SOCKET": str(path), **how.pop("env", {})}
    with ServerProcess(folder / "data", flags=flags, env=env, command=command("pieces"), **how) as process:
        yield TimedServer(process, path)
