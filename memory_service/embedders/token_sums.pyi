"""Types of the compiled module."""

import numpy as np
from numpy.typing import NDArray

def unit_sum(vectors: NDArray[np.float32], words: list[list[int]]) -> NDArray[np.float32] | None: ...
