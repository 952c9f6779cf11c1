"""Asks the server's write policy about a write before anything is embedded or stored."""

from __future__ import annotations

from collections.abc import Sequence

from memory_service.data_model import Item, ItemDraft, Provenance, RequestKey, StateWrite
from memory_service.domain.proposals import proposal_of_draft, proposal_of_item, proposal_of_state
from memory_service.domain.quarantine import Quarantine
from memory_service.errors import WriteRejected
from memory_service.policies.base import Action, Proposal, WritePolicy
from memory_service.runtime.yielding import aside, each
from memory_service.store import Store


class Screening:
    """Asks a policy, and holds what it wants reviewed. All writes of callers go through it."""

    def __init__(self, store: Store, policy: WritePolicy | None, quarantine: Quarantine) -> None:
        self._store = store
        self._policy = policy
        self.quarantine = quarantine

    @property
    def asks(self) -> bool:
        """Whether there is a policy."""
        return self._policy is not None

    async def of_drafts(
        self,
        namespace: str,
        drafts: Sequence[ItemDraft],
        provenances: Sequence[Provenance | None],
        fields: Sequence[str],
        states: Sequence[StateWrite],
        request: RequestKey | None,
    ) -> dict[int, str]:
        """Return why items must be quarantined, by their index. Raises WriteRejected."""
        if self._policy is None:
            return {}
        asked = [at for at, draft in enumerate(drafts) if not draft.own]
        named = await each(
            lambda at: (fields[at], proposal_of_draft(namespace, drafts[at], provenances[at])), asked
        )
        named += await each(
            lambda at: (f"states[{at}]", proposal_of_state(namespace, states[at])), range(len(states))
        )
        reasons = await self._ask(self._policy, namespace, named, request)
        return {asked[at]: reason for at, reason in reasons.items()}

    async def of_update(
        self, namespace: str, item: Item, request: RequestKey | None, field: str = "item"
    ) -> str | None:
        """Return why the next version of an item must be quarantined. Raises WriteRejected."""
        if self._policy is None:
            return None
        named = await each(lambda next_one: (field, proposal_of_item(namespace, next_one)), [item])
        return (await self._ask(self._policy, namespace, named, request)).get(0)

    async def of_state(
        self, namespace: str, state: StateWrite, request: RequestKey | None, field: str = "value"
    ) -> None:
        """Ask about a state. Raises WriteRejected."""
        if self._policy is not None:
            named = await each(lambda value: (field, proposal_of_state(namespace, value)), [state])
            await self._ask(self._policy, namespace, named, request)

    async def _ask(
        self,
        policy: WritePolicy,
        namespace: str,
        named: Sequence[tuple[str, Proposal]],
        request: RequestKey | None,
    ) -> dict[int, str]:
        """Return the reasons for a quarantine.

        A request applied before gets its first response, without a rejection.
        """
        if not named:
            return {}
        verdicts = await aside(policy.judge([proposal for _, proposal in named]))
        if len(verdicts) != len(named):
            raise RuntimeError(f"the write policy gave {len(verdicts)} verdicts on {len(named)} proposals")
        stopped = {at: verdict for at, verdict in enumerate(verdicts) if verdict.action is not Action.ALLOW}
        if not stopped or (request and await self._store.find_receipt(namespace, request)):
            return {}
        for at, verdict in stopped.items():
            # A state cannot be applied later: compare-and-set relies on its versions.
            if verdict.action is Action.REJECT or named[at][1].kind is None:
                raise WriteRejected(named[at][0], verdict.reason)
        return {at: verdict.reason for at, verdict in stopped.items()}
