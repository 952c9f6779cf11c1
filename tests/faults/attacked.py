"""Servers that are sent what no client sends: an open one, and one behind TLS and API keys."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

import raw_http2 as h2
from certificates import write_all
from credentials import keys_in
from grpc_api import Api
from server_process import ServerProcess

KINDS = ("open", "guarded")


@dataclass(frozen=True)
class Attacked:
    """A server, and what it takes to be heard by it."""

    process: ServerProcess
    tls: ssl.SSLContext | None = None
    channel_credentials: grpc.ChannelCredentials | None = None
    token: str = ""
    honest_credentials: grpc.ChannelCredentials | None = None

    def tcp(self) -> socket.socket:
        """A connection on which nothing was said yet."""
        host, _, port = self.process.address.rpartition(":")
        return socket.create_connection((host, int(port)), timeout=30)

    def connection(self, greeting: bytes = b"") -> h2.Connection:
        """A connection for bytes, inside of TLS if the server has it."""
        return h2.Connection(self.process.address, greeting=greeting, tls=self.tls)

    def headers(self, path: str, *more: tuple[bytes, bytes]) -> bytes:
        """The headers of a call that is let in."""
        token = [(b"authorization", b"Bearer " + self.token.encode())] if self.token else []
        return h2.call_headers(path, *token, *more)

    def api(self) -> Api:
        """The stubs of a client that has the attacker's credential."""
        return Api.connect(self.process.address, self.channel_credentials)

    def honest_api(self) -> Api:
        """The stubs of another caller."""
        return Api.connect(self.process.address, self.honest_credentials)


@contextmanager
def attacked(kind: str, folder: Path, *flags: str, **how: Any) -> Iterator[Attacked]:
    """Start a server of a kind, with its files in a folder."""
    all_flags = ["--embedder", "none", *flags]
    if kind == "open":
        with ServerProcess(folder / "data", flags=all_flags, **how) as process:
            yield Attacked(process)
        return
    write_all(folder)
    keys = keys_in(folder / "data")
    token = keys.token()
    pair = ("--tls-certificate", str(folder / "server.pem"), "--tls-key", str(folder / "server.key"))
    tls = ssl.create_default_context(cafile=folder / "ca.pem")
    tls.set_alpn_protocols(["h2"])
    authority = grpc.ssl_channel_credentials((folder / "ca.pem").read_bytes())
    mine, honest = (
        grpc.composite_channel_credentials(authority, grpc.access_token_call_credentials(each))
        for each in (token, keys.token("honest"))
    )
    with ServerProcess(folder / "data", flags=[*all_flags, "--auth", "keys", *pair], **how) as process:
        yield Attacked(process, tls, mine, token, honest)
