"""PostgreSQL with synchronous standbys, one of which is promoted when the primary fails.

Each node is a real server in its own folder. A commit returns once one of the other two nodes has it.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

import postgres_server

_OPTIONS = (
    *("listen_addresses=127.0.0.1", "max_connections=200", "shared_buffers=32MB", "fsync=off"),
    *("wal_level=replica", "hot_standby=on", "max_wal_senders=10", "wal_keep_size=64MB"),
    *("wal_receiver_timeout=5s", "wal_sender_timeout=5s", "wal_retrieve_retry_interval=100ms"),
    "log_lock_waits=on",
)  # fmt: skip


def until(happened: Callable[[], Any], what: str, timeout_s: float = 60) -> Any:
    """Wait for a result, and return it. Errors of the database are ignored meanwhile."""
    end = time.monotonic() + timeout_s
    while True:
        try:
            if found := happened():
                return found
        except psycopg.OperationalError:
            pass
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.02)


class Node:
    """A server: its data below `folder`, reached at `port`."""

    def __init__(self, folder: Path, name: str, programs: Path, options: Sequence[str] = ()) -> None:
        self.name, self.folder, self._programs = name, folder, programs
        self.data, self.log = folder / name, folder / f"{name}.log"
        self._options = options
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def dsn(self) -> str:
        """The connection string."""
        return f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres"

    @property
    def address(self) -> str:
        """The address it listens on."""
        return f"127.0.0.1:{self.port}"

    def run(self, program: str, *arguments: str) -> None:
        """Run one of the programs and wait for it."""
        subprocess.run(
            [*postgres_server.prefix_as_user(), str(self._programs / program), *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd="/",
        )

    def create(self) -> Node:
        """Create an empty database."""
        self.run(
            "initdb", "-D", str(self.data), "-U", "postgres", "-A", "trust", "-N", "-E", "UTF8",
            "--locale=C", "--wal-segsize=1",
        )  # fmt: skip
        return self

    def copy(self, primary: Node) -> Node:
        """Become a standby of a running node, replacing any earlier data."""
        shutil.rmtree(self.data, ignore_errors=True)
        self.run("pg_basebackup", "-D", str(self.data), "-d", primary.dsn, "-c", "fast", "-N", "-X", "stream")
        (self.data / "standby.signal").touch()
        self.follow(primary)
        return self

    def follow(self, primary: Node) -> None:
        """Replicate from another node from now on."""
        self.set("primary_conninfo", f"{primary.dsn} application_name={self.name}")

    def set(self, name: str, value: str) -> None:
        """Change a setting, even while the server runs."""
        with (self.data / "postgresql.auto.conf").open("a") as file:
            file.write(f"{name} = '{value}'\n")
        if self.process is not None:
            self.process.send_signal(signal.SIGHUP)

    def start(self) -> Node:
        """Start it, and return when it answers."""
        command = [
            *postgres_server.prefix_as_user(), str(self._programs / "postgres"), "-D", str(self.data),
            "-p", str(self.port), "-k", str(self.folder),
        ]  # fmt: skip
        for option in (*_OPTIONS, *self._options):
            command += ["-c", option]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd="/")
        until(lambda: self.ask("SELECT 1"), f"{self.name} to start")
        return self

    def ask(self, statement: str) -> list[Any]:
        """Return the rows of a statement."""
        with psycopg.connect(self.dsn, autocommit=True, connect_timeout=5) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def processes(self) -> list[int]:
        """Return the ids of all its processes."""
        assert self.process is not None
        found = [self.process.pid]
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = int(stat.read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, ValueError):
                continue
            if parent == self.process.pid:
                found.append(int(stat.parent.name))
        return found

    def kill(self) -> None:
        """Kill all its processes at once, like a machine that fails."""
        assert self.process is not None
        # So that it cannot start another one meanwhile.
        self.process.send_signal(signal.SIGSTOP)
        self._send(signal.SIGKILL)
        self.process.wait()
        self.process = None

    def pause(self) -> None:
        """Suspend all its processes, like a machine that hangs."""
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it continue."""
        self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        for pid in reversed(self.processes()):
            # Some exit by themselves meanwhile.
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def stop(self) -> None:
        """Stop it and cut off its connections."""
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(60)
            self.process = None


class Cluster:
    """Three nodes, one of which is the primary. Use it as a context manager."""

    def __init__(self, *, synchronous: bool = True) -> None:
        self._synchronous = synchronous
        self.folder, programs = postgres_server.prepared_folder()
        self.nodes = [Node(self.folder, name, programs) for name in ("n1", "n2", "n3")]
        self.primary = self.nodes[0]

    @property
    def standbys(self) -> list[Node]:
        """The running nodes other than the primary."""
        return [node for node in self.nodes if node is not self.primary and node.process is not None]

    @property
    def dsn(self) -> str:
        """The connection string for the current primary."""
        ports = ",".join(str(node.port) for node in self.nodes)
        hosts = ",".join("127.0.0.1" for _ in self.nodes)
        return f"host={hosts} port={ports} user=postgres dbname=postgres"

    def __enter__(self) -> Cluster:
        try:
            self.primary.create().start()
            for node in self.nodes[1:]:
                node.copy(self.primary).start()
            self.settle()
            if self._synchronous:
                for node in self.nodes:
                    node.set("synchronous_standby_names", "ANY 1 (n1,n2,n3)")
                until(
                    lambda: self.primary.ask("SHOW synchronous_standby_names") != [("",)], "the new settings"
                )
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        for node in self.nodes:
            if node.process is not None:
                node.resume()
                node.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def settle(self) -> None:
        """Wait until every running standby is connected to the primary."""
        wanted = {(node.name,) for node in self.standbys}
        statement = "SELECT application_name FROM pg_stat_replication WHERE state = 'streaming'"
        until(lambda: wanted <= set(self.primary.ask(statement)), "the standbys to follow")

    def fail_over(self) -> Node:
        """Kill the primary, promote the standby that has more data, and return the killed node."""
        killed = self.primary
        killed.kill()
        self.promote()
        return killed

    def promote(self, chosen: Node | None = None) -> None:
        """Make a standby the primary: the one that has more data, if none is chosen."""

        def has(node: Node) -> int:
            rows = node.ask(
                "SELECT (greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) - '0/0')::bigint"
            )
            return int(rows[0][0])

        standbys = self.standbys
        self.primary = chosen or max(standbys, key=has)
        self.primary.ask("SELECT pg_promote()")
        until(lambda: self.primary.ask("SELECT pg_is_in_recovery()") == [(False,)], "the promotion")
        for node in self.standbys:
            node.follow(self.primary)

    def rejoin(self, node: Node) -> None:
        """Start a killed node again as a standby."""
        node.copy(self.primary).start()
        self.settle()
