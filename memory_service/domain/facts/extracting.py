"""Finding facts in what a user said, and saving them all in one step."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memory_service.clock import now_us
from memory_service.decisions import DecidedBy, Failure, FailureReason
from memory_service.domain.checks import Checks
from memory_service.domain.deciding import Deciding
from memory_service.domain.facts.categories import Category
from memory_service.domain.facts.extraction import extract
from memory_service.domain.facts.memory import Memory, Origin, Source
from memory_service.domain.facts.prompt_block import without_recalled
from memory_service.domain.facts.reading import MemoryReading
from memory_service.domain.facts.rephrasing import third_person
from memory_service.domain.facts.saving import (
    FactDraft,
    FactSaving,
    Locks,
    OnContradiction,
    Outcome,
    Planned,
    Saved,
)
from memory_service.domain.facts.wording import CONTENT_CHARS_MAX, CONTENT_CHARS_MIN
from memory_service.domain.retrieval import Selection
from memory_service.domain.search_text import search_text
from memory_service.errors import Conflict, InvalidArgument
from memory_service.llms.base import Llm
from memory_service.records import ChatMessage, Item, Receipt, RequestKey, Role
from memory_service.stores.base import Store

_TRIES = 5
_ITEMS = 100
_REASONING_CHARS = 200
_INSTRUCTIONS = (
    "Find lasting facts about the user in the conversation: who they are, what they prefer, whom they know, "
    "what they work on, and what they ask to be remembered. Take only what the user says of themselves and "
    "means; the other lines help to understand it. Leave out questions, requests, guesses, plans that are "
    'not sure, passing states, and general knowledge. Word each fact in the third person, as in "User '
    'prefers TypeScript", in 10 to 500 characters, with every name, number and date that was said. `message` '
    "is the number of the line, `quote` the words of the user from that line, to the letter. `category` is "
    "identity, preference, relationship, project or context. `reasoning` tells in a sentence why it matters "
    "later. `confidence` is 0 to 1. No facts: an empty list."
)


class Said(msgspec.Struct):
    """One message of a conversation; `id` is that of its item, or the message's own."""

    role: Role
    text: str
    id: str = ""


class ExtractedFact(msgspec.Struct):
    """A fact as the model found it."""

    content: str
    category: str
    reasoning: str
    message: int
    quote: str
    confidence: float | None = None


class ExtractedFacts(msgspec.Struct):
    """All facts that the model found."""

    facts: list[ExtractedFact]


class Found(msgspec.Struct):
    """A fact that was found, before anybody looked whether it is known."""

    draft: FactDraft
    content: str
    confidence: float | None = None
    decided_by: DecidedBy = DecidedBy.RULES


class Extraction(msgspec.Struct):
    """What is asked of an extraction."""

    said: Sequence[Said] = ()
    session_id: str = ""
    after_revision: int = 0
    limit: int | None = None
    recalled_ids: Sequence[str] = ()
    categories: Sequence[Category] = ()
    dry_run: bool = False
    on_contradiction: OnContradiction = OnContradiction.SUPERSEDE
    actor: str = ""
    labels: dict[str, str] = {}


class Extracted(msgspec.Struct):
    """What was found, and what became of it."""

    results: list[tuple[Found, Saved]]
    decided_by: DecidedBy
    reason: str
    deciding: Deciding
    examined_count: int = 0
    examined_revision: int = 0
    more: bool = False
    revision: int = 0


class FactExtracting:
    """Extracts facts from messages or from a session."""

    def __init__(
        self,
        store: Store,
        saving: FactSaving,
        reading: MemoryReading,
        checks: Checks,
        llm: Llm | None,
        locks: Locks,
    ) -> None:
        self._store = store
        self._saving = saving
        self._reading = reading
        self._checks = checks
        self._llm = llm
        self._locks = locks

    async def extract(
        self, namespace: str, asked: Extraction, decide_by: DecidedBy, request: RequestKey | None
    ) -> Extracted:
        """Find facts and save each like `FactSaving.save`, all in one write."""
        self._check(namespace, asked, request)
        deciding = Deciding(self._llm, decide_by)
        extracted = Extracted([], DecidedBy.RULES, "", deciding)
        if (receipt := await self._saving.earlier(namespace, request)) is not None:
            return await self._repeated(namespace, receipt, extracted)
        said = await self._said(namespace, asked, extracted)
        found = await self._find(said, asked, deciding, extracted)
        async with self._locks.hold(namespace):
            for _ in range(_TRIES):
                plans = await self._plan(namespace, found, asked, deciding)
                try:
                    await self._write(namespace, plans, asked, request, extracted)
                    return extracted
                except Conflict as error:
                    conflict = error
            raise conflict

    def _check(self, namespace: str, asked: Extraction, request: RequestKey | None) -> None:
        checks = self._checks
        checks.namespace(namespace)
        if request is not None:
            checks.request_id(request.id)
        if not asked.said and not asked.session_id:
            raise InvalidArgument("messages", "are required, or a session_id")
        checks.size("messages", len(asked.said), "extracted_messages_max")
        nbytes = sum(len(said.text.encode()) for said in asked.said)
        checks.size("messages", nbytes, "extracted_text_bytes_max")
        checks.session_id(asked.session_id)
        checks.count("after_revision", asked.after_revision)
        if asked.limit is not None and not 1 <= asked.limit <= checks.limits.page_items_max:
            raise InvalidArgument("limit", f"must be 1 to {checks.limits.page_items_max}")
        checks.size("recalled_memory_ids", len(asked.recalled_ids), "batch_items_max")
        checks.name("actor", asked.actor, checks.limits.session_id_bytes_max, required=False)
        checks.labels("labels", asked.labels)

    # --- what was said --------------------------------------------------------------------------

    async def _said(self, namespace: str, asked: Extraction, extracted: Extracted) -> list[Said]:
        if asked.said:
            extracted.examined_count = len(asked.said)
            return list(asked.said)
        limit = asked.limit or _ITEMS
        wanted = Selection(asked.session_id).to_filter(min_position=asked.after_revision + 1)
        positions = await self._store.scan(namespace, wanted, limit + 1, newest=False)
        extracted.more = len(positions) > limit
        positions = positions[:limit]
        extracted.examined_revision = positions[-1] if positions else asked.after_revision
        items = [i for i in await self._store.load_items(namespace, positions) if i is not None]
        extracted.examined_count = len(items)
        return [_said_in(item) for item in items]

    async def _find(
        self, said: Sequence[Said], asked: Extraction, deciding: Deciding, extracted: Extracted
    ) -> list[Found]:
        lines = [msgspec.structs.replace(line, text=without_recalled(line.text)) for line in said]
        found = await self._by_model(lines, asked, deciding)
        if found is None:
            extracted.reason = "patterns of rules found them"
            found = [f for line in lines if line.role is Role.USER for f in _by_rules(line, asked)]
        else:
            extracted.decided_by, extracted.reason = DecidedBy.LLM, "the language model found them"
        return [f for f in found if not asked.categories or f.draft.category in asked.categories]

    async def _by_model(
        self, lines: Sequence[Said], asked: Extraction, deciding: Deciding
    ) -> list[Found] | None:
        if not any(line.role is Role.USER and line.text.strip() for line in lines):
            return []
        conversation = "\n".join(f"[{at}] {line.role.value}: {line.text}" for at, line in enumerate(lines))
        answer = await deciding.ask(
            _INSTRUCTIONS, {"conversation": conversation}, ExtractedFacts, output_tokens_max=2000
        )
        if answer is None:
            return None
        found = []
        for fact in answer.facts:
            problem, category = _problem(fact, lines)
            if problem or category is None:
                deciding.failures.append(Failure(FailureReason.INVALID_VALUE, problem, fact.content[:100]))
                continue
            draft = _draft(asked, lines[fact.message], fact.content, category, fact.reasoning, fact.quote)
            draft.source.model = deciding.model
            found.append(Found(draft, " ".join(fact.content.split()), fact.confidence, DecidedBy.LLM))
        return found

    # --- what becomes of it ---------------------------------------------------------------------

    async def _plan(
        self, namespace: str, found: Sequence[Found], asked: Extraction, deciding: Deciding
    ) -> list[tuple[Found, Planned]]:
        """Judge each fact, the ones before it included."""
        recalled = set(asked.recalled_ids)
        plans: list[tuple[Found, Planned]] = []
        for fact in found:
            if not CONTENT_CHARS_MIN <= len(fact.content) <= CONTENT_CHARS_MAX:
                rejected = Saved(Outcome.REJECTED, f"has {len(fact.content)} characters")
                plans.append((fact, Planned(rejected)))
                continue
            pending = [p.saved.memory for _, p in plans if p.saved.memory is not None]
            planned = await self._saving.plan(namespace, fact.draft, fact.content, deciding, pending)
            saved = planned.saved
            if saved.outcome is Outcome.DUPLICATE and saved.existing and saved.existing.id in recalled:
                saved.outcome = Outcome.RECALLED
            plans.append((fact, planned))
        return plans

    async def _write(
        self,
        namespace: str,
        plans: Sequence[tuple[Found, Planned]],
        asked: Extraction,
        request: RequestKey | None,
        extracted: Extracted,
    ) -> None:
        new = [p.saved.memory for _, p in plans if p.saved.memory is not None]
        by_id = {memory.id: memory for memory in new}
        ended: dict[str, Memory] = {}
        for _, planned in plans:
            for memory in planned.saved.superseded:
                if memory.id in by_id:
                    # It began and ended within what was said.
                    by_id[memory.id].fact = msgspec.structs.replace(memory.fact, version=1)
                else:
                    ended.setdefault(memory.id, memory)
        extracted.results = [(fact, planned.saved) for fact, planned in plans]
        if new and not asked.dry_run:
            added = await self._saving.write_all(namespace, new, list(ended.values()), request)
            extracted.revision = added.receipt.revision
            return
        extracted.revision = await self._reading.revision(namespace)
        if asked.dry_run:
            for fact, planned in plans:
                _as_would_be(fact, planned)

    async def _repeated(self, namespace: str, receipt: Receipt, extracted: Extracted) -> Extracted:
        """Return the answer to a request that was applied before."""
        extracted.reason, extracted.revision = "the request was applied before", receipt.revision
        memories = await self._reading.by_ids(namespace, [stamp.id for stamp in receipt.items])
        new = [m for m in memories if m.fact.source.origin is Origin.EXTRACTED and m.fact.version == 1]
        for memory in new:
            ended = [m for m in memories if m.id in memory.fact.supersedes]
            outcome = Outcome.SUPERSEDED if ended else Outcome.SAVED
            draft = FactDraft(memory.content, memory.fact.category, memory.fact.reasoning)
            saved = Saved(outcome, extracted.reason, memory, superseded=ended)
            extracted.results.append((Found(draft, memory.content), saved))
        return extracted


def _said_in(item: Item) -> Said:
    """Return what an item says; a text that is nobody's message is not the user's."""
    role = item.content.role if isinstance(item.content, ChatMessage) else Role.SYSTEM
    text = search_text(item.content)
    if isinstance(item.content, ChatMessage) and item.content.name:
        text = text.removeprefix(f"{item.content.name}: ")
    return Said(role, text, item.id)


def _by_rules(line: Said, asked: Extraction) -> list[Found]:
    found = []
    for candidate in extract(line.text):
        draft = _draft(
            asked, line, candidate.content, candidate.category, candidate.reasoning, candidate.content
        )
        found.append(Found(draft, third_person(candidate.content).strip().rstrip(".! ")))
    return found


def _draft(
    asked: Extraction, line: Said, content: str, category: Category, reasoning: str, quote: str
) -> FactDraft:
    source = Source(Origin.EXTRACTED, [line.id] if line.id else [], quote[:500], asked.actor)
    return FactDraft(
        content,
        category,
        _fitting(reasoning),
        source,
        asked.session_id,
        on_contradiction=asked.on_contradiction,
        labels=asked.labels,
    )


def _fitting(reasoning: str) -> str:
    """Return a reasoning of an allowed length."""
    reasoning = " ".join(reasoning.split())[:_REASONING_CHARS]
    return reasoning if len(reasoning) >= 10 else "Found in what the user said"


def _problem(fact: ExtractedFact, lines: Sequence[Said]) -> tuple[str, Category | None]:
    """Return what is wrong with a fact of the model, and its category."""
    try:
        category = Category[fact.category.strip().upper()]
    except KeyError:
        return f"unknown category {fact.category[:40]!r}", None
    if not 0 <= fact.message < len(lines) or lines[fact.message].role is not Role.USER:
        return "names a message that is not the user's", None
    if not fact.quote.strip() or _plain(fact.quote) not in _plain(lines[fact.message].text):
        return "quotes what the user did not say", None
    return "", category


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def _as_would_be(fact: Found, planned: Planned) -> None:
    """Make the result of a dry run: what would be saved has no id, what would end is as it is."""
    saved = planned.saved
    if saved.memory is None:
        now = now_us()
        saved.memory = FactSaving.new_memory(fact.draft, fact.content, now, now)
    saved.memory.id, saved.memory.fact.version = "", 0
    saved.superseded = planned.ended
