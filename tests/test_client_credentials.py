"""Credentials and encryption of the synchronous and the asynchronous Python client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from both_clients import Blocking
from certificates import write_all
from demanding_server import DemandingServer
from memory_client import (
    AsyncMemoryClient,
    InvalidArgument,
    MemoryClient,
    MemoryItem,
    MemoryManager,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
)
from memory_client._credentials import is_loopback
from memory_client.options import ClientOptions
from server_process import ServerProcess

Connect = Callable[..., Any]


@pytest.fixture(params=["sync", "async"])
def connect(request: pytest.FixtureRequest) -> Iterator[Connect]:
    """Create clients of one kind, which are closed at the end."""
    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())

        def connect(address: str, **settings: Any) -> Any:
            if request.param == "sync":
                return stack.enter_context(MemoryClient(address, **settings))
            client = AsyncMemoryClient(address, **settings)
            stack.callback(lambda: runner.run(client.close()))
            return Blocking(runner, client)

        yield connect


@pytest.fixture
def demanding() -> Iterator[DemandingServer]:
    """A server that demands tokens."""
    with DemandingServer() as server:
        yield server


def numbered() -> Callable[[], str]:
    """A source of tokens: good-1, good-2, …"""
    count = iter(range(1, 100))
    return lambda: f"good-{next(count)}"


def test_an_api_key_goes_with_calls_of_every_kind(demanding: DemandingServer, connect: Connect) -> None:
    memory = connect(demanding.address, api_key="good")
    memory.reset()
    memory.import_items([MemoryItem(content="one")])
    assert list(memory.export()) == []
    memory.namespace("another").reset()
    assert {authorization for _, authorization in demanding.asked} == {"Bearer good"}
    assert [method for method, _ in demanding.asked] == ["Reset", "Import", "Export", "Reset"]


def test_a_token_source_is_asked_for_each_call(demanding: DemandingServer, connect: Connect) -> None:
    memory = connect(demanding.address, token_source=numbered())
    memory.reset()
    memory.import_items([MemoryItem(content="one")])
    assert list(memory.export()) == []
    memory.reset()
    sent = [authorization for _, authorization in demanding.asked]
    assert sent == [f"Bearer good-{number}" for number in range(1, 5)]


def test_a_token_source_may_be_a_coroutine_function_of_the_asynchronous_client(
    demanding: DemandingServer,
) -> None:
    async def source() -> str:
        await asyncio.sleep(0)
        return "good"

    async def use() -> None:
        async with AsyncMemoryClient(demanding.address, token_source=source) as memory:
            await memory.reset()
            await memory.import_items([MemoryItem(content="one")])

    asyncio.run(use())
    assert demanding.asked == [("Reset", "Bearer good"), ("Import", "Bearer good")]
    with MemoryClient(demanding.address, token_source=source) as memory:  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="AsyncMemoryClient"):
            memory.reset()


def test_what_a_token_source_raises_the_call_raises(demanding: DemandingServer, connect: Connect) -> None:
    def fails() -> str:
        raise LookupError("no token today")

    memory = connect(demanding.address, token_source=fails)
    for call in (
        memory.reset,
        lambda: list(memory.export()),
        lambda: memory.import_items([MemoryItem(content="x")]),
    ):
        with pytest.raises(LookupError, match="no token today"):
            call()
    assert demanding.asked == []


@pytest.mark.parametrize(
    ("settings", "error"),
    [({}, Unauthenticated), ({"api_key": "bad"}, Unauthenticated), ({"api_key": "weak"}, PermissionDenied)],
)
def test_a_refusal_is_an_error_of_its_own_and_never_tried_again(
    demanding: DemandingServer, connect: Connect, settings: dict[str, str], error: type[Exception]
) -> None:
    memory = connect(demanding.address, **settings)
    calls = (
        memory.reset,
        lambda: list(memory.export()),
        lambda: list(memory.watch()),
        lambda: memory.import_items([MemoryItem(content="x")]),
    )
    for call in calls:
        with pytest.raises(error) as raised:
            call()
        assert raised.value.reason == raised.value.code  # type: ignore[attr-defined]
    assert [method for method, _ in demanding.asked] == ["Reset", "Export", "Watch", "Import"]


@pytest.mark.parametrize(
    "credential",
    [{"api_key": "good"}, {"token_source": lambda: "good"}, {"headers": {"Authorization": "Bearer good"}}],
    ids=" ".join,
)
@pytest.mark.parametrize("client", [MemoryClient, AsyncMemoryClient, MemoryManager])
def test_credentials_are_not_sent_over_a_network_unless_encrypted(
    client: type, credential: dict[str, Any]
) -> None:
    if client is MemoryManager:
        if "headers" in credential:
            return
        make: Connect = lambda address, **settings: MemoryManager({"address": address, **settings})
    else:
        make = client
    with pytest.raises(ValueError, match="tls"):
        make("memory.example.org:50051", **credential)
    make("memory.example.org:50051", tls=True, **credential)
    make("memory.example.org:50051", allow_insecure_token=True, **credential)


@pytest.mark.parametrize(
    ("target", "local"),
    [
        ("127.0.0.1:50051", True),
        ("localhost:50051", True),
        ("[::1]:50051", True),
        ("dns:///localhost:50051", True),
        ("ipv4:127.0.0.1:50051", True),
        ("unix:/run/memory.sock", True),
        ("127.0.0.1.example.org:50051", False),
        ("localhost.example.org:50051", False),
        ("dns://127.0.0.1/example.org:50051", False),
        ("ipv4:127.0.0.1:1,10.0.0.1:1", False),
        ("10.0.0.1:50051", False),
        ("[::]:50051", False),
        ("example.org", False),
    ],
)
def test_what_stays_on_this_machine(target: str, local: bool) -> None:
    assert is_loopback(target) is local


@pytest.mark.parametrize(
    "settings",
    [
        {"api_key": ""},
        {"api_key": "se cret"},
        {"api_key": "secret\n"},
        {"api_key": "sécret"},
        {"api_key": "secret", "token_source": lambda: "secret"},
        {"api_key": "secret", "headers": {"authorization": "Bearer secret"}},
        {"api_key": "secret", "headers": {"bad name": "x"}},
        {"headers": {"authorization": "Bearer secret\n"}},
        {"client_certificate": b"secret", "tls": True},
        {"client_key": b"secret", "tls": True},
        {"client_certificate": b"x", "client_key": b"secret"},
        {"tls_server_name": "memory"},
    ],
    ids=" ".join,
)
def test_settings_that_cannot_be_are_refused_without_showing_secrets(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError) as raised:
        ClientOptions(**settings)
    assert "secret" not in str(raised.value)


def test_no_secret_is_shown(demanding: DemandingServer, connect: Connect) -> None:
    memory = connect(demanding.address, api_key="s3cret")
    with pytest.raises(Unauthenticated) as raised:
        memory.reset()
    options = ClientOptions(api_key="s3cret", client_key=b"s3cret", client_certificate=b"", tls=True)
    headers = ClientOptions(headers={"authorization": "s3cret"})
    shown = [repr(raised.value), str(raised.value), repr(options), repr(headers)]
    shown.append(repr(MemoryClient(demanding.address, api_key="s3cret")))
    assert "s3cret" not in "".join(shown)
    bad = connect(demanding.address, token_source=lambda: "s3cret\n")
    with pytest.raises(ValueError) as refused:
        bad.reset()
    assert "s3cret" not in str(refused.value)


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


def tls(files: Path, client: str = "", ca: str = "ca", **more: Any) -> dict[str, Any]:
    """Return settings of a client that trusts an authority and presents a certificate."""
    own = {}
    if client:
        own["client_certificate"] = (files / f"{client}.pem").read_bytes()
        own["client_key"] = (files / f"{client}.key").read_bytes()
    return {"tls": True, "root_certificates": (files / f"{ca}.pem").read_bytes(), **own, **more}


def test_a_client_with_a_certificate_is_served(mutual: ServerProcess, files: Path, connect: Connect) -> None:
    for settings in (tls(files, "client"), tls(files, "client", tls_server_name="localhost")):
        memory = connect(mutual.address, namespace="tls", **settings)
        assert memory.add("hello").content == "hello"
        # The asynchronous client uploads over a separate channel.
        assert memory.import_items([MemoryItem(content="one")]).imported_count == 1


def test_the_manager_of_memories_is_encrypted_too(mutual: ServerProcess, files: Path) -> None:
    with MemoryManager({"address": mutual.address, **tls(files, "client")}) as manager:
        manager.store_reflection("I am encrypted.")


@pytest.mark.parametrize(
    "how",
    ["no certificate", "another authority's", "expired", "another authority", "another name", "plaintext"],
)
def test_without_trust_on_both_sides_there_is_no_connection(
    mutual: ServerProcess, files: Path, connect: Connect, how: str
) -> None:
    settings = {
        "no certificate": tls(files),
        "another authority's": tls(files, "stranger"),
        "expired": tls(files, "expired-client"),
        "another authority": tls(files, "client", ca="stranger-ca"),
        "another name": tls(files, "client", tls_server_name="elsewhere"),
        "plaintext": {},
    }[how]
    memory = connect(mutual.address, max_attempts=1, **settings)
    with pytest.raises(Unavailable):
        memory.reset()


def test_an_expired_certificate_of_the_server_is_not_taken(files: Path, connect: Connect) -> None:
    pair = ("--tls-certificate", str(files / "expired.pem"), "--tls-key", str(files / "expired.key"))
    with ServerProcess(flags=("--store", "memory", "--embedder", "none", *pair)) as server:
        with pytest.raises(Unavailable):
            connect(server.address, max_attempts=1, **tls(files)).reset()
