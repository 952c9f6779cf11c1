"""Health status that shows whether the server can write, for load balancers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from grpc_health.v1 import health_pb2
from grpc_health.v1.health import aio as health_aio

from memory_service.audit.log import AuditLog
from memory_service.runtime.event_log import EventLog
from memory_service.server.methods import SERVICES
from memory_service.store import Store

LOOK_EVERY_S = 1.0
"""Interval of the checks. Writes do not depend on it: they fail on their own."""
_log = EventLog(__name__)


async def tell_health(health: health_aio.HealthServicer, *, serving: bool) -> None:
    """Set the health status of all services."""
    status = health_pb2.HealthCheckResponse.SERVING if serving else health_pb2.HealthCheckResponse.NOT_SERVING
    for service in ("", *SERVICES):
        await health.set(service, status)


@contextlib.asynccontextmanager
async def watching_soundness(
    store: Store, audit_log: AuditLog | None, health: health_aio.HealthServicer
) -> AsyncIterator[None]:
    """Set health to NOT_SERVING while the records are unreachable, and for good once they are broken.

    Records or audit log are broken if they accept no more writes until a restart.
    """
    task = asyncio.create_task(_watch(store, audit_log, health))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _watch(store: Store, audit_log: AuditLog | None, health: health_aio.HealthServicer) -> None:
    reached = True
    while True:
        if not store.is_sound() or (audit_log is not None and not await audit_log.is_sound()):
            break
        was_reached, reached = reached, await store.is_reachable()
        if reached != was_reached:
            if reached:
                _log.warning("serving_again", cause="the database responds")
            else:
                _log.error("not_serving", cause="the database does not respond or accepts no writes")
            await tell_health(health, serving=reached)
        await asyncio.sleep(LOOK_EVERY_S)
    _log.error("not_serving", cause="no writes are accepted until a restart")
    await health.enter_graceful_shutdown()
