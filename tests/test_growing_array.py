"""Small and large arrays that grow at their end."""

from __future__ import annotations

import resource
from pathlib import Path

import numpy as np
import pytest

from memory_service.indexes import arrays
from memory_service.indexes.arrays import GrowingArray


def resident_bytes() -> int:
    """Return this process's resident memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.parametrize("reserved_from", [1 << 20, 256])
def test_what_is_added_is_held(monkeypatch: pytest.MonkeyPatch, reserved_from: int) -> None:
    monkeypatch.setattr(arrays, "_RESERVED_FROM_BYTES", reserved_from)
    array, expected = GrowingArray(np.float32, width=3), []
    for number in range(200):
        rows = np.full((number % 7, 3), number, np.float32)
        array.extend(rows)
        expected += list(rows)
        array.append(np.full(3, -number))
        expected.append(np.full(3, -number, np.float32))
        assert len(array) == len(expected)
    assert np.array_equal(array.view, np.array(expected))
    array.clear()
    assert len(array.view) == 0


def test_a_large_one_is_rarely_copied_and_takes_no_memory_for_its_room() -> None:
    array = GrowingArray(np.uint8)
    places = set()
    before = resident_bytes()
    for _ in range(64):
        array.extend(np.ones(1 << 20, np.uint8))
        places.add(array.view.ctypes.data)
    assert len(places) < 8
    assert array.nbytes == 64 << 20
    # Not even half as much again, although eight times as much is reserved.
    assert resident_bytes() - before < 96 << 20


def test_where_nothing_may_be_reserved_it_grows_by_little(monkeypatch: pytest.MonkeyPatch) -> None:
    array = GrowingArray(np.uint8)
    array.extend(np.ones(2 << 20, np.uint8))
    empty = np.empty

    def strict(shape: tuple[int, ...], dtype: object) -> object:
        if shape[0] > 4 << 20:
            raise MemoryError
        return empty(shape, dtype)

    monkeypatch.setattr(arrays.np, "empty", strict)
    array.append(7)
    assert len(array) == (2 << 20) + 1
    assert array.view[-1] == 7
