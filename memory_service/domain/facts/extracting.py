"""Finds facts in a user's messages, and saves all of them in one step."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from memory_service.data_model import ChatMessage, Item, Role, Since
from memory_service.deciders.base import CONTENT_CHARS_MAX, CONTENT_CHARS_MIN, Deciding
from memory_service.decisions import DecidedBy
from memory_service.domain.answers import Answering, check_new
from memory_service.domain.embedding import Degradation
from memory_service.domain.facts.finding import FACTS_MAX, Extraction, Found, Said, Search, find_facts
from memory_service.domain.facts.neighbour import Pending
from memory_service.domain.facts.outcomes import Outcome, Planned, Saved
from memory_service.domain.facts.saving import FactSaving
from memory_service.domain.facts.settling import Parts
from memory_service.domain.facts.user_memory import UserMemory
from memory_service.domain.item_writing import Added
from memory_service.domain.retrieve_options import Selection
from memory_service.domain.search_text import search_text
from memory_service.errors import InvalidArgument
from memory_service.reading import Reading
from memory_service.runtime.clock import now_us
from memory_service.runtime.yielding import each, give_way

_ITEMS = 100
# An item may have 2 MiB, and those beyond the limit are loaded in vain. Doubled, they take twice the memory.
_LOADED_AT_ONCE = 20


class Extracted(msgspec.Struct):
    """The facts found, and the outcome of each."""

    results: list[tuple[Found, Saved]]
    decided_by: DecidedBy
    reason: str
    deciding: Deciding
    examined_count: int = 0
    examined_revision: int = 0
    more: bool = False
    revision: int = 0
    degraded: Sequence[Degradation] = ()


Plans = list[tuple[Found, Planned]]


class FactExtracting:
    """Extracts facts from messages or from a session."""

    def __init__(self, parts: Parts, saving: FactSaving) -> None:
        self._parts = parts
        self._saving = saving

    async def extract(
        self, namespace: str, asked: Extraction, decide_by: DecidedBy, request: Answering[Extracted] | None
    ) -> Extracted:
        """Find facts and save each like `FactSaving.save`, all in one write. Raises Repeated.

        The request id of a dry run is not remembered.
        """
        self._check(namespace, asked, request)
        deciding = self._parts.begin(decide_by, namespace)
        extracted = Extracted([], DecidedBy.RULES, "", deciding)
        request = None if asked.dry_run else request
        await check_new(self._parts.store, namespace, request)
        said = await self._said(namespace, asked, extracted)
        search = await find_facts(said, asked, deciding)
        found, extracted.decided_by = search.found, DecidedBy.LLM if search.by_model else DecidedBy.RULES
        extracted.reason = f"{'the language model' if search.by_model else 'patterns of rules'} found them"
        _tell_what_was_left(extracted, search, said)

        async def plan() -> Plans:
            # Check again: the first call may have been running when this one arrived.
            await check_new(self._parts.store, namespace, request)
            return await self._plan(namespace, found, asked, deciding)

        async def write(plans: Plans, since: Since) -> Extracted:
            await self._write(namespace, plans, since, asked, request, extracted)
            return extracted

        return await self._parts.settle(namespace, plan, write, slow=bool(deciding.model))

    def _check(self, namespace: str, asked: Extraction, request: Answering[Extracted] | None) -> None:
        checks = self._parts.checks
        checks.namespace(namespace)
        if request is not None:
            checks.request_id(request.key.id)
        if not asked.said and not asked.session_id:
            raise InvalidArgument("messages", "are required, or a session_id")
        checks.size("messages", len(asked.said), "extracted_messages_max")
        nbytes = sum(len(said.text.encode()) for said in asked.said)
        checks.size("messages", nbytes, "extracted_text_bytes_max")
        checks.session_id(asked.session_id)
        checks.count("after_revision", asked.after_revision)
        for field, given in (("after_revision", asked.after_revision), ("limit", asked.limit is not None)):
            if asked.said and given:
                raise InvalidArgument(
                    field, "applies to a session, and cannot be given together with messages"
                )
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
        wanted = Selection(asked.session_id).to_filter(asked.after_revision + 1)
        reading = await self._parts.store.read(namespace)
        positions = await reading.scan(wanted, limit + 1, newest=False)
        extracted.more = len(positions) > limit
        positions = positions[:limit]
        extracted.examined_revision = positions[-1] if positions else asked.after_revision
        lines, all_of_them = await self._lines(reading, positions)
        if not all_of_them:
            extracted.examined_revision, extracted.more = lines[-1].position, True
        extracted.examined_count = len(lines)
        return lines

    async def _lines(self, reading: Reading, positions: Sequence[int]) -> tuple[list[Said], bool]:
        """Return the texts of items, and whether these are all: together at most what messages may have."""
        most = self._parts.checks.limits.extracted_text_bytes_max
        lines: list[Said] = []
        nbytes = 0
        for start in range(0, len(positions), _LOADED_AT_ONCE):
            items = await reading.load_items(positions[start : start + _LOADED_AT_ONCE])
            for line in await each(partial(_said_in, most), [item for item in items if item is not None]):
                nbytes += len(line.text.encode())
                if lines and nbytes > most:
                    return lines, False
                lines.append(line)
        return lines, True

    # --- what becomes of it ---------------------------------------------------------------------

    async def _plan(
        self, namespace: str, found: Sequence[Found], asked: Extraction, deciding: Deciding
    ) -> Plans:
        """Judge each fact against the known memories and the facts before it."""
        recalled = set(asked.recalled_ids)
        plans: Plans = []
        pending = Pending(await self._parts.judging.vectors(namespace, [fact.content for fact in found]))
        ended: set[str] = set()
        for fact in found:
            await give_way()
            if problem := _length_problem(fact.content) or fact.rejected:
                plans.append((fact, Planned(Saved(Outcome.REJECTED, problem))))
                continue
            planned = await self._saving.plan(
                namespace, fact.draft, fact.content, deciding, pending, ended, recalled
            )
            saved = planned.saved
            if saved.outcome is Outcome.DUPLICATE and saved.existing and saved.existing.id in recalled:
                saved.outcome = Outcome.RECALLED
            if saved.memory is not None:
                pending.add(saved.memory)
            ended.update(memory.id for memory in planned.ended)
            plans.append((fact, planned))
        return plans

    async def _write(
        self,
        namespace: str,
        plans: Plans,
        since: Since,
        asked: Extraction,
        request: Answering[Extracted] | None,
        extracted: Extracted,
    ) -> None:
        new = [p.saved.memory for _, p in plans if p.saved.memory is not None]
        by_id = {memory.id: memory for memory in new}
        ended: list[UserMemory] = []
        for _, planned in plans:
            for memory in planned.saved.superseded:
                if memory.id in by_id:
                    # It began and ended within these messages.
                    by_id[memory.id].fact = msgspec.structs.replace(memory.fact, version=1)
                else:
                    ended.append(memory)
        extracted.results = [(fact, planned.saved) for fact, planned in plans]
        pending = set(by_id) if asked.dry_run else set()
        for fact, planned in plans:
            if asked.dry_run or planned.saved.memory is None:
                await self._as_would_be(namespace, fact, planned, pending, extracted.deciding)
                await give_way()
        if not new or asked.dry_run:
            await self._saving.without_writing(namespace, extracted, request)
            return

        def finish(added: Added) -> None:
            extracted.revision, extracted.degraded = added.receipt.revision, added.degraded

        await self._saving.write_all(namespace, new, ended, extracted, request, finish, unchanged=since)

    async def _as_would_be(
        self, namespace: str, fact: Found, planned: Planned, pending: set[str], deciding: Deciding
    ) -> None:
        """Complete the result of a fact that is not written: its memory has no id, and superseded ones are
        shown unchanged. `pending` are the ids of memories that are not written either.
        """
        saved = planned.saved
        if saved.memory is None:
            now = now_us()
            begins = now if fact.draft.valid_from_us is None else fact.draft.valid_from_us
            saved.memory = await self._saving.new_memory(fact.draft, fact.content, now, begins, deciding)
            await self._saving.attribute(namespace, saved.memory)
        saved.memory.id, saved.memory.fact.version = "", 0
        if saved.memory.fact.superseded_by in pending:
            saved.memory.fact.superseded_by = ""
        saved.memory.fact.supersedes = [i for i in saved.memory.fact.supersedes if i not in pending]
        saved.superseded = planned.ended


def _tell_what_was_left(extracted: Extracted, search: Search, said: Sequence[Said]) -> None:
    """Report how many messages were examined, if they have more facts than one call takes."""
    if search.left_out:
        extracted.reason += f"; only the first {FACTS_MAX} facts of the last message were taken"
    if any(line.cut for line in said[: search.line_count]):
        extracted.reason += "; only the beginning of an overlong message was examined"
    if search.line_count == len(said):
        return
    extracted.reason += f"; the messages after these exceed the limit of {FACTS_MAX} facts per call"
    extracted.examined_count = search.line_count
    if last := said[search.line_count - 1].position:
        extracted.examined_revision, extracted.more = last, True


def _length_problem(content: str) -> str:
    fits = CONTENT_CHARS_MIN <= len(content) <= CONTENT_CHARS_MAX
    return "" if fits else f"has {len(content)} characters"


def _said_in(bytes_max: int, item: Item) -> Said:
    """Return the text of an item, cut at the limit. An item that is not a message does not count as the
    user's.
    """
    role = item.content.role if isinstance(item.content, ChatMessage) else Role.SYSTEM
    text = search_text(item.content)
    if isinstance(item.content, ChatMessage) and item.content.name:
        text = text.removeprefix(f"{item.content.name}: ")
    cut = len(text.encode()) > bytes_max
    if cut:
        text = text.encode()[:bytes_max].decode(errors="ignore")
    return Said(role, text, item.id, min(item.create_us, now_us()), item.position, cut)
