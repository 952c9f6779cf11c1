"""Data folders written by the code of their time, and what that code read from them: `tests/data/formats`.

`format-N.sql` is the dump of a database of format N, written by the last commit with that format, and
`format-N.json` the result of `read_all` with that commit's store.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sqlite3
from pathlib import Path
from typing import Any

import msgspec

from contract.builders import EVERYTHING, NOW, PLENTY, build_request, words_found
from memory_service.store import Store

FROZEN = (3, 4, 5, 6, 7)
_FOLDER = Path(__file__).parents[1] / "data" / "formats"
_REQUESTS = ("r-items", "r-replace", "r-delete", "r-state", "r-bob")


def write_frozen(data_dir: Path, number: int) -> None:
    """Write the folder of a format."""
    data_dir.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(sqlite3.connect(data_dir / "records.db")) as database:
        database.executescript((_FOLDER / f"format-{number}.sql").read_text())


def read_then(number: int) -> Any:
    """Return what the code of the time read from that folder."""
    return msgspec.json.decode((_FOLDER / f"format-{number}.json").read_bytes())


def of_then(now: Any, then: Any) -> Any:
    """Return the parts of `now` that were also known then: later code has more fields."""
    if isinstance(then, dict) and isinstance(now, dict):
        return {name: of_then(value, then[name]) for name, value in now.items() if name in then}
    if isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        return [of_then(*each) for each in zip(now, then, strict=True)]
    return now


async def read_all(store: Store) -> Any:
    """Return everything a store holds, as JSON: items, states, receipts and changes by namespace."""
    names = [info.name for info in await store.scan_namespaces("", "", PLENTY)]
    found = {name: await _read_namespace(store, name) for name in names}
    return msgspec.json.decode(msgspec.json.encode(found))


async def _read_namespace(store: Store, name: str) -> dict[str, Any]:
    positions = await (await store.read(name)).scan(EVERYTHING, -1, newest=False)
    items = await (await store.read(name)).load_items(positions, with_embedding=True)
    receipts = {}
    for request in _REQUESTS:
        receipt = await store.find_receipt(name, build_request(request))
        if receipt is not None:
            receipts[request] = _told(receipt)
            # Descriptions come from the current state or the repeated request: receipts no longer hold them.
            del receipts[request]["description"]
    return {
        "items": [_told(item) for item in items if item is not None],
        "states": [_told(state) for state in await store.scan_states(name, "", PLENTY, now_us=NOW)],
        "receipts": receipts,
        "changes": [_told(change) for change in await store.read_changes(name, 0, PLENTY)],
        "words": sorted(await words_found(store, "kiwi", name)),
    }


def _told(thing: Any) -> Any:
    """Return the fields of a record, as JSON."""
    fields = getattr(thing, "__struct_fields__", None) or [each.name for each in dataclasses.fields(thing)]
    values = {name: getattr(thing, name) for name in fields if name not in ("wire", "framed")}
    return msgspec.to_builtins(
        values, enc_hook=lambda value: value.decode() if isinstance(value, msgspec.Raw) else value.tolist()
    )
