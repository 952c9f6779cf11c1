"""Types of the compiled module."""

import numpy as np
from numpy.typing import NDArray

KERNELS: tuple[str, ...]

class QuantizedRows:
    def __init__(self, dimension: int, kernel: str = ...) -> None: ...
    @property
    def nbytes(self) -> int: ...
    def encode(self, matrix: NDArray[np.float32]) -> None: ...
    def nearest(
        self,
        matrix: NDArray[np.float32],
        live: NDArray[np.uint8],
        queries: NDArray[np.float32],
        k: int,
        over: NDArray[np.float32],
    ) -> list[tuple[NDArray[np.int64], NDArray[np.float32]]]: ...
