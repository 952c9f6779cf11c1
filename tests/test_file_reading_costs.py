"""Listing files, and limiting a search to a folder, read no contents."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from file_api import Drive
from grpc_api import Connect
from server_process import ServerProcess

FLAGS = ["--embedder", "none"]
TEXTS = {"/a/x": "one\n", "/a/c/y": "é" * 5000, "/b": ""}


def test_a_listing_and_the_place_of_a_search_read_no_contents(tmp_path: Path, connect: Connect) -> None:
    with ServerProcess(tmp_path, flags=FLAGS) as server:
        drive = Drive(connect(server), "n")
        for path, text in TEXTS.items():
            drive.write(path, "before " + text)
            drive.write(path, text)
        drive.rename("/b", "/c")
        server.terminate()
    with sqlite3.connect(tmp_path / "records.db") as db:
        # Reading a content would fail.
        changed = db.execute("UPDATE items SET content = 'damaged' WHERE facet ->> 'kind' = 8").rowcount
    assert changed == len(TEXTS)
    with ServerProcess(tmp_path, flags=FLAGS) as server:
        drive = Drive(connect(server), "n")
        sizes = {entry.path: entry.size_bytes for entry in drive.entries()}
        assert sizes == {"/a": 10_004, "/a/x": 4, "/a/c": 10_000, "/a/c/y": 10_000, "/c": 0}
        assert drive.search("one", path="/a", limit=0) == []
        assert drive.delete("/a", recursive=True).deleted_count == 2
