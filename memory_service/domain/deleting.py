"""Deleting the items that match conditions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from memory_service.data_model import CONVERSATION_KINDS, Json, Receipt, RequestKey
from memory_service.domain.checks import Checks
from memory_service.domain.committing import Committing
from memory_service.domain.conflicts import TRIES, pause_after
from memory_service.domain.embedding import Degradation
from memory_service.domain.ids import session_item_id
from memory_service.domain.page_tokens import PageTokens
from memory_service.domain.retrieval import Retrieval
from memory_service.domain.retrieve_options import Selection
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
        if dry_run:
            first, last = self._page(scope, page_token)
            reading = await self._store.read(namespace)
            found = await reading.scan(selection.to_filter(first, last), -1, newest=False)
            return Deleted(len(found), reading.info.revision if reading.info else 0)
        return await self._delete_page(
            namespace, selection, scope, page_token, request, keep_derived=keep_derived
        )

    async def delete_session(
        self,
        namespace: str,
        session_id: str,
        *,
        keep_derived: bool,
        page_token: str,
        request: RequestKey | None,
    ) -> Deleted:
        """Delete the items of a session, up to the limit of one call, with what was derived only from them.
        The session's own item goes with the last of them, and does not count.
        """
        self._checks.namespace(namespace)
        if request is not None:
            self._checks.request_id(request.id)
        if not session_id:
            raise InvalidArgument("session_id", "is required")
        self._checks.session_id(session_id)
        scope = ("delete_session", namespace, keep_derived, session_id)
        return await self._delete_page(
            namespace,
            Selection(session_id),
            scope,
            page_token,
            request,
            keep_derived=keep_derived,
            own=session_item_id(session_id),
        )

    def _page(self, scope: tuple[object, ...], page_token: str) -> tuple[int, int | None]:
        """Return the positions of the first and the last item that a page may have."""
        if not page_token:
            return 0, None
        first, last = map(int, self._tokens.read(scope, page_token))
        return first, last

    async def _delete_page(
        self,
        namespace: str,
        selection: Selection,
        scope: tuple[object, ...],
        page_token: str,
        request: RequestKey | None,
        *,
        keep_derived: bool,
        own: str = "",
    ) -> Deleted:
        """Delete a page of the items that match; with the last page also the item with the id `own`."""
        first, last = self._page(scope, page_token)
        for attempt in range(TRIES):
            try:
                receipt = await self._delete(
                    namespace, selection, first, last, own, request, derived=not keep_derived
                )
            except Conflict as conflict:
                lost = conflict
            else:
                # Either the place of the next page, or on the last one how many items do not count.
                is_last = len(receipt.note) < 2
                count = receipt.removed_count - sum(receipt.note if is_last else ())
                token = "" if is_last else self._tokens.make(scope, receipt.note)
                return Deleted(count, receipt.revision, receipt.derived_count, token)
            await pause_after(attempt)
        raise lost

    async def _delete(
        self,
        namespace: str,
        selection: Selection,
        first: int,
        last: int | None,
        own: str,
        request: RequestKey | None,
        *,
        derived: bool,
    ) -> Receipt:
        """Delete one page. The receipt notes where the next one begins, or on the last page the number of
        items that do not count.
        """
        limit = self._checks.limits.delete_items_max
        reading = await self._store.read(namespace)
        revision = reading.info.revision if reading.info else 0
        bound = revision if last is None else last
        found = await reading.scan(selection.to_filter(first, bound), limit + 1, newest=False)
        is_last = len(found) <= limit
        uncounted = await self._positions(namespace, own) if own and is_last else []
        told: list[Json] = [len(uncounted)] if is_last else [found[limit], bound]

        def note(receipt: Receipt, _: list[Degradation]) -> None:
            receipt.note = told

        if not found and not uncounted and request is None:
            return Receipt(revision)
        removal = RemoveAt(sorted([*found[:limit], *uncounted]), revision, derived)
        receipt, _ = await self._committing.commit(namespace, [removal], request=request, note=note)
        if not receipt.replayed:
            receipt.note = told
        return receipt

    async def _positions(self, namespace: str, item_id: str) -> list[int]:
        found = await self._store.get_items(namespace, [item_id])
        return [item.position for item in found.values()]

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
