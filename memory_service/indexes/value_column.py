"""A column of values of any type, one per row, for a field without an index.

Values are those of JSON. A text or a collection has a code, counted up; numbers are stored directly.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import DTypeLike, NDArray

from memory_service.data_model import Json
from memory_service.indexes.arrays import GrowingArray
from memory_service.ordering import COMPARED_CHARS_MAX, LAST
from memory_service.predicates import Comparison, Operand, Operator, Pattern, Present, Structure, canonical

BoolArray = NDArray[np.bool_]
Rows = slice | NDArray[np.int32]
Value = Json | msgspec.UnsetType
"""UNSET: no value."""
Element = tuple["Type", str | float]


class Collection(NamedTuple):
    """A list or an object."""

    digest: bytes
    """Of its canonical JSON, after the first character of that."""
    members: frozenset[Element]
    """The elements of a list, or the keys of an object. Deeper levels are left out."""


Question = tuple[Operator, type, Operand]
"""A test, identified by its operand; the type distinguishes 1 from true."""

_BYTES_PER_CODE = 180
_DEAD_CODES_MIN = 4096
_COMPARED_BYTES_MAX = 16 * 1024
"""A longer value is present and matches no comparison.

Doubled: a column of large data takes twice the memory.
"""


class Type(enum.IntEnum):
    """The type of a value."""

    MISSING = 0
    NULL = 1
    BOOL = 2
    NUMBER = 3
    TEXT = 4
    COLLECTION = 5
    LARGE = 6


class ValueColumn:
    """Values by row, compared all at once."""

    def __init__(self, dtype: DTypeLike = np.float64) -> None:
        self._types = GrowingArray(np.int8)
        self._values = GrowingArray(dtype)
        self._text_codes: dict[str, int] = {}
        self._texts: list[str] = []
        self._collection_codes: dict[bytes, int] = {}
        self._collections: list[Collection] = []
        self._chars = 0
        # The last test of each table, and which of its first entries passed.
        self._passed: dict[Type, tuple[Question, GrowingArray]] = {}

    def __len__(self) -> int:
        return len(self._types)

    @property
    def nbytes(self) -> int:
        """Memory taken, estimated."""
        codes = _BYTES_PER_CODE * (len(self._texts) + 3 * len(self._collections))
        return self._types.nbytes + self._values.nbytes + codes + 2 * self._chars

    @property
    def wasteful(self) -> bool:
        """Whether most codes are of values that are gone."""
        codes = len(self._texts) + len(self._collections)
        return codes > _DEAD_CODES_MIN and codes > 2 * len(self)

    # --- changing -----------------------------------------------------------------------------

    def extend(self, values: Iterable[Value]) -> None:
        """Add rows."""
        encoded = [self._encoded(value) for value in values]
        self._types.extend([kind for kind, _ in encoded])
        self._values.extend([value for _, value in encoded])

    def put(self, row: int, value: Value) -> None:
        """Change the value of a row."""
        self._types.view[row], self._values.view[row] = self._encoded(value)

    def arranged(self, places: NDArray[np.int64]) -> ValueColumn:
        """Return the column with these rows of this one, -1 for rows without a value. This one must not be
        used any more.
        """
        there = places >= 0
        types = np.zeros(len(places), np.int8)
        types[there] = self._types.view[places[there]]
        values = np.zeros(len(places), self._values.view.dtype)
        values[there] = self._values.view[places[there]]
        self._types, self._values = GrowingArray.of(types), GrowingArray.of(values)
        return self

    def _encoded(self, value: Value) -> tuple[Type, float]:
        if isinstance(value, str):
            if len(value) > _COMPARED_BYTES_MAX:
                return Type.LARGE, 0
            return Type.TEXT, self._text_code(value)
        if value is msgspec.UNSET:
            return Type.MISSING, 0
        if value is None:
            return Type.NULL, 0
        if isinstance(value, bool):
            return Type.BOOL, value
        if isinstance(value, int | float):
            return Type.NUMBER, value
        if len(msgspec.json.encode(value)) > _COMPARED_BYTES_MAX:
            return Type.LARGE, 0
        digest = _digest(canonical(value))
        code = self._collection_codes.setdefault(digest, len(self._collections))
        if code == len(self._collections):
            members = frozenset(_elements(value))
            self._collections.append(Collection(digest, members))
            self._chars += sum(len(member) for _, member in members if isinstance(member, str))
        return Type.COLLECTION, code

    def _text_code(self, text: str) -> int:
        code = self._text_codes.get(text)
        if code is None:
            code = self._text_codes[text] = len(self._texts)
            self._texts.append(text)
            self._chars += len(text)
        return code

    # --- ordering -----------------------------------------------------------------------------

    def sort_key(self, row: int) -> tuple[int, str | float]:
        """Return the rank of a row's type, LAST if it has no value, and its value; see `SortKey`."""
        kind, value = Type(self._types.view[row]), self._values.view[row].item()
        if kind is Type.TEXT:
            return kind, self._texts[int(value)][:COMPARED_CHARS_MAX]
        if kind is Type.MISSING:
            return LAST, 0
        return kind, 0 if kind >= Type.COLLECTION else value

    def sort_keys(self, rows: Rows) -> tuple[NDArray[np.int8], NDArray[Any]]:
        """Return the ranks of some rows, and numbers in the order of their values."""
        types, values = self._types.view[rows], self._values.view[rows]
        values[types >= Type.COLLECTION] = 0
        texts = types == Type.TEXT
        codes, places = np.unique(values[texts].astype(np.int64), return_inverse=True)
        compared = [self._texts[code][:COMPARED_CHARS_MAX] for code in codes.tolist()]
        numbers = {text: number for number, text in enumerate(sorted(set(compared)))}
        values[texts] = np.array([numbers[text] for text in compared], values.dtype)[places]
        return np.where(types == Type.MISSING, LAST, types), values

    # --- comparing ----------------------------------------------------------------------------

    def holds(self, leaf: Comparison | Present, rows: Rows) -> BoolArray:
        """Return for which of some rows a comparison with their value holds."""
        types = self._types.view[rows]
        if isinstance(leaf, Present):
            return np.asarray(types != Type.MISSING)
        values = self._values.view[rows]
        found = self._compare(types, values, leaf.operator, leaf.operand)
        if leaf.operator is Operator.HAS and self._collections:
            inside = _member_test(leaf.operand)
            question = (leaf.operator, type(leaf.operand), leaf.operand)
            found |= self._test(types, values, Type.COLLECTION, question, inside)
        return found

    def _compare(
        self, types: NDArray[np.int8], values: NDArray[Any], operator: Operator, operand: Operand
    ) -> BoolArray:
        if operand is None:
            # Only for null are other types unequal: there is just one null.
            unequal = operator is Operator.UNEQUAL
            return np.asarray(types > Type.NULL if unequal else types == Type.NULL)
        if isinstance(operand, bool):
            return np.asarray((types == Type.BOOL) & operator.compare(values, operand))
        if isinstance(operand, int | float):
            return np.asarray((types == Type.NUMBER) & operator.compare(values, operand))
        if isinstance(operand, str) and operator in (Operator.EQUAL, Operator.UNEQUAL, Operator.HAS):
            code = self._text_codes.get(operand, -1)
            return np.asarray((types == Type.TEXT) & operator.compare(values, code))
        question = (operator, type(operand), operand)
        if isinstance(operand, Structure):
            return self._test(types, values, Type.COLLECTION, question, _equality_test(operator, operand))
        return self._test(types, values, Type.TEXT, question, text_test(operator, operand))

    def _test(
        self,
        types: NDArray[np.int8],
        values: NDArray[Any],
        kind: Type,
        question: Question,
        test: Callable[[Any], bool],
    ) -> BoolArray:
        """Test the values of a type, each distinct one once."""
        table: Sequence[Any] = self._texts if kind is Type.TEXT else self._collections
        found: BoolArray = types == kind
        codes = values[found].astype(np.int64)
        if 4 * len(codes) < len(table):
            distinct, codes = np.unique(codes, return_inverse=True)
            passing = np.fromiter((test(table[code]) for code in distinct.tolist()), np.bool_, len(distinct))
        else:
            passing = self._passing(kind, question, test, table)
        found[found] = passing[codes]
        return found

    def _passing(
        self, kind: Type, question: Question, test: Callable[[Any], bool], table: Sequence[Any]
    ) -> BoolArray:
        """Return which entries of a table pass a test. Repeated tests examine only new entries."""
        last, passed = self._passed.get(kind) or (None, GrowingArray(np.bool_))
        if last != question:
            passed = GrowingArray(np.bool_)
        new = table[len(passed) :]
        passed.extend(np.fromiter(map(test, new), np.bool_, len(new)))
        self._passed[kind] = question, passed
        return passed.view


def _digest(text: str) -> bytes:
    return text[0].encode() + blake2b(text.encode(), digest_size=16).digest()


def _equality_test(operator: Operator, operand: Structure) -> Callable[[Collection], bool]:
    wanted = _digest(operand.text)
    if operator is Operator.UNEQUAL:
        return lambda found: found.digest != wanted and found.digest[0] == wanted[0]
    return lambda found: found.digest == wanted


def _elements(value: Json) -> Iterable[Element]:
    if isinstance(value, dict):
        return ((Type.TEXT, key) for key in value)
    return (element for element in map(_element, value) if element is not None)


def _element(value: Json) -> Element | None:
    if isinstance(value, str):
        return Type.TEXT, value
    if value is None:
        return Type.NULL, 0.0
    if isinstance(value, bool):
        return Type.BOOL, float(value)
    return (Type.NUMBER, float(value)) if isinstance(value, int | float) else None


def text_test(operator: Operator, operand: str | Pattern) -> Callable[[str], bool]:
    """Return a function that compares a text with the operand."""
    if isinstance(operand, str):
        compare = operator.compare
        return lambda text: bool(compare(text, operand))
    matches, unequal = operand.matches, operator is Operator.UNEQUAL
    return lambda text: matches(text) != unequal


def _member_test(operand: Operand) -> Callable[[Collection], bool]:
    if isinstance(operand, Pattern):
        return lambda found: any(
            kind is Type.TEXT and operand.matches(str(member)) for kind, member in found.members
        )
    wanted = None if isinstance(operand, Structure) else _element(operand)
    return lambda found: wanted in found.members
