"""A pooler in transaction mode between the servers and PostgreSQL: each transaction by any connection."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import postgres_server
from faults.postgres_cluster import Node, until
from faults.scale import rounds
from faults.test_postgres_connections import add, flags, texts
from grpc_api import Api
from server_process import ServerProcess

POOLER = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")
pytestmark = pytest.mark.skipif(
    postgres_server.programs() is None or POOLER is None, reason="there is no PostgreSQL, or no pgbouncer"
)
SETTINGS = """
[databases]
postgres = host=127.0.0.1 port={database} dbname=postgres user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
ignore_startup_parameters = options
"""


@pytest.fixture
def pooled_dsn() -> Iterator[str]:
    """How to connect to a database by way of a pooler that has three connections to it."""
    folder, programs = postgres_server.prepared_folder()
    node = Node(folder, "pooled", programs).create().start()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = folder / "pgbouncer.ini"
    settings.write_text(SETTINGS.format(database=node.port, port=port))
    settings.chmod(0o644)
    assert POOLER is not None
    command = [*postgres_server.prefix_as_user(), POOLER, str(settings)]
    with subprocess.Popen(command, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as pooler:

        def listens() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        until(listens, "the pooler to listen")
        yield f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
        pooler.kill()
    node.stop()
    shutil.rmtree(folder, ignore_errors=True)


def test_two_servers_behind_a_pooler_agree(pooled_dsn: str, tmp_path: Path) -> None:
    with (
        ServerProcess(tmp_path / "0", flags=flags(pooled_dsn)) as first,
        ServerProcess(tmp_path / "1", flags=flags(pooled_dsn)) as second,
        ThreadPoolExecutor(8) as pool,
    ):
        apis = [Api.connect(server.address) for server in (first, second)]
        count = rounds(120, 3_000)

        def write(number: int) -> None:
            namespace = f"pooled/{number % 3}"
            told = add(apis[number % 2], namespace, f"word{number}", f"r-{number}")
            # Each read that begins after a write was answered sees it, wherever it is asked.
            other = apis[(number + 1) % 2]
            assert f"word{number}" in other.found(namespace, query_text=f"word{number}")
            assert add(other, namespace, f"word{number}", f"r-{number}") == told

        for done in [pool.submit(write, number) for number in range(count)]:
            done.result()
        for namespace in range(3):
            expected = sorted(f"word{number}" for number in range(namespace, count, 3))
            assert [texts(api, f"pooled/{namespace}") for api in apis] == [expected, expected]
        for api in apis:
            api.channel.close()
