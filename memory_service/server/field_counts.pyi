from collections.abc import Sequence

PLAIN: int
PACKED: int

class FieldCounter:
    def __init__(self, types: Sequence[Sequence[int]], maps: Sequence[bool]) -> None: ...
    def count(
        self, raw: bytes, root: int, most: int, longest: int
    ) -> tuple[int, tuple[int, ...], int, int]: ...
