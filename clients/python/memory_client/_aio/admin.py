"""The client's methods for administration."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta

from memory_client._aio.transport import Bound
from memory_client._calls import admin
from memory_client.models import (
    BackupSummary,
    HealthStatus,
    NamespaceSettings,
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
from memory_client.unset import UNSET, Unset


class AdminMethods(Bound):
    """Methods that describe and maintain a server and its namespaces."""

    async def info(self) -> ServerInfo:
        """Return the server's version, store, embedder, limits and more."""
        return await self._transport.unary(admin.info())

    def list_namespaces(self, *, prefix: str = "", page_size: int = 0) -> AsyncIterator[NamespaceSummary]:
        """Yield the namespaces in the order of their names, page by page."""
        return self._transport.entries(admin.list_namespaces(prefix, page_size))

    async def namespace_stats(self, *, include_usage: bool = False) -> NamespaceStats:
        """Return the contents of the client's namespace in numbers.

        Args:
            include_usage: Also return its bytes and calls. The server may read the whole namespace for it.

        Raises:
            NotFound: Nothing was ever written to it.
        """
        return await self._transport.unary(
            admin.namespace_stats(self._namespace, include_usage=include_usage)
        )

    async def update_namespace(
        self,
        *,
        time_zone: str | Unset = UNSET,
        default_ttl: timedelta | float | Unset | None = UNSET,
        expected_version: int | None = None,
    ) -> NamespaceSettings:
        """Change the settings of the client's namespace, which is created if it does not exist.

        Args:
            time_zone: IANA name such as "Europe/Berlin"; "": UTC. UNSET: unchanged.
            default_ttl: Time until items of conversations expire that are added without an expiry, a
                timedelta or seconds; None: never. UNSET: unchanged.
            expected_version: Write only if this is the version of the settings; 0: only if there are none.

        Raises:
            Conflict: The expected version is not the settings'.
        """
        call = admin.update_namespace(self._namespace, time_zone, default_ttl, expected_version)
        return await self._transport.unary(call)

    async def delete_namespace(self) -> Removed:
        """Remove the client's namespace with all its contents; the next write creates a new one.

        Raises:
            NotFound: There is no such namespace.
        """
        return await self._transport.unary(admin.delete_namespace(self._namespace))

    async def reembed(self, *, replace_client_vectors: bool = False) -> Reembedding:
        """Move the client's namespace to the server's embedder.

        It returns when the move has begun. The items are embedded in the background, also after a restart;
        `namespace_stats().pending_count` is the number still waiting. Until then they are found only by
        their words.

        Args:
            replace_client_vectors: Also replace vectors that clients provided, which are then lost.

        Raises:
            NotFound: There is no such namespace.
            FailedPrecondition: The server has no embedder, or clients provided the vectors.
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
        """Undo the writes of a writer to the client's namespace since a time.

        Items and states that the writer added are removed; replaced ones get back their previous version.
        Deletions cannot be undone. Repeat an interrupted call to continue it.

        Args:
            since: Undo writes since this time, by the server's clock.
            writer: Only writes with this `Provenance.writer`. Empty: of any.
            credential_id: Only writes with this credential. Empty: with any.
            any_writer: Undo the writes of all writers, also of those without a name. Without it, `writer` or
                `credential_id` is required.
            dry_run: Return what would be done, and change nothing.
            request_id: Makes a retry safe: the write is applied once. None: a new id for this call.

        Raises:
            InvalidArgument: The writer is missing.
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
        """Yield the writes to the client's namespace that are in quarantine, oldest first, page by page."""
        return self._transport.entries(admin.list_quarantined(self._namespace, page_size))

    async def review_quarantined(self, id: str, decision: QuarantineDecision | str) -> ReviewedWrite:
        """Release or delete a write of the client's namespace that is in quarantine. It is never retried.

        A released write is applied as if it were made now, with its original provenance.

        Args:
            id: The write's id, from `list_quarantined`.
            decision: "release" or "delete".

        Raises:
            NotFound: The write is not in quarantine, or no longer there.
            AlreadyExists: An item with its id was written meanwhile: the write stays in quarantine.
            Conflict: The items it changes were changed meanwhile: the write stays in quarantine.
        """
        return await self._transport.unary(admin.review_quarantined(self._namespace, id, decision))

    async def flush(self, *, timeout_s: float | None = None) -> timedelta:
        """Move the log into the database and save the indexes; return how long that took.

        Acknowledged writes are on disk without it; it makes the next start of the server faster.
        """
        return await self._transport.unary(admin.flush(), timeout_s)

    async def backup(self, name: str = "", *, timeout_s: float | None = None) -> BackupSummary:
        """Write a consistent copy of all records to the server's backup folder.

        Args:
            name: Name of the backup, which must not exist. Empty: made from the current time.
            timeout_s: Seconds to wait. None: no limit.

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
