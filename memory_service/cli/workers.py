"""Several server processes behind one list of addresses: `serve --workers N`.

Each is a server as `serve` starts it, at a port and in a data folder of its own; they share the database.
One that ends is started again at its address. No connection goes from one to another: the client chooses a
server by the namespace, or a proxy does.
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
"""Before one that has ended is started again. Halved, one that cannot start any more writes twice the log."""
_PR_SET_PDEATHSIG = 1


class WorkerFailed(Exception):
    """A worker ended before it served; it has said why."""


def workers_problem(config: Config, count: int) -> str:
    """Return what is wrong with so many workers; empty: nothing."""
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
    """Serve with `count` processes until SIGTERM or SIGINT; `announce` is called with their addresses.

    Raises WorkerFailed where one cannot be started.
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
    """Wait until all of the events are there or one of the tasks has ended; raise what that raised."""
    there = asyncio.create_task(_all_of(events))
    done, _ = await asyncio.wait([there, *tasks], return_when=asyncio.FIRST_COMPLETED)
    there.cancel()
    for task in done:
        task.result()


async def _all_of(events: Sequence[asyncio.Event]) -> None:
    for event in events:
        await event.wait()


class _Worker:
    """One process, and the next one when it ends."""

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
            # Where the others' clients expect it.
            self._arguments["--address"] = self.address
            await asyncio.sleep(_PAUSE_S)

    def stop(self) -> None:
        """Tell the process to end as a server does; told twice, it ends at once."""
        self._stopping = True
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()

    async def _serve(self) -> int:
        # What is given twice is taken from the end.
        given = [text for pair in self._arguments.items() for text in pair]
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "memory_service", *sys.argv[1:], *given),
            stdout=asyncio.subprocess.PIPE,
            # Ctrl-C is for the parent, who passes it on once.
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
    """Return the arguments of each worker that are its own."""
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
    """Have the kernel end this process when its parent is gone, where it can (Linux)."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
