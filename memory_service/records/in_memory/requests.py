"""The applied requests of a namespace in memory, with their receipts and answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from memory_service.data_model import Receipt, RequestKey
from memory_service.records.rules.requests import STATES, kept_form, replayed, subjects
from memory_service.runtime.clock import now_us


@dataclass(slots=True)
class _Kept:
    digest: bytes
    receipt: Receipt
    whole: bytes
    """The answer, until anything it mentions is erased."""
    time_us: int


class Requests:
    """Receipts by request id, with each answer until anything it mentions is erased."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._told_of: defaultdict[str, set[str]] = defaultdict(set)

    def keep(self, request: RequestKey, receipt: Receipt) -> None:
        """Keep the receipt of a request."""
        if request.complete is not None:
            request.complete(receipt)
        whole = b""
        if (answer := receipt.answer) is not None:
            whole = answer.whole
            for subject in subjects(answer):
                self._told_of[subject].add(request.id)
        self._kept[request.id] = _Kept(request.digest, kept_form(receipt), whole, now_us())

    def find(self, request: RequestKey) -> Receipt | None:
        """Return the receipt of an applied request, if any. Raises FailedPrecondition."""
        if request.id not in self._kept:
            return None
        kept = self._kept[request.id]
        receipt = replayed(request, kept.digest, msgspec.structs.replace(kept.receipt))
        if receipt.answer is not None:
            receipt.answer = msgspec.structs.replace(receipt.answer, whole=kept.whole)
        return receipt

    def forget_told_of(self, subject: str) -> None:
        """Forget the answers that mention an item or a state."""
        self._forget_answers(self._told_of.pop(subject, ()))

    def forget_told_of_states(self) -> None:
        """Forget the answers that mention any state."""
        for subject in [subject for subject in self._told_of if subject.startswith(STATES)]:
            self.forget_told_of(subject)

    def forget_answers(self) -> None:
        """Forget all answers."""
        self._forget_answers(self._kept)
        self._told_of.clear()

    def _forget_answers(self, request_ids: Iterable[str]) -> None:
        for request_id in request_ids:
            if request_id in self._kept:
                self._kept[request_id].whole = b""

    def forget_before(self, before_us: int, answers_before_us: int) -> None:
        """Forget requests and answers older than the respective time."""
        self._kept = {key: kept for key, kept in self._kept.items() if kept.time_us >= before_us}
        self._forget_answers(key for key, kept in self._kept.items() if kept.time_us < answers_before_us)
        for subject, request_ids in list(self._told_of.items()):
            request_ids &= self._kept.keys()
            if not request_ids:
                del self._told_of[subject]
