"""The distinct values of each label, sorted."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

from memory_service.data_model import LabelKey

Label = tuple[LabelKey, str]


class SortedLabels:
    """The values of each label, sorted by code point. Built at the first use, then kept up to date.

    A view whose label values are never listed spends neither time nor memory on them.
    """

    def __init__(self) -> None:
        self._values: dict[str, list[str]] | None = None

    @property
    def nbytes(self) -> int:
        """Memory taken, estimated. The texts themselves belong to the lists of rows."""
        return 0 if self._values is None else sum(300 + 8 * len(values) for values in self._values.values())

    def of(self, key: str, labels: Iterable[Label]) -> list[str]:
        """Return the values of a key, sorted; `labels` are all labels and tags that any row has."""
        if self._values is None:
            self._values = {}
            for each, value in labels:
                # The key of a tag is a tuple.
                if isinstance(each, str):
                    self._values.setdefault(each, []).append(value)
            for values in self._values.values():
                values.sort()
        return self._values.get(key, [])

    def add(self, label: Label) -> None:
        """Add a label that no row had before."""
        key, value = label
        if self._values is not None and isinstance(key, str):
            insort(self._values.setdefault(key, []), value)

    def remove(self, label: Label) -> None:
        """Remove a label that no row has any more."""
        key, value = label
        if self._values is not None and isinstance(key, str):
            values = self._values[key]
            del values[bisect_left(values, value)]
            if not values:
                del self._values[key]
