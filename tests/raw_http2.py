"""HTTP/2 by hand: frames that no gRPC library would send, and calls that cost the caller almost nothing."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterable, Mapping

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 0x1, 0x1, 0x4
CANCEL = struct.pack(">I", 8)
WINDOW = 0x7FFFFFFF

Headers = Iterable[tuple[bytes, bytes]]


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Return one frame. Its length is that of the payload."""
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def _integer(value: int, prefix_bits: int) -> bytes:
    most = (1 << prefix_bits) - 1
    if value < most:
        return bytes([value])
    value -= most
    encoded = bytearray([most])
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes([*encoded, value])


def header_block(headers: Headers) -> bytes:
    """Return headers as HPACK literals, neither indexed nor compressed."""
    return b"".join(
        b"\x00" + _integer(len(name), 7) + name + _integer(len(value), 7) + value for name, value in headers
    )


def call_headers(path: str, *more: tuple[bytes, bytes]) -> bytes:
    """Return the headers of a gRPC call."""
    return header_block(
        [
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", path.encode()),
            (b":authority", b"127.0.0.1"),
            (b"te", b"trailers"),
            (b"content-type", b"application/grpc"),
            *more,
        ]
    )


def message(data: bytes, *, compressed: bool = False) -> bytes:
    """Return a gRPC message with its prefix."""
    return struct.pack(">BI", compressed, len(data)) + data


def settings(**values: int) -> bytes:
    """Return SETTINGS: header_table_size, enable_push, max_concurrent_streams, initial_window_size."""
    numbers = {
        "header_table_size": 1,
        "enable_push": 2,
        "max_concurrent_streams": 3,
        "initial_window_size": 4,
    }
    payload = b"".join(struct.pack(">HI", numbers[name], value) for name, value in values.items())
    return frame(SETTINGS, 0, 0, payload)


def call(stream: int, headers: bytes, data: bytes) -> bytes:
    """Return a whole unary call. `headers` and `data` come from `call_headers` and `message`."""
    return frame(HEADERS, END_HEADERS, stream, headers) + frame(DATA, END_STREAM, stream, data)


class Connection:
    """A socket that sends HTTP/2 or any other bytes, with `tls` inside TLS."""

    def __init__(self, address: str, *, greeting: bytes = b"", tls: ssl.SSLContext | None = None) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname=host)
        self._unread = bytearray()
        # The server may close the connection in the middle of an invalid greeting; a later read detects that.
        with contextlib.suppress(OSError):
            self.send(greeting or PREFACE + settings(initial_window_size=WINDOW) + window_update(0))

    def send(self, data: bytes) -> None:
        """Send everything; raise OSError when the other side has closed the connection."""
        self.socket.sendall(data)

    def send_no_more(self) -> None:
        """Stop sending, but go on reading."""
        # Not `shutdown` of a TLS socket, which would read encrypted bytes from then on.
        socket.socket.shutdown(self.socket, socket.SHUT_WR)

    def frames(self) -> Iterable[tuple[int, int, int, bytes]]:
        """Yield kind, flags, stream and payload of each frame until the other side closes the connection."""
        while True:
            while len(self._unread) >= 9:
                length = int.from_bytes(self._unread[:3], "big")
                if len(self._unread) < 9 + length:
                    break
                kind, flags = self._unread[3], self._unread[4]
                stream = int.from_bytes(self._unread[5:9], "big") & 0x7FFFFFFF
                payload = bytes(self._unread[9 : 9 + length])
                del self._unread[: 9 + length]
                yield kind, flags, stream, payload
            try:
                got = self.socket.recv(1 << 16)
            except ConnectionError:
                return
            if not got:
                return
            self._unread += got

    def close(self) -> None:
        """Close the connection, even while a thread is reading."""
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)
        self.socket.close()


def calls_that_came(address: str, count: int) -> Connection:
    """Make calls; return when gRPC's threads have them, whatever the server's event loop does."""
    connection = Connection(address)
    headers = call_headers("/any.Service/Method")
    for number in range(count):
        connection.send(call(2 * number + 1, headers, message(b"")))
    # Those threads answer it after everything that was sent before it.
    connection.send(frame(PING, 0, 0, bytes(8)))
    for kind, flags, _, _ in connection.frames():
        if kind == PING and flags & ACK:
            break
    return connection


def window_update(stream: int) -> bytes:
    """Allow the other side to send as much as it likes."""
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", WINDOW - 65535))


class Windows:
    """How much the other side allows to be sent."""

    def __init__(self, connection: Connection, streams: Iterable[int], within_s: float) -> None:
        self.open = dict.fromkeys(streams, 65_535)
        self.whole = 65_535
        self.changed = threading.Condition()
        self.ended = False
        self._initial = 65_535
        self._within_s = within_s
        self._reading = threading.Thread(target=self._read, args=(connection,), daemon=True)
        self._reading.start()

    def wait_for_ends(self) -> None:
        """Return when all streams have been answered."""
        with self.changed:
            self.changed.wait_for(lambda: self.ended or not self.open, timeout=self._within_s)

    def _read(self, connection: Connection) -> None:
        with contextlib.suppress(OSError, ValueError):
            for kind, flags, stream, payload in connection.frames():
                with self.changed:
                    self._note(kind, flags, stream, payload)
                    self.changed.notify()
        with self.changed:
            self.ended = True
            self.changed.notify()

    def _note(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == WINDOW_UPDATE:
            more = int.from_bytes(payload, "big") & 0x7FFFFFFF
            if not stream:
                self.whole += more
            elif stream in self.open:
                self.open[stream] += more
        elif kind == RST_STREAM or (kind in (DATA, HEADERS) and flags & END_STREAM):
            self.open.pop(stream, None)
        elif kind == SETTINGS and not flags & ACK:
            values = dict(struct.iter_unpack(">HI", payload))
            grown = values.get(4, self._initial) - self._initial
            self._initial += grown
            self.open = {each: window + grown for each, window in self.open.items()}


def send_in_turns(
    connection: Connection, data: Mapping[int, bytes], *, end: bool = True, within_s: float = 10.0
) -> Windows:
    """Send data on streams, a frame of each in turn, as fast as the other side allows.

    Ends when everything is sent, when the remaining streams may not send any more, or after `within_s`.
    """
    windows, sent = Windows(connection, data, within_s), dict.fromkeys(data, 0)
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        with windows.changed:
            windows.changed.wait_for(lambda: _ready(windows, data, sent), timeout=0.5)
            frames = _next_frames(windows, data, sent, end=end)
        if not frames:
            break
        connection.send(b"".join(frames))
    return windows


def _ready(windows: Windows, data: Mapping[int, bytes], sent: Mapping[int, int]) -> bool:
    left = [each for each in windows.open if sent[each] < len(data[each])]
    return windows.ended or not left or (windows.whole > 0 and any(windows.open[each] > 0 for each in left))


def _next_frames(
    windows: Windows, data: Mapping[int, bytes], sent: dict[int, int], *, end: bool
) -> list[bytes]:
    frames: list[bytes] = []
    for stream in [] if windows.ended else list(windows.open):
        begin = sent[stream]
        size = min(16_384, windows.open[stream], windows.whole, len(data[stream]) - begin)
        if size <= 0:
            continue
        sent[stream] += size
        windows.open[stream] -= size
        windows.whole -= size
        flags = END_STREAM if end and sent[stream] == len(data[stream]) else 0
        frames.append(frame(DATA, flags, stream, data[stream][begin : begin + size]))
    return frames
