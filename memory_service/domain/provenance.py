"""Determines who wrote an item, from what, and how far to trust it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from memory_service.data_model import (
    UNATTRIBUTED,
    Item,
    ItemDraft,
    Provenance,
    ProvenanceDraft,
    RequestKey,
    SourceKind,
    StateWrite,
)
from memory_service.errors import InvalidArgument
from memory_service.runtime.caller import Caller, Role, present_caller
from memory_service.runtime.clock import now_us
from memory_service.store import Store

_PARENTS_KEPT_MAX = 100
_PROVENANCE_BYTES = 48
"""Approximate size of a provenance in an answer, without its texts and parents."""


def provenance_of_caller() -> Provenance | None:
    """Return the provenance of writes by the present caller without claims."""
    return _of_caller(present_caller())


@lru_cache(256)
def _of_caller(caller: Caller) -> Provenance | None:
    return _kept(Provenance(caller.name, caller.credential_id, trust=caller.trust))


def _kept(provenance: Provenance) -> Provenance | None:
    """Return a provenance as it is stored: an empty one takes no space."""
    return None if provenance == UNATTRIBUTED else provenance


def provenance_bytes(provenance: Provenance | None) -> int:
    """Return the approximate size of a provenance in an answer."""
    if provenance is None:
        return 0
    known = provenance
    texts = (known.writer, known.credential_id, known.source_uri, known.model, *known.parent_ids)
    return _PROVENANCE_BYTES + sum(len(text.encode()) + 3 for text in texts)


def missing_parents(drafts: Sequence[ItemDraft], provenances: Sequence[Provenance | None]) -> list[str]:
    """Return the parents that lenient claims name and that did not exist."""
    missing: dict[str, None] = {}
    for draft, provenance in zip(drafts, provenances, strict=True):
        if draft.provenance is not None and draft.provenance.lenient:
            known = (provenance or UNATTRIBUTED).parent_ids
            if len(known) < _PARENTS_KEPT_MAX:
                missing.update(
                    (parent, None) for parent in draft.provenance.parent_ids if parent not in known
                )
    return list(missing)


def provenance_again(
    said: ProvenanceDraft | None, writing: Provenance, missing: Sequence[str] = ()
) -> Provenance | None:
    """Return the provenance of an item for a repeated request with the same claims.

    `writing` holds its writer and trust; `missing` names the parents that did not exist.
    """
    if said is None:
        return _kept(writing)
    parents = tuple(parent for parent in said.parent_ids if parent not in missing)[:_PARENTS_KEPT_MAX]
    return _kept(
        msgspec.structs.replace(
            writing, source=said.source, source_uri=said.source_uri, parent_ids=parents, model=said.model
        )
    )


def attribute_states(states: Sequence[StateWrite]) -> None:
    """Set the writer of states."""
    own = provenance_of_caller()
    for state in states:
        state.provenance = own


def of_update(current: Item, *, whole: bool, content: bool) -> Provenance | None:
    """Return the provenance of the next version of an item, written by the present caller.

    A version that keeps anything of the previous one is trusted no more than that: otherwise correcting a
    label would raise the trust of another writer's text. `whole`: it keeps nothing. `content`: the content
    changes, and with it the claims about its source.
    """
    caller = present_caller()
    before = current.provenance or UNATTRIBUTED
    if whole or current.provenance is None:
        return _of_caller(caller)
    said = Provenance() if content else before
    return _kept(
        Provenance(
            caller.name, caller.credential_id, said.source, said.source_uri, said.parent_ids, said.model,
            min(caller.trust, before.trust),
        )
    )  # fmt: skip


class Attribution:
    """Determines the provenance of new items."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def of_drafts(
        self, namespace: str, drafts: Sequence[ItemDraft], fields: Sequence[str], request: RequestKey | None
    ) -> list[Provenance | None]:
        """Return the provenance of items that the present caller writes. Raises InvalidArgument.

        A parent is an item of the namespace, or an earlier one of the batch. Missing parents are rejected:
        their trust is unknown, and a reader could not look at them.
        """
        own = provenance_of_caller()
        if all(draft.provenance is None for draft in drafts):
            return [own] * len(drafts)
        trusts = await self._trusts(namespace, drafts)
        found: list[Provenance | None] = []
        for name, draft in zip(fields, drafts, strict=True):
            said = draft.provenance
            try:
                provenance = own if said is None else _attributed(f"{name}.provenance", said, trusts)
            except InvalidArgument:
                if request is None or await self._store.find_receipt(namespace, request) is None:
                    raise
                # The request was applied before: the parent is gone since then, and the answer is the
                # original one.
                provenance = own
            found.append(provenance)
            if draft.id:
                trusts[draft.id] = (provenance or UNATTRIBUTED).trust
        return found

    async def _trusts(self, namespace: str, drafts: Sequence[ItemDraft]) -> dict[str, float]:
        """Return the trust of the parents that exist already."""
        wanted = [
            parent
            for d in drafts
            if d.provenance and not d.provenance.imported
            for parent in d.provenance.parent_ids
        ]
        if not wanted:
            return {}
        now = now_us()
        items = await self._store.get_items(namespace, list(dict.fromkeys(wanted)))
        return {key: item.trust for key, item in items.items() if not item.expired(now)}


def _attributed(field: str, said: ProvenanceDraft, trusts: dict[str, float]) -> Provenance | None:
    caller = present_caller()
    if said.imported:
        return _imported(said, caller)
    known = [parent for parent in said.parent_ids if parent in trusts]
    if not said.lenient and len(known) < len(said.parent_ids):
        at = next(n for n, parent in enumerate(said.parent_ids) if parent not in trusts)
        raise InvalidArgument(f"{field}.parent_ids[{at}]", "is not an item of the namespace")
    least = min((trusts[parent] for parent in known), default=1.0)
    trust = min(caller.trust, least, 1.0 if said.trust is None else said.trust)
    return _kept(
        Provenance(
            caller.name, caller.credential_id, said.source, said.source_uri, tuple(known[:_PARENTS_KEPT_MAX]),
            said.model, trust,
        )
    )  # fmt: skip


def _imported(said: ProvenanceDraft, caller: Caller) -> Provenance | None:
    """Return the provenance of an imported item.

    Administrators restore exports, so the provenance is kept. For other callers it is a claim: they are the
    writers, the source is an import, and the trust is at most theirs and the claimed one.
    """
    claimed = said.claimed
    if Role.ADMIN in caller.roles:
        if claimed is None:
            return _of_caller(caller)
        written = None if claimed.write_us is None else min(claimed.write_us, now_us())
        trust = min(caller.trust, claimed.trust)
        return _kept(msgspec.structs.replace(claimed, write_us=written, trust=trust))
    known = claimed or UNATTRIBUTED
    return Provenance(
        caller.name, caller.credential_id, SourceKind.IMPORT, known.source_uri, known.parent_ids, known.model,
        min(caller.trust, known.trust),
    )  # fmt: skip
