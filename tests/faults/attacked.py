"""Servers under attack by bytes that no client sends: an open one, and one behind TLS and API keys."""

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
    """A server, and the credentials that it requires."""

    process: ServerProcess
    tls: ssl.SSLContext | None = None
    channel_credentials: grpc.ChannelCredentials | None = None
    token: str = ""
    honest_credentials: grpc.ChannelCredentials | None = None

    def tcp(self) -> socket.socket:
        """Open a TCP connection and send nothing."""
        host, _, port = self.process.address.rpartition(":")
        return socket.create_connection((host, int(port)), timeout=30)

    def connection(self, greeting: bytes = b"") -> h2.Connection:
        """Open a connection for bytes, inside TLS if the server uses it."""
        return h2.Connection(self.process.address, greeting=greeting, tls=self.tls)

    def headers(self, path: str, *more: tuple[bytes, bytes]) -> bytes:
        """Return the headers of an authorized call."""
        token = [(b"authorization", b"Bearer " + self.token.encode())] if self.token else []
        return h2.call_headers(path, *token, *more)

    def api(self) -> Api:
        """Return the stubs of a client with the attacker's credential."""
        return Api.connect(self.process.address, self.channel_credentials)

    def honest_api(self) -> Api:
        """Return the stubs of another caller."""
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
