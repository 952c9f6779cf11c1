"""R17: a backup under load is of one moment, restores elsewhere, and is rejected if it is damaged."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from faults.canaries import contents
from faults.folder_workload import Span
from faults.recorded import RecordedDisk
from faults.scale import drawn, rounds
from grpc_api import METHODS, Api, Connect, valid_request
from memory_service.cli import main
from memory_service.v1 import admin_pb2
from server_process import ServerProcess

NAMESPACES = ("a", "b", "c")
# Restores a backup, and kills itself before the folder gets its name.
_DIES_AT_RENAME = """
import os, signal, sys
sys.addaudithook(lambda event, _: event == "os.rename" and os.kill(os.getpid(), signal.SIGKILL))
from memory_service.cli import main
main()
"""


def command(*arguments: object, exit_code: int = 0, address: str = "", stdin: str | None = None) -> str:
    """Run a command; return its output, including errors."""
    env = {"MEMORY_SERVICE_ADDRESS": address} if address else {}
    ended = CliRunner(env=env).invoke(main, [str(argument) for argument in arguments], input=stdin)
    assert ended.exit_code == exit_code, (ended.output, ended.exception)
    return ended.stdout if exit_code == 0 else ended.output


@pytest.fixture(scope="module")
def backup(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup that was written while one writer wrote n to namespace n % 3, in this order."""
    data_dir = tmp_path_factory.mktemp("source")
    with ServerProcess(data_dir) as server:
        api = Api.connect(server.address)
        stop, begun = threading.Event(), threading.Event()

        def write() -> None:
            number = 0
            while not stop.is_set():
                api.add(NAMESPACES[number % 3], id=str(number), text=f"kiwi {number}")
                number += 1
                if number == 90:
                    begun.set()

        writer = threading.Thread(target=write)
        writer.start()
        assert begun.wait(60)
        try:
            for name in ("first", "second"):
                api.admin.Backup(admin_pb2.BackupRequest(name=name))
        finally:
            stop.set()
            writer.join()
        api.channel.close()
    return data_dir / "backups" / "second"


@pytest.fixture
def copied(backup: Path, tmp_path: Path) -> Path:
    """A copy of the backup, which a test may damage."""
    return Path(shutil.copytree(backup, tmp_path / "backup"))


def test_the_drill(backup: Path, tmp_path: Path, connect: Connect) -> None:
    first, second = (
        json.loads(command("backup", "verify", backup.with_name(name), "--json"))
        for name in ("first", "second")
    )
    assert first["revision"] <= second["revision"] and first["time"] <= second["time"]
    assert (second["namespace_count"], second["encrypted"]) == (3, False)
    command("restore", backup, "--data-dir", tmp_path / "new")
    assert not list(tmp_path.glob(".*"))
    with ServerProcess(tmp_path / "new") as server:
        api = connect(server)
        stored = {name: [int(item.id) for item in api.items(name)] for name in NAMESPACES}
        count = second["item_count"]
        # Every namespace as of one moment: all earlier writes, and no later ones.
        assert sorted(number for numbers in stored.values() for number in numbers) == list(range(count))
        assert all(numbers == list(range(at, count, 3)) for at, numbers in enumerate(stored.values()))
        assert sum(api.stats(name).revision for name in NAMESPACES) == second["revision"]
        assert api.found("b", query_text="kiwi 4", limit=1) == ["kiwi 4"]
        api.add("a", text="after")
    assert command("backup", "verify", backup), "the backup is as it was"


def test_an_empty_folder_is_restored_to_and_a_full_one_is_not(copied: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    command("restore", copied, "--data-dir", tmp_path / "empty")
    before = contents(tmp_path / "empty")
    for target in (tmp_path / "empty", copied, copied / "records.db"):
        assert "is not empty" in command("restore", copied, "--data-dir", target, exit_code=1)
    assert contents(tmp_path / "empty") == before


def _damages(copied: Path) -> Iterator[str]:
    """Damage a backup in one way after the other; it is repaired in between."""
    chance = drawn("damage")
    records, manifest = copied / "records.db", copied / "manifest.json"
    whole, told = records.read_bytes(), manifest.read_text()
    for _ in range(rounds(5, 200)):
        at = chance.randrange(len(whole))
        records.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << chance.randrange(8)]) + whole[at + 1 :])
        yield "is damaged"
    for changed in (b"", whole[:-1], whole + b"\0", whole[: len(whole) // 2], b"\0" * len(whole)):
        records.write_bytes(changed)
        yield "is damaged"
    records.unlink()
    yield "records.db is missing"
    records.write_bytes(whole)
    for text in ("", "{}", told[:-20], told.replace('"item_count": ', '"item_count": 1')):
        manifest.write_text(text)
        yield "is damaged"
    manifest.write_text(told.replace('"manifest_format": 1', '"manifest_format": 2'))
    yield "newer release"
    manifest.write_text(told.replace("records.db", "../records.db"))
    yield "is damaged"
    manifest.unlink()
    yield "is not a backup"
    manifest.write_text(told)
    (copied / "records.db-wal").write_bytes(b"x" * 100)
    yield "does not belong to the backup"


def test_a_damaged_backup_is_refused_before_anything_is_written(copied: Path, tmp_path: Path) -> None:
    command("backup", "verify", copied)
    for expected in _damages(copied):
        assert expected in command("backup", "verify", copied, exit_code=1)
        assert expected in command("restore", copied, "--data-dir", tmp_path / "new", exit_code=1)
        assert not (tmp_path / "new").exists()


def test_a_restore_that_is_killed_leaves_nothing_that_looks_whole(copied: Path, tmp_path: Path) -> None:
    arguments = ["restore", str(copied), "--data-dir", str(tmp_path / "new")]
    killed = subprocess.run([sys.executable, "-c", _DIES_AT_RENAME, *arguments], check=False)
    assert killed.returncode == -9
    assert not (tmp_path / "new").exists()
    command(*arguments)
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"records.db"}
    assert not list(tmp_path.glob(".*"))


def test_a_restore_that_loses_power_leaves_nothing_or_everything(copied: Path, tmp_path: Path) -> None:
    recorded = RecordedDisk(tmp_path / "new")
    recorded.run("faults.folder_workload", "restore", copied, recorded.data_dir, tmp_path / "report")
    span = msgspec.json.decode((tmp_path / "report").read_bytes(), type=Span)
    restored = contents(recorded.data_dir)
    assert restored == {"records.db": (copied / "records.db").read_bytes()}
    chance = drawn("restore power")
    for _ in range(rounds(40, 1000)):
        cut = recorded.lose_power(tmp_path / "image", chance)
        found = contents(tmp_path / "image")
        assert found == restored or (not found and cut < span.done), f"cut after {cut}"


def _fill(api: Api, namespace: str) -> None:
    """Write a record of each service."""
    names = ("Add", "StoreInteraction", "StoreReflection", "SaveMemory", "AddDocument")
    for method in (method for method in METHODS if method.name in names):
        api.call(method, valid_request(method, namespace))
    api.save(namespace, "k", {"v": [1, None]}, description="why")


def _exported(address: str, namespace: str) -> list[dict[str, object]]:
    """Return an export of a namespace, except for values that its server sets."""
    lines = command("export", "--namespace", namespace, address=address).splitlines()
    records = [json.loads(line) for line in lines]
    for record in records:
        for what in (record, *(value for value in record.values() if isinstance(value, dict))):
            for name in ("revision", "update_time", "create_time", "version"):
                what.pop(name, None)
    return records


def test_a_whole_server_moves_by_export_and_import(tmp_path: Path, connect: Connect) -> None:
    with ServerProcess(tmp_path / "from") as source, ServerProcess(tmp_path / "to") as target:
        for namespace in ("x/one", "x/two"):
            _fill(connect(source), namespace)
        listed = command("namespaces", "--json", address=source.address).splitlines()
        names = [json.loads(line)["namespace"] for line in listed]
        assert names == ["x/one", "x/two"]
        for name in names:
            file = tmp_path / "exported.jsonl"
            command("export", file, "--namespace", name, address=source.address)
            command("import", file, "--namespace", name, address=target.address)
        for name in names:
            moved = _exported(target.address, name)
            assert len(moved) >= 7
            assert moved == _exported(source.address, name)
            before, after = (connect(server).stats(name) for server in (source, target))
            assert (after.item_count, after.state_count) == (before.item_count, before.state_count)
            assert (after.embedding_model, after.embedded_count) == (
                before.embedding_model,
                before.embedded_count,
            )
