"""Saves each fact once. Facts that a new one contradicts end where it begins, unless they are trusted
more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from memory_service.data_model import OnDuplicate, RequestKey, Since
from memory_service.deciders.base import (
    CONTENT_CHARS_MAX,
    CONTENT_CHARS_MIN,
    REASON_CHARS_MAX,
    REASONING_CHARS_MAX,
    REASONING_CHARS_MIN,
    Deciding,
)
from memory_service.decisions import DecidedBy
from memory_service.domain.answers import Answering, Repeated, check_new, keep_answer
from memory_service.domain.facts.neighbour import Pending
from memory_service.domain.facts.outcomes import FactDraft, OnContradiction, Outcome, Planned, Saved
from memory_service.domain.facts.settling import Parts
from memory_service.domain.facts.user_memory import Fact, UserMemory, draft_of
from memory_service.domain.ids import new_id
from memory_service.domain.item_writing import Added, Complete
from memory_service.errors import InvalidArgument
from memory_service.runtime.clock import now_us


class Done(Protocol):
    """A result that carries the revision it is of."""

    revision: int


D = TypeVar("D", bound=Done)


class FactSaving:
    """Saves facts. Comparing and writing are one step."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    # --- saving ---------------------------------------------------------------------------------

    async def save(
        self, namespace: str, draft: FactDraft, decide_by: DecidedBy, request: Answering[Saved] | None
    ) -> Saved:
        """Save a fact, unless it is known already.

        Raises LLM_REQUIRED and LLM_UNAVAILABLE if the caller requires a model, and Repeated.
        """
        self._check(namespace, draft, request)
        deciding = self._parts.begin(decide_by, namespace)
        await check_new(self._parts.store, namespace, request)
        content, rephrased_by = draft.content, DecidedBy.UNSPECIFIED
        if not draft.keep_wording:
            content, rephrased_by = await reworded(draft.content, deciding)

        async def plan() -> Planned:
            # Check again: the first call may have been running when the second one arrived.
            await check_new(self._parts.store, namespace, request)
            return await self.plan(namespace, draft, content, deciding)

        async def write(planned: Planned, since: Since) -> Saved:
            planned.saved.rephrased_by, planned.saved.deciding = rephrased_by, deciding
            return await self._write(namespace, planned, since, request)

        slow = bool(deciding.model)
        return await self._parts.settle(namespace, plan, write, slow=slow)

    def _check(self, namespace: str, draft: FactDraft, request: Answering[Saved] | None) -> None:
        self._parts.checks.namespace(namespace)
        if request is not None:
            self._parts.checks.request_id(request.key.id)
        check_content("content", draft.content)
        check_reasoning("reasoning", draft.reasoning)
        source = draft.source
        self._parts.checks.size("source.quote", len(source.quote.encode()), "quote_bytes_max")
        self._parts.checks.size("source.item_ids", len(source.item_ids), "source_ids_max")
        for at, item_id in enumerate(source.item_ids):
            self._parts.checks.item_id(item_id, f"source.item_ids[{at}]")
        self._parts.checks.name(
            "source.actor", source.actor, self._parts.checks.limits.session_id_bytes_max, required=False
        )
        self._parts.checks.session_id(draft.session_id, "source.session_id")
        self._parts.checks.labels("labels", draft.labels)
        if draft.metadata is not None:
            self._parts.checks.metadata("metadata", draft.metadata)
        if draft.ttl_us is not None and draft.ttl_us <= 0:
            raise InvalidArgument("ttl", "must be positive")

    async def plan(
        self,
        namespace: str,
        draft: FactDraft,
        content: str,
        deciding: Deciding,
        pending: Pending | None = None,
        leave_out: Collection[str] = (),
        recalled: Collection[str] = (),
    ) -> Planned:
        """Judge a fact, and return what to write for it; see `Judging.judge`."""
        now = now_us()
        begins = now if draft.valid_from_us is None else draft.valid_from_us
        new = await self.new_memory(draft, content, now, begins, deciding)
        await self.attribute(namespace, new)
        judgement = await self._parts.judging.judge(
            namespace, content, deciding,
            at_us=max(begins, now), trust=new.trust, pending=pending, leave_out=leave_out, recalled=recalled,
        )  # fmt: skip
        saved = Saved(Outcome.SAVED, judgement.reason, similarity=judgement.similarity)
        saved.decided_by = DecidedBy.LLM if judgement.by_model else DecidedBy.RULES
        saved.degraded = judgement.degraded
        if judgement.duplicate is not None:
            saved.outcome, saved.existing = Outcome.DUPLICATE, judgement.duplicate
            return Planned(saved)
        saved.existing = next(iter((*judgement.contradicted, *judgement.weaker)), None)
        if judgement.contradicted and draft.on_contradiction is OnContradiction.REFUSE:
            saved.outcome = Outcome.CONTRADICTION
            return Planned(saved)
        saved.memory = new
        contradicted = judgement.contradicted if draft.on_contradiction is OnContradiction.SUPERSEDE else []
        return self._supersede(saved, contradicted, judgement.weaker)

    async def attribute(self, namespace: str, new: UserMemory) -> None:
        """Give an unwritten memory the provenance that it would have."""
        new.provenance = await self._parts.items.provenance_of(namespace, draft_of(new))

    @staticmethod
    async def new_memory(
        draft: FactDraft, content: str, now: int, begins: int, deciding: Deciding
    ) -> UserMemory:
        """Return the memory of a new fact."""
        said = f"{draft.source.quote}\n{draft.content}"
        rated, _ = await deciding.ask(
            lambda decider: decider.rate(content, draft.category, said, draft.explicit_request)
        )
        fact = Fact(
            draft.category,
            draft.reasoning,
            rated,
            begins,
            original_content="" if content == draft.content else draft.content,
            source=draft.source,
        )
        expires = None if draft.ttl_us is None else now + draft.ttl_us
        return UserMemory(
            new_id(now), content, fact, draft.session_id, draft.labels, draft.metadata,
            now, now, expires,
        )  # fmt: skip

    @staticmethod
    def _supersede(saved: Saved, contradicted: Sequence[UserMemory], weaker: Sequence[UserMemory]) -> Planned:
        """End contradicted memories where the new one begins; if it began earlier, end it where they begin.

        A less trusted memory never ends a more trusted one, or any writer could make trusted memories
        disappear. `weaker` say the same and are trusted less: the new one supersedes them.
        """
        new = saved.memory
        assert new is not None
        begins = new.fact.valid_from_us
        older = [m for m in contradicted if m.fact.valid_from_us <= begins and m.trust <= new.trust]
        later = [m for m in contradicted if m.fact.valid_from_us > begins and m.trust >= new.trust]
        if firm := next((m for m in contradicted if m.trust > new.trust), None):
            saved.existing = firm
            saved.reason = f"a more trusted memory stays valid: {saved.reason}"[:REASON_CHARS_MAX]
        if later:
            first = min(later, key=lambda m: m.fact.valid_from_us)
            new.fact.superseded_by = first.id
            new.fact.valid_until_us = first.fact.valid_from_us
            new = saved.memory = new.settled(now_us())
        ended = [*older, *weaker]
        for known in ended:
            until = max(begins, known.fact.valid_from_us + (known in weaker))
            saved.superseded.append(
                known.changed(valid_until_us=until, superseded_by=new.id).settled(now_us())
            )
            new.fact.supersedes.append(known.id)
        if ended:
            saved.outcome = Outcome.SUPERSEDED
        return Planned(saved, ended)

    async def _write(
        self, namespace: str, planned: Planned, since: Since, request: Answering[Saved] | None
    ) -> Saved:
        saved = planned.saved
        if saved.memory is None:
            return await self.without_writing(namespace, saved, request)

        def finish(added: Added) -> None:
            saved.revision = added.receipt.revision
            saved.degraded = [*saved.degraded, *(d for d in added.degraded if d not in saved.degraded)]

        await self.write_all(
            namespace, [saved.memory], saved.superseded, saved, request, finish, unchanged=since
        )
        return saved

    async def without_writing(self, namespace: str, result: D, request: Answering[D] | None) -> D:
        """Set the revision of a result for which nothing is written, and store it as the answer to its
        request.
        """

        def at(revision: int) -> None:
            result.revision = revision

        at(await self._parts.reading.revision(namespace))
        if request is not None:
            await keep_answer(self._parts.store, namespace, request, result, at)
        return result

    async def write_all(
        self,
        namespace: str,
        new: Sequence[UserMemory],
        changed: Sequence[UserMemory],
        result: D,
        request: Answering[D] | None,
        finish: Callable[[Added], None],
        *,
        unchanged: Since | None = None,
        corrected: bool = False,
    ) -> None:
        """Write memories for a result, as `write` does, and store the answer to its request with them.

        `finish` completes the result after the write; it is called once or twice. Raises Repeated, Conflict.
        """

        def complete(added: Added) -> None:
            finish(added)
            if request is not None:
                request.tell(added.receipt, result)

        key = None if request is None else request.key
        added = await self.write(
            namespace, new, changed, key, unchanged=unchanged, corrected=corrected, complete=complete
        )
        if added.receipt.replayed:
            raise Repeated(added.receipt)
        finish(added)

    async def write(
        self,
        namespace: str,
        new: Sequence[UserMemory],
        changed: Sequence[UserMemory],
        request: RequestKey | None,
        removals: Sequence[str] = (),
        *,
        derived: bool = False,
        unchanged: Since | None = None,
        corrected: bool = False,
        complete: Complete | None = None,
    ) -> Added:
        """Write new memories, and next versions with the same content, all or none. Raises Conflict.

        `derived`: with the removed memories, what was made only from them.
        The memories get the id, revision, time and provenance of their write before `complete` is called.
        `corrected`: the next versions have values that a caller changed.
        """
        if unchanged is not None:
            named = {memory.fact.superseded_by for memory in new} - {""}
            unchanged = replace(unchanged, ids=unchanged.ids | named)
        memories = (*new, *changed)
        kept = [draft_of(m, keep_vector=True) for m in changed]
        for draft in kept:
            draft.own = not corrected
        drafts = [draft_of(m) for m in new] + kept

        def note(added: Added) -> None:
            for memory, item in zip(memories, added.items, strict=True):
                # A held write may have been held before, under the earlier id.
                memory.id, memory.revision, memory.update_us = item.id, item.revision, item.update_us
                memory.provenance = item.provenance

        def note_first(added: Added) -> None:
            note(added)
            if complete is not None:
                complete(added)

        added = await self._parts.items.add(
            namespace,
            drafts,
            fields=[f"memories[{at}]" for at in range(len(drafts))],
            removals=removals,
            derived=derived,
            on_duplicate=OnDuplicate.REPLACE,
            request=request,
            bounded=True,
            unchanged=unchanged,
            complete=note_first,
        )
        if not added.receipt.replayed:
            note(added)
        return added


async def reworded(content: str, deciding: Deciding) -> tuple[str, DecidedBy]:
    """Return a fact in the third person, and who put it so; UNSPECIFIED if it was so already."""
    worded, by = await deciding.ask(lambda decider: decider.word(content))
    unchanged = by is DecidedBy.RULES and worded == content
    return worded, DecidedBy.UNSPECIFIED if unchanged else by


def check_content(field: str, content: str) -> None:
    """Check the length of a fact."""
    if not len(content.strip()) >= CONTENT_CHARS_MIN or len(content) > CONTENT_CHARS_MAX:
        raise InvalidArgument(field, f"must have {CONTENT_CHARS_MIN} to {CONTENT_CHARS_MAX} characters")


def check_reasoning(field: str, reasoning: str) -> None:
    """Check the length of a reasoning."""
    if not len(reasoning.strip()) >= REASONING_CHARS_MIN or len(reasoning) > REASONING_CHARS_MAX:
        raise InvalidArgument(field, f"must have {REASONING_CHARS_MIN} to {REASONING_CHARS_MAX} characters")
