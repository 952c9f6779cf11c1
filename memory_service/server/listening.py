"""Binding the port of a server, with the limits of its connections, and naming the server."""

from __future__ import annotations

import socket
from dataclasses import dataclass

import grpc

from memory_service.config import Config, is_socket_file
from memory_service.server.admission.intake import intake_server
from memory_service.server.transport import bind

METADATA_BYTES_MAX = 16 * 1024
"""Metadata of a call as gRPC counts it: names, values and 32 bytes per pair."""
BOUNDED_BUFFERS = (
    # gRPC would decompress before the call is authenticated, and turn one byte into a thousand.
    ("grpc.per_message_decompression", 0),
    # Keep the window fixed as well: 64 KiB of unrequested data per call.
    ("grpc.http2.bdp_probe", 0),
)


def _options(config: Config) -> list[tuple[str, int]]:
    calls_max = config.limits.concurrent_calls_max + config.limits.waiting_calls_max
    idle_s = config.connection_idle_s_max
    return [
        *([("grpc.max_connection_idle_ms", 1000 * idle_s)] if idle_s else []),
        # Two servers on one port would silently share its calls.
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", config.limits.message_bytes_max),
        ("grpc.max_send_message_length", config.limits.message_bytes_max),
        *BOUNDED_BUFFERS,
        # Calls of one connection that may wait in gRPC, where queueing is not fair.
        ("grpc.max_concurrent_streams", config.connection_calls_max),
        # Calls of all connections: above the first limit gRPC ends some at random, above the second all.
        ("grpc.server.max_pending_requests", calls_max),
        ("grpc.server.max_pending_requests_hard_limit", 2 * calls_max),
        ("grpc.max_allowed_incoming_connections", config.connections_max),
        # gRPC starts to refuse at random above the first, and always refuses above the second.
        ("grpc.max_metadata_size", METADATA_BYTES_MAX),
        ("grpc.absolute_max_metadata_size", METADATA_BYTES_MAX),
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
        ("grpc.server_handshake_timeout_ms", 10_000),
    ]


@dataclass(frozen=True)
class Listener:
    """Where a server listens, before it serves, and its name."""

    grpc_server: grpc.aio.Server
    address: str
    name: str


def listen(config: Config) -> Listener:
    """Bind the port of a server. Raises BadConfig if that fails."""
    server = intake_server(_options(config))
    address = bind(server, config)
    port = "" if is_socket_file(address) else f":{address.rpartition(':')[2]}"
    return Listener(server, address, config.server_name or socket.gethostname() + port)
