"""Merging memories that say the same, and ending those that a later one contradicts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import combinations

import msgspec

from memory_service.clock import now_us
from memory_service.decisions import DecidedBy, Failure, FailureReason
from memory_service.domain.answers import Answering, check_new
from memory_service.domain.checks import Checks
from memory_service.domain.deciding import Deciding
from memory_service.domain.embedding import Degradation
from memory_service.domain.facts.categories import Category
from memory_service.domain.facts.comparison import Relation, Verdict
from memory_service.domain.facts.comparison_reading import Reader, read_pair
from memory_service.domain.facts.grouping import Action, Group, linked, merge, supersede
from memory_service.domain.facts.judging import OUT_OF_REACH, Judging
from memory_service.domain.facts.memory import Memory
from memory_service.domain.facts.neighbour import Neighbour
from memory_service.domain.facts.reading import MemoryReading, Wanted
from memory_service.domain.facts.saving import FactSaving
from memory_service.domain.facts.settling import Locks
from memory_service.domain.facts.wording import CONTENT_CHARS_MIN, REPHRASED_CHARS_MAX, invented
from memory_service.domain.item_writing import Added
from memory_service.errors import Conflict, InvalidArgument
from memory_service.llms.base import Llm
from memory_service.runtime.yielding import each, give_way
from memory_service.stores.base import Store

_GROUPS = 50
_TRIES = 5
_GROUPS_MAX = 500
# As many as may be named by their ids. Twice as many take twice as long.
_EXAMINED_MAX = 1000
_INSTRUCTIONS = (
    "The statements are facts about one user, and similar to each other. Decide: `merge` if they say much "
    "the same, and then word one fact in the third person that says all of it, with every name, number and "
    "date; `supersede` if they contradict each other, so that only the latest can hold; `keep` if they say "
    "different things. `reason` in a sentence."
)


class GroupAnswer(msgspec.Struct):
    """The model's decision on a group."""

    action: str
    content: str = ""
    reason: str = ""


class Consolidated(msgspec.Struct):
    """What was done."""

    groups: list[Group]
    deciding: Deciding
    examined_count: int = 0
    more: bool = False
    revision: int = 0
    reason: str = ""
    degraded: Sequence[Degradation] = ()

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
        store: Store,
        saving: FactSaving,
        reading: MemoryReading,
        judging: Judging,
        checks: Checks,
        llm: Llm | None,
        locks: Locks,
    ) -> None:
        self._store = store
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
        request: Answering[Consolidated] | None,
    ) -> Consolidated:
        """Group similar memories, and merge or end them; all groups in one write. Raises Repeated."""
        self._check(namespace, memory_ids, similarity_threshold, limit, request)
        done = Consolidated([], Deciding(self._llm, decide_by, namespace), reason="compared in pairs")
        await check_new(self._store, namespace, request)
        memories = await self._reading.all(namespace, Wanted(categories=categories))
        if memory_ids:
            wanted = frozenset(memory_ids)
            memories = [m for m in memories if m.id in wanted]
        examined = self._examined(memories, done)
        groups = await self._groups(namespace, examined, memories, similarity_threshold, done)
        most = limit or _GROUPS
        done.more, done.groups = len(groups) > most or len(examined) < len(memories), groups[:most]
        for group in done.groups:
            await give_way()
            await self._decide(group, done.deciding, similarity_threshold)
        if dry_run:
            done.revision = await self._reading.revision(namespace)
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
        self._checks.namespace(namespace)
        if request is not None:
            self._checks.request_id(request.key.id)
        self._checks.size("memory_ids", len(memory_ids), "batch_items_max")
        if threshold is not None and not 0 < threshold <= 1:
            raise InvalidArgument("similarity_threshold", "must be above 0 and at most 1")
        if limit is not None and not 1 <= limit <= _GROUPS_MAX:
            raise InvalidArgument("limit", f"must be 1 to {_GROUPS_MAX}")

    # --- groups ---------------------------------------------------------------------------------

    @staticmethod
    def _examined(memories: Sequence[Memory], done: Consolidated) -> Sequence[Memory]:
        """Return the memories whose neighbours are looked for: the latest. Others can be named by id."""
        examined = memories
        if len(memories) > _EXAMINED_MAX:
            examined = sorted(memories, key=lambda memory: memory.revision)[-_EXAMINED_MAX:]
        done.examined_count = len(examined)
        if len(examined) < len(memories):
            done.reason += (
                f"; of {len(memories)} memories the {len(examined)} that were written last, with all"
            )
        return examined

    async def _groups(
        self,
        namespace: str,
        examined: Sequence[Memory],
        memories: Sequence[Memory],
        threshold: float | None,
        done: Consolidated,
    ) -> list[Group]:
        """Return groups of similar memories of one category and trust, the most similar first.

        What is trusted less neither ends what is trusted more, nor takes its trust from it by a merger.
        """
        by_id = {memory.id: memory for memory in memories}
        links: list[tuple[float, str, str]] = []
        reader = Reader()
        for memory in examined:
            await give_way()
            near, done.degraded = await self._judging.neighbours(namespace, memory.content, at_us=now_us())
            near = [n for n in near if _may_join(memory, by_id.get(n.memory.id))]
            alike = await each(partial(self._alike, memory, threshold, reader), near)
            links += [
                (n.similarity or 0.0, memory.id, n.memory.id)
                for n, is_alike in zip(near, alike, strict=True)
                if is_alike
            ]
        links.sort(reverse=True)
        return linked(links, by_id)

    def _alike(self, memory: Memory, threshold: float | None, reader: Reader, neighbour: Neighbour) -> bool:
        least = self._judging.threshold if threshold is None else threshold
        if neighbour.similarity is not None and neighbour.similarity >= least:
            return True
        verdict = self._judging.compare(memory.content, neighbour, threshold, reader)
        return verdict.relation is not Relation.DIFFERENT

    # --- decisions ------------------------------------------------------------------------------

    async def _decide(self, group: Group, deciding: Deciding, threshold: float | None) -> None:
        pairs, reader = list(combinations(group.sources, 2)), Reader()
        verdicts = await each(
            lambda pair: self._judging.compare(
                pair[0].content, Neighbour(pair[1], group.similarity or None), threshold, reader
            ),
            pairs,
        )
        relations = {(one.id, other.id): v for (one, other), v in zip(pairs, verdicts, strict=True)}
        answer = await self._asked(group, deciding, relations)
        contradiction = next((v for v in relations.values() if v.relation is Relation.CONTRADICTION), None)
        if answer is not None:
            group.decided_by, group.reason = DecidedBy.LLM, answer.reason
            if answer.action == "merge":
                merge(group, answer.content, deciding.model)
            elif answer.action == "supersede":
                supersede(group, relations, whole_pair=True)
        elif contradiction is not None:
            group.reason = contradiction.reason
            supersede(group, relations)
        elif all(verdict.relation is Relation.DUPLICATE for verdict in relations.values()):
            group.reason = "they say the same"
            merge(group, max((m.content for m in group.sources), key=len), "")
        else:
            group.reason = next(v.reason for v in relations.values() if v.relation is Relation.DIFFERENT)

    @staticmethod
    async def _asked(
        group: Group, deciding: Deciding, relations: dict[tuple[str, str], Verdict]
    ) -> GroupAnswer | None:
        """Return what the model decides, if that can be done; None: rules have to decide."""
        if any(failure.reason in OUT_OF_REACH for failure in deciding.failures):
            return None
        answer = await deciding.ask(
            _INSTRUCTIONS, {m.id: m.content for m in group.sources}, GroupAnswer, output_tokens_max=500
        )
        if answer is None:
            return None
        answer.action, answer.content = answer.action.strip().lower(), " ".join(answer.content.split())
        problem = _problem(answer, [m.content for m in group.sources])
        if not problem and answer.action == "supersede" and len(group.sources) > 2:
            contrary = any(v.relation is Relation.CONTRADICTION for v in relations.values())
            problem = "" if contrary else "does not tell which of them contradict each other"
        if not problem:
            return answer
        deciding.failures.append(Failure(FailureReason.INVALID_VALUE, problem, group.sources[0].id))
        return None

    # --- writing --------------------------------------------------------------------------------

    async def _settle(
        self, namespace: str, done: Consolidated, request: Answering[Consolidated] | None
    ) -> None:
        """Write what was decided, but for the groups that were changed by another call meanwhile."""
        async with self._locks.hold(namespace):
            for _ in range(_TRIES):
                # Also here: the first call may have been under way when this one came.
                await check_new(self._store, namespace, request)
                acted = await self._unchanged(namespace, done)
                if not acted:
                    await self._saving.without_writing(namespace, done, request)
                    return
                try:
                    await self._write(namespace, done, acted, request)
                    return
                except Conflict as error:
                    conflict = error
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
        """Return the groups to act on; what is to become of the changed ones is only told."""
        acted = [g for g in done.groups if g.action is not Action.KEEP]
        ids = [m.id for group in acted for m in group.sources]
        current = {m.id: m.revision for m in await self._reading.by_ids(namespace, ids)}
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
        """Tell of a group that is not written: a merged memory that only would be has no id."""
        if group.action is Action.MERGE and group.memory is not None:
            await self._saving.attribute(namespace, group.memory)
            group.memory.id, group.memory.fact.version = "", 0


def _problem(answer: GroupAnswer, sources: Sequence[str]) -> str:
    """Return what is wrong with an answer of the model; empty: nothing that can be told."""
    if answer.action in ("keep", "supersede"):
        return ""
    if answer.action != "merge":
        return f"unknown action {answer.action[:40]!r}"
    if not CONTENT_CHARS_MIN <= len(answer.content) <= REPHRASED_CHARS_MAX:
        return f"the merged text has {len(answer.content)} characters"
    together = ". ".join(sources)
    if problem := invented(answer.content, together, together):
        return f"the merged text {problem}"
    if problem := invented(together, answer.content, answer.content):
        return f"what is merged {problem}"
    if any(_negated(answer.content, source) != _negated(source, answer.content) for source in sources):
        return "the merged text says the contrary of one of them"
    return ""


def _may_join(memory: Memory, other: Memory | None) -> bool:
    """Whether two memories may be put together, if they are alike."""
    if other is None or other.id == memory.id or other.trust != memory.trust:
        return False
    return other.fact.category == memory.fact.category


def _negated(text: str, other: str) -> bool:
    return read_pair(text, other)[0].negations % 2 == 1
