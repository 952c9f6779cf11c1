"""The services for Google ADK, by its contract tests and beside its services for one process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from google.adk.agents import LlmAgent
from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event, EventActions
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.tools.load_memory_tool import load_memory_tool
from google.genai import types

from memory_client import AsyncMemoryClient
from memory_client.google_adk import MemoryServiceMemoryService, MemoryServiceSessionService
from repositories import checkout, run_suite

ADA: Any = {"app_name": "guide", "user_id": "ada"}


def test_the_contract_tests_of_sessions_and_memories_pass(address: str, tmp_path: Path) -> None:
    folder = checkout("GOOGLE_ADK") / "tests" / "unittests"
    pytest.importorskip("sqlalchemy", reason="the suites import google-adk[db]")
    files = [folder / "sessions/test_session_service.py", folder / "memory/test_in_memory_memory_service.py"]
    outcomes = run_suite(
        files, "swap_google_adk", tmp_path, env={"CONFORMANCE_SERVER": address}, arguments=["--noconftest"]
    )
    assert set(outcomes.values()) == {"passed"}
    assert len(outcomes) >= 28


@pytest_asyncio.fixture
async def sessions(address: str, namespace: str) -> AsyncIterator[MemoryServiceSessionService]:
    async with MemoryServiceSessionService(address, namespace=namespace) as service:
        yield service


@pytest_asyncio.fixture
async def memories(address: str, namespace: str) -> AsyncIterator[MemoryServiceMemoryService]:
    async with MemoryServiceMemoryService(address, namespace=namespace) as service:
        yield service


def said(text: str, author: str = "user", delta: dict[str, Any] | None = None, **more: Any) -> Event:
    content = types.Content(role="user" if author == "user" else "model", parts=[types.Part(text=text)])
    return Event(author=author, content=content, actions=EventActions(state_delta=delta or {}), **more)


DELTAS: list[dict[str, Any]] = [
    {"profile": {"name": "ada", "role": "admin"}, "app:cfg": {"a": 1}, "user:pref": "dark", "temp:x": 1},
    {"profile": {"name": "bob"}, "app:cfg": None, "user:pref": None, "flag": False},
    {"flag": None, "big": 2**70, "tiny": 0.1 + 0.2, "user:list": [1, "two", None, {"deep": [[]]}]},
    {"": "empty", "a/b*[c]%": "odd", "text": "\x00 😀"},
]


async def test_states_are_those_of_the_service_for_one_process(sessions: MemoryServiceSessionService) -> None:
    local = InMemorySessionService()
    seen = []
    for service in (sessions, local):
        session = await service.create_session(**ADA, session_id=" trip\n", state=DELTAS[0])
        for number, delta in enumerate(DELTAS):
            await service.append_event(session, said(f"step {number}", delta=dict(delta)))
        other = await service.create_session(
            app_name="guide", user_id="a/d*a", session_id="trip", state={"k": 1}
        )
        got = await service.get_session(**ADA, session_id="trip ")
        assert got is not None
        listed = (await service.list_sessions(app_name="guide")).sessions
        seen.append(
            (
                session.state,
                got.state,
                other.state,
                await service.get_user_state(**ADA),
                [event.actions.state_delta for event in got.events],
                sorted((each.user_id, each.id, str(sorted(each.state.items()))) for each in listed),
            )
        )
    assert seen[0] == seen[1]


async def test_events_come_back_as_they_were_appended(sessions: MemoryServiceSessionService) -> None:
    session = await sessions.create_session(**ADA)
    call = types.FunctionCall(id="c", name="trains", args={"to": "Paris"})
    answer = types.FunctionResponse(id="c", name="trains", response={"departs": "12:04"})
    parts = [
        types.Part(function_call=call),
        types.Part(function_response=answer),
        types.Part.from_bytes(data=b"\x00\xff" * 100_000, mime_type="image/png"),
        types.Part(text="A thought", thought=True, thought_signature=b"\xfe"),
    ]
    for at, part in enumerate(parts):
        event = Event(
            author="guide", content=types.Content(parts=[part]), timestamp=session.last_update_time + at
        )
        await sessions.append_event(session, event)
    got = await sessions.get_session(**ADA, session_id=session.id)
    assert got == session
    config = GetSessionConfig(num_recent_events=3, after_timestamp=session.events[2].timestamp)
    got = await sessions.get_session(**ADA, session_id=session.id, config=config)
    assert got is not None
    assert got.events == session.events[2:]


async def test_what_json_cannot_say_becomes_a_text(sessions: MemoryServiceSessionService) -> None:
    session = await sessions.create_session(**ADA)
    await sessions.append_event(session, said("hi", delta={"odd": object(), "good": 1}))
    got = await sessions.get_session(**ADA, session_id=session.id)
    assert got is not None
    assert got.state["good"] == 1
    assert isinstance(got.state["odd"], str)


async def test_of_appends_to_one_state_of_a_session_one_is_kept(
    address: str, namespace: str, sessions: MemoryServiceSessionService
) -> None:
    await sessions.create_session(**ADA, session_id="trip")
    async with MemoryServiceSessionService(address, namespace=namespace) as other:
        services = [sessions, other] * 3
        copies = [await service.get_session(**ADA, session_id="trip") for service in services]

        async def appended(service: MemoryServiceSessionService, copy: Session | None, number: int) -> bool:
            assert copy is not None
            try:
                await service.append_event(copy, said("hi", delta={"n": number}))
            except StaleSessionError:
                return False
            return True

        pairs = zip(services, copies, range(6), strict=True)
        kept = await asyncio.gather(*(appended(*each) for each in pairs))
        assert kept.count(True) == 1
        got = await sessions.get_session(**ADA, session_id="trip")
        assert got is not None
        assert (len(got.events), got.state) == (1, {"n": kept.index(True)})


async def test_sessions_that_change_one_state_at_once_lose_nothing(
    sessions: MemoryServiceSessionService,
) -> None:
    made = await asyncio.gather(*(sessions.create_session(**ADA, state={f"user:{n}": n}) for n in range(8)))
    await asyncio.gather(
        *(sessions.append_event(each, said("hi", delta={f"app:{n}": n})) for n, each in enumerate(made))
    )
    seen = await sessions.create_session(**ADA)
    assert seen.state == {f"{scope}:{n}": n for scope in ("app", "user") for n in range(8)}


async def test_errors_are_those_of_the_framework(sessions: MemoryServiceSessionService) -> None:
    session = await sessions.create_session(**ADA, session_id="trip")
    with pytest.raises(AlreadyExistsError):
        await sessions.create_session(**ADA, session_id="trip ")
    event = said("hi")
    await sessions.append_event(session, event)
    with pytest.raises(AlreadyExistsError):
        await sessions.append_event(session, event)
    await sessions.delete_session(**ADA, session_id="trip")
    with pytest.raises(SessionNotFoundError):
        await sessions.append_event(session, said("hi"))
    assert (await sessions.create_session(**ADA, session_id="trip")).events == []


async def test_a_cancelled_append_is_completed(sessions: MemoryServiceSessionService) -> None:
    session = await sessions.create_session(**ADA, session_id="trip")
    append = asyncio.ensure_future(sessions.append_event(session, said("hi")))
    await asyncio.sleep(0)
    append.cancel()
    with pytest.raises(asyncio.CancelledError):
        await append
    assert [event.content for event in session.events] == [said("hi").content]
    assert await sessions.get_session(**ADA, session_id="trip") == session


def session_of(*events: Event) -> Session:
    return Session(**ADA, id="trip", events=list(events))


def texts(found: Any) -> list[str]:
    return [memory.content.parts[0].text for memory in found.memories]


async def test_a_session_that_is_added_again_replaces_its_memories(
    memories: MemoryServiceMemoryService,
) -> None:
    tea, trains = said("I like green tea", id="1"), said("I like trains", id="2")
    await memories.add_session_to_memory(session_of(tea, trains))
    await memories.add_session_to_memory(session_of(tea, said("I like ships", id="3")))
    assert texts(await memories.search_memory(**ADA, query="tea")) == ["I like green tea"]
    assert texts(await memories.search_memory(**ADA, query="trains")) == []
    found = await memories.search_memory(**ADA, query="ships")
    assert (found.memories[0].id, found.memories[0].author) == ("3", "user")
    assert texts(await memories.search_memory(app_name="guide", user_id="bob", query="tea")) == []
    assert texts(await memories.search_memory(**ADA, query=" ")) == []


async def test_a_deleted_memory_stays_deleted(memories: MemoryServiceMemoryService) -> None:
    tea, ships = said("I like green tea", id="1"), said("I like ships", id="2")
    await memories.add_session_to_memory(session_of(tea, ships))
    await memories.delete_memory(**ADA, memory_id="1")
    await memories.delete_memory(**ADA)
    await memories.add_session_to_memory(session_of(tea, ships))
    await memories.add_events_to_memory(**ADA, events=[tea], session_id="other")
    assert texts(await memories.search_memory(**ADA, query="I like tea")) == ["I like ships"]


async def test_memories_keep_their_metadata(memories: MemoryServiceMemoryService) -> None:
    entry = MemoryEntry(
        content=types.Content(parts=[types.Part(text="Ada likes tea")]), custom_metadata={"a": 1}
    )
    await memories.add_memory(**ADA, memories=[entry], custom_metadata={"b": 2})
    await memories.add_events_to_memory(**ADA, events=[said("We drank tea")], custom_metadata={"c": 3})
    found = (await memories.search_memory(**ADA, query="tea")).memories
    assert {tuple(memory.custom_metadata.items()) for memory in found} == {(("a", 1), ("b", 2)), (("c", 3),)}
    assert all(memory.id for memory in found)


async def test_many_events_are_added_and_searched(memories: MemoryServiceMemoryService) -> None:
    events = [said(f"Stop {n} of the train is town{n}", id=str(n)) for n in range(2000)]
    await memories.add_session_to_memory(session_of(*events))
    assert (
        texts(await memories.search_memory(**ADA, query="town1234"))[0]
        == "Stop 1234 of the train is town1234"
    )
    assert len((await memories.search_memory(**ADA, query="train")).memories) == 10


class Scripted(BaseLlm):
    """A model that loads memories and answers with what they say."""

    model: str = "scripted"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncIterator[LlmResponse]:
        last = llm_request.contents[-1].parts[0]
        part = types.Part(text=str(last.function_response.response if last.function_response else "Noted."))
        if last.text and last.text.endswith("?"):
            part = types.Part(function_call=types.FunctionCall(name="load_memory", args={"query": last.text}))
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


async def test_an_agent_remembers_in_another_session(
    sessions: MemoryServiceSessionService,
    memories: MemoryServiceMemoryService,
    async_memory: AsyncMemoryClient,
) -> None:
    agent = LlmAgent(name="guide", model=Scripted(), tools=[load_memory_tool])
    runner = Runner(agent=agent, app_name="guide", session_service=sessions, memory_service=memories)
    answers = []
    for session_id, text in (("one", "I like green tea"), ("two", "What tea do I like?")):
        await sessions.create_session(**ADA, session_id=session_id)
        message = types.Content(role="user", parts=[types.Part(text=text)])
        async for event in runner.run_async(user_id="ada", session_id=session_id, new_message=message):
            answers.append(event.content.parts[0].text)
        session = await sessions.get_session(**ADA, session_id=session_id)
        await memories.add_session_to_memory(session)
    assert answers[0] == "Noted."
    assert "I like green tea" in str(answers[-1])
    found = await async_memory.retrieve("green tea", session_id="guide/ada/one", limit=1)
    assert (found[0].item.speaker, found[0].text) == ("user", "I like green tea")
