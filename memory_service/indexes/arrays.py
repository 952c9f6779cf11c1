"""Arrays that grow at their end."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

_LARGE_BYTES = 64 << 20


class GrowingArray:
    """A numpy array with room to append; `view` is what it holds. Appending is O(1) amortised."""

    def __init__(self, dtype: DTypeLike, width: int | None = None, capacity: int = 16) -> None:
        shape = (capacity,) if width is None else (capacity, width)
        self._array: NDArray[Any] = np.empty(shape, dtype)
        self._length = 0

    @classmethod
    def of(cls, values: NDArray[Any]) -> GrowingArray:
        """Return one that holds these values; they are not copied."""
        growing = cls(values.dtype, None if values.ndim == 1 else values.shape[1], capacity=0)
        growing._array = values
        growing._length = len(values)
        return growing

    def __len__(self) -> int:
        return self._length

    @property
    def view(self) -> NDArray[Any]:
        """The values, not copied. Valid until the next append."""
        return self._array[: self._length]

    @property
    def nbytes(self) -> int:
        """Memory taken, room included."""
        return self._array.nbytes

    def append(self, value: Any) -> None:
        """Add one value."""
        if self._length == len(self._array):
            self._grow(self._length + 1)
        self._array[self._length] = value
        self._length += 1

    def extend(self, values: ArrayLike) -> None:
        """Add several values."""
        values = np.asarray(values, self._array.dtype)
        end = self._length + len(values)
        if end > len(self._array):
            self._grow(end)
        self._array[self._length : end] = values
        self._length = end

    def clear(self) -> None:
        """Remove all values and give their room back."""
        self._array = np.empty((16, *self._array.shape[1:]), self._array.dtype)
        self._length = 0

    def _grow(self, at_least: int) -> None:
        # Room for as much again is waste where it is many megabytes.
        factor = 2 if self._array.nbytes < _LARGE_BYTES else 1.25
        length = max(at_least, int(factor * len(self._array)), 16)
        grown = np.empty((length, *self._array.shape[1:]), self._array.dtype)
        grown[: self._length] = self._array[: self._length]
        self._array = grown
