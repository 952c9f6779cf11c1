"""Applied requests on a page; see `rules/requests.py`."""

from __future__ import annotations

import msgspec

from memory_service.data_model import Receipt, RequestKey
from memory_service.records.postgres.page import KeptRequest, Page
from memory_service.records.rules.requests import kept_form, replayed, subjects
from memory_service.runtime.clock import now_us

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Receipt).decode


def earlier(page: Page, request: RequestKey | None) -> Receipt | None:
    """Return the receipt of a request that was already applied. Raises FailedPrecondition."""
    if request is None or request.id not in page.requests:
        return None
    kept = page.requests[request.id]
    if kept.state_key is not None and kept.time_us:
        kept.description = _description(page, kept)
    return receipt_of(request, kept)


def receipt_of(request: RequestKey, kept: KeptRequest) -> Receipt:
    """Return the receipt of a kept request. Raises FailedPrecondition."""
    receipt = replayed(request, kept.digest, _decode(kept.receipt))
    if receipt.version:
        receipt.description = kept.description
    if receipt.answer is not None:
        receipt.answer = msgspec.structs.replace(receipt.answer, whole=kept.whole or b"")
    return receipt


def _description(page: Page, kept: KeptRequest) -> str:
    """Return the description of a state saved by the group, if it still exists."""
    stored = page.states.get(kept.state_key or "")
    return stored.description if stored is not None and stored.version == kept.state_version else ""


def finish(
    page: Page, request: RequestKey | None, receipt: Receipt, *, state_key: str | None = None
) -> Receipt:
    """Complete a receipt and record the request."""
    assert page.book is not None
    receipt.revision = page.book.revision
    if request is None:
        return receipt
    if request.complete is not None:
        request.complete(receipt)
    whole, told = None, frozenset[str]()
    if receipt.answer is not None:
        whole, told = receipt.answer.whole, frozenset(subjects(receipt.answer))
    kept = KeptRequest(
        request.digest,
        _encode(kept_form(receipt)).decode(),
        whole,
        state_key,
        receipt.version if state_key is not None else None,
        receipt.description,
        told,
        now_us(),
    )
    page.requests[request.id] = page.pending.requests[request.id] = kept
    return receipt
