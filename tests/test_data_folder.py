"""A data folder that something else changes while a server uses it."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from click.testing import CliRunner
from grpc_health.v1 import health_pb2, health_pb2_grpc

from credentials import write_secret
from grpc_api import Connect, eventually, is_serving, refusal
from memory_service.audit.verification import entries
from memory_service.cli import main
from memory_service.v1 import admin_pb2, state_pb2
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

NS = "n"
FLAGS = ["--embedder", "none"]


def test_a_second_server_is_kept_out_though_the_lock_file_is_gone(tmp_path: Path, connect: Connect) -> None:
    folder, moved = tmp_path / "data", tmp_path / "moved"
    key = write_secret(tmp_path / "key", "ab" * 32)
    with ServerProcess(folder, flags=FLAGS) as server:
        api = connect(server)
        api.add(NS, text="kept")

        def is_kept_out(at: Path) -> None:
            with pytest.raises(RuntimeError, match="another server is using"):
                ServerProcess(at, flags=FLAGS).start()
            rekey = ("rekey", "--data-dir", at, "--to", tmp_path / "new", "--new-encryption-key-file", key)
            ended = CliRunner().invoke(main, [str(word) for word in rekey])
            assert ended.exit_code == 1 and "another server is using" in ended.stderr
            assert not (tmp_path / "new").exists()

        (folder / "LOCK").unlink()
        is_kept_out(folder)
        # The refused server has made a new file, which is not locked.
        (folder / "LOCK").unlink(missing_ok=True)
        (folder / "LOCK").touch()
        is_kept_out(folder)
        api.add(NS, text="kept, too")
        folder.rename(moved)
        (moved / "LOCK").unlink()
        is_kept_out(moved)
        assert set(api.found(NS)) == {"kept", "kept, too"}
        server.kill()
    with ServerProcess(moved, flags=FLAGS) as server:
        assert set(connect(server).found(NS)) == {"kept", "kept, too"}


def test_the_file_keeps_a_second_server_out_where_folders_cannot_be_locked(tmp_path: Path) -> None:
    """Stands for an earlier release too, which locks only the file."""
    folder = tmp_path / "data"
    folder.mkdir()
    with (folder / "LOCK").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with pytest.raises(RuntimeError, match="another server is using"):
            ServerProcess(folder, flags=FLAGS).start()
    with ServerProcess(folder, flags=FLAGS) as server:
        assert server.address


def is_refused(call: Callable[..., object], request: object) -> None:
    """Check that a call fails with the typed error of an unusable disk."""
    told = refusal(call, request)
    assert (told.code, told.reason) == (grpc.StatusCode.UNAVAILABLE, "STORAGE_UNAVAILABLE")


def contents(folder: Path) -> dict[Path, bytes]:
    """Return all files of a folder, if it exists."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def replace_folder(folder: Path) -> None:
    folder.rename(folder.with_name("former"))
    shutil.copytree(folder.with_name("former"), folder)


def replace(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").replace(path)


def close_folder(folder: Path) -> None:
    """Replace the folder by one that the server may not enter, and empty, because root may enter it."""
    folder.rename(folder.with_name("former"))
    folder.mkdir(0o000)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "the folder is deleted": shutil.rmtree,
    "the folder is renamed": lambda folder: folder.rename(folder.with_name("former")),
    "the folder is replaced by a copy": replace_folder,
    "the folder is replaced by one that is closed": close_folder,
    "the folder is replaced by a file": lambda folder: (shutil.rmtree(folder), folder.touch()),
    "the records are deleted": lambda folder: (folder / "records.db").unlink(),
    "the records are replaced": lambda folder: replace(folder / "records.db"),
    "their log is deleted": lambda folder: (folder / "records.db-wal").unlink(),
    "their log is replaced": lambda folder: replace(folder / "records.db-wal"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_the_next_start_would_not_find_is_not_acknowledged(
    tmp_path: Path, connect: Connect, damage: str
) -> None:
    folder = tmp_path / "data"
    with ServerProcess(folder, flags=FLAGS) as server:
        api = connect(server)
        kept = api.add(NS, text="kept")
        api.save(NS, "k", "kept")
        assert is_serving(api)
        DAMAGES[damage](folder)
        left = contents(folder)
        is_refused(api.memory.Add, pb.AddRequest(namespace=NS, item=pb.MemoryItem(text="lost")))
        is_refused(api.memory.Delete, pb.DeleteRequest(namespace=NS, id=kept.id))
        save = state_pb2.SaveStateRequest(namespace=NS, key="k")
        save.value.string_value = "lost"
        is_refused(api.state.SaveState, save)
        is_refused(api.memory.Reset, pb.ResetRequest(namespace=NS))
        is_refused(api.admin.Flush, admin_pb2.FlushRequest())
        assert api.found(NS) == ["kept"] and api.found(NS, query_text="kept") == ["kept"]
        assert api.state.LoadState(state_pb2.LoadStateRequest(namespace=NS, key="k")).entry.version
        eventually(lambda: not is_serving(api), "health that tells")
        assert any('"data_folder_lost"' in line for line in server.log)
        assert server.terminate() == 0
        # The server leaves foreign files unchanged and does not create a missing folder again.
        assert "the folder" not in damage or contents(folder) == left


def test_health_tells_it_though_nobody_writes(tmp_path: Path, connect: Connect) -> None:
    folder = tmp_path / "data"
    with ServerProcess(folder, flags=FLAGS) as server:
        connect(server).add(NS, text="kept")
        assert server.terminate() == 0
    with ServerProcess(folder, flags=[*FLAGS, "--health-address", "127.0.0.1:0"]) as server:
        api = connect(server)
        assert is_serving(api)
        folder.rename(tmp_path / "former")
        eventually(lambda: not is_serving(api), "health that tells")
        with grpc.insecure_channel(server.health_address) as channel:
            answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
            assert answer.status == health_pb2.HealthCheckResponse.NOT_SERVING
        # It stays refused: the server does not know what was written elsewhere meanwhile.
        (tmp_path / "former").rename(folder)
        is_refused(api.memory.Add, pb.AddRequest(namespace=NS, item=pb.MemoryItem(text="more")))
        assert api.found(NS) == ["kept"]
        assert server.terminate() == 0
    with ServerProcess(folder, flags=FLAGS) as server:
        assert connect(server).found(NS) == ["kept"]


def newest(folder: Path) -> Path:
    return max((folder / "audit").glob("*.jsonl"))


AUDIT_DAMAGES: dict[str, Callable[[Path], object]] = {
    "the folder is deleted": lambda folder: shutil.rmtree(folder / "audit"),
    "the folder is replaced by a copy": lambda folder: replace_folder(folder / "audit"),
    "the newest file is deleted": lambda folder: newest(folder).unlink(),
    "the newest file is replaced": lambda folder: replace(newest(folder)),
    "the head is deleted": lambda folder: (folder / "audit" / "head").unlink(),
}


@pytest.mark.parametrize("damage", AUDIT_DAMAGES)
def test_nothing_is_changed_without_an_entry_that_can_be_found(
    tmp_path: Path, connect: Connect, damage: str
) -> None:
    folder = tmp_path / "data"
    with ServerProcess(folder, flags=[*FLAGS, "--audit"]) as server:
        api = connect(server)
        kept = api.add(NS, text="kept")
        AUDIT_DAMAGES[damage](folder)
        is_refused(api.memory.Delete, pb.DeleteRequest(namespace=NS, id=kept.id))
        is_refused(api.memory.Add, pb.AddRequest(namespace=NS, item=pb.MemoryItem(text="lost")))
        assert api.found(NS) == ["kept"]
        eventually(lambda: not is_serving(api), "health that tells")
        assert any('"audit_log_lost"' in line for line in server.log)
        assert server.terminate() == 0


def test_old_files_of_the_audit_log_may_be_put_elsewhere(tmp_path: Path, connect: Connect) -> None:
    folder = tmp_path / "data"
    with ServerProcess(folder, flags=[*FLAGS, "--audit"]):
        pass
    # Like the file that follows a full one.
    first = newest(folder)
    last = max(line.sequence for line in entries(folder / "audit"))
    first.with_name(f"audit-{last + 1:012}.jsonl").touch(0o600)
    with ServerProcess(folder, flags=[*FLAGS, "--audit"]) as server:
        api = connect(server)
        item = api.add(NS, text="one")
        os.unlink(first)
        api.memory.Delete(pb.DeleteRequest(namespace=NS, id=item.id))
        assert is_serving(api)
