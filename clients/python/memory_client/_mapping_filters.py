"""Filters that frameworks write as mappings, as expressions of the server."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from memory_client.errors import invalid

_OPERATORS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_LARGEST = "1.7976931348623157e308"


def filter_of(field: str, wanted: Mapping[str, Any] | None) -> str:
    """Return the expression for items whose `field` has all the wanted values; "" if none is wanted.

    A value is JSON, or a mapping of the operators $eq, $ne, $gt, $gte, $lt, $lte. A key with dots names a
    nested value, or one with this very name.

    Raises:
        InvalidArgument: A key contains quotes or a backslash, or an operator is unknown.
    """
    return " AND ".join(_key_condition(field, key, value) for key, value in (wanted or {}).items())


def _key_condition(field: str, key: str, value: Any) -> str:
    if not isinstance(key, str) or not key or set(key) & set("'\"\\"):
        raise invalid("filter", f"Invalid filter key: {key!r}")
    paths = {key, *(["\0".join(key.split("."))] if "." in key.strip(".") and ".." not in key else [])}
    named = [".".join([field, *(f'"{part}"' for part in path.split("\0"))]) for path in sorted(paths)]
    return _any(_condition(each, value) for each in named)


def _any(conditions: Any) -> str:
    found = list(conditions)
    return found[0] if len(found) == 1 else f"({' OR '.join(found)})"


def _all(conditions: Any) -> str:
    return f"({' AND '.join(conditions)})"


def _condition(field: str, value: Any) -> str:
    if isinstance(value, Mapping) and value:
        if any(str(key).startswith("$") for key in value):
            return _all(_operation(field, operator, operand) for operator, operand in value.items())
        return _all(_key_condition(field, key, each) for key, each in value.items())
    return _equal(field, value)


def _operation(field: str, operator: str, operand: Any) -> str:
    if operator == "$eq":
        return _equal(field, operand)
    if operator == "$ne":  # As in SQL, not of items without the value.
        return f"({field}:* AND NOT {_equal(field, operand)})"
    if operator not in _OPERATORS:
        raise invalid("filter", f"Unsupported operator: {operator}")
    return f"{field} {_OPERATORS[operator]} {_literal(operand)}" if operand == operand else _never(field)


def _equal(field: str, value: Any) -> str:
    if value != value:  # NaN equals nothing.
        return _never(field)
    return f"{field} = {_literal(value)}"


def _never(field: str) -> str:
    return f"({field} = true AND {field} = false)"


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("*", r"\*")
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf if value > 0 else -math.inf
        if math.isinf(number):
            return _LARGEST if number > 0 else f"-{_LARGEST}"
        return repr(value) if abs(number) < 2**53 else repr(number).replace("+", "")
    return json.dumps(value, ensure_ascii=False)
