"""Orders of items by a field: plain values that every layer may read."""

from __future__ import annotations

import msgspec

from memory_service.predicates import Field, FieldName

COMPARED_CHARS_MAX = 256
"""Texts are ordered by this many characters. Doubled: a page token may become twice as long."""
LAST = 9
"""The rank of items without a value, which come last in both directions."""

SortKey = tuple[int, str | float, int]
"""A place in an order: the rank of the value's type, the value, the position.

Values ascend by type: null, false, true, numbers, texts by code point, lists and objects (which are equal).
Equal ones ascend by position. A descending order is the reverse, except that LAST stays last.
"""


class Ordering(msgspec.Struct, frozen=True):
    """An order of items by a field: CREATE_TIME, UPDATE_TIME, REVISION or METADATA."""

    field: Field
    descending: bool = False

    @property
    def columns(self) -> list[Field]:
        """The fields that need a column of values."""
        return [] if self.field.name is FieldName.CREATE_TIME else [self.field]
