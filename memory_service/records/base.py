"""The contract of records: what must be kept, in which order, and what is atomic.

Records are the truth; views, by which items are found (`memory_service/reading.py`), are derived from them.
They know nothing of requests, limits or embedders. Every MUST below has a case in `tests/contract/`, which
every store runs; nothing here asks for more than one SQL transaction or one SQL query can give, so that a
store over a database server can keep the same promises.

For all methods:

- A write that returns MUST be durable (where the store is), MUST be seen by every read that begins
  afterwards, and MUST be applied whole or not at all, also when it raises or is cancelled.
- A write that is cancelled may still be applied: then before any that its caller begins at the same server
  afterwards. Of other servers that is not promised.
- Every change MUST raise the namespace's revision; revisions of a namespace are unique, and one
  change MUST NOT become visible before another of a smaller revision.
- A write with a `request` that was applied before, with the same digest, MUST change nothing and
  return the first receipt with `replayed` set; with another digest it MUST raise
  FailedPrecondition. The request is remembered in the same transaction as its effect, with the receipt as
  `request.complete` left it. Where the receipt has an `answer`, its `whole` MUST be forgotten in the step
  in which anything of what it tells of, by its `items` and `states`, is: with the item or state, with the
  version that is not kept, with an undo. The rest of the receipt stays.
- `by` is who acts: what is deleted MUST be noted as deleted by them, and where writes wait, those of callers
  take turns.
- Reads of a namespace that does not exist see an empty one. A namespace begins with its first write.
- Unavailable("STORAGE_UNAVAILABLE") and StorageFull may be raised by every method. After the first
  it is not known whether a write was applied: repeat it with the same request. Reads may be repeated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from memory_service.data_model import (
    Change,
    HeldWrite,
    Item,
    ItemWrite,
    NamespaceInfo,
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
from memory_service.errors import FailedPrecondition, Unsupported
from memory_service.runtime.caller import ANYBODY, Caller
from memory_service.runtime.clock import now_us

HISTORY_US = 30 * 24 * 3600 * 1_000_000
"""How long a store keeps what was replaced where it is not told."""


class ModelMismatch(FailedPrecondition):
    """A vector's model is not the one that the namespace's vectors come from."""

    def __init__(self, model: str) -> None:
        super().__init__("EMBEDDER_REQUIRED", f"the vectors of the namespace come from {model!r}")


class CannotOpen(RuntimeError):
    """The records cannot be opened: in use by another server, of a newer format, or damaged.

    Its text is for who runs the server.
    """


@dataclass(frozen=True)
class Capabilities:
    """What a store does beyond the contract. Tests skip by these, never by a store's class."""

    durable: bool
    """Acknowledged writes outlive the process."""
    backup: bool
    """`backup` is offered."""
    shared: bool
    """Several processes use the same records at once. Of others a second one cannot open them."""
    files: bool
    """It keeps files, a database `records.db` among them, in a folder of its own."""


class ItemStore(ABC):
    """Items: written, read by their ids, removed."""

    @abstractmethod
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
        """Remove the items of the ids in `removals`, then add items, and then states, in order, all
        or none, each at a revision of its own. Ids that do not exist are passed over; the receipt
        has `removed_count`. An id MUST NOT be both in `removals` and in `writes`.

        The items become the store's: a caller MUST NOT change them afterwards, but for `wire` and
        `framed`, and may find them without their embedding.

        The receipt MUST hold a stamp for each item that was written, in order. An item whose id
        exists and is not expired at its update_us: FAIL MUST raise AlreadyExists, SKIP MUST leave it
        and count it in `skipped_count`, REPLACE MUST replace it at its position. Ids that repeat
        within `writes` count as existing from the second on. Before that MUST raise Conflict.revision
        where a write has an `expected_revision` that is not its item's, 0 for one that does not
        exist or is expired. So with a state whose key exists: FAIL
        MUST raise Conflict, SKIP MUST leave it and count it in `skipped_state_count`, REPLACE MUST
        save over it.

        The first vector of a namespace sets its dimension and model. A vector of another embedder's model
        MUST raise ModelMismatch, whatever its dimension, any other of another dimension
        InvalidArgument.dimension("item.embedding", ...); a CLIENT_MODEL vector of the right dimension is
        taken under any model.

        An item without a vector whose write names a model is *pending* from then on if that is the
        namespace's model; in a namespace without one it sets the model, and the dimension if it is
        known. Of another model, it is an item without a vector and MUST NOT raise.

        With `unchanged`, MUST raise Conflict, and change nothing, when an item of its ids, or of its kinds,
        was added, changed or removed since its revision, or the namespace was reset, or is at a smaller
        revision, 0 where there is none. An item has the kind that it has now; one that is gone counts for
        every kind, or with `removals` of False for none. Nothing else counts. A `request` that was applied
        before MUST be answered all the same.

        `released` is the id of the held write that this is: it MUST be held no more once this is written,
        in the same step, and MUST stay held when this raises. MUST raise NotFound.quarantined when there is
        none.
        """

    @abstractmethod
    async def find_receipt(self, namespace: str, request: RequestKey) -> Receipt | None:
        """Return the receipt of a request that was applied; None when there was none of its id.

        It MUST be `replayed`. MUST raise FailedPrecondition.request_id_reused when its body was
        another one.
        """

    @abstractmethod
    async def replace_item(
        self,
        namespace: str,
        write: ItemWrite,
        *,
        expected_revision: int | None = None,
        request: RequestKey | None = None,
        by: Caller = ANYBODY,
    ) -> Receipt:
        """Replace the item of the same id at a new revision; its position MUST stay.

        MUST raise NotFound when there is none or it is expired at write.item.update_us, and
        Conflict when `expected_revision` is given and is not its revision. Vectors as in `add_items`.
        """

    @abstractmethod
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
        """Remove an item from records and indexes. MUST raise NotFound and Conflict as above."""

    @abstractmethod
    async def get_items(
        self, namespace: str, ids: Sequence[str], *, with_embedding: bool = False
    ) -> dict[str, Item]:
        """Return the items of these ids, expired ones too; ids that do not exist are left out."""

    @abstractmethod
    async def get_versions(
        self, namespace: str, versions: Sequence[tuple[str, int]]
    ) -> dict[tuple[str, int], Item]:
        """Return these versions of items, each by its id and revision: as they are, or as they are kept since
        they were replaced. Without embeddings; what there is not is left out."""

    @abstractmethod
    async def record_uses(self, namespace: str, positions: Sequence[int], *, by: Caller = ANYBODY) -> None:
        """Count the items at these positions as used, once for each time that a position is given.

        It MUST be as durable as any write when this returns, and MUST be seen by searches that begin
        afterwards. It is no change: it MUST NOT raise the revision, nor appear among the changes. Where
        there is no item, or no namespace, nothing is counted. The count of an item MUST stay when the
        item is replaced, go with it when it is removed, and be part of backups. It is not idempotent:
        what is repeated counts twice.
        """


class PendingStore(ABC):
    """Vectors that are still to come.

    An item is pending when its text waits to be embedded by the namespace's model: because it was
    written so (`add_items`), or because its vector was given up (`begin_reembedding`). It MUST be found
    as if it had no vector. A write of the item with a vector, and its removal, end the wait; one with
    `keep_vector` does not.
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

        From then on no search and no read MUST see a vector of the old model. It MUST NOT write each
        item, for which others would have to wait. It is no change: the revision of the namespace and of
        its items MUST stay, and the change log. A namespace that is of this model and dimension MUST be
        left alone. MUST raise NotFound when there is no namespace,
        and ModelMismatch where its model is CLIENT_MODEL, unless `replace_client_vectors`. Returns what
        the namespace is afterwards.
        """

    @abstractmethod
    async def namespaces_with_pending(self, after: str, limit: int, *, model: str = "") -> list[str]:
        """Return the names of up to `limit` namespaces above `after` that have pending items, by name.

        `model`: only of those that wait for vectors of this one; "" of all.
        """

    @abstractmethod
    async def pending_items(self, namespace: str, after_position: int, limit: int) -> list[Item]:
        """Return up to `limit` pending items of a position above `after_position`, ascending, without
        their embeddings, expired ones too."""

    @abstractmethod
    async def fill_vectors(self, namespace: str, uid: int, model: str, fills: Sequence[VectorFill]) -> int:
        """Give pending items their vectors; return how many items are no longer pending by this.

        A fill MUST be passed over where the item is not there, is not pending, or is not at that
        revision; all of them, where the namespace is not the one of this `uid` any more. A vector of
        None ends the wait without a vector. Durable like any write, and found at once, but a fill is no
        change: the revision of the namespace and of the item MUST stay, and the change log. MUST raise
        ModelMismatch when the namespace is of another model, and InvalidArgument.dimension("vector",
        ...) for a vector of another dimension than the others.
        """


class StateStore(ABC):
    """Named values with versions."""

    @abstractmethod
    async def save_state(
        self, namespace: str, write: StateWrite, *, request: RequestKey | None = None, by: Caller = ANYBODY
    ) -> Receipt:
        """Save a value. The receipt has `version`, `description` and the times.

        MUST raise Conflict when `expected_version` is given and is not the current version; a key
        that does not exist, or is expired at write.now_us, is at version 0. Versions of a key MUST
        NOT repeat within the life of a namespace, also after deletion.
        """

    @abstractmethod
    async def load_states(self, namespace: str, keys: Sequence[str]) -> dict[str, StateEntry]:
        """Return the entries of these keys, expired ones too; keys that do not exist are left out."""

    @abstractmethod
    async def scan_states(
        self, namespace: str, after_key: str, limit: int, *, now_us: int, value_chars: int | None = None
    ) -> list[StateEntry]:
        """Return up to `limit` entries with a key above `after_key`, ordered by the UTF-8 bytes of
        the key, without those expired at `now_us`.

        `value_chars`: of each value no more than so many characters; its `size_bytes` is of all of it.
        """

    @abstractmethod
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
        """Remove a key. MUST raise NotFound when there is none and Conflict as in `save_state`."""

    @abstractmethod
    async def clear_states(
        self, namespace: str, *, request: RequestKey | None = None, by: Caller = ANYBODY
    ) -> Receipt:
        """Remove every key, as one change. The receipt has `removed_state_count`."""


class QuarantineStore(ABC):
    """Writes that are held for a review: kept as durably as others, and part of nothing else.

    What is held MUST NOT be found, counted, logged or sent by any other method, MUST be part of backups, and
    MUST go with a reset and with its namespace. Holding and letting go is no change.
    """

    @abstractmethod
    async def hold(
        self, namespace: str, held: Sequence[HeldWrite], *, by: Caller = ANYBODY
    ) -> list[HeldWrite]:
        """Hold writes, all or none, and return them. In the place of one whose request one that is held
        came with, MUST return that one and hold nothing. MUST raise FailedPrecondition.request_id_reused
        where its digest is another."""

    @abstractmethod
    async def held_writes(self, namespace: str, after: str, limit: int, *, now_us: int) -> list[HeldWrite]:
        """Return up to `limit` held writes of an id above `after`, by id, but for expired ones."""

    @abstractmethod
    async def held_write(self, namespace: str, held_id: str) -> HeldWrite | None:
        """Return a held write, an expired one too; None when there is none."""

    @abstractmethod
    async def count_held(self, namespace: str, whose: WritesBy | None = None) -> int:
        """Return how many writes are held, or how many of them are of `whose`."""

    @abstractmethod
    async def drop_held(self, namespace: str, held_id: str, *, by: Caller = ANYBODY) -> None:
        """Forget a held write. MUST raise NotFound.quarantined when there is none."""

    @abstractmethod
    async def drop_held_by(self, namespace: str, whose: WritesBy, *, by: Caller = ANYBODY) -> int:
        """Forget the held writes of somebody; return how many there were."""


class UndoStore(ABC):
    """What somebody wrote, taken back.

    A version that another takes the place of, of an item or a state, MUST be kept for the time that the
    store was given, and no longer; with an item or state all its versions MUST go, with a reset or a deleted
    namespace those of everything. With a time of 0 none MUST be kept. It MUST be noted who, by the
    `by` of the write, deletes something, and for how long likewise; and who lets expire what was
    to last longer, as `NamespaceStore.remove_expired` says.
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
        by: Caller = ANYBODY,
    ) -> UndoStep:
        """Undo what `whose` did to up to `limit` items above a position, all or none, each as one change.

        Of an item whose present version is one of `whose`: it MUST be removed if they added it; else it
        MUST get back the newest version that is none of theirs, at a new revision, with its times and
        provenance, found by its words and vector; if it had one of another model, it is pending. If that
        version has expired, the item MUST be removed; so MUST a document, whose fragments of then are gone,
        and be told of as unrestorable. Where no such version is kept, the item MUST stay, and be told of.
        An item that another has written over MUST stay, and be told of where its content is still one of
        theirs. All versions of `whose` MUST be forgotten, so that no other undo brings them back. With
        `dry_run` it MUST tell the same and change nothing. What was undone is not found again: a repeated
        undo goes on where an interrupted one ended.
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
        """Undo what `whose` did to up to `limit` states above a key. As for items; a value that comes back is
        saved as a new version."""

    @abstractmethod
    async def count_removals(self, namespace: str, whose: WritesBy) -> int:
        """Return how many items and states `whose` deleted, a cleared namespace as one, and how many of those
        that expired they cut short; see `NamespaceStore.remove_expired`."""


class ChangeLog(ABC):
    """What happened in a namespace, in order."""

    @abstractmethod
    async def read_changes(self, namespace: str, after_revision: int, limit: int) -> list[Change]:
        """Return the changes above `after_revision`, ascending, at most `limit`.

        MUST hold every change since the last reset, whose RESET is the first.
        """

    @abstractmethod
    async def wait_for_change(self, namespace: str, after_revision: int) -> None:
        """Return when the namespace's revision is above `after_revision`, or when it was deleted.

        While nothing changes it MUST cost no more than one query now and then that all who wait share,
        however many they are. It MUST be cancellable.
        """


class NamespaceStore(ABC):
    """Namespaces as a whole."""

    @abstractmethod
    async def namespace(self, namespace: str, *, fresh: bool = True) -> NamespaceInfo | None:
        """Return what a namespace holds; None when nothing was ever written to it.

        Unless `fresh`, the answer may be as old as what this process last saw of it, by a read or a write.
        """

    @abstractmethod
    async def scan_namespaces(self, prefix: str, after: str, limit: int) -> list[NamespaceInfo]:
        """Return up to `limit` namespaces whose name has the prefix and is above `after`, by name."""

    @abstractmethod
    async def record_request(
        self, namespace: str, receipt: Receipt, request: RequestKey, *, by: Caller = ANYBODY
    ) -> Receipt:
        """Keep the receipt of a request that writes nothing of its own, with the namespace's revision in it;
        or return the one there is. It is no change."""

    @abstractmethod
    async def reset(
        self, namespace: str, *, request: RequestKey | None = None, by: Caller = ANYBODY
    ) -> Receipt:
        """Remove items, states and history as one change, which MUST be the first of the new history.

        The revision goes on; dimension and model are forgotten. The receipt has both counts.
        """

    @abstractmethod
    async def delete_namespace(self, namespace: str, *, by: Caller = ANYBODY) -> Receipt:
        """Remove everything of a namespace, its revision and requests too. MUST raise NotFound."""

    @abstractmethod
    async def remove_expired(self, now_us: int, forget_requests_before_us: int, limit: int) -> int:
        """Remove up to `limit` expired items and states, with a change for each, held writes that have
        expired, and requests that are older than `forget_requests_before_us`. Returns how many items and
        states were removed.

        Where a version that is kept of an item or state that goes so had no expiry, or a later one, it MUST
        be noted who cut it short, without what it was: who wrote the first of the versions that lead up to
        the present one and have its expiry, as of when they wrote that, as `WritesBy.has` takes the time.
        So it MUST where a write meets what has expired and takes its place. Of others, none MUST be noted.
        """


class Claims:
    """Which of the processes that share records does what one is enough for.

    A claim saves work, and guards nothing: who is held up may go on after its time, beside the next one.
    """

    async def claim(self, task: str, seconds: float) -> int | None:
        """Have a task for so many seconds from now; return the time, in microseconds. None: another has it.

        Who has it may claim it again, and then has it for so long from then on. One that is not claimed
        again MUST be free when its time is over, and all of a process when its records are closed. The time
        is by a clock that all who share the records go by; where one process has them, it has every task.
        """
        return now_us()

    async def give_up(self, task: str) -> None:
        """Let others have a task at once; one of another stays with it."""
        return


class Records(
    ItemStore, PendingStore, StateStore, QuarantineStore, UndoStore, ChangeLog, NamespaceStore, Claims
):
    """All of it, with a life: open, use, close."""

    capabilities: Capabilities

    @abstractmethod
    async def open(self) -> None:
        """Make ready, recovering from whatever way the last process ended. Raises CannotOpen."""

    @abstractmethod
    async def close(self) -> None:
        """Finish what was begun and release everything. Waiters on changes are woken."""

    @abstractmethod
    async def flush(self) -> None:
        """Bring the files into the form that opens the quickest. Nothing acknowledged depends on it."""

    @abstractmethod
    async def backup(self, name: str, progress: Callable[[int, int], None]) -> BackupReport:
        """Write a consistent copy of all records under `name`, a plain file name, while serving.

        Calls progress(done_bytes, total_bytes) now and then. MUST raise InvalidArgument when the
        name is taken and Unsupported when `capabilities.backup` is False.
        """

    async def keep_setting(self, name: str, value: bytes) -> bytes:
        """Keep a value of the servers' own, such as a key, if none has this name; return what is kept.

        It is for all servers that share the records: of several at once each MUST get the same, and what was
        returned MUST NOT change. MUST raise Unsupported when `capabilities.shared` is False.
        """
        raise Unsupported("shared settings", "the records are of one server, which keeps its settings itself")

    async def is_reachable(self) -> bool:
        """Whether what has the records answers and takes writes at present, found out within a few seconds.

        False is not for good: it MUST be True again once that is over, without a restart.
        """
        return True

    def is_sound(self) -> bool:
        """Whether it takes writes; False: no more until a restart, for its files failed or are gone."""
        return True

    @property
    def tight(self) -> bool:
        """Whether the disk is so full that only what makes the records no larger is written."""
        return False

    async def make_room(self, folder: Path) -> None:
        """Give up what is held back of a full disk, where a folder is on that disk. Raises Unavailable."""
        return


@dataclass(frozen=True)
class BackupReport:
    """What a backup wrote."""

    name: str
    size_bytes: int
    checksum: str
    namespace_count: int
    item_count: int
