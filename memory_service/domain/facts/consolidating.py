"""Merging memories that say the same, and ending those that a later one contradicts."""

from __future__ import annotations

import enum
import os
import re
from collections.abc import Sequence
from itertools import combinations

import msgspec

from memory_service.clock import now_us
from memory_service.decisions import DecidedBy, Failure, FailureReason
from memory_service.domain.checks import Checks
from memory_service.domain.deciding import Deciding
from memory_service.domain.facts.categories import Category
from memory_service.domain.facts.comparison import Relation, Verdict
from memory_service.domain.facts.importance import importance
from memory_service.domain.facts.judging import Judging, Neighbour
from memory_service.domain.facts.memory import Fact, Memory, Origin, Source, Status
from memory_service.domain.facts.reading import MemoryReading, Wanted
from memory_service.domain.facts.saving import FactSaving, Locks
from memory_service.domain.facts.wording import CONTENT_CHARS_MIN, REPHRASED_CHARS_MAX
from memory_service.errors import Conflict, InvalidArgument
from memory_service.llms.base import Llm
from memory_service.records import Receipt, RequestKey

_GROUPS = 50
_GROUPS_MAX = 500
_GROUP_MEMORIES_MAX = 8
_NUMBER = re.compile(r"\d+")
_INSTRUCTIONS = (
    "The statements are facts about one user, and similar to each other. Decide: `merge` if they say much "
    "the same, and then word one fact in the third person that says all of it, with every name, number and "
    "date; `keep` if they say different things. `reason` in a sentence."
)


class Action(enum.IntEnum):
    """What is done to a group; the numbers equal the proto's."""

    MERGE = 1
    SUPERSEDE = 2
    KEEP = 3


class GroupAnswer(msgspec.Struct):
    """The model's decision on a group."""

    action: str
    content: str = ""
    reason: str = ""


class Group(msgspec.Struct):
    """Similar memories, and what is done to them. `changed` are their next versions."""

    sources: list[Memory]
    similarity: float
    action: Action = Action.KEEP
    memory: Memory | None = None
    changed: list[Memory] = []
    applied: bool = False
    decided_by: DecidedBy = DecidedBy.RULES
    reason: str = ""


class Consolidated(msgspec.Struct):
    """What was done."""

    groups: list[Group]
    deciding: Deciding
    examined_count: int = 0
    more: bool = False
    revision: int = 0
    reason: str = ""

    @property
    def decided_by(self) -> DecidedBy:
        """Who decided; rules also where they had to for some."""
        if not self.groups:
            return DecidedBy.UNSPECIFIED
        by_model = all(group.decided_by is DecidedBy.LLM for group in self.groups)
        return DecidedBy.LLM if by_model else DecidedBy.RULES


class FactConsolidating:
    """Consolidates the memories of a namespace."""

    def __init__(
        self,
        saving: FactSaving,
        reading: MemoryReading,
        judging: Judging,
        checks: Checks,
        llm: Llm | None,
        locks: Locks,
    ) -> None:
        self._saving = saving
        self._reading = reading
        self._judging = judging
        self._checks = checks
        self._llm = llm
        self._locks = locks

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
        request: RequestKey | None,
    ) -> Consolidated:
        """Group similar memories, and merge or end them; all groups in one write."""
        self._check(namespace, memory_ids, similarity_threshold, limit, request)
        done = Consolidated([], Deciding(self._llm, decide_by), reason="compared in pairs")
        if (receipt := await self._saving.earlier(namespace, request)) is not None:
            return await self._repeated(namespace, receipt, done)
        async with self._locks.hold(namespace):
            memories = await self._reading.all(namespace, Wanted(categories=categories))
            if memory_ids:
                memories = [m for m in memories if m.id in set(memory_ids)]
            done.examined_count = len(memories)
            groups = await self._groups(namespace, memories, similarity_threshold)
            most = limit or _GROUPS
            done.more, done.groups = len(groups) > most, groups[:most]
            for group in done.groups:
                await self._decide(group, done.deciding, similarity_threshold)
            await self._write(namespace, done, dry_run, request)
        return done

    def _check(
        self,
        namespace: str,
        memory_ids: Sequence[str],
        threshold: float | None,
        limit: int | None,
        request: RequestKey | None,
    ) -> None:
        self._checks.namespace(namespace)
        if request is not None:
            self._checks.request_id(request.id)
        self._checks.size("memory_ids", len(memory_ids), "batch_items_max")
        if threshold is not None and not 0 < threshold <= 1:
            raise InvalidArgument("similarity_threshold", "must be above 0 and at most 1")
        if limit is not None and not 1 <= limit <= _GROUPS_MAX:
            raise InvalidArgument("limit", f"must be 1 to {_GROUPS_MAX}")

    # --- groups ---------------------------------------------------------------------------------

    async def _groups(
        self, namespace: str, memories: Sequence[Memory], threshold: float | None
    ) -> list[Group]:
        """Return groups of similar memories of one category, the most similar first."""
        by_id = {memory.id: memory for memory in memories}
        links: list[tuple[float, str, str]] = []
        for memory in memories:
            near, _ = await self._judging.neighbours(namespace, memory.content, at_us=now_us())
            for neighbour in near:
                other = by_id.get(neighbour.memory.id)
                if other is None or other.id == memory.id or other.fact.category != memory.fact.category:
                    continue
                if self._alike(memory, neighbour, threshold):
                    links.append((neighbour.similarity or 0.0, memory.id, other.id))
        links.sort(reverse=True)
        return _linked(links, by_id)

    def _alike(self, memory: Memory, neighbour: Neighbour, threshold: float | None) -> bool:
        least = self._judging.threshold if threshold is None else threshold
        if neighbour.similarity is not None and neighbour.similarity >= least:
            return True
        return self._judging.compare(memory.content, neighbour, threshold).relation is not Relation.DIFFERENT

    # --- decisions ------------------------------------------------------------------------------

    async def _decide(self, group: Group, deciding: Deciding, threshold: float | None) -> None:
        relations = {
            (one.id, other.id): self._judging.compare(
                one.content, Neighbour(other, group.similarity or None), threshold
            )
            for one, other in combinations(group.sources, 2)
        }
        found = [verdict.relation for verdict in relations.values()]
        contradiction = next((v for v in relations.values() if v.relation is Relation.CONTRADICTION), None)
        if contradiction is not None:
            group.reason = contradiction.reason
            self._supersede(group, relations)
            return
        answer = await deciding.ask(
            _INSTRUCTIONS, {m.id: m.content for m in group.sources}, GroupAnswer, output_tokens_max=500
        )
        if answer is not None and not (problem := _problem(answer, group.sources)):
            group.decided_by, group.reason = DecidedBy.LLM, answer.reason[:500]
            if answer.action.strip().lower() == "merge":
                self._merge(group, " ".join(answer.content.split()), deciding.model)
            return
        if answer is not None:
            deciding.failures.append(Failure(FailureReason.INVALID_VALUE, problem, group.sources[0].id))
        if all(relation is Relation.DUPLICATE for relation in found):
            group.reason = "they say the same"
            self._merge(group, max((m.content for m in group.sources), key=len), "")
        else:
            group.reason = next(v.reason for v in relations.values() if v.relation is Relation.DIFFERENT)

    @staticmethod
    def _supersede(group: Group, relations: dict[tuple[str, str], Verdict]) -> None:
        """End what the one that began last contradicts."""
        ordered = sorted(group.sources, key=lambda m: (m.fact.valid_from_us, m.revision))
        last = ordered[-1]
        ended = []
        for memory in ordered[:-1]:
            verdict = relations.get((memory.id, last.id)) or relations.get((last.id, memory.id))
            if verdict is not None and verdict.relation is Relation.CONTRADICTION:
                begins = max(last.fact.valid_from_us, memory.fact.valid_from_us + 1)
                ended.append(
                    memory.changed(status=Status.SUPERSEDED, valid_until_us=begins, superseded_by=last.id)
                )
        if ended:
            group.action = Action.SUPERSEDE
            supersedes = [*last.fact.supersedes, *(memory.id for memory in ended)]
            group.memory = last.changed(supersedes=supersedes)
            group.changed = [group.memory, *ended]

    @staticmethod
    def _merge(group: Group, content: str, model: str) -> None:
        """Put one memory in the place of all."""
        sources, now = group.sources, now_us()
        best = max(sources, key=lambda m: m.fact.importance.score)
        source = Source(Origin.CONSOLIDATED, memory_ids=[m.id for m in sources], model=model)
        rated = importance(content, best.fact.category, "", False)
        if rated.score < best.fact.importance.score:
            rated = best.fact.importance
        fact = Fact(
            best.fact.category,
            best.fact.reasoning,
            rated,
            min(m.fact.valid_from_us for m in sources),
            supersedes=[m.id for m in sources],
            source=source,
        )
        sessions = {m.session_id for m in sources}
        group.memory = Memory(
            f"{now:014x}{os.urandom(9).hex()}",
            content,
            fact,
            sessions.pop() if len(sessions) == 1 else "",
            {key: value for m in sources for key, value in m.labels.items()},
            best.metadata,
            now,
            now,
            None if any(m.expire_us is None for m in sources) else max(m.expire_us or 0 for m in sources),
        )
        group.action = Action.MERGE
        group.changed = [
            m.changed(status=Status.MERGED, superseded_by=group.memory.id, valid_until_us=now)
            for m in sources
        ]

    # --- writing --------------------------------------------------------------------------------

    async def _write(
        self, namespace: str, done: Consolidated, dry_run: bool, request: RequestKey | None
    ) -> None:
        acted = [g for g in done.groups if g.action is not Action.KEEP]
        done.revision = await self._reading.revision(namespace)
        if dry_run or not acted:
            for group in acted:
                if group.action is Action.MERGE and group.memory is not None:
                    group.memory.id, group.memory.fact.version = "", 0
            return
        new = [g.memory for g in acted if g.action is Action.MERGE and g.memory is not None]
        changed = [memory for group in acted for memory in group.changed]
        try:
            added = await self._saving.write_all(namespace, new, changed, request)
        except Conflict as conflict:
            # Somebody deleted or replaced one of them: all is as it was, and the next call looks again.
            changed_id = conflict.metadata.get("id", "")
            done.deciding.failures.append(
                Failure(FailureReason.CHANGED_MEANWHILE, "a memory was changed by another call", changed_id)
            )
            return
        done.revision = added.receipt.revision
        for group in acted:
            group.applied = True

    async def _repeated(self, namespace: str, receipt: Receipt, done: Consolidated) -> Consolidated:
        """Return the answer to a request that was applied before."""
        done.reason, done.revision = "the request was applied before", receipt.revision
        memories = await self._reading.by_ids(namespace, [stamp.id for stamp in receipt.items])
        for memory in memories:
            sources = [m for m in memories if m.fact.superseded_by == memory.id]
            if sources:
                merged = sources[0].fact.status is Status.MERGED
                action = Action.MERGE if merged else Action.SUPERSEDE
                done.groups.append(Group(sources, 0.0, action, memory, applied=True, reason=done.reason))
        return done


def _linked(links: Sequence[tuple[float, str, str]], by_id: dict[str, Memory]) -> list[Group]:
    """Join linked memories to groups, at most so many each; the most similar pairs come first."""
    groups: list[Group] = []
    group_of: dict[str, Group] = {}
    for similarity, one, other in links:
        first, second = group_of.get(one), group_of.get(other)
        if first is None and second is None:
            group = Group([by_id[one], by_id[other]], similarity)
            groups.append(group)
            group_of[one] = group_of[other] = group
        elif first is None or second is None:
            group = first or second or groups[0]
            fresh = one if first is None else other
            if len(group.sources) < _GROUP_MEMORIES_MAX:
                group.sources.append(by_id[fresh])
                group_of[fresh] = group
    return groups


def _problem(answer: GroupAnswer, sources: Sequence[Memory]) -> str:
    """Return what is wrong with an answer of the model; empty: nothing that can be told."""
    action = answer.action.strip().lower()
    if action == "keep":
        return ""
    if action != "merge":
        return f"unknown action {answer.action[:40]!r}"
    content = " ".join(answer.content.split())
    if not CONTENT_CHARS_MIN <= len(content) <= REPHRASED_CHARS_MAX:
        return f"the merged text has {len(content)} characters"
    numbers = {number for memory in sources for number in _NUMBER.findall(memory.content)}
    return "" if numbers == set(_NUMBER.findall(content)) else "the merged text has other numbers"
