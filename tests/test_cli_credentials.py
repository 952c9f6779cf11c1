"""Credentials and encryption of commands that talk to a server."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from certificates import write_all
from credentials import keys_in, write_secret
from demanding_server import DemandingServer
from memory_service.cli import main
from memory_service.cli.serve import first_calls
from memory_service.config import Config
from server_process import ServerProcess
from toolchain import run as run_program
from toolchain import tool

Run = Callable[..., Result]


@pytest.fixture
def demanding() -> Iterator[DemandingServer]:
    """A server that demands tokens."""
    with DemandingServer() as server:
        yield server


def namespaces(address: str, *options: str, exit_code: int = 0, **environment: str) -> Result:
    """Run a command that prints nothing for an empty server."""
    variables = {f"MEMORY_SERVICE_{name}": value for name, value in environment.items()}
    command = ("namespaces", "--address", address, *options)
    result = CliRunner(env=variables).invoke(main, command)
    assert result.exit_code == exit_code, result.output
    return result


def test_the_api_key_comes_from_its_variable_a_file_or_the_option(
    demanding: DemandingServer, tmp_path: Path
) -> None:
    file = tmp_path / "key"
    write_secret(file, "good-file\n")
    at = str(file)
    namespaces(demanding.address, API_KEY="good-variable")
    namespaces(demanding.address, API_KEY_FILE=at)
    namespaces(demanding.address, "--api-key-file", at)
    namespaces(demanding.address, "--api-key", "good-typed")
    # An option takes precedence over the environment.
    namespaces(demanding.address, "--api-key-file", at, API_KEY="good-variable")
    namespaces(demanding.address, "--api-key", "good-typed", API_KEY_FILE=at)
    sent = [authorization.removeprefix("Bearer good-") for _, authorization in demanding.asked]
    assert sent == ["variable", "file", "file", "typed", "file", "typed"]


def test_contradictions_are_refused(demanding: DemandingServer, tmp_path: Path) -> None:
    key, certificate, empty = tmp_path / "key", tmp_path / "certificate", tmp_path / "empty"
    write_secret(key, "s3cret")
    certificate.write_text("x")
    write_secret(empty, "\n")
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
    assert "no server responds" in wanted.stderr


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with certificates."""
    folder = tmp_path_factory.mktemp("certificates")
    write_all(folder)
    return folder


@pytest.fixture(scope="module")
def mutual(files: Path) -> Iterator[ServerProcess]:
    """A real server that requires client certificates."""
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


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, files: Path) -> Iterator[tuple[ServerProcess, str]]:
    """A real server that requires client certificates and API keys, and a key."""
    folder = tmp_path_factory.mktemp("guarded")
    key = keys_in(folder).token(roles=("read", "write"))
    pair = ("--tls-certificate", str(files / "server.pem"), "--tls-key", str(files / "server.key"))
    flags = ("--auth", "keys", "--embedder", "none", "--tls-client-ca", str(files / "ca.pem"))
    with ServerProcess(folder, flags=(*flags, *pair)) as server:
        yield server, key


def of(files: Path) -> list[str]:
    """The options to connect to the servers that require certificates."""
    paths = {"--tls-ca": "ca.pem", "--tls-certificate": "client.pem", "--tls-key": "client.key"}
    return [word for name, file in paths.items() for word in (name, str(files / file))]


def test_health_needs_no_key_and_tells_more_with_one(guarded: tuple[ServerProcess, str], files: Path) -> None:
    server, key = guarded

    def health(*options: str) -> Result:
        result = CliRunner().invoke(main, ["health", "--address", server.address, *of(files), *options])
        assert result.exit_code == 0, result.output
        return result

    for nobody in ((), ("--api-key", "mem_unknown")):
        told = health(*nobody)
        assert told.stdout == "status: serving\n"
        assert "credential" in told.stderr and "UNAUTHENTICATED" in told.stderr
        assert json.loads(health(*nobody, "--json").stdout) == {"status": "serving"}
    known = health("--api-key", key, "--json")
    assert known.stderr == ""
    assert json.loads(known.stdout)["store"] == "hnsw"


RETRIEVE = "memory_service.v1.MemoryService/Retrieve"
QUERY = """-d '{"namespace":"default","options":{"query_text":"what does Ada drink?"}}'"""


def words(line: str, files: Path, key: str) -> list[str]:
    """Return the words of a printed line, with the caller's values in place of the capitals."""
    own = {"CA.pem": "ca.pem", "CLIENT.pem": "client.pem", "CLIENT.key": "client.key"}
    for name, file in own.items():
        line = line.replace(name, str(files / file))
    return shlex.split(line.replace("KEY", key))


def test_the_calls_that_a_server_prints_work_on_it(guarded: tuple[ServerProcess, str], files: Path) -> None:
    server, key = guarded
    known = Config(tls_certificate=files / "server.pem", tls_client_ca=files / "ca.pem", auth=("keys",))
    # A server that listens on every address prints one that a client can use.
    everywhere = f"0.0.0.0:{server.address.rpartition(':')[2]}"
    for address in (server.address, everywhere):
        add, retrieve = first_calls(known, address)
        result = CliRunner().invoke(main, words(add, files, key)[1:])
        assert result.exit_code == 0, result.output
    grpcurl = tool("grpcurl")
    answer = run_program([grpcurl, *words(retrieve, files, key)[1:]], files, timeout_s=60)
    assert "Ada likes green tea" in answer


def test_the_printed_calls_have_what_the_server_asks_for_and_no_more() -> None:
    add, tea = ".venv/bin/memory-service add", '"Ada likes green tea"'
    port, pem = "127.0.0.1:50051", Path("server.pem")
    assert first_calls(Config(), port) == (f"{add} {tea}", f"grpcurl -plaintext {QUERY} {port} {RETRIEVE}")
    assert first_calls(Config(), "127.0.0.1:9") == (
        f"{add} --address 127.0.0.1:9 {tea}",
        f"grpcurl -plaintext {QUERY} 127.0.0.1:9 {RETRIEVE}",
    )
    for auth in (("keys",), ("jwt",)):
        assert first_calls(Config(auth=auth), port) == (
            f"{add} --api-key KEY {tea}",
            f"grpcurl -plaintext -H 'authorization: Bearer KEY' {QUERY} {port} {RETRIEVE}",
        )
    for every_host in ("0.0.0.0", "[::]"):
        assert first_calls(Config(tls_certificate=pem), f"{every_host}:9") == (
            f"{add} --address 127.0.0.1:9 --tls-ca CA.pem {tea}",
            f"grpcurl -cacert CA.pem {QUERY} 127.0.0.1:9 {RETRIEVE}",
        )
    assert first_calls(Config(tls_certificate=pem, tls_client_ca=pem, auth=("mtls",)), port) == (
        f"{add} --tls-ca CA.pem --tls-certificate CLIENT.pem --tls-key CLIENT.key {tea}",
        f"grpcurl -cacert CA.pem -cert CLIENT.pem -key CLIENT.key {QUERY} {port} {RETRIEVE}",
    )
