"""The methods of a client that look after a server and its namespaces."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta

from memory_client._aio.transport import Bound
from memory_client._calls import admin
from memory_client.models import (
    BackupSummary,
    HealthStatus,
    NamespaceStats,
    NamespaceSummary,
    QuarantineDecision,
    QuarantinedWrite,
    Reembedding,
    Removed,
    ReviewedWrite,
    ServerInfo,
    UndoneWrites,
)


class AdminMethods(Bound):
    """What a server is and holds, and the care of its data."""

    async def info(self) -> ServerInfo:
        """Return what the server is: version, store, embedder, limits."""
        return await self._transport.unary(admin.info())

    def list_namespaces(self, *, prefix: str = "", page_size: int = 0) -> AsyncIterator[NamespaceSummary]:
        """Yield the namespaces in the order of their names, page by page."""
        return self._transport.entries(admin.list_namespaces(prefix, page_size))

    async def namespace_stats(self) -> NamespaceStats:
        """Return what the client's namespace holds.

        Raises:
            NotFound: Nothing was ever written to it.
        """
        return await self._transport.unary(admin.namespace_stats(self._namespace))

    async def delete_namespace(self) -> Removed:
        """Remove the client's namespace with all it holds; the next write begins a new one.

        Raises:
            NotFound: There is no such namespace.
        """
        return await self._transport.unary(admin.delete_namespace(self._namespace))

    async def reembed(self, *, replace_client_vectors: bool = False) -> Reembedding:
        """Move the client's namespace to the server's embedder.

        It returns when that is begun: the items are embedded in the background, also after a restart,
        and `namespace_stats().pending_count` tells how many wait. Until then they are found by their
        words alone.

        Args:
            replace_client_vectors: Also where the vectors are the clients' own, which are lost by this.

        Raises:
            NotFound: There is no such namespace.
            FailedPrecondition: The server has no embedder, or the vectors are the clients' own.
            Unavailable: The embedder does not answer; nothing was changed.
        """
        return await self._transport.unary(admin.reembed(self._namespace, replace_client_vectors))

    async def undo_writes(
        self,
        since: datetime,
        *,
        writer: str = "",
        credential_id: str = "",
        any_writer: bool = False,
        dry_run: bool = False,
        request_id: str | None = None,
    ) -> UndoneWrites:
        """Take back what somebody wrote to the client's namespace since a time.

        Items and states that they added are removed, and what they replaced gets back the version before.
        What they deleted cannot come back. One that was interrupted goes on when it is repeated.

        Args:
            since: The time from which on they wrote, by the server's clock.
            writer: Whose writes, as `Provenance.writer` says. Empty: of any name.
            credential_id: With which credential. Empty: with any.
            any_writer: Everybody's, also of those without a name; without it `writer` or `credential_id` is
                required.
            dry_run: Tell what would be done, and do nothing.
            request_id: Applied once, however often it is sent. None: a new one for this call.

        Raises:
            InvalidArgument: It is not said whose writes.
        """
        return await self._transport.unary(
            admin.undo_writes(
                self._namespace,
                since,
                writer=writer,
                credential_id=credential_id,
                any_writer=any_writer,
                dry_run=dry_run,
                request_id=request_id,
            )
        )

    def list_quarantined(self, *, page_size: int = 0) -> AsyncIterator[QuarantinedWrite]:
        """Yield the writes of the client's namespace that the server's write policy put into quarantine.

        They come the oldest first, page by page.
        """
        return self._transport.entries(admin.list_quarantined(self._namespace, page_size))

    async def review_quarantined(self, id: str, decision: QuarantineDecision | str) -> ReviewedWrite:
        """Release a write of the client's namespace out of quarantine, or delete it. It is tried once.

        What is released takes place as if it came now, with the provenance that it came with.

        Args:
            id: The write, as `list_quarantined` tells it.
            decision: "release" or "delete".

        Raises:
            NotFound: It is not in quarantine, or no more.
            AlreadyExists: An item of its id was written meanwhile: it stays.
            Conflict: What it changes was changed meanwhile: it stays.
        """
        return await self._transport.unary(admin.review_quarantined(self._namespace, id, decision))

    async def flush(self, *, timeout_s: float | None = None) -> timedelta:
        """Move the log into the database and save the indexes; return how long it took.

        Acknowledged writes are on disk without it; it makes the next start of the server quicker.
        """
        return await self._transport.unary(admin.flush(), timeout_s)

    async def backup(self, name: str = "", *, timeout_s: float | None = None) -> BackupSummary:
        """Write a consistent copy of all records to the server's backup folder.

        Args:
            name: Of the backup. Empty: made of the present time. One that exists is refused.
            timeout_s: How long to wait. None: as long as it takes.

        Raises:
            Unsupported: The server's store has nothing on disk.
        """
        return await self._transport.unary(admin.backup(name), timeout_s)

    async def health(self, service: str = "") -> HealthStatus:
        """Return whether the server, or one of its services, takes calls.

        Raises:
            NotFound: The server has no such service.
        """
        return await self._transport.unary(admin.health(service))
