"""The terms of what a write adds to the word index, computed before the write waits for its turn."""

from __future__ import annotations

from collections.abc import Sequence

from memory_service.indexes.analysis import Analyzer
from memory_service.operations import AddItems, Operation, ReplaceItem
from memory_service.runtime.yielding import each


async def terms_of(analyzer: Analyzer, operations: Sequence[Operation]) -> list[Sequence[bytes]]:
    """Return for each operation the packed terms of the items that it writes."""
    return [await _terms_of(analyzer, operation) for operation in operations]


async def _terms_of(analyzer: Analyzer, operation: Operation) -> Sequence[bytes]:
    match operation:
        case AddItems(writes):
            return await each(analyzer.item_terms, writes)
        case ReplaceItem(write):
            return [analyzer.item_terms(write)]
    return ()
