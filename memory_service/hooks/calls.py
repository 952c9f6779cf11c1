"""Calls of the memory server within the time that a hook has."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

R = TypeVar("R", bound=Message)
_PACKAGE = "memory_service.v1"


class Refused(Exception):
    """The settings do not allow a call."""


class Connection:
    """A connection to the first of the given servers that answers."""

    def __init__(self, address: str, settings: Mapping[str, Any], *, end: float) -> None:
        """Make a connection; `settings` are those of `connection_settings`, `end` is in monotonic time.

        Raises:
            Refused: A credential would be sent to another machine without encryption.
        """
        self._addresses = [each.strip() for each in address.split(",") if each.strip()]
        self._end = end
        self._metadata: tuple[tuple[str, str], ...] = ()
        if settings["api_key"] is not None:
            local = all(map(is_local, self._addresses))
            if not (settings["tls"] or settings["allow_insecure_token"] or local):
                raise Refused("credentials need TLS, or --allow-insecure-token")
            self._metadata = (("authorization", f"Bearer {settings['api_key']}"),)
        self._credentials = None
        if settings["tls"]:
            self._credentials = grpc.ssl_channel_credentials(
                settings["root_certificates"], settings["client_key"], settings["client_certificate"]
            )
        self._channel = self._open()

    def begin(self, method: str, request: Message, response: type[R]) -> Callable[[], R]:
        """Send a request to a method such as "MemoryService/Retrieve"; return what waits for its response.

        Raises:
            grpc.RpcError: No server answered in time, or it refused the call.
        """
        future = self._send(method, request, response)

        def wait() -> R:
            waiting = future
            while True:
                try:
                    found = waiting.result()
                    assert isinstance(found, response)
                    return found
                except grpc.RpcError as error:
                    if error.code() is not grpc.StatusCode.UNAVAILABLE or len(self._addresses) == 1:
                        raise
                    del self._addresses[0]
                    self._channel = self._open()
                    waiting = self._send(method, request, response)

        return wait

    def _open(self) -> grpc.Channel:
        # A proxy set in the environment is for the network, not for this machine.
        options = [("grpc.enable_http_proxy", 0)] if is_local(self._addresses[0]) else []
        if self._credentials is None:
            return grpc.insecure_channel(self._addresses[0], options)
        return grpc.secure_channel(self._addresses[0], self._credentials, options)

    def _send(self, method: str, request: Message, response: type[R]) -> Any:
        call = self._channel.unary_unary(
            f"/{_PACKAGE}.{method}", request.__class__.SerializeToString, response.FromString
        )
        left = max(0.01, self._end - time.monotonic())
        return call.future(request, timeout=left, metadata=self._metadata)


def is_local(address: str) -> bool:
    """Return whether data sent to an address stays on this machine."""
    if address.startswith(("unix:", "unix-abstract:")):
        return True
    host = (address.rpartition(":")[0] or address).removeprefix("[").removesuffix("]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
