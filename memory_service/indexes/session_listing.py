"""Lists the sessions of a view."""

from __future__ import annotations

import numpy as np

from memory_service.data_model import ItemFilter, ItemKind, SessionCounts, SessionQuery
from memory_service.indexes.selection import scan
from memory_service.indexes.sessions import SessionIndex
from memory_service.indexes.view import NamespaceView


def list_sessions(view: NamespaceView, query: SessionQuery) -> list[SessionCounts]:
    """Return the sessions that match, the latest first."""
    index = _index_of(view, query.now_us)
    if query.session_id:
        codes = np.array([view.session_codes.get(query.session_id, 0)], np.int32)
    elif query.labels:
        kept = ItemFilter(query.now_us, labels=query.labels, kinds=frozenset({ItemKind.SESSION}))
        rows = np.searchsorted(view.positions.view, np.array(scan(view, kept, -1, newest=True), np.int64))
        codes = np.unique(view.sessions.view[rows])
        if query.prefix:
            codes = np.intersect1d(codes, index.with_prefix(query.prefix))
    elif query.prefix:
        codes = index.with_prefix(query.prefix)
    else:
        return index.latest(query.before, query.limit, query.now_us)
    return index.latest_of(codes, query.before, query.limit, query.now_us)


def _index_of(view: NamespaceView, now_us: int) -> SessionIndex:
    """Return the index of a view's sessions, which is made on first use."""
    view.index_pending()
    if view.session_index is None:
        view.session_index = SessionIndex(view, now_us)
    return view.session_index
