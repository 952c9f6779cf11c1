"""Snapshots of HNSW graphs: files that spare building a graph again.

A snapshot is two files, the graph and what its slots are, and a manifest that tells their sizes
and checksums. Nothing of it is read before all of it was verified: loading a damaged graph may end
the process. Files are named by the namespace's uid, never by its name. Whatever is wrong with a
snapshot, it is left aside, and the index is built from the records.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import structlog
import xxhash
from numpy.typing import NDArray

from memory_service.indexes.distinct_graph import DistinctGraph, Linked
from memory_service.indexes.hnsw import HnswGraph

FORMAT = 1
_READ_BYTES = 1 << 20
_log = structlog.get_logger(__name__)


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


class _Signed(msgspec.Struct):
    """The manifest with a checksum of its own."""

    manifest: msgspec.Raw
    checksum: str


@dataclass
class Snapshot:
    """A graph, and the key of each slot: the revision at which its vector was written."""

    graph: DistinctGraph
    slot_keys: NDArray[np.int64]


class Snapshots:
    """The snapshots of a data directory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(exist_ok=True)

    def save(self, uid: int, revision: int, snapshot: Snapshot) -> None:
        """Write a snapshot in the place of the one before, all or nothing."""
        graph = snapshot.graph
        graph_path = self._folder / f"{uid}-{revision}.graph"
        slots_path = self._folder / f"{uid}-{revision}.slots"
        graph.graph.save(graph_path)
        with slots_path.open("wb") as file:
            for array in (snapshot.slot_keys, graph.slot_group, graph.group_hash):
                np.save(file, array, allow_pickle=False)
        manifest = _Manifest(
            FORMAT, uid, graph.graph.dimension, graph.graph.ef, _describe(graph_path), _describe(slots_path)
        )
        for path in (graph_path, slots_path):
            _sync(path)
        self._publish(uid, manifest)
        self._sweep(uid, keep={graph_path.name, slots_path.name, f"{uid}.json"})

    def _publish(self, uid: int, manifest: _Manifest) -> None:
        raw = msgspec.json.encode(manifest)
        signed = _Signed(msgspec.Raw(raw), xxhash.xxh3_128_hexdigest(raw))
        temporary = self._folder / f"{uid}.json.tmp"
        temporary.write_bytes(msgspec.json.encode(signed))
        _sync(temporary)
        temporary.rename(self._folder / f"{uid}.json")
        _sync(self._folder)

    def load(self, uid: int, dimension: int) -> Snapshot | None:
        """Return the snapshot of a namespace; None when there is none that can be trusted."""
        if not (self._folder / f"{uid}.json").exists():
            return None
        try:
            return self._verified(uid, dimension)
        except Exception as error:
            _log.warning("index_snapshot_refused", uid=uid, cause=repr(error))
            return None

    def _verified(self, uid: int, dimension: int) -> Snapshot:
        signed = msgspec.json.decode((self._folder / f"{uid}.json").read_bytes(), type=_Signed)
        if xxhash.xxh3_128_hexdigest(bytes(signed.manifest)) != signed.checksum:
            raise ValueError("the manifest is damaged")
        manifest = msgspec.json.decode(signed.manifest, type=_Manifest)
        if (manifest.format, manifest.uid, manifest.dimension) != (FORMAT, uid, dimension):
            raise ValueError("the snapshot is of another format, namespace or dimension")
        for file in (manifest.graph, manifest.slots):
            # The manifest is verified, so its names are ours.
            if _describe(self._folder / file.name) != file:
                raise ValueError(f"{file.name} is damaged")
        with (self._folder / manifest.slots.name).open("rb") as arrays:
            slot_keys, slot_group, group_hash = (np.load(arrays, allow_pickle=False) for _ in range(3))
        graph = HnswGraph.load(self._folder / manifest.graph.name, dimension, manifest.ef)
        return Snapshot(DistinctGraph(graph, Linked.of(slot_group, group_hash)), slot_keys)

    def remove(self, uid: int) -> None:
        """Remove the snapshot of a namespace, if there is one."""
        self._sweep(uid, keep=set())

    def _sweep(self, uid: int, keep: set[str]) -> None:
        for path in [*self._folder.glob(f"{uid}-*"), *self._folder.glob(f"{uid}.json*")]:
            if path.name not in keep:
                path.unlink(missing_ok=True)


def _describe(path: Path) -> _File:
    return _File(path.name, path.stat().st_size, checksum(path))


def checksum(path: Path) -> str:
    """Return the xxh3_128 of a file, in hexadecimal."""
    digest = xxhash.xxh3_128()
    with path.open("rb") as file:
        while chunk := file.read(_READ_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
