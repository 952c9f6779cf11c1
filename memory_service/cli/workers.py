"""Several server processes behind one list of addresses: `serve --workers N`.

Each is a server with its own port and data folder; they share the database. A worker that ends is restarted
at its address. Workers do not connect to each other: the client or a proxy selects one by namespace.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import re
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memory_service.config import Config

_LISTENING = re.compile(rb"listening on (\S+)")
_PAUSE_S = 1.0
"""Pause before a restart. With half of it, a worker that cannot start logs twice as much."""
_PR_SET_PDEATHSIG = 1


class WorkerFailed(Exception):
    """Raised if a worker ended before it was ready; it has logged the reason."""


def workers_problem(config: Config, count: int) -> str:
    """Return why this number of workers is impossible, or an empty text."""
    if count < 1:
        return "workers must be positive"
    if count == 1:
        return ""
    if config.store != "postgres":
        return f"workers needs the store postgres: records of the store {config.store} belong to one process"
    for name in ("address", "health_address"):
        host, _, port = getattr(config, name).rpartition(":")
        if getattr(config, name) and (host.startswith("unix") or int(port) + count - 1 > 65535):
            return f"{name} must be HOST:PORT with {count} ports from there on, or port 0"
    return ""


def run_workers(config: Config, count: int, announce: Callable[[str], None]) -> None:
    """Serve with `count` processes until SIGTERM or SIGINT; call `announce` with their addresses.

    Raises WorkerFailed if one cannot start.
    """
    asyncio.run(_Workers(config, count).run(announce))


class _Workers:
    def __init__(self, config: Config, count: int) -> None:
        self._workers = [_Worker(arguments) for arguments in _arguments(config, count)]

    async def run(self, announce: Callable[[str], None]) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        tasks = [asyncio.create_task(worker.run()) for worker in self._workers]
        try:
            await _first_error(tasks, [worker.serving for worker in self._workers])
            if all(worker.serving.is_set() for worker in self._workers):
                announce(",".join(worker.address for worker in self._workers))
            await asyncio.gather(*tasks)
        finally:
            self._stop()
            await asyncio.wait(tasks)

    def _stop(self) -> None:
        for worker in self._workers:
            worker.stop()


async def _first_error(tasks: Sequence[asyncio.Task[None]], events: Sequence[asyncio.Event]) -> None:
    """Wait until all events are set or a task has ended; raise its exception."""
    there = asyncio.create_task(_all_of(events))
    done, _ = await asyncio.wait([there, *tasks], return_when=asyncio.FIRST_COMPLETED)
    there.cancel()
    for task in done:
        task.result()


async def _all_of(events: Sequence[asyncio.Event]) -> None:
    for event in events:
        await event.wait()


class _Worker:
    """A process that is restarted when it ends."""

    def __init__(self, arguments: dict[str, str]) -> None:
        self._arguments = arguments
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = False
        self.address = ""
        self.serving = asyncio.Event()

    async def run(self) -> None:
        while not self._stopping:
            code = await self._serve()
            if self._stopping:
                return
            if not self.serving.is_set():
                raise WorkerFailed(f"a worker ended with {code}")
            # At the address that clients know.
            self._arguments["--address"] = self.address
            await asyncio.sleep(_PAUSE_S)

    def stop(self) -> None:
        """Shut the process down like a server; a second call ends it at once."""
        self._stopping = True
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()

    async def _serve(self) -> int:
        # The last of repeated options counts.
        given = [text for pair in self._arguments.items() for text in pair]
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "memory_service", *sys.argv[1:], *given),
            stdout=asyncio.subprocess.PIPE,
            # Ctrl-C goes to the parent, which forwards it once.
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
        if self._stopping:
            self.stop()
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            if match := _LISTENING.search(line):
                self.address = match[1].decode()
                self.serving.set()
        return await self._process.wait()


def _arguments(config: Config, count: int) -> list[dict[str, str]]:
    """Return the arguments that differ between workers."""
    return [
        {
            "--workers": "1",
            "--address": _shifted(config.address, number),
            "--health-address": _shifted(config.health_address, number),
            "--data-dir": str(Path(config.data_dir, f"worker-{number + 1}")),
        }
        for number in range(count)
    ]


def _shifted(address: str, by: int) -> str:
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) + by}" if port and int(port) else address


def _end_with_parent() -> None:
    """Have the kernel end this process when its parent ends (Linux only)."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
