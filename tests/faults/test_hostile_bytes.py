"""Bytes that no client of ours would send: the server continues, and its memory stays bounded."""

from __future__ import annotations

import contextlib
import gzip
import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

import raw_http2 as h2
from faults.attacked import KINDS, Attacked, attacked
from faults.scale import drawn, rounds
from grpc_api import Api
from memory_service.v1 import memory_pb2 as pb
from wire_format import field_of

MIB = 1 << 20
ADD = "/memory_service.v1.MemoryService/Add"
EXPORT = "/memory_service.v1.MemoryService/Export"
# The maximum is a request of a million messages, decoded once.
GROWTH_MAX = 400 * MIB


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    with attacked(request.param, tmp_path_factory.mktemp(request.param)) as server:
        yield server


@pytest.fixture(scope="module")
def api(server: Attacked) -> Iterator[Api]:
    api = server.api()
    yield api
    api.channel.close()


@pytest.fixture(scope="module", autouse=True)
def stalled(server: Attacked) -> Iterator[list[socket.socket]]:
    """Connections that are never set up, opened first so that the test need not wait for their end."""
    connections = [server.tcp() for _ in range(4)]
    connections[0].sendall(tls_hello()[:100])
    connections[1].sendall(h2.PREFACE[:12])
    yield connections
    for each in connections:
        each.close()


@pytest.fixture(autouse=True)
def lives_on(server: Attacked, api: Api) -> Iterator[None]:
    """Check after each attack that a write and a read succeed, it wrote nothing, and memory is bounded."""
    process = server.process
    api.add("honest", text="before")
    before, resident = len(api.items("honest")), process.resident_bytes()
    yield
    assert process.process.poll() is None
    api.add("honest", text="after")
    assert len(api.items("honest")) == before + 1
    assert api.items("attacked") == []
    assert process.resident_bytes() - resident < GROWTH_MAX


def add_request(text: str = "x") -> bytes:
    request = pb.AddRequest(namespace="attacked", item=pb.MemoryItem(text=text))
    return request.SerializeToString()


def read_to_the_end(connection: h2.Connection) -> list[int]:
    """Return the kinds of the frames that arrive until the server hangs up or is silent."""
    connection.socket.settimeout(5)
    kinds = []
    with contextlib.suppress(OSError):
        for kind, _, _, _ in connection.frames():
            kinds.append(kind)
            if kind == h2.GOAWAY:
                break
    return kinds


def attack(server: Attacked, data: bytes, greeting: bytes = b"") -> list[int]:
    """Send bytes and return the kinds of frames in the response."""
    connection = server.connection(greeting)
    try:
        # The server may hang up in the middle.
        with contextlib.suppress(OSError):
            connection.send(data)
            connection.send_no_more()
        return read_to_the_end(connection)
    finally:
        connection.close()


def tls_hello() -> bytes:
    """Return the first bytes of a TLS client."""
    context = ssl.create_default_context()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


NO_HTTP2: dict[str, Callable[[], bytes]] = {
    "HTTP/1": lambda: (
        b"POST " + ADD.encode() + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello"
    ),
    "TLS hello": tls_hello,
    "zeros": lambda: bytes(MIB),
    "half a preface": lambda: h2.PREFACE[:12],
    "preface without settings": lambda: h2.PREFACE + h2.frame(h2.DATA, 0, 1, b"x" * 100),
    "a frame of 16 MiB": lambda: h2.PREFACE + h2.settings() + b"\xff\xff\xff\x00\x00\x00\x00\x00\x01",
    "truncated headers": lambda: h2.PREFACE + h2.settings() + b"\x00\x10\x00\x01\x04\x00\x00\x00\x01abc",
}


@pytest.mark.parametrize("name", NO_HTTP2)
def test_bytes_that_are_no_http2_end_their_connection(server: Attacked, name: str) -> None:
    attack(server, b"", greeting=NO_HTTP2[name]())
    # Instead of the handshake, where there is one.
    attack(replace(server, tls=None), b"", greeting=NO_HTTP2[name]())


def test_random_bytes_end_their_connection(server: Attacked) -> None:
    random = drawn("random bytes")
    for _ in range(rounds(30, 1000)):
        data = random.randbytes(random.randrange(1, 4096))
        attack(server, b"", greeting=data)
        attack(server, data)


def test_frames_with_bits_turned_end_no_more_than_their_connection(server: Attacked) -> None:
    random = drawn("turned bits")
    whole = h2.call(1, server.headers("/memory_service.v1.MemoryService/List"), h2.message(b"\x0a\x02ns"))
    for _ in range(rounds(60, 2000)):
        damaged = bytearray(whole)
        for _ in range(random.randrange(1, 4)):
            damaged[random.randrange(len(damaged))] ^= 1 << random.randrange(8)
        cut = random.randrange(len(damaged)) if random.random() < 0.3 else len(damaged)
        attack(server, bytes(damaged[:cut]))


def test_a_storm_of_resets_is_survived(server: Attacked) -> None:
    """CVE-2023-44487: calls that are made and immediately cancelled."""
    headers, data = server.headers(ADD), h2.message(add_request())
    connection = server.connection()
    try:
        with contextlib.suppress(OSError):
            for start in range(0, rounds(20_000, 200_000), 500):
                storm = b""
                for number in range(start, start + 500):
                    stream = 2 * number + 1
                    # Without END_STREAM: none of these requests is ever complete.
                    storm += h2.frame(h2.HEADERS, h2.END_HEADERS, stream, headers)
                    storm += h2.frame(h2.DATA, 0, stream, data[:7])
                    storm += h2.frame(h2.RST_STREAM, 0, stream, h2.CANCEL)
                connection.send(storm)
    finally:
        connection.close()


def test_headers_of_8_mib_are_refused(server: Attacked) -> None:
    block = server.headers(ADD, (b"x-large", b"x" * (8 * MIB)))
    frames = [h2.frame(h2.HEADERS, 0, 1, block[:16_384])]
    parts = [block[at : at + 16_384] for at in range(16_384, len(block), 16_384)]
    frames += [h2.frame(h2.CONTINUATION, 0, 1, part) for part in parts[:-1]]
    frames.append(h2.frame(h2.CONTINUATION, h2.END_HEADERS, 1, parts[-1]))
    frames.append(h2.frame(h2.DATA, 1, 1, h2.message(add_request())))
    answered = attack(server, b"".join(frames))
    assert h2.DATA not in answered


def test_headers_that_never_end_are_refused(server: Attacked) -> None:
    """CVE-2024-27316: CONTINUATION frames without end."""
    small = h2.header_block([(b"x-more", b"x" * 1000)])
    flood = h2.frame(h2.HEADERS, 0, 1, server.headers(ADD)) + h2.frame(h2.CONTINUATION, 0, 1, small) * 20_000
    assert h2.DATA not in attack(server, flood)


def test_headers_that_unpack_to_much_are_refused(server: Attacked) -> None:
    """An HPACK bomb: one table entry, referenced a hundred thousand times."""
    entry = b"\x40" + b"\x04bomb" + b"\x7f" + b"\xe1\x1e" + b"x" * 4064
    block = server.headers(ADD) + entry + b"\xbe" * 10_000
    frames = h2.frame(h2.HEADERS, h2.END_HEADERS, 1, block) + h2.frame(
        h2.DATA, 1, 1, h2.message(add_request())
    )
    assert h2.DATA not in attack(server, frames)


@pytest.mark.parametrize("size_mib", [17, rounds(64, 512)])
def test_a_message_that_unpacks_to_much_is_refused(server: Attacked, size_mib: int) -> None:
    packed = gzip.compress(add_request("x" * (size_mib * MIB)), compresslevel=1)
    headers = server.headers(ADD, (b"grpc-encoding", b"gzip"))
    body = h2.message(packed, compressed=True)
    parts = [body[at : at + 16_384] for at in range(0, len(body), 16_384)]
    frames = h2.frame(h2.HEADERS, h2.END_HEADERS, 1, headers)
    frames += b"".join(h2.frame(h2.DATA, part is parts[-1], 1, part) for part in parts)
    assert h2.DATA not in attack(server, frames)


def test_a_message_that_is_shorter_than_it_says_is_never_answered(server: Attacked) -> None:
    headers, data = server.headers(ADD), h2.message(add_request())
    frames = h2.frame(h2.HEADERS, h2.END_HEADERS, 1, headers) + h2.frame(h2.DATA, 1, 1, data[:-3])
    assert h2.DATA not in attack(server, frames)


def test_streams_that_are_not_read_hold_up_nobody(server: Attacked, api: Api) -> None:
    """Watches and exports whose window stays closed keep the memory of a page, not of a namespace."""
    for _ in range(5):
        api.add_texts("large", *("y" * 60_000 for _ in range(40)))
    request = pb.ExportRequest(namespace="large").SerializeToString()
    connection = server.connection(h2.PREFACE + h2.settings(initial_window_size=1))
    try:
        for number in range(50):
            connection.send(h2.call(2 * number + 1, server.headers(EXPORT), h2.message(request)))
        for _ in range(20):
            api.add("meanwhile", text="x")
            assert len(api.retrieve("meanwhile", limit=1).results) == 1
    finally:
        connection.close()
    for item in api.items("large")[:1]:
        assert len(item.text) == 60_000


def test_connections_that_say_nothing_hold_up_nobody(server: Attacked, api: Api) -> None:
    silent = [server.tcp() for _ in range(rounds(300, 700))]
    newcomer = server.api()
    try:
        for _ in range(20):
            api.add("meanwhile", text="x")
            newcomer.add("meanwhile", text="x")
    finally:
        newcomer.channel.close()
        for each in silent:
            each.close()


@pytest.mark.parametrize("kind", ["labels", "items", "values"])
def test_a_million_entries_are_refused(server: Attacked, api: Api, kind: str) -> None:
    """As bytes: no library would write them fast enough."""
    million = {
        # BatchAddRequest.items, MemoryItem.labels and Embedding.values, empty or of one byte each.
        "items": ("BatchAdd", b"\x12\x00" * 1_000_000),
        "labels": ("Add", field_of(2, b"\x52\x00" * 1_000_000)),
        "values": ("Add", field_of(2, field_of(12, field_of(1, bytes(4_000_000))))),
    }[kind]
    method = "/memory_service.v1.MemoryService/" + million[0]
    remote = api.channel.unary_unary(method, request_serializer=None, response_deserializer=None)
    with pytest.raises(Exception, match="INVALID_ARGUMENT|RESOURCE_EXHAUSTED"):
        remote(field_of(1, b"attacked") + million[1])


def test_connections_that_are_never_set_up_are_closed(server: Attacked, stalled: list[socket.socket]) -> None:
    """`grpc.server_handshake_timeout_ms`, of TLS and of HTTP/2."""
    for each in stalled:
        # Any bytes before the end are the server's half of a handshake.
        with contextlib.suppress(ConnectionError):
            while each.recv(1 << 16):
                pass
