"""The meaning of predicates, item by item, which stores must agree with. Independent of their code."""

from __future__ import annotations

import json
import operator
from typing import Any

from memory_service.data_model import ChatMessage, DataPart, Item, ToolCallResult
from memory_service.predicates import (
    And,
    Comparison,
    Field,
    Not,
    Operator,
    Or,
    Pattern,
    Predicate,
    Present,
    Structure,
)

_MISSING = object()
_COMPARE: dict[str, Any] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge, ":": operator.eq,
}  # fmt: skip


def holds(predicate: Predicate | None, item: Item) -> bool:
    """Return whether a predicate holds for an item."""
    match predicate:
        case None:
            return True
        case And():
            return all(holds(part, item) for part in predicate.parts)
        case Or():
            return any(holds(part, item) for part in predicate.parts)
        case Not():
            return not holds(predicate.part, item)
        case Present():
            value = _value(predicate.field, item)
            return value is not _MISSING and not (predicate.field.name == "session_id" and value == "")
        case Comparison():
            return _compares(_value(predicate.field, item), predicate.operator, predicate.operand)


def _value(field: Field, item: Item) -> Any:
    message = item.content if isinstance(item.content, ChatMessage) else None
    match field.name.value:
        case "id" | "session_id":
            return getattr(item, field.name)
        case "role":
            return message.role.value if message else _MISSING
        case "name":
            return message.name if message and message.name is not None else _MISSING
        case "kind":
            return int(item.kind)
        case "create_time":
            return item.create_us
        case "update_time":
            return item.update_us
        case "revision":
            return item.revision
        case "expire_time":
            return _MISSING if item.expire_us is None else item.expire_us
        case "importance":
            return _MISSING if item.importance is None else item.importance
        case "writer" | "credential":
            known = item.provenance
            name = "writer" if field.name.value == "writer" else "credential_id"
            return (getattr(known, name) if known else "") or _MISSING
        case "trust":
            return item.provenance.trust if item.provenance else 1.0
        case "source":
            return _source(item)
        case "labels":
            return item.labels.get(field.path[0], _MISSING)
    value: Any = item.metadata
    if field.name.value == "data":
        value = item.content.data if isinstance(item.content, DataPart) else None
    for key in field.path:
        value = value.get(key, _MISSING) if isinstance(value, dict) else _MISSING
    return value


def _source(item: Item) -> str:
    if item.provenance and item.provenance.source:
        return item.provenance.source.name.lower()
    of_kind = {3: "derived", 5: "document", 6: "document"}.get(int(item.kind))
    if of_kind is None and isinstance(item.content, ToolCallResult):
        return "tool"
    if of_kind is None and isinstance(item.content, ChatMessage):
        return {"user": "user", "assistant": "agent", "tool": "tool"}.get(item.content.role, "unspecified")
    return of_kind or "unspecified"


def _compares(value: Any, how: Operator, operand: Any) -> bool:
    if value is _MISSING:
        return False
    if how.value == ":" and isinstance(value, dict):
        value = list(value)
    if how.value == ":" and isinstance(value, list):
        return any(_compares(element, Operator.EQUAL, operand) for element in value)
    if isinstance(operand, Structure):
        wanted = json.loads(operand.text)
        return type(value) is type(wanted) and _equal(value, wanted) == (how.value == "=")
    if isinstance(operand, Pattern):
        return isinstance(value, str) and _fits(value, operand) == (how.value != "!=")
    if operand is None:
        return (value is None) == (how.value != "!=")
    if _type(value) is not _type(operand):
        return False
    return bool(_COMPARE[how.value](value, operand))


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, list):
        return (
            isinstance(other, list)
            and len(one) == len(other)
            and all(_equal(*pair) for pair in zip(one, other, strict=True))
        )
    if isinstance(one, dict):
        same = isinstance(other, dict) and one.keys() == other.keys()
        return same and all(_equal(one[key], other[key]) for key in one)
    return _type(one) is _type(other) and bool(one == other)


def _type(value: Any) -> type | None:
    if isinstance(value, bool):
        return bool
    if isinstance(value, int | float):
        return float
    if isinstance(value, list | dict):
        return type(value)
    return str if isinstance(value, str) else None


def _fits(text: str, pattern: Pattern) -> bool:
    starts = [n for n in range(len(text) + 1) if text[n:].startswith(pattern.text)]
    return any(
        (pattern.any_before or n == 0) and (pattern.any_after or n + len(pattern.text) == len(text))
        for n in starts
    )
