from collections.abc import Sequence

PLAIN: int
PACKED: int

class FieldCounter:
    def __init__(self, types: Sequence[Sequence[int]]) -> None: ...
    def count(self, raw: bytes, root: int, most: int) -> tuple[int, int, int]: ...
