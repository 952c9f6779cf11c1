"""The provider for Agent Framework, by the framework's tests of histories and beside its own providers."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, MutableSequence
from pathlib import Path
from typing import Any

import pytest_asyncio
from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatResponse,
    Content,
    InMemoryHistoryProvider,
    Message,
)

from memory_client import AsyncMemoryClient
from memory_client.agent_framework import MemoryServiceContextProvider
from repositories import checkout, run_suite

PASSED = {
    "test_empty_state_returns_no_messages",
    "test_stores_and_loads_messages",
    "test_source_id_attribution",
    "test_preserves_non_finite_json_values",
    "test_missing_session_file_returns_empty_messages",
    "test_skip_excluded_omits_excluded_messages",
}
"""The other tests look at files, or at the state of a session."""


def test_the_frameworks_tests_of_histories_pass(address: str, tmp_path: Path) -> None:
    root = checkout("AGENT_FRAMEWORK") / "python" / "packages" / "core" / "tests" / "core"
    outcomes = run_suite(
        [root / "test_sessions.py"],
        "swap_agent_framework",
        tmp_path,
        env={"CONFORMANCE_SERVER": address},
        arguments=["--noconftest"],
    )
    passed = [name for name, outcome in outcomes.items() if outcome == "passed"]
    assert {name.rpartition("::")[2].partition("[")[0] for name in passed} == PASSED
    assert len(passed) == 8


@pytest_asyncio.fixture
async def provider(address: str, namespace: str) -> AsyncIterator[MemoryServiceContextProvider]:
    async with MemoryServiceContextProvider(address, namespace=namespace) as made:
        yield made


def said(role: str, text: str, **more: Any) -> Message:
    return Message(role=role, contents=[text], **more)


async def test_messages_come_back_as_they_were_saved(provider: MemoryServiceContextProvider) -> None:
    messages = [
        said(
            "user", "Find me a train \x00 to Paris", author_name="Ada", additional_properties={"big": 2**70}
        ),
        Message("assistant", [Content.from_function_call("c", "trains", arguments='{"to": "Paris"}')]),
        Message("tool", [Content.from_function_result("c", result={"departs": ["12:04"]})]),
        Message("user", [Content.from_data(b"\xff" * 300_000, "image/png")]),
        said("assistant", "It leaves at noon.", message_id="m1"),
    ]
    await provider.save_messages("a/b*", messages)
    await provider.save_messages("a/b", [said("user", "another session")])
    loaded = await provider.get_messages("a/b*")
    assert [message.to_dict() for message in loaded] == [message.to_dict() for message in messages]


async def test_what_is_stored_twice_is_what_the_framework_stores_twice(
    provider: MemoryServiceContextProvider,
) -> None:
    rng = random.Random(1)
    local = InMemoryHistoryProvider()
    turns = [
        said(*each) for each in (("user", "hi"), ("assistant", "hello"), ("user", "yes"), ("user", "yes"))
    ]
    turns += [said("assistant", "done", message_id="m1"), said("user", "again", message_id="m2")]
    for number in range(20):
        session_id, state = f"session {number}", dict[str, Any]()
        for turn in range(4):
            start = rng.randrange(len(turns)) if turn > 1 else 0
            batch = turns[start : start + (rng.randrange(1, 4) if turn else 1)]
            if rng.random() < 0.3:
                batch = [*(await local.get_messages(session_id, state=state))[-6:], *batch]
            for each in (provider, local):
                await each.save_messages(session_id, batch, state=state)
            stored, expected = [
                await each.get_messages(session_id, state=state) for each in (provider, local)
            ]
            assert [message.text for message in stored] == [message.text for message in expected]


class Scripted(BaseChatClient):  # type: ignore[type-arg]
    """A model that answers with all that it was sent."""

    async def _inner_get_response(  # type: ignore[override]
        self, *, messages: MutableSequence[Message], stream: bool, options: dict[str, Any], **_: Any
    ) -> ChatResponse:
        said_before = " | ".join(message.text for message in messages)
        return ChatResponse(messages=said("assistant", f"I read {len(messages)}: {said_before}"))


async def test_an_agent_has_its_session_and_remembers_others(
    provider: MemoryServiceContextProvider, async_memory: AsyncMemoryClient
) -> None:
    agent = Agent(client=Scripted(), context_providers=[provider])
    first = AgentSession(session_id="first")
    await agent.run("My favourite drink is green tea", session=first)
    again = await agent.run("And trains", session=AgentSession(session_id="first"))
    assert again.text.startswith("I read 3: My favourite drink is green tea | I read 1: ")
    own = await agent.run("What is my favourite drink?", session=AgentSession(session_id="first"))
    assert own.text.startswith("I read 5: My favourite drink is green tea")
    assert "## Memories" not in own.text

    other = await agent.run("What is my favourite drink?", session=AgentSession(session_id="second"))
    assert other.text.startswith("I read 2: ## Memories\n")
    assert "user: My favourite drink is green tea" in other.text

    unrelated = await agent.run("Compute 17 times 23", session=AgentSession(session_id="third"))
    assert unrelated.text == "I read 1: Compute 17 times 23"
    found = await async_memory.retrieve("green tea", session_id="first", filter="role = user")
    assert found[0].text == "My favourite drink is green tea"


async def test_facts_are_recalled(
    provider: MemoryServiceContextProvider, async_memory: AsyncMemoryClient
) -> None:
    await async_memory.save_memory("I live in Paris", "identity", "Where the user lives")
    agent = Agent(client=Scripted(), context_providers=[provider])
    answer = await agent.run("In which city does the user live?", session=AgentSession())
    assert "User lives in Paris" in answer.text
