"""An agent's named values."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from memory_service.data_model import PREVIEW_CHARS, Json, Receipt, RequestKey, StateEntry, StateWrite
from memory_service.domain.checks import Checks
from memory_service.domain.conflicts import TRIES, pause_after
from memory_service.domain.page_tokens import PageTokens
from memory_service.domain.provenance import attribute_states
from memory_service.domain.screening import Screening
from memory_service.errors import Conflict, InvalidArgument, NotFound
from memory_service.operations import RenameState
from memory_service.runtime.caller import present_caller
from memory_service.runtime.clock import now_us
from memory_service.runtime.yielding import Part, each
from memory_service.store import Store

_SCANNED_AT_ONCE = 500
_SCANNED_PER_PAGE = 5000
_WILDCARD = re.compile(r"[*?\[]")


@dataclass(slots=True)
class StatePage:
    """One page of entries."""

    entries: list[StateEntry]
    next_page_token: str = ""


class States:
    """Saves, loads, lists and deletes states. `state_bytes` returns the size of one in a response."""

    def __init__(
        self,
        store: Store,
        checks: Checks,
        tokens: PageTokens,
        state_bytes: Callable[[StateEntry], int],
        screening: Screening,
    ) -> None:
        self._screening = screening
        self._state_bytes = state_bytes
        self._store = store
        self._checks = checks
        self._tokens = tokens

    async def save(
        self,
        namespace: str,
        key: str,
        value: Json,
        *,
        nbytes: int,
        expected_version: int | None,
        ttl_us: int | None,
        description: str | None,
        request: RequestKey | None,
        complete: Callable[[StateEntry, Receipt], None] | None = None,
    ) -> tuple[StateEntry, Receipt]:
        """Save a value, of `nbytes` as it was sent; return the entry and the receipt. Raises Conflict.

        `complete` adds other data of the answer to the receipt of a request.
        """
        self._check(namespace, None, request)
        write = await self.write_of(
            "", key, value, nbytes=nbytes, expected_version=expected_version, ttl_us=ttl_us,
            description=description,
        )  # fmt: skip
        attribute_states([write])
        await self._screening.of_state(namespace, write, request)
        if request is not None and complete is not None:
            told = complete
            request = replace(request, complete=lambda receipt: told(self._entry(write, receipt), receipt))
        receipt = await self._store.save_state(namespace, write, request=request, by=present_caller())
        return self._entry(write, receipt), receipt

    async def write_of(
        self,
        prefix: str,
        key: str,
        value: Json,
        *,
        nbytes: int,
        expected_version: int | None,
        ttl_us: int | None,
        description: str | None,
    ) -> StateWrite:
        """Return the write of a value. Raises InvalidArgument for a field, named after `prefix`."""
        self._checks.state_key(key, f"{prefix}key")
        self._checks.size(f"{prefix}value", nbytes, "state_encoded_bytes_max")
        (encoded,) = await each(
            partial(self._checks.encoded, f"{prefix}value", limit_name="state_value_bytes_max"), [value]
        )
        if expected_version is not None:
            self._checks.count(f"{prefix}expected_version", expected_version)
        if ttl_us is not None and ttl_us <= 0:
            raise InvalidArgument(f"{prefix}ttl", "must be positive")
        if description is not None:
            self._checks.description(f"{prefix}description", description)
        now = now_us()
        expire_us = None if ttl_us is None else now + ttl_us
        return StateWrite(key, encoded, now, description, expire_us, expected_version)

    @staticmethod
    def _entry(write: StateWrite, receipt: Receipt) -> StateEntry:
        return StateEntry(
            write.key, write.value_json, receipt.version, receipt.create_us, receipt.update_us,
            receipt.expire_us, len(write.value_json), receipt.description, receipt.revision,
        )  # fmt: skip

    def _check(self, namespace: str, key: str | None, request: RequestKey | None) -> None:
        self._checks.namespace(namespace)
        if key is not None:
            self._checks.state_key(key)
        if request is not None:
            self._checks.request_id(request.id)

    async def load(self, namespace: str, key: str) -> StateEntry:
        """Return an entry. Raises NotFound."""
        self._check(namespace, key, None)
        entry = await self._live(namespace, key)
        if entry is None:
            raise NotFound.state(namespace, key)
        return entry

    async def _live(self, namespace: str, key: str) -> StateEntry | None:
        entry = (await self._store.load_states(namespace, [key])).get(key)
        return None if entry is None or entry.expired(now_us()) else entry

    async def list_keys(self, namespace: str, page_size: int, page_token: str, prefix: str = "") -> StatePage:
        """Return a page of the entries whose key begins with `prefix`, by key."""
        self._checks.namespace(namespace)
        self._checks.name("prefix", prefix, self._checks.limits.state_key_bytes_max, required=False)
        size = self._checks.page_size(page_size)
        scope = ("states", namespace, prefix)
        after = str(self._tokens.read(scope, page_token)[0]) if page_token else ""
        entries = await self._store.scan_states(
            namespace, after, size + 1, now_us=now_us(), prefix=prefix, value_chars=PREVIEW_CHARS + 1
        )
        more = len(entries) > size
        entries = entries[:size]
        return StatePage(entries, self._tokens.make(scope, [entries[-1].key]) if more else "")

    async def search(self, namespace: str, pattern: str, page_size: int, page_token: str) -> StatePage:
        """Return a page of the entries whose key matches a glob pattern, by key."""
        self._checks.namespace(namespace)
        self._checks.name("pattern", pattern, self._checks.limits.pattern_bytes_max)
        size = self._checks.page_size(page_size)
        scope = ("search", namespace, pattern)
        after = str(self._tokens.read(scope, page_token)[0]) if page_token else ""
        matches = re.compile(fnmatch.translate(pattern)).match
        prefix = _WILDCARD.split(pattern, maxsplit=1)[0]
        found: list[StateEntry] = []
        room, part = self._checks.limits.page_bytes_max, Part()
        for _ in range(0, _SCANNED_PER_PAGE, _SCANNED_AT_ONCE):
            # Keys only: each of five hundred values may have a million bytes.
            scanned = await self._store.scan_states(
                namespace, after, _SCANNED_AT_ONCE, now_us=now_us(), prefix=prefix, value_chars=0
            )
            keys = [entry.key for entry in scanned]
            fitting = await each(matches, keys)
            for key, fits in zip(keys, fitting, strict=True):
                entry = await self._live(namespace, key) if fits else None
                if entry is not None:
                    room -= self._state_bytes(entry)
                    if len(found) == size or (found and room < 0):
                        return StatePage(found, self._tokens.make(scope, [after]))
                    found.append(entry)
                    await part.give_way_if_long()
                after = key
            if len(keys) < _SCANNED_AT_ONCE:
                return StatePage(found)
        return StatePage(found, self._tokens.make(scope, [after]))

    async def delete(
        self, namespace: str, key: str, *, expected_version: int | None, request: RequestKey | None
    ) -> int:
        """Remove a key and return the revision. Raises NotFound, Conflict."""
        self._check(namespace, key, request)
        receipt = await self._store.delete_state(
            namespace,
            key,
            now_us=now_us(),
            expected_version=expected_version,
            request=request,
            by=present_caller(),
        )
        return receipt.revision

    async def rename(
        self,
        namespace: str,
        key: str,
        new_key: str,
        *,
        expected_version: int | None,
        request: RequestKey | None,
    ) -> tuple[StateEntry, Receipt]:
        """Give a state another key; return the entry without its value, and the receipt.

        Raises NotFound, Conflict, AlreadyExists.
        """
        self._check(namespace, key, request)
        self._checks.state_key(new_key, "new_key")
        if new_key == key:
            raise InvalidArgument("new_key", "is the same as key")
        if expected_version is not None:
            self._checks.count("expected_version", expected_version)
        for attempt in range(TRIES):
            seen = await self._screened(namespace, key, new_key, request)
            version = seen if expected_version is None else expected_version
            renaming = RenameState(key, new_key, now_us(), version)
            try:
                receipt = await self._store.rename_state(
                    namespace, renaming, request=request, by=present_caller()
                )
                return _renamed(new_key, receipt), receipt
            except Conflict as conflict:
                if expected_version is not None:
                    raise
                lost = conflict
            await pause_after(attempt)
        raise lost

    async def _screened(
        self, namespace: str, key: str, new_key: str, request: RequestKey | None
    ) -> int | None:
        """Ask the write policy about a value under another key; return the version that it saw, if any."""
        if not self._screening.asks:
            return None
        entry = await self._live(namespace, key)
        if entry is None:
            return None
        write = StateWrite(new_key, entry.value_json, now_us(), entry.description)
        await self._screening.of_state(namespace, write, request, "new_key")
        return entry.version

    async def clear(self, namespace: str, *, request: RequestKey | None) -> Receipt:
        """Remove every key of a namespace."""
        self._check(namespace, None, request)
        # A repeatable request is remembered: its repetition must not remove what is written in between.
        if request is None and await self._store.namespace(namespace) is None:
            return Receipt(0)
        return await self._store.clear_states(namespace, request=request, by=present_caller())


def _renamed(key: str, receipt: Receipt) -> StateEntry:
    """Return the entry of a renaming, without its value."""
    (stamp,) = receipt.states
    return StateEntry(
        key, b"", stamp.version, stamp.create_us, stamp.update_us, stamp.expire_us, stamp.size_bytes,
        receipt.description, stamp.revision,
    )  # fmt: skip
