"""The columns of a view that are built when a predicate first names their field.

Most fields of most items are never queried, and columns for all would take more memory than everything else.
So a view starts without them. Its owner builds a column from the records, which may take a while; writes in
the meantime are recorded, and applied when the column arrives.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from memory_service.data_model import UNATTRIBUTED, ChatMessage, Content, DataPart, Item, Json, SourceKind
from memory_service.indexes.value_column import Value, ValueColumn
from memory_service.predicates import Field, FieldName

COLUMNS_MAX = 16


@dataclass
class ReadColumns:
    """Columns as read: rows by position, and the revision that they reflect."""

    revision: int
    positions: NDArray[np.int64]
    columns: dict[Field, ValueColumn]

    def at(self, positions: NDArray[np.int64]) -> dict[Field, ValueColumn]:
        """Return the columns for rows at these positions. The previous ones must not be used any more."""
        if np.array_equal(self.positions, positions):
            return self.columns
        places = _places(self.positions, positions)
        return {wanted: column.arranged(places) for wanted, column in self.columns.items()}


@dataclass
class _Kept:
    """A column, and the function that reads its values from items."""

    column: ValueColumn
    read: Callable[[Item], Value]
    users: int = 0


@dataclass
class _Awaited:
    """A column being read, and the writes to its rows in the meantime."""

    read: Callable[[Item], Value]
    written: dict[int, Value] = field(default_factory=dict)


class ValueColumns:
    """The existing columns, all up to date, and those being read."""

    def __init__(self) -> None:
        # The least recently used first.
        self._kept: OrderedDict[Field, _Kept] = OrderedDict()
        self._awaited: dict[Field, _Awaited] = {}

    @property
    def nbytes(self) -> int:
        """Memory taken, estimated."""
        return sum(kept.column.nbytes for kept in self._kept.values())

    def __getitem__(self, wanted: Field) -> ValueColumn:
        return self._kept[wanted].column

    def lacking(self, fields: Sequence[Field]) -> list[Field]:
        """Return those of some fields that have no column; the columns of the others count as used."""
        for wanted in fields:
            if wanted in self._kept:
                self._kept.move_to_end(wanted)
        return [wanted for wanted in fields if wanted not in self._kept]

    @contextmanager
    def used(self, fields: Sequence[Field]) -> Iterator[None]:
        """Keep the columns of these fields during the context, whatever other fields are requested."""
        taken = [self._kept[wanted] for wanted in fields]
        for kept in taken:
            kept.users += 1
        try:
            yield
        finally:
            for kept in taken:
                kept.users -= 1

    # --- making -------------------------------------------------------------------------------

    def begin(self, fields: Sequence[Field]) -> None:
        """Record writes from now on: the columns of these fields are about to be read."""
        for wanted in fields:
            self._awaited[wanted] = _Awaited(reader(wanted))

    def give_up(self, fields: Sequence[Field]) -> None:
        """Abandon columns that were begun."""
        for wanted in fields:
            self._awaited.pop(wanted, None)

    def finish(self, read: ReadColumns, positions: NDArray[np.int64]) -> None:
        """Add columns that were read after `begin`. The rows of the view are at these positions.

        The view must have reached the revision at which they were read.
        """
        for wanted, arranged in read.at(positions).items():
            for row, value in self._awaited.pop(wanted).written.items():
                arranged.put(row, value)
            self._kept[wanted] = _Kept(arranged, reader(wanted))

    def take(self, columns: dict[Field, ValueColumn]) -> None:
        """Add columns that have the rows of the view already."""
        for wanted, column in columns.items():
            self._kept[wanted] = _Kept(column, reader(wanted))

    def trim(self, fields: Sequence[Field]) -> None:
        """Drop surplus columns, the least recently used first, but none of these fields."""
        for oldest, kept in list(self._kept.items()):
            if len(self._kept) <= COLUMNS_MAX:
                return
            if not kept.users and oldest not in fields:
                del self._kept[oldest]

    # --- keeping up ---------------------------------------------------------------------------

    def extend(self, items: Sequence[Item], first: int) -> None:
        """Append rows, starting with number `first`."""
        for kept in self._kept.values():
            kept.column.extend(map(kept.read, items))
        for awaited in self._awaited.values():
            awaited.written.update((first + n, awaited.read(item)) for n, item in enumerate(items))

    def put(self, row: int, item: Item) -> None:
        """Set the values of a row to those of another item."""
        for wanted, kept in list(self._kept.items()):
            kept.column.put(row, kept.read(item))
            if kept.column.wasteful and not kept.users:
                del self._kept[wanted]
        for awaited in self._awaited.values():
            awaited.written[row] = awaited.read(item)


def new_column(wanted: Field) -> ValueColumn:
    """Return an empty column for the values of a field."""
    # A float cannot represent microseconds of the far future exactly.
    exact = wanted.name in (FieldName.UPDATE_TIME, FieldName.REVISION)
    return ValueColumn(np.int64 if exact else np.float64)


def reader(wanted: Field) -> Callable[[Item], Value]:
    """Return a function that reads the value of a field from an item."""
    match wanted.name:
        case FieldName.ID:
            return lambda item: item.id
        case FieldName.UPDATE_TIME:
            return lambda item: item.update_us
        case FieldName.REVISION:
            return lambda item: item.revision
        case FieldName.IMPORTANCE:
            return lambda item: UNSET if item.importance is None else item.importance
        case FieldName.ROLE:
            return lambda item: item.content.role.value if isinstance(item.content, ChatMessage) else UNSET
        case FieldName.NAME:
            return lambda item: speaker_name(item.content)
        case FieldName.WRITER:
            return lambda item: (item.provenance or UNATTRIBUTED).writer or UNSET
        case FieldName.CREDENTIAL:
            return lambda item: (item.provenance or UNATTRIBUTED).credential_id or UNSET
        case FieldName.SOURCE:
            return lambda item: source_name(item.source)
        case FieldName.TRUST:
            return lambda item: item.trust
        case FieldName.LABELS:
            return lambda item: item.labels.get(wanted.path[0], UNSET)
        case FieldName.METADATA:
            return lambda item: value_at(item.metadata, wanted.path)
        case FieldName.DATA:
            return lambda item: value_at(
                item.content.data if isinstance(item.content, DataPart) else None, wanted.path
            )
    raise ValueError(f"{wanted.name} needs no column: every view has it")


def source_name(source: SourceKind) -> str:
    """Return the name of a source as columns store it."""
    return source.name.lower()


def speaker_name(content: Content) -> Value:
    """Return the speaker's name in a chat message."""
    return content.name if isinstance(content, ChatMessage) and content.name is not None else UNSET


def value_at(value: Json, path: Sequence[str]) -> Value:
    """Return the value under these nested keys."""
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return UNSET
        value = value[key]
    return value


def _places(known: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the index of each wanted number among the known ones, which ascend; -1 if it is missing."""
    if not len(known):
        return np.full(len(wanted), -1, np.int64)
    places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[places] == wanted, places, -1)
