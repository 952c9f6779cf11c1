"""Repeatable requests, and their stored responses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from memory_service.data_model import Answer, Item, Receipt, RequestKey
from memory_service.runtime.caller import present_caller
from memory_service.runtime.clock import now_us
from memory_service.store import Store

R = TypeVar("R")


class Repeated(Exception):
    """The request was applied before: `receipt` has its answer."""

    def __init__(self, receipt: Receipt) -> None:
        super().__init__("the request was applied before")
        self.receipt = receipt


@dataclass
class Answering(Generic[R]):
    """A request that may be repeated, whose answer is stored in its encoded form.

    `encode` encodes the answer, within the transaction of the write and in its thread.
    """

    key: RequestKey
    encode: Callable[[R], Answer]
    answer: Answer | None = None

    def tell(self, receipt: Receipt, result: R) -> None:
        """Put the response into the receipt."""
        self.answer = receipt.answer = self.encode(result)


async def check_new(store: Store, namespace: str, request: Answering[R] | None) -> None:
    """Raise Repeated if the request was applied before."""
    receipt = None if request is None else await store.find_receipt(namespace, request.key)
    if receipt is not None:
        raise Repeated(receipt)


async def keep_answer(
    store: Store, namespace: str, request: Answering[R], result: R, at: Callable[[int], None]
) -> None:
    """Store the answer to a request that wrote nothing. `at` receives the revision that it is of.

    Raises Repeated if an equal request was faster.
    """

    def complete(receipt: Receipt) -> None:
        at(receipt.revision)
        request.tell(receipt, result)

    key = replace(request.key, complete=complete)
    receipt = await store.record_request(namespace, Receipt(0), key, by=present_caller())
    if receipt.replayed:
        raise Repeated(receipt)


async def live_versions(
    store: Store, namespace: str, versions: Sequence[tuple[str, int]]
) -> dict[tuple[str, int], Item]:
    """Return versions of items that are still stored and have not expired."""
    found = await store.get_versions(namespace, versions)
    now = now_us()
    return {version: item for version, item in found.items() if not item.expired(now)}
