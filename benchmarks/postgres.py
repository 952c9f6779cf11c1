"""A separate PostgreSQL server with its default durability, whose CPU time is counted."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(_ROOT / "tests"))

from postgres_server import give, prefix_as_user, programs  # noqa: E402 - found only on the path set above

__all__ = ["Postgres", "postgres", "programs"]

_OPTIONS = ("-c", "listen_addresses=", "-c", "max_connections=200", "-c", "shared_buffers=256MB")
_READY_S = 60.0


@dataclass(frozen=True)
class Postgres:
    """A running server."""

    dsn: str
    pid: int

    def cpu_seconds(self) -> float:
        """Return the CPU time of all its processes so far, including those that have exited."""
        ticks = sum(_ticks(self.pid))
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if int(_stat(int(folder.name))[1]) == self.pid:
                    ticks += sum(_ticks(int(folder.name))[:2])
            except (OSError, ValueError):
                continue  # It has exited since; from now on its parent's counters include it.
        return ticks / os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()


def _ticks(pid: int) -> tuple[int, int, int, int]:
    """Return user and system time, including that of exited children."""
    user, system, child_user, child_system = map(int, _stat(pid)[11:15])
    return user, system, child_user, child_system


@contextmanager
def postgres() -> Iterator[Postgres]:
    """Start a server with an empty database, and remove it at the end."""
    folder = Path(tempfile.mkdtemp(prefix="memory-bench-pg-"))
    bin_dir = programs()
    assert bin_dir is not None
    try:
        give(folder)
        as_user = prefix_as_user()
        subprocess.run(
            [*as_user, str(bin_dir / "initdb"), "-D", str(folder / "data"), "-U", "postgres", "-A", "trust",
             "-E", "UTF8", "--locale=C"],
            check=True, stdout=subprocess.DEVNULL, cwd="/",
        )  # fmt: skip
        command = [
            *as_user,
            str(bin_dir / "postgres"),
            "-D",
            str(folder / "data"),
            "-k",
            str(folder),
            *_OPTIONS,
        ]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, cwd="/")
        try:
            yield _ready(process, folder)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(_READY_S)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _ready(process: subprocess.Popen[bytes], folder: Path) -> Postgres:
    import psycopg

    dsn = f"host={folder} user=postgres dbname=postgres"
    until = time.monotonic() + _READY_S
    while True:
        try:
            psycopg.connect(dsn).close()
        except psycopg.OperationalError:
            if time.monotonic() > until or process.poll() is not None:
                raise
            time.sleep(0.05)
        else:
            return Postgres(dsn, process.pid)
