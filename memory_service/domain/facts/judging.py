"""What a new fact is to those that are known: one of them again, another value, or something else."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from memory_service.decisions import FailureReason
from memory_service.domain.deciding import Deciding
from memory_service.domain.embedding import Degradation, TextEmbedding
from memory_service.domain.facts.comparison import Relation, Verdict, compare
from memory_service.domain.facts.comparison_by_model import KNOWN_MAX, compare_by_model
from memory_service.domain.facts.comparison_reading import Reader
from memory_service.domain.facts.memory import Memory, memory_of
from memory_service.domain.facts.neighbour import NEIGHBOURS, Neighbour, Pending
from memory_service.domain.facts.reading import Wanted
from memory_service.domain.retrieval import Retrieval, RetrieveOptions
from memory_service.errors import Unavailable
from memory_service.records import RetrieveMode, Vector
from memory_service.runtime.yielding import each
from memory_service.stores.base import Store

OUT_OF_REACH = (FailureReason.LLM_UNAVAILABLE, FailureReason.LLM_TIMEOUT, FailureReason.LLM_PAUSED)
"""After one of these the model is not asked again in the same call."""
# The share of common words that takes the place of the cosine where there are no vectors.
_COMMON_WORDS_MIN = 0.8


class Judgement(msgspec.Struct):
    """What is known of a fact's neighbours: the one that says the same, those that it contradicts.

    `weaker` say the same, and are trusted less than the fact.
    """

    duplicate: Memory | None = None
    weaker: list[Memory] = []
    contradicted: list[Memory] = []
    reason: str = "no known memory says this or the contrary"
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
        """The cosine that duplicates are above; 0 without an embedder."""
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
        """Return what a fact is to the memories that hold at a time, and to those that are about to be saved:
        to the most similar of either.

        What is trusted less than the fact does not make it known, but where it was recalled: then the fact
        may be an echo of it. `leave_out` are the ids of memories that are not compared with, such as the one
        that changes.
        """
        near, degraded = await self.neighbours(namespace, content, at_us=at_us)
        near += pending.near(content) if pending else []
        near = [n for n in near if n.memory.id not in leave_out]
        near.sort(key=lambda n: -1.0 if n.similarity is None else n.similarity, reverse=True)
        reader = pending.reader if pending else Reader()
        verdicts = await each(lambda n: self.compare(content, n, reader=reader), near)
        by_model = await self._ask(content, near, verdicts, deciding)
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

    def compare(
        self, content: str, neighbour: Neighbour, threshold: float | None = None, reader: Reader | None = None
    ) -> Verdict:
        """Return what rules say of a fact and a known memory."""
        least = self.threshold if threshold is None else threshold
        if neighbour.similarity is None:
            least = _COMMON_WORDS_MIN
        return compare(content, neighbour.memory.content, neighbour.similarity, least, reader)

    async def neighbours(
        self, namespace: str, content: str, *, at_us: int
    ) -> tuple[list[Neighbour], Sequence[Degradation]]:
        """Return the memories that are the most like a text, of those that hold at a time."""
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
        """Return the vectors of texts, by text; none where they cannot be told."""
        if len(contents) < 2 or self._embedding.obstacle(await self._store.namespace(namespace)):
            return {}
        try:
            return dict(zip(contents, await self._embedding.vectors(contents), strict=True))
        except Unavailable:
            return {}

    async def _ask(
        self, content: str, near: Sequence[Neighbour], verdicts: list[Verdict], deciding: Deciding
    ) -> bool:
        """Have the model decide on the nearest, where there is one; return whether it did.

        It is not asked about a fact that is known word for word, nor after it failed to answer in time:
        a call waits for it once, not once for each fact.
        """
        asked = near[:KNOWN_MAX]
        if not asked or not deciding.model or any(f.reason in OUT_OF_REACH for f in deciding.failures):
            return False
        if any(_same_words(content, n.memory.content) for n in near):
            return False
        known = {n.memory.id: n.memory.content for n in asked}
        compared = await compare_by_model(deciding, content, known)
        if compared is None:
            return False
        deciding.failures += [f for f in compared.failures if f not in deciding.failures]
        for at, neighbour in enumerate(asked):
            verdicts[at] = compared.verdicts.get(neighbour.memory.id, verdicts[at])
        return bool(compared.verdicts)


def _same_words(one: str, other: str) -> bool:
    # Without vectors, and with all words to be shared, nothing else is a duplicate.
    return compare(one, other, None, 1.0).relation is Relation.DUPLICATE
