"""Health, errors and log lines when a database is down, comes back, or prevents a server's start."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

import postgres_server
from credentials import Client, connect, keys_in
from faults.postgres_cluster import Node
from faults.postgres_proxy import PostgresProxy
from grpc_api import SERVICES, Api, Connect, eventually, outcome
from memory_service.records.base import CannotOpen
from memory_service.v1 import admin_pb2
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

if postgres_server.programs() is None:
    pytest.skip("there is no PostgreSQL", allow_module_level=True)

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
KEYS = (sys.executable, "-m", "memory_service", "keys")
SECRET = "s3x cr8t/wi7h@al1z"


def execute(*statements: str, database: str = "postgres") -> list[tuple[Any, ...]]:
    """Execute statements as superuser; return the rows of the last."""
    import psycopg

    with psycopg.connect(postgres_server.dsn(), dbname=database, autocommit=True) as connection:
        for statement in statements:
            done = connection.execute(statement.encode())
        return done.fetchall() if done.description else []


def dsn(**settings: str) -> str:
    """Return the connection string of the run's database with other settings."""
    from psycopg.conninfo import make_conninfo

    return make_conninfo(postgres_server.dsn(), **settings)


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """A separate database for this file."""
    name = f"d{uuid.uuid4().hex}"
    execute(f"CREATE DATABASE {name}")
    yield name
    execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def away(database: str) -> Iterator[None]:
    """Make a database refuse connections, and end existing ones."""
    execute(
        f"ALTER DATABASE {database} ALLOW_CONNECTIONS false",
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'",
    )
    try:
        yield
    finally:
        execute(f"ALTER DATABASE {database} ALLOW_CONNECTIONS true")


# While a server runs


@pytest.fixture(scope="module")
def running(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server over it that requires keys of a file."""
    folder = tmp_path_factory.mktemp("data")
    keys_in(folder).token()
    flags = ["--store", "postgres", "--postgres-dsn", dsn(dbname=database), "--embedder", "none"]
    with ServerProcess(folder, flags=flags) as process:
        yield process


def health(api: Api) -> set[int]:
    """Return the health statuses of all services."""
    stub = health_pb2_grpc.HealthStub(api.channel)
    names = ["", *(service.full_name for service in SERVICES)]
    return {stub.Check(health_pb2.HealthCheckRequest(service=name)).status for name in names}


def listed(api: Api) -> list[str]:
    """Return the ids of the listed items."""
    return [item.id for item in api.memory.List(pb.ListRequest(namespace="n")).items]


def told(process: ServerProcess) -> list[str]:
    """Return the log's events about health."""
    return re.findall(r'"event": "(not_serving|serving_again)"', "".join(list(process.log)))


def test_health_follows_the_database_away_and_back(
    running: ServerProcess, database: str, connect: Connect
) -> None:
    api = connect(running)
    api.memory.Add(pb.AddRequest(namespace="n", item={"id": "i", "text": "tea"}))
    assert health(api) == {SERVING}
    for _ in range(2):
        with away(database):
            eventually(lambda: health(api) == {NOT_SERVING}, "it is told that nothing is served")
            add = pb.AddRequest(namespace="n", item={"id": "i", "text": "tea"})
            assert outcome(lambda r=add: api.memory.Add(r)).name == "UNAVAILABLE"
            assert api.admin.GetInfo(admin_pb2.GetInfoRequest()).store == "postgres"
        eventually(lambda: health(api) == {SERVING}, "it is told that all is served again")
        eventually(lambda: outcome(lambda: listed(api)).name == "OK", "it is read again")
        assert listed(api) == ["i"]
    eventually(lambda: told(running) == ["not_serving", "serving_again"] * 2, "each time it is logged once")


def test_a_database_that_takes_no_writes_is_away(
    running: ServerProcess, database: str, connect: Connect
) -> None:
    api = connect(running)
    eventually(lambda: health(api) == {SERVING}, "all is served")
    end = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'"
    execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on", end)
    try:
        eventually(lambda: health(api) == {NOT_SERVING}, "it is told that nothing is served")
    finally:
        execute(f"ALTER DATABASE {database} RESET default_transaction_read_only", end)
    eventually(lambda: health(api) == {SERVING}, "it is told that all is served again")


@pytest.fixture(scope="module")
def proxy() -> Iterator[PostgresProxy]:
    """A proxy before a database that can drop everything."""
    folder, programs = postgres_server.prepared_folder()
    node = Node(folder, "alone", programs).create().start()
    with PostgresProxy(node.address) as proxy:
        yield proxy
    node.stop()
    shutil.rmtree(folder, ignore_errors=True)


def test_health_and_keys_follow_when_a_network_dropped_everything(
    proxy: PostgresProxy, tmp_path: Path, connect: Connect
) -> None:
    flags = ["--store", "postgres", "--postgres-dsn", proxy.dsn]
    new_key(flags)
    with ServerProcess(tmp_path, flags=[*flags, "--auth", "keys", "--embedder", "none"]) as process:
        api = connect(process)
        assert health(api) == {SERVING}
        proxy.hang(silent=True)
        eventually(lambda: health(api) == {NOT_SERVING}, "it is told that nothing is served")
        proxy.come_back()
        client = Client(api.channel).presenting(new_key(flags))
        eventually(lambda: outcome(lambda: client.call("GetInfo")).name == "OK", "the new key is taken")
        eventually(lambda: health(api) == {SERVING}, "all is served again")


def new_key(flags: Sequence[str]) -> str:
    """Return the token of a new key in the database."""
    command = [*KEYS, "create", "ada", "--namespace", "*", "--role", "read", *flags]
    made = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return made.stdout.strip()


def test_keys_that_were_read_last_count_while_the_database_is_away(database: str, tmp_path: Path) -> None:
    flags = ["--store", "postgres", "--postgres-dsn", dsn(dbname=database), "--postgres-schema", "with_keys"]
    token = new_key(flags)
    with ServerProcess(tmp_path, flags=[*flags, "--auth", "keys", "--embedder", "none"]) as process:
        client = connect_with(process.address, token)
        assert client.call("GetInfo").store == "postgres"
        with away(database):
            eventually(
                lambda: outcome(lambda: client.call("List", namespace="n")).name == "UNAVAILABLE",
                "it is away",
            )
            eventually(lambda: told(process) == ["not_serving"], "it is noticed")
            assert client.call("GetInfo").store == "postgres"
            assert outcome(lambda: client.presenting("mem_x").call("GetInfo")).name == "UNAUTHENTICATED"
        client.channel.close()


connect_with = connect


# Failed starts


@pytest.fixture(scope="module")
def role(database: str) -> Iterator[str]:
    """A role that needs a password and may create nothing."""
    name = f"r{uuid.uuid4().hex}"
    (hba,) = (Path(row[0]) for row in execute("SHOW hba_file"))
    before = hba.read_text()
    hba.write_text(f"local all {name} scram-sha-256\n{before}")
    execute(f"CREATE ROLE {name} LOGIN PASSWORD '{SECRET}'", "SELECT pg_reload_conf()")
    yield name
    execute(f"DROP OWNED BY {name}", database=database)
    execute(f"DROP ROLE {name}")
    hba.write_text(before)
    execute("SELECT pg_reload_conf()")


def refused(folder: Path, dsn: str, *flags: str, env: dict[str, str] | None = None) -> str:
    """Return the output of a server that does not start: one line with its error."""
    command = [sys.executable, "-m", "memory_service", "serve", "--store", "postgres", "--postgres-dsn", dsn]
    command += ["--address", "127.0.0.1:0", "--data-dir", str(folder), "--log-level", "debug", *flags]
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("MEMORY_SERVICE_", "PG"))}
    ended = subprocess.run(
        command, env={**inherited, **(env or {})}, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 1, ended
    lines = (ended.stdout + ended.stderr).splitlines()
    assert len(lines) == 1 and lines[0].startswith("Error: "), lines
    return without_secrets(lines[0])


def without_secrets(line: str) -> str:
    """Return the line, which must not contain any part of a password."""
    assert not [word for word in (*re.split("[ /@]", SECRET), "wr0ng") if word in line]
    return line


def not_opened(dsn: str) -> str:
    """Return why a database cannot be opened."""
    from memory_service.records.postgres.database import Database
    from memory_service.records.postgres.opening import prepare_database

    with pytest.raises(CannotOpen) as refusal:
        asyncio.run(prepare_database(Database(dsn, "never_made")))
    text = str(refusal.value)
    assert "\n" not in text
    return without_secrets(text)


def test_what_cannot_be_opened_is_told_with_its_problem_and_no_password(database: str, role: str) -> None:
    as_role = dsn(dbname=database, user=role, password=SECRET)
    for wrong, named in (
        (dsn(dbname=database, user=role), "password"),
        (dsn(dbname="no_such_database"), '"no_such_database" does not exist'),
        (dsn(host="/no/such/folder", password="wr0ng"), "/no/such/folder"),
        ("postgresql://ada:wr0ng@127.0.0.1:1/x", "port 1"),
        (as_role, "permission denied for database"),
        (f"host=/tmp user=ada password={SECRET}", "postgres_dsn"),
        (f"postgresql://ada:{SECRET.replace(' ', '')}@127.0.0.1:1/x", "postgres_dsn"),
        ("postgresql://ada:wr0ng@more@127.0.0.1:1/x", "postgres_dsn"),
    ):
        assert named in not_opened(wrong)


def test_a_start_that_cannot_be_says_so_in_one_line(database: str, role: str, tmp_path: Path) -> None:
    wrong = dsn(dbname=database, user=role, password="wr0ng")
    assert "password authentication failed" in refused(tmp_path, wrong)
    assert "password" in refused(tmp_path, dsn(dbname=database, user=role), env={"PGPASSWORD": "wr0ng"})
    assert "postgres_dsn" in refused(tmp_path, f"host=/tmp password={SECRET}")


def test_a_server_needs_few_rights_once_the_tables_are_there(
    database: str, role: str, tmp_path: Path, connect: Connect
) -> None:
    flags = ["--store", "postgres", "--postgres-schema", "lent", "--embedder", "none", "--log-level", "debug"]
    as_role = dsn(dbname=database, user=role, password=SECRET)
    assert "permission denied for database" in refused(tmp_path, as_role, "--postgres-schema", "lent")
    with ServerProcess(tmp_path / "owner", flags=[*flags, "--postgres-dsn", dsn(dbname=database)]):
        pass
    assert "permission denied for schema lent" in refused(tmp_path, as_role, "--postgres-schema", "lent")
    execute(
        f"GRANT USAGE ON SCHEMA lent TO {role}",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA lent TO {role}",
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA lent TO {role}",
        database=database,
    )
    with ServerProcess(tmp_path, flags=[*flags, "--postgres-dsn", as_role]) as process:
        api = connect(process)
        api.memory.Add(pb.AddRequest(namespace="n", item={"id": "i", "text": "tea"}))
        api.memory.Delete(pb.DeleteRequest(namespace="n", id="i"))
        api.memory.Reset(pb.ResetRequest(namespace="n"))
        assert health(api) == {SERVING}
        api.admin.DeleteNamespace(admin_pb2.DeleteNamespaceRequest(namespace="n"))
        assert not [line for line in process.log if SECRET in line or "cr8t" in line]
