"""Only their owner can read a server's files and secrets, whatever the umask at its start."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from certificates import write_all
from credentials import keys_in
from grpc_api import Connect
from memory_service.cli import main
from memory_service.runtime.secret_files import OpenToOthers, read_secret
from memory_service.v1 import admin_pb2
from server_process import ServerProcess


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """Set an empty umask, so that files get the modes that the server asks for."""
    before = os.umask(0)
    yield
    os.umask(before)


def filled(folder: Path, connect: Connect) -> None:
    """Fill a data folder with everything a server can write, and leave the database's log behind."""
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
    assert [path.name for path in tmp_path.iterdir() if open_to_others(path)] == []


KEY = "ab" * 32
SOMEBODY = 1


def secret_of(option: str, folder: Path) -> tuple[list[str], Path]:
    """Return the options with which `serve` reads a secret from a file, and that file."""
    if option == "--encryption-key-file":
        path = folder / "key"
        path.write_text(KEY)
        return [option, str(path)], path
    if option == "--tls-key":
        write_all(folder)
        return ["--tls-certificate", str(folder / "server.pem"), option, str(folder / "server.key")], (
            folder / "server.key"
        )
    keys = keys_in(folder)
    keys.make("ada", ["a"], ["read"])
    path = keys.file.path if option == "--api-keys" else keys.file.pepper_path
    return ["--auth", "keys", "--api-keys", str(keys.file.path)], path


SECRETS = ("--encryption-key-file", "--tls-key", "--api-keys", "the pepper of --api-keys")


def test_of_what_root_owns_a_group_may_read_and_of_all_else_nobody(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(KEY)
    for mode in (0o644, 0o604, 0o660, 0o620, 0o602, 0o610):
        path.chmod(mode)
        with pytest.raises(OpenToOthers, match=f"{mode:04o}.*chmod 600"):
            read_secret(path)
    path.chmod(0o640)
    if os.geteuid() == 0:
        assert read_secret(path) == KEY.encode()
        os.chown(path, SOMEBODY, -1)
    with pytest.raises(OpenToOthers, match="0640"):
        read_secret(path)
    for mode in (0o600, 0o400, 0o700):
        path.chmod(mode)
        assert read_secret(path) == KEY.encode()


@pytest.mark.parametrize("option", SECRETS)
def test_a_server_does_not_start_with_a_secret_that_others_can_read(tmp_path: Path, option: str) -> None:
    flags, path = secret_of(option, tmp_path)
    path.chmod(0o644)
    with pytest.raises(RuntimeError) as raised:
        ServerProcess(tmp_path / "data", flags=flags).start()
    told = str(raised.value)
    assert str(path) in told and "0644" in told and "chmod 600" in told
    assert KEY not in told and "Traceback" not in told
    assert not (tmp_path / "data" / "encryption.json").exists()
    path.chmod(0o600)
    with ServerProcess(tmp_path / "data", flags=flags) as server:
        assert server.address


def test_commands_refuse_them_too(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(KEY)
    write_all(tmp_path)
    (tmp_path / "client.key").chmod(0o644)
    data = ("--data-dir", str(tmp_path / "data"))
    pair = ("--tls-certificate", str(tmp_path / "client.pem"), "--tls-key", str(tmp_path / "client.key"))
    for command in (
        (
            "keys",
            "create",
            "ada",
            "--namespace",
            "a",
            "--role",
            "read",
            *data,
            "--encryption-key-file",
            str(path),
        ),
        ("rekey", *data, "--to", str(tmp_path / "new"), "--new-encryption-key-file", str(path)),
        ("audit", "verify", *data, "--encryption-key-file", str(path)),
        ("namespaces", "--api-key-file", str(path)),
        ("namespaces", *pair),
    ):
        ended = CliRunner().invoke(main, [*command])
        assert ended.exit_code == 1, command
        assert "has mode 06" in ended.stderr and KEY not in ended.output, command


def test_a_key_comes_through_a_pipe_whatever_its_mode(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, KEY.encode())
    os.close(writing)
    os.fchmod(reading, 0o644)
    ended = CliRunner().invoke(
        main,
        ["keys", "list", "--api-keys", str(tmp_path / "none"), "--encryption-key-file", f"/dev/fd/{reading}"],
    )
    os.close(reading)
    assert "has mode" not in ended.output and "cannot be read" in ended.stderr
