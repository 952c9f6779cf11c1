"""The records contract: what must be kept, in which order, and what is atomic.

Records are the source of truth; the views that find items (`memory_service/reading.py`) are derived from
them. Records know nothing of requests, limits or embedders. Every MUST below has a case in `tests/contract/`,
which every store runs. Nothing here needs more than one SQL transaction or one SQL query, so a store on a
database server can keep the same promises.

For all methods:

- A write that returns MUST be durable (where the store is), MUST be visible to every read that begins
  afterwards, and MUST be applied as a whole or not at all, even if it raises or is cancelled.
- A cancelled write may still be applied, but then before any write that its caller begins afterwards at the
  same server. Across servers this order is not guaranteed.
- Every change MUST raise the namespace's revision. Revisions of a namespace are unique, and a change MUST NOT
  become visible before another one with a lower revision.
- A write whose `request` was applied before with the same digest MUST change nothing and return the first
  receipt with `replayed` set; with a different digest it MUST raise FailedPrecondition. The request is
  recorded in the same transaction as its effect, with the receipt as `request.complete` left it. If the
  receipt has an `answer`, its `whole` MUST be forgotten in the same step as any item or state listed in its
  `items` and `states`: when that item or state is removed, when a version of it is not kept, or by an undo.
  The rest of the receipt stays.
- `by` is the caller that acts: deletions MUST be recorded as theirs, and queued writes of different callers
  take turns.
- Reading a namespace that does not exist is like reading an empty one. The first write creates a namespace.
- Every method may raise Unavailable("STORAGE_UNAVAILABLE") and StorageFull. After the first, a write may or
  may not have been applied: repeat it with the same request. Reads may be repeated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memory_service.data_model import (
    Change,
    Facet,
    HeldWrite,
    Item,
    ItemWrite,
    NamespaceInfo,
    NamespaceSettings,
    OnDuplicate,
    Receipt,
    RequestKey,
    Since,
    StateEntry,
    StateWrite,
    UndoStep,
    VectorFill,
    WritesBy,
)
from memory_service.errors import Conflict, FailedPrecondition, LimitExceeded, Unsupported
from memory_service.operations import (
    AddItems,
    Operation,
    RemoveItem,
    RemoveItems,
    RemoveState,
    RenameState,
    ReplaceItem,
    SaveStates,
)
from memory_service.records.versions import VersionStore
from memory_service.runtime.caller import ANYBODY, Caller
from memory_service.runtime.clock import now_us

HISTORY_US = 30 * 24 * 3600 * 1_000_000
"""How long a store keeps replaced versions by default."""


class ModelMismatch(FailedPrecondition):
    """A vector's model differs from the model of the namespace's vectors."""

    def __init__(self, model: str) -> None:
        super().__init__("EMBEDDER_REQUIRED", f"the vectors of the namespace come from {model!r}")


class FactsDerived(Conflict):
    """A write would remove other facts as derived than its caller knows."""

    def __init__(self, ids: Collection[str]) -> None:
        super().__init__("REVISION_MISMATCH", "facts about users were derived from the items to delete")
        self.ids = frozenset(ids)


class FilesRestored(Conflict):
    """An undo would restore files for which its caller has no plan."""

    def __init__(self, files: Mapping[str, int]) -> None:
        super().__init__("REVISION_MISMATCH", "files have changed since their undo was planned")
        self.files = files
        """The version of each file that the step would restore, by id; 0: it would be removed."""


@dataclass(frozen=True, slots=True)
class RestoredFiles:
    """How files come back: what services keep with each, by id and version; valid while `unchanged` holds."""

    facets: Mapping[tuple[str, int], Facet]
    unchanged: Since


class TooManyDerived(LimitExceeded):
    """A write would remove more items as derived than its caller allows."""

    def __init__(self, operation: int, limit: int, count: int, prefix: str = "") -> None:
        super().__init__(f"{prefix}keep_derived", "delete_items_max", limit, count)
        self.operation, self._limit, self._count = operation, limit, count

    def of(self, prefix: str) -> TooManyDerived:
        """Return the error with the prefix that the names of fields have in the caller's request."""
        return TooManyDerived(self.operation, self._limit, self._count, prefix)


class ParentsMissing(Conflict):
    """Items that a written item was made from do not exist (any more)."""

    def __init__(self, ids: Collection[str]) -> None:
        super().__init__("REVISION_MISMATCH", "items that a new item was made from were removed")
        self.ids = frozenset(ids)


class CannotOpen(RuntimeError):
    """The records cannot be opened: in use by another server, of a newer format, or damaged.

    The message is for the operator.
    """


@dataclass(frozen=True)
class Capabilities:
    """Features of a store beyond the contract. Tests skip by these, never by a store's class."""

    durable: bool
    """Acknowledged writes outlive the process."""
    backup: bool
    """`backup` is supported."""
    shared: bool
    """Several processes may use the same records at once. Otherwise a second process cannot open them."""
    files: bool
    """The store keeps files, among them a database `records.db`, in its own folder."""


class WriteStore(ABC):
    """Writes of items and states. `write` is the mechanism; the other methods are cases of it."""

    @abstractmethod
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
        """Apply operations atomically. Every condition is checked against the state before the write, then
        the changes are made in the order of the operations, each at its own revision.

        No two operations may name the same item or state, except that AddItems may repeat one of its ids.
        The store takes ownership of the items: callers MUST NOT change them afterwards, except `wire` and
        `framed`, and may find their embedding removed.

        The receipt MUST hold a stamp for each item written and each state saved, in order, and in `counts`
        how many of them each operation wrote or removed. `version`, `description` and the times are those of
        the last state saved.

        **AddItems**: if an item's id exists and has not expired at its update_us, FAIL MUST raise
        AlreadyExists, SKIP MUST leave the existing item and count it in `skipped_count`, REPLACE MUST replace
        it at its position, and give the new item its create_us if the write has `keep_create_us`. An id
        repeated within one AddItems counts as existing from its second occurrence.
        Before any of this, MUST raise Conflict.revision if a write's `expected_revision` is not its item's
        revision, which is 0 if the item does not exist or has expired.

        If a write has `parents_exist`, MUST raise ParentsMissing, with their ids, unless each parent that its
        provenance names is an earlier item of the write, or exists and has not expired at the item's
        update_us. So a concurrent removal with `derived` removes the item too, or comes first and is noticed.

        With `default_ttl` an item MUST expire after the default ttl of the namespace's settings, if there is
        one, from its update_us on.

        **ReplaceItem**: the item gets a new revision; its position MUST stay. MUST raise NotFound if the item
        does not exist or has expired at write.item.update_us, and Conflict if `expected_revision` is given
        and is not its revision.

        **RemoveItem**: MUST raise NotFound (unless `allow_missing`) and Conflict likewise. **RemoveItems**:
        unknown ids are skipped. **RemoveAt**: MUST raise Conflict if an item at one of the positions was
        written after `revision`. All three count in `removed_count`.

        With `derived`, all three MUST also remove what was derived: items made from the removed ones, or from
        items that go with them, unless one of their other parents exists and has not expired.
        An item's parents are those that its provenance names and, for a response, the message that it
        answers, as far as they existed when its present version was written. Items that an operation of the
        write names are not removed as derived. Each item removed as derived MUST be a change after those that
        the operation removes itself, in order of position, and MUST be counted in `derived_counts`, by
        operation. MUST raise FactsDerived, with their ids, unless the facts about users among them are those
        in `facts`: other facts may refer to them. MUST raise TooManyDerived, with the operation that exceeds
        it, if there are more than `derived_max`. Nothing else, such as expiry or an undo, removes derived
        items.

        **SaveStates**: MUST raise Conflict if `expected_version` is given and is not the current version; a
        key that does not exist, or has expired at write.now_us, is at version 0. Then, of a key that exists,
        FAIL MUST raise Conflict, SKIP MUST leave it and count it in `skipped_state_count`, REPLACE MUST save
        over it. Versions of a key MUST NOT repeat during the life of a namespace, even after deletion.

        **RemoveState**: MUST raise NotFound (unless `allow_missing`) and Conflict likewise; it counts in
        `removed_state_count`.

        The first vector of a namespace sets its dimension and model. A vector of another embedder's model
        MUST raise ModelMismatch, whatever its dimension; any other vector of a different dimension MUST raise
        InvalidArgument.dimension("item.embedding", ...). A CLIENT_MODEL vector of the right dimension is
        accepted under any model.

        An item without a vector whose write names the namespace's model becomes *pending*; in a namespace
        without a model it sets the model, and the dimension if known. If the write names another model, the
        item is stored without a vector and MUST NOT raise.

        With `unchanged`, MUST raise Conflict and change nothing if, since its revision, an item of its ids or
        kinds was added, changed or removed, or the namespace was reset, or if the namespace is at a lower
        revision (0 if it does not exist). An item counts by its present kind; a removed item counts for every
        kind, or for none if `removals` is False. Nothing else counts. A `request` that was applied before
        MUST be answered regardless.

        `released` is the id of the held write that this write releases: it MUST be removed from quarantine in
        the same step, and MUST stay held if this raises. MUST raise NotFound.quarantined if there is none.
        """

    async def add_items(
        self,
        namespace: str,
        writes: Sequence[ItemWrite],
        *,
        states: Sequence[StateWrite] = (),
        removals: Sequence[str] = (),
        on_duplicate: OnDuplicate = OnDuplicate.FAIL,
        request: RequestKey | None = None,
        released: str = "",
        unchanged: Since | None = None,
        by: Caller = ANYBODY,
    ) -> Receipt:
        """Remove the items named in `removals`, then add items, then states, as one `write`."""
        operations: list[Operation] = [RemoveItems(removals)] if removals else []
        if writes or not states:
            operations.append(AddItems(writes, on_duplicate))
        if states:
            operations.append(SaveStates(states, on_duplicate))
        return await self.write(
            namespace, operations, request=request, released=released, unchanged=unchanged, by=by
        )

    @abstractmethod
    async def find_receipt(self, namespace: str, request: RequestKey) -> Receipt | None:
        """Return the receipt of an applied request; None if no request with its id was applied.

        The receipt MUST be `replayed`. MUST raise FailedPrecondition.request_id_reused if the request had a
        different body.
        """

    async def replace_item(
        self,
        namespace: str,
        write: ItemWrite,
        *,
        expected_revision: int | None = None,
        request: RequestKey | None = None,
        by: Caller = ANYBODY,
    ) -> Receipt:
        """Replace the item with the same id, as `write` does with ReplaceItem."""
        return await self.write(namespace, [ReplaceItem(write, expected_revision)], request=request, by=by)

    async def delete_item(
        self,
        namespace: str,
        item_id: str,
        *,
        now_us: int,
        expected_revision: int | None = None,
        request: RequestKey | None = None,
        by: Caller = ANYBODY,
    ) -> Receipt:
        """Remove an item from records and indexes, as `write` does with RemoveItem."""
        removal = RemoveItem(item_id, now_us, expected_revision)
        return await self.write(namespace, [removal], request=request, by=by)

    async def save_state(
        self, namespace: str, write: StateWrite, *, request: RequestKey | None = None, by: Caller = ANYBODY
    ) -> Receipt:
        """Save a value, as `write` does with SaveStates."""
        receipt = await self.write(namespace, [SaveStates([write])], request=request, by=by)
        if receipt.replayed:
            # The body is the same, so it has the description even if the state no longer does.
            receipt.description = receipt.description or write.description or ""
        return receipt

    async def delete_state(
        self,
        namespace: str,
        key: str,
        *,
        now_us: int,
        expected_version: int | None = None,
        request: RequestKey | None = None,
        by: Caller = ANYBODY,
    ) -> Receipt:
        """Remove a key, as `write` does with RemoveState."""
        return await self.write(
            namespace, [RemoveState(key, now_us, expected_version)], request=request, by=by
        )


class ItemStore(ABC):
    """Items, read by their ids."""

    @abstractmethod
    async def get_items(
        self, namespace: str, ids: Sequence[str], *, with_embedding: bool = False
    ) -> dict[str, Item]:
        """Return the items with these ids, including expired ones; unknown ids are left out."""

    @abstractmethod
    async def get_versions(
        self, namespace: str, versions: Sequence[tuple[str, int]]
    ) -> dict[tuple[str, int], Item]:
        """Return these versions of items, each given by id and revision, whether current or kept after being
        replaced. Without embeddings; versions that do not exist or were redacted are left out.
        """

    @abstractmethod
    async def record_uses(self, namespace: str, positions: Sequence[int], *, by: Caller = ANYBODY) -> None:
        """Count the items at these positions as used, once per occurrence of a position.

        It MUST be as durable as any write when this returns, and MUST be visible to searches that begin
        afterwards. It is not a change: it MUST NOT raise the revision or appear among the changes. Positions
        without an item, and missing namespaces, are ignored. The count of an item MUST survive replacement of
        the item, go when the item is removed, and be part of backups. Not idempotent: a repeated call counts
        twice.
        """

    @abstractmethod
    async def refresh_expiry(
        self, namespace: str, positions: Sequence[int], now_us: int, *, by: Caller = ANYBODY
    ) -> None:
        """Let the items at these positions live for their time to live from `now_us`, unless they live longer
        anyway. That is their `ttl_us`, or if they have none, the time from their version to its expiry.

        Like `record_uses` it is durable, visible to all reads that begin afterwards, and not a change. Items
        that do not expire, or have expired at `now_us`, and positions without an item are ignored.
        """

    @abstractmethod
    async def link_parents(self, namespace: str, items: Sequence[Item], *, by: Caller = ANYBODY) -> None:
        """Let items descend from those of their parents that exist now, as if they were written now.

        An import uses it where a parent comes after the item. Like `record_uses` it is durable, and not a
        change. Items that are gone, or were written since they were read, are ignored.
        """


class PendingStore(ABC):
    """Vectors that are still to come.

    An item is pending while its text waits to be embedded by the namespace's model, because it was written so
    (`WriteStore.write`) or because its vector was given up (`begin_reembedding`). It MUST be found as if it
    had no vector. Writing the item with a vector, or removing it, ends the wait; a write with `keep_vector`
    does not.
    """

    @abstractmethod
    async def begin_reembedding(
        self,
        namespace: str,
        model: str,
        dimension: int,
        *,
        replace_client_vectors: bool,
        by: Caller = ANYBODY,
    ) -> NamespaceInfo:
        """Move a namespace to another model: give up all its vectors, make all its items pending.

        From then on no search and no read MUST see a vector of the old model. It MUST NOT rewrite each item,
        since other writes would have to wait. It is not a change: the revisions of the namespace and its
        items, and the change log, MUST stay. A namespace that already has this model and dimension MUST be
        left alone. MUST raise NotFound if the namespace does not exist, and ModelMismatch if its model is
        CLIENT_MODEL, unless `replace_client_vectors`. Returns the namespace's state afterwards.
        """

    @abstractmethod
    async def namespaces_with_pending(self, after: str, limit: int, *, model: str = "") -> list[str]:
        """Return the names of up to `limit` namespaces above `after` that have pending items, by name.

        With `model`, only namespaces that wait for vectors of this model; "" for all.
        """

    @abstractmethod
    async def pending_items(self, namespace: str, after_position: int, limit: int) -> list[Item]:
        """Return up to `limit` pending items with a position above `after_position`, ascending, without
        embeddings and including expired ones.
        """

    @abstractmethod
    async def fill_vectors(self, namespace: str, uid: int, model: str, fills: Sequence[VectorFill]) -> int:
        """Give pending items their vectors; return how many items stopped being pending.

        A fill MUST be skipped if its item is missing, not pending, or not at that revision; all fills, if the
        namespace no longer has this `uid`. A vector of None ends the wait without a vector. Durable like any
        write, and found at once, but not a change: the revisions of the namespace and the item, and the
        change log, MUST stay. MUST raise ModelMismatch if the namespace has another model, and
        InvalidArgument.dimension("vector", ...) for a vector whose dimension differs from the others.
        """


class StateStore(ABC):
    """Named values with versions; `WriteStore.write` saves and removes them."""

    @abstractmethod
    async def load_states(self, namespace: str, keys: Sequence[str]) -> dict[str, StateEntry]:
        """Return the entries of these keys, including expired ones; unknown keys are left out."""

    @abstractmethod
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
        """Return up to `limit` entries with a key above `after_key` that begins with `prefix`, ordered by the
        UTF-8 bytes of the key, without those expired at `now_us`. MUST read no others.

        `value_chars` truncates each value to this many characters; `size_bytes` is still that of the whole
        value.
        """

    @abstractmethod
    async def rename_state(
        self,
        namespace: str,
        renaming: RenameState,
        *,
        request: RequestKey | None = None,
        by: Caller = ANYBODY,
    ) -> Receipt:
        """Give a state another key, as two changes: the old key is deleted, by `by`, and the new one saved.

        Its times, description, provenance, kept versions and version MUST stay. If a key of the namespace was
        removed or renamed at this version or a higher one, the version MUST be one above that. MUST raise
        NotFound, Conflict if `expected_version` is given and is not the version, and AlreadyExists if the
        new key exists; one that has expired is removed first, as a change. The receipt has a stamp of the
        state.
        """

    @abstractmethod
    async def clear_states(
        self, namespace: str, *, request: RequestKey | None = None, by: Caller = ANYBODY
    ) -> Receipt:
        """Remove every key, as one change. The receipt has `removed_state_count`."""


class QuarantineStore(ABC):
    """Writes held for review: kept as durably as other writes, but separate from everything else.

    No other method MUST find, count, log or send a held write. Held writes MUST be part of backups, and MUST
    be removed by a reset and with their namespace. Holding and releasing are not changes.
    """

    @abstractmethod
    async def hold(
        self, namespace: str, held: Sequence[HeldWrite], *, by: Caller = ANYBODY
    ) -> list[HeldWrite]:
        """Hold writes, all or none, and return them. If a held write with the same request exists, MUST
        return that one instead and hold nothing. MUST raise FailedPrecondition.request_id_reused if its
        digest differs.
        """

    @abstractmethod
    async def held_writes(self, namespace: str, after: str, limit: int, *, now_us: int) -> list[HeldWrite]:
        """Return up to `limit` unexpired held writes with an id above `after`, by id."""

    @abstractmethod
    async def held_write(self, namespace: str, held_id: str) -> HeldWrite | None:
        """Return a held write, even an expired one; None if there is none."""

    @abstractmethod
    async def count_held(self, namespace: str, whose: WritesBy | None = None) -> int:
        """Return how many writes are held, or how many of them belong to `whose`."""

    @abstractmethod
    async def drop_held(self, namespace: str, held_id: str, *, by: Caller = ANYBODY) -> None:
        """Drop a held write. MUST raise NotFound.quarantined if there is none."""

    @abstractmethod
    async def drop_held_by(self, namespace: str, whose: WritesBy, *, by: Caller = ANYBODY) -> int:
        """Drop all held writes of a writer; return how many there were."""


class UndoStore(ABC):
    """Undo everything that one writer wrote.

    When a version of an item or state is replaced, it MUST be kept for the store's history time and no
    longer; with a time of 0, none MUST be kept. Removing an item or state MUST remove all its versions, and a
    reset or deleted namespace those of everything in it. The caller that deletes something, by the `by` of
    the write, MUST be recorded for the same time, and so MUST the writer that shortened an item's life, as
    `NamespaceStore.remove_expired` describes.
    """

    @abstractmethod
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
        """Undo changes by `whose` to up to `limit` items above a position, atomically, each as one change.

        If an item's present version belongs to `whose`, it MUST be removed if they added it. Otherwise it
        MUST get back the newest version by another writer, at a new revision, with that version's times and
        provenance, and be found by its words and vector; it becomes pending if that vector was of another
        model. A redacted version MUST NOT come back: it is passed over as if it were no longer kept. If that
        version has expired, the item MUST be removed; a document, whose fragments of that
        version are gone, MUST also be removed and reported as unrestorable. If no such version is kept, the
        item MUST stay and be reported. An item overwritten by another writer MUST stay, and be reported if
        its content still equals one of theirs, or if it is a file, of which parts may be theirs. All versions
        of `whose` MUST be forgotten, so that no other undo restores them.

        A file MUST get the facet in `files` for the restored version: its path may be taken, and its
        fragments are new. Unless it is a dry run, MUST raise FilesRestored and change nothing if one is
        missing, and Conflict as `WriteStore.write` does with `unchanged`.

        With `dry_run`, MUST report the same and change nothing. Undone items are not
        found again: a repeated undo resumes where an interrupted one ended.
        """

    @abstractmethod
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
        """Undo the changes by `whose` to up to `limit` states above a key. As for items; a restored value is
        saved as a new version.
        """

    @abstractmethod
    async def count_removals(self, namespace: str, whose: WritesBy) -> int:
        """Return how many items and states `whose` deleted (a cleared namespace counts as one), and how many
        of the expired ones they cut short; see `NamespaceStore.remove_expired`.
        """


class ChangeLog(ABC):
    """The ordered history of a namespace."""

    @abstractmethod
    async def read_changes(self, namespace: str, after_revision: int, limit: int) -> list[Change]:
        """Return at most `limit` changes above `after_revision`, ascending.

        MUST hold every change since the last reset, of which RESET is the first.
        """

    @abstractmethod
    async def wait_for_change(self, namespace: str, after_revision: int) -> None:
        """Return when the namespace's revision is above `after_revision`, or when it was deleted.

        While nothing changes, it MUST cost no more than one occasional query, shared by all waiters, however
        many they are. It MUST be cancellable.
        """


class NamespaceStore(ABC):
    """Namespaces as a whole."""

    @abstractmethod
    async def namespace(self, namespace: str, *, fresh: bool = True) -> NamespaceInfo | None:
        """Return the statistics of a namespace; None if nothing was ever written to it.

        Unless `fresh`, the answer may be as old as this process's last read or write of the namespace.
        """

    @abstractmethod
    async def namespace_bytes(self, namespace: str) -> int:
        """Return the bytes that callers have stored in a namespace; 0 if nothing was ever written to it.

        MUST count what `records/content_bytes.py` counts, at or after the last acknowledged write. May take
        as long as reading the whole namespace.
        """

    @abstractmethod
    async def scan_namespaces(self, prefix: str, after: str, limit: int) -> list[NamespaceInfo]:
        """Return up to `limit` namespaces whose name has the prefix and is above `after`, by name."""

    @abstractmethod
    async def save_settings(
        self, namespace: str, settings: NamespaceSettings, *, expected_version: int, by: Caller = ANYBODY
    ) -> NamespaceInfo:
        """Save the settings of a namespace, which is created if it does not exist, at the next version.

        MUST raise Conflict if the settings are not at `expected_version`; 0: there are none. It is not a
        change. The settings MUST survive a reset and be part of backups, and MUST go with the namespace.
        Writes of items that begin afterwards MUST see them.
        """

    @abstractmethod
    async def record_request(
        self, namespace: str, receipt: Receipt, request: RequestKey, *, by: Caller = ANYBODY
    ) -> Receipt:
        """Keep the receipt of a request that writes nothing itself, with the namespace's revision in it; or
        return the receipt already kept. It is not a change.
        """

    @abstractmethod
    async def reset(
        self, namespace: str, *, request: RequestKey | None = None, by: Caller = ANYBODY
    ) -> Receipt:
        """Remove items, states and history as one change, which MUST be the first of the new history.

        Revisions continue; dimension and model are forgotten. The receipt has both counts.
        """

    @abstractmethod
    async def delete_namespace(self, namespace: str, *, by: Caller = ANYBODY) -> Receipt:
        """Remove a namespace completely, including its revision and requests. MUST raise NotFound."""

    @abstractmethod
    async def remove_expired(self, now_us: int, forget_requests_before_us: int, limit: int) -> int:
        """Remove up to `limit` expired items and states, with a change for each, expired held writes, and
        requests older than `forget_requests_before_us`. Returns how many items and states were removed.

        If a kept version of such an item or state had no expiry, or a later one, MUST record who cut it
        short, without its content: the writer of the first of the versions that lead up to the present one
        and share its expiry, at the time of that write as `WritesBy.has` takes it. The same MUST happen when
        a write replaces an expired item or state. In all other cases, MUST NOT record anything.
        """


class Claims:
    """Decides which of the processes that share records does a task that only one needs to do.

    A claim only saves work; it guards nothing: a delayed holder may continue after its time, in parallel with
    the next one.
    """

    async def claim(self, task: str, seconds: float) -> int | None:
        """Claim a task for this many seconds from now; return the time in microseconds, or None if another
        process holds the claim.

        The holder may renew its claim, which then lasts this long from that moment. A claim that is not
        renewed MUST become free when its time is over, and all claims of a process when its records are
        closed. All processes use the same clock; if only one process has the records, it holds every task.
        """
        return now_us()

    async def give_up(self, task: str) -> None:
        """Release a task at once; a claim held by another process stays."""
        return


class Records(
    WriteStore,
    ItemStore,
    PendingStore,
    StateStore,
    QuarantineStore,
    UndoStore,
    VersionStore,
    ChangeLog,
    NamespaceStore,
    Claims,
):
    """The whole store, with a life cycle: open, use, close."""

    capabilities: Capabilities

    @abstractmethod
    async def open(self) -> None:
        """Prepare for use, recovering from however the last process ended. Raises CannotOpen."""

    @abstractmethod
    async def close(self) -> None:
        """Finish pending work, wake waiters on changes, and release everything."""

    @abstractmethod
    async def flush(self) -> None:
        """Bring the files into the form that opens fastest. No acknowledged write depends on it."""

    @abstractmethod
    async def backup(self, name: str, progress: Callable[[int, int], None]) -> BackupReport:
        """Write a consistent copy of all records under `name`, a plain file name, while serving.

        Calls progress(done_bytes, total_bytes) now and then. MUST raise InvalidArgument if the name is taken,
        and Unsupported if `capabilities.backup` is False.
        """

    async def keep_setting(self, name: str, value: bytes) -> bytes:
        """Keep an internal value of the servers, such as a key, unless one with this name exists; return the
        kept value.

        All servers that share the records see it: concurrent callers MUST all get the same value, and a
        returned value MUST NOT change later. MUST raise Unsupported if `capabilities.shared` is False.
        """
        raise Unsupported("shared settings", "this store's records belong to one server")

    async def is_reachable(self) -> bool:
        """Return whether the storage answers and accepts writes at present, within a few seconds.

        False is temporary: it MUST become True again after recovery, without a restart.
        """
        return True

    def is_sound(self) -> bool:
        """Whether the store accepts writes. False: none until a restart, because its files failed or are
        gone.
        """
        return True

    @property
    def tight(self) -> bool:
        """Whether the disk is so full that only writes that do not enlarge the records are accepted."""
        return False

    async def make_room(self, folder: Path) -> None:
        """Release the space reserved for a full disk, if `folder` is on that disk. Raises Unavailable."""
        return


@dataclass(frozen=True)
class BackupReport:
    """The result of a backup."""

    name: str
    size_bytes: int
    checksum: str
    namespace_count: int
    item_count: int
