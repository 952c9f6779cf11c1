"""Responses that are stored before their messages, over every store."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from grpc_api import Api, exactly, refusal
from memory_service.v1 import interaction_pb2 as pb
from memory_service.v1 import memory_pb2
from test_interaction_service import Talk


@pytest.fixture
def talk(api: Api, namespace: str) -> Talk:
    return Talk(api, namespace)


def original(content: str, **fields: Any) -> pb.OriginalMessage:
    return pb.OriginalMessage(content=content, **fields)


def pairs(talk: Talk) -> dict[str, list[str]]:
    """Return the ids of the messages with those of their responses."""
    found = {}
    for pair in talk.last(limit=-1).interactions:
        assert {each.in_response_to for each in pair.responses} <= {pair.message.id}
        assert pair.response_count == len(pair.responses)
        found[pair.message.id] = [each.id for each in pair.responses]
    return found


def test_a_response_is_linked_to_a_message_that_comes_later(talk: Talk) -> None:
    by_id = talk.answer("by id", "m", id="r1", allow_missing=True)
    by_content = talk.answer("by content", original_message=original("hi"), id="r2", allow_missing=True)
    assert by_id.in_response_to == "m" and by_content.in_response_to == ""
    assert talk.last().interactions == []
    talk.say("hi", id="m")
    talk.answer("afterwards", "m", id="r3")
    assert pairs(talk) == {"m": ["r1", "r2", "r3"]}
    found = {r.interaction.content: r.interaction for r in talk.context("by content").results}
    assert found["by content"].in_response_to == "m"
    assert found["by content"].original_message.content == found["by id"].original_message.content == "hi"


def test_a_response_is_linked_to_the_first_message_that_fits(talk: Talk) -> None:
    time = Timestamp(seconds=100)
    talk.say("hi", id="before", sender="eve", create_time=time)
    for sender, created, item_id in (
        ("", None, "any"),
        ("ada", None, "ada's"),
        ("", time, "of then"),
        ("ada", time, "ada's of then"),
    ):
        waited = original("hi", sender=sender, create_time=created) if sender or created else original("hi")
        if item_id in ("any", "of then"):
            # The message that exists must not fit.
            waited.sender = "bob"
        talk.answer("hello", original_message=waited, id=item_id, allow_missing=True)
    talk.say("hello", id="other")
    talk.say("hi", id="bob's", sender="bob")
    talk.say("hi", id="bob's of then", sender="bob", create_time=time)
    talk.say("hi", id="m", sender="ada")
    talk.say("hi", id="m of then", sender="ada", create_time=time)
    assert pairs(talk) == {
        "before": [],
        "other": [],
        "bob's": ["any"],
        "bob's of then": ["of then"],
        "m": ["ada's"],
        "m of then": ["ada's of then"],
    }


def test_what_exists_is_linked_at_once(talk: Talk) -> None:
    talk.say("hi", id="m", session_id="s")
    for fields in ({"in_response_to": "m"}, {"original_message": original("hi")}):
        response = talk.answer("hello", allow_missing=True, **fields)
        assert (response.in_response_to, response.session_id) == ("m", "s")
    talk.say("hi", id="later")
    assert [len(each) for each in pairs(talk).values()] == [0, 2]


def test_a_response_that_waits_is_found_by_the_sender_it_waits_for(talk: Talk) -> None:
    talk.answer("a heron", original_message=original("hi", sender="ada"), allow_missing=True)
    assert talk.texts("heron", sender="ada") == ["a heron"]
    assert talk.texts("heron", sender="bob") == []
    (found,) = talk.context("heron").results
    assert not found.interaction.HasField("original_message") and not found.interaction.in_response_to


def test_a_repeated_request_is_answered_as_the_first_although_the_message_has_come(
    api: Api, talk: Talk
) -> None:
    for number, fields in enumerate(({"in_response_to": "m"}, {"original_message": original("hi")})):
        request = pb.StoreResponseRequest(
            namespace=talk.namespace, content="hello", request_id=str(number), allow_missing=True, **fields
        )
        first = talk.stub.StoreResponse(request)
        if not number:
            talk.say("hi", id="m", session_id="s")
            # The second one waits for a message that is still to come.
            api.memory.Delete(memory_pb2.DeleteRequest(namespace=talk.namespace, id="m"))
        else:
            talk.say("hi", session_id="s")
        assert exactly(talk.stub.StoreResponse(request)) == exactly(first)
        api.memory.Delete(memory_pb2.DeleteRequest(namespace=talk.namespace, id=first.interaction.id))
        assert exactly(talk.stub.StoreResponse(request)) == exactly(first)


def test_an_export_takes_what_is_waited_for_along(api: Api, talk: Talk) -> None:
    talk.answer("hello", original_message=original("hi", sender="ada"), id="r", allow_missing=True)
    exported = api.memory.Export(memory_pb2.ExportRequest(namespace=talk.namespace))
    copy = Talk(api, f"{talk.namespace}/copy")
    items = [response.item for response in exported]
    api.memory.Import(iter([memory_pb2.ImportRequest(namespace=copy.namespace, items=items)]))
    for each in (talk, copy):
        each.say("hi", id="m")
        assert pairs(each) == {"m": ["r"]}


def test_what_was_deleted_is_not_linked(api: Api, talk: Talk) -> None:
    talk.answer("gone", original_message=original("hi"), id="r1", allow_missing=True)
    talk.answer("hello", original_message=original("hi"), id="r2", allow_missing=True)
    api.memory.Delete(memory_pb2.DeleteRequest(namespace=talk.namespace, id="r1"))
    talk.say("hi", id="m")
    assert pairs(talk) == {"m": ["r2"]}
    api.memory.Delete(memory_pb2.DeleteRequest(namespace=talk.namespace, id="m"))
    talk.say("hi", id="second")
    assert pairs(talk) == {"second": ["r2"]}, "the first that exists"


def test_without_the_option_a_missing_message_is_refused(talk: Talk) -> None:
    talk.answer("hello", "m", allow_missing=True)
    for fields in ({"in_response_to": "m"}, {"original_message": original("hi")}):
        request = pb.StoreResponseRequest(namespace=talk.namespace, content="hello", **fields)
        assert refusal(talk.stub.StoreResponse, request).reason == "ITEM_NOT_FOUND"
