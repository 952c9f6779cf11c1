"""A data folder that somebody else's hands are on while a server works on it."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest
from click.testing import CliRunner

from credentials import write_secret
from grpc_api import Connect
from memory_service.cli import main
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
            with pytest.raises(RuntimeError, match="another server is working on"):
                ServerProcess(at, flags=FLAGS).start()
            rekey = ("rekey", "--data-dir", at, "--to", tmp_path / "new", "--new-encryption-key-file", key)
            ended = CliRunner().invoke(main, [str(word) for word in rekey])
            assert ended.exit_code == 1 and "another server is working on" in ended.stderr
            assert not (tmp_path / "new").exists()

        (folder / "LOCK").unlink()
        is_kept_out(folder)
        # Who was refused has made a new one, and a file that is new is not locked.
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
    """Stands for an earlier release too, which locks the file alone."""
    folder = tmp_path / "data"
    folder.mkdir()
    with (folder / "LOCK").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with pytest.raises(RuntimeError, match="another server is working on"):
            ServerProcess(folder, flags=FLAGS).start()
    with ServerProcess(folder, flags=FLAGS) as server:
        assert server.address
