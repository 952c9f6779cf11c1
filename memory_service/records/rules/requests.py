"""Applied requests: how much of their receipts and answers is kept, and for how long.

A receipt is small and has no contents, so it stays for its full time. An answer that mentions items and
states is kept whole only as long as all of them: removing one of them, or a version of it, forgets the
answers that mention it in the same step.
"""

from __future__ import annotations

import msgspec

from memory_service.data_model import Answer, Receipt, RequestKey
from memory_service.errors import FailedPrecondition

STATES = "state:"
"""The prefix of all subjects of states."""


def of_item(item_id: str) -> str:
    """Return the subject for an item."""
    return f"item:{item_id}"


def of_state(key: str) -> str:
    """Return the subject for a state."""
    return STATES + key


def subjects(answer: Answer) -> set[str]:
    """Return the subjects that an answer mentions."""
    return {*map(of_item, answer.items), *map(of_state, answer.states)}


def kept_form(receipt: Receipt) -> Receipt:
    """Return the part of a receipt that is kept: everything but contents, which go with their items and
    states.
    """
    kept = msgspec.structs.replace(receipt, description="")
    if kept.answer is not None:
        kept.answer = msgspec.structs.replace(kept.answer, whole=b"", items=[], states=[])
    return kept


def replayed(request: RequestKey, digest: bytes, receipt: Receipt) -> Receipt:
    """Return the receipt of an applied request; reject another body."""
    if digest != request.digest:
        raise FailedPrecondition.request_id_reused(request.id)
    receipt.replayed = True
    return receipt


def answers_since(requests_since_us: int, history_since_us: int | None) -> int:
    """Return the request time since which answers are kept whole.

    An older answer may mention a version that is no longer kept. With `history_since_us` None, no versions
    are kept, and answers are forgotten with the first write over anything they mention.
    """
    return max(requests_since_us, history_since_us or 0)
