"""The corpus is complete, and its runner and matcher judge correctly."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import corpus
from corpus import CorpusError, Failed
from corpus_peers import RPCS, PeerFailed, ProcessPeer
from corpus_servers import Refusing
from memory_service.v1 import error_reason_pb2

CASES = corpus.load()
STEPS = [step for case in CASES for step in case.steps if "call" in step]
_README = (corpus.VECTORS / "README.md").read_text(encoding="utf-8")


# Required contents


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 150


def test_every_rpc_is_answered_in_some_case() -> None:
    answered = {step["call"] for step in STEPS if "error" not in step}
    assert set(RPCS) - answered == set()
    assert answered - set(RPCS) == {"Iterate"}


def test_every_rpc_occurs_in_three_cases() -> None:
    occurring = Counter(
        call for case in CASES for call in {step["call"] for step in case.steps if "call" in step}
    )
    assert [call for call in RPCS if occurring[call] < 3] == []


def test_every_reason_for_an_error_occurs() -> None:
    reasons = {
        name.removeprefix("ERROR_REASON_") for name in error_reason_pb2.ErrorReason.DESCRIPTOR.values_by_name
    }
    occurring = {step["error"]["reason"] for step in STEPS if "error" in step}
    assert occurring == reasons - {"UNSPECIFIED"}


def test_reasons_that_no_server_was_made_to_send_are_told() -> None:
    by_server: set[str] = set()
    in_front: set[str] = set()
    for case in CASES:
        reasons = {step["error"]["reason"] for step in case.steps if "error" in step}
        (in_front if case.server.refuses else by_server).update(reasons)
    table = _README.partition("## Reasons that no server was made to send")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `([A-Z_]+)` \|", table, re.MULTILINE)) == in_front - by_server


def test_every_field_of_a_request_occurs() -> None:
    sent: dict[str, set[str]] = {}
    for step in STEPS:
        for request in step.get("requests", [step.get("request")]):
            sent.setdefault(step["call"], set()).update(request)
    missing = [
        f"{call}.{field.name}"
        for call, method in RPCS.items()
        for field in method.input_type.fields
        if field.json_name not in sent[call]
    ]
    # The runner sends these for `all_pages`.
    assert [name for name in missing if not name.endswith((".page_token", ".page_size"))] == []


# Verdicts


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1.0000001}, {"a": 1}),
        ({"a": "", "b": 0, "c": [], "d": {}, "e": False, "f": None, "g": "0"}, {}),
        ({"a": "$any"}, {"a": {"b": 1}}),
        ({"a": "$absent", "b": "$absent"}, {"a": ""}),
        ({"a": {"$contains": "b"}}, {"a": "abc"}),
        ({"a": {"$contains": {"b": 1}}}, {"a": [{"b": 2}, {"b": 1, "c": 3}]}),
        ({"a": {"$exactly": {"b": "", "c": [1]}}}, {"a": {"b": "", "c": [1.0]}}),
        ([1, "$any"], [1, 2]),
    ],
)
def test_what_matches(expected: Any, actual: Any) -> None:
    assert list(corpus.mismatches(expected, actual)) == []


@pytest.mark.parametrize(
    ("expected", "actual", "path"),
    [
        ({"a": {"b": 1}}, {"a": {"b": 2}}, "response.a.b"),
        ({"a": 1}, {"a": True}, "response.a"),
        ({"a": 1}, {"a": "1"}, "response.a"),
        ({"a": 1}, {"a": 1.00001}, "response.a"),
        ({"a": "x"}, {}, "response.a"),
        ({"a": "$any"}, {"a": "0"}, "response.a"),
        ({"a": "$any"}, {}, "response.a"),
        ({"a": "$absent"}, {"a": 1}, "response.a"),
        ({"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}, {"b": 3}]}, "response.a[1].b"),
        ({"a": [1]}, {"a": [1, 2]}, "response.a"),
        ({"a": []}, {"a": [1]}, "response.a"),
        ({"a": {}}, {"a": "x"}, "response.a"),
        ({"a": {"$contains": "x"}}, {"a": "abc"}, "response.a"),
        ({"a": {"$contains": "x"}}, {}, "response.a"),
        ({"a": {"$exactly": {"b": ""}}}, {"a": {}}, "response.a"),
        ({"a": {"$exactly": {}}}, {"a": {"b": ""}}, "response.a"),
        ({"a": {"$exactly": {}}}, {}, "response.a"),
    ],
)
def test_what_does_not_match_is_told_by_its_path(expected: Any, actual: Any, path: str) -> None:
    (found,) = corpus.mismatches(expected, actual)
    assert found.startswith(f"{path}: ")


def test_saved_and_long_values_are_filled_in() -> None:
    names = {"id": "x1", "number": 5}
    assert corpus.fill_in({"a": "${id}", "b": ["${number}", "n${number}-${id}"]}, names) == {
        "a": "x1",
        "b": [5, "n5-x1"],
    }
    assert corpus.fill_in({"$repeat": {"value": "ab", "count": 3}}, {}) == "ababab"
    assert corpus.fill_in({"$repeat": {"value": [{"t": "${id}"}], "count": 2}}, names) == [{"t": "x1"}] * 2
    assert corpus.fill_in({"$numbered": {"count": 2, "key": "k", "value": "v"}}, {}) == {"k0": "v", "k1": "v"}
    with pytest.raises(CorpusError, match="nothing"):
        corpus.fill_in("${nothing}", names)


def _write(folder: Path, *steps: dict[str, Any], **case: Any) -> None:
    file = {"about": "x", "cases": [{"name": "x", "steps": list(steps), **case}]}
    (folder / "x.json").write_text(json.dumps(file), encoding="utf-8")


_FAILING = {"call": "MemoryService/List", "request": {}}
_STEP = {**_FAILING, "response": {}}


@pytest.mark.parametrize(
    "step",
    [
        {**_STEP, "error": {"code": "INTERNAL"}},
        _FAILING,
        {**_STEP, "requests": []},
        {**_STEP, "respons": {}},
        {**_FAILING, "error": {"kode": "INTERNAL"}},
    ],
)
def test_a_step_of_another_form_is_refused(tmp_path: Path, step: dict[str, Any]) -> None:
    _write(tmp_path, step)
    with pytest.raises(CorpusError, match=r"x\.json: x: step 1"):
        corpus.load(tmp_path)


def test_a_name_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    case = {"name": "twin", "steps": [_STEP]}
    (tmp_path / "x.json").write_text(json.dumps({"about": "x", "cases": [case, case]}), encoding="utf-8")
    with pytest.raises(CorpusError, match="twin"):
        corpus.load(tmp_path)


def test_the_pages_of_an_answer_are_joined(tmp_path: Path) -> None:
    _write(tmp_path, {**_STEP, "response": {"items": [1, 2, 3], "revision": "7"}, "all_pages": True})
    pages = {
        "": {"items": [1], "nextPageToken": "b", "revision": "7"},
        "b": {"nextPageToken": "c"},
        "c": {"items": [2, 3]},
    }
    (case,) = corpus.load(tmp_path)
    corpus.run(case, lambda step: {"response": dict(pages[step["request"].get("pageToken", "")])}, _none, {})


def test_the_token_of_a_page_goes_among_the_options_and_tokens_are_summed(tmp_path: Path) -> None:
    step = {"call": "MemoryService/Retrieve", "request": {"namespace": "n", "options": {"pageSize": 1}}}
    _write(tmp_path, {**step, "response": {"results": [1, 2], "tokenCount": 7}, "all_pages": True})
    pages = {
        "": {"results": [1], "nextPageToken": "b", "tokenCount": 3},
        "b": {"results": [2], "tokenCount": 4},
    }
    (case,) = corpus.load(tmp_path)
    asked = []

    def call(step: dict[str, Any]) -> dict[str, Any]:
        asked.append(step["request"])
        return {"response": dict(pages[step["request"]["options"].get("pageToken", "")])}

    corpus.run(case, call, _none, {})
    assert asked[1] == {"namespace": "n", "options": {"pageSize": 1, "pageToken": "b"}}


def test_the_counts_of_all_pages_are_summed(tmp_path: Path) -> None:
    step = {"call": "MemoryService/DeleteWhere", "request": {"namespace": "n", "sessionId": "s"}}
    _write(tmp_path, {**step, "response": {"deletedCount": "5"}, "all_pages": True})
    pages = {"": {"deletedCount": "3", "nextPageToken": "b"}, "b": {"deletedCount": "2"}}
    (case,) = corpus.load(tmp_path)
    corpus.run(case, lambda step: {"response": dict(pages[step["request"].get("pageToken", "")])}, _none, {})


def test_a_step_that_fails_is_told(tmp_path: Path) -> None:
    _write(tmp_path, _STEP, {**_FAILING, "error": {"code": "NOT_FOUND", "reason": "X"}})
    (case,) = corpus.load(tmp_path)
    with pytest.raises(Failed, match=r"x\.json: x: step 2, MemoryService/List: expected error, got"):
        corpus.run(case, lambda step: {"response": {}}, _none, {})
    with pytest.raises(Failed, match="inexpressible"):
        corpus.run(case, lambda step: {"inexpressible": "a field"}, _none, {})


def _none(deed: str) -> None:
    raise AssertionError(deed)


def test_a_deed_that_nobody_knows_is_refused() -> None:
    refusing = Refusing("{}")
    try:
        with pytest.raises(CorpusError, match="burn"):
            refusing.deed("burn")
    finally:
        refusing.close()


@pytest.mark.parametrize("answer", ["", "no JSON", "[]"])
def test_a_program_that_gives_no_answer_is_told_with_what_it_logged(tmp_path: Path, answer: str) -> None:
    program = tmp_path / "peer.sh"
    program.write_text(f'read step\necho "address $1" >&2\necho "{answer}"\n', encoding="utf-8")
    peer = ProcessPeer(["sh", str(program)], "127.0.0.1:1")
    try:
        with pytest.raises(PeerFailed, match="MemoryService/List"):
            peer.call({"call": "MemoryService/List", "request": {}})
    finally:
        peer.close()
