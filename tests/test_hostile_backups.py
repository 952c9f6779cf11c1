"""Backups that are damaged, forged or invalid are refused with one line, never with a traceback."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from contract.older_formats import make_older
from faults.scale import drawn, rounds
from grpc_api import Api
from memory_service.cli import main
from memory_service.records.sqlite.backup_checks import checksum_of, describe
from memory_service.records.sqlite.schema import FORMAT, TABLES
from memory_service.v1 import admin_pb2
from server_process import ServerProcess

KEY = "07" * 32
NESTED = b"[" * 200_000


def _written(data_dir: Path, key: str = "") -> Path:
    """A backup of a server with some of everything in it."""
    env = {"MEMORY_SERVICE_ENCRYPTION_KEY": key} if key else {}
    with ServerProcess(data_dir, flags=["--embedder", "none"], env=env) as server:
        api = Api.connect(server.address)
        for number in range(40):
            api.add("a", id=str(number), text=f"heron {number} " + "eats fish. " * 20)
        api.save("b", "k", 1)
        api.admin.Backup(admin_pb2.BackupRequest(name="good"))
        api.channel.close()
    return data_dir / "backups" / "good"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _written(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _written(tmp_path_factory.mktemp("encrypted"), KEY)


@pytest.fixture
def copied(plain: Path, tmp_path: Path) -> Path:
    """A copy of the backup that a test may damage."""
    return Path(shutil.copytree(plain, tmp_path / "backup"))


def run(*arguments: object, key: str = "") -> tuple[int, str]:
    """Return the exit code and the output of a command, which must end in an orderly way."""
    env = {"MEMORY_SERVICE_ENCRYPTION_KEY": key} if key else {}
    ended = CliRunner(env=env).invoke(main, [str(argument) for argument in arguments])
    assert ended.exception is None or isinstance(ended.exception, SystemExit), repr(ended.exception)
    return ended.exit_code, ended.output


def refused(folder: Path, *, key: str = "") -> str:
    """Return the error message for a backup that can be neither verified nor restored."""
    target = folder.with_name("restored")
    answers = {
        run("backup", "verify", folder, key=key),
        run("restore", folder, "--data-dir", target, key=key),
    }
    assert not target.exists()
    ((code, text),) = answers
    assert code == 1
    assert text.startswith("error: ")
    assert text.count("\n") == 1
    return text


def told(folder: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return manifest


def tell(folder: Path, **changes: Any) -> None:
    (folder / "manifest.json").write_text(json.dumps({**told(folder), **changes}))


def forge(folder: Path) -> None:
    """Make the manifest match the files as they are."""
    files = [describe(folder / file["name"]) for file in told(folder)["files"]]
    tell(
        folder,
        files=[{"name": f.name, "size_bytes": f.size_bytes, "checksum": f.checksum} for f in files],
        checksum=checksum_of(folder / "records.db"),
    )


def alter(folder: Path, *statements: str) -> None:
    """Change the database of a backup and forge its manifest."""
    with contextlib.closing(sqlite3.connect(folder / "records.db")) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()
    forge(folder)


def test_a_good_backup_says_what_it_holds(plain: Path, tmp_path: Path) -> None:
    rows = told(plain)["rows"]
    assert rows.keys() == set(TABLES)
    assert (rows["namespaces"], rows["items"], rows["states"], rows["changes"]) == (2, 40, 1, 41)
    code, text = run("backup", "verify", plain)
    assert code == 0 and "rows.items" in text
    assert run("restore", plain, "--data-dir", tmp_path / "new")[0] == 0


@pytest.mark.parametrize(
    "manifest",
    [
        NESTED,
        b'{"a":' * 100_000,
        b'{"files":' + NESTED,
        b'{"later":' + NESTED + b"]" * len(NESTED) + b"}",
        b"\xff\xfe",
        b"null",
        b"",
        b" " * (2 << 20),
    ],
    ids=lambda manifest: f"{manifest[:12]!r}",
)
def test_a_manifest_that_is_none_is_refused(copied: Path, manifest: bytes) -> None:
    (copied / "manifest.json").write_bytes(manifest)
    assert "manifest.json is damaged" in refused(copied)


@pytest.mark.parametrize(
    "database",
    [
        (),
        ("CREATE TABLE namespaces (uid, item_count, state_count, revision)",),
        ("CREATE TABLE namespaces (uid, item_count, state_count, revision)", "CREATE TABLE items (uid)"),
        (
            "CREATE VIEW namespaces AS WITH RECURSIVE n (uid) AS (SELECT 1 UNION ALL SELECT uid + 1 FROM n)"
            " SELECT uid, 0 AS item_count, 0 AS state_count, 0 AS revision FROM n",
        ),
        ("CREATE VIRTUAL TABLE namespaces USING fts5(uid, item_count)",),
        ("CREATE TABLE namespaces (uid)", "CREATE TRIGGER t AFTER INSERT ON namespaces BEGIN SELECT 1; END"),
        ("CREATE TABLE others (uid)",),
    ],
    ids=lambda database: " ".join(database)[:30] or "empty",
)
def test_a_database_that_is_not_ours_is_refused(copied: Path, database: tuple[str, ...]) -> None:
    (copied / "records.db").unlink()
    alter(copied, "PRAGMA user_version = 5", *database)
    tell(copied, namespace_count=0, item_count=0, revision=0, rows=None, records_format=5)
    assert "records.db" in refused(copied)


@pytest.mark.parametrize("table", ["items", "states", "changes", "namespaces"])
def test_a_backup_without_its_rows_is_refused(copied: Path, table: str) -> None:
    alter(copied, f"DELETE FROM {table}")
    assert "records.db is damaged" in refused(copied)


@pytest.mark.parametrize("table", ["items", "states"])
def test_also_where_no_rows_were_counted(copied: Path, table: str) -> None:
    """Manifests of earlier releases have no counts of rows, but namespaces count items and states."""
    alter(copied, f"DELETE FROM {table}")
    tell(copied, rows=None)
    assert "records.db is damaged" in refused(copied)


def test_other_counts_than_the_manifests_are_refused(copied: Path) -> None:
    for name in ("namespace_count", "item_count", "revision", "records_format"):
        was = told(copied)[name]
        tell(copied, **{name: was - 1})
        assert f"its {name} is {was}, not {was - 1}" in refused(copied)
        tell(copied, **{name: was})
    run("backup", "verify", copied)


def test_the_checksum_is_that_of_the_database(copied: Path) -> None:
    tell(copied, checksum="xxh3_128:" + "0" * 32)
    assert "the checksum of records.db does not match" in refused(copied)


@pytest.mark.parametrize("number", range(1, FORMAT + 1))
def test_backups_of_earlier_releases_are_verified_and_restored(copied: Path, number: int) -> None:
    """Their manifests have no counts of rows."""
    make_older(copied, number)
    forge(copied)
    manifest = told(copied)
    del manifest["rows"]
    (copied / "manifest.json").write_text(json.dumps({**manifest, "records_format": number}))
    assert run("backup", "verify", copied)[0] == 0
    assert run("restore", copied, "--data-dir", copied.with_name("new"))[0] == 0
    with ServerProcess(copied.with_name("new"), flags=["--embedder", "none"]) as server:
        api = Api.connect(server.address)
        assert api.stats("a").item_count == 40
        api.channel.close()


@pytest.mark.parametrize("name", ["api-keys.json", "..", "../other", "audit", "", "a\0b", "manifest.json"])
def test_no_other_file_comes_along(copied: Path, name: str) -> None:
    if name == "api-keys.json":
        (copied / name).write_text("{}")
    files = told(copied)["files"]
    tell(copied, files=[*files, {**files[0], "name": name}])
    assert "it does not list the files of a backup" in refused(copied)


def test_a_marker_that_is_none_is_refused(encrypted: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(encrypted, tmp_path / "backup"))
    marker = json.loads((copied / "encryption.json").read_text())
    for content in (NESTED, b"", b"null", json.dumps({**marker, "key_check": "é"}).encode()):
        (copied / "encryption.json").write_bytes(content)
        forge(copied)
        assert "encrypt" in refused(copied, key=KEY)
        # `rekey` and a server may be given the same folder.
        code, text = run("rekey", "--data-dir", copied, "--to", tmp_path / "new", "--plain", key=KEY)
        assert (code, text.count("\n")) == (1, 1)


VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2**63, 2**200, 1.5, "", "\0", "..", "/etc/passwd", "records.db", "é", "x" * 5000),
    *([], {}, [[]], [{}], {"a": {"b": []}}, [1] * 100),
)


def _altered_value(value: Any, chance: random.Random) -> Any:
    """Return a JSON value with one part changed."""
    if isinstance(value, dict | list) and value and chance.random() < 0.8:
        places: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
        place = chance.choice(places)
        if chance.random() < 0.15:
            items = value.items() if isinstance(value, dict) else enumerate(value)
            kept = [(at, each) for at, each in items if at != place]
            return dict(kept) if isinstance(value, dict) else [each for _, each in kept]
        copy = dict(value) if isinstance(value, dict) else list(value)
        copy[place] = _altered_value(copy[place], chance)
        return copy
    return chance.choice(VALUES)


def _altered_bytes(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content) or 1)
    piece = chance.randbytes(chance.choice((1, 1, 1, 4, 200)))
    return chance.choice(
        (
            content[:at] + piece + content[at + len(piece) :],
            content[:at] + piece + content[at:],
            content[:at],
            content[:at] + content[at + len(piece) :],
        )
    )


def _altered_json(content: bytes, chance: random.Random) -> bytes:
    return json.dumps(_altered_value(json.loads(content), chance)).encode()


Alteration = Callable[[bytes, random.Random], bytes]
ALTERATIONS: list[tuple[str, Alteration]] = [
    ("manifest.json", _altered_bytes),
    ("manifest.json", _altered_json),
    ("records.db", _altered_bytes),
    ("encryption.json", _altered_bytes),
    ("encryption.json", _altered_json),
]


@pytest.mark.parametrize("key", ["", KEY], ids=["plain", "encrypted"])
def test_whatever_is_altered_the_end_is_orderly(
    plain: Path, encrypted: Path, tmp_path: Path, key: str
) -> None:
    chance = drawn(f"backups {bool(key)}")
    source = encrypted if key else plain
    outcomes = set()
    for number in range(rounds(120, 5000)):
        folder = Path(shutil.copytree(source, tmp_path / str(number)))
        name, alter_content = chance.choice([each for each in ALTERATIONS if (folder / each[0]).exists()])
        (folder / name).write_bytes(alter_content((folder / name).read_bytes(), chance))
        if name != "manifest.json":
            forge(folder)
        code, text = run("backup", "verify", folder, key=key)
        restored, _ = run("restore", folder, "--data-dir", tmp_path / "new", key=key)
        assert code == restored, (number, text)
        assert code == 0 or (code, text.count("\n"), text[:7]) == (1, 1, "error: "), (number, text)
        assert (tmp_path / "new").exists() == (code == 0)
        outcomes.add(code)
        shutil.rmtree(tmp_path / "new", ignore_errors=True)
        shutil.rmtree(folder)
    assert 1 in outcomes


def test_what_is_no_folder_is_refused(plain: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    os.symlink("/dev/zero", tmp_path / "folder" / "manifest.json")
    for path in (tmp_path / "fifo", tmp_path / "none", plain / "records.db", tmp_path / "folder", "x" * 5000):
        code, text = run("backup", "verify", path)
        assert (code, text.count("\n"), text[:7]) == (1, 1, "error: "), path
