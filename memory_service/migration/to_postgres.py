"""Migrates a data folder to PostgreSQL: all rows are read back and compared before any becomes visible."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

import msgspec

from memory_service.data_key import DataKey
from memory_service.data_model import ChangeType, Facet, ItemKind
from memory_service.records.postgres.bulk_load import Arriving, Target, open_target
from memory_service.records.postgres.rows import text_in
from memory_service.records.sqlite.reading_out import TABLES, Source, SourceTable, open_source

Row = tuple[object, ...]
Progress = Callable[[str, int], None]
"""Called with the step, "copied" or "verified", and the number of rows since the last call."""

# Limits of a piece, which is one transaction. Doubled: twice the memory, and a kill loses twice as much work;
# halved: more commits.
_ROWS_AT_ONCE = 2000
_BYTES_AT_ONCE = 8 << 20
_TEXTS = frozenset(
    (
        *("id", "session_id", "key", "subject", "request", "state_key", "writer", "credential_id", "reason"),
        *("description", "request_id"),
    )
)
"""Columns with texts of callers, which may contain U+0000. JSON never does."""
_facet = msgspec.json.Decoder(Facet).decode
_pack = msgspec.msgpack.Encoder().encode


class NotEqual(Exception):
    """The copy differs from the source. The message is for the operator."""


@dataclass
class Moved:
    """The result of a migration."""

    namespaces: int = 0
    items: int = 0
    rows: int = 0
    digest: str = ""
    settings: list[str] = field(default_factory=list)
    """Names of the settings that were written; existing ones are kept."""
    before: bool = False
    """An earlier run had completed this migration."""


def migrate(
    folder: Path,
    key: DataKey | None,
    dsn: str,
    schema: str,
    progress: Progress,
    *,
    settings: Callable[[], Mapping[str, bytes]] = dict,
    start_over: bool = False,
) -> Moved:
    """Copy all records of a data folder or a backup to a schema, or resume an interrupted copy.

    Nothing is visible before everything has been copied and verified. Raises CannotOpen, NotEqual,
    Unavailable and StorageFull; call it again to resume.
    """
    with open_source(folder, key, int(ChangeType.STATE_SAVED)) as source, open_target(dsn, schema) as target:
        name = _name_of(source)
        if target.finished(name):
            return Moved(before=True)
        target.keep_sweepers_away()
        if start_over:
            target.give_up()
        if not target.begun(name):
            target.begin(name, source.namespaces())
        for of in target.arriving():
            _copy(source, target, of, progress)
        moved = _verify(source, target, progress)
        target.analyse()
        moved.settings = sorted(target.appear(name, settings()))
        return moved


def _name_of(source: Source) -> str:
    """Return a digest that identifies a source in its present state."""
    digest = hashlib.blake2b(digest_size=16)
    for row in source.namespaces():
        digest.update(_pack(sorted(row.items())))
    return digest.hexdigest()


def _copy(source: Source, target: Target, of: Arriving, progress: Progress) -> None:
    for table in TABLES:
        for piece in _pieces(_rows(source, table, of.source_uid, of.done.get(table.name, 0))):
            target.put(of, table.name, table.names, piece)
            progress("copied", len(piece))


def _rows(source: Source, table: SourceTable, uid: int, after: int = 0) -> Iterator[Row]:
    """Yield rows in the target's form."""
    texts = [at for at, name in enumerate(table.names) if name in _TEXTS]
    kind = table.names.index("kind") if "kind" in table.names else None
    for row in source.rows(table, uid, after):
        values = list(row)
        for at in texts:
            if values[at] is not None:
                values[at] = text_in(values[at])
        if kind is not None:
            values[kind] = int(_facet(values[kind]).kind if values[kind] else ItemKind.PLAIN)
        yield tuple(values)


def _pieces(rows: Iterator[Row]) -> Iterator[list[Row]]:
    piece: list[Row] = []
    nbytes = 0
    for row in rows:
        piece.append(row)
        nbytes += sum(len(value) for value in row if isinstance(value, str | bytes))
        if len(piece) >= _ROWS_AT_ONCE or nbytes >= _BYTES_AT_ONCE:
            yield piece
            piece, nbytes = [], 0
    if piece:
        yield piece


def _verify(source: Source, target: Target, progress: Progress) -> Moved:
    """Read all rows of both sides and compare them one by one. Raises NotEqual."""
    moved, digest, unequal = Moved(), hashlib.blake2b(digest_size=16), list[str]()
    for of in target.arriving():
        try:
            counts = {
                table.name: _verify_table(source, target, of, table, digest, progress) for table in TABLES
            }
        except NotEqual as error:
            target.forget(of)
            unequal.append(str(error))
            continue
        if (counts["items"], counts["states"]) != (of.row["item_count"], of.row["state_count"]):
            raise NotEqual(f"the folder's counts of {of.name!r} do not match its rows: restore a backup")
        moved.namespaces += 1
        moved.items += counts["items"]
        moved.rows += sum(counts.values())
    if unequal:
        raise NotEqual(
            f"{unequal[0]}; the copies of {len(unequal)} such namespaces were removed: run it again"
        )
    moved.digest = digest.hexdigest()
    return moved


def _verify_table(
    source: Source,
    target: Target,
    of: Arriving,
    table: SourceTable,
    digest: hashlib.blake2b,
    progress: Progress,
) -> int:
    """Compare the rows of a table and return their number. Raises NotEqual."""
    count = 0
    with closing(target.rows(of, table.name, table.names)) as theirs:
        for ours, kept in zip_longest(_rows(source, table, of.source_uid), theirs):
            if ours != kept:
                raise NotEqual(f"row {count + 1} of {table.name} in {of.name!r} differs from the folder's")
            digest.update(_pack(kept))
            count += 1
            if count % _ROWS_AT_ONCE == 0:
                target.keep_sweepers_away()
                progress("verified", _ROWS_AT_ONCE)
    progress("verified", count % _ROWS_AT_ONCE)
    return count
