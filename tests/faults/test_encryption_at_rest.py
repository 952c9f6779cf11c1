"""Encryption at rest: no file reveals stored data, kill -9 costs nothing, a wrong key changes nothing."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import struct
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import grpc
import pytest
from click.testing import CliRunner

from contract.builders import EVERYTHING
from credentials import write_secret
from faults.canaries import canaries_in, canary, contents, unit_vectors, vectors_in
from faults.scale import drawn, rounds
from grpc_api import SMALL_GRAPHS, Api, Connect, eventually, outcome
from memory_service.cli import main
from memory_service.config import BadConfig, Config
from memory_service.data_key import DataKey, read_key
from memory_service.data_model import TextPart
from memory_service.records.base import CannotOpen
from memory_service.server.server import open_store
from memory_service.stores import SqliteStore
from memory_service.v1 import admin_pb2, memory_pb2
from memory_service.views.sealed_files import SealedFiles
from server_process import ServerProcess

NS = canary("namespace")
CHUNK = 1 << 20


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    """A file with a key."""
    return write_secret(tmp_path / "key", base64.b64encode(secrets.token_bytes(32)).decode() + "\n")


def serve(data_dir: Path, key_file: Path | None) -> ServerProcess:
    """Return a server on an encrypted folder, with small graphs."""
    flags = [] if key_file is None else ["--encryption-key-file", str(key_file)]
    return ServerProcess(data_dir, flags=flags, env=SMALL_GRAPHS)


def command(*arguments: object, exit_code: int = 0, env: dict[str, str] | None = None) -> str:
    """Run a command that needs no server; return its output, including errors."""
    ended = CliRunner(env=env).invoke(main, [str(argument) for argument in arguments])
    assert ended.exit_code == exit_code, (ended.output, ended.exception)
    return ended.output


def texts(data_dir: Path, key_file: Path | None, namespace: str = "a") -> list[str]:
    """Open a folder as a server would; return the texts in a namespace. Raise CannotOpen."""

    async def read() -> list[str]:
        store = SqliteStore(data_dir, key=read_key(key_file))
        await store.open()
        try:
            positions = await (await store.read(namespace)).scan(EVERYTHING, -1, newest=False)
            items = await (await store.read(namespace)).load_items(positions)
            return [item.content.text for item in items if item and isinstance(item.content, TextPart)]
        finally:
            await store.close()

    return asyncio.run(read())


def refused(data_dir: Path, key_file: Path | None) -> str:
    """Open a folder that must not open, and return the error."""
    with pytest.raises(CannotOpen) as raised:
        texts(data_dir, key_file)
    return str(raised.value)


def write_until_killed(server: ServerProcess, start: int, count: int) -> int:
    """Write while snapshots and backups are saved, then kill the server; return the next write's number."""
    written = start
    enough = threading.Event()

    def write(api: Api) -> None:
        nonlocal written
        while outcome(partial(add, api, written)) is grpc.StatusCode.OK:
            written += 1
            if written >= start + count:
                enough.set()

    def save(api: Api) -> None:
        number = 0
        while outcome(lambda: api.admin.Flush(admin_pb2.FlushRequest())) is grpc.StatusCode.OK:
            request = admin_pb2.BackupRequest(name=f"b{start}-{number}")
            outcome(partial(api.admin.Backup, request))
            number += 1

    apis = [Api.connect(server.address) for _ in range(2)]
    threads = [
        threading.Thread(target=work, args=(api,)) for work, api in zip((write, save), apis, strict=True)
    ]
    for thread in threads:
        thread.start()
    assert enough.wait(60)
    server.kill()
    for thread in threads:
        thread.join()
    for api in apis:
        api.channel.close()
    return written


VECTORS = {f"v{n}": vector for n, vector in enumerate(unit_vectors(3000, stream=9))}


def add(api: Api, number: int) -> None:
    """Write an item, and occasionally replace or delete one, all of them with canaries."""
    item = memory_pb2.MemoryItem(
        id=canary(f"id{number}"),
        text=canary(f"text{number}"),
        labels={canary("label"): canary(f"value{number}")},
        embedding=memory_pb2.Embedding(values=VECTORS[f"v{number}"]),
    )
    api.memory.Add(memory_pb2.AddRequest(namespace=NS, item=item, request_id=canary(f"r{number}")))
    api.save(NS, canary("key"), canary(f"state{number}"), description=canary("why"))


def test_kills_under_load_lose_nothing_and_no_file_ever_tells_anything(
    tmp_path: Path, key_file: Path, connect: Connect
) -> None:
    data_dir = tmp_path / "data"
    chance = drawn("encrypted kills")
    written = 0
    for _ in range(rounds(1, 20)):
        with serve(data_dir, key_file) as server:
            api = connect(server)
            assert written <= len(api.items(NS)) <= written + 1
            written = write_until_killed(server, len(api.items(NS)), chance.randrange(70, 100))
        files = contents(data_dir)
        assert {".graph", ".slots", ".columns"} <= {Path(name).suffix for name in files}
        assert any("backups" in name for name in files)
        assert canaries_in(files) == set()
        assert vectors_in(files, VECTORS) == set()
        assert not any(b"SQLite format 3" in data for data in files.values())
    with serve(data_dir, key_file) as server:
        api = connect(server)
        stored = [item.text for item in api.items(NS)]
        assert stored in ([canary(f"text{n}") for n in range(count)] for count in (written, written + 1))
        found = api.found(NS, query_embedding=memory_pb2.Embedding(values=VECTORS["v7"]), limit=1)
        assert found == [canary("text7")]
        eventually(lambda: api.stats(NS).index.graph_count > 0, "a graph")
        # At the kills, the log may have been empty.
        add(api, len(stored))
        log = (data_dir / "records.db-wal").read_bytes()
        assert log and canaries_in({"log": log}) == set()
        api.admin.Flush(admin_pb2.FlushRequest())
        assert server.terminate() == 0
    with serve(data_dir, key_file) as server:
        api = connect(server)
        api.retrieve(NS, query_text="x")
        assert api.stats(NS).index.graph_count > 0
        assert server.terminate() == 0
        refused = ("index_snapshot_refused", "index_columns_refused")
        assert not any(event in line for line in server.log for event in refused), "the snapshot was not used"
    assert not any(key_file.read_text().strip() in line for line in server.log)
    print(f"{rounds(1, 20)} kills, {written} items acknowledged and there, no canary in any file")


@pytest.fixture
def killed(tmp_path: Path, key_file: Path, connect: Connect) -> Path:
    """An encrypted data folder whose last writes are in the write-ahead log."""
    data_dir = tmp_path / "data"
    with serve(data_dir, key_file) as server:
        connect(server).add_texts("a", "kept")
        server.kill()
    assert (data_dir / "records.db-wal").stat().st_size
    return data_dir


def test_a_wrong_key_is_refused_and_changes_nothing(
    tmp_path: Path, key_file: Path, killed: Path, connect: Connect
) -> None:
    before = contents(killed)
    wrong = tmp_path / "wrong"
    write_secret(wrong, secrets.token_hex(32))
    assert "encrypted with another key" in refused(killed, wrong)
    assert "is encrypted: give its key with --encryption-key-file" in refused(killed, None)
    marker = (killed / "encryption.json").rename(tmp_path / "marker")
    for key in (None, key_file):
        assert "encryption.json is missing beside it" in refused(killed, key)
    marker.rename(killed / "encryption.json")
    assert contents(killed) == before
    with pytest.raises(RuntimeError, match="encrypted with another key"):
        serve(killed, wrong).start()
    assert contents(killed) == before
    variable = {"MEMORY_SERVICE_ENCRYPTION_KEY": key_file.read_text()}
    with ServerProcess(killed, env=variable) as server:
        assert connect(server).found("a") == ["kept"]


def test_a_folder_that_is_not_encrypted_is_refused_with_a_key(
    tmp_path: Path, key_file: Path, connect: Connect
) -> None:
    with serve(tmp_path / "data", None) as server:
        connect(server).add_texts("a", "kept")
        server.kill()
    before = contents(tmp_path / "data")
    assert "memory-service rekey" in refused(tmp_path / "data", key_file)
    assert contents(tmp_path / "data") == before
    assert texts(tmp_path / "data", None) == ["kept"]


@pytest.mark.parametrize("pages_before", [0, 7])
def test_a_database_that_was_never_made_is_told_from_one_that_no_key_opens(
    tmp_path: Path, pages_before: int
) -> None:
    """A loss of power at the first start: a part of the first page, and SQLite's journal without pages."""
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    (data_dir / "records.db").write_bytes(bytes(3072))
    journal = struct.pack(">8sIIIII", bytes.fromhex("d9d505f920a163d7"), 0, 1, pages_before, 512, 4096)
    (data_dir / "records.db-journal").write_bytes(journal.ljust(512, b"\0"))
    if pages_before:
        assert "is not a database" in refused(data_dir, None)
        assert (data_dir / "records.db").read_bytes() == bytes(3072)
        return
    assert texts(data_dir, None) == []
    assert (data_dir / "records.db").read_bytes().startswith(b"SQLite format 3")


@pytest.mark.parametrize("text", ["", "secret", "ab" * 31, "zz" * 32, base64.b64encode(b"x" * 33).decode()])
def test_what_is_no_key_is_refused_without_being_told(tmp_path: Path, text: str) -> None:
    write_secret(tmp_path / "key", text)
    with pytest.raises(ValueError) as raised:
        read_key(tmp_path / "key")
    assert "32 bytes, as 64 hexadecimal digits or as base64" in str(raised.value)
    assert not text or text not in str(raised.value)


def test_a_server_does_not_start_with_a_bad_key(
    tmp_path: Path, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The secret is missing: the folder must not be created unencrypted.
    with pytest.raises(RuntimeError, match="32 bytes"):
        ServerProcess(tmp_path / "data", env={"MEMORY_SERVICE_ENCRYPTION_KEY": ""}).start()
    assert not (tmp_path / "data" / "records.db").exists()
    monkeypatch.setenv("MEMORY_SERVICE_ENCRYPTION_KEY", key_file.read_text())
    with pytest.raises(BadConfig, match="not in both"):
        open_store(Config(encryption_key_file=key_file))
    with pytest.raises(BadConfig, match="omit the encryption key"):
        open_store(Config(store="memory"))


def test_records_are_written_anew_with_a_key_another_key_and_none(
    tmp_path: Path, key_file: Path, connect: Connect
) -> None:
    other = tmp_path / "other"
    write_secret(other, secrets.token_hex(32))
    plain, first, second, last = (tmp_path / name for name in ("plain", "first", "second", "last"))
    with serve(plain, None) as server:
        api = connect(server)
        api.add_texts("a", canary("kept"), canary("gone"))
        api.memory.Delete(memory_pb2.DeleteRequest(namespace="a", id=api.items("a")[1].id))
        api.save("a", "k", canary("state"))
        busy = command(
            "rekey", "--data-dir", plain, "--to", first, "--new-encryption-key-file", key_file, exit_code=1
        )
        assert "another server is using" in busy
        server.kill()
    command("rekey", "--data-dir", plain, "--to", first, "--new-encryption-key-file", key_file)
    wrong = ("rekey", "--data-dir", first, "--to", second, "--encryption-key-file", other)
    assert "another key" in command(*wrong, "--plain", exit_code=1)
    assert "give either a new key or --plain" in command(*wrong, exit_code=1)
    change = (
        "rekey",
        "--data-dir",
        first,
        "--encryption-key-file",
        key_file,
        "--new-encryption-key-file",
        other,
    )
    assert "is not empty" in command(*change, "--to", plain, exit_code=1)
    command(*change, "--to", second)
    assert canaries_in(contents(first) | contents(second)) == set()
    command("rekey", "--data-dir", second, "--encryption-key-file", other, "--to", last, "--plain")
    assert canaries_in(contents(last)) == {canary("kept"), canary("state")}
    assert texts(first, key_file) == texts(second, other) == texts(last, None) == [canary("kept")]
    assert not list(tmp_path.glob(".*.partial"))


def test_an_encrypted_backup_is_verified_and_restored_with_its_key(
    tmp_path: Path, key_file: Path, killed: Path, connect: Connect
) -> None:
    with serve(killed, key_file) as server:
        connect(server).admin.Backup(admin_pb2.BackupRequest(name="monday"))
    backup = killed / "backups" / "monday"
    told = json.loads(command("backup", "verify", backup, "--json"))
    assert told["encrypted"] and told["item_count"] == 1
    command("backup", "verify", backup, "--encryption-key-file", key_file)
    wrong = {"MEMORY_SERVICE_ENCRYPTION_KEY": secrets.token_hex(32)}
    assert "another key" in command("backup", "verify", backup, exit_code=1, env=wrong)
    command("restore", backup, "--data-dir", tmp_path / "new", "--encryption-key-file", key_file)
    assert texts(tmp_path / "new", key_file) == ["kept"]


# --- files beside the records ---------------------------------------------------------------------


def sealed(folder: Path, content: bytes, key: DataKey, name: str = "file") -> Path:
    """Write a sealed file."""
    with SealedFiles(key).writing(folder / name) as path:
        path.write_bytes(content)
    return folder / name


def opened(path: Path, key: DataKey) -> bytes:
    """Read a sealed file."""
    with SealedFiles(key).reading(path) as plain:
        return plain.read_bytes()


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK])
def test_a_sealed_file_opens_as_it_was(tmp_path: Path, size: int) -> None:
    key, content = DataKey(secrets.token_bytes(32)), secrets.token_bytes(size)
    path = sealed(tmp_path, content, key)
    assert opened(path, key) == content
    assert not content[:64] or content[:64] not in path.read_bytes() or size == 1
    assert sealed(tmp_path, content, key, "again").read_bytes() != path.read_bytes()


def _changed(data: bytes) -> Iterator[bytes]:
    head, chunk = 40, CHUNK + 16
    first, second = data[head : head + chunk], data[head + chunk : head + 2 * chunk]
    rest = data[head + 2 * chunk :]
    yield data[:-1]
    yield data + b"\0"
    yield data[: head + 2 * chunk]  # the last chunk is missing
    yield data[: head + chunk]
    yield data[:head]
    yield data[:20]
    yield data[:head] + second + first + rest
    yield data[:head] + first + rest
    for at in (0, head - 1, head, head + chunk + 5, len(data) - 1):
        yield data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def test_a_sealed_file_that_was_changed_does_not_open(tmp_path: Path) -> None:
    key = DataKey(secrets.token_bytes(32))
    path = sealed(tmp_path, secrets.token_bytes(2 * CHUNK + 100), key)
    whole = path.read_bytes()
    with pytest.raises(ValueError):
        opened(path, DataKey(secrets.token_bytes(32)))
    for number, changed in enumerate(_changed(whole)):
        path.write_bytes(changed)
        with pytest.raises(ValueError):
            opened(path, key)
            pytest.fail(f"change {number} was not seen")
    path.write_bytes(whole)
    assert len(opened(path, key)) == 2 * CHUNK + 100
