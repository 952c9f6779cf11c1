"""Groups of similar memories, and how a group is merged or some of its memories are ended."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from memory_service.deciders.base import Action, Importance
from memory_service.decisions import DecidedBy
from memory_service.domain.facts.user_memory import Fact, Origin, Source, Status, UserMemory
from memory_service.domain.ids import new_id
from memory_service.runtime.clock import now_us

_GROUP_MEMORIES_MAX = 8


class Group(msgspec.Struct):
    """Similar memories, and what is done to them. `changed` are their next versions."""

    sources: list[UserMemory]
    similarity: float
    action: Action = Action.KEEP
    memory: UserMemory | None = None
    changed: list[UserMemory] = []
    applied: bool = False
    decided_by: DecidedBy = DecidedBy.RULES
    reason: str = ""


def supersede(group: Group, contrary: Collection[frozenset[str]]) -> None:
    """End the memories that the latest one contradicts; `contrary` are the pairs of ids that contradict each
    other.
    """
    ordered = sorted(group.sources, key=lambda m: (m.fact.valid_from_us, m.revision))
    last = ordered[-1]
    ended = []
    for memory in ordered[:-1]:
        if frozenset((memory.id, last.id)) in contrary:
            begins = max(last.fact.valid_from_us, memory.fact.valid_from_us + 1)
            ended.append(
                memory.changed(status=Status.SUPERSEDED, valid_until_us=begins, superseded_by=last.id)
            )
    if ended:
        group.action = Action.SUPERSEDE
        supersedes = [*last.fact.supersedes, *(memory.id for memory in ended)]
        group.memory = last.changed(supersedes=supersedes)
        group.changed = [group.memory, *ended]


def best_of(group: Group) -> UserMemory:
    """Return the most important memory of a group."""
    return max(group.sources, key=lambda m: m.fact.importance.score)


def merge(group: Group, content: str, model: str, rated: Importance) -> None:
    """Replace all by one memory, as important as it is rated, or as the best of them."""
    sources, now, best = group.sources, now_us(), best_of(group)
    source = Source(Origin.CONSOLIDATED, memory_ids=[m.id for m in sources], model=model)
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
    group.memory = UserMemory(
        new_id(now),
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
        m.changed(status=Status.MERGED, superseded_by=group.memory.id, valid_until_us=now) for m in sources
    ]


def linked(links: Sequence[tuple[float, str, str]], by_id: dict[str, UserMemory]) -> list[Group]:
    """Join linked memories into groups of limited size; the most similar pairs come first."""
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
