"""Selects the items of a view that match a filter."""

from __future__ import annotations

import msgspec
import numpy as np

from memory_service.data_model import ItemFilter, ItemKind
from memory_service.indexes.predicate_masks import all_hold
from memory_service.indexes.row_lists import among, any_labelled, labelled, of_kind, span
from memory_service.indexes.view import BoolArray, NamespaceView, RowArray
from memory_service.predicates import (
    And,
    Comparison,
    FieldName,
    Operator,
    conjuncts,
    is_listed,
)

_NONE = -1


def scan(view: NamespaceView, item_filter: ItemFilter, limit: int, *, newest: bool) -> list[int]:
    """Return positions of matching items, ascending: the first or the last `limit`; all if < 0.

    The view must have the columns of the filter's predicate.
    """
    view.index_pending()
    item_filter = planned(item_filter)
    first, end = row_span(view, item_filter)
    listed = candidates(view, item_filter)
    count = end - first if listed is None else len(listed)
    if limit < 0:
        limit = count
    # Most scans want a few rows of one end: look there first, then further and further.
    width = max(4 * limit, 64)
    while True:
        start, stop = (max(count - width, 0), count) if newest else (0, min(width, count))
        rows = slice(first + start, first + stop) if listed is None else listed[start:stop]
        found = np.flatnonzero(matching(view, rows, item_filter))
        if len(found) >= limit or stop - start == count:
            break
        width *= 4
    found = (found[len(found) - limit :] if newest else found[:limit]) if len(found) > limit else found
    positions: list[int] = view.positions.view[rows][found].tolist()
    return positions


def row_mask(view: NamespaceView, item_filter: ItemFilter) -> BoolArray | None:
    """Return which rows match a filter; None: all live ones.

    The view must have the columns of the filter's predicate.
    """
    if matches_everything(view, item_filter):
        return None
    item_filter = planned(item_filter)
    mask = np.zeros(len(view.positions), np.bool_)
    rows = candidates(view, item_filter)
    if rows is None:
        first, end = row_span(view, item_filter)
        mask[first:end] = matching(view, slice(first, end), item_filter)
    else:
        mask[rows[matching(view, rows, item_filter)]] = True
    return mask


def matches_everything(view: NamespaceView, item_filter: ItemFilter) -> bool:
    """Return whether all live rows match a filter."""
    return not item_filter.selects and not view.expiring_count and not _has_others(view, item_filter)


def planned(item_filter: ItemFilter) -> ItemFilter:
    """Return the filter with conditions moved from its predicate to the fields for which a view has lists and
    columns, as far as possible; the others stay in the predicate.
    """
    if item_filter.predicate is None:
        return item_filter
    rest = []
    for part in conjuncts(item_filter.predicate):
        narrowed = _narrowed(item_filter, part) if isinstance(part, Comparison) else None
        if narrowed is None:
            rest.append(part)
        else:
            item_filter = narrowed
    return msgspec.structs.replace(item_filter, predicate=And(tuple(rest)) if rest else None)


def _narrowed(item_filter: ItemFilter, part: Comparison) -> ItemFilter | None:
    """Return the filter with one more comparison; None if its fields cannot express it."""
    name, operator, operand = part.field.name, part.operator, part.operand
    exact = operator in (Operator.EQUAL, Operator.HAS)
    if isinstance(operand, str) and is_listed(part):
        labels = (*item_filter.labels, (part.field.path[0], operand))
        return msgspec.structs.replace(item_filter, labels=labels)
    if name is FieldName.SESSION and exact and isinstance(operand, str) and operand:
        if item_filter.session_id in ("", operand):
            return msgspec.structs.replace(item_filter, session_id=operand)
    elif name is FieldName.KIND and exact and isinstance(operand, int):
        kind = frozenset({ItemKind(operand)})
        kinds = kind if item_filter.kinds is None else kind & item_filter.kinds
        return msgspec.structs.replace(item_filter, kinds=kinds)
    elif name is FieldName.CREATE_TIME and isinstance(operand, int) and operator is not Operator.UNEQUAL:
        return _within(item_filter, operator, operand)
    return None


def _within(item_filter: ItemFilter, operator: Operator, time_us: int) -> ItemFilter:
    """Return the filter limited to the times that a comparison accepts."""
    start, end = item_filter.start_us, item_filter.end_us
    if operator not in (Operator.LESS, Operator.LESS_EQUAL):
        least = time_us + (operator is Operator.GREATER)
        start = least if start is None else max(start, least)
    if operator not in (Operator.GREATER, Operator.GREATER_EQUAL):
        above = time_us + (operator is not Operator.LESS)
        end = above if end is None else min(end, above)
    return msgspec.structs.replace(item_filter, start_us=start, end_us=end)


def candidates(view: NamespaceView, item_filter: ItemFilter) -> RowArray | None:
    """Return the shortest list that contains every match, ascending, within the filter's positions; None
    without a list.
    """
    lists = [labelled(view, pair) for pair in item_filter.labels]
    lists += [labelled(view, ((key,), value)) for key, value in item_filter.tags]
    if item_filter.any_tag:
        lists.append(_of_any_tag(view, item_filter))
    if item_filter.kinds is not None and len(item_filter.kinds) == 1 and _has_others(view, item_filter):
        lists.append(of_kind(view, next(iter(item_filter.kinds))))
    if not lists:
        return None
    listed = min(lists, key=len)
    return listed[span(listed, *row_span(view, item_filter))]


def _of_any_tag(view: NamespaceView, item_filter: ItemFilter) -> RowArray:
    return any_labelled(view, [((key,), value) for key, value in item_filter.any_tag])


def row_span(view: NamespaceView, item_filter: ItemFilter) -> tuple[int, int]:
    """Return the first of the rows at a filter's positions, and the end of them."""
    positions = view.positions.view
    first, end = 0, len(positions)
    if item_filter.min_position:
        first = int(np.searchsorted(positions, item_filter.min_position))
    if item_filter.max_position is not None:
        end = int(np.searchsorted(positions, item_filter.max_position, side="right"))
    return first, max(first, end)


def matching(view: NamespaceView, rows: slice | RowArray, item_filter: ItemFilter) -> BoolArray:
    """Return which of these rows match a filter, except for its positions."""
    wanted: BoolArray = view.live.view[rows].copy()
    if view.expiring_count:
        wanted &= view.expire_us.view[rows] > item_filter.now_us
    if item_filter.session_id:
        wanted &= view.sessions.view[rows] == view.session_codes.get(item_filter.session_id, _NONE)
    if item_filter.start_us is not None:
        wanted &= view.create_us.view[rows] >= item_filter.start_us
    if item_filter.end_us is not None:
        wanted &= view.create_us.view[rows] < item_filter.end_us
    if _has_others(view, item_filter):
        wanted &= np.isin(view.kinds.view[rows], list(item_filter.kinds or ()))
    for pair in item_filter.labels:
        wanted &= among(rows, labelled(view, pair))
    for key, value in item_filter.tags:
        wanted &= among(rows, labelled(view, ((key,), value)))
    if item_filter.any_tag:
        wanted &= among(rows, _of_any_tag(view, item_filter))
    if item_filter.predicate is not None:
        wanted = all_hold(view, conjuncts(item_filter.predicate), rows, wanted)
    return wanted


def _has_others(view: NamespaceView, item_filter: ItemFilter) -> bool:
    """Return whether there are items of unwanted kinds."""
    kinds = item_filter.kinds
    if kinds is not None:
        for kind, count in enumerate(view.kind_counts):
            if count and kind not in kinds:
                return True
    return False
