"""Credentials and encryption of the commands that talk to a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from certificates import write_all
from demanding_server import DemandingServer
from memory_service.cli import main
from server_process import ServerProcess

Run = Callable[..., Result]


@pytest.fixture
def demanding() -> Iterator[DemandingServer]:
    """A server that demands tokens."""
    with DemandingServer() as server:
        yield server


def namespaces(address: str, *options: str, exit_code: int = 0, **environment: str) -> Result:
    """Run a command that prints nothing where there is nothing."""
    variables = {f"MEMORY_SERVICE_{name}": value for name, value in environment.items()}
    command = ("namespaces", "--address", address, *options)
    result = CliRunner(env=variables).invoke(main, command)
    assert result.exit_code == exit_code, result.output
    return result


def test_the_api_key_comes_from_its_variable_a_file_or_the_option(
    demanding: DemandingServer, tmp_path: Path
) -> None:
    file = tmp_path / "key"
    file.write_text("good-file\n")
    at = str(file)
    namespaces(demanding.address, API_KEY="good-variable")
    namespaces(demanding.address, API_KEY_FILE=at)
    namespaces(demanding.address, "--api-key-file", at)
    namespaces(demanding.address, "--api-key", "good-typed")
    # What was typed wins over the environment.
    namespaces(demanding.address, "--api-key-file", at, API_KEY="good-variable")
    namespaces(demanding.address, "--api-key", "good-typed", API_KEY_FILE=at)
    sent = [authorization.removeprefix("Bearer good-") for _, authorization in demanding.asked]
    assert sent == ["variable", "file", "file", "typed", "file", "typed"]


def test_contradictions_are_refused(demanding: DemandingServer, tmp_path: Path) -> None:
    key, certificate, empty = tmp_path / "key", tmp_path / "certificate", tmp_path / "empty"
    key.write_text("s3cret")
    certificate.write_text("x")
    empty.write_text("\n")
    two = namespaces(demanding.address, "--api-key", "s3cret", "--api-key-file", str(key), exit_code=2)
    assert "s3cret" not in two.output
    namespaces(demanding.address, API_KEY="s3cret", API_KEY_FILE=str(key), exit_code=2)
    alone = namespaces(demanding.address, "--tls-certificate", str(certificate), exit_code=2)
    assert "--tls-key" in alone.stderr
    assert "empty" in namespaces(demanding.address, "--api-key-file", str(empty), exit_code=1).stderr
    for option in ("--api-key-file", "--tls-ca"):
        missing = namespaces(demanding.address, option, str(tmp_path / "nowhere"), exit_code=1)
        assert option in missing.stderr
    assert demanding.asked == []


def test_a_refusal_names_its_reason_and_never_shows_the_key(demanding: DemandingServer) -> None:
    assert "(UNAUTHENTICATED)" in namespaces(demanding.address, exit_code=1).stderr
    refused = namespaces(demanding.address, API_KEY="weak-s3cret", exit_code=1)
    assert "(PERMISSION_DENIED)" in refused.stderr
    unfit = namespaces(demanding.address, API_KEY="s3cret \x01", exit_code=1)
    assert "s3cret" not in refused.output + unfit.output
    assert (
        "s3cret" not in CliRunner(env={"MEMORY_SERVICE_API_KEY": "s3cret"}).invoke(main, ["add", "-h"]).output
    )
    assert len(demanding.asked) == 2


def test_a_key_is_not_sent_over_a_network_in_plaintext() -> None:
    refused = namespaces("memory.invalid:50051", API_KEY="s3cret", exit_code=1)
    assert "credentials need tls" in refused.stderr
    wanted = namespaces("memory.invalid:50051", "--allow-insecure-token", API_KEY="s3cret", exit_code=1)
    assert "no server answers" in wanted.stderr


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of certificates."""
    folder = tmp_path_factory.mktemp("certificates")
    write_all(folder)
    return folder


@pytest.fixture(scope="module")
def mutual(files: Path) -> Iterator[ServerProcess]:
    """A real server that asks for clients' certificates."""
    pair = ("--tls-certificate", str(files / "server.pem"), "--tls-key", str(files / "server.key"))
    flags = ("--store", "memory", "--embedder", "none", "--tls-client-ca", str(files / "ca.pem"))
    with ServerProcess(flags=(*flags, *pair)) as server:
        yield server


def test_commands_speak_mutual_tls(mutual: ServerProcess, files: Path) -> None:
    own = {"--tls-certificate": str(files / "client.pem"), "--tls-key": str(files / "client.key")}
    typed = [word for pair in own.items() for word in pair]
    namespaces(mutual.address, "--tls-ca", str(files / "ca.pem"), *typed)
    variables = dict(zip(("CLIENT_TLS_CERTIFICATE", "CLIENT_TLS_KEY"), own.values(), strict=True))
    namespaces(mutual.address, TLS_CA=str(files / "ca.pem"), **variables)


def test_a_connection_that_fails_tells_what_may_be_wrong(mutual: ServerProcess, files: Path) -> None:
    plain = namespaces(mutual.address, exit_code=1)
    assert "--tls" in plain.stderr
    stranger = namespaces(mutual.address, "--tls-ca", str(files / "stranger-ca.pem"), exit_code=1)
    assert "no encrypted connection" in stranger.stderr
    assert "CERTIFICATE_VERIFY_FAILED" in stranger.stderr
    system = namespaces(mutual.address, "--tls", exit_code=1)
    assert "no encrypted connection" in system.stderr
