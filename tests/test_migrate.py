"""Moving a data folder to PostgreSQL: complete, equal, invisible until it is complete, also after a kill."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import postgres_server
from contract.builders import (
    MODEL,
    NOW,
    build_item,
    build_pending,
    build_state,
    build_write,
    found_by_vector,
    word_scores,
)
from faults.scale import rounds
from grpc_api import Api, exactly
from memory_service.cli import main
from memory_service.data_key import DataKey
from memory_service.data_model import (
    Answer,
    Facet,
    HeldWrite,
    ItemKind,
    ItemWrite,
    NamespaceSettings,
    OnDuplicate,
    Provenance,
    Receipt,
    RequestKey,
    WritesBy,
)
from memory_service.runtime.caller import ANYBODY
from memory_service.runtime.clock import now_us
from memory_service.store import Store
from memory_service.stores import SqliteStore
from memory_service.v1 import admin_pb2
from server_process import ServerProcess
from shared_servers import SharedServers, needs_postgres

pytestmark = needs_postgres

ADA = Provenance("ada", "key-1", trust=0.5)
PLENTY = 1000
ODD = "a\x00b\x01c"
NAMESPACES = ("birds", ODD, "moved", "held")
STATES = (1, {"deep": ["\x00"]})
REQUESTS = [RequestKey("r-1", b"\x00digest"), *(RequestKey(f"save {number}", b"d") for number in range(2))]


def key_of() -> DataKey:
    return DataKey.parse("ab" * 32)


def run(*arguments: object, exit_code: int = 0, env: dict[str, str] | None = None) -> str:
    """Run `memory-service migrate` and return its output."""
    ended = CliRunner(env=env).invoke(main, ["migrate", *map(str, arguments)])
    assert ended.exit_code == exit_code, (ended.output, ended.exception)
    return ended.output


def to(folder: Path) -> list[str]:
    """Return options that name the schema of a test."""
    return ["--to", postgres_server.dsn(), "--schema", postgres_server.schema_of(folder)]


def answering(request_id: str, items: list[str]) -> RequestKey:
    def complete(receipt: Receipt) -> None:
        receipt.answer = Answer(b"whole\x00", b"bare", items, [])

    return RequestKey(request_id, b"\x00digest", complete)


async def fill(store: Store) -> None:
    """Write something of each kind into a store."""
    now, by = now_us(), replace(ANYBODY, name="ada")
    vector = np.array([1, 2, 3, 4], np.float32)
    document = Facet(ItemKind.DOCUMENT, {"t": "x"}, {"a": [1, None, "\x00"]})
    writes = [
        build_write("a", "a heron", vector, labels={"k": ODD}, metadata={"m": 1.5}, session_id=ODD),
        build_write(ODD, "an egret", provenance=ADA, importance=0.25),
        ItemWrite(build_item("doc", "a text", facet=document), "a text"),
        build_write("gone", "x"),
        build_write("short", "y", expire_us=now + 3600 * 1_000_000),
    ]
    await store.add_items("birds", writes, request=answering("r-1", ["a"]))
    await store.record_uses("birds", [1, 1, 2])
    later = [build_write("a", "a grey heron", vector, update_us=now), build_write("b", "a stork")]
    await store.add_items("birds", later, on_duplicate=OnDuplicate.REPLACE)
    await store.delete_item("birds", "gone", now_us=now, by=by)
    for value, request in zip(STATES, REQUESTS[1:], strict=True):
        await store.save_state("birds", build_state(ODD, value, now, description=ODD), request=request)
    await store.save_state("birds", build_state("k", 1, provenance=ADA))
    await store.delete_state("birds", "k", now_us=now)
    await store.save_settings("birds", NamespaceSettings("Europe/Berlin", 10**12), expected_version=0)
    await store.add_items(ODD, [build_pending("waits", "a swan"), build_write("plain", "a coot")])
    await store.add_items("moved", [build_write(f"i{n}", f"text {n}", vector) for n in range(20)])
    await store.begin_reembedding("moved", MODEL, 4, replace_client_vectors=True)
    held = HeldWrite("h", ODD, b"body\x00", now, now + 3600 * 1_000_000, "w", "c", RequestKey("q", b"\x01"))
    await store.hold("held", [held])
    await store.add_items("away", [build_write("x")])
    await store.delete_namespace("away")


async def contents(store: Store) -> dict[str, Any]:
    """Return everything that a store returns for the writes of `fill`."""
    told: dict[str, Any] = {}
    for name in NAMESPACES:
        info = await store.namespace(name)
        assert info is not None
        changes = await store.read_changes(name, 0, PLENTY)
        ids = sorted({change.subject for change in changes})
        vectors = await store.get_items(name, ids, with_embedding=True)
        told[name] = {
            "info": [getattr(info, field) for field in info.__slots__ if field != "uid"],
            "changes": changes,
            "items": await store.get_items(name, ids),
            "vectors": {
                i: None if (v := item.embedding) is None else v.tolist() for i, item in vectors.items()
            },
            "states": await store.scan_states(name, "", PLENTY, now_us=NOW),
            "held": await store.held_writes(name, "", PLENTY, now_us=NOW),
            "pending": [item.id for item in await store.pending_items(name, 0, PLENTY)],
            "removals": await store.count_removals(name, WritesBy(0, "ada")),
            "words": await word_scores(store, "heron text", name),
            "near": await found_by_vector(store, np.array([1, 2, 3, 4], np.float32), name),
        }
    told["versions"] = await store.get_versions("birds", [("a", 1), ("a", 6), (ODD, 2)])
    for request in REQUESTS:
        told[request.id] = await store.find_receipt("birds", request)
        assert told[request.id] is not None
    return told


def postgres_store(folder: Path) -> Store:
    from memory_service.postgres_store import PostgresStore

    schema = postgres_server.schema_of(folder)
    return PostgresStore(postgres_server.dsn(), cache_dir=folder / "cache", schema=schema)


async def filled(folder: Path, key: DataKey | None = None) -> dict[str, Any]:
    """Fill a data folder; return its contents."""
    store = SqliteStore(folder, key=key)
    await store.open()
    try:
        await fill(store)
        return await contents(store)
    finally:
        await store.close()


async def moved(folder: Path) -> dict[str, Any]:
    """Return the contents of a store over the test's schema; then write, undo and sweep."""
    store = postgres_store(folder)
    await store.open()
    try:
        told = await contents(store)
        # It works like any other store: the versions that were kept come back.
        await store.add_items("birds", [build_write("new", "a heron")])
        assert "new" in await word_scores(store, "heron", "birds")
        undone = await store.undo_items("birds", WritesBy(NOW, ""), 0, PLENTY, dry_run=True)
        assert undone.removed_count + undone.restored_count > 0
        return told
    finally:
        await store.close()


@pytest.mark.parametrize("key", [None, key_of()], ids=["plain", "encrypted"])
async def test_everything_is_there_afterwards_as_it_was(tmp_path: Path, key: DataKey | None) -> None:
    folder, secret = tmp_path / "data", tmp_path / "key"
    secret.write_text("ab" * 32)
    secret.chmod(0o600)
    expected = await filled(folder, key)
    options = ["--encryption-key-file", secret] if key else []
    made = ["keys", "create", "ada", "--namespace", "*", "--role", "read", "--data-dir", folder, "--json"]
    token = json.loads(CliRunner().invoke(main, [str(word) for word in (*made, *options)]).stdout)["token"]
    said = await asyncio.to_thread(run, "--from", folder, *to(tmp_path), *options)
    assert said.startswith("migrated 4 namespaces with 27 items") and said.count("\n") == 1
    assert said.endswith("with API keys\n") and is_good(token, tmp_path)
    brought = kept(tmp_path)
    assert await moved(tmp_path) == expected
    # The tables have the same rows as those of a store that was written directly.
    direct = postgres_store(tmp_path / "direct")
    await direct.open()
    await fill(direct)
    await direct.close()
    assert all(brought.values()) and brought == kept(tmp_path / "direct")
    # A second run changes nothing, and says so.
    assert "already" in await asyncio.to_thread(run, "--from", folder, *to(tmp_path), *options)
    if key:
        refused = await asyncio.to_thread(run, "--from", folder, *to(tmp_path), exit_code=1)
        assert "is encrypted: give its key" in refused


# The columns of each table that do not depend on the time of the write.
TIMELESS = {
    "items": "position, id, revision, session_id, labels, metadata, content, facet, kind, importance,"
    " provenance, terms, vector_key, embedding, nbytes",
    "uses": "position, count",
    "item_history": "position, revision, session_id, labels, metadata, content, facet, kind, importance,"
    " provenance, terms, vector_key, embedding",
    "states": "key, version, description, revision, value, provenance, nbytes",
    "state_history": "key, version, description, value, provenance",
    "changes": "revision, type, subject",
    "requests": "id, digest, whole, state_key, state_version",
    "told_of": "subject, request",
    "removals": "revision, writer, credential_id",
    "quarantine": "id, reason, body, writer, credential_id, request_id, digest",
}
COUNTED = (
    "name, revision, item_count, state_count, embedded_count, pending_count, bytes, version_floor,"
    " vector_epoch, moving, dimension, model"
)


def kept(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of the tables in the test's schema."""
    with closing(Rows(folder)) as rows:
        tables = {
            table: rows(
                f"SELECT n.name, t.* FROM $.namespaces n, LATERAL (SELECT {columns} FROM $.{table} t"
                " WHERE t.part = n.part AND t.uid = n.uid) t"
            )
            for table, columns in TIMELESS.items()
        }
        told = {table: sorted(map(str, found)) for table, found in tables.items()}
        return told | {"namespaces": rows(f"SELECT {COUNTED} FROM $.namespaces ORDER BY name")}


def is_good(token: str, folder: Path) -> bool:
    """Return whether servers over the test's schema accept a key."""
    from memory_service.postgres_keys import PostgresKeys

    with closing(PostgresKeys(postgres_server.dsn(), postgres_server.schema_of(folder))) as keys:
        return keys.read().verify(token) is not None


async def test_what_cannot_be_moved_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    await filled(folder)
    refused = await asyncio.to_thread(run, "--from", tmp_path / "none", *to(tmp_path), exit_code=1)
    assert "it has no records.db" in refused
    with ServerProcess(folder):
        refused = await asyncio.to_thread(run, "--from", folder, *to(tmp_path), exit_code=1)
    assert "another server is using" in refused
    store = postgres_store(tmp_path)
    await store.open()
    await store.claim("sweep", 60)
    refused = await asyncio.to_thread(run, "--from", folder, *to(tmp_path), exit_code=1)
    assert "a server is using this schema" in refused
    await store.add_items("birds", [build_write("x")])
    await store.close()
    refused = await asyncio.to_thread(run, "--from", folder, *to(tmp_path), exit_code=1)
    assert "namespaces with these names already exist, such as 'birds'" in refused


NAMES = 20
ITEMS = rounds(3_000, 100_000) // NAMES


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of a server with this many namespaces of ITEMS items."""
    folder = tmp_path_factory.mktemp("source")
    with ServerProcess(folder) as server:
        api = Api.connect(server.address)
        for name in map(str, range(NAMES)):
            for start in range(0, ITEMS, 500):
                count = min(500, ITEMS - start)
                api.add_texts(name, *(f"heron {start + n} in {(start + n) % 97}" for n in range(count)))
            api.save(name, "key", name)
        api.admin.Backup(admin_pb2.BackupRequest(name="copy"))
        api.channel.close()
    return folder / "backups" / "copy"


def migrating(source: Path, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "memory_service", "migrate", "--from", str(source), *to(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def done(rows: Rows) -> int:
    """Return how many rows the running migration has noted."""
    if rows("SELECT to_regclass(%s)", f'"{rows.schema}".migration') == [(None,)]:
        return 0
    told = rows("SELECT coalesce(sum(value::bigint), 0)::bigint FROM $.migration, json_each_text(done::json)")
    count: int = told[0][0]
    return count


class Rows:
    """Queries of the test's schema."""

    def __init__(self, folder: Path) -> None:
        import psycopg

        self.schema = postgres_server.schema_of(folder)
        self._connection = psycopg.connect(postgres_server.dsn(), autocommit=True)

    def __call__(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        text = statement.replace("$.", f'"{self.schema}".').encode()
        return self._connection.execute(text, values).fetchall()

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Rows]:
    rows = Rows(tmp_path)
    yield rows
    rows.close()


def kill_midway(source: Path, folder: Path, rows: Rows, at_least: int) -> None:
    process = migrating(source, folder)
    while done(rows) < at_least:
        assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert rows("SELECT count(*) FROM $.namespaces") == [(0,)]


def finish(source: Path, folder: Path) -> str:
    process = migrating(source, folder)
    said, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    return said


def test_a_move_that_was_killed_goes_on_and_answers_are_the_same(
    source: Path, tmp_path: Path, rows: Rows
) -> None:
    kill_midway(source, tmp_path, rows, NAMES * ITEMS // 2)
    first = "SELECT xmin::text FROM $.items ORDER BY uid, position LIMIT 1"
    before = rows(first)
    # A server that is started on it meanwhile finds nothing, and removes nothing.
    with SharedServers(tmp_path, "--sweep", "0.1") as servers:
        assert list(servers.start().admin.ListNamespaces(admin_pb2.ListNamespacesRequest()).namespaces) == []
    said = finish(source, tmp_path)
    assert said.startswith(f"migrated {NAMES} namespaces with {NAMES * ITEMS} items")
    # Existing rows were not written again.
    assert rows(first) == before
    check_equal_answers(source, tmp_path)


def check_equal_answers(source: Path, folder: Path) -> None:
    """Check that a server over the folder and one over the database give the same answers."""
    served = shutil.copytree(source, folder / "served")
    with ServerProcess(served) as old, SharedServers(folder) as servers:
        before, after = Api.connect(old.address), servers.start()
        names = [found.namespace for found in before.admin.ListNamespaces(pages()).namespaces]
        assert names == [found.namespace for found in after.admin.ListNamespaces(pages()).namespaces]
        for name in names[:5]:
            assert before.stats(name).item_count == after.stats(name).item_count == ITEMS
            for query in ("heron 7", "in 42", "herons"):
                answers = [api.retrieve(name, query_text=query, limit=20) for api in (before, after)]
                assert exactly(answers[0]) == exactly(answers[1])
                assert len(answers[0].results) == 20
        before.channel.close()


def pages() -> admin_pb2.ListNamespacesRequest:
    return admin_pb2.ListNamespacesRequest(page_size=1000)


def test_what_is_not_equal_is_told_of_and_copied_again(source: Path, tmp_path: Path, rows: Rows) -> None:
    kill_midway(source, tmp_path, rows, NAMES * ITEMS // 2)
    rows("UPDATE $.items SET content = replace(content, 'heron 5 ', 'heron 6 ') RETURNING 1")
    said = run("--from", source, *to(tmp_path), exit_code=1)
    assert "row 6 of items in '0' differs from the folder's" in said
    assert rows("SELECT count(*) FROM $.namespaces") == [(0,)]
    finish(source, tmp_path)
    kept = rows("SELECT content FROM $.items WHERE content LIKE '%%heron 5 %%'")
    assert len(kept) == NAMES


async def test_what_another_source_began_can_be_given_up(source: Path, tmp_path: Path, rows: Rows) -> None:
    await asyncio.to_thread(kill_midway, source, tmp_path, rows, NAMES * ITEMS // 2)
    other = tmp_path / "other"
    await filled(other)
    refused = await asyncio.to_thread(run, "--from", other, *to(tmp_path), exit_code=1)
    assert "another migration to this schema is unfinished" in refused
    await asyncio.to_thread(run, "--from", other, *to(tmp_path), "--start-over")
    assert rows("SELECT count(*) FROM $.items") == [(27,)]
    assert rows("SELECT count(*) FROM $.changes WHERE part NOT IN (SELECT part FROM $.namespaces)") == [(0,)]
