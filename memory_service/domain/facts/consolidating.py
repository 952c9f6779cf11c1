"""Merges memories that say the same, and ends memories that a later one contradicts."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memory_service.deciders.base import Action, Category, Decider, Deciding, Known, Relation
from memory_service.decisions import DecidedBy, Failure, FailureReason
from memory_service.domain.answers import Answering, check_new
from memory_service.domain.conflicts import TRIES, pause_after
from memory_service.domain.embedding import Degradation
from memory_service.domain.facts.grouping import Group, best_of, linked, merge, supersede
from memory_service.domain.facts.neighbour import Neighbour
from memory_service.domain.facts.reading import Wanted
from memory_service.domain.facts.saving import FactSaving
from memory_service.domain.facts.settling import Parts
from memory_service.domain.facts.user_memory import UserMemory
from memory_service.domain.item_writing import Added
from memory_service.errors import Conflict, InvalidArgument
from memory_service.runtime.clock import now_us
from memory_service.runtime.yielding import give_way

_GROUPS = 50
_GROUPS_MAX = 500
# As many as a request may name by id. Doubled, a call takes twice as long.
_EXAMINED_MAX = 1000


class Consolidated(msgspec.Struct):
    """The result of a consolidation."""

    groups: list[Group]
    deciding: Deciding
    examined_count: int = 0
    more: bool = False
    revision: int = 0
    reason: str = ""
    degraded: Sequence[Degradation] = ()

    @property
    def decided_by(self) -> DecidedBy:
        """Who decided: rules also if they had to decide for some groups only."""
        if not self.groups:
            return DecidedBy.UNSPECIFIED
        by_model = all(group.decided_by is DecidedBy.LLM for group in self.groups)
        return DecidedBy.LLM if by_model else DecidedBy.RULES


class FactConsolidating:
    """Consolidates the memories of a namespace."""

    def __init__(self, parts: Parts, saving: FactSaving) -> None:
        self._parts = parts
        self._saving = saving

    async def consolidate(
        self,
        namespace: str,
        *,
        dry_run: bool,
        categories: Sequence[Category],
        memory_ids: Sequence[str],
        similarity_threshold: float | None,
        limit: int | None,
        decide_by: DecidedBy,
        request: Answering[Consolidated] | None,
    ) -> Consolidated:
        """Group similar memories, then merge or end them; all groups in one write. Raises Repeated."""
        self._check(namespace, memory_ids, similarity_threshold, limit, request)
        done = Consolidated([], self._parts.begin(decide_by, namespace), reason="compared in pairs")
        await check_new(self._parts.store, namespace, request)
        memories = await self._parts.reading.all(namespace, Wanted(categories=categories))
        if memory_ids:
            wanted = frozenset(memory_ids)
            memories = [m for m in memories if m.id in wanted]
        examined = self._examined(memories, done)
        least = self._parts.judging.threshold if similarity_threshold is None else similarity_threshold
        groups = await self._groups(namespace, examined, memories, least, done)
        most = limit or _GROUPS
        done.more, done.groups = len(groups) > most or len(examined) < len(memories), groups[:most]
        for group in done.groups:
            await give_way()
            await self._decide(group, done.deciding, least)
        if dry_run:
            done.revision = await self._parts.reading.revision(namespace)
            for group in done.groups:
                await self._as_would_be(namespace, group)
            return done
        await self._settle(namespace, done, request)
        return done

    def _check(
        self,
        namespace: str,
        memory_ids: Sequence[str],
        threshold: float | None,
        limit: int | None,
        request: Answering[Consolidated] | None,
    ) -> None:
        self._parts.checks.namespace(namespace)
        if request is not None:
            self._parts.checks.request_id(request.key.id)
        self._parts.checks.size("memory_ids", len(memory_ids), "batch_items_max")
        if threshold is not None and not 0 < threshold <= 1:
            raise InvalidArgument("similarity_threshold", "must be above 0 and at most 1")
        if limit is not None and not 1 <= limit <= _GROUPS_MAX:
            raise InvalidArgument("limit", f"must be 1 to {_GROUPS_MAX}")

    # --- groups ---------------------------------------------------------------------------------

    @staticmethod
    def _examined(memories: Sequence[UserMemory], done: Consolidated) -> Sequence[UserMemory]:
        """Return the memories to find neighbours for: the latest ones. Others can be named by id."""
        examined = memories
        if len(memories) > _EXAMINED_MAX:
            examined = sorted(memories, key=lambda memory: memory.revision)[-_EXAMINED_MAX:]
        done.examined_count = len(examined)
        if len(examined) < len(memories):
            done.reason += f"; only the newest {len(examined)} of {len(memories)} memories, each with all"
        return examined

    async def _groups(
        self,
        namespace: str,
        examined: Sequence[UserMemory],
        memories: Sequence[UserMemory],
        least: float,
        done: Consolidated,
    ) -> list[Group]:
        """Return groups of similar memories of one category and trust, the most similar first.

        A less trusted memory must not end a more trusted one, nor gain its trust by a merge.
        """
        by_id = {memory.id: memory for memory in memories}
        links: list[tuple[float, str, str]] = []
        for memory in examined:
            await give_way()
            near, done.degraded = await self._parts.judging.neighbours(
                namespace, memory.content, at_us=now_us()
            )
            near = [n for n in near if _may_join(memory, by_id.get(n.memory.id))]
            alike = await self._alike(memory, near, least, done.deciding.rules)
            links += [(n.similarity or 0.0, memory.id, n.memory.id) for n in alike]
        links.sort(reverse=True)
        return linked(links, by_id)

    async def _alike(
        self, memory: UserMemory, near: Sequence[Neighbour], least: float, rules: Decider
    ) -> list[Neighbour]:
        """Return the neighbours that may be grouped with a memory."""
        close = [n for n in near if (n.similarity or -1.0) >= least]
        others = [n for n in near if n not in close]
        verdicts = await rules.compare(memory.content, [n.known for n in others], least)
        different = Relation.DIFFERENT
        return close + [n for n, v in zip(others, verdicts, strict=True) if v.relation is not different]

    # --- decisions ------------------------------------------------------------------------------

    async def _decide(self, group: Group, deciding: Deciding, least: float) -> None:
        facts = [Known(m.id, m.content, group.similarity or None) for m in group.sources]
        settled, by = await deciding.ask(lambda decider: decider.settle(facts, least))
        group.decided_by, group.reason = by, settled.reason
        if settled.action is Action.MERGE:
            category = best_of(group).fact.category
            rated, _ = await deciding.ask(lambda decider: decider.rate(settled.content, category, "", False))
            merge(group, settled.content, deciding.model if by is DecidedBy.LLM else "", rated)
        elif settled.action is Action.SUPERSEDE:
            supersede(group, settled.contrary)

    # --- writing --------------------------------------------------------------------------------

    async def _settle(
        self, namespace: str, done: Consolidated, request: Answering[Consolidated] | None
    ) -> None:
        """Write the decisions, except for groups that another call has changed in the meantime."""
        for attempt in range(TRIES):
            # Check again: the first call may have been running when this one arrived.
            await check_new(self._parts.store, namespace, request)
            acted = await self._unchanged(namespace, done)
            if not acted:
                await self._saving.without_writing(namespace, done, request)
                return
            try:
                await self._write(namespace, done, acted, request)
                return
            except Conflict as error:
                conflict = error
            await pause_after(attempt)
        raise conflict

    async def _write(
        self,
        namespace: str,
        done: Consolidated,
        acted: Sequence[Group],
        request: Answering[Consolidated] | None,
    ) -> None:
        new = [g.memory for g in acted if g.action is Action.MERGE and g.memory is not None]
        changed = [memory for group in acted for memory in group.changed]

        def finish(added: Added) -> None:
            done.revision = added.receipt.revision
            done.degraded = [*done.degraded, *(d for d in added.degraded if d not in done.degraded)]
            for group in acted:
                group.applied = True

        await self._saving.write_all(namespace, new, changed, done, request, finish)

    async def _unchanged(self, namespace: str, done: Consolidated) -> list[Group]:
        """Return the groups to write; describe changed ones only in the result."""
        acted = [g for g in done.groups if g.action is not Action.KEEP]
        ids = [m.id for group in acted for m in group.sources]
        current = {m.id: m.revision for m in await self._parts.reading.by_ids(namespace, ids)}
        unchanged = []
        for group in acted:
            changed = next((m.id for m in group.sources if current.get(m.id) != m.revision), None)
            if changed is None:
                unchanged.append(group)
                continue
            failure = Failure(
                FailureReason.CHANGED_MEANWHILE, "the memory was changed by another call", changed
            )
            if failure not in done.deciding.failures:
                done.deciding.failures.append(failure)
            await self._as_would_be(namespace, group)
        return unchanged

    async def _as_would_be(self, namespace: str, group: Group) -> None:
        """Complete the result of a group that is not written: its merged memory has no id."""
        if group.action is Action.MERGE and group.memory is not None:
            await self._saving.attribute(namespace, group.memory)
            group.memory.id, group.memory.fact.version = "", 0


def _may_join(memory: UserMemory, other: UserMemory | None) -> bool:
    """Return whether two memories may be grouped if they are alike."""
    if other is None or other.id == memory.id or other.trust != memory.trust:
        return False
    return other.fact.category == memory.fact.category
