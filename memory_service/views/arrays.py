"""Arrays in files, one after the other, in the format of `numpy.save`."""

from __future__ import annotations

from math import prod
from threading import Lock
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

_header_parsing = Lock()


def write_array(file: IO[bytes], array: NDArray[Any]) -> None:
    """Write an array of numbers. Raises OSError."""
    np.save(file, array, allow_pickle=False)


def read_array(file: IO[bytes]) -> NDArray[Any]:
    """Read the next array of a file on disk. For any thread; raises ValueError if there is none.

    Replaces `numpy.load`, which parses the header by `ast.literal_eval`: in Python 3.11, threads that parse
    at the same time count each other's recursion and get a SystemError
    (https://github.com/python/cpython/issues/106905). Only the header is read under a lock: the rest may be
    long.
    """
    if npy.read_magic(file) != (1, 0):
        raise ValueError("unknown format of an array")
    with _header_parsing:
        shape, by_columns, dtype = npy.read_array_header_1_0(file)
    if by_columns or dtype.hasobject:
        raise ValueError("unknown kind of array")
    return np.fromfile(file, dtype, prod(shape)).reshape(shape)
