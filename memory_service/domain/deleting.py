"""Deleting the items that match conditions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from memory_service.data_model import CONVERSATION_KINDS, Json, Receipt, RequestKey
from memory_service.domain.checks import Checks
from memory_service.domain.committing import Committing
from memory_service.domain.conflicts import TRIES, pause_after
from memory_service.domain.embedding import Degradation
from memory_service.domain.page_tokens import PageTokens
from memory_service.domain.retrieval import Retrieval, Selection
from memory_service.errors import Conflict, InvalidArgument, LimitExceeded
from memory_service.operations import RemoveAt
from memory_service.store import Store


@dataclass(slots=True)
class Deleted:
    """The number of items that were deleted, of those derived from them, and where to continue."""

    count: int
    revision: int
    derived_count: int = 0
    next_page_token: str = ""


class Deleting:
    """Deletes items of conversations by conditions. Other items are deleted by their own services."""

    def __init__(
        self,
        store: Store,
        committing: Committing,
        retrieval: Retrieval,
        checks: Checks,
        tokens: PageTokens,
    ) -> None:
        self._store = store
        self._committing = committing
        self._retrieval = retrieval
        self._checks = checks
        self._tokens = tokens

    async def delete_where(
        self,
        namespace: str,
        selection: Selection,
        *,
        keep_derived: bool = False,
        dry_run: bool,
        page_token: str,
        request: RequestKey | None,
    ) -> Deleted:
        """Delete the items that match, up to the limit of one call, with what was derived only from them.
        With `dry_run` only count all that match.
        """
        self._checks.namespace(namespace)
        if request is not None:
            self._checks.request_id(request.id)
        self.check(selection)
        scope = ("delete_where", namespace, dry_run, keep_derived, *selection.scope())
        first, last = map(int, self._tokens.read(scope, page_token)) if page_token else (0, None)
        if dry_run:
            reading = await self._store.read(namespace)
            found = await reading.scan(selection.to_filter(first, last), -1, newest=False)
            return Deleted(len(found), reading.info.revision if reading.info else 0)
        for attempt in range(TRIES):
            try:
                receipt, place = await self._delete(
                    namespace, selection, first, last, request, derived=not keep_derived
                )
            except Conflict as conflict:
                lost = conflict
            else:
                token = self._tokens.make(scope, place) if place else ""
                return Deleted(receipt.removed_count, receipt.revision, receipt.derived_count, token)
            await pause_after(attempt)
        raise lost

    async def _delete(
        self,
        namespace: str,
        selection: Selection,
        first: int,
        last: int | None,
        request: RequestKey | None,
        *,
        derived: bool,
    ) -> tuple[Receipt, list[Json]]:
        """Delete one page; return also the place of the next one, empty at the end."""
        limit = self._checks.limits.delete_items_max
        reading = await self._store.read(namespace)
        revision = reading.info.revision if reading.info else 0
        bound = revision if last is None else last
        found = await reading.scan(selection.to_filter(first, bound), limit + 1, newest=False)
        place: list[Json] = [found[limit], bound] if len(found) > limit else []

        def note(receipt: Receipt, _: list[Degradation]) -> None:
            receipt.note = place

        if not found and request is None:
            return Receipt(revision), place
        removal = RemoveAt(found[:limit], revision, derived)
        receipt, _ = await self._committing.commit(namespace, [removal], request=request, note=note)
        return receipt, receipt.note if receipt.replayed else place

    async def find(
        self,
        namespace: str,
        selection: Selection,
        room: int,
        spared: Collection[int],
        field: str,
        *,
        derived: bool,
    ) -> RemoveAt:
        """Return the operation that deletes all that match, at most `room`, except at the spared positions.
        `derived`: with what was derived only from them.

        Raises LimitExceeded for `field`.
        """
        reading = await self._store.read(namespace)
        found = await reading.scan(selection.to_filter(), room + len(spared) + 1, newest=False)
        positions = [position for position in found if position not in spared]
        if len(positions) > room:
            limit = self._checks.limits.delete_items_max
            raise LimitExceeded(field, "delete_items_max", limit, limit - room + len(positions))
        return RemoveAt(positions, reading.info.revision if reading.info else 0, derived)

    def check(self, selection: Selection, prefix: str = "") -> None:
        """Check conditions. Raises InvalidArgument for a field, named after `prefix`."""
        if not selection.kinds <= CONVERSATION_KINDS:
            raise InvalidArgument(f"{prefix}kinds", "must be kinds of conversations")
        self._retrieval.check_selection(selection, prefix)
        if selection.kinds == CONVERSATION_KINDS and not selection.to_filter().selects:
            raise InvalidArgument(
                f"{prefix}session_id", "is required, or another condition; Reset deletes everything"
            )
