"""Adding, reading, changing and deleting items."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from weakref import WeakValueDictionary

import msgspec

from memory_service.data_model import (
    CONVERSATION_KINDS,
    Item,
    ItemDraft,
    OnDuplicate,
    Provenance,
    Receipt,
    RequestKey,
    Since,
    StateWrite,
)
from memory_service.domain.answers import live_versions
from memory_service.domain.checks import Checks
from memory_service.domain.committing import Committing
from memory_service.domain.conflicts import TRIES, pause_after
from memory_service.domain.embedding import Degradation, TextEmbedding
from memory_service.domain.item_writing import (
    NOTHING_REMEMBERED,
    Added,
    Complete,
    Remembered,
    added_of,
    changed_item,
    forget_parents,
    nothing_to_change,
    of_fields,
    stamped,
    write_of,
    written_items,
    written_then,
)
from memory_service.domain.late_parents import LateParents
from memory_service.domain.ordering import to_ordering
from memory_service.domain.page_tokens import PageTokens
from memory_service.domain.provenance import Attribution, attribute_states, missing_parents, provenance_again
from memory_service.domain.quarantine import Intended
from memory_service.domain.refreshing import refreshed
from memory_service.domain.result_pages import PageShape
from memory_service.domain.retrieval import Retrieval
from memory_service.domain.retrieve_options import Page, Selection
from memory_service.domain.screening import Screening
from memory_service.errors import Conflict, InvalidArgument, LimitExceeded, NotFound
from memory_service.operations import AddItems, Operation, RemoveItem, RemoveItems, ReplaceItem, SaveStates
from memory_service.ordering import Ordering
from memory_service.records.base import ParentsMissing
from memory_service.runtime.caller import present_caller
from memory_service.runtime.clock import now_us
from memory_service.runtime.yielding import aside, each
from memory_service.store import Store


class Items:
    """Adds, reads, changes and deletes items."""

    def __init__(
        self,
        store: Store,
        embedding: TextEmbedding,
        retrieval: Retrieval,
        checks: Checks,
        tokens: PageTokens,
        screening: Screening,
    ) -> None:
        self._store = store
        self._screening = screening
        self.attribution = Attribution(store)
        self.committing = Committing(store, embedding, checks.limits.delete_items_max)
        self._retrieval = retrieval
        self._checks = checks
        self._tokens = tokens
        self._turns: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    # --- adding -------------------------------------------------------------------------------

    def check_batch(self, items: int, states: int = 0) -> None:
        """Reject a batch with too many items or states before it is converted: a million take long."""
        self._checks.size("items", items, "batch_items_max")
        self._checks.size("states", states, "batch_items_max")

    def check_namespace(self, namespace: str) -> None:
        """Check the name of a namespace, before anything else of an import."""
        self._checks.namespace(namespace)

    async def add(
        self,
        namespace: str,
        drafts: Sequence[ItemDraft],
        *,
        fields: Sequence[str],
        states: Sequence[StateWrite] = (),
        removals: Sequence[str] = (),
        derived: bool = False,
        on_duplicate: OnDuplicate = OnDuplicate.FAIL,
        request: RequestKey | None = None,
        bounded: bool = False,
        apart: bool = False,
        unchanged: Since | None = None,
        remembered: Remembered = NOTHING_REMEMBERED,
        complete: Complete | None = None,
    ) -> Added:
        """Remove items, write items and states, all or none; see `WriteStore.add_items`.

        `derived`: also remove what was made only from the removed items. A held write does not remember it.
        `fields` names each item in errors. `bounded`: the caller limits the number of items itself. If the
        write policy wants a review, everything is put into quarantine, or with `apart` only the items
        concerned. `remembered` goes into the receipt, also of a released write. `complete` is called with the
        result of a request that is applied for the first time.
        """
        self._checks.namespace(namespace)
        if request is not None:
            self._checks.request_id(request.id)
        self.check_batch(0 if bounded else len(drafts), len(states))
        now = now_us()
        await each(lambda named: self._checks.new_draft(*named, now), zip(fields, drafts, strict=True))
        for at, state in enumerate(states):
            self._check_state(f"states[{at}]", state)
        # An import may restore the items of every service.
        if on_duplicate is OnDuplicate.REPLACE and not apart:
            await self._check_replaceable(namespace, drafts, fields)
        await self.check_dimensions(namespace, drafts, fields)
        await self.check_room(namespace, len(drafts) - len(removals), request)
        attribute_states(states)
        intended = Intended([], removals, on_duplicate, request, remembered)
        for attempt in range(TRIES):
            try:
                return await self._add_once(
                    namespace, drafts, fields, states, intended, now,
                    derived=derived, apart=apart, unchanged=unchanged, complete=complete,
                )  # fmt: skip
            except ParentsMissing as missing:
                # A parent was removed after its trust was read.
                lost = missing
            await pause_after(attempt)
        raise lost

    async def _add_once(
        self,
        namespace: str,
        drafts: Sequence[ItemDraft],
        fields: Sequence[str],
        states: Sequence[StateWrite],
        intended: Intended,
        now: int,
        *,
        derived: bool,
        apart: bool,
        unchanged: Since | None,
        complete: Complete | None,
    ) -> Added:
        """Write checked items and states. Raises ParentsMissing."""
        request = intended.request
        provenances = await self.attribution.of_drafts(namespace, drafts, fields, request)
        reasons = await self._screening.of_drafts(namespace, drafts, provenances, fields, states, request)
        attributed = zip(drafts, provenances, strict=True)
        writes = await each(lambda draft: write_of(*draft, now), attributed)
        quarantined: list[Degradation] = []
        intended = dataclasses.replace(intended, writes=writes)
        if request is not None and (missing := missing_parents(drafts, provenances)):
            intended.remembered = msgspec.structs.replace(intended.remembered, missing_parents=missing)
        if reasons and not apart:
            return await self._put_aside(namespace, intended, next(iter(reasons.values())))
        if reasons:
            quarantined = await self._screening.quarantine.put_apart(
                namespace, [writes[at] for at in reasons], list(reasons.values()), intended.on_duplicate
            )
            intended.writes = [write for at, write in enumerate(writes) if at not in reasons]
        added = await self._write_all(
            namespace, intended, states, derived=derived, unchanged=unchanged, complete=complete
        )
        if added.receipt.replayed:
            await self._recall(namespace, added, drafts)
        added.degraded = [*added.degraded, *quarantined]
        return added

    async def _recall(self, namespace: str, added: Added, drafts: Sequence[ItemDraft]) -> None:
        """Replace the result of a repeated request by what its first execution wrote.

        A service's data of an item depends on the state at that time, so it is read from the stored item if
        that exists.
        """
        again = list(written_then(added, drafts))
        missing = added.receipt.missing_parents
        added.items = [
            stamped(item, stamp, provenance_again(draft.provenance, writing, missing))
            for item, draft, stamp, writing in again
        ]
        own = [(stamp.id, stamp.revision) for _, draft, stamp, _ in again if draft.facet]
        versions = await live_versions(self._store, namespace, own)
        added.items = [versions.get((item.id, item.revision), item) for item in added.items]

    async def _check_replaceable(
        self, namespace: str, drafts: Sequence[ItemDraft], fields: Sequence[str]
    ) -> None:
        """Reject drafts of conversations that would replace what another service keeps."""
        named = {draft.id: field for draft, field in zip(drafts, fields, strict=True) if not draft.facet}
        named.pop("", None)
        current = await self._store.get_items(namespace, list(named)) if named else {}
        for item in current.values():
            if not item.expired(now_us()):
                check_own(item, f"{named[item.id]}.id")

    def late_parents(self, namespace: str) -> LateParents:
        """Return what links the items of an import."""
        return LateParents(self._store, namespace)

    async def provenance_of(self, namespace: str, draft: ItemDraft) -> Provenance | None:
        """Return the provenance that an item would have if it were added now. Raises InvalidArgument."""
        (provenance,) = await self.attribution.of_drafts(namespace, [draft], ["item"], None)
        return provenance

    async def _put_aside(self, namespace: str, intended: Intended, reason: str) -> Added:
        """Put a write into quarantine; return its items as they would be."""
        items, degradation = await self._screening.quarantine.put(namespace, intended, reason)
        info = await self._store.namespace(namespace)
        return Added(items, Receipt(info.revision if info else 0), [degradation])

    async def release(self, namespace: str, held_id: str) -> Added:
        """Apply a quarantined write now. Raises NotFound, also for an item whose parents were all removed
        since then, and what the write raises.
        """
        intended = await self._screening.quarantine.intended(namespace, held_id)
        await self.check_room(namespace, len(intended.writes) - len(intended.removals), intended.request)
        while True:
            try:
                return await self._write_all(namespace, intended, released=held_id)
            except ParentsMissing as missing:
                forget_parents(namespace, intended.writes, missing.ids)

    async def _write_all(
        self,
        namespace: str,
        intended: Intended,
        states: Sequence[StateWrite] = (),
        released: str = "",
        *,
        derived: bool = False,
        unchanged: Since | None = None,
        complete: Complete | None = None,
    ) -> Added:
        writes = intended.writes
        operations: list[Operation] = []
        if intended.removals:
            operations.append(RemoveItems(intended.removals, derived))
        operations.append(AddItems(writes, intended.on_duplicate))
        if states:
            operations.append(SaveStates(states, intended.on_duplicate))

        def note(receipt: Receipt, degraded: list[Degradation]) -> None:
            intended.remembered.put_into(receipt)
            if complete is not None:
                complete(Added(written_items(writes, receipt), receipt, degraded))

        receipt, degraded = await self.committing.commit(
            namespace, operations, request=intended.request, released=released, unchanged=unchanged, note=note
        )
        return added_of(writes, receipt, degraded)

    async def check_room(self, namespace: str, more: int, request: RequestKey | None) -> None:
        """Reject more items than a namespace may have; replacements count as additional items."""
        limit = self._checks.limits.namespace_items_max
        if not limit or more <= 0:
            return
        info = await self._store.namespace(namespace)
        count = more + (info.item_count if info else 0)
        # A repeated request gets its first response.
        if count > limit and (request is None or await self._store.find_receipt(namespace, request) is None):
            raise LimitExceeded("items", "namespace_items_max", limit, count)

    async def check_dimensions(
        self, namespace: str, drafts: Sequence[ItemDraft], fields: Sequence[str]
    ) -> None:
        """Check dimensions of vectors early, while it is known which item has a wrong one."""
        own = [(f, d.embedding) for f, d in zip(fields, drafts, strict=True) if d.embedding is not None]
        info = await self._store.namespace(namespace) if own else None
        dimension = info.dimension if info else 0
        for field_name, vector in own:
            dimension = dimension or len(vector)
            if len(vector) != dimension:
                raise InvalidArgument.dimension(f"{field_name}.embedding", dimension, len(vector))

    def _check_state(self, field: str, state: StateWrite) -> None:
        self._checks.name(f"{field}.key", state.key, self._checks.limits.state_key_bytes_max)
        self._checks.size(f"{field}.value", len(state.value_json), "state_value_bytes_max")
        self._checks.size(f"{field}.value", state.nbytes, "state_encoded_bytes_max")
        self._checks.description(f"{field}.description", state.description or "")
        self._checks.expiry(field, state.expire_us, None, state.now_us)

    # --- reading ------------------------------------------------------------------------------

    async def get(
        self, namespace: str, item_id: str, *, include_embedding: bool, refresh_ttl: bool = False
    ) -> Item:
        """Return an item; with `refresh_ttl` it lives for its time to live from now. Raises NotFound."""
        self._checks.namespace(namespace)
        self._checks.item_id(item_id)
        found = await self._store.get_items(namespace, [item_id], with_embedding=include_embedding)
        item = found.get(item_id)
        if item is None or item.expired(now_us()):
            raise NotFound.item(namespace, item_id)
        return (await refreshed(self._store, namespace, [item]))[0] if refresh_ttl else item

    async def list_items(
        self,
        namespace: str,
        selection: Selection,
        *,
        page_size: int,
        page_token: str,
        newest_first: bool,
        include_embedding: bool,
        order_by: str = "",
        skip: int = 0,
    ) -> Page:
        """Return a page of items in the order in which they were added, in reverse, or by a field.

        The first `skip` items are left out.
        """
        self._checks.namespace(namespace)
        self._retrieval.check_selection(selection)
        self._checks.count("skip", skip)
        size = self._checks.page_size(page_size)
        scope = ("list", namespace, newest_first, include_embedding, order_by, skip, *selection.scope())
        if order_by:
            if newest_first:
                raise InvalidArgument(
                    "newest_first", 'cannot be given together with order_by; append "desc" there'
                )
            ordering = to_ordering("order_by", order_by, self._checks)
            shape = PageShape(size, 0, selection.trusts, include_embedding)
            return await self._ordered(namespace, selection, ordering, skip, shape, scope, page_token)
        bound = int(self._tokens.read(scope, page_token)[0]) if page_token else None
        reading = await self._store.read(namespace)
        info = reading.info
        if info is None:
            return Page([], 0)
        if newest_first:
            wanted = selection.to_filter(max_position=bound)
        else:
            wanted = selection.to_filter(min_position=bound or 0)
        skip = 0 if page_token else skip
        positions = await reading.scan(wanted, skip + size + 1, newest=newest_first)
        if newest_first:
            positions.reverse()
        items, rest = await self._retrieval.pages.load_page(
            reading, positions[skip:], size, include_embedding
        )
        token = self._tokens.make(scope, [rest]) if rest is not None else ""
        return Page(items, info.revision, token)

    async def _ordered(
        self,
        namespace: str,
        selection: Selection,
        ordering: Ordering,
        skip: int,
        shape: PageShape,
        scope: tuple[object, ...],
        page_token: str,
    ) -> Page:
        ordered = self._retrieval.ordered
        place = ordered.place(scope, page_token, "page_token")
        reading = await self._store.read(namespace)
        if reading.info is None:
            return Page([], 0)
        page = await ordered.load(reading, selection.to_filter(), ordering, skip, place, shape, scope)
        return Page(page.items, reading.info.revision, page.next_page_token)

    # --- changing -----------------------------------------------------------------------------

    async def update(
        self,
        namespace: str,
        draft: ItemDraft,
        fields: frozenset[str],
        *,
        expected_revision: int | None,
        request: RequestKey | None,
    ) -> Added:
        """Change the fields of an item that `fields` names. Raises NotFound, Conflict."""
        self._checks.namespace(namespace)
        self._checks.item_id(draft.id, "item.id")
        if request is not None:
            self._checks.request_id(request.id)
        self.check_changes(draft, fields)
        # Updates of one item take turns within this server: each would void what the others have read.
        turn = self._turns.setdefault((namespace, draft.id), asyncio.Lock())
        await aside(turn.acquire())
        try:
            for attempt in range(TRIES):
                try:
                    return await self._update_once(namespace, draft, fields, expected_revision, request)
                except Conflict as conflict:
                    if expected_revision is not None:
                        raise
                    last = conflict
                await pause_after(attempt)
            raise last
        finally:
            turn.release()

    def check_changes(self, draft: ItemDraft, fields: frozenset[str], prefix: str = "") -> None:
        """Check the changed fields, as if an item were added with them alone."""
        if not fields:
            raise InvalidArgument(f"{prefix}update_mask", "names no field to change")
        self._checks.draft(f"{prefix}item", of_fields(draft, fields), now_us())

    async def _update_once(
        self,
        namespace: str,
        draft: ItemDraft,
        fields: frozenset[str],
        expected_revision: int | None,
        request: RequestKey | None,
    ) -> Added:
        now = now_us()
        current = (await self._store.get_items(namespace, [draft.id])).get(draft.id)
        if current is None and request is None:
            raise NotFound.item(namespace, draft.id)
        # The item of a repeated request may be gone: the store has the original answer.
        if current is not None:
            check_own(current, "item.id")
        base = current or nothing_to_change(draft, now)
        write = changed_item(base, draft, fields, now)
        if reason := await self._screening.of_update(namespace, write.item, request):
            if current is None:
                raise NotFound.item(namespace, draft.id)
            if expected_revision not in (None, current.revision):
                raise Conflict.revision(draft.id, expected_revision or 0, current.revision)
            write.expected_revision = current.revision
            intended = Intended([write], on_duplicate=OnDuplicate.REPLACE, request=request)
            return await self._put_aside(namespace, intended, reason)
        expected = base.revision if expected_revision is None and current else expected_revision
        receipt, degraded = await self.committing.commit(
            namespace, [ReplaceItem(write, expected)], request=request
        )
        added = added_of([write], receipt, degraded)
        if receipt.replayed:
            added.items = [await self._updated_then(namespace, draft, fields, receipt)]
        return added

    async def _updated_then(
        self, namespace: str, draft: ItemDraft, fields: frozenset[str], receipt: Receipt
    ) -> Item:
        """Return the version that an update wrote; if it is gone, the item according to the request."""
        ((stamp, writing),) = receipt.written()
        version = stamp.id, stamp.revision
        found = await live_versions(self._store, namespace, [version])
        if version in found:
            return found[version]
        changed = changed_item(nothing_to_change(draft, stamp.update_us), draft, fields, stamp.update_us)
        return stamped(changed.item, stamp, provenance_again(None, writing))

    async def delete(
        self,
        namespace: str,
        item_id: str,
        *,
        expected_revision: int | None,
        request: RequestKey | None,
        keep_derived: bool = False,
    ) -> Receipt:
        """Remove an item, with what was derived only from it. Raises NotFound, Conflict."""
        self._checks.namespace(namespace)
        self._checks.item_id(item_id)
        if request is not None:
            self._checks.request_id(request.id)
        current = (await self._store.get_items(namespace, [item_id])).get(item_id)
        if current is not None:
            check_own(current, "id")
        removal = RemoveItem(item_id, now_us(), expected_revision, derived=not keep_derived)
        receipt, _ = await self.committing.commit(namespace, [removal], request=request)
        return receipt

    async def reset(self, namespace: str, *, request: RequestKey | None) -> Receipt:
        """Remove everything in a namespace."""
        self._checks.namespace(namespace)
        if request is not None:
            self._checks.request_id(request.id)
        # A repeatable request is remembered: its repetition must not remove what is written in between.
        if request is None and await self._store.namespace(namespace) is None:
            return Receipt(0)
        return await self._store.reset(namespace, request=request, by=present_caller())


def check_own(item: Item, field: str) -> None:
    """Reject changes to what another service stores in several items."""
    if item.kind not in CONVERSATION_KINDS:
        name = item.kind.name.lower().replace("_", " ")
        raise InvalidArgument(field, f"is a {name}: use its service to change or delete it")
