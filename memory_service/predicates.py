"""Conditions on items, as a filter expression says them: plain values that every layer may read.

A comparison with a value that an item does not have, or that is of another type, does not hold, whatever
its operator; `Not` holds where its part does not.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Iterator
from typing import Any

import msgspec


class FieldName(enum.StrEnum):
    """What of an item can be looked at."""

    ID = "id"
    SESSION = "session_id"
    ROLE = "role"
    NAME = "name"
    KIND = "kind"
    CREATE_TIME = "create_time"
    UPDATE_TIME = "update_time"
    EXPIRE_TIME = "expire_time"
    LABELS = "labels"
    IMPORTANCE = "importance"
    WRITER = "writer"
    CREDENTIAL = "credential"
    SOURCE = "source"
    TRUST = "trust"
    METADATA = "metadata"


class Field(msgspec.Struct, frozen=True):
    """One value of an item; `path` holds the key of a label, or the keys down into metadata."""

    name: FieldName
    path: tuple[str, ...] = ()


class Operator(enum.StrEnum):
    """How a value is compared. HAS is equality, too, but of a collection it asks for one of its members:
    an element of a list, a key of an object."""

    EQUAL = "="
    UNEQUAL = "!="
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    HAS = ":"

    @property
    def compare(self) -> Callable[[Any, Any], Any]:
        """The comparison, of values or of whole columns."""
        return _COMPARE[self]


_COMPARE: dict[Operator, Callable[[Any, Any], Any]] = {
    Operator.EQUAL: operator.eq,
    Operator.UNEQUAL: operator.ne,
    Operator.LESS: operator.lt,
    Operator.LESS_EQUAL: operator.le,
    Operator.GREATER: operator.gt,
    Operator.GREATER_EQUAL: operator.ge,
    Operator.HAS: operator.eq,
}


class Pattern(msgspec.Struct, frozen=True):
    """Texts that have `text` in them: at their start, unless anything may stand before it, and at their
    end, unless anything may follow."""

    text: str
    any_before: bool
    any_after: bool

    def matches(self, text: str) -> bool:
        """Whether a text is one of them."""
        if self.any_before and self.any_after:
            return self.text in text
        return text.endswith(self.text) if self.any_before else text.startswith(self.text)


Operand = str | float | int | bool | Pattern | None
"""What a value is compared with: times are microseconds, kinds their numbers, None is JSON's null."""


class Comparison(msgspec.Struct, frozen=True):
    """A value is such. Patterns are compared by EQUAL, UNEQUAL and HAS only."""

    field: Field
    operator: Operator
    operand: Operand


class Present(msgspec.Struct, frozen=True):
    """There is a value; JSON's null is one."""

    field: Field


class And(msgspec.Struct, frozen=True):
    """All parts hold."""

    parts: tuple[Predicate, ...]


class Or(msgspec.Struct, frozen=True):
    """One part holds at least."""

    parts: tuple[Predicate, ...]


class Not(msgspec.Struct, frozen=True):
    """The part does not hold."""

    part: Predicate


Predicate = Comparison | Present | And | Or | Not


def leaves(predicate: Predicate) -> Iterator[Comparison | Present]:
    """Return the comparisons that a predicate is made of."""
    if isinstance(predicate, And | Or):
        for part in predicate.parts:
            yield from leaves(part)
    elif isinstance(predicate, Not):
        yield from leaves(predicate.part)
    else:
        yield predicate


def conjuncts(predicate: Predicate) -> Iterator[Predicate]:
    """Return predicates that all hold where this one holds, and only there."""
    if isinstance(predicate, And):
        for part in predicate.parts:
            yield from conjuncts(part)
    else:
        yield predicate


_EXACT = (Operator.EQUAL, Operator.HAS)
_IN_VIEWS = (FieldName.SESSION, FieldName.KIND, FieldName.CREATE_TIME, FieldName.EXPIRE_TIME)


def is_listed(leaf: Comparison | Present) -> bool:
    """Whether it asks for a label with its value, of which there are lists."""
    return (
        isinstance(leaf, Comparison)
        and leaf.field.name is FieldName.LABELS
        and leaf.operator in _EXACT
        and isinstance(leaf.operand, str)
    )


def column_fields(predicate: Predicate | None) -> list[Field]:
    """Return the fields that only the records tell, each once: to compare them takes a column of them."""
    if predicate is None:
        return []
    asked = (leaf for leaf in leaves(predicate) if leaf.field.name not in _IN_VIEWS and not is_listed(leaf))
    return list(dict.fromkeys(leaf.field for leaf in asked))
