"""What callers can make the server hold is bounded: the peak while an attack runs, not what it leaves."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message

import raw_http2 as h2
from faults.attacked import Attacked, attacked
from faults.beside import MIB, beside
from faults.scale import SOAK, rounds
from grpc_api import Api
from memory_service.v1 import memory_pb2 as pb
from wire_format import field_of

STREAMS = 200
SECONDS = rounds(2, 60)
SECONDS_MAX = 10 * SECONDS
"""The longest that an attack waits for a few answers to an honest caller. Doubled, a server that answers
none fails later; a tenth of it would fail on a busy machine.
"""
ADD = "/memory_service.v1.MemoryService/Add"
BATCH_ADD = "/memory_service.v1.MemoryService/BatchAdd"
EXPORT = "/memory_service.v1.MemoryService/Export"
IMPORT = "/memory_service.v1.MemoryService/Import"
LIST = "/memory_service.v1.MemoryService/List"
HEALTH = "/grpc.health.v1.Health/Check"
REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
NAMESPACE = "attacked"
# The largest message that gRPC takes, less its namespace.
LARGEST = 16 * MIB - 64
LARGE_STREAMS = rounds(80, 200)
"""Streams with a message of `LARGEST`: more than twice `PEAK_MAX`. Half as many still exceed it, barely."""
GZIP = (b"grpc-encoding", b"gzip")

Attack = Callable[[], None]


@dataclass(frozen=True)
class Door:
    """A server, and whether the attacker has a credential for it, or needs none."""

    server: Attacked
    opens: bool

    def headers(self, path: str, *more: tuple[bytes, bytes]) -> bytes:
        return self.server.headers(path, *more) if self.opens else h2.call_headers(path, *more)


FORKED = multiprocessing.get_context("fork")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Attacked]:
    """Each attack has its own server, because an attacked one is no longer idle."""
    with attacked("open", tmp_path) as server:
        yield server


@pytest.fixture
def door(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Door]:
    """One of `DOORS`."""
    with attacked("open" if request.param == "open" else "guarded", tmp_path) as server:
        yield Door(server, request.param != "without")


DOORS = ("open", "with credentials", "without")
"""A server that asks for no credentials, and one that does, of whom has one and of whom has none."""


def at_doors(*paths: str) -> pytest.MarkDecorator:
    """Attack each method of a server that is open, and one at the other doors; in a soak all."""
    cases = [(door, path) for door in DOORS for path in paths if SOAK or door == "open" or path == paths[0]]
    names = [f"{path.rpartition('/')[2]}-{door}" for door, path in cases]
    return pytest.mark.parametrize(("door", "path"), cases, indirect=["door"], ids=names)


def by_turns(paths: list[str], choices: list[Any]) -> list[Any]:
    """Return one choice for each method, in a soak each for each."""
    pairs = itertools.product(paths, choices) if SOAK else zip(paths, choices, strict=True)
    return [pytest.param(path, choice, id=f"{path.rpartition('/')[2]}-{choice}") for path, choice in pairs]


def repeated(attacks: Sequence[Attack], enough: Event) -> None:
    """Run attacks, each in a thread, again and again for a time, and until enough was seen beside them."""
    began = time.monotonic()

    def goes_on() -> bool:
        took = time.monotonic() - began
        return took < SECONDS or (took < SECONDS_MAX and not enough.is_set())

    def attack_again(attack: Attack) -> None:
        while goes_on():
            # The server may hang up in the middle of it.
            with contextlib.suppress(OSError):
                attack()

    threads = [threading.Thread(target=attack_again, args=(attack,)) for attack in attacks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def beside_attacks(server: Attacked, attacks: Sequence[Attack]) -> None:
    """Check a server during attacks, which run in a separate process so as not to slow the checks down."""
    begin, enough = FORKED.Event(), FORKED.Event()

    def attack() -> None:
        begin.wait()
        repeated(attacks, enough)

    attacker = FORKED.Process(target=attack)
    attacker.start()
    with beside(server) as seen:
        begin.set()
        while attacker.is_alive() and not seen.is_enough:
            attacker.join(0.1)
        enough.set()
        attacker.join()
    assert attacker.exitcode == 0
    seen.check()


def opened(server: Attacked, headers: bytes, *, streams: int = STREAMS) -> h2.Connection:
    """A connection with so many calls under way that have sent nothing yet."""
    connection = server.connection()
    for number in range(streams):
        connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS, 2 * number + 1, headers))
    return connection


def unpadded(request: Message) -> bytes:
    return h2.message(request.SerializeToString())


@at_doors(ADD, HEALTH)
def test_what_is_small_until_it_is_decompressed(door: Door, path: str) -> None:
    headers = door.headers(path, GZIP)
    bomb = h2.message(gzip.compress(bytes(LARGEST)), compressed=True)

    def attack() -> None:
        connection = opened(door.server, headers, streams=LARGE_STREAMS)
        h2.send_in_turns(connection, dict.fromkeys(range(1, 2 * LARGE_STREAMS, 2), bomb)).wait_for_ends()
        connection.close()

    beside_attacks(door.server, [attack])


@at_doors(HEALTH, ADD, IMPORT, REFLECTION)
def test_messages_of_which_the_end_never_comes(door: Door, path: str) -> None:
    headers = door.headers(path)
    part = h2.message(bytes(LARGEST))[:-1]

    def attack() -> None:
        connection = opened(door.server, headers, streams=LARGE_STREAMS)
        h2.send_in_turns(connection, dict.fromkeys(range(1, 2 * LARGE_STREAMS, 2), part), end=False)
        time.sleep(1)  # held for a while, rather than passing through
        connection.close()

    beside_attacks(door.server, [attack])


def many_words(bytes_max: int) -> bytes:
    """A text in which most words are others."""
    text = " ".join(f"{at * 7919 % 99_991:x}word" for at in range(bytes_max // 8))
    return text[:bytes_max].encode()


LONG_TEXTS = {"are kept": many_words(60_000), "are refused for their length": b"x" * 70_000}


@pytest.mark.parametrize(("path", "text"), by_turns([BATCH_ADD, IMPORT], list(LONG_TEXTS)))
def test_large_requests_on_many_streams(server: Attacked, path: str, text: str) -> None:
    headers = server.headers(path)
    item = field_of(2, field_of(5, LONG_TEXTS[text]))
    request = field_of(1, NAMESPACE.encode()) + item * (LARGEST // len(item))
    data = h2.message(request)

    def attack() -> None:
        connection = opened(server, headers, streams=LARGE_STREAMS)
        h2.send_in_turns(
            connection, dict.fromkeys(range(1, 2 * LARGE_STREAMS, 2), data), end=path == BATCH_ADD
        )
        connection.close()

    beside_attacks(server, [attack])


def filled(api: Api) -> None:
    """A namespace of which a page is as large as one may be."""
    items = [pb.MemoryItem(text="x" * 60_000) for _ in range(100)]
    api.memory.BatchAdd(pb.BatchAddRequest(namespace=NAMESPACE, items=items))


@pytest.mark.parametrize(("path", "connections"), by_turns([LIST, EXPORT], [1, 4]))
def test_answers_that_nobody_reads(server: Attacked, path: str, connections: int) -> None:
    filled(server.api())
    request = pb.ListRequest(namespace=NAMESPACE, page_size=1000)
    if path == EXPORT:
        request = pb.ExportRequest(namespace=NAMESPACE)
    headers, data = server.headers(path), unpadded(request)
    # No more than a byte of each answer.
    greeting = h2.PREFACE + h2.settings(initial_window_size=1)
    kept: list[h2.Connection] = []

    def attack() -> None:
        kept.append(connection := server.connection(greeting))
        for number in range(STREAMS // connections):
            connection.send(h2.call(2 * number + 1, headers, data))
        time.sleep(SECONDS / 2)  # The answers are held for as long as the client likes.

    beside_attacks(server, [attack] * connections)


def entry(number: int, count: int) -> bytes:
    """Entries of a map from texts to texts."""
    return b"".join(field_of(number, field_of(1, b"%07x" % at)) for at in range(count))


MANY = 16 * MIB - 1024
LABELS = field_of(1, NAMESPACE.encode()) + entry(pb.ListRequest.LABELS_FIELD_NUMBER, 1_000_000)
LIST_OF_NULLS = field_of(6, b"\x0a\x02\x08\x00" * (MANY // 4))
NULLS = field_of(2, field_of(6, field_of(1, field_of(1, b"a") + field_of(2, LIST_OF_NULLS))))
MANY_FIELDS = {
    "labels": (LIST, LABELS),
    "empty items": (BATCH_ADD, field_of(1, NAMESPACE.encode()) + b"\x12\x00" * (MANY // 2)),
    "nulls of a list": (ADD, field_of(1, NAMESPACE.encode()) + NULLS),
    "kinds": (
        LIST,
        field_of(1, NAMESPACE.encode()) + field_of(pb.ListRequest.KINDS_FIELD_NUMBER, b"\x01" * MANY),
    ),
}


@pytest.mark.parametrize("path, request_bytes", MANY_FIELDS.values(), ids=MANY_FIELDS)
def test_requests_of_a_million_fields(server: Attacked, path: str, request_bytes: bytes) -> None:
    headers, data = server.headers(path), h2.message(request_bytes)

    def attack() -> None:
        connection = opened(server, headers, streams=8)
        h2.send_in_turns(connection, dict.fromkeys(range(1, 16, 2), data))
        connection.close()

    beside_attacks(server, [attack] * 4)
