"""Links items that were written before links were kept to the items that they were made from."""

from __future__ import annotations

import msgspec

from memory_service.data_model import ANSWERED_TAG, Facet, ItemKind
from memory_service.records.postgres.arrays import array_of
from memory_service.records.postgres.database import Async, Database
from memory_service.records.stored_values import provenance_of

# Doubled: the migration needs twice as much memory, some 10 MiB; halved: twice as many round trips.
_ROWS_AT_ONCE = 10_000
_facet = msgspec.json.Decoder(Facet).decode
# The database may reject JSON that we wrote, so it is read here.
_CLAIMING = (
    "SELECT part, uid, position, provenance, CASE WHEN kind = %s THEN facet END FROM $.items"
    " WHERE (part, uid, position) > (%s, %s, %s) AND (provenance LIKE %s OR kind = %s)"
    " ORDER BY part, uid, position LIMIT %s"
)
_LINK = (
    "INSERT INTO $.parents (part, uid, parent, child) SELECT w.part, w.uid, p.position, w.child"
    " FROM unnest(%s::int[], %s::bigint[], %s::bigint[], %s::text[]) w(part, uid, child, id)"
    " JOIN $.items p ON p.uid + 0 = w.uid AND p.id = w.id WHERE p.position <> w.child ON CONFLICT DO NOTHING"
)


async def link_parents(connection: Async, database: Database) -> None:
    """Fill the table of parents; see `rules/derivation.py`."""
    kind, last = int(ItemKind.RESPONSE), (0, 0, 0)
    while True:
        values = (kind, *last, '%"parent_ids"%', kind, _ROWS_AT_ONCE)
        cursor = await connection.execute(database.sql(_CLAIMING), values)
        rows = await cursor.fetchall()
        if not rows:
            return
        links: list[tuple[int, int, int, str]] = []
        for *place, provenance, facet in rows:
            known = provenance_of(provenance)
            named = list(known.parent_ids) if known else []
            if facet and (answered := _facet(facet).tags.get(ANSWERED_TAG)):
                named.append(answered)
            links += [(*place, parent) for parent in named]
        if links:
            kinds = ("int", "bigint", "bigint", "text")
            await connection.execute(
                database.sql(_LINK),
                [
                    array_of(kind, column)
                    for kind, column in zip(kinds, zip(*links, strict=True), strict=True)
                ],
            )
        last = rows[-1][:3]
