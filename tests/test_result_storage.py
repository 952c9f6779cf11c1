"""EvaluateForStorage: whether a tool's result is worth keeping, and saving it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from grpc_api import Api, Connect, Refusal, eventually, exactly, json_value, refusal, struct
from memory_service.v1 import overseer_pb2 as pb
from memory_service.v1 import overseer_pb2_grpc as pb_grpc
from memory_service.v1 import state_pb2
from scripted_openai import Reply, ScriptedOpenAI
from server_process import ServerProcess

# The example that the overseer was designed for: save first, use later.
SAVE_GOAL = "Get last week activities and save kudos givers to memory"
USE_GOAL = "Who from my kudos list was active recently?"
TOOL = "getActivityKudos"
PEOPLE = [{"firstname": "Ada", "lastname": "L."}, {"firstname": "Alan", "lastname": "T."}]
ANSWER = {
    "save": True,
    "key": "kudos_givers_2025",
    "reason": "A list of people",
    "description": "Who gave kudos",
}

BY_LLM, BY_RULES = pb.DECIDED_BY_LLM, pb.DECIDED_BY_RULES
INVALID_VALUE = pb.DECISION_FAILURE_REASON_INVALID_VALUE
KEY_EXISTS = pb.DECISION_FAILURE_REASON_KEY_EXISTS
CHANGED_MEANWHILE = pb.DECISION_FAILURE_REASON_CHANGED_MEANWHILE


def asked(namespace: str, **fields: Any) -> pb.EvaluateForStorageRequest:
    fields = {"tool_name": TOOL, "result": PEOPLE, "goal": SAVE_GOAL, **fields}
    result = json_value(fields.pop("result"))
    return pb.EvaluateForStorageRequest(namespace=namespace, result=result, **fields)


def evaluate(api: Api, namespace: str, **fields: Any) -> pb.EvaluateForStorageResponse:
    stub = pb_grpc.OverseerServiceStub(api.channel)
    return stub.EvaluateForStorage(asked(namespace, **fields), timeout=20)


def refused(api: Api, namespace: str, **fields: Any) -> Refusal:
    return refusal(pb_grpc.OverseerServiceStub(api.channel).EvaluateForStorage, asked(namespace, **fields))


def stored(api: Api, namespace: str) -> dict[str, state_pb2.StateEntry]:
    response = api.state.SearchState(state_pb2.SearchStateRequest(namespace=namespace, pattern="*"))
    return {entry.key: entry for entry in response.entries}


def reasons(response: pb.EvaluateForStorageResponse) -> list[int]:
    return [failure.reason for failure in response.failures]


@pytest.fixture(scope="module")
def llm() -> Iterator[ScriptedOpenAI]:
    """A language model that answers as the test wants."""
    with ScriptedOpenAI() as provider:
        yield provider


@pytest.fixture(scope="module")
def llm_server(llm: ScriptedOpenAI) -> Iterator[ServerProcess]:
    """A server that uses it."""
    flags = ["--store", "memory", "--embedder", "none", *llm.flags]
    with ServerProcess(flags=flags, env=llm.environment()) as process:
        yield process


@pytest.fixture
def llm_api(llm_server: ServerProcess, llm: ScriptedOpenAI, connect: Connect) -> Api:
    """The stubs of that server; earlier requests are cleared."""
    llm.requests.clear()
    return connect(llm_server)


@pytest.fixture(scope="module")
def failing_server(llm: ScriptedOpenAI) -> Iterator[ServerProcess]:
    """A server that soon gives up on a failing model."""
    flags = ["--store", "memory", "--embedder", "none", "--llm-timeout", "1", "--llm-retries", "0"]
    with ServerProcess(flags=[*flags, *llm.flags], env=llm.environment()) as process:
        yield process


@pytest.fixture
def failing_api(
    failing_server: ServerProcess, llm: ScriptedOpenAI, connect: Connect, namespace: str, goal: str
) -> Iterator[Api]:
    """The stubs of that server. Its model works again after the test, so that it is not paused for others."""
    api = connect(failing_server)
    yield api
    llm.answer(ANSWER)
    eventually(lambda: evaluate(api, namespace, goal=goal).decided_by == BY_LLM, "it recovers")


@pytest.fixture
def goal(namespace: str) -> str:
    """Return a goal of this test only: the answer to a repeated question may come from a cache."""
    return f"{SAVE_GOAL} ({namespace})"


# The workflow: save in one session, use in the next


def test_rules_save_the_kudos_givers_and_find_them_again(api: Api, namespace: str) -> None:
    response = evaluate(api, namespace, save=True)
    assert (response.should_save, response.saved, response.key) == (True, True, "kudos_givers")
    assert response.decided_by == BY_RULES
    assert response.reason and response.description
    assert (response.entry.key, response.entry.version) == ("kudos_givers", 1)
    assert (response.existing_version, response.revision) == (0, 1)
    assert not response.entry.HasField("value") and not response.HasField("llm_usage")
    entry = stored(api, namespace)["kudos_givers"]
    assert (entry.value, entry.description) == (json_value(PEOPLE), response.description)
    later = pb.CheckRelevanceRequest(namespace=namespace, goal=USE_GOAL)
    found = pb_grpc.OverseerServiceStub(api.channel).CheckRelevance(later)
    assert [entry.key for entry in found.entries] == ["kudos_givers"]


def test_the_model_names_key_reason_and_description(
    llm_api: Api, llm: ScriptedOpenAI, namespace: str, goal: str
) -> None:
    llm.answer(ANSWER)
    response = evaluate(llm_api, namespace, goal=goal, arguments=struct({"week": 46}), save=True)
    assert (response.saved, response.decided_by) == (True, BY_LLM)
    assert (response.key, response.reason) == (ANSWER["key"], ANSWER["reason"])
    assert stored(llm_api, namespace)["kudos_givers_2025"].description == ANSWER["description"]
    assert response.llm_usage.call_count == 1
    question = llm.requests[0]
    for text in (TOOL, goal, '"firstname":"Ada"', '{"week":46}'):
        assert text in question.user and text not in question.system


def test_the_decision_is_only_told_if_nothing_is_to_be_saved(api: Api, namespace: str) -> None:
    response = evaluate(api, namespace)
    assert (response.should_save, response.saved, response.key) == (True, False, "kudos_givers")
    assert not response.HasField("entry") and not response.failures
    assert stored(api, namespace) == {}


def test_the_model_may_decide_against_it(
    llm_api: Api, llm: ScriptedOpenAI, namespace: str, goal: str
) -> None:
    llm.answer({"save": False, "key": "x", "reason": "Single-query data"})
    response = evaluate(llm_api, namespace, goal=goal, save=True)
    assert (response.should_save, response.saved, response.decided_by) == (False, False, BY_LLM)
    assert (response.key, response.description, response.reason) == ("", "", "Single-query data")
    assert stored(llm_api, namespace) == {}


# Results that rules keep


@pytest.mark.parametrize(
    ("tool", "result", "goal", "key"),
    [
        ("getUserProfile", {"name": "Noor", "city": "Rotterdam"}, "Who am I?", "user_profile"),
        ("get_user_preferences", {"theme": "dark"}, "", "user_preferences"),
        ("loadSettings", {"units": "metric"}, "Show distances", None),
        ("listTeamMembers", ["Priya", "Jon"], "Who is in the team?", "team_members"),
        ("detectSpendingPatterns", {"weekend": "high"}, "", None),
        ("runQuery", PEOPLE, "Everybody who came to the party", None),
        ("listMembers", {"members": ["Priya"], "next_page_token": "x"}, "", "members"),
        ("fetch", {"value": 44}, "Remember my shoe size", "shoe_size"),
        ("get", [1], "Fetch my favourite routes", "favourite_routes"),
    ],
)
def test_what_is_useful_across_sessions_is_kept(
    api: Api, namespace: str, tool: str, result: Any, goal: str, key: str | None
) -> None:
    response = evaluate(api, namespace, tool_name=tool, result=result, goal=goal)
    assert response.should_save, response.reason
    assert key is None or response.key == key
    assert response.key and response.key == response.key.lower() and " " not in response.key


@pytest.mark.parametrize(
    ("tool", "result", "goal"),
    [
        ("getWeather", {"temperature": 3}, SAVE_GOAL),
        ("getActivities", [{"id": 1, "distance": 3.2}], SAVE_GOAL),
        ("countActivities", 17, "How many runs?"),
        ("web_search", [{"title": "Lisbon", "url": "https://example.org"}], "Find a hotel"),
        ("getServerTime", 1763779200, ""),
        ("convertCurrency", {"eur": 12.5}, "What is that in euros?"),
        ("getUserProfile", {}, "Who am I?"),
        ("getUserProfile", None, "Who am I?"),
        ("getSettings", {"api": [{"client": {"apiKey": "x"}}]}, ""),
        ("login", {"user": "lena", "access_token": "x"}, "Remember this"),
        ("getUserProfile", {"name": "Noor"}, "Who am I? Do not save anything"),
    ],
)
def test_data_for_one_question_failures_and_secrets_are_not_kept(
    api: Api, namespace: str, tool: str, result: Any, goal: str
) -> None:
    response = evaluate(api, namespace, tool_name=tool, result=result, goal=goal, save=True)
    assert (response.should_save, response.saved, response.key) == (False, False, "")
    assert response.reason
    assert stored(api, namespace) == {}


@pytest.mark.parametrize("tool", ["getCurrentDate", "calculateTimestamp", "llm_analyze"])
def test_tools_of_the_configuration_are_skipped_without_a_model(
    llm_api: Api, llm: ScriptedOpenAI, namespace: str, goal: str, tool: str
) -> None:
    llm.answer(ANSWER)
    response = evaluate(llm_api, namespace, tool_name=tool, goal=goal, save=True)
    assert (response.skipped, response.should_save, response.saved) == (True, False, False)
    assert response.reason
    assert (llm.requests, stored(llm_api, namespace)) == ([], {})
    assert not evaluate(llm_api, namespace, tool_name=tool.upper(), goal=goal).skipped


def test_which_tools_are_skipped_is_configuration(connect: Connect, namespace: str) -> None:
    flags = ["--store", "memory", "--embedder", "none", "--overseer-skip-tools", "noise, getActivityKudos"]
    with ServerProcess(flags=flags) as process:
        api = connect(process)
        assert evaluate(api, namespace).skipped
        assert not evaluate(api, namespace, tool_name="getCurrentDate").skipped


def test_the_result_of_a_failure_is_never_kept(
    llm_api: Api, llm: ScriptedOpenAI, namespace: str, goal: str
) -> None:
    llm.answer(ANSWER)
    response = evaluate(llm_api, namespace, goal=goal, is_error=True, save=True)
    assert (response.should_save, response.skipped, llm.requests) == (False, False, [])
    assert stored(llm_api, namespace) == {}


# Existing keys, and concurrent changes


def test_a_key_that_exists_is_left_alone(api: Api, namespace: str) -> None:
    api.save(namespace, "kudos_givers", "mine")
    response = evaluate(api, namespace, save=True)
    assert (response.should_save, response.saved) == (True, False)
    assert (reasons(response), response.failures[0].key) == ([KEY_EXISTS], "kudos_givers")
    assert response.existing_version == 1
    assert stored(api, namespace)["kudos_givers"].value == json_value("mine")


def test_a_key_that_exists_is_overwritten_if_that_is_asked_for(api: Api, namespace: str) -> None:
    api.save(namespace, "kudos_givers", "mine")
    response = evaluate(api, namespace, save=True, overwrite=True)
    assert (response.saved, response.existing_version, response.entry.version) == (True, 1, 2)
    assert stored(api, namespace)["kudos_givers"].value == json_value(PEOPLE)


def test_the_caller_may_choose_the_key_and_how_long_it_lives(api: Api, namespace: str) -> None:
    response = evaluate(api, namespace, save=True, key="My key / 1", ttl=Duration(seconds=60))
    assert (response.key, response.entry.key) == ("My key / 1", "My key / 1")
    lives = response.entry.expire_time.ToSeconds() - response.entry.update_time.ToSeconds()
    assert lives == 60


@pytest.mark.parametrize("key", ["", ANSWER["key"]], ids=["named by the model", "chosen by the caller"])
@pytest.mark.parametrize("before", [None, "old"], ids=["created", "changed"])
def test_what_is_written_while_it_is_decided_on_stays(
    llm_api: Api, llm: ScriptedOpenAI, namespace: str, goal: str, key: str, before: str | None
) -> None:
    if before:
        llm_api.save(namespace, str(ANSWER["key"]), before)
    asked_for, written = threading.Event(), threading.Event()

    def answer(_: object) -> dict[str, Any]:
        asked_for.set()
        assert written.wait(20)
        return ANSWER

    llm.answer(answer)
    request = asked(namespace, goal=goal, key=key, save=True, overwrite=True)
    call = pb_grpc.OverseerServiceStub(llm_api.channel).EvaluateForStorage.future(request)
    assert asked_for.wait(20)
    llm_api.save(namespace, str(ANSWER["key"]), "new")
    written.set()
    response = call.result(timeout=20)
    assert (response.should_save, response.saved) == (True, False)
    assert reasons(response) == [CHANGED_MEANWHILE]
    assert stored(llm_api, namespace)[str(ANSWER["key"])].value == json_value("new")


# Invalid parts of a model's answer, and missing answers


@pytest.mark.parametrize(
    "part",
    [
        {"key": ""},
        {"key": "k" * 513},
        {"key": "a\nb"},
        {"key": "\x00"},
        {"description": "d" * 1025},
    ],
    ids=["no key", "long key", "line break", "NUL", "long description"],
)
def test_rules_take_the_place_of_a_part_that_is_not_allowed(
    llm_api: Api, llm: ScriptedOpenAI, namespace: str, goal: str, part: dict[str, str]
) -> None:
    llm.answer(Reply(json.dumps({**ANSWER, **part})))
    response = evaluate(llm_api, namespace, goal=goal, save=True)
    assert (response.saved, response.decided_by, reasons(response)) == (True, BY_LLM, [INVALID_VALUE])
    assert response.key == ("kudos_givers" if "key" in part else ANSWER["key"])
    assert list(stored(llm_api, namespace)) == [response.key]
    error = refused(llm_api, f"{namespace}/2", goal=goal, save=True, decide_by=BY_LLM)
    assert error.reason == "LLM_UNAVAILABLE"
    assert stored(llm_api, f"{namespace}/2") == {}


def test_a_long_reason_is_cut(llm_api: Api, llm: ScriptedOpenAI, namespace: str, goal: str) -> None:
    llm.answer({**ANSWER, "reason": "because\n" * 200})
    reason = evaluate(llm_api, namespace, goal=goal).reason
    assert len(reason) == 500 and "\n" not in reason


@pytest.mark.parametrize("shape", [Reply.in_prose, Reply.fenced, Reply.nested], ids=lambda f: f.__name__)
def test_an_answer_with_something_around_it_is_read(
    llm_api: Api, llm: ScriptedOpenAI, namespace: str, goal: str, shape: Any
) -> None:
    llm.answer(shape(ANSWER))
    response = evaluate(llm_api, namespace, goal=goal, save=True)
    assert (response.key, response.saved, response.decided_by) == (ANSWER["key"], True, BY_LLM)


def test_a_truncated_answer_is_repaired(llm_api: Api, llm: ScriptedOpenAI, namespace: str, goal: str) -> None:
    llm.answer_in_order([Reply.truncated(ANSWER), ANSWER])
    response = evaluate(llm_api, namespace, goal=goal, save=True)
    assert (response.key, response.saved, response.llm_usage.call_count) == (ANSWER["key"], True, 2)


FAILURES = {
    "slow": (Reply.slow(), pb.DECISION_FAILURE_REASON_LLM_TIMEOUT),
    "429": (Reply.overloaded(), pb.DECISION_FAILURE_REASON_LLM_UNAVAILABLE),
    "500": (Reply.broken(), pb.DECISION_FAILURE_REASON_LLM_UNAVAILABLE),
    "prose": (Reply("I would save that."), pb.DECISION_FAILURE_REASON_LLM_INVALID_ANSWER),
    "truncated": (Reply.truncated(ANSWER), pb.DECISION_FAILURE_REASON_LLM_INVALID_ANSWER),
    "wrong type": (Reply('{"save": "maybe"}'), pb.DECISION_FAILURE_REASON_LLM_INVALID_ANSWER),
}


@pytest.mark.parametrize("kind", FAILURES)
def test_where_the_model_fails_rules_decide_and_nothing_is_lost(
    failing_api: Api, llm: ScriptedOpenAI, namespace: str, kind: str
) -> None:
    reply, reason = FAILURES[kind]
    llm.answer(reply)
    error = refused(failing_api, namespace, save=True, decide_by=BY_LLM)
    assert (error.code, error.reason) == (grpc.StatusCode.UNAVAILABLE, "LLM_UNAVAILABLE")
    assert stored(failing_api, namespace) == {}
    response = evaluate(failing_api, namespace, save=True)
    assert (response.saved, response.key, response.decided_by) == (True, "kudos_givers", BY_RULES)
    assert reasons(response) == [reason]


def test_a_model_that_is_not_there_cannot_be_insisted_on(api: Api, namespace: str) -> None:
    error = refused(api, namespace, save=True, decide_by=BY_LLM)
    assert (error.code, error.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "LLM_REQUIRED")
    assert stored(api, namespace) == {}


# Repeated requests


def test_a_repeated_request_is_answered_with_the_first_decision(
    llm_api: Api, llm: ScriptedOpenAI, namespace: str, goal: str
) -> None:
    llm.answer(ANSWER)
    first = evaluate(llm_api, namespace, goal=goal, save=True, request_id="r-1")
    llm.answer({**ANSWER, "key": "another"})
    assert first.saved
    assert exactly(evaluate(llm_api, namespace, goal=goal, save=True, request_id="r-1")) == exactly(first)
    assert list(stored(llm_api, namespace)) == [ANSWER["key"]]
    assert len(llm.requests) == 1


@pytest.mark.parametrize("fields", [{"save": False}, {"tool_name": "getWeather"}, {"key": "taken"}])
def test_a_repeated_request_that_saved_nothing_is_answered_with_the_first_decision(
    api: Api, namespace: str, fields: dict[str, Any]
) -> None:
    api.save(namespace, "taken", 1)
    first = evaluate(api, namespace, **{"save": True, "request_id": "r-1", **fields})
    assert not first.saved
    api.state.ClearState(state_pb2.ClearStateRequest(namespace=namespace))
    again = evaluate(api, namespace, **{"save": True, "request_id": "r-1", **fields})
    assert exactly(again) == exactly(first)
    assert refused(api, namespace, request_id="r-1", goal="another").reason == "REQUEST_ID_REUSED"


def test_a_request_that_comes_many_times_at_once_saves_once(api: Api, namespace: str) -> None:
    with ThreadPoolExecutor(20) as pool:
        calls = [
            pool.submit(evaluate, api, namespace, save=True, overwrite=True, request_id="r-1")
            for _ in range(20)
        ]
        answers = {exactly(call.result()) for call in calls}
    assert len(answers) == 1
    assert stored(api, namespace)["kudos_givers"].version == 1


def test_a_repeated_request_saves_once_also_after_a_restart(
    connect: Connect, namespace: str, tmp_path: Path
) -> None:
    with ServerProcess(tmp_path) as process:
        first = evaluate(connect(process), namespace, save=True, request_id="r-1")
        process.kill()
    with ServerProcess(tmp_path) as process:
        api = connect(process)
        again = evaluate(api, namespace, save=True, request_id="r-1")
        assert (again.saved, again.should_save, again.key) == (True, True, first.key)
        assert (exactly(again.entry), again.revision) == (exactly(first.entry), first.revision)
        assert stored(api, namespace)[first.key].version == 1


def test_a_request_id_with_another_body_is_refused(api: Api, namespace: str) -> None:
    evaluate(api, namespace, save=True, request_id="r-1")
    error = refused(api, namespace, save=True, request_id="r-1", result=[])
    assert (error.code, error.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "REQUEST_ID_REUSED")


# Invalid input


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"namespace": ""}, "namespace"),
        ({"tool_name": ""}, "tool_name"),
        ({"tool_name": "t" * 257}, "tool_name"),
        ({"tool_name": "a\nb"}, "tool_name"),
        ({"key": "k" * 513}, "key"),
        ({"key": "a\x00"}, "key"),
        ({"ttl": Duration()}, "ttl"),
        ({"ttl": Duration(seconds=-1)}, "ttl"),
        ({"decide_by": 9}, "decide_by"),
        ({"request_id": "a b"}, "request_id"),
        ({"result": [float("nan")]}, "result"),
    ],
)
def test_a_bad_request_is_refused_with_the_field_named(
    api: Api, namespace: str, fields: dict[str, Any], field: str
) -> None:
    error = refused(api, **{"namespace": namespace, "save": True, **fields})
    assert error.code is grpc.StatusCode.INVALID_ARGUMENT
    assert error.names(field)
    assert stored(api, namespace) == {}


def test_a_result_is_required(api: Api, namespace: str) -> None:
    stub = pb_grpc.OverseerServiceStub(api.channel)
    request = pb.EvaluateForStorageRequest(namespace=namespace, tool_name=TOOL)
    assert refusal(stub.EvaluateForStorage, request).names("result")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"result": "x" * (1 << 20)}, "result"),
        ({"goal": "x" * (16 * 1024 + 1)}, "goal"),
        ({"arguments": struct({"a": "x" * 64 * 1024})}, "arguments"),
    ],
)
def test_what_is_over_a_limit_is_refused(
    api: Api, namespace: str, fields: dict[str, Any], field: str
) -> None:
    error = refused(api, namespace, save=True, **fields)
    assert (error.code, error.names(field)) == (grpc.StatusCode.RESOURCE_EXHAUSTED, True)
    assert stored(api, namespace) == {}
