"""Types of the compiled module."""

from collections.abc import Sequence

Column = tuple[Sequence[float | None], float, float, float]

def best_of(scores: Sequence[float | None]) -> float: ...
def descending(
    positions: list[int], columns: list[Column], raised: list[float] | None, whole: float, limit: int
) -> list[tuple[float, int]]: ...
def relevances(
    wanted: list[int],
    positions: list[int],
    shares: Sequence[float] | None,
    cosines: Sequence[float | None] | None,
    unrelated: float,
    related: float,
) -> list[float]: ...
