"""What a server keeps is for its owner only, whatever the umask of whoever starts it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from grpc_api import Connect
from memory_service.v1 import admin_pb2
from server_process import ServerProcess


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """Nothing is taken from the modes that are asked for."""
    before = os.umask(0)
    yield
    os.umask(before)


def filled(folder: Path, connect: Connect) -> None:
    """Fill a data folder with what a server can write, and leave the log of the database behind."""
    with ServerProcess(folder, flags=["--audit"]) as server:
        api = connect(server)
        api.add_texts("n", *(f"kiwi {number}" for number in range(50)))
        api.admin.Flush(admin_pb2.FlushRequest())
        api.admin.Backup(admin_pb2.BackupRequest(name="b"))
        api.add("n", text="one more")
        server.kill()


def open_to_others(path: Path) -> bool:
    return bool(stat.S_IMODE(path.stat().st_mode) & 0o077)


def test_a_data_folder_and_all_that_is_made_in_it_is_for_its_owner(tmp_path: Path, connect: Connect) -> None:
    filled(tmp_path / "above" / "data", connect)
    made = [tmp_path / "above", *(tmp_path / "above").rglob("*")]
    assert {"records.db-wal", "indexes", "backups", "b", "audit"} <= {path.name for path in made}
    assert [path for path in made if path.is_dir() and open_to_others(path)] == []


def test_in_a_folder_that_others_may_look_into_they_do_not_see_the_records(
    tmp_path: Path, connect: Connect
) -> None:
    tmp_path.chmod(0o755)
    filled(tmp_path, connect)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    assert "records.db-wal" in {path.name for path in tmp_path.iterdir()}
    assert [path.name for path in tmp_path.iterdir() if path.name != "LOCK" and open_to_others(path)] == []
