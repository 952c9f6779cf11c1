"""Namespaces as a whole, and removal of expired data."""

from __future__ import annotations

import asyncio

from memory_service.data_model import ChangeType, NamespaceInfo, NamespaceSettings, Receipt, RequestKey
from memory_service.errors import NotFound
from memory_service.records.base import NamespaceStore
from memory_service.records.postgres.database import Async
from memory_service.records.postgres.item_writes import expire_item
from memory_service.records.postgres.lookups import Needs
from memory_service.records.postgres.namespace_writes import empty, empty_states
from memory_service.records.postgres.page import EMPTIED, Page
from memory_service.records.postgres.requests import earlier, finish
from memory_service.records.postgres.rows import NAMESPACE_COLUMNS, columns_of, namespace_of, text_in, text_of
from memory_service.records.postgres.state_writes import expire_state
from memory_service.records.postgres.store_core import OF_NAME, StoreCore
from memory_service.records.rules.presence import live
from memory_service.records.rules.requests import answers_since
from memory_service.records.rules.settings import next_settings
from memory_service.records.stored_values import encode_settings, settings_of
from memory_service.runtime.caller import ANYBODY, Caller
from memory_service.runtime.clock import now_us as present_us

_JOURNAL_US = 3600 * 1_000_000
# Skip rows that another server has locked: without waiting there is no deadlock.
_SOME = "ctid IN (SELECT ctid FROM $.{table} WHERE {old} LIMIT %s FOR UPDATE SKIP LOCKED)"
_PRUNED = (
    ("item_history", "replaced_us < %s"),
    ("state_history", "replaced_us < %s"),
    ("removals", "time_us < %s"),
)
_EXPIRED = (
    "SELECT n.name, e.{place} FROM $.{table} e JOIN $.namespaces n ON n.part = e.part AND n.uid = e.uid"
    " WHERE e.expire_us <= %s ORDER BY e.expire_us LIMIT %s"
)
_BYTES = f"SELECT n.bytes {OF_NAME}"
_SCAN = (
    f"SELECT {columns_of('n', NAMESPACE_COLUMNS)} FROM $.namespaces n"
    " WHERE n.name > %s AND n.name >= %s AND starts_with(n.name, %s) ORDER BY n.name LIMIT %s"
)


class PostgresNamespaceStore(StoreCore, NamespaceStore):
    """Reads a namespace as one row, and empties it in a separate transaction."""

    async def namespace(self, namespace: str, *, fresh: bool = True) -> NamespaceInfo | None:
        if not fresh and (known := self._known.get(namespace)) is not None:
            return known
        return await self._info(namespace)

    async def namespace_bytes(self, namespace: str) -> int:
        rows = await self._fetch_of(_BYTES, namespace)
        return int(rows[0][0]) if rows else 0

    async def scan_namespaces(self, prefix: str, after: str, limit: int) -> list[NamespaceInfo]:
        begins = text_in(prefix)
        return [
            namespace_of(row) for row in await self._fetch(_SCAN, (text_in(after), begins, begins, limit))
        ]

    async def save_settings(
        self, namespace: str, settings: NamespaceSettings, *, expected_version: int, by: Caller = ANYBODY
    ) -> NamespaceInfo:
        def apply(page: Page) -> NamespaceInfo:
            current = settings_of(page.book.settings if page.book else None)
            saved = next_settings(namespace, settings, expected_version, current)
            book = page.open(present_us())
            book.settings = encode_settings(saved)
            return book.info()

        return await self._write(namespace, by, Needs(), apply)

    async def record_request(
        self, namespace: str, receipt: Receipt, request: RequestKey, *, by: Caller = ANYBODY
    ) -> Receipt:
        def apply(page: Page) -> Receipt:
            if (replayed := earlier(page, request)) is not None:
                return replayed
            page.open(present_us())
            return finish(page, request, receipt)

        return await self._write(namespace, by, Needs(requests=[request.id]), apply)

    async def reset(
        self, namespace: str, *, request: RequestKey | None = None, by: Caller = ANYBODY
    ) -> Receipt:
        async def prepare(connection: Async, page: Page) -> None:
            if page.book is not None and earlier(page, request) is None:
                await empty_states(connection, self._database, page)
                await empty(connection, self._database, page, leaves=frozenset({"requests", "journal"}))
                await connection.execute(
                    self._database.sql("UPDATE $.requests SET whole = NULL WHERE part = %s AND uid = %s"),
                    (page.part, page.book.uid),
                )

        def apply(page: Page) -> Receipt:
            if (replayed := earlier(page, request)) is not None:
                return replayed
            book = page.open(present_us())
            receipt = Receipt(0, removed_count=book.item_count, removed_state_count=book.state_count)
            book.item_count = book.state_count = book.embedded_count = book.pending_count = 0
            book.bytes = book.dimension = 0
            book.model = ""
            page.pending.flags |= EMPTIED
            page.change(ChangeType.RESET, "")
            return finish(page, request, receipt)

        needs = Needs(requests=[request.id] if request else [])
        return await self._write_alone(namespace, by, prepare, apply, needs)

    async def delete_namespace(self, namespace: str, *, by: Caller = ANYBODY) -> Receipt:
        async def prepare(connection: Async, page: Page) -> None:
            if page.book is None:
                raise NotFound.namespace(namespace)
            await empty(connection, self._database, page, leaves=frozenset())
            await connection.execute(
                self._database.sql("DELETE FROM $.namespaces WHERE part = %s AND uid = %s"),
                (page.part, page.book.uid),
            )

        def apply(page: Page) -> Receipt:
            book = page.book
            assert book is not None
            page.touched = page.deleted = True
            return Receipt(book.revision, removed_count=book.item_count, removed_state_count=book.state_count)

        return await self._write_alone(namespace, by, prepare, apply)

    async def remove_expired(self, now_us: int, forget_requests_before_us: int, limit: int) -> int:
        await self._prune(now_us, forget_requests_before_us, limit)
        items = await self._fetch(_EXPIRED.format(table="items", place="id"), (now_us, limit))
        left = limit - len(items)
        states = await self._fetch(_EXPIRED.format(table="states", place="key"), (now_us, left))
        due: dict[str, tuple[list[str], list[str]]] = {}
        for which, rows in enumerate((items, states)):
            for name, place in rows:
                due.setdefault(text_of(name), ([], []))[which].append(text_of(place))
        removed = await asyncio.gather(
            *(self._expire(name, ids, keys, now_us) for name, (ids, keys) in due.items())
        )
        return sum(removed)

    async def _expire(self, namespace: str, ids: list[str], keys: list[str], at_us: int) -> int:
        """Remove those of these items and states that have expired; return how many."""

        def apply(page: Page) -> int:
            items = [(i, s) for i in ids if (s := page.items.get(i)) and live(s, at_us) is None]
            states = [(k, v) for k in keys if (v := page.states.get(k)) and live(v, at_us) is None]
            if items or states:
                page.open(0)
            for item_id, item in items:
                expire_item(page, item_id, item, keeps_history=self._keeps_history)
            for key, state in states:
                expire_state(page, key, state, keeps_history=self._keeps_history)
            return len(items) + len(states)

        return await self._write(namespace, ANYBODY, Needs(items=ids, states=keys), apply)

    async def _prune(self, now_us: int, requests_before_us: int, limit: int) -> None:
        """Delete data whose retention time is over."""
        history_before_us = now_us - self._history_us
        for table, old in _PRUNED:
            await self._delete_some(table, old, history_before_us, limit)
        await self._delete_some("quarantine", "expire_us <= %s", now_us, limit)
        await self._delete_some("journal", "time_us < %s", present_us() - _JOURNAL_US, 10 * limit)
        answers_us = answers_since(requests_before_us, history_before_us if self._keeps_history else None)
        await self._execute(
            "UPDATE $.requests SET whole = NULL WHERE whole IS NOT NULL AND "
            + _SOME.format(table="requests", old="time_us < %s AND whole IS NOT NULL"),
            (answers_us, 10 * limit),
        )
        await self._execute(
            "DELETE FROM $.told_of t USING $.requests r WHERE r.part = t.part AND r.uid = t.uid"
            " AND r.id = t.request AND r.time_us < %s",
            (requests_before_us,),
        )
        await self._delete_some("requests", "time_us < %s", requests_before_us, 1 << 31)

    async def _delete_some(self, table: str, old: str, before_us: int, limit: int) -> None:
        await self._execute(
            f"DELETE FROM $.{table} WHERE " + _SOME.format(table=table, old=old), (before_us, limit)
        )

    async def _execute(self, statement: str, values: tuple[int, ...]) -> None:
        async with self._database.reading() as connection:
            await connection.execute(self._database.sql(statement), values)
