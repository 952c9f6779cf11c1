"""A path names one file, whatever way files come back, and a file that comes back is found as before."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from credentials import Client, connect, keys_in
from memory_service.v1 import admin_pb2, memory_pb2
from server_process import ServerProcess
from server_stores import chosen_stores, flags_of

HELD = "xyloquestioned"
RULES = {"rules": [{"action": "quarantine", "reason": "to be looked at", "contains": [HELD]}]}
FRAGMENT = memory_pb2.ITEM_KIND_FILE_FRAGMENT
_numbers = itertools.count()


@dataclass(frozen=True)
class Files:
    """Files of a namespace, as one caller."""

    client: Client
    namespace: str
    tokens: dict[str, str]

    def by(self, name: str) -> Files:
        return replace(self, client=self.client.presenting(self.tokens[name]))

    def call(self, method: str, **fields: Any) -> Any:
        return self.client.call(method, namespace=self.namespace, **fields)

    def refused(self, method: str, **fields: Any) -> Any:
        return self.client.refused(method, namespace=self.namespace, **fields)

    def write(self, path: str, content: str) -> Any:
        return self.call("WriteFile", path=path, content=content)

    def append(self, path: str, text: str) -> Any:
        return self.call("EditFile", path=path, append=memory_pb2.AppendText(text=text))

    def text(self, path: str) -> str:
        text: str = self.call("ReadFile", path=path).content
        return text

    def rename(self, path: str, new_path: str) -> Any:
        return self.call("RenameFile", path=path, new_path=new_path)

    def paths(self) -> list[str]:
        return [one.path for one in self.call("ListFiles").entries if not one.is_folder]

    def found(self, query: str, **fields: Any) -> list[tuple[str, int]]:
        results = self.call("SearchFiles", query=query, **fields).results
        return [(one.path, one.start_line) for one in results]

    def fragments(self) -> list[str]:
        return sorted(item.text for item in self.call("List", kinds=[FRAGMENT]).items)

    def now(self) -> Timestamp:
        """Return the time of a write that is made now."""
        time: Timestamp = self.call("Add", item=memory_pb2.MemoryItem(text="x")).item.update_time
        return time

    def undo(self, since: Timestamp, writer: str = "mallory") -> Any:
        return self.by("root").call("UndoWrites", writer=writer, since=since)

    def release(self) -> list[str]:
        """Release what is held; return the reasons for which a write is refused."""
        root, refused = self.by("root"), []
        for held in root.call("ListQuarantined").writes:
            fields = {"id": held.id, "decision": admin_pb2.QUARANTINE_DECISION_RELEASE}
            try:
                root.call("ReviewQuarantined", **fields)
            except Exception:
                refused.append(root.refused("ReviewQuarantined", **fields).reason)
        return refused


@pytest.fixture(scope="module", params=chosen_stores())
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Files]:
    folder = tmp_path_factory.mktemp("data")
    rules = folder / "rules.json"
    rules.write_text(json.dumps(RULES))
    keys = keys_in(folder)
    tokens = {name: keys.token(name) for name in ("ada", "mallory", "root")}
    where = None if request.param == "memory" else folder
    flags = [*flags_of(request.param), "--auth", "keys", "--api-keys", str(folder / "api-keys.json")]
    with ServerProcess(where, flags=[*flags, "--write-policy-file", str(rules)]) as process:
        client = connect(process.address)
        yield Files(client, "", tokens).by("ada")
        client.channel.close()


@pytest.fixture
def files(opened: Files) -> Files:
    return replace(opened, namespace=f"n{next(_numbers)}")


# Undo


def test_a_restored_file_is_found_by_its_text_and_lines(files: Files) -> None:
    files.write("/n.md", "first\n" * 300 + "green tea\n")
    before, found, since = files.fragments(), files.found("tea", limit=1), files.now()
    files.by("mallory").write("/n.md", "bad instructions\n")
    assert files.found("tea", limit=1) != found
    assert files.undo(since).restored_count == 1
    assert files.text("/n.md").endswith("green tea\n")
    assert files.found("tea", limit=1) == found
    assert files.fragments() == before
    assert all("bad" not in text for text in files.fragments())
    files.append("/n.md", "more biscuits\n")
    assert files.text("/n.md").endswith("green tea\nmore biscuits\n")
    assert files.found("biscuits", limit=1)[0][0] == "/n.md"


def test_the_pieces_that_an_edit_left_stay_with_a_restored_file(files: Files) -> None:
    files.write("/n", "\n\n".join(f"paragraph {n} " + "word " * 150 for n in range(5)))
    before, since = files.fragments(), files.now()
    files.append("/n", "\n\nmine, too")
    root = files.by("root")
    assert root.call("UndoWrites", any_writer=True, since=since).restored_count == 1
    assert files.fragments() == before
    assert files.found("paragraph 3", limit=1) != []


def test_a_restored_file_gets_its_path_back_if_that_is_free(files: Files) -> None:
    files.write("/a/x", "tea")
    since = files.now()
    files.by("mallory").rename("/a", "/b")
    files.undo(since)
    assert (files.paths(), files.found("tea", path="/a")) == (["/a/x"], [("/a/x", 1)])
    since = files.now()
    files.by("mallory").rename("/a/x", "/old")
    files.by("mallory").write("/a/x", "another file at this path, which the undo removes")
    files.undo(since)
    assert (files.paths(), files.text("/a/x")) == (["/a/x"], "tea")


@pytest.mark.parametrize("taken", ["/a", "/a/below"])
def test_a_restored_file_keeps_its_present_path_if_the_former_is_taken(files: Files, taken: str) -> None:
    files.write("/a", "old tea")
    since = files.now()
    files.by("mallory").rename("/a", "/b")
    files.by("mallory").append("/b", " poisoned")
    files.write(taken, "new tea")
    files.undo(since)
    assert files.paths() == sorted([taken, "/b"])
    assert (files.text(taken), files.text("/b")) == ("new tea", "old tea")
    assert sorted(path for path, _ in files.found("tea")) == sorted([taken, "/b"])
    files.rename("/b", "/c")


def test_swapped_files_are_swapped_back(files: Files) -> None:
    files.write("/a", "one")
    files.write("/b", "two")
    since, mallory = files.now(), files.by("mallory")
    for path, new_path in (("/a", "/t"), ("/b", "/a"), ("/t", "/b")):
        mallory.rename(path, new_path)
    assert files.text("/a") == "two"
    files.undo(since)
    assert (files.text("/a"), files.text("/b")) == ("one", "two")


def test_a_file_is_reported_whose_text_another_editor_kept(files: Files) -> None:
    files.write("/a", "one\n")
    since = files.now()
    files.by("mallory").append("/a", "bad\n")
    files.append("/a", "two\n")
    done = files.undo(since)
    assert (done.restored_count, len(done.unrestorable_ids)) == (0, 1)
    assert files.text("/a") == "one\nbad\ntwo\n"


def test_a_dry_run_of_an_undo_changes_no_file(files: Files) -> None:
    files.write("/a", "one")
    since = files.now()
    files.by("mallory").write("/a", "two")
    before = files.fragments()
    root = files.by("root")
    assert root.call("UndoWrites", writer="mallory", since=since, dry_run=True).restored_count == 1
    assert (files.text("/a"), files.fragments()) == ("two", before)


# Quarantine and import


@pytest.mark.parametrize(("held", "other"), [("/a", "/a"), ("/a", "/a/b"), ("/a/b", "/a")])
def test_a_released_file_does_not_take_a_path(files: Files, held: str, other: str) -> None:
    assert files.write(held, f"{HELD} one").version == 0
    files.write(other, "two")
    assert files.release() == ["FILE_ALREADY_EXISTS"]
    assert (files.paths(), files.text(other)) == ([other], "two")
    files.call("DeleteFile", path=other)
    assert files.release() == []
    assert files.text(held) == f"{HELD} one"
    assert files.found("one") == [(held, 1)]


def test_of_two_held_files_at_one_path_one_is_released(files: Files) -> None:
    files.write("/a", f"{HELD} one")
    files.write("/a", f"{HELD} two")
    assert files.release() == ["FILE_ALREADY_EXISTS"]
    assert files.paths() == ["/a"]


@pytest.mark.parametrize("path", ["/a", "/a/b"])
def test_an_imported_file_does_not_take_a_path(files: Files, path: str) -> None:
    files.write("/a", "one")
    facet = json.dumps({"attributes": {"path": path, "fragments": []}})
    item = memory_pb2.MemoryItem(id="other", text="two", kind=memory_pb2.ITEM_KIND_FILE, facet_json=facet)
    root = files.by("root")
    error = root.refused("Import", items=[item])
    assert (error.reason, error.metadata["path"]) == ("FILE_ALREADY_EXISTS", "/a")
    files.rename("/a", "/free")
    root.call("Import", items=[item])
    assert files.paths() == sorted([path, "/free"])
