"""Evaluates predicates for many rows of a view at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import numpy as np

from memory_service.indexes.row_lists import among, labelled
from memory_service.indexes.value_column import text_test
from memory_service.indexes.view import NEVER_US, BoolArray, NamespaceView, RowArray
from memory_service.predicates import (
    And,
    Comparison,
    FieldName,
    Not,
    Operator,
    Or,
    Pattern,
    Predicate,
    Present,
    is_listed,
)

_NONE = -1
# Below this share of the rows, selecting them is quicker than comparing all.
_SPARSE = 4
_EXACT = (Operator.EQUAL, Operator.UNEQUAL, Operator.HAS)


def holds(view: NamespaceView, predicate: Predicate, rows: slice | RowArray) -> BoolArray:
    """Return for which of some rows, ascending, a predicate holds.

    The view must have the columns of `column_fields`.
    """
    match predicate:
        case And(parts):
            return all_hold(view, parts, rows)
        case Or(parts):
            return ~all_hold(view, [Not(part) for part in parts], rows)
        case Not(part):
            return ~holds(view, part, rows)
        case _:
            return _compared(view, predicate, rows)


def all_hold(
    view: NamespaceView,
    parts: Iterable[Predicate],
    rows: slice | RowArray,
    wanted: BoolArray | None = None,
) -> BoolArray:
    """Return for which of some rows all predicates hold; `wanted`, which is changed, marks those that count.

    The cheap ones come first; if they leave few rows, the others examine only these.
    """
    for part in sorted(parts, key=_cost):
        if wanted is None:
            wanted = holds(view, part, rows)
            continue
        left = np.flatnonzero(wanted)
        if not len(left):
            break
        if len(left) * _SPARSE > len(wanted):
            wanted &= holds(view, part, rows)
        else:
            picked = (left + rows.start).astype(np.int32) if isinstance(rows, slice) else rows[left]
            wanted[left] = holds(view, part, picked)
    assert wanted is not None
    return wanted


def _cost(predicate: Predicate) -> int:
    """Return the approximate cost of a predicate."""
    match predicate:
        case And(parts) | Or(parts):
            return sum(map(_cost, parts))
        case Not(part):
            return _cost(part)
        case Comparison(_, operator, operand):
            # Texts are compared one by one, except for equality.
            one_by_one = isinstance(operand, Pattern) or (isinstance(operand, str) and operator not in _EXACT)
            return 20 if one_by_one else 1
        case _:
            return 1


def _compared(view: NamespaceView, leaf: Comparison | Present, rows: slice | RowArray) -> BoolArray:
    match leaf.field.name:
        case FieldName.SESSION:
            return _of_session(view, leaf, rows)
        case FieldName.KIND:
            kinds = view.kinds.view[rows]
            if isinstance(leaf, Present):
                return np.ones(len(kinds), np.bool_)
            return np.asarray(leaf.operator.compare(kinds, leaf.operand))
        case FieldName.CREATE_TIME:
            times = view.create_us.view[rows]
            if isinstance(leaf, Present):
                return np.ones(len(times), np.bool_)
            return np.asarray(leaf.operator.compare(times, leaf.operand))
        case FieldName.EXPIRE_TIME:
            times = view.expire_us.view[rows]
            expiring: BoolArray = times != NEVER_US
            if isinstance(leaf, Present):
                return expiring
            return np.asarray(expiring & leaf.operator.compare(times, leaf.operand))
    if isinstance(leaf, Comparison) and is_listed(leaf):
        return among(rows, labelled(view, (leaf.field.path[0], cast(str, leaf.operand))))
    return view.columns[leaf.field].holds(leaf, rows)


def _of_session(view: NamespaceView, leaf: Comparison | Present, rows: slice | RowArray) -> BoolArray:
    codes = view.sessions.view[rows]
    if isinstance(leaf, Present):
        return np.asarray(codes != view.session_codes[""])
    operator, operand = leaf.operator, leaf.operand
    if isinstance(operand, str) and operator in _EXACT:
        return np.asarray(operator.compare(codes, view.session_codes.get(operand, _NONE)))
    test = text_test(operator, cast(str | Pattern, operand))
    passing = np.fromiter(map(test, view.session_codes), np.bool_, len(view.session_codes))
    return np.asarray(passing[codes])
