"""Invariants of a namespace, whatever was done to it."""

from __future__ import annotations

from contract.builders import EVERYTHING, NOW, NS, PLENTY
from memory_service.data_model import Change, ChangeType
from memory_service.store import Store

_GONE = (ChangeType.ITEM_DELETED, ChangeType.ITEM_EXPIRED)
_STATE_GONE = (ChangeType.STATE_DELETED, ChangeType.STATE_EXPIRED)


async def assert_consistent(store: Store, namespace: str = NS) -> None:
    """Assert that records, counts and history of a namespace agree.

    It must not hold anything that has expired at NOW and is not yet removed.
    """
    info = await store.namespace(namespace)
    changes = await store.read_changes(namespace, 0, PLENTY)
    positions = await (await store.read(namespace)).scan(EVERYTHING, -1, newest=False)
    items = [item for item in await (await store.read(namespace)).load_items(positions) if item is not None]
    states = await store.scan_states(namespace, "", PLENTY, now_us=NOW)
    assert len(items) == len(positions), "scan knows of items that are not there"
    assert [item.position for item in items] == positions == sorted(set(positions))
    assert {item.id: item for item in items} == await store.get_items(namespace, [i.id for i in items])
    assert [item.id for item in items] == _items_told_by(changes)
    assert {state.key for state in states} == _states_told_by(changes)
    if info is None:
        assert not changes and not items and not states
        return
    revisions = [change.revision for change in changes]
    assert revisions == sorted(set(revisions)) and revisions[-1] == info.revision
    assert {item.revision for item in items} <= set(revisions)
    assert (info.item_count, info.state_count) == (len(items), len(states))
    assert info.embedded_count == sum(item.embedded for item in items)
    pending = await store.pending_items(namespace, 0, PLENTY)
    assert info.pending_count == len(pending)
    assert not {item.id for item in pending} & {item.id for item in items if item.embedded}
    assert ([namespace] if pending else []) == [
        name for name in await store.namespaces_with_pending("", PLENTY) if name == namespace
    ]


def _items_told_by(changes: list[Change]) -> list[str]:
    """Return the ids of the items that remain at the end of a history, in order."""
    told: dict[str, None] = {}
    for change in changes:
        if change.type is ChangeType.ITEM_ADDED:
            assert change.subject not in told, "an item was added that was there"
            told[change.subject] = None
        elif change.type in _GONE:
            del told[change.subject]
    return list(told)


def _states_told_by(changes: list[Change]) -> set[str]:
    """Return the keys of the states that remain at the end of a history."""
    told: set[str] = set()
    for change in changes:
        if change.type is ChangeType.STATE_SAVED:
            told.add(change.subject)
        elif change.type in _STATE_GONE:
            told.remove(change.subject)
        elif change.type is ChangeType.STATE_CLEARED:
            told.clear()
    return told
