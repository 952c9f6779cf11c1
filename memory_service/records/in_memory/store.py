"""The in-memory store: exact search, nothing on disk. The oracle that other stores are tested against."""

from __future__ import annotations

import dataclasses
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from itertools import islice
from typing import TypeVar

import msgspec

from memory_service.data_model import (
    Change,
    ChangeType,
    HeldWrite,
    IndexInfo,
    Item,
    NamespaceInfo,
    NamespaceSettings,
    Receipt,
    RequestKey,
    Since,
    StateEntry,
    UndoStep,
    VectorFill,
    WritesBy,
)
from memory_service.errors import NotFound, Unsupported
from memory_service.indexes.analysis import Analyzer
from memory_service.indexes.settings import IndexSettings
from memory_service.indexes.view import NamespaceView
from memory_service.operations import Operation, RenameState
from memory_service.reading import NOTHING, Reading
from memory_service.records.base import HISTORY_US, BackupReport, Capabilities, RestoredFiles
from memory_service.records.change_signal import ChangeSignal
from memory_service.records.content_bytes import Measured, check_room, item_bytes, state_bytes
from memory_service.records.in_memory.applying import Plan
from memory_service.records.in_memory.history import History
from memory_service.records.in_memory.namespace import Namespace
from memory_service.records.in_memory.reading import InMemoryReading
from memory_service.records.in_memory.version_store import InMemoryVersionStore
from memory_service.records.rules.derivation import Links, check_facts, check_parents
from memory_service.records.rules.held import same_request
from memory_service.records.rules.history import Version
from memory_service.records.rules.items import check_unchanged, grows
from memory_service.records.rules.presence import live
from memory_service.records.rules.requests import answers_since
from memory_service.records.rules.settings import next_settings
from memory_service.records.rules.states import note_saved, state_to_rename
from memory_service.records.rules.undo import check_files, step_of, undo_item, undo_state
from memory_service.records.rules.vectors import check_fills, check_move
from memory_service.records.stored_values import encode_settings, settings_of
from memory_service.runtime.caller import ANYBODY, Caller
from memory_service.runtime.clock import now_us
from memory_service.runtime.yielding import each
from memory_service.store import Store

T = TypeVar("T")
_EXACT = IndexSettings(exact_vectors_max=1 << 62)


class InMemoryStore(InMemoryVersionStore, Store):
    """Keeps everything in dictionaries. Each write is one step of the event loop, hence atomic."""

    capabilities = Capabilities(durable=False, backup=False, shared=False, files=False)

    def __init__(
        self,
        *,
        history_us: int = HISTORY_US,
        namespace_bytes_max: int = 0,
    ) -> None:
        """`namespace_bytes_max` 0: no limit, and bytes are not counted."""
        self._history_us = history_us
        self._keeps_history = history_us > 0
        self._namespace_bytes_max = namespace_bytes_max
        self._namespaces: dict[str, Namespace] = {}
        self._next_uid = 1
        self._analyzer = Analyzer()
        self._signal = ChangeSignal()

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        self._signal.close()

    async def flush(self) -> None:
        pass

    async def backup(self, name: str, progress: Callable[[int, int], None]) -> BackupReport:
        raise Unsupported("backup", "this server keeps its records in memory; export them instead")

    # --- items --------------------------------------------------------------------------------

    async def write(
        self,
        namespace: str,
        operations: Sequence[Operation],
        *,
        request: RequestKey | None = None,
        released: str = "",
        unchanged: Since | None = None,
        facts: Collection[str] = (),
        derived_max: int | None = None,
        by: Caller = ANYBODY,
    ) -> Receipt:
        found = self._begin(namespace)
        if released and released not in found.held:
            raise NotFound.quarantined(namespace, released)
        if request and (earlier := found.earlier(request)):
            found.held.pop(released, None)
            return earlier
        if grows(operations):
            self._check_room(found)
        if unchanged is not None:
            check_unchanged(unchanged, found.revision, found.changes_since(unchanged.revision))
        plan = Plan(found, by, operations, derived_max)
        steps = [plan.step(operation) for operation in operations]
        check_parents(operations, lambda ids: found.items)
        check_facts(facts, plan.derived)
        found.held.pop(released, None)
        receipt = Receipt(found.revision)
        receipt.counts = [step(receipt) for step in steps]
        receipt.derived_counts = plan.derived_counts if plan.derived else []
        found.dimension, found.model = plan.rule.dimension, plan.rule.model
        receipt.revision = found.revision
        return self._commit(found, request, receipt)

    async def find_receipt(self, namespace: str, request: RequestKey) -> Receipt | None:
        found = self._namespaces.get(namespace)
        return found.earlier(request) if found else None

    async def get_items(
        self, namespace: str, ids: Sequence[str], *, with_embedding: bool = False
    ) -> dict[str, Item]:
        found = self._namespaces.get(namespace)
        if found is None:
            return {}
        return {i: found.read(i, with_embedding) for i in ids if i in found.items}

    async def get_versions(
        self, namespace: str, versions: Sequence[tuple[str, int]]
    ) -> dict[tuple[str, int], Item]:
        present = await self.get_items(namespace, [item_id for item_id, _ in versions])
        if not present:
            return {}
        history = self._namespaces[namespace].history
        kept = [kept.item for item_id in present for _, _, kept in history.items.get(item_id, ()) if kept]
        every = {(item.id, item.revision): item for item in (*kept, *present.values())}
        return {version: every[version] for version in versions if version in every}

    async def record_uses(self, namespace: str, positions: Sequence[int], *, by: Caller = ANYBODY) -> None:
        if (found := self._namespaces.get(namespace)) is not None:
            used = [position for position in positions if position in found.ids]
            found.use_counts.update(used)
            found.view.record_uses({position: found.use_counts[position] for position in used})

    async def refresh_expiry(
        self, namespace: str, positions: Sequence[int], now_us: int, *, by: Caller = ANYBODY
    ) -> None:
        if (found := self._namespaces.get(namespace)) is not None:
            for position in positions:
                found.refresh_expiry(position, now_us)

    async def link_parents(self, namespace: str, items: Sequence[Item], *, by: Caller = ANYBODY) -> None:
        if (found := self._namespaces.get(namespace)) is not None:
            for item in items:
                if (stored := found.items.get(item.id)) and stored.revision == item.revision:
                    found.link(stored)

    async def read(self, namespace: str) -> Reading:
        found = self._namespaces.get(namespace)
        return NOTHING if found is None else InMemoryReading(found)

    async def index_info(self, namespace: str) -> IndexInfo:
        found = self._namespaces.get(namespace)
        return found.view.index_info() if found else IndexInfo()

    # --- pending vectors ----------------------------------------------------------------------

    async def begin_reembedding(
        self,
        namespace: str,
        model: str,
        dimension: int,
        *,
        replace_client_vectors: bool,
        by: Caller = ANYBODY,
    ) -> NamespaceInfo:
        found = self._namespaces.get(namespace)
        if found is None:
            raise NotFound.namespace(namespace)
        if check_move(found.info(), model, dimension, replace_client_vectors):
            found.model, found.dimension = model, dimension
            found.vector_epoch += 1
            found.vectors = {}
            found.pending = set(found.items)
            found.view.give_up_vectors(found.vector_epoch, dimension)
            for item_id, item in found.items.items():
                found.items[item_id] = msgspec.structs.replace(item, embedded=False)
        return found.info()

    async def namespaces_with_pending(self, after: str, limit: int, *, model: str = "") -> list[str]:
        return sorted(
            name
            for name, found in self._namespaces.items()
            if found.pending and name > after and model in ("", found.model)
        )[:limit]

    async def pending_items(self, namespace: str, after_position: int, limit: int) -> list[Item]:
        found = self._namespaces.get(namespace)
        if found is None:
            return []
        items = [found.items[item_id] for item_id in found.pending]
        waiting = [item for item in items if item.position > after_position]
        return sorted(waiting, key=lambda item: item.position)[:limit]

    async def fill_vectors(self, namespace: str, uid: int, model: str, fills: Sequence[VectorFill]) -> int:
        found = self._namespaces.get(namespace)
        if found is None or found.uid != uid:
            return 0
        dimension = check_fills(found.info(), model, fills)
        done = [fill for fill in fills if found.fill(fill)]
        if done:
            found.dimension = dimension
        return len(done)

    # --- state --------------------------------------------------------------------------------

    async def load_states(self, namespace: str, keys: Sequence[str]) -> dict[str, StateEntry]:
        found = self._namespaces.get(namespace)
        return {k: found.states[k] for k in keys if k in found.states} if found else {}

    async def scan_states(
        self,
        namespace: str,
        after_key: str,
        limit: int,
        *,
        now_us: int,
        prefix: str = "",
        value_chars: int | None = None,
    ) -> list[StateEntry]:
        found = self._namespaces.get(namespace)
        if found is None:
            return []
        keys = sorted((key for key in found.states if key.startswith(prefix)), key=str.encode)
        lasting = (live(found.states[k], now_us) for k in keys if k.encode() > after_key.encode())
        entries = list(islice(filter(None, lasting), limit))
        if value_chars is None:
            return entries
        return [_shortened(entry, value_chars) for entry in entries]

    async def rename_state(
        self,
        namespace: str,
        renaming: RenameState,
        *,
        request: RequestKey | None = None,
        by: Caller = ANYBODY,
    ) -> Receipt:
        found = self._begin(namespace)
        if request and (earlier := found.earlier(request)):
            return earlier
        taken = found.states.get(renaming.new_key)
        state_to_rename(namespace, renaming, found.states.get(renaming.key), taken)
        receipt = Receipt(0)
        note_saved(receipt, [found.rename_state(renaming.key, renaming.new_key, by)])
        receipt.revision = found.revision
        return self._commit(found, request, receipt)

    async def clear_states(
        self, namespace: str, *, request: RequestKey | None = None, by: Caller = ANYBODY
    ) -> Receipt:
        found = self._begin(namespace)
        if request and (earlier := found.earlier(request)):
            return earlier
        removed = found.clear_states()
        found.log(ChangeType.STATE_CLEARED, "")
        found.note_removal(by)
        return self._commit(found, request, Receipt(found.revision, removed_state_count=removed))

    # --- quarantine ---------------------------------------------------------------------------

    async def hold(
        self, namespace: str, held: Sequence[HeldWrite], *, by: Caller = ANYBODY
    ) -> list[HeldWrite]:
        found = self._begin(namespace)
        kept = []
        for write in held:
            same = [h for h in found.held.values() if same_request(h, write)]
            kept.append(same[0] if same else write)
        found.held.update((write.id, write) for write in kept)
        self._commit(found, None, Receipt(found.revision))
        return kept

    async def held_writes(self, namespace: str, after: str, limit: int, *, now_us: int) -> list[HeldWrite]:
        held = self._held(namespace)
        ids = sorted(i for i, write in held.items() if i > after and write.expire_us > now_us)
        return [held[i] for i in ids[:limit]]

    async def held_write(self, namespace: str, held_id: str) -> HeldWrite | None:
        return self._held(namespace).get(held_id)

    async def count_held(self, namespace: str, whose: WritesBy | None = None) -> int:
        return sum(whose is None or write.by(whose) for write in self._held(namespace).values())

    async def drop_held(self, namespace: str, held_id: str, *, by: Caller = ANYBODY) -> None:
        if self._held(namespace).pop(held_id, None) is None:
            raise NotFound.quarantined(namespace, held_id)

    async def drop_held_by(self, namespace: str, whose: WritesBy, *, by: Caller = ANYBODY) -> int:
        held = self._held(namespace)
        ids = [held_id for held_id, write in held.items() if write.by(whose)]
        for held_id in ids:
            del held[held_id]
        return len(ids)

    def _held(self, namespace: str) -> dict[str, HeldWrite]:
        found = self._namespaces.get(namespace)
        return found.held if found else {}

    # --- undo ---------------------------------------------------------------------------------

    async def undo_items(
        self,
        namespace: str,
        whose: WritesBy,
        after_position: int,
        limit: int,
        *,
        dry_run: bool,
        files: RestoredFiles | None = None,
        by: Caller = ANYBODY,
    ) -> UndoStep:
        found = self._namespaces.get(namespace)
        if found is None:
            return UndoStep()
        items = sorted(found.items.values(), key=lambda item: item.position)
        touched = [
            item
            for item in items
            if item.position > after_position and _touched(found.history.of_item(item), whose)
        ][:limit]
        undone = {
            item.id: undo_item(found.history.of_item(item), item.position, whose, now_us())
            for item in touched
        }
        if not dry_run:
            if files is not None:
                since = files.unchanged
                check_unchanged(since, found.revision, found.changes_since(since.revision))
            check_files(undone, files)
        for item in () if dry_run else touched:
            facet = files.facets.get((item.id, undone[item.id].restored)) if files else None
            found.undo_item(item, undone[item.id], facet)
        if not dry_run:
            self._signal.fire(namespace)
        return step_of(undone, [item.position for item in touched], limit)

    async def undo_states(
        self,
        namespace: str,
        whose: WritesBy,
        after_key: str,
        limit: int,
        *,
        dry_run: bool,
        by: Caller = ANYBODY,
    ) -> UndoStep:
        found = self._namespaces.get(namespace)
        if found is None:
            return UndoStep()
        entries = sorted(found.states.values(), key=lambda entry: entry.key.encode())
        touched = [
            entry
            for entry in entries
            if entry.key.encode() > after_key.encode() and _touched(found.history.of_state(entry), whose)
        ][:limit]
        undone = {
            entry.key: undo_state(found.history.of_state(entry), entry.create_us, whose, now_us())
            for entry in touched
        }
        for entry in () if dry_run else touched:
            found.undo_state(entry, undone[entry.key])
        if not dry_run:
            self._signal.fire(namespace)
        return step_of(undone, list(undone), limit)

    async def count_removals(self, namespace: str, whose: WritesBy) -> int:
        found = self._namespaces.get(namespace)
        return 0 if found is None else found.history.count_removals(whose)

    async def record_request(
        self, namespace: str, receipt: Receipt, request: RequestKey, *, by: Caller = ANYBODY
    ) -> Receipt:
        found = self._begin(namespace)
        if earlier := found.earlier(request):
            return earlier
        receipt.revision = found.revision
        return self._commit(found, request, receipt)

    # --- changes ------------------------------------------------------------------------------

    async def read_changes(self, namespace: str, after_revision: int, limit: int) -> list[Change]:
        found = self._namespaces.get(namespace)
        if found is None:
            return []
        first = bisect_right(found.changes, after_revision, key=lambda change: change.revision)
        return found.changes[first : first + limit]

    async def wait_for_change(self, namespace: str, after_revision: int) -> None:
        before = self._namespaces.get(namespace)

        def happened() -> bool:
            found = self._namespaces.get(namespace)
            if before is not None and (found is None or found.uid != before.uid):
                return True
            return found is not None and found.revision > after_revision

        await self._signal.wait_until(namespace, happened)

    # --- namespaces ---------------------------------------------------------------------------

    async def namespace(self, namespace: str, *, fresh: bool = True) -> NamespaceInfo | None:
        found = self._namespaces.get(namespace)
        return found.info() if found else None

    async def namespace_bytes(self, namespace: str) -> int:
        found = self._namespaces.get(namespace)
        if found is None:
            return 0
        items = await each(item_bytes, [*found.items.values()])
        return sum(items) + sum(await each(state_bytes, [*found.states.values()]))

    async def scan_namespaces(self, prefix: str, after: str, limit: int) -> list[NamespaceInfo]:
        names = sorted(name for name in self._namespaces if name.startswith(prefix) and name > after)
        return [self._namespaces[name].info() for name in names[:limit]]

    async def save_settings(
        self, namespace: str, settings: NamespaceSettings, *, expected_version: int, by: Caller = ANYBODY
    ) -> NamespaceInfo:
        found = self._begin(namespace)
        current = settings_of(found.settings)
        found.settings = encode_settings(next_settings(namespace, settings, expected_version, current))
        self._commit(found, None, Receipt(found.revision))
        return found.info()

    async def reset(
        self, namespace: str, *, request: RequestKey | None = None, by: Caller = ANYBODY
    ) -> Receipt:
        found = self._begin(namespace)
        if request and (earlier := found.earlier(request)):
            return earlier
        items, states = len(found.items), found.clear_states()
        found.items = self._measured(item_bytes)
        found.ids, found.vectors, found.pending, found.changes = {}, {}, set(), []
        found.use_counts = Counter()
        found.history = History()
        found.requests.forget_answers()
        found.held, found.links = {}, Links()
        found.dimension, found.model = 0, ""
        found.view = NamespaceView(self._analyzer, _EXACT)
        found.log(ChangeType.RESET, "")
        receipt = Receipt(found.revision, removed_count=items, removed_state_count=states)
        return self._commit(found, request, receipt)

    async def delete_namespace(self, namespace: str, *, by: Caller = ANYBODY) -> Receipt:
        found = self._namespaces.pop(namespace, None)
        if found is None:
            raise NotFound.namespace(namespace)
        self._signal.fire(namespace)
        return Receipt(found.revision, removed_count=len(found.items), removed_state_count=len(found.states))

    async def remove_expired(self, now_us: int, forget_requests_before_us: int, limit: int) -> int:
        removed = 0
        for found in self._namespaces.values():
            history_since_us = now_us - self._history_us
            answers_since_us = answers_since(
                forget_requests_before_us, history_since_us if self._keeps_history else None
            )
            found.requests.forget_before(forget_requests_before_us, answers_since_us)
            found.history.prune(history_since_us)
            found.held = {k: v for k, v in found.held.items() if v.expire_us > now_us}
            due = [item for item in found.items.values() if item.expired(now_us)][: limit - removed]
            for item in due:
                found.expire(item)
            removed += len(due)
            keys = [k for k in found.states if live(found.states[k], now_us) is None][: limit - removed]
            for key in keys:
                found.expire_state(key)
            removed += len(keys)
            if due or keys:
                self._signal.fire(found.name)
        return removed

    # --- writing ------------------------------------------------------------------------------

    def _begin(self, namespace: str) -> Namespace:
        """Return the namespace to write to; a new one is added only by `_commit`."""
        found = self._namespaces.get(namespace)
        if found is None:
            view = NamespaceView(self._analyzer, _EXACT)
            items, states = self._measured(item_bytes), self._measured(state_bytes)
            found = Namespace(
                namespace, self._next_uid, now_us(), view, self._analyzer, self._keeps_history, items, states
            )
        return found

    def _measured(self, measure: Callable[[T], int]) -> Measured[T]:
        return Measured(measure if self._namespace_bytes_max else None)

    def _check_room(self, found: Namespace) -> None:
        if self._namespace_bytes_max:
            check_room(found.items.bytes + found.states.bytes, self._namespace_bytes_max)

    def _commit(self, found: Namespace, request: RequestKey | None, receipt: Receipt) -> Receipt:
        if found.name not in self._namespaces:
            self._namespaces[found.name] = found
            self._next_uid += 1
        if request:
            found.requests.keep(request, receipt)
        self._signal.fire(found.name)
        return receipt


def _shortened(entry: StateEntry, value_chars: int) -> StateEntry:
    beginning = entry.value_json[: 4 * value_chars].decode(errors="ignore")[:value_chars]
    return dataclasses.replace(entry, value_json=beginning.encode())


def _touched(versions: Sequence[Version], by: WritesBy) -> bool:
    return any(version.of(by) for version in versions)
