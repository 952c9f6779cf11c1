"""Health checks on a separate port.

They do not queue behind other calls, even when gRPC itself sheds calls, and need neither TLS nor credentials,
which many probes lack. They reveal only whether the server serves.
"""

from __future__ import annotations

from dataclasses import dataclass

import grpc
from grpc_health.v1 import health_pb2_grpc
from grpc_health.v1.health import aio as health_aio

from memory_service.config import Config
from memory_service.server.admission.intake import intake_server
from memory_service.server.transport import listen

CONNECTIONS_MAX = 64
STREAMS_MAX = 16
"""Concurrent calls per connection."""
MESSAGE_BYTES_MAX = 4 * 1024
METADATA_BYTES_MAX = 4 * 1024
_OPTIONS = (
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_concurrent_streams", STREAMS_MAX),
    ("grpc.max_allowed_incoming_connections", CONNECTIONS_MAX),
    ("grpc.max_metadata_size", METADATA_BYTES_MAX),
    ("grpc.absolute_max_metadata_size", METADATA_BYTES_MAX),
    ("grpc.server_handshake_timeout_ms", 10_000),
    # gRPC would decompress before it checks the size.
    ("grpc.per_message_decompression", 0),
)


@dataclass(frozen=True)
class HealthPort:
    """A server that serves health checks only, and its address."""

    server: grpc.aio.Server
    address: str


def health_port(config: Config, health: health_aio.HealthServicer) -> HealthPort | None:
    """Return the bound health port, not serving yet; None: none is configured.

    Raises:
        BadConfig: The port is taken.
    """
    if not config.health_address:
        return None
    server = intake_server(_OPTIONS)
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    return HealthPort(server, listen(server, config.health_address))
