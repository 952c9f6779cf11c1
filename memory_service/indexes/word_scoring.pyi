"""Types of the compiled module."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Found = tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]

class Segment:
    def __init__(
        self,
        terms: NDArray[np.uint32],
        starts: NDArray[np.int64],
        docs: NDArray[np.int32],
        counts: NDArray[np.uint16],
    ) -> None: ...

class Scratch:
    @property
    def nbytes(self) -> int: ...

class Tables:
    def __init__(
        self,
        segments: list[Segment],
        fresh: tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
        documents: tuple[NDArray[Any], NDArray[Any], int, int],
        rows: tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], float],
        weights: tuple[NDArray[np.float64], NDArray[np.float64]],
        scratch: Scratch,
        k1: float,
        b: float,
    ) -> None: ...

class Lookup:
    term_count: int
    def __init__(self, tables: Tables, terms: list[int], names: list[int]) -> None: ...
    def posting_count(self, all_allowed: bool, widths: tuple[int, int, int, int]) -> int: ...
    def use(self, scratch: Scratch) -> None: ...
    def search(
        self,
        allowed: NDArray[np.uint8] | None,
        near: NDArray[np.int32],
        count: int,
        widths: tuple[int, int, int, int],
    ) -> Found: ...
    def named_in(self, rows: NDArray[np.int32]) -> list[bool] | None: ...

def search_together(
    lookups: list[Lookup],
    allowed: list[NDArray[np.uint8] | None],
    near: list[NDArray[np.int32]],
    times: list[NDArray[np.int64]],
    count: int,
    widths: tuple[int, int, int, int],
) -> list[Found]: ...
