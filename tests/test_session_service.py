"""SessionService over gRPC: sessions are listed, named, copied and deleted."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from grpc_api import Api, Connect, Refusal, exactly, outcome, refusal, struct
from memory_service.v1 import interaction_pb2, interaction_pb2_grpc, memory_pb2, session_pb2_grpc
from memory_service.v1 import session_pb2 as pb
from server_process import ServerProcess


class Talks:
    """The service for one namespace."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api, self.namespace = api, namespace
        self.stub: Any = session_pb2_grpc.SessionServiceStub(api.channel)

    def say(self, session_id: str, text: str = "x", at: int = 0, **fields: Any) -> memory_pb2.MemoryItem:
        """Add an item to a session, created at this time in seconds."""
        fields.setdefault("create_time", Timestamp(seconds=at))
        return self.api.add(self.namespace, session_id=session_id, text=text, **fields)

    def call(self, method: str, **fields: Any) -> Any:
        """Call an RPC."""
        return getattr(self.stub, method)(self.request(method, **fields))

    def request(self, method: str, **fields: Any) -> Any:
        """Return a request of an RPC."""
        return getattr(pb, f"{method}Request")(namespace=self.namespace, **fields)

    def refused(self, method: str, **fields: Any) -> Refusal:
        """Return the error of a call."""
        return refusal(getattr(self.stub, method), self.request(method, **fields))

    def ids(self, **fields: Any) -> list[str]:
        """Return the ids of the sessions, latest activity first."""
        return [session.session_id for session in self.call("ListSessions", **fields).sessions]

    def get(self, session_id: str) -> pb.Session:
        """Return a session."""
        return self.call("GetSession", session_id=session_id).session

    def name(self, session_id: str, title: str = "", **fields: Any) -> pb.Session:
        """Set the title, and other fields of a session or of the request."""
        outer = {name: fields.pop(name) for name in ("expected_version", "allow_missing") if name in fields}
        session = pb.Session(session_id=session_id, title=title, **fields)
        return self.call("UpdateSession", session=session, **outer).session

    def items(self, session_id: str, **fields: Any) -> list[memory_pb2.MemoryItem]:
        """Return the items of a session."""
        request = memory_pb2.ListRequest(
            namespace=self.namespace, session_id=session_id, page_size=1000, **fields
        )
        return list(self.api.memory.List(request).items)


@pytest.fixture
def talks(api: Api, namespace: str) -> Talks:
    """A namespace without anything."""
    return Talks(api, namespace)


# --- listing --------------------------------------------------------------------------------------


def test_a_session_exists_as_soon_as_an_item_names_it(talks: Talks) -> None:
    assert talks.ids() == []
    assert talks.refused("GetSession", session_id="a").reason == "SESSION_NOT_FOUND"
    talks.say("a", at=10)
    talks.say("b", at=20)
    talks.say("", at=30)
    assert talks.ids() == ["b", "a"]
    talks.say("a", at=30)
    assert talks.ids() == ["a", "b"]
    found = talks.get("a")
    assert found == pb.Session(
        session_id="a", item_count=2, first_time=Timestamp(seconds=10), last_time=Timestamp(seconds=30)
    )
    assert found == talks.call("ListSessions").sessions[0]


def test_participants_are_the_speakers_of_the_newest_items(talks: Talks) -> None:
    def said(name: str) -> memory_pb2.MemoryItem:
        message = memory_pb2.ChatMessage(role=memory_pb2.ROLE_USER, name=name, parts=[{"text": "x"}])
        return memory_pb2.MemoryItem(session_id="s", chat_message=message)

    for names in (["old", "p7"], ["", *(f"p{n % 105}" for n in range(999))]):
        batch = memory_pb2.BatchAddRequest(namespace=talks.namespace, items=map(said, names))
        talks.api.memory.BatchAdd(batch)
    assert list(talks.get("s").participants) == [f"p{n}" for n in range(100)]
    assert not talks.call("ListSessions").sessions[0].participants


def test_pages_hold_every_session_once(talks: Talks) -> None:
    for at in range(25):
        talks.say(f"s{at}", at=at // 3)
        talks.name(f"s{at}", "t", metadata=struct({"text": "x" * 100}))
    pages, token = list[list[str]](), ""
    while not pages or token:
        page = talks.call("ListSessions", page_size=4, page_token=token)
        pages.append([session.session_id for session in page.sessions])
        token = page.next_page_token
    assert [len(page) for page in pages] == [4] * 6 + [1]
    assert list(chain.from_iterable(pages)) == [f"s{at}" for at in reversed(range(25))]
    error = talks.refused("ListSessions", page_size=4, page_token=token or "bad")
    assert error.reason == "INVALID_PAGE_TOKEN"


def test_a_page_ends_at_its_size_in_bytes(talks: Talks) -> None:
    metadata = struct({"text": "x" * 30_000})
    for at in range(120):
        talks.name(f"s{at}", metadata=metadata, allow_missing=True)
    first = talks.call("ListSessions", page_size=1000)
    assert 80 < len(first.sessions) < 120
    rest = talks.call("ListSessions", page_size=1000, page_token=first.next_page_token)
    assert len(first.sessions) + len(rest.sessions) == 120
    assert not rest.next_page_token


def test_sessions_are_selected_by_prefix_and_labels(talks: Talks) -> None:
    for at, session in enumerate(("chat/1", "chat/2", "mail/1")):
        talks.say(session, at=at)
    talks.name("chat/1", labels={"user": "ada"})
    talks.name("mail/1", labels={"user": "ada", "open": "yes"})
    assert talks.ids(prefix="chat/") == ["chat/2", "chat/1"]
    assert talks.ids(labels={"user": "ada"}) == ["mail/1", "chat/1"]
    assert talks.ids(labels={"user": "ada"}, prefix="chat") == ["chat/1"]
    page = talks.call("ListSessions", labels={"user": "ada"}, page_size=1)
    assert [session.session_id for session in page.sessions] == ["mail/1"]
    again = talks.call("ListSessions", labels={"user": "ada"}, page_size=1, page_token=page.next_page_token)
    assert [session.session_id for session in again.sessions] == ["chat/1"]
    assert talks.refused("ListSessions", prefix="x" * 300).names("prefix")
    assert talks.refused("ListSessions", labels={"": "x"}).names("labels")


# --- naming ---------------------------------------------------------------------------------------


def test_title_labels_and_metadata_are_kept(talks: Talks) -> None:
    talks.say("a", at=5)
    first = talks.name("a", "Tea", labels={"user": "ada"}, metadata=struct({"n": 1}))
    assert (first.title, dict(first.labels), first.metadata["n"]) == ("Tea", {"user": "ada"}, 1)
    assert (first.item_count, first.last_time.seconds) == (1, 5)
    assert first.version > 0
    assert talks.get("a") == first
    second = talks.name("a", "Coffee")
    assert (second.title, second.labels, second.metadata) == ("Coffee", first.labels, first.metadata)
    assert second.version > first.version
    cleared = talks.call("UpdateSession", session={"session_id": "a"}, update_mask={"paths": ["*"]}).session
    assert (cleared.title, dict(cleared.labels), cleared.HasField("metadata")) == ("", {}, False)
    assert talks.ids(labels={"user": "ada"}) == []


def test_an_update_is_made_at_the_expected_version_only(talks: Talks) -> None:
    talks.say("a")
    first = talks.name("a", "one", expected_version=0)
    error = talks.refused("UpdateSession", session={"session_id": "a", "title": "x"}, expected_version=0)
    assert (error.code, error.reason) == (grpc.StatusCode.ABORTED, "VERSION_MISMATCH")
    assert error.metadata["current_version"] == str(first.version)
    talks.say("a")
    assert talks.name("a", "two", expected_version=first.version).title == "two"


def test_concurrent_updates_of_a_session_lose_nothing(talks: Talks) -> None:
    talks.say("a")

    def add_label(number: int) -> None:
        while True:
            now = talks.get("a")
            try:
                labels = {**now.labels, f"l{number}": "x"}
                talks.name("a", labels=labels, expected_version=now.version)
            except grpc.RpcError as error:
                if error.code() is not grpc.StatusCode.ABORTED:  # type: ignore[attr-defined]
                    raise
            else:
                return

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add_label, range(8)))
    assert len(talks.get("a").labels) == 8


def test_a_session_without_items_can_be_created(talks: Talks) -> None:
    update = {"session": {"session_id": "a", "title": "New"}}
    assert talks.refused("UpdateSession", **update).reason == "SESSION_NOT_FOUND"
    created = talks.name("a", "New", allow_missing=True)
    assert (created.item_count, created.HasField("last_time")) == (0, False)
    assert talks.ids() == ["a"]
    talks.say("a", at=7)
    assert (talks.get("a").title, talks.get("a").item_count) == ("New", 1)


BAD_UPDATES: dict[str, tuple[dict[str, Any], str]] = {
    "no session": ({}, "session"),
    "no id": ({"session": {"title": "x"}}, "session_id"),
    "no field": ({"session": {"session_id": "a"}}, "update_mask"),
    "unknown field": ({"session": {"session_id": "a"}, "update_mask": {"paths": ["version"]}}, "update_mask"),
    "long title": ({"session": {"session_id": "a", "title": "é" * 257}}, "title"),
    "long id": ({"session": {"session_id": "a" * 257, "title": "x"}}, "session_id"),
    "bad label": ({"session": {"session_id": "a", "labels": {"": "x"}}}, "labels"),
    "negative version": (
        {"session": {"session_id": "a", "title": "x"}, "expected_version": -1},
        "expected_version",
    ),
}


@pytest.mark.parametrize("what", BAD_UPDATES)
def test_an_invalid_update_names_the_field(talks: Talks, what: str) -> None:
    fields, field = BAD_UPDATES[what]
    talks.say("a")
    assert talks.refused("UpdateSession", **fields).names(field)
    assert talks.get("a").version == 0


def test_what_is_said_of_a_session_is_found_by_nothing_else(talks: Talks) -> None:
    talks.say("a", "kiwi")
    talks.name("a", "Persimmon", labels={"fruit": "persimmon"}, metadata=struct({"fruit": "persimmon"}))
    assert (
        talks.api.found(talks.namespace, query_text="persimmon", mode=memory_pb2.RETRIEVE_MODE_LEXICAL) == []
    )
    assert talks.api.found(talks.namespace) == ["kiwi"]
    assert [item.text for item in talks.items("a")] == ["kiwi"]
    every = list(memory_pb2.ItemKind.values())
    wanted = {"query_text": "Persimmon", "kinds": every, "mode": memory_pb2.RETRIEVE_MODE_LEXICAL}
    assert talks.api.found(talks.namespace, **wanted) == [], "not even if its kind is named"
    (kept,) = talks.items("a", kinds=[memory_pb2.ITEM_KIND_SESSION])
    update = memory_pb2.UpdateRequest(namespace=talks.namespace, item={"id": kept.id, "text": "mine"})
    assert refusal(talks.api.memory.Update, update).names("id")
    where = memory_pb2.DeleteWhereRequest(namespace=talks.namespace, session_id="a")
    assert talks.api.memory.DeleteWhere(where).deleted_count == 1
    assert (talks.get("a").item_count, talks.get("a").title) == (0, "Persimmon")


# --- deleting -------------------------------------------------------------------------------------


def test_a_session_is_deleted_with_everything_of_it(talks: Talks) -> None:
    for text in ("one", "two"):
        talks.say("a", text)
    other = talks.say("b", "three")
    talks.name("a", "Title")
    deleted = talks.call("DeleteSession", session_id="a")
    assert (deleted.deleted_count, deleted.next_page_token) == (2, "")
    assert talks.ids() == ["b"]
    assert talks.refused("GetSession", session_id="a").reason == "SESSION_NOT_FOUND"
    assert talks.api.stats(talks.namespace).item_count == 1
    assert talks.api.get(talks.namespace, other.id).text == "three"
    again = talks.call("DeleteSession", session_id="a")
    assert (again.deleted_count, again.revision) == (0, deleted.revision)
    assert talks.refused("DeleteSession").names("session_id")


def test_what_was_derived_from_a_session_alone_goes_with_it(talks: Talks) -> None:
    one, other = talks.say("a", "one"), talks.say("b", "other")
    made = talks.api.add(talks.namespace, text="made", provenance={"parent_ids": [one.id]})
    talks.api.add(talks.namespace, text="of both", provenance={"parent_ids": [one.id, other.id]})
    fork = talks.call("ForkSession", session_id="a", new_session_id="c").session
    talks.name("a", "Title")
    deleted = talks.call("DeleteSession", session_id="a")
    assert (deleted.deleted_count, deleted.derived_count) == (1, 1)
    assert "made" not in {item.text for item in talks.items("")}
    assert [item.text for item in talks.items(fork.session_id)] == ["one"]
    again = talks.api.add(talks.namespace, text="made again", provenance={"parent_ids": [other.id]})
    kept = talks.call("DeleteSession", session_id="b", keep_derived=True)
    assert (kept.deleted_count, kept.derived_count) == (1, 0)
    assert talks.api.get(talks.namespace, again.id).text == "made again"
    assert made.id not in {item.id for item in talks.items("")}


def test_a_large_session_is_deleted_in_pages(
    memory_server: ServerProcess, connect: Connect, namespace: str
) -> None:
    talks = Talks(connect(memory_server), namespace)
    items = [memory_pb2.MemoryItem(session_id="a", data={}) for _ in range(1000)]
    for _ in range(10):
        talks.api.memory.BatchAdd(memory_pb2.BatchAddRequest(namespace=namespace, items=items))
    talks.say("a", "the last")
    talks.name("a", "Title")
    first = talks.call("DeleteSession", session_id="a", request_id="one")
    assert first.deleted_count == 10_000
    assert first.next_page_token
    assert (talks.get("a").item_count, talks.get("a").title) == (1, "Title")
    assert talks.call("DeleteSession", session_id="a", request_id="one") == first
    late = talks.say("a", "added later")
    rest = talks.call("DeleteSession", session_id="a", page_token=first.next_page_token, request_id="two")
    assert (rest.deleted_count, rest.next_page_token) == (1, "")
    assert [item.id for item in talks.items("a")] == [late.id]
    assert talks.get("a").title == ""


# --- copying --------------------------------------------------------------------------------------


def test_a_fork_has_copies_with_new_ids(talks: Talks) -> None:
    talks.say("a", "one", at=30, labels={"l": "v"}, metadata=struct({"n": 1}), importance=0.25)
    talks.say("b", "elsewhere", at=1)
    talks.say("a", "two", at=20, index="")
    talks.say("a", "three", at=10, index="a heron")
    named = talks.name("a", "Title", labels={"user": "ada"})
    before = talks.items("a")
    answer = talks.call("ForkSession", session_id="a", new_session_id="c")
    fork = answer.session
    assert talks.get("c") == fork
    assert (fork.title, fork.labels, fork.item_count) == ("Title", named.labels, 3)
    assert (fork.first_time.seconds, fork.last_time.seconds) == (10, 30)
    assert (fork.forked_from.session_id, fork.forked_from.until_item_id) == ("a", before[-1].id)
    copies = talks.items("c")
    assert not {item.id for item in copies} & {item.id for item in before}
    for item, copy in zip(before, copies, strict=True):
        for field in ("id", "session_id", "revision", "update_time"):
            item.ClearField(field)
            copy.ClearField(field)
        assert exactly(item) == exactly(copy)


def test_a_fork_and_its_source_share_nothing(talks: Talks) -> None:
    talks.say("a", "one")
    talks.name("a", "Title", metadata=struct({"n": 1}))
    new = talks.call("ForkSession", session_id="a").session.session_id
    original, (copy,) = talks.items("a")[0], talks.items(new)
    update = memory_pb2.UpdateRequest(namespace=talks.namespace, item={"id": original.id, "text": "other"})
    talks.api.memory.Update(update)
    talks.name("a", "Another", metadata=struct({"n": 2}))
    assert (talks.items(new)[0].text, talks.get(new).title, talks.get(new).metadata["n"]) == (
        "one",
        "Title",
        1,
    )
    talks.call("DeleteSession", session_id="a")
    assert [item.id for item in talks.items(new)] == [copy.id]
    assert talks.get(new).forked_from.session_id == "a"
    talks.call("DeleteSession", session_id=new)
    assert talks.ids() == []


def test_a_fork_ends_at_an_item_or_a_revision(talks: Talks) -> None:
    one, two = talks.say("a", "one"), talks.say("a", "two")
    other = talks.say("b", "other")
    talks.say("a", "three")
    by_item = talks.call("ForkSession", session_id="a", until_item_id=two.id).session
    assert [item.text for item in talks.items(by_item.session_id)] == ["one", "two"]
    assert by_item.forked_from.until_item_id == two.id
    by_revision = talks.call("ForkSession", session_id="a", until_revision=one.revision).session
    assert [item.text for item in talks.items(by_revision.session_id)] == ["one"]
    nothing = talks.call("ForkSession", session_id="a", until_revision=0).session
    assert (nothing.item_count, nothing.forked_from.until_item_id) == (0, "")
    for item_id, why in ((other.id, "is not in session 'a'"), ("nowhere", "no item 'nowhere'")):
        error = talks.refused("ForkSession", session_id="a", until_item_id=item_id)
        assert error.reason == "ITEM_NOT_FOUND"
        assert why in error.message
    error = talks.refused("ForkSession", session_id="a", until_item_id=one.id, until_revision=1)
    assert error.names("until_revision")


def test_a_fork_needs_a_source_and_a_free_name(talks: Talks) -> None:
    talks.say("a")
    talks.say("b")
    talks.name("c", "empty", allow_missing=True)
    assert talks.refused("ForkSession", session_id="none").reason == "SESSION_NOT_FOUND"
    for taken in "bc":
        error = talks.refused("ForkSession", session_id="a", new_session_id=taken)
        assert (error.code, error.reason) == (grpc.StatusCode.ALREADY_EXISTS, "SESSION_ALREADY_EXISTS")
    assert talks.refused("ForkSession", session_id="a", new_session_id="a").names("new_session_id")


def test_a_fork_of_too_much_is_refused(talks: Talks) -> None:
    items = [memory_pb2.MemoryItem(session_id="a", text="x") for _ in range(1000)]
    talks.api.memory.BatchAdd(memory_pb2.BatchAddRequest(namespace=talks.namespace, items=items))
    assert talks.call("ForkSession", session_id="a", new_session_id="b").session.item_count == 1000
    talks.say("a")
    error = talks.refused("ForkSession", session_id="a")
    assert (error.reason, error.metadata["limit_name"]) == ("LIMIT_EXCEEDED", "batch_items_max")
    assert error.names("session_id")


def test_a_fork_of_too_many_bytes_is_refused(talks: Talks) -> None:
    for _ in range(70):
        talks.say("a", data=struct({"text": "x" * 250_000}))
    error = talks.refused("ForkSession", session_id="a")
    assert (error.reason, error.metadata["limit_name"]) == ("LIMIT_EXCEEDED", "message_bytes_max")


def test_a_fork_of_interactions_answers_its_own_messages(talks: Talks) -> None:
    stub = interaction_pb2_grpc.InteractionServiceStub(talks.api.channel)
    space = {"namespace": talks.namespace, "session_id": "a"}
    said = stub.StoreInteraction(
        interaction_pb2.StoreInteractionRequest(sender="ada", content="tea?", **space)
    ).interaction
    stub.StoreResponse(interaction_pb2.StoreResponseRequest(content="yes", in_response_to=said.id, **space))
    stub.StoreReflection(
        interaction_pb2.StoreReflectionRequest(content="likes tea", interaction_ids=[said.id], **space)
    )
    new = talks.call("ForkSession", session_id="a").session.session_id
    message, _, reflection = talks.items(new)
    assert list(reflection.provenance.parent_ids) == [message.id]
    talks.call("DeleteSession", session_id="a")
    request = interaction_pb2.RetrieveLastInteractionsRequest(namespace=talks.namespace, session_id=new)
    (pair,) = stub.RetrieveLastInteractions(request).interactions
    assert (pair.message.content, [each.content for each in pair.responses]) == ("tea?", ["yes"])


def test_a_fork_of_a_beginning_was_made_from_nothing_of_its_source(talks: Talks) -> None:
    """Parents outside the session stay; those in it that are not copied are forgotten."""
    stub = interaction_pb2_grpc.InteractionServiceStub(talks.api.channel)
    space = {"namespace": talks.namespace, "session_id": "a"}
    talks.say("b", id="outside")
    for item_id in ("first", "last"):
        talks.say("a", id=item_id)
    talks.say("a", "summary", id="summary", provenance={"parent_ids": ["first", "last", "outside"]})
    talks.say("a", "of last", id="of last", provenance={"parent_ids": ["last"]})
    for said in ("last", "outside", "later"):
        response = {"id": f"to {said}", "content": f"to {said}", "in_response_to": said}
        stub.StoreResponse(interaction_pb2.StoreResponseRequest(allow_missing=True, **response, **space))
    talks.say("a", id="later")
    removal = memory_pb2.DeleteRequest(namespace=talks.namespace, id="last", keep_derived=True)
    talks.api.memory.Delete(removal)
    talks.say("a", id="last")
    fork = talks.call("ForkSession", session_id="a", until_item_id="to later").session.session_id
    first, summary, of_last, *responses = talks.items(fork)
    assert list(summary.provenance.parent_ids) == [first.id, "outside"]
    assert not of_last.provenance.parent_ids
    talks.call("DeleteSession", session_id="a")
    assert talks.get(fork).item_count == 6
    removal = memory_pb2.DeleteRequest(namespace=talks.namespace, id="outside")
    assert talks.api.memory.Delete(removal).derived_count == 1
    assert talks.items(fork) == [first, summary, of_last, responses[0], responses[2]]


def test_forks_with_one_name_do_not_mix(talks: Talks) -> None:
    for text in ("one", "two"):
        talks.say("a", text)
    request = talks.request("ForkSession", session_id="a", new_session_id="b")
    with ThreadPoolExecutor(6) as pool:
        codes = list(pool.map(lambda _: outcome(lambda: talks.stub.ForkSession(request)), range(6)))
    assert sorted(code.name for code in codes) == ["ALREADY_EXISTS"] * 5 + ["OK"]
    assert [item.text for item in talks.items("b")] == ["one", "two"]


# --- everything else ------------------------------------------------------------------------------


def test_sessions_survive_an_export_and_an_import(talks: Talks) -> None:
    talks.say("a", "one", at=3)
    talks.name("a", "Title", labels={"user": "ada"}, metadata=struct({"n": 1}))
    talks.call("ForkSession", session_id="a", new_session_id="b")
    records = talks.api.memory.Export(memory_pb2.ExportRequest(namespace=talks.namespace))
    items = [record.item for record in records if record.HasField("item")]
    copy = Talks(talks.api, f"{talks.namespace}/copy")
    request = memory_pb2.ImportRequest(namespace=copy.namespace, items=items)
    talks.api.memory.Import(iter([request]))
    assert copy.ids() == talks.ids()
    for name in "ab":
        there, here = copy.get(name), talks.get(name)
        for session in (there, here):
            session.ClearField("version")
            session.ClearField("update_time")
        assert there == here


def test_an_imported_item_that_is_no_session_is_refused(talks: Talks) -> None:
    talks.say("a")
    item = memory_pb2.MemoryItem(
        id="mine", session_id="a", data=struct({"title": "forged"}), kind=memory_pb2.ITEM_KIND_SESSION
    )
    for field, facet in (("id", ""), ("facet_json", '{"attributes":{"forked_session_id":7}}')):
        item.facet_json = facet
        request = memory_pb2.ImportRequest(namespace=talks.namespace, items=[item])
        assert refusal(lambda one: talks.api.memory.Import(iter([one])), request).names(field)
    assert talks.get("a").title == ""


def test_sessions_are_there_after_a_restart(tmp_path: Path, connect: Connect) -> None:
    with ServerProcess(tmp_path) as server:
        talks = Talks(connect(server), "demo")
        talks.say("a", at=3)
        talks.say("b", at=4)
        before = talks.name("a", "Title")
        server.kill()
    with ServerProcess(tmp_path) as server:
        talks = Talks(connect(server), "demo")
        assert talks.ids() == ["b", "a"]
        assert talks.get("a") == before
