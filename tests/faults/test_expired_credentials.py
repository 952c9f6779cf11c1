"""The machine's clock jumps by days while the server serves: credentials do not revive or expire early."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from credentials import BY_NAME, Client, Issuer, KeyMaker, connect, events_until_refused, jwt_flags, keys_in
from faults.test_clock_jumps import DAY_S, MachineClock
from grpc_api import eventually, outcome
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

HOUR_S = 3600
# A token is accepted for this long after its expiry, because clocks differ.
GRACE_S = 60
NAMESPACE = "watched"


@dataclass(frozen=True)
class Guarded:
    """A server that requires keys or JWTs, on a machine whose clock can be set."""

    clock: MachineClock
    keys: KeyMaker
    issuer: Issuer
    client: Client
    """A client without credentials."""

    def key(self, lifetime_s: int | None = None) -> Client:
        """Return a client with a new key that the server knows, having read the key file since."""
        lifetime = None if lifetime_s is None else timedelta(seconds=lifetime_s)
        client = self.client.presenting(self.keys.token(lifetime=lifetime))
        eventually(lambda: is_good(client), "a new key is good")
        return client

    def jwt(self, lifetime_s: int) -> Client:
        """Return a client with a JWT that was accepted."""
        token = self.issuer.token(exp=int(time.time()) - GRACE_S + lifetime_s)
        client = self.client.presenting(token)
        assert is_good(client)
        return client


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Guarded]:
    clock, keys, issuer = MachineClock(tmp_path), keys_in(tmp_path / "data"), Issuer()
    keys.make()
    (tmp_path / "jwks.json").write_text(issuer.key_set())
    flags = ["--auth", "keys,jwt", "--embedder", "none", *jwt_flags(str(tmp_path / "jwks.json"))]
    with ServerProcess(tmp_path / "data", flags=flags, **clock.how) as server:
        client = connect(server.address)
        yield Guarded(clock, keys, issuer, client)
        client.channel.close()


def is_good(client: Client) -> bool:
    answered = outcome(lambda: client.call("GetInfo"))
    assert answered.name in ("OK", "UNAUTHENTICATED")
    return answered.name == "OK"


def watching(client: Client) -> Any:
    """Return a stream that has received something from the server."""
    watch = client.start(BY_NAME["Watch"], pb.WatchRequest(namespace=NAMESPACE))
    next(watch)
    return watch


def stay_expired(guarded: Guarded, clients: list[Client], aheads_s: tuple[int, ...]) -> None:
    """Check that they are rejected at any clock setting: as remembered, and when all are verified again."""
    for ahead_s in aheads_s:
        guarded.clock.set(ahead_s)
        assert [is_good(client) for client in clients] == [False] * len(clients), ahead_s
        guarded.key()
        assert [is_good(client) for client in clients] == [False] * len(clients), ahead_s


def test_a_clock_that_is_set_back_lets_nothing_live_longer(guarded: Guarded) -> None:
    lasting = guarded.key()
    # The server knows a new key after two seconds at most; each must still be valid by then.
    mortal = [guarded.key(6), guarded.jwt(4)]
    kept, ending = watching(lasting), [watching(client) for client in mortal]
    guarded.clock.set(-DAY_S)
    for watch in ending:
        assert events_until_refused(watch)[1].reason == "UNAUTHENTICATED"
    stay_expired(guarded, mortal, (-DAY_S, 0, -2 * DAY_S))
    lasting.call("Add", namespace=NAMESPACE, item=pb.MemoryItem(text="a heron"))
    assert any(event.change.item.text == "a heron" for event in kept)
    kept.cancel()


def test_a_clock_that_is_set_ahead_ends_what_has_expired_by_it_for_good(guarded: Guarded) -> None:
    lasting, longer = guarded.key(), guarded.key(3 * DAY_S)
    mortal = [guarded.key(HOUR_S), guarded.jwt(HOUR_S)]
    kept, ending = watching(longer), [watching(client) for client in mortal]
    guarded.clock.set(DAY_S)
    assert [is_good(client) for client in mortal] == [False, False], "at once"
    for watch in ending:
        assert events_until_refused(watch)[1].reason == "UNAUTHENTICATED"
    stay_expired(guarded, mortal, (-DAY_S, 0))
    assert is_good(lasting) and is_good(longer)
    longer.call("Add", namespace=NAMESPACE, item=pb.MemoryItem(text="a heron"))
    assert any(event.change.item.text == "a heron" for event in kept)
    kept.cancel()
