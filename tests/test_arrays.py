"""Arrays in files: they are read as they were written, also by several threads at once."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memory_service.views.arrays import read_array, write_array

ARRAYS = [
    np.arange(5, dtype=np.int64),
    np.zeros(0, np.uint32),
    np.array([[1.5, 2], [3, 4], [5, 6]], np.float32),
    np.array([True, False]),
    np.array([(1, 2)], np.dtype([("a", "<u4"), ("b", "<i8")])),
]


def write(path: Path, *arrays: Any) -> Path:
    with path.open("wb") as file:
        for array in arrays:
            write_array(file, array)
    return path


def test_what_is_written_is_read_in_its_order(tmp_path: Path) -> None:
    with write(tmp_path / "arrays", *ARRAYS).open("rb") as file:
        for array in ARRAYS:
            read = read_array(file)
            assert (read.dtype, read.shape, read.tolist()) == (array.dtype, array.shape, array.tolist())
        with pytest.raises(ValueError):
            read_array(file)


@pytest.mark.parametrize("cut", [3, 60, 130])
def test_an_array_that_is_cut_short_is_refused(tmp_path: Path, cut: int) -> None:
    path = write(tmp_path / "arrays", ARRAYS[0])
    path.write_bytes(path.read_bytes()[:cut])
    with path.open("rb") as file, pytest.raises(ValueError):
        read_array(file)


def test_what_is_not_written_here_is_refused(tmp_path: Path) -> None:
    for array in (np.asfortranarray(ARRAYS[2]), np.array([{}])):
        np.save(tmp_path / "array.npy", array)
        with (
            (tmp_path / "array.npy").open("rb") as file,
            pytest.raises(ValueError, match="unknown kind"),
        ):
            read_array(file)


@pytest.fixture
def threads_change_within_a_parse() -> Iterator[None]:
    """The collector's callback lets another thread run, wherever it is called from."""

    def call(*_: object) -> None:
        for _ in range(200):
            pass

    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    gc.callbacks.append(call)
    gc.set_threshold(3)
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)
    gc.set_threshold(*threshold)
    gc.callbacks.remove(call)


@pytest.mark.usefixtures("threads_change_within_a_parse")
def test_many_threads_read_at_once(tmp_path: Path) -> None:
    path = write(tmp_path / "arrays", *ARRAYS)

    def read(_: int) -> None:
        with path.open("rb") as file:
            for array in ARRAYS:
                assert read_array(file).shape == array.shape

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(read, range(1000)))
