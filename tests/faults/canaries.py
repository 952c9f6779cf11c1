"""Canaries: texts and vectors that are planted in records and looked for in the bytes of files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from memory_service.data_model import Vector

_CANARY = re.compile(rb"canary-[a-z0-9-]+?-x")


def canary(name: str) -> str:
    """Return a text that no file contains unless it was written there."""
    return f"canary-{name}-x"


def contents(folder: Path, *, but: Iterable[str] = ()) -> dict[str, bytes]:
    """Return every file below a folder, by its relative path; `but` names folders to leave out."""
    left_out = set(but)
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not left_out & set(path.relative_to(folder).parts)
    }


def canaries_in(files: dict[str, bytes]) -> set[str]:
    """Return the canaries that are in these files."""
    return {found.decode() for data in files.values() for found in _CANARY.findall(data)}


def vectors_in(files: dict[str, bytes], vectors: dict[str, Vector]) -> set[str]:
    """Return the names of the unit vectors that are in the files, judged by four consecutive numbers."""
    graphs = b"".join(files.values())
    return {name for name, vector in vectors.items() if vector[4:8].astype("<f4").tobytes() in graphs}


def unit_vectors(count: int, stream: int, dimension: int = 16) -> list[Vector]:
    """Return random vectors of length 1, the same each time; none of them changes when it is normalised."""
    drawn = np.random.default_rng([count, stream]).standard_normal((count, dimension))
    units = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)
    return list(units)
