"""Documents: added and replaced as a whole, read by pages, searched and removed with their fragments."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from embedding_provider import EmbeddingProvider
from grpc_api import Api, Connect, Refusal, eventually, exactly, outcome, refusal, struct
from knowledge_api import PARAGRAPHS, TEXT, Library
from memory_service.v1 import knowledge_pb2 as pb
from memory_service.v1 import memory_pb2
from server_process import ServerProcess

FRAGMENT = memory_pb2.ITEM_KIND_FRAGMENT
NOT_FOUND = (grpc.StatusCode.NOT_FOUND, "DOCUMENT_NOT_FOUND")
ALREADY_EXISTS = (grpc.StatusCode.ALREADY_EXISTS, "DOCUMENT_ALREADY_EXISTS")
VERSION_MISMATCH = (grpc.StatusCode.ABORTED, "VERSION_MISMATCH")


@pytest.fixture
def library(api: Api, namespace: str) -> Library:
    return Library(api, namespace)


def code(error: Refusal) -> tuple[grpc.StatusCode, str]:
    return error.code, error.reason


def refused_add(library: Library, document_id: str = "", text: str = TEXT, **fields: Any) -> Refusal:
    return refusal(library.stub.AddDocument, library.request(document_id, text, **fields))


def refused_delete(library: Library, **fields: Any) -> Refusal:
    request = pb.DeleteDocumentRequest(namespace=library.namespace, **fields)
    return refusal(library.stub.DeleteDocument, request)


def refused_get(library: Library, **fields: Any) -> Refusal:
    return refusal(library.stub.GetDocument, pb.GetDocumentRequest(namespace=library.namespace, **fields))


def numbered(count: int) -> str:
    """Return a text of this many fragments of 100 characters."""
    return "".join(f"{number:->100}" for number in range(count))


BY_HUNDRED = pb.SplitOptions(max_characters=100, overlap_characters=0)


# Adding and reading


def test_a_document_comes_back_with_all_that_was_given(library: Library) -> None:
    fields: dict[str, Any] = {
        "title": "On otters", "source": "https://example.com/otters", "session_id": "room-1",
        "labels": {"topic": "otters"}, "metadata": struct({"pages": [1, None, {"a": "é"}]}),
        "create_time": Timestamp(seconds=1_000_000_000, nanos=5000),
        "expire_time": Timestamp(seconds=4_000_000_000),
    }  # fmt: skip
    answer = library.stub.AddDocument(library.request("d", **fields))
    added, found = answer.document, library.get("d", include_fragments=False).document
    expected = pb.Document(id="d", version=1, fragment_count=3, size_bytes=len(TEXT), revision=1, **fields)
    expected.update_time.CopyFrom(added.update_time)
    assert exactly(added) == exactly(expected)
    expected.text = TEXT
    assert exactly(found) == exactly(expected)
    assert answer.revision == library.api.stats(library.namespace).revision == 4


def test_every_fragment_is_its_place_of_the_text(library: Library) -> None:
    text = "Öl — 日本語。👨‍👩‍👧‍👦\r\n\r\n" * 40
    document = library.add("d", text, split=pb.SplitOptions(max_characters=120, overlap_characters=40))
    fragments = library.get("d").fragments
    assert len(fragments) == document.fragment_count > 5
    assert document.size_bytes == len(text.encode())
    for number, fragment in enumerate(fragments):
        assert fragment.text == text[fragment.start_offset : fragment.end_offset]
        assert fragment.text.encode() == text.encode()[fragment.start_byte : fragment.end_byte]
        assert (fragment.index, fragment.document_id, fragment.document_version) == (number, "d", 1)
        assert fragment.create_time == document.update_time
    assert any(
        after.start_offset < before.end_offset
        for before, after in zip(fragments, fragments[1:], strict=False)  # noqa: RUF007 - a repeated field
    )


def test_the_server_makes_an_id_and_splits_by_a_thousand_characters(library: Library) -> None:
    first, second = (library.add(text="word " * 500, split=None) for _ in range(2))
    assert first.id and first.id != second.id
    fragments = library.get(first.id).fragments
    assert [fragment.start_offset for fragment in fragments] == [0, 900, 1800]
    assert max(len(fragment.text) for fragment in fragments) == 999


def test_a_document_of_a_mebibyte_is_kept_whole(library: Library) -> None:
    text = ("An otter sleeps. " * (1 << 16))[: 1 << 20]
    document = library.add("d", text, split=None)
    assert (document.size_bytes, document.text) == (1 << 20, "")
    pages = list(library.pages("d", page_size=1000))
    assert [page.document.text == text for page in pages] == [True] + [False] * (len(pages) - 1)
    assert sum(len(page.fragments) for page in pages) == document.fragment_count > 1000
    error = refused_add(library, "e", text + "x", split=None)
    assert code(error) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED")
    assert (error.metadata["limit_name"], error.names("text")) == ("document_bytes_max", True)


def test_too_many_fragments_are_refused(library: Library) -> None:
    limit = library.api.limits()["document_fragments_max"]
    error = refused_add(library, "d", numbered(limit + 1), split=BY_HUNDRED)
    assert code(error) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED")
    assert error.metadata["limit_name"] == "document_fragments_max"
    assert library.list().documents == []
    assert library.add("d", numbered(limit), split=BY_HUNDRED).fragment_count == limit


def test_labels_that_would_be_kept_too_often_are_refused(library: Library) -> None:
    labels = {f"label-{at}": "v" * 248 for at in range(64)}
    error = refused_add(library, "d", numbered(1100), split=BY_HUNDRED, labels=labels)
    assert code(error) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED")
    assert (error.metadata["limit_name"], error.names("labels")) == ("document_labels_bytes_max", True)
    assert library.list().documents == []
    assert library.add("d", numbered(900), split=BY_HUNDRED, labels=labels).fragment_count == 900


@pytest.mark.parametrize("replace", [False, True])
def test_an_id_of_any_other_item_is_taken(library: Library, replace: bool) -> None:
    library.api.add(library.namespace, id="note", text="a note")
    error = refused_add(library, "note", replace=replace)
    assert code(error) == ALREADY_EXISTS
    assert error.metadata == {"namespace": library.namespace, "id": "note"}
    assert library.api.get(library.namespace, "note").text == "a note"
    assert library.fragment_items() == []


def test_a_document_is_not_overwritten_unless_asked_for(library: Library) -> None:
    library.add("d")
    assert code(refused_add(library, "d", "other")) == ALREADY_EXISTS
    assert library.get("d").document.text == TEXT
    assert len(library.fragment_items()) == 3


def test_documents_are_no_part_of_the_conversation(library: Library) -> None:
    library.add("d", session_id="room-1")
    assert library.api.found(library.namespace, session_id="room-1") == []
    assert library.api.found(library.namespace, query_text="otters") == []
    for item_id in ("d", library.get("d").fragments[0].id):
        request = memory_pb2.DeleteRequest(namespace=library.namespace, id=item_id)
        assert refusal(library.api.memory.Delete, request).code == grpc.StatusCode.INVALID_ARGUMENT


# Replacing


def test_a_replacement_has_a_new_version_and_new_fragments_only(library: Library) -> None:
    library.add("a")
    first = library.get("a")
    library.add("b")
    second = library.add("a", "Puffins nest in burrows.", replace=True, title="On puffins")
    found = library.get("a")
    assert (second.version, found.document.title, found.document.text) == (
        2, "On puffins", "Puffins nest in burrows."
    )  # fmt: skip
    assert [(f.text, f.document_version) for f in found.fragments] == [("Puffins nest in burrows.", 2)]
    assert {f.id for f in found.fragments}.isdisjoint(f.id for f in first.fragments)
    assert (
        library.found(
            "otters drift apart", limit=-1, document_ids=["a"], mode=memory_pb2.RETRIEVE_MODE_LEXICAL
        )
        == []
    )
    assert len(library.fragment_items()) == 1 + 3
    assert library.ids() == ["a", "b"]


def test_replacing_what_does_not_exist_adds_it(library: Library) -> None:
    assert library.add("d", replace=True).version == 1
    assert library.add("", replace=True).version == 1


def test_a_replacement_may_be_conditional_on_the_version(library: Library) -> None:
    error = refused_add(library, "d", replace=True, expected_version=1)
    assert code(error) == VERSION_MISMATCH
    assert error.metadata == {"id": "d", "expected_version": "1", "current_version": "0"}
    assert library.add("d", replace=True, expected_version=0).version == 1
    for expected in (0, 2):
        error = refused_add(library, "d", "other", replace=True, expected_version=expected)
        assert code(error) == VERSION_MISMATCH
        assert error.metadata["current_version"] == "1"
    assert library.add("d", "second", replace=True, expected_version=1).version == 2
    assert library.get("d").document.text == "second"


def test_writers_at_once_never_mix_fragments_of_two_versions(library: Library) -> None:
    texts = [f"{word} sleeps. ".ljust(100, ".") * 12 for word in ("otter", "puffin", "heron", "badger")]

    def write(number: int) -> int:
        return library.add("d", texts[number % 4], split=BY_HUNDRED, replace=True).version

    def read(_: int) -> tuple[str, list[str]]:
        found = library.get("d")
        assert {f.document_version for f in found.fragments} == {found.document.version}
        return found.document.text, [f.text for f in found.fragments]

    library.add("d", texts[0], split=BY_HUNDRED)
    with ThreadPoolExecutor(12) as pool:
        readings = pool.map(read, range(20))
        versions = list(pool.map(write, range(20)))
        for text, fragments in readings:
            assert text in texts
            assert "".join(fragments) == text
    assert sorted(versions) == list(range(2, 22))
    kept = library.fragment_items()
    assert len(kept) == 12
    assert {item.text[:5] for item in kept} == {library.get("d").document.text[:5]}


def test_one_of_many_conditional_writers_wins(library: Library) -> None:
    library.add("d")
    requests = [library.request("d", f"text {n}", replace=True, expected_version=1) for n in range(10)]
    with ThreadPoolExecutor(10) as pool:
        codes = list(pool.map(lambda request: outcome(lambda: library.stub.AddDocument(request)), requests))
    assert sorted(code.name for code in codes) == ["ABORTED"] * 9 + ["OK"]
    assert library.get("d").document.version == 2
    assert len(library.fragment_items()) == 1


def test_deleting_and_writing_at_once_leaves_no_fragment_behind(library: Library) -> None:
    def write(number: int) -> object:
        if number % 2:
            return library.add("d", f"{number} " + TEXT, replace=True)
        return outcome(lambda: library.delete("d"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(40)))
    library.add("d", replace=True)
    assert len(library.fragment_items()) == 3
    assert library.delete("d").removed_fragment_count == 3
    assert library.api.stats(library.namespace).item_count == 0


# Deleting


def test_a_deleted_document_is_gone_with_its_fragments(library: Library) -> None:
    library.add("d")
    library.add("kept", "Otters float.")
    fragment_id = library.get("d").fragments[0].id
    answer = library.delete("d")
    assert answer.removed_fragment_count == 3
    assert answer.revision == library.api.stats(library.namespace).revision
    assert code(refused_get(library, id="d")) == NOT_FOUND
    assert library.ids() == ["kept"]
    for mode in (memory_pb2.RETRIEVE_MODE_LEXICAL, memory_pb2.RETRIEVE_MODE_VECTOR):
        assert library.found("otters", limit=-1, mode=mode) == [("kept", 0)]
    get = memory_pb2.GetRequest(namespace=library.namespace, id=fragment_id)
    assert refusal(library.api.memory.Get, get).code == grpc.StatusCode.NOT_FOUND
    assert library.add("d").version == 1


def test_a_removal_may_be_conditional_on_the_version(library: Library) -> None:
    library.add("d")
    error = refused_delete(library, id="d", expected_version=2)
    assert code(error) == VERSION_MISMATCH
    assert error.metadata == {"id": "d", "expected_version": "2", "current_version": "1"}
    assert len(library.fragment_items()) == 3
    assert library.delete("d", expected_version=1).removed_fragment_count == 3


def test_what_does_not_exist_cannot_be_deleted(library: Library) -> None:
    library.api.add(library.namespace, id="note", text="a note")
    for document_id in ("d", "note"):
        error = refused_delete(library, id=document_id)
        assert code(error) == NOT_FOUND
        assert error.metadata == {"namespace": library.namespace, "id": document_id}
    assert library.api.get(library.namespace, "note").text == "a note"


# Retries


def test_repeated_requests_are_applied_once_and_answered_alike(library: Library) -> None:
    add = library.request("", title="t", request_id="r-1")
    first = library.stub.AddDocument(add)
    replacement = library.request(
        first.document.id, "new", replace=True, expected_version=1, request_id="r-2"
    )
    second = library.stub.AddDocument(replacement)
    before = library.api.stats(library.namespace)
    assert exactly(library.stub.AddDocument(add)) == exactly(first)
    assert exactly(library.stub.AddDocument(replacement)) == exactly(second)
    assert second.document.version == 2
    assert library.api.stats(library.namespace) == before
    removal = pb.DeleteDocumentRequest(namespace=library.namespace, id=first.document.id, request_id="r-3")
    third = library.stub.DeleteDocument(removal)
    assert exactly(library.stub.DeleteDocument(removal)) == exactly(third)
    assert exactly(library.stub.AddDocument(add)) == exactly(first)
    assert library.list().documents == []


def test_a_request_id_with_another_body_is_refused(library: Library) -> None:
    library.add("d", request_id="r")
    for error in (refused_add(library, "e", request_id="r"), refused_delete(library, id="d", request_id="r")):
        assert code(error) == (grpc.StatusCode.FAILED_PRECONDITION, "REQUEST_ID_REUSED")
    assert library.ids() == ["d"]


@pytest.mark.parametrize("document_id", ["", "d"])
def test_one_request_sent_twenty_times_at_once_is_applied_once(library: Library, document_id: str) -> None:
    request = library.request(document_id, replace=True, request_id="r")
    with ThreadPoolExecutor(20) as pool:
        answers = {exactly(answer) for answer in pool.map(library.stub.AddDocument, [request] * 20)}
    assert len(answers) == 1
    assert len(library.list().documents) == 1
    assert len(library.fragment_items()) == 3


# Pages


@pytest.mark.parametrize("page_size", [1, 7, 25, 1000])
def test_pages_of_fragments_add_up_to_the_document(library: Library, page_size: int) -> None:
    library.add("d", numbered(25), split=BY_HUNDRED)
    pages = list(library.pages("d", page_size=page_size))
    assert all(len(page.fragments) <= page_size for page in pages)
    assert [fragment.index for page in pages for fragment in page.fragments] == list(range(25))
    assert "".join(fragment.text for page in pages for fragment in page.fragments) == numbered(25)


def test_a_page_of_fragments_holds_a_hundred_unless_told_otherwise(library: Library) -> None:
    library.add("d", numbered(101), split=BY_HUNDRED)
    assert [len(page.fragments) for page in library.pages("d")] == [100, 1]
    without = library.get("d", include_fragments=False)
    assert (len(without.fragments), without.next_page_token) == (0, "")


def test_a_page_token_is_of_one_version_of_one_document(library: Library) -> None:
    library.add("d", numbered(5), split=BY_HUNDRED)
    library.add("e", numbered(5), split=BY_HUNDRED)
    token = library.get("d", page_size=2).next_page_token
    assert library.get("d", page_size=1, page_token=token).fragments[0].index == 2
    others = [("e", token), ("d", token[:-2] + "xx"), ("d", "nonsense!")]
    for document_id, forged in others:
        error = refused_get(library, id=document_id, page_token=forged, include_fragments=True)
        assert (error.reason, error.names("page_token")) == ("INVALID_PAGE_TOKEN", True)
    library.add("d", numbered(5), split=BY_HUNDRED, replace=True)
    error = refused_get(library, id="d", page_token=token, include_fragments=True)
    assert code(error) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_PAGE_TOKEN")


def test_documents_are_listed_in_order_without_their_texts(library: Library) -> None:
    for number in range(7):
        library.add(f"d{number}", f"{number}" * (99 + number), title=f"title {number}")
    library.add("d2", "short", replace=True)
    page = library.list()
    assert [document.id for document in page.documents] == [f"d{number}" for number in range(7)]
    assert {document.text for document in page.documents} == {""}
    previews = [document.preview for document in page.documents]
    assert previews[:4] == ["0" * 99, "1" * 100, "short", "3" * 100 + "..."]
    assert [document.version for document in page.documents] == [1, 1, 2, 1, 1, 1, 1]
    assert library.ids(newest_first=True) == [f"d{number}" for number in reversed(range(7))]


@pytest.mark.parametrize("newest_first", [False, True])
def test_pages_of_documents_add_up(library: Library, newest_first: bool) -> None:
    for number in range(7):
        library.add(f"d{number}")
    found, token = [], ""
    while True:
        page = library.list(page_size=3, page_token=token, newest_first=newest_first)
        assert len(page.documents) <= 3
        found += [document.id for document in page.documents]
        token = page.next_page_token
        if not token:
            break
    assert found == sorted(found, reverse=newest_first) and len(found) == 7


def test_a_page_of_documents_is_not_cut_by_texts_that_are_not_sent(library: Library) -> None:
    for number in range(8):
        library.add(f"d{number}", "x" * (1 << 19), split=pb.SplitOptions(max_characters=8000))
    assert len(library.ids()) == 8


def test_a_page_of_documents_is_cut_by_what_is_sent(library: Library) -> None:
    metadata = struct({"numbers": [1] * 8000})
    for number in range(40):
        library.add(f"d{number:02}", "x", metadata=metadata)
    page = library.list()
    assert 20 < len(page.documents) < 40 and page.next_page_token
    assert page.ByteSize() < 3.5 * (1 << 20)
    rest = library.list(page_token=page.next_page_token)
    assert len(page.documents) + len(rest.documents) == 40


FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["a", "b", "c"]),
    ({"session_id": "room-1"}, ["a", "b"]),
    ({"labels": {"topic": "otters"}}, ["a", "c"]),
    ({"labels": {"topic": "otters"}, "session_id": "room-1"}, ["a"]),
    ({"labels": {"topic": "trains"}}, []),
    ({"start_time": Timestamp(seconds=200)}, ["b", "c"]),
    ({"end_time": Timestamp(seconds=200)}, ["a"]),
    ({"start_time": Timestamp(seconds=200), "end_time": Timestamp(seconds=300)}, ["b"]),
]


@pytest.mark.parametrize(("filters", "expected"), FILTERS, ids=str)
def test_documents_and_fragments_are_filtered_alike(
    library: Library, filters: dict[str, Any], expected: list[str]
) -> None:
    otters = {"topic": "otters"}
    library.add("a", session_id="room-1", labels=otters, create_time=Timestamp(seconds=100))
    library.add("b", session_id="room-1", labels={"topic": "tea"}, create_time=Timestamp(seconds=200))
    library.add("c", session_id="room-2", labels=otters, create_time=Timestamp(seconds=300))
    assert library.ids(**filters) == expected
    found = library.found("otters", limit=-1, mode=memory_pb2.RETRIEVE_MODE_LEXICAL, **filters)
    assert sorted(document_id for document_id, _ in found) == expected


# Searching


@pytest.mark.parametrize(
    ("query", "index"), [("otters sleeping", 0), ("when does the train leave?", 1), ("baking bread", 2)]
)
def test_the_fragment_that_fits_best_comes_first(library: Library, query: str, index: int) -> None:
    library.add("d", title="Three things")
    (result,) = library.search(query, limit=1).results
    assert result.fragment.text.startswith(PARAGRAPHS[index])
    assert exactly(result.fragment) == exactly(library.get("d").fragments[index])
    assert exactly(result.document) == exactly(library.list().documents[0])
    assert result.score > 0 and not result.HasField("explanation")


@pytest.mark.parametrize(("limit", "count"), [(None, 5), (0, 0), (1, 1), (12, 12), (-1, 20)])
def test_a_search_returns_five_unless_told_otherwise(library: Library, limit: int | None, count: int) -> None:
    library.add("d", "".join(f"otter {n} ".ljust(100, ".") for n in range(20)), split=BY_HUNDRED)
    assert len(library.found("otter", **({} if limit is None else {"limit": limit}))) == count


@pytest.mark.parametrize("mode", [memory_pb2.RETRIEVE_MODE_UNSPECIFIED, memory_pb2.RETRIEVE_MODE_VECTOR])
def test_a_search_may_be_among_some_documents_only(library: Library, mode: int) -> None:
    for number in range(6):
        library.add(f"d{number}", f"Otter number {number} sleeps.")
    wanted = ["d4", "d1", "d1", "unknown"]
    found = library.found("otter", limit=-1, document_ids=wanted, mode=mode)
    assert sorted(found) == [("d1", 0), ("d4", 0)]
    assert library.found("otter", document_ids=["unknown"], mode=mode) == []
    # The best of all documents without the others: the same order as in a search of everything.
    everything = [one for one in library.found("otter number 4", limit=-1, mode=mode) if one in found]
    assert library.found("otter number 4", limit=-1, document_ids=["d1", "d4"], mode=mode) == everything


def test_pages_of_results_add_up_within_the_budget_of_tokens(library: Library) -> None:
    library.add("d", "".join(f"otter {n} ".ljust(100, ".") for n in range(20)), split=BY_HUNDRED)
    whole = library.found("otter", limit=-1)

    def paged(**fields: Any) -> list[tuple[str, int]]:
        found, token = [], ""
        while True:
            page = library.search("otter", limit=-1, page_size=3, page_token=token, **fields)
            found += [(r.fragment.document_id, r.fragment.index) for r in page.results]
            token = page.next_page_token
            if not token:
                return found

    assert paged() == whole
    # A fragment of 100 characters counts as 25 tokens.
    assert paged(max_tokens=200) == whole[:8] == library.found("otter", limit=-1, max_tokens=224)
    assert paged(max_tokens=24) == []
    token = library.search("otter", limit=-1, page_size=3).next_page_token
    request = pb.SearchFragmentsRequest(
        namespace=library.namespace, query="otter", limit=-1, page_size=3, page_token=token, max_tokens=200
    )
    error = refusal(library.stub.SearchFragments, request)
    assert (error.reason, error.names("page_token")) == ("INVALID_PAGE_TOKEN", True)


def test_a_page_of_results_is_cut_by_what_is_sent(library: Library) -> None:
    metadata = struct({"numbers": [1] * 8000})
    for number in range(40):
        library.add(f"d{number:02}", f"otter {number}", metadata=metadata)
    page = library.search("otter", limit=-1)
    assert 20 < len(page.results) < 40
    assert page.ByteSize() < 3.5 * (1 << 20)
    rest = library.search("otter", limit=-1, page_token=page.next_page_token)
    ids = {result.document.id for answer in (page, rest) for result in answer.results}
    assert len(ids) == len(page.results) + len(rest.results) == 40
    assert rest.next_page_token == ""


def test_scores_are_bounded_and_explained(library: Library) -> None:
    library.add("d")
    (best, *others) = library.search("the train to Lisbon", explain=True).results
    assert best.score == pytest.approx(sum(c.contribution for c in best.explanation.contributions))
    assert {c.channel for c in best.explanation.contributions} == {"lexical", "vector"}
    least = (best.score + others[0].score) / 2
    assert len(library.found("the train to Lisbon", min_score=least)) == 1


def test_a_search_that_knows_words_only_says_so(connect: Connect) -> None:
    no_embedder = [memory_pb2.DEGRADATION_REASON_NO_EMBEDDER]
    with ServerProcess(flags=["--store", "memory", "--embedder", "none"]) as server:
        library = Library(connect(server), "demo")
        request = library.request("d", request_id="r")
        answer = library.stub.AddDocument(request)
        assert [d.reason for d in answer.degraded] == no_embedder
        assert exactly(library.stub.AddDocument(request)) == exactly(answer)
        found = library.search("Lisbon")
        assert [d.reason for d in found.degraded] == no_embedder
        assert [r.fragment.index for r in found.results] == [1]


def test_an_embedder_that_fails_costs_the_vectors_only(tmp_path: Path, connect: Connect) -> None:
    with EmbeddingProvider() as provider:
        flags = [*provider.flags, "--embedder-retries", "0"]
        with ServerProcess(tmp_path, flags=flags, env=provider.env) as server:
            library = Library(connect(server), "demo")
            library.add("d")
            provider.failing = True
            answer = library.stub.AddDocument(library.request("d", "new", replace=True))
            assert [d.reason for d in answer.degraded] == [memory_pb2.DEGRADATION_REASON_EMBEDDING_PENDING]
            assert library.get("d").document.text == "new"
            assert len(library.fragment_items()) == 1
            assert library.found("new") == [("d", 0)]


def test_a_namespace_that_was_never_written_to_has_no_documents(library: Library) -> None:
    assert exactly(library.list()) == exactly(pb.ListDocumentsResponse())
    assert len(library.search("otter").results) == 0
    assert code(refused_get(library, id="d")) == NOT_FOUND


# Lifetime


def test_a_document_expires_with_its_fragments(library: Library) -> None:
    library.add("d", ttl=Duration(seconds=1))
    document = library.get("d").document
    assert document.expire_time.ToMicroseconds() - document.update_time.ToMicroseconds() == 1_000_000
    kept = library.fragment_items()
    assert {item.expire_time.ToMicroseconds() for item in kept} == {document.expire_time.ToMicroseconds()}
    eventually(lambda: time.time() > document.expire_time.ToSeconds() + 1, "its time is over")
    assert code(refused_get(library, id="d")) == NOT_FOUND
    assert library.ids() == [] and library.found("otters", limit=-1) == []
    # Its id is free immediately, and the old document's data does not come back.
    assert library.add("d", "new", replace=True, expected_version=0).version == 1
    assert library.found("otters", limit=-1) == [("d", 0)]
    eventually(lambda: library.api.stats(library.namespace).item_count == 2, "the old one is swept")


def test_documents_outlive_a_crash(tmp_path: Path, connect: Connect) -> None:
    with ServerProcess(tmp_path) as server:
        library = Library(connect(server), "demo")
        library.add("a", title="On otters")
        library.add("b", numbered(250), split=BY_HUNDRED)
        library.add("gone")
        library.add("a", TEXT + " more", replace=True)
        library.delete("gone")
        before = [exactly(page) for name in "ab" for page in library.pages(name)]
        token = library.get("b").next_page_token
        found = library.found("train to Lisbon", limit=2)
        server.kill()
    with ServerProcess(tmp_path) as server:
        library = Library(connect(server), "demo")
        assert [exactly(page) for name in "ab" for page in library.pages(name)] == before
        assert library.found("train to Lisbon", limit=2) == found
        assert found[0] == ("a", 1)
        assert library.get("b", page_token=token).fragments[0].index == 100
        assert library.ids() == ["a", "b"]
        assert library.add("a", replace=True, expected_version=2).version == 3
        assert library.delete("a").removed_fragment_count == 3


def exported(library: Library) -> list[memory_pb2.MemoryItem]:
    records = library.api.memory.Export(memory_pb2.ExportRequest(namespace=library.namespace))
    return [record.item for record in records if record.HasField("item")]


def imported(library: Library, items: list[memory_pb2.MemoryItem], **fields: Any) -> None:
    requests = [
        memory_pb2.ImportRequest(namespace=library.namespace, items=items[at : at + 1000], **fields)
        for at in range(0, len(items), 1000)
    ]
    library.api.memory.Import(iter(requests))


def test_an_export_can_be_imported_elsewhere_with_its_documents(library: Library) -> None:
    long = numbered(2500) + "x" * 70_000
    library.add("long", long, split=BY_HUNDRED, title="Long")
    library.add("d", labels={"topic": "otters"})
    library.says("the answer")
    saved = library.handle().document
    copy = Library(library.api, library.namespace + "/copy")
    imported(copy, exported(library))
    assert copy.ids() == ["long", "d", saved.id]
    assert copy.get("long").document.text == long
    parts = [f.text for page in copy.pages("long", page_size=1000) for f in page.fragments]
    assert "".join(parts) == long
    assert copy.found("train to Lisbon", limit=1, labels={"topic": "otters"}) == [("d", 1)]
    assert copy.get(saved.id).document.source_item_id == saved.source_item_id
    assert copy.handle().outcome == pb.HANDLE_MESSAGE_OUTCOME_ALREADY_SAVED
    assert copy.add("d", "new", replace=True).version == 2
    assert copy.delete("long").removed_fragment_count == library.get("long").document.fragment_count


def test_fragments_without_their_document_are_never_found(library: Library) -> None:
    library.add("d")
    items = exported(library)
    orphans = Library(library.api, library.namespace + "/orphans")
    imported(orphans, [item for item in items if item.kind == FRAGMENT])
    assert len(orphans.fragment_items()) == 3
    assert orphans.found("otters", limit=-1) == []
    # The same holds for fragments of a version that an import replaced.
    other = Library(library.api, library.namespace + "/other")
    other.add("d", "Otters of another kind.")
    imported(other, items, on_duplicate=memory_pb2.ON_DUPLICATE_REPLACE)
    found = other.search("otters", limit=-1).results
    assert [result.fragment.text for result in found if "another kind" in result.fragment.text] == []
    assert len(other.get("d").fragments) == len(found) == 3
    # But they are deleted with the document.
    assert other.delete("d").removed_fragment_count == 4
    assert other.api.stats(other.namespace).item_count == 0


@pytest.mark.parametrize(
    "facet", ["", "{}", '{"attributes":{"version":"x"}}', '{"attributes":{"version":1,"fragments":"f"}}',
              '{"attributes":{"version":1,"fragments":"f","fragment_count":100000000000}}']
)  # fmt: skip
def test_an_import_that_names_something_else_a_document_is_refused(library: Library, facet: str) -> None:
    for kind in (memory_pb2.ITEM_KIND_DOCUMENT, FRAGMENT):
        item = memory_pb2.MemoryItem(id=f"x{int(kind)}", text="otter", kind=kind, facet_json=facet)
        batch = memory_pb2.ImportRequest(namespace=library.namespace, items=[item])
        error = refusal(library.api.memory.Import, iter([batch]))
        assert error.code == grpc.StatusCode.INVALID_ARGUMENT and error.names("facet_json")
    exporting = memory_pb2.ExportRequest(namespace=library.namespace)
    assert refusal(library.api.memory.Export, exporting).code == grpc.StatusCode.NOT_FOUND


# Bad input


BAD_DOCUMENTS: list[tuple[dict[str, Any], str]] = [
    ({"text": ""}, "text"),
    ({"text": " \r\n\t"}, "text"),
    ({"document_id": "x" * 129}, "id"),
    ({"document_id": "a\x00b"}, "id"),
    ({"title": "x" * 513}, "title"),
    ({"source": "x" * 2049}, "source"),
    ({"session_id": "x" * 257}, "session_id"),
    ({"labels": {"k": "x" * 257}}, "labels"),
    ({"metadata": struct({"x": "y" * 66_000})}, "metadata"),
    ({"ttl": Duration(seconds=0)}, "ttl"),
    ({"ttl": Duration(seconds=1), "expire_time": Timestamp(seconds=4_000_000_000)}, "ttl"),
    ({"expire_time": Timestamp(seconds=1)}, "expire_time"),
    ({"create_time": Timestamp(nanos=-1)}, "create_time"),
    ({"expected_version": 1}, "expected_version"),
    ({"expected_version": -1, "replace": True}, "expected_version"),
    ({"request_id": "a b"}, "request_id"),
    ({"namespace": "../../etc"}, "namespace"),
    ({"split": pb.SplitOptions(max_characters=99)}, "max_characters"),
    ({"split": pb.SplitOptions(max_characters=8001)}, "max_characters"),
    ({"split": pb.SplitOptions(overlap_characters=501)}, "overlap_characters"),
    ({"split": pb.SplitOptions(overlap_characters=-1)}, "overlap_characters"),
]


@pytest.mark.parametrize(("fields", "field"), BAD_DOCUMENTS, ids=lambda value: str(value)[:40])
def test_a_bad_document_is_refused_by_its_field(library: Library, fields: dict[str, Any], field: str) -> None:
    error = refused_add(library, **fields)
    assert error.reason in ("INVALID_FIELD", "LIMIT_EXCEEDED")
    assert error.names(field)
    assert library.list().revision == 0


def test_a_document_is_required(library: Library) -> None:
    error = refusal(library.stub.AddDocument, pb.AddDocumentRequest(namespace=library.namespace))
    assert error.fields == ("document",)


BAD_SEARCHES: list[tuple[dict[str, Any], str]] = [
    ({"query": ""}, "query"),
    ({"query": "x" * 65_537}, "query"),
    ({"limit": -2}, "limit"),
    ({"document_ids": ["d"] * 101}, "document_ids"),
    ({"document_ids": ["d", ""]}, "document_ids"),
    ({"session_id": "x" * 257}, "session_id"),
    ({"labels": {"": "x"}}, "labels"),
    ({"start_time": Timestamp(seconds=2), "end_time": Timestamp(seconds=1)}, "end_time"),
    ({"min_score": float("nan")}, "min_score"),
    ({"mode": 9}, "mode"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"max_tokens": -1}, "max_tokens"),
    ({"page_size": -1}, "page_size"),
    ({"page_token": "nonsense"}, "page_token"),
    ({"namespace": "a//b"}, "namespace"),
]


@pytest.mark.parametrize(("fields", "field"), BAD_SEARCHES, ids=lambda value: str(value)[:40])
def test_a_bad_search_is_refused_by_its_field(library: Library, fields: dict[str, Any], field: str) -> None:
    request = pb.SearchFragmentsRequest(**{"namespace": library.namespace, "query": "otter", **fields})
    error = refusal(library.stub.SearchFragments, request)
    assert error.names(field)
    assert all(not path.startswith("options.") for path in error.fields)


@pytest.mark.parametrize(
    ("rpc", "fields", "field"),
    [
        ("GetDocument", {"id": ""}, "id"),
        ("GetDocument", {"id": "d", "page_size": -1}, "page_size"),
        ("GetDocument", {"id": "d", "namespace": ""}, "namespace"),
        ("DeleteDocument", {"id": ""}, "id"),
        ("DeleteDocument", {"id": "d", "expected_version": -1}, "expected_version"),
        ("DeleteDocument", {"id": "d", "request_id": "x" * 65}, "request_id"),
        ("ListDocuments", {"page_size": -1}, "page_size"),
        ("ListDocuments", {"page_token": "nonsense"}, "page_token"),
        ("ListDocuments", {"labels": {"": ""}}, "labels"),
        ("ListDocuments", {"namespace": "/a"}, "namespace"),
    ],
)
def test_other_bad_requests_are_refused_by_their_field(
    library: Library, rpc: str, fields: dict[str, Any], field: str
) -> None:
    library.add("d")
    request = getattr(pb, f"{rpc}Request")(**{"namespace": library.namespace, **fields})
    error = refusal(getattr(library.stub, rpc), request)
    assert error.code == grpc.StatusCode.INVALID_ARGUMENT
    assert error.names(field)
    assert library.ids() == ["d"]
