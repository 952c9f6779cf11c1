"""State: versioned values with compare-and-set, times to live, glob search and listing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import grpc
import pytest
from google.protobuf import struct_pb2
from google.protobuf.duration_pb2 import Duration

from grpc_api import Api, Connect, Refusal, eventually, exactly, json_value, outcome, refusal
from memory_service.v1 import memory_pb2, state_pb2
from server_process import ServerProcess

ABORTED = grpc.StatusCode.ABORTED
NOT_FOUND = grpc.StatusCode.NOT_FOUND


def load(api: Api, namespace: str, key: str) -> state_pb2.StateEntry:
    return api.state.LoadState(state_pb2.LoadStateRequest(namespace=namespace, key=key)).entry


def delete(api: Api, namespace: str, key: str, **fields: Any) -> state_pb2.DeleteStateResponse:
    return api.state.DeleteState(state_pb2.DeleteStateRequest(namespace=namespace, key=key, **fields))


def refused_save(api: Api, namespace: str, key: str, value: Any, **fields: Any) -> Refusal:
    request = state_pb2.SaveStateRequest(namespace=namespace, key=key, value=json_value(value), **fields)
    return refusal(api.state.SaveState, request)


def refused_load(api: Api, namespace: str, key: str) -> Refusal:
    return refusal(api.state.LoadState, state_pb2.LoadStateRequest(namespace=namespace, key=key))


def list_pages(api: Api, namespace: str, **fields: Any) -> Iterator[list[state_pb2.StateEntry]]:
    token = ""
    while True:
        request = state_pb2.ListStateKeysRequest(namespace=namespace, page_token=token, **fields)
        response = api.state.ListStateKeys(request)
        yield list(response.entries)
        token = response.next_page_token
        if not token:
            return


def entries(api: Api, namespace: str, **fields: Any) -> list[state_pb2.StateEntry]:
    return [entry for page in list_pages(api, namespace, **fields) for entry in page]


def search_pages(
    api: Api, namespace: str, pattern: str, **fields: Any
) -> Iterator[list[state_pb2.StateEntry]]:
    token = ""
    while True:
        request = state_pb2.SearchStateRequest(
            namespace=namespace, pattern=pattern, page_token=token, **fields
        )
        response = api.state.SearchState(request)
        yield list(response.entries)
        token = response.next_page_token
        if not token:
            return


def matches(api: Api, namespace: str, pattern: str) -> list[str]:
    return [entry.key for page in search_pages(api, namespace, pattern) for entry in page]


# Values and versions

VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    -0.0,
    0.1,
    1.7976931348623157e308,
    2.0**53,
    "9007199254740993",
    "",
    'Zoë 🧠 \u202e NUL\x00 "quoted" \\ \n',
    [],
    {},
    [None, True, 1.5, "a", [], {}],
    {"": {"ключ\x00": [{"deep": None}]}},
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_comes_back_bit_for_bit(api: Api, namespace: str, value: Any) -> None:
    saved = api.save(namespace, "k", value, description="Zoë's\n value")
    entry = load(api, namespace, "k")
    assert exactly(entry.value) == exactly(json_value(value))
    assert not saved.HasField("value")
    entry.ClearField("value")
    assert exactly(entry) == exactly(saved)


def test_versions_count_the_writes_of_a_key(api: Api, namespace: str) -> None:
    assert [api.save(namespace, "k", i).version for i in range(3)] == [1, 2, 3]
    other = api.save(namespace, "other", 1)
    assert (other.version, other.revision) == (1, 4)
    entry = load(api, namespace, "k")
    assert (entry.version, entry.revision, entry.value) == (3, 3, json_value(2))
    assert entry.create_time.ToMicroseconds() <= entry.update_time.ToMicroseconds()


def test_a_version_never_names_two_values(api: Api, namespace: str) -> None:
    seen = [api.save(namespace, "k", 1).version, api.save(namespace, "k", 2).version]
    delete(api, namespace, "k")
    seen.append(api.save(namespace, "k", 3).version)
    api.state.ClearState(state_pb2.ClearStateRequest(namespace=namespace))
    seen.append(api.save(namespace, "k", 4).version)
    api.memory.Reset(memory_pb2.ResetRequest(namespace=namespace))
    seen.append(api.save(namespace, "k", 5).version)
    assert seen == sorted(set(seen))


def test_versions_survive_a_kill(tmp_path: Any, connect: Connect) -> None:
    with ServerProcess(tmp_path) as server:
        api = connect(server)
        deleted = api.save("ns", "deleted", 1).version
        delete(api, "ns", "deleted")
        kept = api.save("ns", "kept", {"a": [1]}, description="why")
        server.kill()
    with ServerProcess(tmp_path) as server:
        api = connect(server)
        entry = load(api, "ns", "kept")
        assert entry.value == json_value({"a": [1]})
        entry.ClearField("value")
        assert exactly(entry) == exactly(kept)
        assert api.save("ns", "deleted", 2).version > deleted


def test_namespaces_do_not_share_keys(api: Api, namespace: str) -> None:
    api.save(namespace, "k", "mine")
    api.save(namespace + "/b", "k", "yours")
    delete(api, namespace + "/b", "k")
    assert load(api, namespace, "k").value.string_value == "mine"


def test_the_size_is_that_of_the_compact_json(api: Api, namespace: str) -> None:
    for value in (None, "é🧠", {"a": ["b", True], "c": {}}, "x" * 1000, 'quote " and \\'):
        compact = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        assert api.save(namespace, "k", value).size_bytes == len(compact.encode())


def test_a_description_stays_until_another_is_given(api: Api, namespace: str) -> None:
    assert api.save(namespace, "k", 1).description == ""
    assert api.save(namespace, "k", 2, description="why").description == "why"
    assert api.save(namespace, "k", 3).description == "why"
    assert api.save(namespace, "k", 4, description="").description == ""
    assert load(api, namespace, "k").description == ""


def test_an_unknown_key_is_not_found(api: Api, namespace: str) -> None:
    request = state_pb2.DeleteStateRequest(namespace=namespace, key="k")
    for error in (refused_load(api, namespace, "k"), refusal(api.state.DeleteState, request)):
        assert (error.code, error.reason) == (NOT_FOUND, "STATE_NOT_FOUND")
        assert error.metadata == {"namespace": namespace, "key": "k"}


# Compare and set


@pytest.mark.parametrize("expected", [0, 1, 3, 2**62])
def test_another_version_than_the_current_is_refused(api: Api, namespace: str, expected: int) -> None:
    api.save(namespace, "k", "first")
    api.save(namespace, "k", "second")
    removal = state_pb2.DeleteStateRequest(namespace=namespace, key="k", expected_version=expected)
    for error in (
        refused_save(api, namespace, "k", "third", expected_version=expected),
        refusal(api.state.DeleteState, removal),
    ):
        assert (error.code, error.reason) == (ABORTED, "VERSION_MISMATCH")
        assert error.metadata == {
            "key": "k",
            "expected_version": str(expected),
            "current_version": "2",
        }
    assert load(api, namespace, "k").value.string_value == "second"


def test_the_current_version_is_accepted(api: Api, namespace: str) -> None:
    assert api.save(namespace, "k", 1, expected_version=0).version == 1
    assert api.save(namespace, "k", 2, expected_version=1).version == 2
    delete(api, namespace, "k", expected_version=2)
    assert refused_load(api, namespace, "k").code == NOT_FOUND


def test_zero_means_that_the_key_must_not_exist(api: Api, namespace: str) -> None:
    error = refused_save(api, namespace, "k", 1, expected_version=3)
    assert error.metadata["current_version"] == "0"
    first = api.save(namespace, "k", 1, expected_version=0).version
    delete(api, namespace, "k")
    assert api.save(namespace, "k", 2, expected_version=0).version > first


def increment(api: Api, namespace: str) -> None:
    """Read, add one and write, until no other write came in between."""
    done = ABORTED
    while done is ABORTED:
        entry = load(api, namespace, "counter")
        value = entry.value.number_value + 1
        done = outcome(partial(api.save, namespace, "counter", value, expected_version=entry.version))
    assert done is grpc.StatusCode.OK


def test_no_increment_is_lost_among_twenty_at_once(api: Api, namespace: str) -> None:
    api.save(namespace, "counter", 0)
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda _: increment(api, namespace), range(20)))
    entry = load(api, namespace, "counter")
    assert (entry.value.number_value, entry.version) == (20, 21)


def test_one_of_twenty_creators_wins(api: Api, namespace: str) -> None:
    def create(writer: int) -> grpc.StatusCode:
        return outcome(lambda: api.save(namespace, "lock", writer, expected_version=0))

    with ThreadPoolExecutor(20) as pool:
        outcomes = list(pool.map(create, range(20)))
    assert sorted(code.name for code in outcomes) == ["ABORTED"] * 19 + ["OK"]
    assert load(api, namespace, "lock").value.number_value == outcomes.index(grpc.StatusCode.OK)


# Time to live


def test_an_expired_entry_is_gone_from_every_read(api: Api, namespace: str) -> None:
    first = api.save(namespace, "k", 1, ttl=Duration(nanos=1_000_000))
    api.save(namespace, "kept", 1, ttl=Duration(seconds=3600))
    eventually(lambda: [e.key for e in entries(api, namespace)] == ["kept"], "expiry")
    assert refused_load(api, namespace, "k").reason == "STATE_NOT_FOUND"
    assert matches(api, namespace, "*") == ["kept"]
    again = api.save(namespace, "k", 2, expected_version=0)
    assert again.version > first.version
    assert not again.HasField("expire_time")
    assert again.description == ""


def test_a_ttl_is_returned_as_an_expire_time(api: Api, namespace: str) -> None:
    entry = api.save(namespace, "k", 1, ttl=Duration(seconds=90))
    assert entry.expire_time.ToMicroseconds() == entry.update_time.ToMicroseconds() + 90 * 10**6


def test_a_write_without_a_ttl_ends_the_one_before(api: Api, namespace: str) -> None:
    api.save(namespace, "k", 1, ttl=Duration(seconds=90))
    assert not api.save(namespace, "k", 2).HasField("expire_time")
    assert not load(api, namespace, "k").HasField("expire_time")


# Search

# Special characters of other kinds of patterns (regular expressions, LIKE, paths).
KEYS = sorted(
    ["a", "ab", "abc", "b", "Ab", "a.b", "a+b", "(a)", "a|b", "^a$", "a%b", "a_b", "a/b/c", "a*b", "a?b"]
    + ["[ab]", "a]b", "a\\b", "a'b", "a b", "é", "e\u0301", "🧠", "plan:1", "plan:2", "-x"],
    key=str.encode,
)


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("*", lambda key: True),
        ("?", lambda key: len(key) == 1),
        ("??", lambda key: len(key) == 2),
        ("a", lambda key: key == "a"),
        ("a*", lambda key: key.startswith("a")),
        ("*b", lambda key: key.endswith("b")),
        ("*b*", lambda key: "b" in key),
        ("a?b", lambda key: len(key) == 3 and key[0] + key[2] == "ab"),
        ("a*c", lambda key: key[0] == "a" and key[-1] == "c"),
        ("[ab]", lambda key: key in ("a", "b")),
        ("[!ab]", lambda key: len(key) == 1 and key not in "ab"),
        ("plan:[12]", lambda key: key.startswith("plan:")),
        ("plan:[!1]", lambda key: key == "plan:2"),
        ("a[*]b", lambda key: key == "a*b"),
        ("a[?]b", lambda key: key == "a?b"),
        ("[[]ab]", lambda key: key == "[ab]"),
        ("a.b", lambda key: key == "a.b"),
        ("a+b", lambda key: key == "a+b"),
        ("(a)", lambda key: key == "(a)"),
        ("a|b", lambda key: key == "a|b"),
        ("^a$", lambda key: key == "^a$"),
        ("a%b", lambda key: key == "a%b"),
        ("a_b", lambda key: key == "a_b"),
        ("a\\b", lambda key: key == "a\\b"),
        ("a'b", lambda key: key == "a'b"),
        ("A*", lambda key: key == "Ab"),
        ("é", lambda key: key == "é"),
        ("**b**", lambda key: "b" in key),
        ("nothing", lambda key: False),
        ("') OR '1'='1", lambda key: False),
    ],
)
def test_a_glob_matches_whole_keys(
    api: Api, namespace: str, pattern: str, wanted: Callable[[str], bool]
) -> None:
    for key in KEYS:
        api.save(namespace, key, key)
    assert matches(api, namespace, pattern) == [key for key in KEYS if wanted(key)]


def test_search_returns_the_values(api: Api, namespace: str) -> None:
    api.save(namespace, "plan:1", {"step": 1}, description="d")
    page = next(search_pages(api, namespace, "plan:*"))
    assert [exactly(entry) for entry in page] == [exactly(load(api, namespace, "plan:1"))]


@pytest.mark.parametrize("pattern", ["*x[", "[", "[]", "[!]", "[]x]", "a[b-"])
def test_a_broken_bracket_is_text_or_is_refused(api: Api, namespace: str, pattern: str) -> None:
    api.save(namespace, "k", 1)
    request = state_pb2.SearchStateRequest(namespace=namespace, pattern=pattern)
    code = outcome(lambda: api.state.SearchState(request))
    assert code in {grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT}


def test_a_pattern_with_many_stars_does_not_stall_the_server(api: Api, namespace: str) -> None:
    api.save(namespace, "a" * 500, 1)
    assert matches(api, namespace, "*a" * 100 + "*b") == []
    assert matches(api, namespace, "*a" * 100 + "*") == ["a" * 500]


@pytest.mark.parametrize("page_size", [1, 3, 25, 26])
def test_search_pages_add_up_to_the_whole(api: Api, namespace: str, page_size: int) -> None:
    for i in range(25):
        api.save(namespace, f"k{i:02}", i)
        api.save(namespace, f"other{i}", i)
    pages = list(search_pages(api, namespace, "k*", page_size=page_size))
    assert all(len(page) <= page_size for page in pages)
    assert [entry.key for page in pages for entry in page] == [f"k{i:02}" for i in range(25)]


# List


@pytest.mark.parametrize("page_size", [1, 7, 25, 26])
def test_list_pages_add_up_to_the_whole(api: Api, namespace: str, page_size: int) -> None:
    for i in range(25):
        api.save(namespace, f"k{i:02}", i)
    pages = list(list_pages(api, namespace, page_size=page_size))
    assert all(len(page) <= page_size for page in pages)
    assert [entry.key for page in pages for entry in page] == [f"k{i:02}" for i in range(25)]


def test_keys_are_ordered_by_their_bytes(api: Api, namespace: str) -> None:
    for key in KEYS:
        api.save(namespace, key, 1)
    # In UTF-16 the first of these two would sort after the second.
    for key in ("\ufb00", "\U0001d11e"):
        api.save(namespace, key, 1)
    listed = [entry.key for entry in entries(api, namespace, page_size=4)]
    assert listed == sorted([*KEYS, "\ufb00", "\U0001d11e"], key=str.encode)


def test_a_list_leaves_values_and_previews_out(api: Api, namespace: str) -> None:
    saved = api.save(namespace, "k", "value", description="d", ttl=Duration(seconds=90))
    assert [exactly(entry) for entry in entries(api, namespace)] == [exactly(saved)]


@pytest.mark.parametrize(
    ("value", "preview"),
    [
        (None, "null"),
        ({"a": [True, "é"]}, '{"a":[true,"é"]}'),
        ("x" * 98, '"' + "x" * 98 + '"'),
        ("x" * 99, '"' + "x" * 99 + "..."),
        ("🧠" * 5000, '"' + "🧠" * 99 + "..."),
    ],
    ids=["null", "short", "100 characters", "101 characters", "long"],
)
def test_a_preview_is_the_first_100_characters_of_the_json(
    api: Api, namespace: str, value: Any, preview: str
) -> None:
    api.save(namespace, "k", value)
    assert entries(api, namespace, include_preview=True)[0].preview == preview


def test_a_namespace_that_was_never_written_to_has_no_keys(api: Api, namespace: str) -> None:
    assert entries(api, namespace) == []
    assert matches(api, namespace, "*") == []


# Delete and clear


def test_clear_removes_every_key_and_leaves_the_items_alone(api: Api, namespace: str) -> None:
    item = api.add(namespace, text="kept")
    for i in range(3):
        api.save(namespace, f"k{i}", i)
    response = api.state.ClearState(state_pb2.ClearStateRequest(namespace=namespace))
    assert (response.removed_count, response.revision) == (3, 5)
    assert entries(api, namespace) == []
    assert [i.id for i in api.items(namespace)] == [item.id]
    assert api.stats(namespace).state_count == 0


def test_clear_of_nothing_removes_nothing(api: Api, namespace: str) -> None:
    assert api.state.ClearState(state_pb2.ClearStateRequest(namespace=namespace)).removed_count == 0


def test_a_deleted_key_is_gone(api: Api, namespace: str) -> None:
    api.save(namespace, "a", 1)
    api.save(namespace, "b", 1)
    assert delete(api, namespace, "a").revision == 3
    assert [entry.key for entry in entries(api, namespace)] == ["b"]
    assert matches(api, namespace, "*") == ["b"]


def test_the_biggest_value_is_kept(api: Api, namespace: str) -> None:
    value = struct_pb2.Value(string_value="x" * ((1 << 20) - 2))
    request = state_pb2.SaveStateRequest(namespace=namespace, key="k", value=value)
    assert api.state.SaveState(request).entry.size_bytes == 1 << 20
    assert load(api, namespace, "k").value == value
