"""Corrects and deletes memories."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from memory_service.data_model import Receipt, RequestKey, Since
from memory_service.deciders.base import EXPLICIT_REQUEST, Adjustment, Deciding, Importance
from memory_service.decisions import DecidedBy
from memory_service.domain.answers import Answering, check_new
from memory_service.domain.conflicts import TRIES, pause_after
from memory_service.domain.derivation import superseded_by
from memory_service.domain.facts.outcomes import Outcome, Planned, Saved
from memory_service.domain.facts.saving import FactSaving, check_content, check_reasoning, reworded
from memory_service.domain.facts.settling import Parts
from memory_service.domain.facts.user_memory import Status, UserMemory
from memory_service.domain.item_writing import Added
from memory_service.errors import Conflict, InvalidArgument
from memory_service.runtime.clock import now_us

CORRECTABLE = frozenset(
    (
        "content",
        "category",
        "reasoning",
        "importance",
        "valid_from_time",
        "valid_until_time",
        "expire_time",
        "ttl",
        "labels",
        "metadata",
    )
)
_BY_HAND = "manual"


class Correction(msgspec.Struct):
    """The new values of a memory: the fields of `memory` that `fields` names. `importance_score` is
    separate.
    """

    memory: UserMemory
    fields: frozenset[str]
    importance_score: float = 0.0
    ttl_us: int | None = None
    expected_version: int | None = None
    keep_wording: bool = False


class FactCorrecting:
    """Corrects and deletes stored memories."""

    def __init__(self, parts: Parts, saving: FactSaving) -> None:
        self._parts = parts
        self._saving = saving

    # --- correcting -----------------------------------------------------------------------------

    async def update(
        self, namespace: str, correction: Correction, decide_by: DecidedBy, request: Answering[Saved] | None
    ) -> Saved:
        """Correct a memory. Raises NotFound, Conflict, Repeated."""
        self._check(namespace, correction, request)
        deciding = self._parts.begin(decide_by, namespace)
        await check_new(self._parts.store, namespace, request)
        content, rephrased_by = correction.memory.content, DecidedBy.UNSPECIFIED
        if "content" in correction.fields and not correction.keep_wording:
            content, rephrased_by = await reworded(content, deciding)

        async def plan() -> Planned:
            await check_new(self._parts.store, namespace, request)
            return await self._plan(namespace, correction, content, deciding)

        async def write(planned: Planned, since: Since) -> Saved:
            planned.saved.rephrased_by, planned.saved.deciding = rephrased_by, deciding
            return await self._write(namespace, planned, since, request)

        slow = bool(deciding.model) and "content" in correction.fields
        return await self._parts.settle(namespace, plan, write, slow=slow)

    def _check(self, namespace: str, correction: Correction, request: Answering[Saved] | None) -> None:
        checks, new, fields = self._parts.checks, correction.memory, correction.fields
        checks.namespace(namespace)
        if request is not None:
            checks.request_id(request.key.id)
        checks.item_id(new.id, "memory.id")
        if not fields:
            raise InvalidArgument("update_mask", "names no field to change")
        if "content" in fields:
            check_content("memory.content", new.content)
        if "reasoning" in fields:
            check_reasoning("memory.reasoning", new.fact.reasoning)
        if "labels" in fields:
            checks.labels("memory.labels", new.labels)
        if "metadata" in fields and new.metadata is not None:
            checks.metadata("memory.metadata", new.metadata)
        if "importance" in fields and not 0 <= correction.importance_score < math.inf:
            raise InvalidArgument("memory.importance.score", "must be a finite number of at least 0")
        ttl = correction.ttl_us if "ttl" in fields else None
        checks.expiry("memory", new.expire_us if "expire_time" in fields else None, ttl, now_us())

    async def _plan(
        self, namespace: str, correction: Correction, content: str, deciding: Deciding
    ) -> Planned:
        current = await self._parts.reading.get(namespace, correction.memory.id)
        _check_version(current, correction.expected_version)
        saved = Saved(Outcome.SAVED, "corrected", decided_by=DecidedBy.UNSPECIFIED)
        if "content" in correction.fields and content != current.content:
            judgement = await self._parts.judging.judge(
                namespace, content, deciding, at_us=now_us(), trust=current.trust, leave_out=[current.id]
            )
            saved.decided_by = DecidedBy.LLM if judgement.by_model else DecidedBy.RULES
            if judgement.duplicate is not None:
                saved.outcome, saved.existing = Outcome.DUPLICATE, judgement.duplicate
                saved.reason, saved.memory = judgement.reason, current
                return Planned(saved)
        saved.memory = await _corrected(current, correction, content, deciding)
        return Planned(saved, [current])

    async def _write(
        self, namespace: str, planned: Planned, since: Since, request: Answering[Saved] | None
    ) -> Saved:
        """Write the plan: a new version of the memory in `planned.ended`; nothing if that is empty."""
        saved = planned.saved
        if not planned.ended or saved.memory is None:
            return await self._saving.without_writing(namespace, saved, request)
        same_content = saved.memory.content == planned.ended[0].content
        new, kept = ([], [saved.memory]) if same_content else ([saved.memory], [])

        def finish(added: Added) -> None:
            saved.revision, saved.degraded = added.receipt.revision, added.degraded

        await self._saving.write_all(
            namespace, new, kept, saved, request, finish, unchanged=since, corrected=True
        )
        return saved

    # --- deleting -------------------------------------------------------------------------------

    async def delete(
        self,
        namespace: str,
        memory_id: str,
        *,
        expected_version: int | None,
        include_history: bool,
        keep_derived: bool,
        request: RequestKey | None,
    ) -> Receipt:
        """Remove a memory, and with `include_history` all that it superseded, with what was made only from
        these. Raises NotFound, Conflict.
        """
        self._parts.checks.namespace(namespace)
        self._parts.checks.item_id(memory_id)
        if request is not None:
            self._parts.checks.request_id(request.id)
        async with self._parts.turn(namespace):
            for attempt in range(TRIES):
                # Check again: the first call may have been running when this one arrived.
                receipt = await self._parts.store.find_receipt(namespace, request) if request else None
                if receipt is not None:
                    return receipt
                since = replace(await self._parts.since(namespace), ids=frozenset({memory_id}))
                removed = await self._removed(namespace, memory_id, expected_version, include_history)
                orphans = await self._orphans(namespace, removed)
                try:
                    added = await self._saving.write(
                        namespace,
                        [],
                        orphans,
                        request,
                        sorted(removed),
                        derived=not keep_derived,
                        unchanged=since,
                    )
                    return added.receipt
                except Conflict as error:
                    conflict = error
                await pause_after(attempt)
            raise conflict

    async def _removed(
        self, namespace: str, memory_id: str, expected_version: int | None, include_history: bool
    ) -> set[str]:
        """Return the ids of all memories to remove. Raises NotFound, Conflict."""
        if await self._parts.reading.unreadable(namespace, memory_id):
            if expected_version is not None:
                raise Conflict.memory_version(memory_id, expected_version, 0)
            return {memory_id}
        memory = await self._parts.reading.get(namespace, memory_id)
        _check_version(memory, expected_version)
        return await self._history(namespace, memory) if include_history else {memory_id}

    async def _history(self, namespace: str, memory: UserMemory) -> set[str]:
        """Return the ids of a memory and of all that it superseded, directly or indirectly."""
        found: set[str] = set()
        waiting = [memory]
        while waiting:
            current = waiting.pop()
            if current.id in found:
                continue
            found.add(current.id)
            before = [*current.fact.supersedes, *current.fact.source.memory_ids]
            waiting += await self._parts.reading.by_ids(namespace, before)
        return found

    async def _orphans(self, namespace: str, removed: set[str]) -> list[UserMemory]:
        """Return the remaining memories that a removed one superseded, with the reference to it cleared."""
        ids = [item.id for item in await superseded_by(self._parts.store, namespace, removed)]
        found = await self._parts.reading.by_ids(namespace, ids)
        return [memory.changed(superseded_by="") for memory in found]


def _check_version(memory: UserMemory, expected: int | None) -> None:
    if expected is not None and expected != memory.fact.version:
        raise Conflict.memory_version(memory.id, expected, memory.fact.version)


async def _corrected(
    current: UserMemory, correction: Correction, content: str, deciding: Deciding
) -> UserMemory:
    """Return the next version of a memory with the new values."""
    new, fields = correction.memory, correction.fields
    changes: dict[str, object] = {}
    names: Sequence[tuple[str, str]] = (
        ("category", "category"),
        ("reasoning", "reasoning"),
        ("valid_from_time", "valid_from_us"),
        ("valid_until_time", "valid_until_us"),
    )
    for name, attribute in names:
        if name in fields:
            changes[attribute] = getattr(new.fact, attribute)
    changed = current.changed(content=content if "content" in fields else None, **changes)
    fact = changed.fact
    if fact.valid_until_us is not None and fact.valid_until_us <= fact.valid_from_us:
        raise InvalidArgument("memory.valid_until_time", "must be after valid_from_time")
    if changed.content != current.content:
        fact.original_content = "" if content == new.content else new.content
    fact.importance = await _rated(current, changed, correction, deciding)
    if "labels" in fields:
        changed.labels = new.labels
    if "metadata" in fields:
        changed.metadata = new.metadata
    if "ttl" in fields and correction.ttl_us is not None:
        changed.expire_us = now_us() + correction.ttl_us
    elif "expire_time" in fields:
        changed.expire_us = new.expire_us
    return _resettled(changed) if "valid_until_time" in fields else changed


def _resettled(changed: UserMemory) -> UserMemory:
    """Return a memory whose end was set or cleared, with the status that follows from it."""
    if changed.fact.valid_until_us is None and changed.fact.status is Status.SUPERSEDED:
        changed.fact.superseded_by = ""
    return changed.settled(now_us())


async def _rated(
    current: UserMemory, changed: UserMemory, correction: Correction, deciding: Deciding
) -> Importance:
    """Return the importance of a corrected memory. A memory that the user asked to keep stays marked as
    such.
    """
    rated, before = current.fact.importance, current.fact.importance
    if {"content", "category"} & correction.fields:
        fact = changed.fact
        asked_for = any(boost.name == EXPLICIT_REQUEST for boost in before.boosts)
        rated, _ = await deciding.ask(
            lambda decider: decider.rate(changed.content, fact.category, fact.source.quote, asked_for)
        )
        by_hand = any(a.name == _BY_HAND for a in (*before.boosts, *before.reductions))
        if by_hand and changed.content == current.content:
            rated = _by_hand(rated, before.score)
    if "importance" in correction.fields:
        rated = _by_hand(rated, correction.importance_score)
    return rated


def _by_hand(rated: Importance, score: float) -> Importance:
    """Return an importance of this score, with the manual change as an adjustment."""
    rated = _without_hand(rated)
    difference = score - rated.score
    by_hand = Adjustment(_BY_HAND, difference, "set by hand")
    boosts = rated.boosts + ((by_hand,) if difference > 0 else ())
    reductions = rated.reductions + ((by_hand,) if difference < 0 else ())
    return Importance(rated.base, boosts, reductions, score)


def _without_hand(rated: Importance) -> Importance:
    boosts = tuple(a for a in rated.boosts if a.name != _BY_HAND)
    reductions = tuple(a for a in rated.reductions if a.name != _BY_HAND)
    score = rated.base + sum(a.amount for a in (*boosts, *reductions))
    return Importance(rated.base, boosts, reductions, max(score, 0.0))
