"""Compares a new fact with known memories: a duplicate, a contradiction, or something else."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from memory_service.data_model import RetrieveMode, Vector
from memory_service.deciders.base import Deciding, Relation
from memory_service.decisions import DecidedBy
from memory_service.domain.embedding import Degradation, TextEmbedding
from memory_service.domain.facts.neighbour import NEIGHBOURS, Neighbour, Pending
from memory_service.domain.facts.reading import Wanted
from memory_service.domain.facts.user_memory import UserMemory, memory_of
from memory_service.domain.retrieval import Retrieval
from memory_service.domain.retrieve_options import RetrieveOptions
from memory_service.errors import Unavailable
from memory_service.store import Store


class Judgement(msgspec.Struct):
    """The result for a fact: the memory that says the same, and those that it contradicts.

    `weaker` say the same, and are trusted less than the fact.
    """

    duplicate: UserMemory | None = None
    weaker: list[UserMemory] = []
    contradicted: list[UserMemory] = []
    reason: str = "no known memory says the same or the contrary"
    similarity: float | None = None
    by_model: bool = False
    degraded: Sequence[Degradation] = ()


class Judging:
    """Compares a fact with the memories of its namespace."""

    def __init__(self, store: Store, retrieval: Retrieval, embedding: TextEmbedding) -> None:
        self._store = store
        self._retrieval = retrieval
        self._embedding = embedding

    @property
    def threshold(self) -> float:
        """The cosine above which texts are duplicates; 0 without an embedder."""
        embedder = self._embedding.embedder
        return embedder.duplicate_threshold if embedder else 0.0

    async def judge(
        self,
        namespace: str,
        content: str,
        deciding: Deciding,
        *,
        at_us: int,
        trust: float,
        pending: Pending | None = None,
        leave_out: Collection[str] = (),
        recalled: Collection[str] = (),
    ) -> Judgement:
        """Compare a fact with the most similar memories that hold at a time, and with the most similar
        pending ones.

        A less trusted memory does not make the fact a duplicate, unless it was recalled: the fact may be an
        echo of it. `leave_out` are the ids of memories to skip, such as the one being corrected.
        """
        near, degraded = await self.neighbours(namespace, content, at_us=at_us)
        near += pending.near(content) if pending else []
        near = [n for n in near if n.memory.id not in leave_out]
        near.sort(key=lambda n: -1.0 if n.similarity is None else n.similarity, reverse=True)
        known = [n.known for n in near]
        verdicts, by = await deciding.ask(lambda decider: decider.compare(content, known, self.threshold))
        by_model = by is DecidedBy.LLM
        judgement = Judgement(similarity=near[0].similarity if near else None, by_model=by_model)
        judgement.degraded = degraded
        for neighbour, verdict in zip(near, verdicts, strict=True):
            memory = neighbour.memory
            if verdict.relation is Relation.DIFFERENT:
                continue
            if verdict.relation is Relation.CONTRADICTION:
                others = judgement.contradicted
            elif memory.trust < trust and memory.id not in recalled:
                others = judgement.weaker
            else:
                judgement.duplicate, judgement.reason = memory, verdict.reason
                break
            if not judgement.contradicted and not judgement.weaker:
                judgement.reason = verdict.reason
            others.append(memory)
        return judgement

    async def neighbours(
        self, namespace: str, content: str, *, at_us: int
    ) -> tuple[list[Neighbour], Sequence[Degradation]]:
        """Return the memories most similar to a text, among those that hold at a time."""
        options = RetrieveOptions(
            Wanted().selection(), NEIGHBOURS, content, explain=True, mode=RetrieveMode.UNSPECIFIED
        )
        page = await self._retrieval.retrieve(namespace, options)
        found = []
        for item, shares in zip(page.items, page.shares, strict=True):
            memory = memory_of(item)
            if memory is not None and memory.holds_at(at_us):
                cosine = next((s.raw_score for s in shares if s.channel == "vector"), None)
                found.append(Neighbour(memory, cosine if item.embedded else None))
        return found, page.degraded

    async def vectors(self, namespace: str, contents: Sequence[str]) -> dict[str, Vector | None]:
        """Return the vectors of texts, by text; empty if they cannot be computed."""
        if len(contents) < 2 or self._embedding.obstacle(await self._store.namespace(namespace)):
            return {}
        try:
            return dict(zip(contents, await self._embedding.vectors(contents), strict=True))
        except Unavailable:
            return {}
