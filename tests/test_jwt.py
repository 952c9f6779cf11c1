"""JSON Web Tokens: what valid ones permit, and issuers' key sets in files and at URLs."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import OKPAlgorithm

from credentials import BY_NAME, Client, Issuer, connect, events_until_refused, jwt_flags
from grpc_api import eventually, outcome
from memory_service.config import JWT_ALGORITHMS
from memory_service.server.access.key_sets import BadKeySet, KeysAtUrl, read_key_set
from memory_service.v1 import memory_pb2
from server_process import ServerProcess


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    """One issuer for the whole file."""
    return Issuer()


@dataclass(frozen=True)
class Served:
    """A server that accepts tokens by the key set in a file."""

    client: Client
    keys: Path
    server: ServerProcess


@pytest.fixture(scope="module")
def served(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for the whole file."""
    folder = tmp_path_factory.mktemp("jwt")
    keys = folder / "jwks.json"
    keys.write_text(issuer.key_set())
    flags = ["--auth", "jwt", "--store", "memory", "--embedder", "none", *jwt_flags(str(keys))]
    with ServerProcess(folder / "data", flags=flags) as server:
        client = connect(server.address)
        yield Served(client, keys, server)
        client.channel.close()


def is_good(client: Client, token: str) -> bool:
    """Return whether the server accepts a token."""
    answered = outcome(lambda: client.presenting(token).call("GetInfo"))
    assert answered.name in ("OK", "UNAUTHENTICATED")
    return answered.name == "OK"


@pytest.mark.parametrize("algorithm", JWT_ALGORITHMS)
def test_each_algorithm_is_taken(served: Served, issuer: Issuer, algorithm: str) -> None:
    assert is_good(served.client, issuer.token(algorithm))


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": -30},
        {"nbf": 30},
        {"aud": ["another-service", "memory-service"]},
        {"trust": 0},
        {"trust": 1},
        {"trust": 0.25},
        {"jti": "a-token"},
        {"anything": {"else": [1]}},
    ],
    ids=str,
)
def test_what_else_a_good_token_may_say(served: Served, issuer: Issuer, claims: dict[str, Any]) -> None:
    times = {name: int(time.time()) + claims[name] for name in ("exp", "nbf") if name in claims}
    assert is_good(served.client, issuer.token(**{**claims, **times}))


def test_a_token_that_would_live_too_long_is_refused(issuer: Issuer, tmp_path: Path) -> None:
    (tmp_path / "jwks.json").write_text(issuer.key_set())
    flags = ["--auth", "jwt", "--store", "memory", "--embedder", "none"]
    flags += [*jwt_flags(str(tmp_path / "jwks.json")), "--jwt-lifetime-s-max", "3600"]
    now = int(time.time())
    with ServerProcess(tmp_path / "data", flags=flags) as server:
        client = connect(server.address)
        assert is_good(client, issuer.token(iat=now - 3000, exp=now + 600))
        assert not is_good(client, issuer.token(iat=now - 3000, exp=now + 601))
        # It does not become valid with age.
        assert not is_good(client, issuer.token(iat=now - 86_400, exp=now + 60))
        # A token without its time of issue may live for any time; a time of issue in the future is refused as
        # well.
        assert not is_good(client, issuer.token(exp=now + 60))
        assert not is_good(client, issuer.token(iat=now + 3000, exp=now + 3600))
        client.channel.close()


def test_a_token_is_good_for_its_namespaces_and_roles(served: Served, issuer: Issuer) -> None:
    client = served.client.presenting(issuer.token(namespaces=["jwt/*"], roles=["write"]))
    client.call("Add", namespace="jwt/a", item=memory_pb2.MemoryItem(text="x"))
    assert client.refused("List", namespace="jwt/a").reason == "PERMISSION_DENIED"
    assert (
        client.refused("Add", namespace="other", item=memory_pb2.MemoryItem()).reason == "PERMISSION_DENIED"
    )


def test_streams_end_when_their_token_expires(served: Served, issuer: Issuer) -> None:
    # It expires in four seconds, because a minute of clock skew is allowed.
    client = served.client.presenting(issuer.token(exp=int(time.time()) - 56))
    watch = client.start(BY_NAME["Watch"], memory_pb2.WatchRequest(namespace="watched"))
    next(watch)
    assert events_until_refused(watch)[1].reason == "UNAUTHENTICATED"


def test_the_file_of_keys_is_followed_and_a_damaged_one_refuses_everybody(
    served: Served, issuer: Issuer
) -> None:
    token, other = issuer.token("EdDSA"), issuer.token("ES256")
    whole = issuer.key_set()
    assert is_good(served.client, token) and is_good(served.client, other)
    served.keys.write_text(issuer.key_set("ES256"))
    eventually(lambda: not is_good(served.client, token), "a key that was withdrawn is not taken")
    assert is_good(served.client, other)
    served.keys.write_text(whole[:-10])
    eventually(lambda: not is_good(served.client, other), "refused while the file is damaged")
    served.keys.write_text(whole)
    eventually(lambda: is_good(served.client, token), "taken again")
    assert len([line for line in served.server.log if "jwt_keys_unreadable" in line]) == 1


def test_only_public_keys_for_signatures_are_read(issuer: Issuer) -> None:
    good = issuer.public("RS256")
    short = Issuer({"short": rsa.generate_private_key(65537, 1024)}).public("short")
    symmetric = {"kty": "oct", "k": "c2VjcmV0", "kid": "oct"}
    bad = [
        symmetric,
        {**symmetric, "alg": "RS256"},
        {**good, "kid": "hs", "alg": "HS256"},
        {**good, "kid": "none", "alg": "none"},
        {**good, "kid": "rs512", "alg": "RS512"},
        {**good, "kid": "ec", "alg": "ES256"},
        {**good, "kid": "enc", "use": "enc"},
        {**OKPAlgorithm.to_jwk(issuer.private["EdDSA"], as_dict=True), "kid": "private"},
        {**good, "kid": ""},
        {**good, "kid": 7},
        {name: value for name, value in good.items() if name != "kid"},
        {**good, "kid": "twice"},
        {**good, "kid": "twice"},
        {"kty": "RSA", "kid": "empty"},
        {"kid": "nothing"},
        short,
    ]

    def read(keys: object) -> set[str]:
        return set(read_key_set(json.dumps({"keys": keys}).encode(), JWT_ALGORITHMS))

    assert read([good, *bad]) == {"RS256"}
    whole = issuer.key_set().encode()
    assert [set(read_key_set(whole, [each])) for each in JWT_ALGORITHMS] == [
        {each} for each in JWT_ALGORITHMS
    ]
    for each in bad[:11] + bad[13:]:
        with pytest.raises(BadKeySet):
            read([each])
    for raw in (
        b"",
        b"[]",
        b"{}",
        b'{"keys": 1}',
        b'{"keys": [1]}',
        b'{"keys": []}',
        b"\xff",
        b"[" * 100_000,
    ):
        with pytest.raises(BadKeySet):
            read_key_set(raw, JWT_ALGORITHMS)


@dataclass
class KeyServer:
    """The key server's response and the requests it got."""

    body: str
    status: int = 200
    location: str = ""
    answering: threading.Event = field(default_factory=threading.Event)
    """Clear it to keep requests waiting."""
    asked: int = 0
    waiting: int = 0


@pytest.fixture
def key_server(issuer: Issuer) -> Iterator[tuple[KeyServer, str]]:
    """A real HTTP server with the issuer's EdDSA key, and its URL."""
    state = KeyServer(issuer.key_set("EdDSA"))
    state.answering.set()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.asked += 1
            state.waiting += 1
            state.answering.wait(60)
            state.waiting -= 1
            raw = state.body.encode()
            try:
                moved = state.location and self.path != state.location
                self.send_response(state.status if moved or not state.location else 200)
                if moved:
                    self.send_header("Location", state.location)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)
            except OSError:
                pass  # The client has closed the connection.

        def log_message(self, *args: object) -> None:
            """Keep the test's output clean."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever)
    thread.start()
    yield state, f"http://127.0.0.1:{http.server_port}/jwks"
    state.answering.set()
    http.shutdown()
    thread.join()
    http.server_close()


def serving(url: str, folder: Path) -> ServerProcess:
    """Return a server that fetches its keys."""
    flags = ["--auth", "jwt", "--store", "memory", "--embedder", "none", *jwt_flags(url)]
    flags += ["--jwt-algorithms", "EdDSA, ES256"]
    # Use no proxy for loopback, whatever the machine's settings.
    return ServerProcess(folder, flags=flags, env={"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"})


def test_keys_are_fetched_for_an_unknown_kid_but_not_for_each_and_nobody_else_waits(
    key_server: tuple[KeyServer, str], issuer: Issuer, tmp_path: Path
) -> None:
    state, url = key_server
    with serving(url, tmp_path) as server:
        client = connect(server.address)
        known, new = issuer.token("EdDSA"), issuer.token("ES256")
        assert is_good(client, known)
        asked = state.asked
        assert asked == 1
        for number in range(100):
            assert not is_good(client, issuer.token(headers={"kid": f"unknown {number}"}))
        assert state.asked - asked <= 2, "an attacker cannot make the server ask"

        state.answering.clear()
        state.body = issuer.key_set()
        stop = threading.Event()

        def ask_for_the_unknown() -> None:
            while not stop.is_set() and not is_good(client, new):
                pass

        thread = threading.Thread(target=ask_for_the_unknown)
        thread.start()
        try:
            eventually(lambda: state.waiting > 0, "the server asks for the new key")
            for _ in range(20):
                assert is_good(client, known), "while the key server does not answer"
            assert not state.answering.is_set()
        finally:
            state.answering.set()
            eventually(lambda: is_good(client, new), "the new key is known")
            stop.set()
            thread.join()
        assert not is_good(client, issuer.token("RS256")), "an algorithm that was not chosen"
        assert state.asked <= asked + 6
        client.channel.close()


@pytest.mark.parametrize("how", ["error", "redirect", "huge", "no key set", "nobody there"])
async def test_an_answer_that_cannot_be_used_gives_no_keys(
    key_server: tuple[KeyServer, str], how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    state, url = key_server
    good = state.body
    if how == "error":
        state.status = 500
    elif how == "redirect":
        state.status, state.location = 302, "/elsewhere"
    elif how == "huge":
        state.body = " " * (2 << 20) + good
    elif how == "no key set":
        state.body = "<html>"
    keys = KeysAtUrl("http://127.0.0.1:1/" if how == "nobody there" else url, JWT_ALGORITHMS)
    assert await keys.find("EdDSA") is None
    assert not await keys.refresh()
    assert await keys.find("EdDSA") is None
    assert state.asked == (0 if how == "nobody there" else 1)
    state.status, state.body, state.location = 200, good, ""
    others = KeysAtUrl(url, JWT_ALGORITHMS)
    assert await others.find("EdDSA") is not None
    assert await others.refresh() and not await others.refresh()
