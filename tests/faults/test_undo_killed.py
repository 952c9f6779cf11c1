"""A server that is killed in the middle of an undo: the next one completes it, and nothing is half done."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.timestamp_pb2 import Timestamp

from faults.scale import drawn, rounds
from grpc_api import SMALL_GRAPHS, Api, outcome
from memory_service.v1 import admin_pb2
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

NAMESPACE = "undo"
WRITTEN = Timestamp(seconds=1_700_000_000)
ITEMS = 1200
# The outcomes of an undo whose server is killed; it may just have finished.
_ENDS = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.OK}


def _written(writer: str, ids: range, word: str) -> Iterator[pb.ImportRequest]:
    said = pb.Provenance(writer=writer, write_time=WRITTEN)
    for first in range(ids.start, ids.stop, 400):
        items = [
            pb.MemoryItem(id=f"i{n}", text=f"{word} {n}", provenance=said)
            for n in range(first, min(first + 400, ids.stop))
        ]
        yield pb.ImportRequest(namespace=NAMESPACE, items=items, on_duplicate=pb.ON_DUPLICATE_REPLACE)


def _request(**fields: Any) -> admin_pb2.UndoWritesRequest:
    return admin_pb2.UndoWritesRequest(namespace=NAMESPACE, writer="mallory", since=WRITTEN, **fields)


def _undo(api: Api, **fields: Any) -> admin_pb2.UndoWritesResponse:
    response: admin_pb2.UndoWritesResponse = api.admin.UndoWrites(_request(**fields))
    return response


def _found(api: Api, word: str) -> set[str]:
    options = pb.RetrieveOptions(query_text=word, mode=pb.RETRIEVE_MODE_LEXICAL, limit=-1, page_size=1000)
    found: set[str] = set()
    while True:
        page = api.memory.Retrieve(pb.RetrieveRequest(namespace=NAMESPACE, options=options))
        found |= {result.item.text for result in page.results}
        if not page.next_page_token:
            return found
        options.page_token = page.next_page_token


def test_an_undo_that_is_cut_off_is_ended_by_the_next(tmp_path: Path) -> None:
    chance, counts = drawn("undo killed"), Counter[str]()
    for number in range(rounds(2, 20)):
        data_dir = tmp_path / str(number)
        process = ServerProcess(data_dir, flags=["--embedder", "none"], env=SMALL_GRAPHS).start()
        api = Api.connect(process.address)
        api.memory.Import(_written("ada", range(ITEMS // 2), "heron"))
        # Half of their writes replace another's, half are new.
        api.memory.Import(_written("mallory", range(ITEMS), "vulture"))
        before = _undo(api, dry_run=True).revision
        cut = before + chance.randrange(1, ITEMS)
        killer = threading.Thread(target=_kill_at, args=(process, before, cut))
        killer.start()
        code = outcome(partial(_undo, api))
        killer.join()
        assert code in _ENDS
        api.channel.close()
        with ServerProcess(data_dir, flags=["--embedder", "none"], env=SMALL_GRAPHS) as again:
            api = Api.connect(again.address)
            half = _undo(api, dry_run=True)
            done = _undo(api)
            assert (half.removed_count, half.restored_count) == (done.removed_count, done.restored_count)
            assert _found(api, "heron") == {f"heron {n}" for n in range(ITEMS // 2)}
            assert _found(api, "vulture") == set()
            stats = api.admin.GetNamespaceStats(admin_pb2.GetNamespaceStatsRequest(namespace=NAMESPACE))
            assert stats.item_count == ITEMS // 2
            assert stats.revision == ITEMS // 2 + ITEMS + ITEMS, "each was undone once"
            assert not _undo(api).removed_count
            counts += Counter(
                kills=1, cut_off=code is not grpc.StatusCode.OK, undone_later=done.removed_count
            )
            api.channel.close()
    print(f"undone by the next: {dict(counts)}")


def _kill_at(process: ServerProcess, after: int, revision: int) -> None:
    """Kill the server when the namespace has reached a revision."""
    api = Api.connect(process.address)
    watch = api.memory.Watch(pb.WatchRequest(namespace=NAMESPACE, after_revision=after))
    try:
        for change in watch:
            if change.revision >= revision:
                break
    except grpc.RpcError:
        pass
    process.kill()
    api.channel.close()
