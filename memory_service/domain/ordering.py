"""Reads the order that a caller wants, such as "update_time desc"."""

from __future__ import annotations

import re

from memory_service.domain.checks import Checks
from memory_service.domain.filter_values import Misfit, unquoted
from memory_service.errors import InvalidArgument
from memory_service.ordering import Ordering
from memory_service.predicates import Field, FieldName

_PART = r"""[^\s()"'<>=!:,.\\]+|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'"""
_ORDER = re.compile(rf"\s*((?:{_PART})(?:\.(?:{_PART}))*)(?:\s+((?i:asc|desc)))?\s*", re.DOTALL)
_PARTS = re.compile(_PART, re.DOTALL)
_EXPECTED = 'must be create_time, update_time, revision or metadata.KEY, perhaps followed by "asc" or "desc"'
_NAMES = ("create_time", "update_time", "revision")


def to_ordering(field: str, text: str, checks: Checks) -> Ordering:
    """Return the order that a text describes. Raises InvalidArgument for `field`."""
    if len(text.encode()) > checks.limits.filter_bytes_max:
        raise InvalidArgument(field, f"has more than {checks.limits.filter_bytes_max} bytes")
    found = _ORDER.fullmatch(text)
    if found is None:
        raise InvalidArgument(field, _EXPECTED)
    path, direction = found.groups()
    try:
        name, *keys = (unquoted(part, 0) if part[0] in "\"'" else part for part in _PARTS.findall(path))
    except Misfit as misfit:
        raise InvalidArgument(field, misfit.problem) from None
    if len(keys) > checks.limits.metadata_depth_max:
        raise InvalidArgument(field, f"metadata has at most {checks.limits.metadata_depth_max} levels")
    if (name == "metadata" and keys) or (name in _NAMES and not keys):
        return Ordering(Field(FieldName(name), tuple(keys)), (direction or "").lower() == "desc")
    raise InvalidArgument(field, _EXPECTED)
