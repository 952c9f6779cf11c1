"""The changes that a commit makes to the view of its namespace."""

from __future__ import annotations

from dataclasses import dataclass, field

from memory_service.data_model import Vector
from memory_service.indexes.view import Entry, NamespaceView


@dataclass(slots=True)
class Effect:
    """The changes that a commit made to items, which are named by their positions.

    `revision` is the namespace's revision after the commit; None means the effect can be applied to a view of
    any revision, and more than once. `vector_epoch` and `dimension` are those of the namespace afterwards.
    """

    added: list[Entry] = field(default_factory=list)
    replaced: list[tuple[Entry, bool]] = field(default_factory=list)
    """Each with whether the item keeps its present vector."""
    removed: list[int] = field(default_factory=list)
    filled: list[tuple[int, Vector | None, int]] = field(default_factory=list)
    """Items that were pending: position, vector (None if it gets none), key of the vector."""
    moved: bool = False
    """All vectors of the namespace with this `uid` were given up."""
    uid: int = 0
    use_counts: dict[int, int] = field(default_factory=dict)
    expiries: dict[int, int] = field(default_factory=dict)
    """When refreshed items expire, by position."""
    revision: int | None = None
    vector_epoch: int = 0
    dimension: int = 0

    def apply(self, view: NamespaceView) -> bool:
        """Apply this to a view unless the view was read after the commit; return whether it was applied."""
        if self.revision is not None:
            # These do not raise the revision, so a view at this revision may lack them. Applying them twice
            # is harmless.
            maybe = self.moved or bool(self.filled) or bool(self.expiries)
            if self.revision < view.revision or (self.revision == view.revision and not maybe):
                return False
        self._put(view)
        if self.revision is not None:
            view.revision = self.revision
        return True

    def _put(self, view: NamespaceView) -> None:
        if self.moved:
            view.give_up_vectors(self.vector_epoch, self.dimension)
        for position, vector, key in self.filled:
            if vector is not None and view.vector_epoch == self.vector_epoch:
                view.fill_vector(position, vector, key)
        view.remove(self.removed)
        # Replace first: a replacement after additions would index all of these at once.
        added = {entry.position for entry in self.added} if self.replaced else set()
        for entry, keep_vector in self.replaced:
            if entry.position not in added:
                view.replace(entry, keep_vector=keep_vector)
        view.add(self.added)
        for entry, keep_vector in self.replaced:
            if entry.position in added:
                view.replace(entry, keep_vector=keep_vector)
        view.refresh_expiry(self.expiries)
        if self.use_counts:
            view.record_uses(self.use_counts)
