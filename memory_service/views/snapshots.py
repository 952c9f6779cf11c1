"""Snapshots of HNSW graphs and their views: files that save rebuilding them.

A snapshot is three files: the graph, the keys of its slots, and the rest of the view (`column_files.py`). Its
manifest with sizes and checksums is a record, so restored or copied records never meet a snapshot of another
history. Everything is verified before it is read: loading a damaged graph may end the process. Files are
named by the namespace's uid, never by its name. If anything is wrong with a snapshot, it is ignored and the
index is built from the records; graph and columns are independent of each other.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from memory_service.data_key import DataKey
from memory_service.indexes.distinct_graph import DistinctGraph, Linked
from memory_service.indexes.frozen_view import FrozenView, ViewCopy
from memory_service.indexes.hnsw import HnswGraph
from memory_service.runtime.event_log import EventLog
from memory_service.runtime.failpoints import reach
from memory_service.runtime.files import checksum, make_folder, sync
from memory_service.runtime.log_causes import cause_of, places_of
from memory_service.views.arrays import read_array, write_array
from memory_service.views.column_files import read_columns, write_columns
from memory_service.views.refresh import Reason, Refused
from memory_service.views.sealed_files import SealedFiles

FORMAT = 2
NO_HASH = np.uint64(0)
"""Replaces the hash of a group whose vectors are all deleted."""
_log = EventLog(__name__)


class _File(msgspec.Struct):
    name: str
    size_bytes: int
    checksum: str


class _Manifest(msgspec.Struct):
    format: int
    uid: int
    dimension: int
    ef: int
    graph: _File
    slots: _File
    columns: _File | None = None


@dataclass
class Snapshot:
    """A graph with the key of each slot's vector, and the view around it, to be saved."""

    graph: DistinctGraph
    slot_keys: NDArray[np.int64]
    view: ViewCopy | None = None


class Snapshots:
    """The snapshots of a data directory."""

    def __init__(
        self,
        folder: Path,
        records_format: int,
        key: DataKey | None = None,
        *,
        demand: Callable[[int], None] = lambda _: None,
    ) -> None:
        """`records_format` is that of the row source.

        `demand` raises StorageFull if the disk has no room for this many bytes.
        """
        self._folder = folder
        self._records_format = records_format
        self._demand = demand
        self._files = SealedFiles(key)
        make_folder(folder)

    def save(self, uid: int, revision: int, snapshot: Snapshot) -> str:
        """Write the files of a snapshot and return its manifest, to be recorded.

        Raises StorageFull and OSError; then there are no files.
        """
        # Never the name of recorded files: a crash would leave them partly overwritten.
        name = f"{uid}-{revision}-{len(snapshot.slot_keys)}-{secrets.token_hex(4)}"
        paths = [self._folder / f"{name}.{part}" for part in ("graph", "slots", "columns")]
        frozen = snapshot.view.freeze() if snapshot.view else None
        more = frozen.nbytes if frozen else 0
        self._demand(snapshot.graph.graph.file_bytes + 3 * snapshot.slot_keys.nbytes + more)
        try:
            return self._write(uid, snapshot, frozen, paths)
        except BaseException:
            for path in paths:
                path.unlink(missing_ok=True)
            raise

    def _write(self, uid: int, snapshot: Snapshot, frozen: FrozenView | None, paths: list[Path]) -> str:
        graph, (graph_path, slots_path, columns_path) = snapshot.graph, paths
        reach("snapshot.before_graph")
        with self._files.writing(graph_path) as path:
            deleted = graph.graph.save(path)
        reach("snapshot.after_graph")
        group_hash = graph.group_hash.copy()
        # The file has other vectors in their place, so a vector that returns must not match these groups.
        group_hash[deleted[deleted < len(group_hash)]] = NO_HASH
        with self._files.writing(slots_path) as path, path.open("wb") as file:
            for array in (snapshot.slot_keys, graph.slot_group, group_hash, graph.lone):
                write_array(file, array)
        reach("snapshot.before_columns")
        written = [graph_path, slots_path]
        if frozen is not None:
            written.append(columns_path)
            with self._files.writing(columns_path) as path, path.open("wb") as file:
                write_columns(file, uid, self._records_format, frozen)
        reach("snapshot.before_sync")
        for path in (*written, self._folder):
            sync(path)
            reach("snapshot.after_sync")
        manifest = _Manifest(
            FORMAT, uid, graph.graph.dimension, graph.graph.ef, *(_describe(path) for path in written)
        )
        return msgspec.json.encode(manifest).decode()

    def load(self, uid: int, dimension: int, manifest: str) -> Snapshot | None:
        """Return the snapshot of a manifest; None if it cannot be trusted."""
        try:
            decoded = msgspec.json.decode(manifest, type=_Manifest)
            if (decoded.format, decoded.uid, decoded.dimension) != (FORMAT, uid, dimension):
                raise ValueError("the snapshot has another format, namespace or dimension")
            for file in (decoded.graph, decoded.slots):
                self._verify(file)
            with self._files.reading(self._folder / decoded.slots.name) as path, path.open("rb") as arrays:
                slot_keys, slot_group, group_hash, lone = (read_array(arrays) for _ in range(4))
            with self._files.reading(self._folder / decoded.graph.name) as path:
                graph = HnswGraph.load(path, dimension, decoded.ef)
            return Snapshot(DistinctGraph(graph, Linked.of(slot_group, group_hash, lone)), slot_keys)
        except Exception as error:
            _log.warning("index_snapshot_refused", uid=uid, cause=cause_of(error), place=places_of(error)[-1])
            return None

    def _verify(self, file: _File) -> None:
        if _describe(self._folder / file.name) != file:
            raise ValueError(f"{file.name} is damaged")

    def load_columns(self, uid: int, manifest: str) -> FrozenView | None:
        """Return the columns of a manifest; None if it has none, or they cannot be trusted."""
        try:
            decoded = msgspec.json.decode(manifest, type=_Manifest)
            if decoded.columns is None:
                return None
            if (decoded.format, decoded.uid) != (FORMAT, uid):
                raise Refused(Reason.OTHER_FORMAT)
            self._verify(decoded.columns)
            with (
                self._files.reading(self._folder / decoded.columns.name) as path,
                path.open("rb") as file,
            ):
                return read_columns(file, uid, self._records_format)
        except Exception as error:
            self.refuse_columns(uid, error)
            return None

    def refuse_columns(self, uid: int, error: Exception) -> None:
        """Log why the columns of a snapshot are not used."""
        reason = error.reason if isinstance(error, Refused) else Reason.DAMAGED
        _log.warning(
            "index_columns_refused",
            uid=uid,
            reason=reason.value,
            cause=cause_of(error),
            place=places_of(error)[-1],
        )

    def remove(self, uid: int, keep: str | None = None) -> None:
        """Remove the files of a namespace, except those of the manifest to keep."""
        kept = _names(keep) if keep else set()
        for path in self._folder.glob(f"{uid}-*"):
            if path.name not in kept:
                path.unlink(missing_ok=True)

    def discard(self, manifest: str) -> None:
        """Remove the files of a snapshot that was not recorded."""
        for name in _names(manifest):
            (self._folder / name).unlink(missing_ok=True)

    def sweep(self, manifests: Iterable[str]) -> None:
        """Remove every file that is in none of these manifests: left behind by a crash."""
        kept = {name for manifest in manifests for name in _names(manifest)}
        for path in self._folder.iterdir():
            if path.name not in kept and path.is_file():
                path.unlink(missing_ok=True)


def _names(manifest: str) -> set[str]:
    try:
        decoded = msgspec.json.decode(manifest, type=_Manifest)
    except msgspec.DecodeError:
        return set()  # Written by another release, or damaged: its files are useless.
    files = (decoded.graph, decoded.slots, decoded.columns)
    return {file.name for file in files if file is not None}


def _describe(path: Path) -> _File:
    return _File(path.name, path.stat().st_size, checksum(path))
