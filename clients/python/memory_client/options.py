"""How a client reaches its server."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc

from memory_client._addresses import addresses_of
from memory_client._arguments import check_fields
from memory_client._credentials import TokenSource, bearer, is_loopback
from memory_client._gen.memory_service.v1 import (
    admin_pb2,
    file_pb2,
    interaction_pb2,
    knowledge_pb2,
    memory_pb2,
    overseer_pb2,
    state_pb2,
    user_memory_pb2,
)
from memory_client.errors import invalid

MIB = 1024 * 1024

_ATTEMPTS_MAX = 5
"""The most that gRPC allows."""

_HEADER_NAME = re.compile(r"[0-9A-Za-z_.-]+")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]*")

_NEVER_RETRIED = frozenset({"Import", "Backup", "DeleteNamespace", "ReviewQuarantined"})
"""Calls without a request id: the server could not tell a retry from a new call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """How a client reaches its server. Both clients take these as keyword arguments."""

    address: str | Sequence[str] = "127.0.0.1:50051"
    """Host and port of the server, or another gRPC target. Several, in a list or separated by commas, are
    servers over the same records: each namespace prefers one of them and uses another while that one is
    unavailable. A name that resolves to several hosts counts as one server; gRPC chooses the host."""
    timeout_s: float | None = 30.0
    """Maximum duration of a call in seconds, retries included. None: no limit. Streams have no limit."""
    max_attempts: int = 5
    """How often a call is tried while the server is unavailable or overloaded, 1 to 5. Writes carry a request
    id, so that a retried write is applied once."""
    wait_for_ready: bool | None = None
    """Whether a call waits for an unreachable server, up to `timeout_s`, instead of raising `Unavailable`.
    None: only after the server has answered a call, so that a wrong address is reported soon and a restart
    goes unnoticed."""
    keepalive_s: float = 60.0
    """Seconds of silence after which an open call checks that the server is still there."""
    max_receive_bytes: int = 16 * MIB
    """Largest message accepted from the server."""
    tls: bool = False
    """Encrypt the connection."""
    root_certificates: bytes | None = None
    """CA certificates to trust, as PEM, with `tls`. None: those that come with gRPC."""
    client_certificate: bytes | None = None
    """The client's own certificate, as PEM, for a server that asks for one; needs `tls` and `client_key`."""
    client_key: bytes | None = field(default=None, repr=False)
    """The private key of `client_certificate`, as PEM."""
    tls_server_name: str | None = None
    """The name in the server's certificate, if it is not the host of the address."""
    api_key: str | None = field(default=None, repr=False)
    """Sent with every call, as "authorization: Bearer ..."."""
    token_source: TokenSource | None = field(default=None, repr=False)
    """Called for the token of each call, in place of `api_key`, for tokens that expire. The call raises its
    exceptions. `timeout_s` does not limit it."""
    allow_insecure_token: bool = False
    """Send credentials to another machine even without `tls`: anything on the network path can read them."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with every call."""

    def __post_init__(self) -> None:
        """Raise InvalidArgument for invalid values and for credentials that would be sent unencrypted."""
        check_fields(self)
        addresses_of(self.address)
        if not 1 <= self.max_attempts <= _ATTEMPTS_MAX:
            raise invalid("max_attempts", f"must be 1 to {_ATTEMPTS_MAX}, not {self.max_attempts}")
        if self.timeout_s is not None and self.timeout_s <= 0:
            raise invalid("timeout_s", f"must be positive, not {self.timeout_s}")
        for name in ("root_certificates", "client_certificate", "tls_server_name"):
            if getattr(self, name) is not None and not self.tls:
                raise invalid(name, "needs tls")
        if (self.client_certificate is None) != (self.client_key is None):
            raise invalid("client_certificate", "needs client_key, and the reverse")
        self._check_credentials()

    def _check_credentials(self) -> None:
        for name, value in self.headers.items():
            # gRPC also rejects them, but its error shows all headers.
            if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
                raise invalid("headers", f"{name!r} cannot be sent")
        in_headers = any(name.lower() == "authorization" for name in self.headers)
        given = (self.api_key is not None) + (self.token_source is not None) + in_headers
        if given > 1:
            raise invalid("api_key", "only one of it, token_source and an authorization header can be given")
        if given and not (self.tls or self.allow_insecure_token or all(map(is_loopback, self.addresses))):
            raise invalid(
                "tls",
                "credentials need tls: without it, anything on the network path could read them; "
                "allow_insecure_token sends them anyway",
            )
        if self.api_key is not None:
            bearer(self.api_key)

    @property
    def addresses(self) -> tuple[str, ...]:
        """The address of each server, in the order given."""
        return addresses_of(self.address)

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Return the headers that are the same for every call, as gRPC takes them."""
        headers = tuple((key.lower(), value) for key, value in self.headers.items())
        return headers if self.api_key is None else headers + bearer(self.api_key)

    def channel_credentials(self) -> grpc.ChannelCredentials:
        """Return the certificates that an encrypted channel trusts and presents."""
        return grpc.ssl_channel_credentials(self.root_certificates, self.client_key, self.client_certificate)

    def channel_arguments(self, address: str) -> list[tuple[str, Any]]:
        """Return the settings of the channel to one of the addresses."""
        arguments: list[tuple[str, Any]] = [
            ("grpc.max_receive_message_length", self.max_receive_bytes),
            ("grpc.keepalive_time_ms", int(self.keepalive_s * 1000)),
            ("grpc.keepalive_timeout_ms", 20_000),
            # Reconnect soon to a restarted server; by default gRPC waits up to two minutes.
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 2_000),
            ("grpc.enable_retries", 1),
            # A retry needs the request, which is buffered up to this size. The server takes no larger one.
            ("grpc.per_rpc_retry_buffer_size", 16 * MIB),
            ("grpc.service_config", json.dumps(self.service_config())),
        ]
        if self.tls_server_name is not None:
            arguments.append(("grpc.ssl_target_name_override", self.tls_server_name))
        if len(self.addresses) > 1:
            # How long an attempt to connect to a silent host delays its callers; by default 20 s.
            arguments.append(("grpc.min_reconnect_backoff_ms", 5_000))
        if is_loopback(address):
            # A proxy set in the environment is for the network, not for this machine.
            arguments.append(("grpc.enable_http_proxy", 0))
        return arguments

    def service_config(self) -> dict[str, Any]:
        """Return gRPC's service config: which calls are retried, when and how often."""
        if self.max_attempts == 1:
            return {}
        codes = ["UNAVAILABLE", "CANCELLED", "RESOURCE_EXHAUSTED"]
        policy = {
            "maxAttempts": self.max_attempts,
            "initialBackoff": "0.1s",
            "maxBackoff": "2s",
            "backoffMultiplier": 2,
            # CANCELLED: the server shut down as the call arrived; this side did not cancel it.
            # RESOURCE_EXHAUSTED: it is overloaded. It reports when to retry, and for a request that is too
            # large that a retry is useless.
            # With several servers, failover is ours: gRPC does not know of the others.
            "retryableStatusCodes": codes if len(self.addresses) == 1 else ["RESOURCE_EXHAUSTED"],
        }
        # A client whose calls mostly fail stops retrying.
        throttling = {"maxTokens": 100, "tokenRatio": 0.1}
        method = {"name": _retried_methods(), "retryPolicy": policy}
        return {"methodConfig": [method], "retryThrottling": throttling}

    def attempts_of(self, method: str) -> int:
        """Return how often a call may be sent; `method` is its full name."""
        return 1 if method.rpartition("/")[2] in _NEVER_RETRIED else self.max_attempts


_FILES = (
    memory_pb2,
    state_pb2,
    user_memory_pb2,
    interaction_pb2,
    knowledge_pb2,
    file_pb2,
    overseer_pb2,
    admin_pb2,
)


def _retried_methods() -> list[dict[str, str]]:
    services = [service for file in _FILES for service in file.DESCRIPTOR.services_by_name.values()]
    return [
        {"service": service.full_name, "method": method.name}
        for service in services
        for method in service.methods
        if method.name not in _NEVER_RETRIED
    ]
