"""The server's name, and a separate data folder for each name."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

import postgres_server
from credentials import Client, connect, keys_in
from memory_service.cli import main
from server_process import ServerProcess
from server_stores import flags_of


def audit(folder: Path, *arguments: str) -> list[str]:
    """Return what a command on the audit log of a data folder prints."""
    ended = CliRunner().invoke(main, ["audit", *arguments, "--data-dir", str(folder)])
    assert ended.exit_code == 0, ended.output
    return ended.stdout.splitlines()


def told(client: Client) -> str:
    """Return the name that the server reports."""
    name: str = client.call("GetInfo").server_name
    client.channel.close()
    return name


def test_without_a_name_it_is_called_by_host_and_port(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, flags=["--embedder", "none"]) as process:
        port = process.address.rpartition(":")[2]
        assert told(connect(process.address)) == f"{socket.gethostname()}:{port}"


def test_by_a_socket_file_it_is_called_by_host(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/socket"
    with ServerProcess(tmp_path, flags=["--embedder", "none", "--address", address]) as process:
        assert told(connect(process.address)) == socket.gethostname()


def test_the_audit_log_tells_who_opened_it_and_verifies(tmp_path: Path) -> None:
    token = keys_in(tmp_path).token()
    for name in ("memory-1", "memory-2 of Käte"):
        flags = ["--embedder", "none", "--auth", "keys", "--server-name", name]
        with ServerProcess(tmp_path, flags=flags) as process:
            assert told(connect(process.address, token)) == name
            process.terminate()
    entries = [json.loads(line) for line in audit(tmp_path, "show", "--json")]
    opened = [entry["server"] for entry in entries if entry["event"] == "opened"]
    assert opened == ["memory-1", "memory-2 of Käte"]
    assert [line for line in audit(tmp_path, "show") if "(opened)" in line and "by memory-1" in line]
    assert "the chain is intact" in audit(tmp_path, "verify")[0]


@pytest.mark.parametrize("name", ["x" * 257, "two\nlines"])
def test_a_name_that_would_not_fit_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RuntimeError, match="server_name must be at most 256 printable characters"):
        ServerProcess(tmp_path, flags=["--server-name", name]).start()


@pytest.mark.skipif(postgres_server.programs() is None, reason="there is no PostgreSQL")
def test_two_servers_of_a_database_need_two_data_folders(tmp_path: Path) -> None:
    flags = [*flags_of("postgres", tmp_path), "--embedder", "none", "--audit"]
    with ServerProcess(
        tmp_path / "new" / "one", flags=flags, env={"MEMORY_SERVICE_SERVER_NAME": "one"}
    ) as one:
        with pytest.raises(RuntimeError, match="another server is using .*--data-dir"):
            ServerProcess(tmp_path / "new" / "one", flags=flags).start()
        with ServerProcess(tmp_path / "new" / "two", flags=[*flags, "--server-name", "two"]) as two:
            assert [told(connect(process.address)) for process in (one, two)] == ["one", "two"]
            for name in ("one", "two"):
                shown = audit(tmp_path / "new" / name, "show", "--json")
                assert [json.loads(line).get("server") for line in shown] == [name]
