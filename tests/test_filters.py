"""Filters through the API: with and without a query, page by page, and in the docs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from grpc_api import SMALL_GRAPHS, Api, Connect, decode, struct, texts_of
from memory_client import MemoryClient
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

FILTERS = (Path(__file__).parents[1] / "docs" / "filters.md").read_text()
QUERIES: dict[str, dict[str, Any]] = {
    "recency": {},
    "hybrid": {"query_text": "heron"},
    "lexical": {"query_text": "heron", "mode": pb.RETRIEVE_MODE_LEXICAL},
    "vector": {"query_text": "heron", "mode": pb.RETRIEVE_MODE_VECTOR},
}


def fill(api: Api, namespace: str) -> None:
    """Six items; each differs from the others in something."""
    for n in range(6):
        message = pb.ChatMessage(
            role=pb.ROLE_USER if n % 2 else pb.ROLE_ASSISTANT,
            name="Ada" if n == 3 else "Bo",
            parts=[pb.Part(text=f"heron {n}")],
        )
        api.add(
            namespace,
            id=f"i{n}",
            chat_message=message,
            session_id="even" if n % 2 == 0 else "odd",
            labels={"color": "red" if n < 3 else "blue"},
            metadata=struct({"n": n, "tags": [f"t{n}", "all"], "deep": {"er": n == 2}}),
            create_time=Timestamp(seconds=100 + n),
            importance=n / 10 if n else None,
        )
    api.add(namespace, id="plain", text="a heron that nobody speaks of")


def ids(response: pb.RetrieveResponse) -> set[str]:
    return {result.item.id for result in response.results}


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("labels.color = red", "012"),
        ('labels.color = "red" AND metadata.n > 0', "12"),
        ("labels.color = red OR metadata.n = 5", "0125"),
        ("role = user", "135"),
        ("role:* AND -role = ROLE_USER", "024"),
        ("name = Ada", "3"),
        ("metadata.tags:t4", "4"),
        ("metadata.deep.er = true", "2"),
        ("metadata.n = 3.0", "3"),
        ('metadata.n = "3"', ""),
        ("session_id = odd create_time <= 1970-01-01T00:01:43Z", "13"),
        ("id = i1 OR id = i4", "14"),
        ("id = *4", "4"),
        ("kind = plain AND metadata:n", "012345"),
        ("update_time > 2020-01-01 AND metadata.n < 1", "0"),
        ("expire_time:*", ""),
        ("importance >= 0.3", "345"),
        ("kind = plain AND role:* AND NOT importance:*", "0"),
        ("role:* AND NOT (labels.color = red OR labels.color = blue)", ""),
    ],
    ids=str,
)
def test_filters_hold_with_and_without_a_query(
    api: Api, namespace: str, query: str, text: str, expected: str
) -> None:
    fill(api, namespace)
    assert ids(api.retrieve(namespace, filter=text, **QUERIES[query])) == {f"i{n}" for n in expected}
    listed = api.memory.List(pb.ListRequest(namespace=namespace, filter=text))
    assert [item.id for item in listed.items] == [f"i{n}" for n in expected]


@pytest.mark.parametrize("query", QUERIES)
def test_a_filter_goes_together_with_the_other_options(api: Api, namespace: str, query: str) -> None:
    fill(api, namespace)
    options: dict[str, Any] = {"filter": "metadata.n >= 1", "labels": {"color": "red"}, **QUERIES[query]}
    assert ids(api.retrieve(namespace, **options)) == {"i1", "i2"}
    assert ids(api.retrieve(namespace, session_id="odd", **options)) == {"i1"}
    assert ids(api.retrieve(namespace, limit=1, **options)) <= {"i1", "i2"}
    assert ids(api.retrieve(namespace, end_time=Timestamp(seconds=101), **options)) == set()


def test_writes_are_seen_by_the_next_filter(api: Api, namespace: str) -> None:
    fill(api, namespace)

    def found(text: str) -> set[str]:
        by_recency = ids(api.retrieve(namespace, filter=text))
        assert ids(api.retrieve(namespace, filter=text, query_text="heron")) == by_recency
        return by_recency

    assert found("metadata.n > 3") == {"i4", "i5"}
    changed = pb.MemoryItem(id="i1", metadata=struct({"n": 9}))
    api.memory.Update(pb.UpdateRequest(namespace=namespace, item=changed))
    assert found("metadata.n > 3") == {"i1", "i4", "i5"}
    assert found("metadata.tags:all") == {"i0", "i2", "i3", "i4", "i5"}
    api.memory.Delete(pb.DeleteRequest(namespace=namespace, id="i4"))
    api.add(namespace, id="new", text="heron", metadata=struct({"n": 4}))
    assert found("metadata.n > 3") == {"i1", "i5", "new"}
    api.memory.Reset(pb.ResetRequest(namespace=namespace))
    assert found("metadata.n > 3") == set()


@pytest.mark.parametrize("newest_first", [False, True])
def test_lists_by_a_filter_go_page_by_page(api: Api, namespace: str, newest_first: bool) -> None:
    items = [pb.MemoryItem(text=str(n), metadata=struct({"n": n % 3})) for n in range(50)]
    api.memory.BatchAdd(pb.BatchAddRequest(namespace=namespace, items=items))
    request = pb.ListRequest(
        namespace=namespace, filter="metadata.n = 1", page_size=4, newest_first=newest_first
    )
    found: list[str] = []
    while True:
        page = api.memory.List(request)
        found += texts_of(page.items)
        request.page_token = page.next_page_token
        if not page.next_page_token:
            break
    expected = [str(n) for n in range(1, 50, 3)]
    assert found == (expected[::-1] if newest_first else expected)


@pytest.mark.parametrize("query", [{}, {"query_text": "heron"}], ids=str)
def test_a_page_token_is_good_for_its_filter_alone(api: Api, namespace: str, query: dict[str, Any]) -> None:
    fill(api, namespace)
    options = {"limit": -1, "page_size": 2, **query}
    token = api.retrieve(namespace, filter="labels.color = red", **options).next_page_token
    second = api.retrieve(namespace, filter="labels.color = red", page_token=token, **options)
    assert len(second.results) == 1 and not second.next_page_token
    for other in ("", "labels.color = blue", "labels.color  = red"):
        with pytest.raises(grpc.RpcError) as refused:
            api.retrieve(namespace, filter=other, page_token=token, **options)
        assert decode(refused.value).reason == "INVALID_PAGE_TOKEN"
    listed = api.memory.List(pb.ListRequest(namespace=namespace, filter="role:*", page_size=2))
    with pytest.raises(grpc.RpcError):
        api.memory.List(pb.ListRequest(namespace=namespace, page_size=2, page_token=listed.next_page_token))


def test_a_filter_is_the_same_after_a_restart_and_with_a_graph(tmp_path: Path, connect: Connect) -> None:
    text = 'metadata.n >= 190 AND (labels.k = "v" OR role = tool) AND NOT metadata.tags:t3'
    expected = {f"i{n}" for n in range(190, 200) if n % 7 == 0 or n % 5 == 0} - {
        f"i{n}" for n in range(200) if n % 10 == 3
    }
    for start in (True, False):
        with ServerProcess(tmp_path, env=SMALL_GRAPHS) as process:
            api = connect(process)
            if start:
                for n in range(200):
                    message = pb.ChatMessage(
                        role=pb.ROLE_TOOL if n % 5 == 0 else pb.ROLE_USER, parts=[pb.Part(text=f"heron {n}")]
                    )
                    api.add(
                        "a",
                        id=f"i{n}",
                        chat_message=message,
                        labels={"k": "v"} if n % 7 == 0 else {},
                        metadata=struct({"n": n, "tags": [f"t{n % 10}"]}),
                    )
            for query in QUERIES.values():
                assert ids(api.retrieve("a", filter=text, limit=-1, **query)) == expected


# Hostile input


HOSTILE = {
    "SQL": "labels.a = 1'; DROP TABLE items; --",
    "a union": "1=1 UNION SELECT * FROM items",
    "parentheses": "(" * 4096,
    "closed ones": "(" * 2000 + "role=user" + ")" * 2000,
    "minus": "-" * 4096,
    "a code": "__import__('os').system('id')",
    "a huge number": "metadata.a = 1" + "0" * 4000,
    "an infinity": "metadata.a = 1e400",
    "half a character": 'labels.a = "\\ud83d"',
    "zero bytes": "\x00\x00",
    "a template": "{{7*7}}",
    "too many": "role=user " * 400,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_filters_are_refused_at_a_place(api: Api, namespace: str, name: str) -> None:
    fill(api, namespace)
    calls = {
        "options.filter": lambda: api.retrieve(namespace, filter=HOSTILE[name]),
        "filter": lambda: api.memory.List(pb.ListRequest(namespace=namespace, filter=HOSTILE[name])),
    }
    for field, call in calls.items():
        with pytest.raises(grpc.RpcError) as refused:
            call()
        error = decode(refused.value)
        assert (error.code, error.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD")
        assert error.fields == (field,) and error.metadata["field"] == field
        assert 1 <= int(error.metadata["column"]) <= len(HOSTILE[name]) + 1
        assert len(error.message) < 300
    assert len(api.items(namespace)) == 7


def test_a_filter_that_is_too_long_is_refused(api: Api, namespace: str) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        api.retrieve(namespace, filter="id = " + "a" * 4096)
    error = decode(refused.value)
    assert (error.code, error.fields) == (grpc.StatusCode.INVALID_ARGUMENT, ("options.filter",))


@pytest.mark.parametrize("value", ["'; DROP TABLE items; --", "*", "\\", '"', "\u202e\U0001f600", "{}"])
def test_any_text_may_be_looked_for(api: Api, namespace: str, value: str) -> None:
    api.add(namespace, id="it", text="x", labels={"k": value}, metadata=struct({value: value}))
    api.add(namespace, id="other", text="x", labels={"k": "other"}, metadata=struct({"k": "other"}))
    quoted = json.dumps(value).replace("*", "\\*")
    for text in (
        f"labels.k = {quoted}",
        f"metadata.{quoted} = {quoted}",
        f"metadata:{quoted}",
        f"labels.k < {quoted} OR labels.k >= {quoted} AND NOT labels.k = other",
    ):
        assert ids(api.retrieve(namespace, filter=text)) == {"it"}, text


# The docs


def rows(heading: str) -> list[tuple[str, str]]:
    """Return the rows of the docs' table that begins like this: a filter and the text beside it."""
    table = FILTERS.partition(f"| filter | {heading} |\n|---|---|\n")[2].partition("\n\n")[0]
    return [(text, said) for text, said in re.findall(r"^\| `(.+)` \| (.+) \|$", table, re.MULTILINE)]


def test_the_examples_of_the_document_find_what_it_says(
    any_server: ServerProcess, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```$", FILTERS, re.MULTILINE | re.DOTALL)
    with MemoryClient(any_server.address, namespace=namespace) as memory:
        exec(program.replace("127.0.0.1:50051", any_server.address).replace('"ada"', repr(namespace), 1), {})
        assert capsys.readouterr().out.strip() == program.strip().rpartition("# ")[2]
        found = rows("finds")
        assert len(found) > 15
        for text, expected in found:
            assert [item.id for item in memory.list_items(filter=text)] == expected.split(", "), text


def test_the_mistakes_of_the_document_are_told_as_it_says(api: Api, namespace: str) -> None:
    mistakes = rows("error")
    assert len(mistakes) > 5
    for text, expected in mistakes:
        with pytest.raises(grpc.RpcError) as refused:
            api.retrieve(namespace, filter=text)
        assert decode(refused.value).message == f"options.filter: {expected}"
