"""The categories of facts."""

from __future__ import annotations

import enum


class Category(enum.IntEnum):
    """What a fact is about; the numbers equal the proto's."""

    IDENTITY = 1
    PREFERENCE = 2
    RELATIONSHIP = 3
    PROJECT = 4
    CONTEXT = 5

    @property
    def base_importance(self) -> float:
        """The importance of a fact of this category, before anything about its wording counts."""
        return _BASE_IMPORTANCE[self]


_BASE_IMPORTANCE = {
    Category.IDENTITY: 10.0,
    Category.PREFERENCE: 9.0,
    Category.RELATIONSHIP: 8.0,
    Category.PROJECT: 7.0,
    Category.CONTEXT: 5.0,
}
