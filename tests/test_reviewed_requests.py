"""A request whose write a review released is answered as the first time."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.message import Message

from grpc_api import exactly
from test_write_policy import ODD, QUARANTINED, RELEASE, Space, client, rules, space

__all__ = ["client", "rules", "space"]

REQUESTS: dict[str, dict[str, Any]] = {
    "WriteFile": {"path": "/new", "content": f"one\n{ODD}\n"},
    "EditFile": {"path": "/file", "append": {"text": f"two\n{ODD}"}},
    "UpdateSession": {"session": {"session_id": "s", "title": ODD}},
    "ForkSession": {"session_id": "s", "new_session_id": ODD},
    "StoreResponse": {"content": ODD, "in_response_to": "said"},
    "StoreReflection": {"content": ODD, "interaction_ids": ["never", "said"]},
}
GIVEN_BY_THE_WRITE = {"revision", "version", "degraded", "write_time", "update_time", "position"}


def settled(message: Any) -> Any:
    """Return an answer without what only the write itself could say."""
    for field, value in message.ListFields():
        if field.name in GIVEN_BY_THE_WRITE:
            message.ClearField(field.name)
        elif isinstance(value, Message):
            settled(value)
    return message


@pytest.mark.parametrize("name", REQUESTS)
def test_a_repeated_request_is_answered_as_before_its_review(space: Space, name: str) -> None:
    space.call("WriteFile", path="/file", content="one\n")
    request = {**REQUESTS[name], "request_id": "r"}
    first = space.call(name, **request)
    assert [each.reason for each in first.degraded] == [QUARANTINED]
    space.review(RELEASE)
    again = space.call(name, **request)
    assert [each.reason for each in again.degraded] == []
    assert exactly(settled(again)) == exactly(settled(first))
    assert space.held() == []


@pytest.mark.parametrize(("path", "request_of"), [("/new", "WriteFile"), ("/file", "EditFile")])
def test_the_digest_in_the_repeated_answer_is_that_of_the_file(
    space: Space, path: str, request_of: str
) -> None:
    space.call("WriteFile", path="/file", content="one\n")
    request = {**REQUESTS[request_of], "request_id": "r"}
    space.call(request_of, **request)
    space.review(RELEASE)
    again, read = space.call(request_of, **request), space.call("ReadFile", path=path)
    assert (again.version, again.sha256, again.line_count) == (read.version, read.sha256, read.line_count)


@pytest.mark.parametrize(("held", "taken"), [("/a", "/a"), ("/a", "/a/b"), ("/a/b", "/a")])
def test_a_released_file_does_not_take_a_path_that_is_taken(space: Space, held: str, taken: str) -> None:
    space.call("WriteFile", path=held, content=ODD)
    space.call("WriteFile", path=taken, content="two")
    refused = space.refused("ReviewQuarantined", id=space.held()[0].id, decision=RELEASE)
    assert (refused.reason, refused.metadata["path"]) == ("FILE_ALREADY_EXISTS", "/a")
    assert space.call("ReadFile", path=taken).content == "two"
    space.call("DeleteFile", path=taken)
    assert space.review(RELEASE).item_count == 2
    assert space.call("ReadFile", path=held).content == ODD
