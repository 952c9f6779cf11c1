"""The contents of a view for each item, in a form that does not depend on how the view was made."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from memory_service.indexes.lexical import Words
from memory_service.indexes.view import NamespaceView


def view_contents(view: NamespaceView) -> dict[str, Any]:
    """Return everything that searches use: counts, and for each position its columns, words and vector."""
    view.index_pending()
    positions = view.positions.view.tolist()
    live = np.flatnonzero(view.live.view).tolist()
    names = list(view.session_codes)
    documents = view.lexical.words()
    words = _words(documents)
    before, after = view.turns.links
    around = [0, *positions]
    items = {
        positions[row]: {
            "session": names[view.sessions.view[row]],
            "times": (view.create_us.view[row], view.expire_us.view[row]),
            "kind": view.kinds.view[row],
            "weights": (view.importances.view[row], view.use_counts.view[row]),
            "labels": view.row_labels.get(row, {}),
            "listed": {pair for pair, rows in view.label_rows.items() if row in rows},
            "words": words[view.row_doc.view[row]],
            "length": documents.lengths[view.row_doc.view[row]],
            "neighbours": (around[before[row + 1]], around[after[row + 1]]),
            "vector": _vector(view, row),
        }
        for row in live
    }
    assert positions == sorted(set(positions))
    counts = {
        "revision": view.revision,
        "epoch": view.vector_epoch,
        "live": view.live_count,
        "expiring": view.expiring_count,
        "kinds": list(view.kind_counts),
        "turns": len(view.turns),
        "window": view.turns.mean_window(max(view.live_count, 1)),
        "documents": int(documents.live.sum()),
        "vectors": view.vectors.live_count if view.vectors else 0,
        "labelled": sorted(positions[row] for row in view.row_labels),
    }
    assert all(list(rows) == sorted(set(rows)) for rows in view.label_rows.values())
    return {**counts, "items": items}


def _words(documents: Words) -> dict[int, dict[int, int]]:
    found: dict[int, dict[int, int]] = defaultdict(dict)
    for segment in documents.segments:
        terms = np.repeat(segment.terms, np.diff(segment.starts))
        for start, end in zip(segment.starts[:-1].tolist(), segment.starts[1:].tolist(), strict=True):
            assert (np.diff(segment.docs[start:end]) > 0).all(), "what is looked up by halves has to ascend"
        postings = terms.tolist(), segment.docs.tolist(), segment.counts.tolist()
        for term, doc, count in zip(*postings, strict=True):
            found[doc][term] = count
    return found


def _vector(view: NamespaceView, row: int) -> tuple[int, list[float]] | None:
    slot = int(view.row_slot.view[row])
    if slot < 0:
        return None
    assert view.vectors is not None and view.vectors.live[slot] and view.slot_row.view[slot] == row
    vector = view.vectors.vectors(np.array([slot]))[0]
    # Equal vectors may differ in their last bit, depending on how they were normalised.
    return int(view.slot_keys.view[slot]), [round(value, 3) for value in vector.tolist()]
