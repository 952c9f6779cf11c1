"""A view at one moment, without its vectors, in immutable arrays: the content of a snapshot.

Copying a view is quick and done by its owner; everything slower is done to the copy, in another thread. Dead
rows are left out, so that no file has anything of them: neither words, nor a session or label that no other
row has.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_service.data_model import KIND_NUMBERS, LabelKey
from memory_service.indexes.arrays import GrowingArray
from memory_service.indexes.lexical import LexicalIndex, Words
from memory_service.indexes.view import NamespaceView

Label = tuple[LabelKey, str]
IntArray = NDArray[np.int32]

ROW_TYPES: dict[str, type[np.generic]] = {
    "positions": np.int64,
    "vector_keys": np.int64,
    "create_us": np.int64,
    "expire_us": np.int64,
    "importances": np.float64,
    "sessions": np.int32,
    "use_counts": np.int32,
    "row_doc": np.int32,
    "kinds": np.int8,
}
"""The columns, with a value per row. The key of a missing vector is 0."""
_COPIED = ("positions", "create_us", "expire_us", "importances", "sessions", "use_counts", "row_doc", "kinds")


@dataclass
class LabelLists:
    """The rows of each label, one label after the other: rows[starts[i]:starts[i + 1]] have labels[i]."""

    labels: list[Label]
    starts: NDArray[np.int64]
    rows: IntArray


@dataclass
class FrozenView:
    """All rows are live and ascend by position; documents are also live, each with its row."""

    revision: int
    vector_epoch: int
    rows: dict[str, NDArray[Any]]
    words: Words
    sessions: list[str]
    labels: LabelLists

    def __len__(self) -> int:
        return len(self.rows["positions"])

    @property
    def nbytes(self) -> int:
        """Memory taken, estimated."""
        rows = sum(column.nbytes for column in self.rows.values())
        words = sum(segment.nbytes for segment in self.words.segments) + 5 * len(self)
        named = sum(map(len, self.sessions)) + sum(len(str(key)) + len(v) for key, v in self.labels.labels)
        return rows + words + 4 * named + self.labels.rows.nbytes + self.labels.starts.nbytes

    def check(self) -> None:
        """Raise ValueError if the parts are inconsistent: compiled searches do not check them."""
        count = len(self)
        if any(
            self.rows[name].dtype != kind or self.rows[name].shape != (count,)
            for name, kind in ROW_TYPES.items()
        ):
            raise ValueError("the columns have wrong types or lengths")
        positions = self.rows["positions"]
        if count and (positions[0] < 1 or (np.diff(positions) < 1).any() or positions[-1] > self.revision):
            raise ValueError("the positions do not match the revision")
        _check_numbers(self.rows["sessions"], len(self.sessions))
        _check_numbers(self.rows["kinds"], KIND_NUMBERS)
        _check_numbers(self.rows["row_doc"], count)
        if (np.bincount(self.rows["row_doc"], minlength=count) != 1).any():
            raise ValueError("rows and documents do not match one to one")
        if self.sessions[:1] != [""] or len(set(self.sessions)) != len(self.sessions):
            raise ValueError("the sessions are numbered wrongly")
        _check_words(self.words, count)
        labels = self.labels
        _check_starts(labels.starts, len(labels.labels), len(labels.rows))
        _check_numbers(labels.rows, count)


def _check_numbers(numbers: NDArray[Any], count: int) -> None:
    if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < count:
        raise ValueError("a number is out of range")


def _check_starts(starts: NDArray[np.int64], count: int, total: int) -> None:
    whole = starts.shape == (count + 1,) and starts[0] == 0 and starts[-1] == total
    if not whole or (np.diff(starts) < 0).any():
        raise ValueError("a list starts at a wrong place")


def _check_words(words: Words, count: int) -> None:
    if words.lengths.dtype != np.int32 or words.lengths.shape != (count,) or len(words.live) != count:
        raise ValueError("the number of documents differs from that of rows")
    for segment in words.segments:
        kinds = (segment.terms, np.uint32), (segment.starts, np.int64), (segment.docs, np.int32)
        if any(part.dtype != kind for part, kind in (*kinds, (segment.counts, np.uint16))):
            raise ValueError("postings have a wrong type")
        _check_starts(segment.starts, len(segment.terms), len(segment.docs))
        if segment.counts.shape != segment.docs.shape:
            raise ValueError("postings lack counts")
        _check_numbers(segment.docs, count)


@dataclass
class ViewCopy:
    """A view at one moment, including dead rows. `freeze` is for any thread."""

    revision: int
    vector_epoch: int
    live: NDArray[np.bool_]
    rows: dict[str, NDArray[Any]]
    row_slot: IntArray
    slot_keys: NDArray[np.int64]
    words: Words
    sessions: list[str]
    row_labels: dict[int, dict[LabelKey, str]]

    @classmethod
    def of(cls, view: NamespaceView) -> ViewCopy:
        """Copy a view."""
        view.index_pending()
        return cls(
            view.revision,
            view.vector_epoch,
            view.live.view.copy(),
            {name: getattr(view, name).view.copy() for name in _COPIED},
            view.row_slot.view.copy(),
            view.slot_keys.view.copy(),
            view.lexical.words(),
            list(view.session_codes),
            # The labels of a row are replaced as a whole when they change.
            dict(view.row_labels),
        )

    def freeze(self) -> FrozenView:
        """Return the live part."""
        rows = {name: column[self.live] for name, column in self.rows.items()}
        numbers = (np.cumsum(self.live) - 1).astype(np.int32)
        documents = (np.cumsum(self.words.live) - 1).astype(np.int32)
        rows["row_doc"] = documents[rows["row_doc"]]
        slots = self.row_slot[self.live]
        keys = np.append(self.slot_keys, 0)  # Slot -1, of rows without a vector, is the last.
        rows["vector_keys"] = keys[slots]
        used = np.union1d(rows["sessions"], [0])
        rows["sessions"] = np.searchsorted(used, rows["sessions"]).astype(np.int32)
        return FrozenView(
            self.revision,
            self.vector_epoch,
            rows,
            self.words.live_alone(),
            [self.sessions[code] for code in used.tolist()],
            _label_lists(self.row_labels, numbers),
        )


def _label_lists(row_labels: dict[int, dict[LabelKey, str]], numbers: IntArray) -> LabelLists:
    listed: dict[Label, list[int]] = {}
    for row in sorted(row_labels):
        for pair in row_labels[row].items():
            listed.setdefault(pair, []).append(row)
    starts = np.cumsum([0, *map(len, listed.values())], dtype=np.int64)
    rows = [row for of_label in listed.values() for row in of_label]
    return LabelLists(list(listed), starts, numbers[np.array(rows, np.int64)])


def fill_view(view: NamespaceView, frozen: FrozenView) -> None:
    """Fill an empty view, except for vectors and links between turns, from a frozen one.

    The arrays are not copied.
    """
    count = len(frozen)
    for name in _COPIED:
        setattr(view, name, GrowingArray.of(frozen.rows[name]))
    view.live = GrowingArray.of(np.ones(count, np.bool_))
    doc_row = np.empty(count, np.int32)
    doc_row[frozen.rows["row_doc"]] = np.arange(count, dtype=np.int32)
    view.doc_row = GrowingArray.of(doc_row)
    view.session_codes = {name: code for code, name in enumerate(frozen.sessions)}
    view.lexical = LexicalIndex.of(frozen.words)
    _fill_labels(view, frozen.labels)


def _fill_labels(view: NamespaceView, lists: LabelLists) -> None:
    starts = lists.starts.tolist()
    row_labels = view.row_labels
    for at, (key, value) in enumerate(lists.labels):
        rows = array("i", lists.rows[starts[at] : starts[at + 1]].tobytes())
        view.label_rows[key, value] = rows
        for row in rows:
            if (labels := row_labels.get(row)) is None:
                row_labels[row] = {key: value}
            else:
                labels[key] = value
