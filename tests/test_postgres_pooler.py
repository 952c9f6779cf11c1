"""A store behind pgbouncer, which runs each transaction on another connection, works as without it."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

import postgres_server
from contract.builders import build_write, random_vectors, search_hits
from memory_service.indexes.settings import IndexSettings
from memory_service.postgres_store import PostgresStore

POOLER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
pytestmark = pytest.mark.skipif(
    postgres_server.programs() is None or POOLER is None, reason="there is no PostgreSQL, or no pgbouncer"
)
VECTORS = random_vectors(100, 8)
SETTINGS = """
[databases]
postgres = host={host} dbname=postgres user=postgres
[pgbouncer]
listen_addr =
unix_socket_dir = {folder}
listen_port = 6432
auth_type = any
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = 4
logfile = {folder}/log
{more}
"""


@pytest.fixture(params=["", "ignore_startup_parameters = options"], ids=["refuses options", "ignores them"])
def pooler(request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the connection string of a pooler that gives each transaction one of few connections."""
    folder = Path(tempfile.mkdtemp(prefix="memory-pool-"))
    folder.chmod(0o777)
    host = conninfo_to_dict(postgres_server.dsn())["host"]
    (folder / "users").write_text('"postgres" ""\n')
    (folder / "ini").write_text(SETTINGS.format(host=host, folder=folder, more=request.param))
    quiet = subprocess.DEVNULL
    command = [*postgres_server.prefix_as_user(), str(POOLER), str(folder / "ini")]
    process = subprocess.Popen(command, stdout=quiet, stderr=quiet, cwd="/")
    dsn = f"host={folder} port=6432 user=postgres dbname=postgres"
    until = time.monotonic() + 30
    while True:
        try:
            psycopg.connect(dsn).close()
            break
        except psycopg.OperationalError:
            assert time.monotonic() < until, "the pooler did not start"
            time.sleep(0.05)
    yield dsn
    process.terminate()
    process.wait(30)
    shutil.rmtree(folder)


async def test_writes_and_searches_go_by_a_pooler(pooler: str, tmp_path: Path) -> None:
    store = PostgresStore(
        pooler, IndexSettings(), cache_dir=tmp_path, schema=postgres_server.schema_of(tmp_path)
    )
    await store.open()
    for turn in range(4):
        # More repetitions than it takes until a statement is prepared, and more calls than connections.
        receipts = await asyncio.gather(
            *(
                store.add_items(f"n{n % 7}", [build_write(f"{turn}-{n}", f"text {n}", VECTORS[n])])
                for n in range(50)
            )
        )
        assert len(receipts) == 50
    found = await asyncio.gather(
        *(search_hits(store, f"n{n % 7}", vector=VECTORS[n], candidates=4) for n in range(50))
    )
    assert all({f"{turn}-{n}" for turn in range(4)} == set(hits) for n, hits in enumerate(found))
    await store.close()
