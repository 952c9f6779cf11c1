"""The requests that were applied to a namespace in memory, with what they were answered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from memory_service.data_model import Receipt, RequestKey
from memory_service.records.rules import replayed
from memory_service.runtime.clock import now_us

_Kept = tuple[bytes, Receipt, int]
"""A digest, a receipt, and when it was kept."""


class Requests:
    """Receipts by the ids of their requests; answers only as long as all that they tell of."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._of_items: defaultdict[str, set[str]] = defaultdict(set)
        self._of_states: defaultdict[str, set[str]] = defaultdict(set)

    def keep(self, request: RequestKey, receipt: Receipt) -> None:
        """Keep the receipt of a request."""
        if request.complete is not None:
            request.complete(receipt)
        kept = msgspec.structs.replace(receipt)
        if (answer := receipt.answer) is not None:
            kept.answer = msgspec.structs.replace(answer)
            for item_id in answer.items:
                self._of_items[item_id].add(request.id)
            for key in answer.states:
                self._of_states[key].add(request.id)
        self._kept[request.id] = request.digest, kept, now_us()

    def find(self, request: RequestKey) -> Receipt | None:
        """Return the receipt of a request that was applied before. Raises FailedPrecondition."""
        if request.id not in self._kept:
            return None
        digest, receipt, _ = self._kept[request.id]
        return replayed(request, digest, msgspec.structs.replace(receipt))

    def forget_told_of_item(self, item_id: str) -> None:
        """Forget the answers that tell of an item, of which something is forgotten."""
        self._forget_answers(self._of_items.pop(item_id, ()))

    def forget_told_of_state(self, key: str) -> None:
        """Forget the answers that tell of a state, of which something is forgotten."""
        self._forget_answers(self._of_states.pop(key, ()))

    def forget_told_of_states(self) -> None:
        """Forget the answers that tell of any state."""
        for key in list(self._of_states):
            self.forget_told_of_state(key)

    def forget_answers(self) -> None:
        """Forget all answers."""
        self._forget_answers(self._kept)
        self._of_items.clear()
        self._of_states.clear()

    def _forget_answers(self, request_ids: Iterable[str]) -> None:
        for request_id in request_ids:
            if request_id in self._kept and (answer := self._kept[request_id][1].answer) is not None:
                answer.whole = b""

    def forget_before(self, before_us: int) -> None:
        """Forget requests that are older than this."""
        self._kept = {key: kept for key, kept in self._kept.items() if kept[2] >= before_us}
        for told in (self._of_items, self._of_states):
            for name, request_ids in list(told.items()):
                request_ids &= self._kept.keys()
                if not request_ids:
                    del told[name]
