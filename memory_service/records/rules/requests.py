"""Requests that were applied: what is kept of their receipts and answers, and for how long.

A receipt is small and holds no contents, so it stays for its time. An answer that tells of items and states
is kept whole only as long as all of them: what removes one of them, or a version of it, forgets the answers
that tell of it, in the same step.
"""

from __future__ import annotations

import msgspec

from memory_service.data_model import Answer, Receipt, RequestKey
from memory_service.errors import FailedPrecondition

STATES = "state:"
"""How the subjects of all states begin."""


def of_item(item_id: str) -> str:
    """Return the subject that tells of an item."""
    return f"item:{item_id}"


def of_state(key: str) -> str:
    """Return the subject that tells of a state."""
    return STATES + key


def subjects(answer: Answer) -> set[str]:
    """Return what an answer tells of."""
    return {*map(of_item, answer.items), *map(of_state, answer.states)}


def kept_form(receipt: Receipt) -> Receipt:
    """Return what is kept of a receipt: all but contents, which have to go with what they are of."""
    kept = msgspec.structs.replace(receipt, description="")
    if kept.answer is not None:
        kept.answer = msgspec.structs.replace(kept.answer, whole=b"", items=[], states=[])
    return kept


def replayed(request: RequestKey, digest: bytes, receipt: Receipt) -> Receipt:
    """Return the receipt of a request that was applied before; refuse another body."""
    if digest != request.digest:
        raise FailedPrecondition.request_id_reused(request.id)
    receipt.replayed = True
    return receipt


def answers_since(requests_since_us: int, history_since_us: int | None) -> int:
    """Return from which time on answers are kept whole, by the time that their requests are, and versions.

    Of an older one, a version that it tells of may be kept no more. `history_since_us` None: none is kept,
    and answers go with the first write over what they tell of.
    """
    return max(requests_since_us, history_since_us or 0)
