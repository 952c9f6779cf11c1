"""The file of a view's columns, words and labels: a JSON header, then arrays in numpy's format.

It is read sequentially after its checksum was verified. The header has the formats of the file and of the
records: a migration may change stored data without changing the items.
"""

from __future__ import annotations

from typing import IO

import msgspec
import numpy as np

from memory_service.data_model import LabelKey
from memory_service.indexes.frozen_view import ROW_TYPES, FrozenView, LabelLists
from memory_service.indexes.lexical import Segment, Words
from memory_service.views.arrays import read_array, write_array
from memory_service.views.refresh import Reason, Refused

FORMAT = 1


class _Version(msgspec.Struct):
    """The part of a header that every release can read."""

    format: int
    records_format: int


class _Header(msgspec.Struct):
    format: int
    records_format: int
    uid: int
    revision: int
    vector_epoch: int
    segment_count: int
    sessions: list[str]
    labels: list[tuple[LabelKey, str]]


def write_columns(file: IO[bytes], uid: int, records_format: int, frozen: FrozenView) -> None:
    """Write the columns of a namespace. Raises OSError."""
    words, labels = frozen.words, frozen.labels
    header = _Header(
        FORMAT, records_format, uid, frozen.revision, frozen.vector_epoch, len(words.segments),
        frozen.sessions, labels.labels,
    )  # fmt: skip
    write_array(file, np.frombuffer(msgspec.json.encode(header), np.uint8))
    for name in ROW_TYPES:
        write_array(file, frozen.rows[name])
    postings = [part for s in words.segments for part in (s.terms, s.starts, s.docs, s.counts)]
    for array in (words.lengths, labels.starts, labels.rows, *postings):
        write_array(file, array)


def read_columns(file: IO[bytes], uid: int, records_format: int) -> FrozenView:
    """Read the output of `write_columns`. Raises Refused, and other errors for an invalid file."""
    encoded = read_array(file).tobytes()
    version = msgspec.json.decode(encoded, type=_Version)
    if (version.format, version.records_format) != (FORMAT, records_format):
        raise Refused(Reason.OTHER_FORMAT)
    header = msgspec.json.decode(encoded, type=_Header)
    if header.uid != uid:
        raise Refused(Reason.OTHER_RECORDS)
    rows = {name: read_array(file) for name in ROW_TYPES}
    lengths, starts, label_rows = (read_array(file) for _ in range(3))
    segments = [Segment(*(read_array(file) for _ in range(4))) for _ in range(header.segment_count)]
    words = Words(segments, lengths, np.ones(len(lengths), np.bool_))
    frozen = FrozenView(
        header.revision, header.vector_epoch, rows, words, header.sessions,
        LabelLists(header.labels, starts, label_rows),
    )  # fmt: skip
    if file.read(1):
        raise ValueError("unexpected data at the end of the file")
    frozen.check()
    return frozen
