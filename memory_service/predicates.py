"""Conditions on items, parsed from a filter expression: plain values that every layer may read.

Any comparison with a missing value, or with a value of another type, is false; `Not` holds if its part does
not.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Iterator
from typing import Any

import msgspec


class FieldName(enum.StrEnum):
    """The fields of an item that a filter can use."""

    ID = "id"
    SESSION = "session_id"
    ROLE = "role"
    NAME = "name"
    KIND = "kind"
    CREATE_TIME = "create_time"
    UPDATE_TIME = "update_time"
    REVISION = "revision"
    EXPIRE_TIME = "expire_time"
    LABELS = "labels"
    IMPORTANCE = "importance"
    WRITER = "writer"
    CREDENTIAL = "credential"
    SOURCE = "source"
    TRUST = "trust"
    METADATA = "metadata"
    DATA = "data"


class Field(msgspec.Struct, frozen=True):
    """One value of an item; `path` holds the key of a label, or the path of keys into metadata or data."""

    name: FieldName
    path: tuple[str, ...] = ()


class Operator(enum.StrEnum):
    """How to compare a value.

    HAS is equality. In a collection it looks for a member: an element of a list, or a key of an object.
    """

    EQUAL = "="
    UNEQUAL = "!="
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    HAS = ":"

    @property
    def compare(self) -> Callable[[Any, Any], Any]:
        """The comparison function, for values or whole columns."""
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
    """Texts that contain `text`, anchored at start and end unless anything may precede or follow it."""

    text: str
    any_before: bool
    any_after: bool

    def matches(self, text: str) -> bool:
        """Whether a text matches."""
        if self.any_before and self.any_after:
            return self.text in text
        return text.endswith(self.text) if self.any_before else text.startswith(self.text)


class Structure(msgspec.Struct, frozen=True):
    """A list or an object, in the one form of `canonical`."""

    text: str


def canonical(value: Any) -> str:
    """Return the JSON of a value, the same for equal values: keys are sorted, numbers are doubles."""
    return msgspec.json.encode(_as_doubles(value), order="sorted").decode()


def _as_doubles(value: Any) -> Any:
    match value:
        case dict():
            return {key: _as_doubles(held) for key, held in value.items()}
        case list():
            return [_as_doubles(held) for held in value]
        case bool():
            return value
        case int() | float():
            # Zero has one sign.
            return float(value) + 0.0
    return value


Operand = str | float | int | bool | Pattern | Structure | None
"""The right side of a comparison: times are microseconds, kinds their numbers, None is JSON's null."""


class Comparison(msgspec.Struct, frozen=True):
    """Compares a value. Patterns are compared by EQUAL, UNEQUAL and HAS only, structures by the first two.

    A list is unequal to other lists, and an object to other objects.
    """

    field: Field
    operator: Operator
    operand: Operand


class Present(msgspec.Struct, frozen=True):
    """A value exists; JSON null counts as one."""

    field: Field


class And(msgspec.Struct, frozen=True):
    """All parts hold."""

    parts: tuple[Predicate, ...]


class Or(msgspec.Struct, frozen=True):
    """At least one part holds."""

    parts: tuple[Predicate, ...]


class Not(msgspec.Struct, frozen=True):
    """The part does not hold."""

    part: Predicate


Predicate = Comparison | Present | And | Or | Not


def leaves(predicate: Predicate) -> Iterator[Comparison | Present]:
    """Yield the comparisons in a predicate."""
    if isinstance(predicate, And | Or):
        for part in predicate.parts:
            yield from leaves(part)
    elif isinstance(predicate, Not):
        yield from leaves(predicate.part)
    else:
        yield predicate


def conjuncts(predicate: Predicate) -> Iterator[Predicate]:
    """Yield predicates whose conjunction equals this one."""
    if isinstance(predicate, And):
        for part in predicate.parts:
            yield from conjuncts(part)
    else:
        yield predicate


_EXACT = (Operator.EQUAL, Operator.HAS)
_IN_VIEWS = (FieldName.SESSION, FieldName.KIND, FieldName.CREATE_TIME, FieldName.EXPIRE_TIME)


def is_listed(leaf: Comparison | Present) -> bool:
    """Whether this compares a label with a value, which the label index answers."""
    return (
        isinstance(leaf, Comparison)
        and leaf.field.name is FieldName.LABELS
        and leaf.operator in _EXACT
        and isinstance(leaf.operand, str)
    )


def column_fields(predicate: Predicate | None) -> list[Field]:
    """Return the distinct fields that only the records have; to compare them needs a column of values."""
    if predicate is None:
        return []
    asked = (leaf for leaf in leaves(predicate) if leaf.field.name not in _IN_VIEWS and not is_listed(leaf))
    return list(dict.fromkeys(leaf.field for leaf in asked))
