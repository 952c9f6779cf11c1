"""Holds writes that a policy put aside for a review; they are invisible to reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from memory_service.data_model import (
    CLIENT_MODEL,
    Content,
    DegradationReason,
    Facet,
    HeldWrite,
    Item,
    ItemWrite,
    Json,
    OnDuplicate,
    Provenance,
    RequestKey,
)
from memory_service.domain.checks import Checks
from memory_service.domain.embedding import Degradation
from memory_service.domain.ids import new_id
from memory_service.domain.item_writing import NOTHING_REMEMBERED, Remembered
from memory_service.domain.page_tokens import PageTokens
from memory_service.domain.search_text import indexed_speaker, indexed_text
from memory_service.errors import AlreadyExists, Conflict, LimitExceeded, NotFound
from memory_service.runtime.caller import present_caller
from memory_service.runtime.clock import now_us
from memory_service.store import Store

_DAY_US = 24 * 3600 * 1_000_000


class _HeldItem(msgspec.Struct, omit_defaults=True):
    id: str
    content: Content
    create_us: int
    session_id: str = ""
    expire_us: int | None = None
    labels: dict[str, str] = {}
    metadata: dict[str, Json] | None = None
    embedding: bytes | None = None
    facet: Facet | None = None
    importance: float | None = None
    provenance: Provenance | None = None
    keep_vector: bool = False
    expected_revision: int | None = None
    index: str | None = None
    parents_exist: bool = False


class _Body(msgspec.Struct, omit_defaults=True):
    items: list[_HeldItem]
    removals: list[str] = []
    on_duplicate: OnDuplicate = OnDuplicate.FAIL
    remembered: Remembered = NOTHING_REMEMBERED


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Body).decode


@dataclass(slots=True)
class Intended:
    """A write with its arguments, as `WriteStore.add_items` takes it."""

    writes: list[ItemWrite]
    removals: Sequence[str] = ()
    on_duplicate: OnDuplicate = OnDuplicate.FAIL
    request: RequestKey | None = None
    remembered: Remembered = NOTHING_REMEMBERED


@dataclass(slots=True)
class Quarantined:
    """A write in quarantine, with its items as they would be."""

    held: HeldWrite
    items: list[Item]


@dataclass(slots=True)
class QuarantinePage:
    """One page of writes in quarantine, the oldest first."""

    writes: list[Quarantined]
    next_page_token: str = ""


class Quarantine:
    """Puts writes into quarantine, and lists, returns and deletes them."""

    def __init__(self, store: Store, checks: Checks, tokens: PageTokens, days: int) -> None:
        self._store = store
        self._checks = checks
        self._tokens = tokens
        self._keep_us = days * _DAY_US

    async def put(self, namespace: str, intended: Intended, reason: str) -> tuple[list[Item], Degradation]:
        """Quarantine a write as a whole. Return its items, with no revision, and the degradation to report.

        A repeated request is stored once. Raises AlreadyExists and Conflict as the write would.
        """
        await self._check(namespace, intended)
        (held,) = await self._hold(namespace, [_held(intended, reason, now_us(), self._keep_us)])
        return [write.item for write in _intended(held).writes], _degradation(held.reason)

    async def put_apart(
        self, namespace: str, writes: Sequence[ItemWrite], reasons: Sequence[str], on_duplicate: OnDuplicate
    ) -> list[Degradation]:
        """Quarantine items as separate writes, except those that are skipped because they exist."""
        held = []
        for write, reason in zip(writes, reasons, strict=True):
            intended = Intended([write], on_duplicate=on_duplicate)
            if not await self._check(namespace, intended):
                held.append(_held(intended, reason, now_us(), self._keep_us))
        if held:
            await self._hold(namespace, held)
        return [_degradation(reason) for reason in dict.fromkeys(write.reason for write in held)]

    async def _check(self, namespace: str, intended: Intended) -> bool:
        """Raise what the write itself would raise now; return whether it would skip everything."""
        now = now_us()
        found = await self._store.get_items(namespace, [write.item.id for write in intended.writes])
        live = {key: item.revision for key, item in found.items() if not item.expired(now)}
        for write in intended.writes:
            revision = live.get(write.item.id, 0)
            if write.expected_revision is not None and write.expected_revision != revision:
                raise Conflict.revision(write.item.id, write.expected_revision, revision)
            if revision and intended.on_duplicate is OnDuplicate.FAIL:
                raise AlreadyExists.item(namespace, write.item.id)
        return intended.on_duplicate is OnDuplicate.SKIP and len(live) == len(intended.writes)

    async def _hold(self, namespace: str, held: Sequence[HeldWrite]) -> list[HeldWrite]:
        limit = self._checks.limits.quarantined_writes_max
        count = len(held) + await self._store.count_held(namespace)
        if count > limit:
            raise LimitExceeded("items", "quarantined_writes_max", limit, count)
        return await self._store.hold(namespace, held, by=present_caller())

    async def page(self, namespace: str, page_size: int, page_token: str) -> QuarantinePage:
        """Return a page of writes in quarantine."""
        self._checks.namespace(namespace)
        size = self._checks.page_size(page_size)
        scope = ("quarantine", namespace)
        after = str(self._tokens.read(scope, page_token)[0]) if page_token else ""
        page, nbytes = QuarantinePage([]), 0
        for held in await self._store.held_writes(namespace, after, size + 1, now_us=now_us()):
            nbytes += len(held.body)
            full = len(page.writes) == size or nbytes > self._checks.limits.page_bytes_max
            if full and page.writes:
                page.next_page_token = self._tokens.make(scope, [page.writes[-1].held.id])
                break
            page.writes.append(Quarantined(held, [write.item for write in _intended(held).writes]))
        return page

    async def intended(self, namespace: str, held_id: str) -> Intended:
        """Return what a write in quarantine would do now. Raises NotFound."""
        self._check_names(namespace, held_id)
        held, now = await self._store.held_write(namespace, held_id), now_us()
        if held is None or held.expire_us <= now:
            raise NotFound.quarantined(namespace, held_id)
        intended = _intended(held)
        for write in intended.writes:
            write.item.update_us = now
        return intended

    async def delete(self, namespace: str, held_id: str) -> int:
        """Delete a write in quarantine; return the revision of the namespace. Raises NotFound."""
        self._check_names(namespace, held_id)
        await self._store.drop_held(namespace, held_id, by=present_caller())
        info = await self._store.namespace(namespace)
        return info.revision if info else 0

    def _check_names(self, namespace: str, held_id: str) -> None:
        self._checks.namespace(namespace)
        self._checks.item_id(held_id)


def _degradation(reason: str) -> Degradation:
    return Degradation(DegradationReason.QUARANTINED, reason)


def _held(intended: Intended, reason: str, now: int, keep_us: int) -> HeldWrite:
    caller = present_caller()
    items = [_held_item(write) for write in intended.writes]
    ends = [item.expire_us for item in items]
    latest = max((end for end in ends if end is not None), default=now) if None not in ends else now + keep_us
    body = _Body(items, list(intended.removals), intended.on_duplicate, intended.remembered)
    return HeldWrite(
        new_id(now), reason, _encode(body), now, min(latest, now + keep_us),
        caller.name, caller.credential_id, intended.request,
    )  # fmt: skip


def _held_item(write: ItemWrite) -> _HeldItem:
    item = write.item
    vector = None if item.embedding is None else np.asarray(item.embedding, "<f4").tobytes()
    return _HeldItem(
        item.id, item.content, item.create_us, item.session_id, item.expire_us, item.labels, item.metadata,
        vector, item.facet, item.importance, item.provenance, write.keep_vector, write.expected_revision,
        item.index, write.parents_exist,
    )  # fmt: skip


def _intended(held: HeldWrite) -> Intended:
    body = _decode(held.body)
    writes = [_write_of(item, held.held_us) for item in body.items]
    return Intended(writes, body.removals, body.on_duplicate, held.request, body.remembered)


def _write_of(kept: _HeldItem, held_us: int) -> ItemWrite:
    provenance = kept.provenance
    if provenance is not None and provenance.write_us is None:
        # The writer is not the caller who releases it later.
        provenance = msgspec.structs.replace(provenance, write_us=held_us)
    vector = None if kept.embedding is None else np.frombuffer(kept.embedding, "<f4").astype(np.float32)
    item = Item(
        kept.id, kept.session_id, kept.content, kept.create_us, held_us, kept.expire_us, kept.labels,
        kept.metadata, vector, facet=kept.facet, importance=kept.importance, provenance=provenance,
        index=kept.index,
    )  # fmt: skip
    return ItemWrite(
        item, indexed_text(item), CLIENT_MODEL if vector is not None else "",
        kept.keep_vector, kept.expected_revision, indexed_speaker(item), parents_exist=kept.parents_exist,
    )  # fmt: skip
