"""What the server's write policy says of a write, before anything of it is embedded or stored."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memory_service.domain.provenance import provenance_of_caller
from memory_service.domain.quarantine import Quarantine
from memory_service.domain.search_text import leaves, whole_text
from memory_service.errors import WriteRejected
from memory_service.policies.base import Action, Proposal, WritePolicy
from memory_service.records import (
    UNATTRIBUTED,
    ChatMessage,
    Content,
    Facet,
    Item,
    ItemDraft,
    ItemKind,
    Json,
    Provenance,
    RequestKey,
    StateWrite,
    implied_source,
)
from memory_service.stores.base import Store


class Screening:
    """Asks a policy, and puts aside what it wants reviewed. All that callers write goes through it."""

    def __init__(self, store: Store, policy: WritePolicy | None, quarantine: Quarantine) -> None:
        self._store = store
        self._policy = policy
        self.quarantine = quarantine

    async def of_drafts(
        self,
        namespace: str,
        drafts: Sequence[ItemDraft],
        provenances: Sequence[Provenance | None],
        fields: Sequence[str],
        states: Sequence[StateWrite],
        request: RequestKey | None,
    ) -> dict[int, str]:
        """Return why items are to be put into quarantine, by their index. Raises WriteRejected."""
        if self._policy is None:
            return {}
        asked = [at for at, draft in enumerate(drafts) if not draft.own]
        named = [(fields[at], _proposal_of_draft(namespace, drafts[at], provenances[at])) for at in asked]
        named += [(f"states[{at}]", _proposal_of_state(namespace, s)) for at, s in enumerate(states)]
        reasons = await self._ask(self._policy, namespace, named, request)
        return {asked[at]: reason for at, reason in reasons.items()}

    async def of_update(self, namespace: str, item: Item, request: RequestKey | None) -> str | None:
        """Return why the next version of an item is to be put into quarantine. Raises WriteRejected."""
        if self._policy is None:
            return None
        proposal = _proposal(
            namespace, item.content, item.facet, item.session_id, item.labels, item.metadata, item.provenance
        )
        return (await self._ask(self._policy, namespace, [("item", proposal)], request)).get(0)

    async def of_state(self, namespace: str, state: StateWrite, request: RequestKey | None) -> None:
        """Ask for a value. Raises WriteRejected."""
        if self._policy is not None:
            named = [("value", _proposal_of_state(namespace, state))]
            await self._ask(self._policy, namespace, named, request)

    async def _ask(
        self,
        policy: WritePolicy,
        namespace: str,
        named: Sequence[tuple[str, Proposal]],
        request: RequestKey | None,
    ) -> dict[int, str]:
        """Return the reasons for a quarantine. What was applied before is answered alike, and not refused."""
        if not named:
            return {}
        verdicts = await policy.judge([proposal for _, proposal in named])
        if len(verdicts) != len(named):
            raise RuntimeError(f"the write policy gave {len(verdicts)} verdicts on {len(named)} proposals")
        stopped = {at: verdict for at, verdict in enumerate(verdicts) if verdict.action is not Action.ALLOW}
        if not stopped or (request and await self._store.find_receipt(namespace, request)):
            return {}
        for at, verdict in stopped.items():
            # A state has versions that a compare-and-set relies on: one cannot come in later.
            if verdict.action is Action.REJECT or named[at][1].kind is None:
                raise WriteRejected(named[at][0], verdict.reason)
        return {at: verdict.reason for at, verdict in stopped.items()}


def _proposal_of_draft(namespace: str, draft: ItemDraft, provenance: Provenance | None) -> Proposal:
    assert draft.content is not None
    return _proposal(
        namespace, draft.content, draft.facet, draft.session_id, draft.labels, draft.metadata, provenance
    )


def _proposal(
    namespace: str,
    content: Content,
    facet: Facet | None,
    session_id: str,
    labels: dict[str, str],
    metadata: dict[str, Json] | None,
    provenance: Provenance | None,
) -> Proposal:
    kind = facet.kind if facet else ItemKind.PLAIN
    known = provenance or UNATTRIBUTED
    # What a service keeps with an item is read, too: a title, a quote, a reasoning.
    kept = leaves(facet.attributes) if facet else ()
    return Proposal(
        namespace,
        "\n".join((whole_text(content), *kept)),
        kind,
        content.role if isinstance(content, ChatMessage) else None,
        session_id,
        labels,
        metadata,
        known,
        known.source or implied_source(kind, content),
    )


def _proposal_of_state(namespace: str, state: StateWrite) -> Proposal:
    known = state.provenance or provenance_of_caller() or UNATTRIBUTED
    told = leaves(msgspec.json.decode(state.value_json))
    text = "\n".join((state.key, state.description or "", *told))
    return Proposal(namespace, text, provenance=known)
