"""Several server processes that share one schema of the tests' PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import postgres_server
from grpc_api import Api
from server_process import ServerProcess

needs_postgres = pytest.mark.skipif(postgres_server.programs() is None, reason="there is no PostgreSQL")


class SharedServers:
    """Use it as a context manager; it ends all servers. `dsn` "": the database of the run."""

    def __init__(self, folder: Path, *flags: str, dsn: str = "") -> None:
        self._folder = folder
        self._flags = flags
        self.dsn = dsn or postgres_server.dsn()
        self.schema = postgres_server.schema_of(folder)
        self.processes: list[ServerProcess] = []
        self.apis: list[Api] = []

    def start(self, *flags: str, env: Mapping[str, str] | None = None) -> Api:
        """Start another server and return its stubs."""
        return self.connect(self.process(*flags, env=env).start())

    def process(self, *flags: str, env: Mapping[str, str] | None = None) -> ServerProcess:
        """Return another server without starting it."""
        store = ["--store", "postgres", "--postgres-dsn", self.dsn, "--postgres-schema", self.schema]
        folder = self._folder / f"server-{len(self.processes)}"
        self.processes.append(ServerProcess(folder, flags=[*store, *self._flags, *flags], env=env))
        return self.processes[-1]

    def connect(self, process: ServerProcess) -> Api:
        """Return the stubs of a started server."""
        self.apis.append(Api.connect(process.address))
        return self.apis[-1]

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query, in which `$.` stands for the schema."""
        import psycopg

        with psycopg.connect(self.dsn) as connection:
            return connection.execute(
                statement.replace("$.", f'"{self.schema}".').encode(), values
            ).fetchall()

    def who_has(self, task: str) -> int | None:
        """Return the number of the server that holds the claim to a task."""
        found = self.rows("SELECT owner FROM $.claims WHERE task = %s AND until > clock_timestamp()", task)
        pids = [process.process.pid for process in self.processes]
        return pids.index(int(found[0][0].split(":")[1])) if found else None

    def __enter__(self) -> SharedServers:
        return self

    def __exit__(self, *exc: object) -> None:
        for api in self.apis:
            api.channel.close()
        for process in self.processes:
            if hasattr(process, "process"):
                process.__exit__()
