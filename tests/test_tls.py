"""TLS of the server: certificates and their renewal, client certificates, open addresses."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from click.testing import CliRunner

from certificates import write_all
from memory_service.cli import main
from memory_service.config import BadConfig, Config
from memory_service.server.transport import check_transport, is_local
from memory_service.v1 import memory_pb2, memory_pb2_grpc
from server_process import ServerProcess
from toolchain import MEMORY_SERVICE, ROOT, tool

_LIGHT = ("--store", "memory", "--embedder", "none")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with certificates."""
    folder = tmp_path_factory.mktemp("certificates")
    write_all(folder)
    return folder


def serving(files: Path, name: str, *flags: str) -> ServerProcess:
    """Return a server with the certificate of this name."""
    pair = ("--tls-certificate", str(files / f"{name}.pem"), "--tls-key", str(files / f"{name}.key"))
    return ServerProcess(flags=(*_LIGHT, *pair, *flags))


@pytest.fixture(scope="module")
def encrypted(files: Path) -> Iterator[ServerProcess]:
    """A server with TLS."""
    with serving(files, "server") as server:
        yield server


@pytest.fixture(scope="module")
def mutual(files: Path) -> Iterator[ServerProcess]:
    """A server with TLS and client certificates, which may therefore be open to a network."""
    flags = ("--tls-client-ca", str(files / "ca.pem"), "--address", "0.0.0.0:0")
    with serving(files, "server", *flags) as server:
        server.address = server.address.replace("0.0.0.0", "127.0.0.1")
        yield server


def channel(address: str, files: Path, client: str = "", ca: str = "ca.pem") -> grpc.Channel:
    """Return a new connection that trusts an authority, and presents the certificate of this name."""
    pair = [(files / f"{client}.{end}").read_bytes() for end in ("key", "pem")] if client else [None, None]
    credentials = grpc.ssl_channel_credentials((files / ca).read_bytes(), *pair)
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)]
    return grpc.secure_channel(address, credentials, options=options)


def add(connection: grpc.Channel) -> None:
    """Write something; raises gRPC's error."""
    request = memory_pb2.AddRequest(namespace="tls", item=memory_pb2.MemoryItem(text="hello"))
    memory_pb2_grpc.MemoryServiceStub(connection).Add(request, timeout=20)


def code_of(connection: grpc.Channel) -> grpc.StatusCode:
    """Return the code of a write that must fail."""
    with connection, pytest.raises(grpc.RpcError) as raised:
        add(connection)
    return raised.value.code()


def test_calls_are_encrypted(encrypted: ServerProcess, files: Path) -> None:
    with channel(encrypted.address, files) as connection:
        add(connection)


def test_that_every_client_of_an_authority_may_do_everything_is_told_at_the_start(
    files: Path, tmp_path: Path
) -> None:
    ca = ("--tls-client-ca", str(files / "ca.pem"))
    with serving(files, "server", *ca, "--log-level", "warning") as server:
        with channel(server.address, files, "client") as connection:
            add(connection)
            request = memory_pb2.ResetRequest(namespace="tls")
            assert memory_pb2_grpc.MemoryServiceStub(connection).Reset(request, timeout=20).removed_count == 1
        server.terminate()
        (told,) = events(server, "certificates_without_auth")
    assert told["level"] == "warning"
    assert told["effect"] == "every client with a certificate of this authority has full access"
    grant = ["--namespace", "*", "--role", "read", "--certificate", "CN=client"]
    made = CliRunner().invoke(main, ["keys", "create", "ada", *grant, "--data-dir", str(tmp_path)])
    assert made.exit_code == 0, made.output
    named = (*ca, "--auth", "mtls", "--data-dir", str(tmp_path))
    for flags in ((), named):
        with serving(files, "server", *flags) as server:
            server.terminate()
            assert not events(server, "certificates_without_auth")


def test_a_client_that_trusts_another_authority_does_not_talk_to_the_server(
    encrypted: ServerProcess, files: Path
) -> None:
    assert code_of(channel(encrypted.address, files, ca="stranger-ca.pem")) is grpc.StatusCode.UNAVAILABLE


def test_an_expired_certificate_is_served_and_told_in_the_log_and_no_client_takes_it(files: Path) -> None:
    with serving(files, "expired") as server:
        assert code_of(channel(server.address, files)) is grpc.StatusCode.UNAVAILABLE
        server.terminate()
        assert events(server, "certificate_expired")


def test_plaintext_to_an_encrypted_port_is_not_served(encrypted: ServerProcess) -> None:
    assert code_of(grpc.insecure_channel(encrypted.address)) is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_tls_of_today_is_spoken(encrypted: ServerProcess, files: Path, version: ssl.TLSVersion) -> None:
    context = ssl.create_default_context(cafile=files / "ca.pem")
    context.minimum_version = context.maximum_version = version
    assert presented(encrypted.address, context)["notAfter"]


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_tls_before_1_2_is_refused(encrypted: ServerProcess, files: Path) -> None:
    context = ssl.create_default_context(cafile=files / "ca.pem")
    context.set_ciphers("ALL:@SECLEVEL=0")  # Otherwise OpenSSL itself would not offer it.
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(OSError):
        presented(encrypted.address, context)


def presented(address: str, context: ssl.SSLContext) -> dict[str, object]:
    """Return the certificate that the server presents to a new connection."""
    host, port = address.split(":")
    context.set_alpn_protocols(["h2"])
    with socket.create_connection((host, int(port)), timeout=20) as plain:
        with context.wrap_socket(plain, server_hostname=host) as connection:
            return dict(connection.getpeercert() or {})


def test_a_client_with_a_certificate_of_the_authority_is_served(mutual: ServerProcess, files: Path) -> None:
    with channel(mutual.address, files, "client") as connection:
        add(connection)


@pytest.mark.parametrize("client", ["", "stranger", "expired-client"])
def test_a_client_without_a_good_certificate_is_not_served(
    mutual: ServerProcess, files: Path, client: str
) -> None:
    assert code_of(channel(mutual.address, files, client)) is grpc.StatusCode.UNAVAILABLE


def put(files: Path, name: str, folder: Path) -> None:
    """Put a pair where the server looks for its pair."""
    for end in ("pem", "key"):
        shutil.copy(files / f"{name}.{end}", folder / f"own.{end}")


def subject(server: ServerProcess, files: Path) -> str:
    """Return the name in the certificate that a new connection gets."""
    found = presented(server.address, ssl.create_default_context(cafile=files / "ca.pem"))
    ((_, name),) = found["subject"][0]  # type: ignore[index]
    return str(name)


def events(server: ServerProcess, name: str) -> list[dict[str, str]]:
    """Return the server's log lines of one kind; complete once it has ended."""
    lines = [json.loads(line) for line in server.log if line.startswith("{")]
    return [line for line in lines if line["event"] == name]


def test_a_renewed_certificate_is_for_new_connections_and_old_ones_live_on(
    files: Path, tmp_path: Path
) -> None:
    put(files, "server", tmp_path)
    with serving(tmp_path, "own") as server, channel(server.address, files) as before:
        add(before)
        put(files, "renewed", tmp_path)
        assert subject(server, files) == "renewed"
        add(before)
        with channel(server.address, files) as after:
            add(after)
        server.terminate()
        assert len(events(server, "certificate_loaded")) == 2


def damage(folder: Path, other: Path, how: str) -> None:
    """Damage a server's pair, as an interrupted writer might."""
    certificate, key = folder / "own.pem", folder / "own.key"
    match how:
        case "half":
            certificate.write_bytes(certificate.read_bytes()[:300])
        case "empty":
            key.write_bytes(b"")
        case "another's key":
            shutil.copy(other, key)
        case "gone":
            certificate.unlink()


def test_a_damaged_new_pair_leaves_the_old_one_and_is_logged_once(files: Path, tmp_path: Path) -> None:
    put(files, "server", tmp_path)
    old, new = "server", "renewed"
    damages = ("half", "empty", "another's key", "gone")
    with serving(tmp_path, "own") as server:
        for how in damages:
            put(files, new, tmp_path)
            damage(tmp_path, files / "client.key", how)
            assert [subject(server, files) for _ in range(3)] == [old] * 3, how
            put(files, new, tmp_path)
            assert subject(server, files) == new, how
            old, new = new, old
        server.terminate()
        told = events(server, "certificate_not_taken")
        assert len(told) == len(damages)
        assert all(each["problem"].startswith("--tls-") for each in told)
        assert "PRIVATE" not in "\n".join(server.log)


def test_a_renewed_client_authority_is_for_new_connections(files: Path, tmp_path: Path) -> None:
    authority = tmp_path / "authority.pem"
    shutil.copy(files / "ca.pem", authority)
    with serving(files, "server", "--tls-client-ca", str(authority)) as server:
        assert code_of(channel(server.address, files, "stranger")) is grpc.StatusCode.UNAVAILABLE
        shutil.copy(files / "stranger-ca.pem", authority)
        with channel(server.address, files, "stranger") as connection:
            add(connection)
        assert code_of(channel(server.address, files, "client")) is grpc.StatusCode.UNAVAILABLE


def config(files: Path, **settings: str) -> Config:
    """Return settings of a server; files are given by their names."""
    paths = {name: files / value for name, value in settings.items() if name.startswith("tls_")}
    return Config(**{"address": "127.0.0.1:0", **settings, **paths}).verify()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"tls_certificate": "server.pem"}, "tls_certificate"),
        ({"tls_key": "server.key"}, "tls_key"),
        ({"tls_client_ca": "ca.pem"}, "tls_client_ca"),
        ({"tls_certificate": "nowhere.pem", "tls_key": "server.key"}, "--tls-certificate"),
        ({"tls_certificate": "server.pem", "tls_key": "nowhere.key"}, "--tls-key"),
        ({"tls_certificate": "server.key", "tls_key": "server.key"}, "--tls-certificate"),
        ({"tls_certificate": "server.pem", "tls_key": "server.pem"}, "--tls-key"),
        ({"tls_certificate": "server.pem", "tls_key": "client.key"}, "--tls-key"),
        (
            {"tls_certificate": "server.pem", "tls_key": "server.key", "tls_client_ca": "server.key"},
            "--tls-client-ca",
        ),
    ],
)
def test_files_that_cannot_be_used_are_refused_by_the_name_of_their_option(
    files: Path, settings: dict[str, str], named: str
) -> None:
    with pytest.raises(BadConfig, match=named) as raised:
        check_transport(config(files, **settings))
    assert "PRIVATE" not in str(raised.value)


@pytest.mark.parametrize("address", ["[::]:0", "0:0", "no.such.host.invalid:0", "dns:localhost:0"])
def test_an_open_address_without_protection_is_refused(files: Path, address: str) -> None:
    with pytest.raises(BadConfig, match="--tls-certificate.*--allow-insecure-network"):
        check_transport(config(files, address=address))


def refusal(*flags: str) -> str:
    """Return the output of a server that does not start."""
    command = [sys.executable, "-m", "memory_service", "serve", *_LIGHT, *flags]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1, ended.stdout
    assert "Traceback" not in ended.stderr
    return ended.stderr


def test_a_server_does_not_start_on_an_open_address_without_encryption_and_credentials(files: Path) -> None:
    pair = ("--tls-certificate", str(files / "server.pem"), "--tls-key", str(files / "server.key"))
    assert "does not encrypt" in refusal("--address", "0.0.0.0:0")
    half_way = refusal("--address", "0.0.0.0:0", *pair)
    assert "does not encrypt" not in half_way
    assert "credentials" in half_way


def test_a_server_starts_on_an_open_address_if_that_is_wanted_in_so_many_words() -> None:
    flags = (*_LIGHT, "--address", "0.0.0.0:0", "--allow-insecure-network")
    with ServerProcess(flags=flags) as server:
        with grpc.insecure_channel(server.address.replace("0.0.0.0", "127.0.0.1")) as connection:
            add(connection)


def test_the_certificates_of_the_document_serve_its_commands(tmp_path: Path) -> None:
    tool("openssl")
    document = (ROOT / "docs" / "security.md").read_text()
    made, used = re.findall(r"^```sh\n(.*?)^```$", document.partition("## Test certificates")[2], re.M | re.S)
    subprocess.run(["bash", "-ec", made], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    mutual = ("--tls-client-ca", str(tmp_path / "ca.pem"))
    with serving(tmp_path, "server", *mutual) as server:
        command = used.splitlines()[0].replace("memory-service", str(MEMORY_SERVICE))
        environment = {**os.environ, "MEMORY_SERVICE_ADDRESS": server.address}
        subprocess.run(["bash", "-ec", command], cwd=tmp_path, env=environment, check=True, timeout=60)


def test_a_socket_file_is_local(tmp_path: Path) -> None:
    address = f"unix:{tmp_path / 'memory.sock'}"
    with ServerProcess(flags=(*_LIGHT, "--address", address)) as server:
        assert server.address == address
        with grpc.insecure_channel(address) as connection:
            add(connection)


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("127.0.0.1:1", True),
        ("127.9.9.9:1", True),
        ("[::1]:1", True),
        ("[::ffff:127.0.0.1]:1", True),
        ("localhost:1", True),
        ("unix:/run/memory.sock", True),
        ("[::ffff:10.0.0.1]:1", False),
        ("10.0.0.1:1", False),
        ("127.0.0.1.invalid:1", False),
        ("ipv4:0.0.0.0:1", False),
        ("*:1", False),
        (f"{'x' * 70}.test:1", False),
    ],
)
def test_what_is_local(address: str, local: bool) -> None:
    assert is_local(address) is local
