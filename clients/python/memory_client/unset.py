"""A marker for a value that is not given, where None is a value."""

from __future__ import annotations

from enum import Enum
from typing import Final, Literal, TypeAlias


class _Unset(Enum):
    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = _Unset.UNSET
"""Not given. An update leaves such a field as it is, where None would clear it."""
Unset: TypeAlias = Literal[_Unset.UNSET]
