"""Types of the compiled module."""

import numpy as np
from numpy.typing import NDArray

def inner_products(
    matrix: NDArray[np.float32], rows: NDArray[np.int32], query: NDArray[np.float32]
) -> NDArray[np.float32]: ...
