"""Files: written, edited, renamed and deleted by path, each in one step; listed, and searched with lines."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import grpc
import pytest

from file_api import Drive
from grpc_api import Api, Refusal, outcome, refusal
from memory_service.v1 import file_pb2, memory_pb2

ADA = "# Ada\nLikes tea.\nLives in Porto.\n"
PATH = "/memories/people/ada.md"
NOT_FOUND = (grpc.StatusCode.NOT_FOUND, "FILE_NOT_FOUND")
TAKEN = (grpc.StatusCode.ALREADY_EXISTS, "FILE_ALREADY_EXISTS")
MISMATCH = (grpc.StatusCode.ABORTED, "VERSION_MISMATCH")
INVALID = (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD")
LIMIT = (grpc.StatusCode.RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED")
EDITORS = 20


@pytest.fixture
def drive(api: Api, namespace: str) -> Drive:
    return Drive(api, namespace)


def code(error: Refusal) -> tuple[grpc.StatusCode, str]:
    return error.code, error.reason


def kinds(drive: Drive) -> dict[int, int]:
    """Return the number of stored items of each kind."""
    found: dict[int, int] = {}
    wanted = [memory_pb2.ITEM_KIND_FILE, memory_pb2.ITEM_KIND_FILE_FRAGMENT]
    request = memory_pb2.ListRequest(namespace=drive.namespace, page_size=1000, kinds=wanted)
    for item in drive.api.memory.List(request).items:
        found[item.kind] = found.get(item.kind, 0) + 1
    return found


# Reading and writing


@pytest.mark.parametrize("text", ["", "\n", "a", "a\n", "a\nb", "\n\n", "é\r\n𝄞\x00\u2028x\n" * 9, ADA])
def test_a_file_comes_back_unchanged(drive: Drive, text: str) -> None:
    written, read = drive.write(PATH, text), drive.read(PATH)
    assert read.content == text
    assert read.sha256 == written.sha256 == hashlib.sha256(text.encode()).hexdigest()
    lines = text.count("\n") + (bool(text) and not text.endswith("\n"))
    assert read.line_count == written.line_count == read.end_line == lines
    assert read.size_bytes == written.size_bytes == len(text.encode())
    assert read.version == written.version > 0
    assert written.created
    again = drive.write(PATH, text + "more")
    assert not again.created
    assert again.version > written.version
    assert drive.read(PATH).create_time == read.create_time


def test_a_range_of_lines_is_read(drive: Drive) -> None:
    drive.write(PATH, "1\n2\n3\n4")
    assert drive.text(PATH, start_line=2, end_line=3) == "2\n3\n"
    assert drive.text(PATH, start_line=3) == drive.text(PATH, start_line=3, end_line=-1) == "3\n4"
    assert drive.text(PATH, end_line=1) == "1\n"
    assert drive.text(PATH, start_line=4, end_line=99) == "4"
    read = drive.read(PATH, start_line=2, max_characters=5)
    assert (read.content, read.start_line, read.end_line, read.truncated) == ("2\n3\n4", 2, 4, False)
    read = drive.read(PATH, start_line=2, max_characters=3)
    assert (read.content, read.start_line, read.end_line, read.truncated) == ("2\n", 2, 2, True)
    drive.write(PATH, "long\nline")
    read = drive.read(PATH, max_characters=3)
    assert (read.content, read.end_line, read.truncated) == ("lon", 1, True)
    for fields in ({"start_line": 3}, {"start_line": 2, "end_line": 1}, {"start_line": -1}, {"end_line": -2}):
        assert code(drive.refused("ReadFile", path=PATH, **fields)) == INVALID
    drive.write("/empty", "")
    assert drive.read("/empty", start_line=1).end_line == 0


@pytest.mark.parametrize(
    "path",
    [
        "", "a", "a/b", "/", "//", "/a/", "/a//b", "/../a", "/a/..", "/a/./b", "/.", "/a\n", "/\x00", "/\x9f",
        "/e\u0301",
    ],
)  # fmt: skip
def test_a_path_that_is_none_is_refused(drive: Drive, path: str) -> None:
    error = drive.refused("WriteFile", path=path, content="x")
    assert code(error) == INVALID
    assert error.names("path")
    drive.write("/ok", "x")
    assert code(drive.refused("RenameFile", path="/ok", new_path=path)) == INVALID


def test_paths_and_files_have_a_longest(drive: Drive) -> None:
    longest, deepest = "/" + "é" * 255 + "x", "/d" * 16
    for path in (longest, deepest, "/李雷/a b.md", "/...", "/a..b"):
        drive.write(path, path)
        assert drive.text(path) == path
    for path in (longest + "x", deepest + "/d"):
        assert code(drive.refused("WriteFile", path=path, content="")) == LIMIT
    full = "line\n" * (1024 * 1024 // 5) + "x"
    drive.write("/full", full)
    assert drive.text("/full") == full
    error = drive.refused("EditFile", path="/full", append=memory_pb2.AppendText(text="y"))
    assert (code(error), error.metadata["field"]) == (LIMIT, "append.text")
    error = drive.refused("WriteFile", path="/fuller", content=full + "y")
    assert (code(error), error.metadata["limit_name"]) == (LIMIT, "file_bytes_max")


def test_a_file_is_no_folder(drive: Drive) -> None:
    drive.write("/a/b", "x")
    assert code(drive.refused("WriteFile", path="/a", content="x")) == TAKEN
    assert code(drive.refused("WriteFile", path="/a/b/c", content="x")) == TAKEN
    error = drive.refused("ReadFile", path="/a")
    assert code(error) == NOT_FOUND
    assert "folder" in error.message
    assert code(drive.refused("ReadFile", path="/a/c")) == NOT_FOUND
    assert drive.paths() == ["/a/", "/a/b"]


def test_a_write_may_require_a_version_or_a_content(drive: Drive) -> None:
    first = drive.write(PATH, "1", expected_version=0)
    assert code(drive.refused("WriteFile", path=PATH, content="x", expected_version=0)) == MISMATCH
    second = drive.write(PATH, "2", expected_version=first.version)
    error = drive.refused("WriteFile", path=PATH, content="x", expected_version=first.version)
    assert code(error) == MISMATCH
    assert error.metadata["current_version"] == str(second.version)
    drive.write(PATH, "3", expected_sha256=second.sha256)
    error = drive.refused("WriteFile", path=PATH, content="x", expected_sha256=second.sha256)
    assert code(error) == MISMATCH
    assert code(drive.refused("WriteFile", path="/new", content="x", expected_version=1)) == MISMATCH
    assert (
        code(drive.refused("WriteFile", path="/new", content="x", expected_sha256=first.sha256)) == MISMATCH
    )
    assert code(drive.refused("WriteFile", path=PATH, content="x", expected_sha256="x")) == INVALID
    assert code(drive.refused("WriteFile", path=PATH, content="x", expected_version=-1)) == INVALID
    assert drive.text(PATH) == "3"


def test_a_version_of_a_deleted_file_is_never_used_again(drive: Drive) -> None:
    first = drive.write(PATH, "1")
    drive.delete(PATH)
    drive.write(PATH, "2")
    assert (
        code(drive.refused("WriteFile", path=PATH, content="x", expected_version=first.version)) == MISMATCH
    )


def test_an_earlier_version_is_read_also_after_a_rename(drive: Drive) -> None:
    first = drive.write("/a", "1")
    second = drive.append("/a", "2")
    drive.rename("/a", "/b")
    assert drive.text("/b", version=first.version) == "1"
    assert drive.text("/b", version=second.version) == "12"
    error = drive.refused("ReadFile", path="/b", version=999)
    assert (error.reason, error.message) == (
        "VERSION_NOT_FOUND",
        f"no version 999 of file '/b' in {drive.namespace!r} is kept",
    )
    drive.stub.RedactFileVersion(
        file_pb2.RedactFileVersionRequest(namespace=drive.namespace, path="/b", version=first.version)
    )
    error = drive.refused("ReadFile", path="/b", version=first.version)
    assert (error.reason, error.message.endswith("was redacted")) == ("VERSION_NOT_FOUND", True)


# Editing


def test_a_text_that_occurs_once_is_replaced(drive: Drive) -> None:
    written = drive.write(PATH, ADA)
    edited = drive.replace(PATH, "tea.\nLives", "coffee.\n\nLives", expected_version=written.version)
    assert drive.text(PATH) == "# Ada\nLikes coffee.\n\nLives in Porto.\n"
    assert (edited.start_line, edited.line_count) == (2, 4)
    drive.replace(PATH, "\n\n", "\n", expected_sha256=edited.sha256)
    drive.replace(PATH, "# Ada\n", "")
    assert drive.text(PATH) == "Likes coffee.\nLives in Porto.\n"


@pytest.mark.parametrize(
    ("old", "count", "lines"),
    [("none", "0", ""), ("in", "3", "1,2"), ("aa", "2", "4"), ("n", "5", "1,2,3")],
)
def test_a_text_that_does_not_occur_once_is_counted(drive: Drive, old: str, count: str, lines: str) -> None:
    drive.write(PATH, "in tin\nin\nnn\naaa\n")
    error = drive.refused("EditFile", path=PATH, replace=memory_pb2.ReplaceText(old_text=old, new_text="x"))
    assert code(error) == (grpc.StatusCode.FAILED_PRECONDITION, "OCCURRENCE_MISMATCH")
    assert (error.metadata["occurrences"], error.metadata["lines"]) == (count, lines)
    assert drive.text(PATH) == "in tin\nin\nnn\naaa\n"


def test_many_occurrences_in_one_line_are_counted_at_once(drive: Drive) -> None:
    """Counted from the start for each of them, this takes minutes, in which no other client is served."""
    drive.write(PATH, "a," * 200_000)
    edit = file_pb2.EditFileRequest(
        namespace=drive.namespace, path=PATH, replace=memory_pb2.ReplaceText(old_text=",", new_text=";")
    )
    error = refusal(partial(drive.stub.EditFile, timeout=10), edit)
    assert (error.metadata["occurrences"], error.metadata["lines"]) == ("200000", "1")


@pytest.mark.parametrize(
    ("before", "after_line", "text", "after"),
    [
        ("a\nb\n", 0, "x", "x\na\nb\n"), ("a\nb\n", 1, "x\ny\n", "a\nx\ny\nb\n"),
        ("a\nb\n", 2, "x", "a\nb\nx"),
        ("a\nb", 2, "x\n", "a\nb\nx\n"), ("", 0, "x", "x"), ("a", 0, "\n", "\na"),
    ],
)  # fmt: skip
def test_lines_are_inserted(drive: Drive, before: str, after_line: int, text: str, after: str) -> None:
    drive.write(PATH, before)
    assert drive.insert(PATH, after_line, text).start_line == after_line + 1
    assert drive.text(PATH) == after


def test_edits_that_are_none_are_refused(drive: Drive) -> None:
    drive.write(PATH, "a\n")
    wrong = {
        "edit": {},
        "replace.old_text": {"replace": memory_pb2.ReplaceText(new_text="x")},
        "insert.text": {"insert": memory_pb2.InsertText(after_line=1)},
        "insert.after_line": {"insert": memory_pb2.InsertText(after_line=2, text="x")},
        "append.text": {"append": memory_pb2.AppendText()},
    }
    for field, fields in wrong.items():
        error = drive.refused("EditFile", path=PATH, **fields)
        assert (code(error), error.metadata["field"]) == (INVALID, field)
    append = memory_pb2.AppendText(text="x")
    assert code(drive.refused("EditFile", path="/none", append=append)) == NOT_FOUND
    assert code(drive.refused("EditFile", path="/none", append=append, expected_version=3)) == NOT_FOUND
    assert code(drive.refused("EditFile", path=PATH, append=append, expected_version=99)) == MISMATCH
    assert drive.text(PATH) == "a\n"


def test_an_edit_leaves_the_pieces_that_stay(drive: Drive) -> None:
    text = "\n\n".join(f"Paragraph {n}. " + "word " * 180 for n in range(9))
    drive.write(PATH, text)
    assert kinds(drive) == {memory_pb2.ITEM_KIND_FILE: 1, memory_pb2.ITEM_KIND_FILE_FRAGMENT: 9}
    before = drive.api.stats(drive.namespace).revision
    drive.append(PATH, "\n\nA last paragraph about otters.")
    assert drive.api.stats(drive.namespace).revision <= before + 4
    (hit,) = drive.search("otters", limit=1)
    assert drive.text(PATH, start_line=hit.start_line, end_line=hit.end_line) == hit.text
    drive.write(PATH, "Otters.")
    assert kinds(drive) == {memory_pb2.ITEM_KIND_FILE: 1, memory_pb2.ITEM_KIND_FILE_FRAGMENT: 1}


def test_no_edit_of_many_editors_is_lost(drive: Drive) -> None:
    drive.write(PATH, "")

    def edit(editor: int) -> None:
        while True:
            read = drive.read(PATH)
            version = read.version
            got = outcome(lambda: drive.append(PATH, f"{editor}\n", expected_version=version))  # noqa: B023
            if got is grpc.StatusCode.OK:
                return
            assert got is grpc.StatusCode.ABORTED

    with ThreadPoolExecutor(EDITORS) as editors:
        list(editors.map(edit, range(EDITORS)))
        assert sorted(drive.text(PATH).split()) == sorted(map(str, range(EDITORS)))
        # Without a version an edit applies to whatever is there.
        list(editors.map(lambda n: drive.append(PATH, f"again {n}\n"), range(EDITORS)))
    assert len(drive.text(PATH).splitlines()) == 2 * EDITORS
    assert kinds(drive) == {memory_pb2.ITEM_KIND_FILE: 1, memory_pb2.ITEM_KIND_FILE_FRAGMENT: 1}


def test_of_many_who_create_a_file_one_does(drive: Drive) -> None:
    with ThreadPoolExecutor(EDITORS) as editors:
        written = list(editors.map(lambda n: drive.write(PATH, f"{n}"), range(EDITORS)))
        assert sum(answer.created for answer in written) == 1
        list(editors.map(lambda n: drive.write(f"/new/{n}", "x"), range(EDITORS)))
    assert kinds(drive)[memory_pb2.ITEM_KIND_FILE] == EDITORS + 1


def test_a_version_that_cannot_be_redacted_is_named_by_the_path(drive: Drive) -> None:
    old, new = drive.write(PATH, "one").version, drive.write(PATH, "two").version
    current = drive.refused("RedactFileVersion", path=PATH, version=new)
    assert current.reason == "VERSION_IS_CURRENT"
    assert current.metadata == {"path": PATH, "version": str(new)}
    unknown = drive.refused("RedactFileVersion", path=PATH, version=new + 1)
    assert unknown.reason == "VERSION_NOT_FOUND"
    assert unknown.metadata == {"namespace": drive.namespace, "path": PATH, "version": str(new + 1)}
    assert PATH in current.message and PATH in unknown.message
    drive.stub.RedactFileVersion(
        file_pb2.RedactFileVersionRequest(namespace=drive.namespace, path=PATH, version=old)
    )


# Renaming and deleting


def test_a_file_is_renamed(drive: Drive) -> None:
    written = drive.write("/a", ADA)
    renamed = drive.rename("/a", "/b/c", expected_version=written.version)
    assert (renamed.renamed_count, renamed.version) == (1, drive.read("/b/c").version)
    assert renamed.version > written.version
    assert drive.text("/b/c") == ADA
    assert code(drive.refused("ReadFile", path="/a")) == NOT_FOUND
    assert [hit.path for hit in drive.search("Porto")] == ["/b/c"]
    drive.write("/a", "another")
    assert drive.paths() == ["/a", "/b/", "/b/c"]


def test_a_rename_never_overwrites(drive: Drive) -> None:
    for path in ("/a", "/d/b", "/d/c"):
        drive.write(path, path)
    for path, new_path in (("/a", "/d/b"), ("/a", "/d"), ("/d", "/a"), ("/d", "/a/x"), ("/d/b", "/d/c")):
        assert code(drive.refused("RenameFile", path=path, new_path=new_path)) == TAKEN, (path, new_path)
    for new_path in ("/d", "/d/x"):
        assert code(drive.refused("RenameFile", path="/d", new_path=new_path)) == INVALID
    assert code(drive.refused("RenameFile", path="/none", new_path="/x")) == NOT_FOUND
    assert code(drive.refused("RenameFile", path="/d", new_path="/x", expected_version=1)) == INVALID
    assert code(drive.refused("RenameFile", path="/a", new_path="/x", expected_version=99)) == MISMATCH
    assert code(drive.refused("RenameFile", path="/d", new_path="/" + "x" * 510)) == LIMIT
    assert drive.paths() == ["/a", "/d/", "/d/b", "/d/c"]


def test_a_folder_is_renamed_and_deleted_with_all_below(drive: Drive) -> None:
    for path in ("/d/a", "/d/e/b", "/d/e/f/c", "/de", "/x"):
        drive.write(path, f"This is {path}.")
    assert drive.rename("/d", "/n/m").renamed_count == 3
    assert drive.paths() == [
        "/de",
        "/n/",
        "/n/m/",
        "/n/m/a",
        "/n/m/e/",
        "/n/m/e/b",
        "/n/m/e/f/",
        "/n/m/e/f/c",
        "/x",
    ]
    assert drive.text("/n/m/e/f/c") == "This is /d/e/f/c."
    error = drive.refused("DeleteFile", path="/n/m")
    assert code(error) == (grpc.StatusCode.FAILED_PRECONDITION, "FOLDER_NOT_EMPTY")
    assert drive.delete("/n/m/e", recursive=True).deleted_count == 2
    assert drive.paths() == ["/de", "/n/", "/n/m/", "/n/m/a", "/x"]
    assert drive.delete("/x", recursive=True).deleted_count == 1
    assert kinds(drive) == {memory_pb2.ITEM_KIND_FILE: 2, memory_pb2.ITEM_KIND_FILE_FRAGMENT: 2}
    assert code(drive.refused("DeleteFile", path="/x")) == NOT_FOUND
    assert code(drive.refused("DeleteFile", path="/de", expected_version=99)) == MISMATCH
    assert code(drive.refused("DeleteFile", path="/n", recursive=True, expected_version=9)) == INVALID


def test_a_thousand_files_are_renamed_at_once(drive: Drive) -> None:
    with ThreadPoolExecutor(8) as writers:
        list(writers.map(lambda n: drive.write(f"/old/{n % 10}/{n}.md", f"File {n}"), range(1000)))
    before = drive.api.stats(drive.namespace).revision
    assert drive.rename("/old", "/new").renamed_count == 1000
    assert drive.api.stats(drive.namespace).revision == before + 1000
    assert drive.entries(depth=1)[0].file_count == 1000
    assert drive.text("/new/7/997.md") == "File 997"
    drive.write("/new/more", "x")
    error = drive.refused("RenameFile", path="/new", new_path="/old")
    assert (code(error), error.metadata["limit_name"]) == (LIMIT, "changed_files_max")
    assert drive.delete("/new", recursive=True).deleted_count == 1001
    assert kinds(drive) == {}


# Listing and searching


def test_files_are_listed_by_path_and_depth(drive: Drive) -> None:
    for path, text in (("/b", "12"), ("/a/x", "1"), ("/a/c/y", "123"), ("/a/c/z", "1234"), ("/a.", "")):
        drive.write(path, text)
    assert drive.paths() == ["/a/", "/a.", "/a/c/", "/a/c/y", "/a/c/z", "/a/x", "/b"]
    assert drive.paths(depth=1) == drive.paths("/", depth=1) == ["/a/", "/a.", "/b"]
    assert drive.paths("/a", depth=1) == drive.paths("/a/", depth=1) == ["/a/c/", "/a/x"]
    assert drive.paths(page_size=2) == drive.paths()
    assert drive.paths("/b") == drive.paths("/b", depth=1) == ["/b"]
    folder, empty, _ = drive.entries(depth=1)
    assert (folder.size_bytes, folder.file_count, folder.version) == (8, 3, 0)
    last = drive.read("/a/c/z")
    assert (folder.create_time, folder.update_time) == (drive.read("/a/x").create_time, last.update_time)
    assert (empty.size_bytes, empty.file_count, empty.version) == (0, 0, drive.read("/a.").version)
    assert code(drive.refused("ListFiles", path="/none")) == NOT_FOUND
    assert code(drive.refused("ListFiles", path="a")) == INVALID
    assert code(drive.refused("ListFiles", depth=-1)) == INVALID
    assert drive.refused("ListFiles", page_token="x").reason == "INVALID_PAGE_TOKEN"


def test_an_empty_namespace_has_no_files(drive: Drive) -> None:
    assert drive.paths() == drive.paths("/") == drive.search("x") == drive.search("x", path="/a") == []
    assert code(drive.refused("ReadFile", path=PATH)) == NOT_FOUND
    assert code(drive.refused("DeleteFile", path=PATH)) == NOT_FOUND


def test_a_search_finds_path_and_lines(drive: Drive) -> None:
    drive.write(
        "/a/one.md", "First line.\n\n" + "filler text\n" * 200 + "The otter sleeps.\n" + "more\n" * 200
    )
    drive.write("/b/two.md", "The otter swims.\n")
    found = drive.search("otter", limit=2)
    assert {hit.path for hit in found} == {"/a/one.md", "/b/two.md"}
    for hit in found:
        assert drive.text(hit.path, start_line=hit.start_line, end_line=hit.end_line).startswith(hit.text)
        assert "otter" in hit.text
        assert hit.version == drive.read(hit.path).version
    assert [hit.path for hit in drive.search("otter", path="/b")] == ["/b/two.md"]
    assert {hit.path for hit in drive.search("otter", path="/a/one.md")} == {"/a/one.md"}
    assert drive.search("otter", path="/c") == []
    assert len(drive.search("otter", limit=1)) == 1
    assert drive.search("otter", limit=0) == []
    assert sum(len(hit.text) for hit in drive.search("otter", max_characters=20)) <= 20
    for fields in ({"query": ""}, {"query": "x", "limit": -1}, {"query": "x", "max_characters": -1}):
        assert code(drive.refused("SearchFiles", **fields)) == INVALID
    assert code(drive.refused("SearchFiles", query="x", limit=101)) == LIMIT
    drive.delete("/b/two.md")
    assert {hit.path for hit in drive.search("otter")} == {"/a/one.md"}


def test_a_repeated_request_gets_the_first_answer(drive: Drive) -> None:
    first = drive.write(PATH, "1", request_id="w")
    edited = drive.append(PATH, "2", request_id="e")
    renamed = drive.rename(PATH, "/b", request_id="r")
    deleted = drive.delete("/b", request_id="d")
    assert drive.write(PATH, "1", request_id="w") == first
    assert drive.append(PATH, "2", request_id="e") == edited
    assert drive.rename(PATH, "/b", request_id="r") == renamed
    assert drive.delete("/b", request_id="d") == deleted
    assert drive.paths() == []
    assert drive.refused("WriteFile", path=PATH, content="3", request_id="w").reason == "REQUEST_ID_REUSED"


def test_a_file_is_changed_by_its_service_only(drive: Drive) -> None:
    drive.write(PATH, ADA)
    wanted = [memory_pb2.ITEM_KIND_FILE, memory_pb2.ITEM_KIND_FILE_FRAGMENT]
    request = memory_pb2.ListRequest(namespace=drive.namespace, kinds=wanted)
    for item in drive.api.memory.List(request).items:
        with pytest.raises(grpc.RpcError, match="file"):
            drive.api.memory.Delete(memory_pb2.DeleteRequest(namespace=drive.namespace, id=item.id))
    assert drive.api.items(drive.namespace) == []
    assert drive.api.found(drive.namespace, query_text="tea") == []
