"""Types of the compiled module."""

import numpy as np
from numpy.typing import NDArray

def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]: ...
def inner_products(
    matrix: NDArray[np.float32], rows: NDArray[np.int32], query: NDArray[np.float32]
) -> NDArray[np.float32]: ...
def scores_of_rows(
    rows: NDArray[np.int32],
    row_slot: NDArray[np.int32],
    slot_label: NDArray[np.int32],
    labelled: NDArray[np.float32],
    others: NDArray[np.float32],
    query: NDArray[np.float32],
) -> list[float | None]: ...
