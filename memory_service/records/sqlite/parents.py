"""Which items were made from which, in the database."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from memory_service.data_model import Item, ItemKind, parents_of
from memory_service.records.rules.derivation import Links
from memory_service.records.sqlite.connection import Connection, Row
from memory_service.records.sqlite.schema import key_of

# Most items have neither: one look at the table is quicker than one for each item.
_ANY = "SELECT EXISTS (SELECT 1 FROM parents WHERE {which} BETWEEN ? AND ?)"
_FAMILY = (
    "WITH RECURSIVE family (key) AS ("
    "SELECT child FROM parents WHERE parent IN (SELECT value FROM json_each(?))"
    " UNION SELECT p.child FROM family f JOIN parents p ON p.parent = f.key)"
    " SELECT p.child, p.parent, i.expire_us FROM family f CROSS JOIN parents p ON p.child = f.key"
    " JOIN items i ON i.key = p.parent"
)


def keep_parents(db: Connection, uid: int, item: Item) -> None:
    """Link an item to those of its parents that exist."""
    if parents := parents_of(item):
        db.execute(
            "INSERT OR IGNORE INTO parents (parent, child) SELECT i.key, ?1 FROM json_each(?2) named"
            " CROSS JOIN items i ON i.uid = ?3 AND i.id = named.value WHERE i.key <> ?1",
            (key_of(uid, item.position), msgspec.json.encode(parents).decode(), uid),
        )


def replace_parents(db: Connection, uid: int, item: Item) -> None:
    """Link an item to the parents of its new version."""
    db.execute("DELETE FROM parents WHERE child = ?", (key_of(uid, item.position),))
    keep_parents(db, uid, item)


def forget_kin(db: Connection, key: int) -> None:
    """Forget the parents and children of an item."""
    db.execute("DELETE FROM parents WHERE parent = ?", (key,))
    db.execute("DELETE FROM parents WHERE child = ?", (key,))


def forget_all_kin(db: Connection, keys: Collection[int]) -> None:
    """Forget the parents and children of items."""
    for which in ("parent", "child"):
        if _has_any(db, _ANY.format(which=which), keys):
            wanted = f"DELETE FROM parents WHERE {which} IN (SELECT value FROM json_each(?))"
            db.execute(wanted, (msgspec.json.encode([*keys]).decode(),))


def _has_any(db: Connection, query: str, keys: Collection[int]) -> bool:
    found: Row = db.execute(query, (min(keys), max(keys))).fetchone()
    return bool(found[0])


def have_children(db: Connection, keys: Collection[int]) -> bool:
    """Return whether anything may have been made from items; False only if nothing was."""
    return _has_any(db, _ANY.format(which="parent"), keys)


def derived_keys(db: Connection, gone: Collection[int], spared: Collection[int], at_us: int) -> Sequence[int]:
    """Return the keys of the items that were made only from items in `gone`; see `Links.derived`."""
    keys = (msgspec.json.encode([*gone]).decode(),)
    links, ends = Links(), dict[int, int | None]()
    for child, parent, expire_us in db.execute(_FAMILY, keys):
        links.add(child, parent)
        ends[parent] = expire_us
    return links.derived(gone, spared, lambda key: (end := ends[key]) is None or end > at_us)


def kinds_of(db: Connection, keys: Sequence[int]) -> dict[int, ItemKind]:
    """Return the kinds of items by their keys."""
    rows = db.execute(
        "SELECT i.key, i.facet ->> 'kind' FROM json_each(?) named CROSS JOIN items i ON i.key = named.value",
        (msgspec.json.encode(keys).decode(),),
    )
    return {key: ItemKind(kind or 0) for key, kind in rows}
