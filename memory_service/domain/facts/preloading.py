"""Memories that belong into every prompt, as a block of text that changes as little as possible.

Providers keep what they computed for the beginning of a prompt, until a byte of it differs.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence

import msgspec

from memory_service.deciders.base import Category
from memory_service.domain.checks import Checks
from memory_service.domain.facts.prompt_block import FRAME, bullet, prompt_block
from memory_service.domain.facts.reading import UserMemoryReading, Wanted
from memory_service.domain.facts.user_memory import UserMemory
from memory_service.errors import InvalidArgument
from memory_service.runtime.clock import now_us
from memory_service.tokens import estimate_tokens

PRELOADED = (Category.IDENTITY, Category.PREFERENCE, Category.RELATIONSHIP)
_LIMIT = 100
_TOKENS = 1000
_REMEMBERED_MAX = 10_000
"""Texts whose digests are remembered, some 200 bytes each. Halved: of many users, more that come back after a
while get their unchanged block again."""


class Preloaded(msgspec.Struct):
    """Memories for every system prompt, most important first, and their text in the order of saving.

    `unchanged`: the text is the same as at the revision that was asked about; it and the memories are left
    out.
    """

    memories: list[UserMemory]
    text: str
    token_count: int
    omitted_count: int
    revision: int
    unchanged: bool = False


class UserMemoryPreloading:
    """Chooses memories for prompts. Remembers digests of recent blocks, to recognise an unchanged one."""

    def __init__(
        self, reading: UserMemoryReading, checks: Checks, memory_bytes: Callable[[UserMemory], int]
    ) -> None:
        self._reading = reading
        self._checks = checks
        self._memory_bytes = memory_bytes
        self._texts: OrderedDict[bytes, bytes] = OrderedDict()
        """Digests of texts by those of query and revision, the latest used last."""

    async def preload(
        self,
        namespace: str,
        wanted: Wanted,
        *,
        max_tokens: int | None = None,
        limit: int | None = None,
        if_not_revision: int | None = None,
    ) -> Preloaded:
        """Return the memories of the important categories as a block of text.

        The text depends only on the memories in it: neither on other writes nor on time, except that
        memories end and begin to hold, and reach `min_importance` no longer. A new memory comes last.
        """
        if not wanted.categories:
            wanted.categories = PRELOADED
        self._reading.check(namespace, wanted)
        limit = _LIMIT if limit is None else limit
        if not 0 <= limit <= self._checks.limits.page_items_max:
            raise InvalidArgument("limit", f"must be 0 to {self._checks.limits.page_items_max}")
        max_tokens = _TOKENS if max_tokens is None else max_tokens
        if max_tokens < -1:
            raise InvalidArgument("max_tokens", "must be -1 (no bound) or more")
        self._checks.count("if_not_revision", if_not_revision or 0)
        # Read first: a client that watches changes from this revision misses none.
        revision = await self._reading.revision(namespace)
        stored = await self._reading.stored(namespace, wanted)
        now = now_us()
        saved = [m for m in stored if not m.expired(now) and self._reading.fits(m, wanted)]
        ranked = sorted(saved, key=lambda memory: (-self._reading.standing(memory), -memory.update_us))
        chosen = self._affordable(ranked[:limit], max_tokens)
        ids = {memory.id for memory in chosen}
        text = prompt_block([memory for memory in saved if memory.id in ids])
        answer = Preloaded(chosen, text, estimate_tokens(text), len(saved) - len(chosen), revision)
        fixed = not (self._reading.decays and wanted.min_importance is not None)
        fixed = fixed and not any(_changed_by_time(memory, wanted, now) for memory in stored)
        if fixed and await self._reading.revision(namespace) == revision:
            query = (namespace, limit, max_tokens, *wanted.scope())
            if self._is_known(query, answer, if_not_revision):
                answer.memories, answer.text, answer.unchanged = [], "", True
        return answer

    def _is_known(self, query: tuple[object, ...], answer: Preloaded, revision: int | None) -> bool:
        """Return whether the text was the answer to the query at a revision, and remember it as that of now.

        Only for texts that a revision determines: they change neither with time nor while they are read.
        """
        digest = _digest(answer.text)
        known = self._texts.get(_digest((query, revision))) == digest
        now = _digest((query, answer.revision))
        self._texts[now] = digest
        self._texts.move_to_end(now)
        if len(self._texts) > _REMEMBERED_MAX:
            self._texts.popitem(last=False)
        return known

    def _affordable(self, memories: Sequence[UserMemory], max_tokens: int) -> list[UserMemory]:
        """Return the memories that fit, whole. Shorter ones may follow a long one that does not."""
        bytes_left = self._checks.limits.page_bytes_max // 2
        # Estimated line by line, which never yields less than an estimate of the whole.
        tokens = estimate_tokens(FRAME)
        chosen: list[UserMemory] = []
        for memory in memories:
            line = bullet(memory)
            bytes_left -= self._memory_bytes(memory) + len(line.encode())
            if bytes_left < 0:
                break
            cost = estimate_tokens(line + "\n")
            if max_tokens < 0 or tokens + cost <= max_tokens:
                chosen.append(memory)
                tokens += cost
        return chosen


def _changed_by_time(memory: UserMemory, wanted: Wanted, now: int) -> bool:
    """Return whether time alone has added a memory to the block, or removed it, since its last write."""
    fact = memory.fact
    moments = [memory.expire_us]
    if wanted.as_of_us is None:
        moments += [fact.valid_from_us, fact.valid_until_us]
    return any(moment is not None and memory.update_us < moment <= now for moment in moments)


def _digest(value: object) -> bytes:
    return hashlib.blake2b(repr(value).encode(), digest_size=16).digest()
