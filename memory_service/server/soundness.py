"""Whether what a server keeps is where the next start will look for it; health tells when it is not."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import structlog
from grpc_health.v1.health import aio as health_aio

from memory_service.audit.log import AuditLog
from memory_service.store import Store

LOOK_EVERY_S = 1.0
"""How often it is looked at. Writes do not wait for that: they are refused by whom they meet."""
_log = structlog.get_logger(__name__)


@contextlib.asynccontextmanager
async def watching_soundness(
    store: Store, audit_log: AuditLog | None, health: health_aio.HealthServicer
) -> AsyncIterator[None]:
    """Turn health to NOT_SERVING, for good, once no more writes are taken until a restart."""
    task = asyncio.create_task(_watch(store, audit_log, health))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _watch(store: Store, audit_log: AuditLog | None, health: health_aio.HealthServicer) -> None:
    while True:
        if not store.is_sound() or (audit_log is not None and not await audit_log.is_sound()):
            break
        await asyncio.sleep(LOOK_EVERY_S)
    _log.error("not_serving", cause="no more writes are taken until a restart")
    await health.enter_graceful_shutdown()
