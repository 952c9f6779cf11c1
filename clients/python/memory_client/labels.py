"""Values of labels."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LabelValue:
    """A value of a label, and how many items have it."""

    value: str
    count: int
