"""Group commits in PostgreSQL whose writes, or whose COMMIT, fail or get lost."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

import postgres_server
from contract.alternating import make_postgres
from contract.builders import NS, build_write
from memory_service.errors import Unavailable
from memory_service.indexes.settings import IndexSettings
from memory_service.postgres_store import PostgresStore

pytestmark = pytest.mark.skipif(postgres_server.programs() is None, reason="there is no PostgreSQL")
OTHER = "people/other"


class Tables:
    """The tables of a store, with triggers that fail or wait."""

    def __init__(self, store: PostgresStore, schema: str) -> None:
        self.store, self.schema = store, schema
        self.connection = psycopg.connect(postgres_server.dsn(), autocommit=True)

    def do(self, body: str, *, at_commit: bool) -> None:
        """Run a body of PL/pgSQL for each item with the id `bad` when it is inserted or committed."""
        kind = "CONSTRAINT TRIGGER t" if at_commit else "TRIGGER t"
        deferred = "DEFERRABLE INITIALLY DEFERRED" if at_commit else ""
        self.connection.execute(
            f"CREATE FUNCTION {self.schema}.fail() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN {body}; RETURN NULL; END $$;"
            f" CREATE {kind} AFTER INSERT ON {self.schema}.items {deferred}"
            f" FOR EACH ROW WHEN (NEW.id = 'bad') EXECUTE FUNCTION {self.schema}.fail()"
        )

    def undo(self) -> None:
        self.connection.execute(f"DROP FUNCTION {self.schema}.fail CASCADE")

    async def wait_for_lock(self) -> None:
        """Return once a session waits for an advisory lock."""
        query = (
            "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND classid = 0 AND objid = 7"
        )
        while self.connection.execute(query).fetchone() is None:  # noqa: ASYNC110 - polls the database
            await asyncio.sleep(0.01)

    def disconnect_writer(self) -> None:
        """Close the writer's connection; the database does not notice."""
        connection = self.store._queue._connection
        assert connection is not None
        with socket.socket(fileno=socket.dup(connection.fileno())) as own:
            own.shutdown(socket.SHUT_RDWR)


@pytest.fixture
async def tables(tmp_path: Path) -> AsyncIterator[Tables]:
    store = make_postgres(tmp_path, IndexSettings())
    await store.open()
    await store.add_items(NS, [build_write("first", "first")])
    tables = Tables(store, postgres_server.schema_of(tmp_path))
    yield tables
    tables.connection.close()
    await store.close()


async def ids(store: PostgresStore, namespace: str = NS) -> set[str]:
    return set(await store.get_items(namespace, ["first", "bad", "good", "later"]))


@pytest.mark.parametrize("at_commit", [False, True])
async def test_what_the_database_refuses_leaves_the_others_of_its_group(
    tables: Tables, at_commit: bool
) -> None:
    tables.do("RAISE EXCEPTION 'no'", at_commit=at_commit)
    bad, good = await asyncio.gather(
        tables.store.add_items(NS, [build_write("bad", "bad")]),
        tables.store.add_items(NS, [build_write("good", "good")]),
        return_exceptions=True,
    )
    assert isinstance(bad, Unavailable)
    assert not isinstance(good, BaseException) and good.revision == 2
    assert await ids(tables.store) == {"first", "good"}


async def test_a_connection_that_ends_before_the_commit_has_kept_nothing(tables: Tables) -> None:
    tables.do("PERFORM pg_terminate_backend(pg_backend_pid())", at_commit=True)
    with pytest.raises(Unavailable):
        await tables.store.add_items(NS, [build_write("bad", "bad")])
    tables.undo()
    assert await ids(tables.store) == {"first"}
    assert (await tables.store.add_items(NS, [build_write("bad", "bad")])).revision == 2


@pytest.mark.parametrize("namespace", [NS, "people/new"])
async def test_a_commit_whose_answer_is_lost_is_acknowledged_once_it_is_known(
    tables: Tables, namespace: str
) -> None:
    tables.do("PERFORM pg_advisory_xact_lock(7)", at_commit=True)
    tables.connection.execute("SELECT pg_advisory_lock(7)")
    lost = asyncio.create_task(tables.store.add_items(namespace, [build_write("bad", "bad")]))
    await tables.wait_for_lock()
    tables.disconnect_writer()
    # Meanwhile other writes succeed.
    await tables.store.add_items(OTHER, [build_write("good", "good")])
    assert not lost.done()
    tables.connection.execute("SELECT pg_advisory_unlock(7)")
    assert (await lost).revision == (2 if namespace == NS else 1)
    assert "bad" in await ids(tables.store, namespace)


async def test_a_warning_of_the_commit_is_no_acknowledgement(tables: Tables) -> None:
    # PostgreSQL's warning that it has stopped waiting for the standbys.
    tables.do("RAISE WARNING 'canceling wait for synchronous replication'", at_commit=True)
    with pytest.raises(Unavailable):
        await tables.store.add_items(NS, [build_write("bad", "bad")])
    tables.undo()
    assert (await tables.store.add_items(NS, [build_write("later", "later")])).revision == 3
