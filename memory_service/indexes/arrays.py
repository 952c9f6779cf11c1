"""Arrays that grow at their end."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

# From this size on, address space is reserved, which takes no memory until it is written: copying many
# megabytes at each doubling would block everything else.
_RESERVED_FROM_BYTES = 1 << 20
_RESERVED_FACTOR = 8


class GrowingArray:
    """A numpy array with room to append; `view` is its content. Appending is O(1) amortized."""

    def __init__(self, dtype: DTypeLike, width: int | None = None, capacity: int = 16) -> None:
        shape = (capacity,) if width is None else (capacity, width)
        self._array: NDArray[Any] = np.empty(shape, dtype)
        self._length = 0

    @classmethod
    def of(cls, values: NDArray[Any]) -> GrowingArray:
        """Return an array with these values, which are not copied."""
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
        """Memory taken, without room that is only reserved."""
        taken = self._array.nbytes
        return taken if taken < _RESERVED_FROM_BYTES else self.view.nbytes

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
        """Remove all values and release their memory."""
        self._array = self._empty(16)
        self._length = 0

    def _grow(self, at_least: int) -> None:
        large = self._array.nbytes >= _RESERVED_FROM_BYTES
        try:
            grown = self._empty(max(at_least, (_RESERVED_FACTOR if large else 2) * len(self._array), 16))
        except MemoryError:
            # If memory cannot be reserved, or not as much.
            grown = self._empty(max(at_least, len(self._array) * 5 // 4))
        grown[: self._length] = self._array[: self._length]
        self._array = grown

    def _empty(self, length: int) -> NDArray[Any]:
        return np.empty((length, *self._array.shape[1:]), self._array.dtype)
