"""Items, read by one statement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from memory_service.data_model import Item, parents_of
from memory_service.records.base import ItemStore
from memory_service.records.postgres.item_writes import link
from memory_service.records.postgres.lookups import Needs
from memory_service.records.postgres.page import Page
from memory_service.records.postgres.rows import ITEM_COLUMNS, columns_of, item_of, text_in
from memory_service.records.postgres.schema import part_of
from memory_service.records.postgres.store_core import StoreCore
from memory_service.records.rules.vectors import vector_key
from memory_service.records.rules.versions import REDACTED
from memory_service.runtime.caller import ANYBODY, Caller
from memory_service.runtime.yielding import each

_OF_ITEMS = (
    "FROM $.namespaces n JOIN $.items i ON i.uid + 0 = n.uid"
    " WHERE n.part = %s AND n.name = %s AND i.id = ANY(%s::text[])"
)
_BY_ID = f"SELECT n.vector_epoch, {columns_of('i', ITEM_COLUMNS)}"
_KEPT = ", ".join(f"i.{name}" if name in ("position", "id") else f"h.{name}" for name in ITEM_COLUMNS)
_VERSIONS = (
    "SELECT n.vector_epoch, {columns} FROM unnest(%s::text[], %s::bigint[]) w(id, revision)"
    " JOIN $.namespaces n ON n.part = %s AND n.name = %s"
    " JOIN $.items i ON i.uid + 0 = n.uid AND i.id = w.id"
)
_PRESENT = f"{_VERSIONS.format(columns=columns_of('i', ITEM_COLUMNS))} AND i.revision = w.revision"
_BEFORE = (
    f"{_VERSIONS.format(columns=_KEPT)} JOIN $.item_history h ON h.part = i.part AND h.uid = i.uid"
    f" AND h.position = i.position AND h.revision = w.revision AND h.content <> '{REDACTED}'"
)


class PostgresItemStore(StoreCore, ItemStore):
    """Each query reads the database when called."""

    async def get_items(
        self, namespace: str, ids: Sequence[str], *, with_embedding: bool = False
    ) -> dict[str, Item]:
        columns = f"{_BY_ID}, i.embedding" if with_embedding else _BY_ID
        wanted = list(dict.fromkeys(map(text_in, ids)))
        if not wanted:
            return {}
        rows = await self._fetch_of(f"{columns} {_OF_ITEMS}", namespace, wanted)
        items = await each(lambda row: item_of(row[1:], vector_key(row[0], 0)), rows)
        found = {item.id: item for item in items}
        return {item_id: found[item_id] for item_id in ids if item_id in found}

    async def get_versions(
        self, namespace: str, versions: Sequence[tuple[str, int]]
    ) -> dict[tuple[str, int], Item]:
        if not versions:
            return {}
        values = (
            [text_in(item_id) for item_id, _ in versions], [revision for _, revision in versions],
            part_of(namespace), text_in(namespace),
        )  # fmt: skip
        rows = await self._fetch(f"{_PRESENT} UNION ALL {_BEFORE}", (*values, *values))
        items = await each(lambda row: item_of(row[1:], vector_key(row[0], 0)), rows)
        return {(item.id, item.revision): item for item in items}

    async def record_uses(self, namespace: str, positions: Sequence[int], *, by: Caller = ANYBODY) -> None:
        def apply(page: Page) -> None:
            if page.book is not None and positions:
                page.open(0)
                page.pending.uses.update(Counter(positions))

        await self._write(namespace, by, Needs(), apply)

    async def refresh_expiry(
        self, namespace: str, positions: Sequence[int], now_us: int, *, by: Caller = ANYBODY
    ) -> None:
        def apply(page: Page) -> None:
            if page.book is not None and positions:
                page.open(0)
                page.pending.refreshed.update(dict.fromkeys(positions, now_us))

        await self._write(namespace, by, Needs(), apply)

    async def link_parents(self, namespace: str, items: Sequence[Item], *, by: Caller = ANYBODY) -> None:
        ids = [item.id for item in items]
        parents = [parent for item in items for parent in parents_of(item)]

        def apply(page: Page) -> None:
            for item in items:
                if (stored := page.items.get(item.id)) and stored.revision == item.revision:
                    page.open(0)
                    link(page, item)

        # Descendants of an item then descend from its parents too.
        await self._write(namespace, by, Needs([*ids, *parents], families=ids), apply)
