"""The session for the OpenAI Agents SDK: with the real SDK, and item by item beside its own session."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import agents
import pytest
import pytest_asyncio
from agents import Agent, ModelResponse, RunConfig, Runner, SQLiteSession, Usage, function_tool
from agents.memory import Session, SessionSettings
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
)
from openai.types.responses.response_reasoning_item import Summary

from memory_client import (
    AsyncMemoryClient,
    ChatMessage,
    InvalidArgument,
    LimitExceeded,
    MemoryClient,
    ToolCall,
    ToolCallResult,
)
from memory_client.openai_agents import MemorySession
from server_process import ServerProcess

agents.set_tracing_disabled(True)
README = Path(__file__).parents[1] / "clients" / "python" / "README.md"


@pytest_asyncio.fixture
async def memory(server: ServerProcess, namespace: str) -> AsyncIterator[AsyncMemoryClient]:
    async with AsyncMemoryClient(server.address, namespace=namespace) as client:
        yield client


@pytest.fixture
def session(memory: AsyncMemoryClient) -> MemorySession:
    return MemorySession("trip", memory)


def said(role: str, text: str) -> Any:
    return {"role": role, "content": text}


ODD: list[Any] = [
    said("user", "Find me a train to Paris"),
    {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
    {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "The user wants a train."}],
        "encrypted_content": "gAAAA" * 5000,
        "content": None,
    },
    {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "trains",
        "arguments": '{"to":"Paris","seat":9007199254740993, "spaces" : true}',
        "status": "completed",
    },
    {"type": "function_call_output", "call_id": "call_1", "output": '{"departs":"12:04"}'},
    {"type": "function_call_output", "call_id": "call_2", "output": "word " * 60_000},
    {
        "type": "message",
        "role": "user",
        "content": [
            {"type": "input_text", "text": "Which animal is this?"},
            {
                "type": "input_image",
                "image_url": "data:image/png;base64," + "iVBO" * 400_000,
                "detail": "auto",
            },
            {"type": "input_image", "image_url": "https://example.org/cat.png", "detail": "low"},
            {"type": "input_file", "filename": "plan.pdf", "file_data": "JVBE" * 100},
            {"type": "input_audio", "input_audio": {"data": "AAAA" * 100, "format": "wav"}},
        ],
    },
    {"type": "image_generation_call", "id": "ig_1", "result": "/9j/" * 1000, "status": "completed"},
    {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "ok", "stderr": ""}], "exit": None},
    {
        "type": "web_search_call",
        "id": "ws_1",
        "action": {"type": "search", "query": "Paris", "n": 2**53 + 1, "x": -(2**200), "y": 1e308, "z": 0.1},
    },
    {"type": "item_reference", "id": "msg \u0000\n1"},
    {"type": "unheard of", "deep": json.loads("[" * 60 + "]" * 60), "keys": {"": [], "ü": {}}, "f": 1.0},
    {"type": "function_call", "call_id": "", "name": "n\u0007" + "o" * 2000, "arguments": "no JSON"},
    {
        "role": "assistant",
        "content": [{"type": "output_text", "text": "à 🚂 \ud83d \u0000 \u2028", "annotations": []}],
    },
    {"role": "assistant", "content": [{"type": "refusal", "refusal": "I may not."}]},
    {"role": "user", "content": ""},
    {"role": "user", "content": [{"type": "input_text", "text": f"part {number}"} for number in range(400)]},
    {"type": ["no", "type"], "role": None},
    ["not", "an", {"object": True}],
    "a text",
    {},
]


async def test_it_is_a_session_of_the_sdk(session: MemorySession) -> None:
    assert isinstance(session, Session)
    assert (session.session_id, session.session_settings) == ("trip", SessionSettings())
    for id in ("", None):
        with pytest.raises(InvalidArgument, match="session_id"):
            MemorySession(id, session._client)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "settings", [{"limt": 5}, {"limit": 5, "x": 1}, {"limit": "many"}, 5, "limit"], ids=str
)
async def test_unknown_settings_are_refused(memory: AsyncMemoryClient, settings: Any) -> None:
    with pytest.raises(InvalidArgument) as caught:
        MemorySession("trip", memory, session_settings=settings)
    assert caught.value.field == "session_settings"


CHANGES: dict[str, tuple[Callable[[MemorySession], Coroutine[Any, Any, Any]], int]] = {
    "add_items": (lambda session: session.add_items([said("user", "x")] * 300), 600),
    "pop_item": (lambda session: session.pop_item(), 299),
    "clear_session": (lambda session: session.clear_session(), 0),
}


@pytest.mark.parametrize(("change", "left"), CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("times", [1, 2])
async def test_a_cancelled_change_is_completed(
    session: MemorySession,
    change: Callable[[MemorySession], Coroutine[Any, Any, Any]],
    left: int,
    times: int,
) -> None:
    await session.add_items([said("user", "x")] * 300)
    task = asyncio.create_task(change(session))
    for _ in range(times):
        await asyncio.sleep(0)
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(await session.get_items()) == left


async def test_a_cancelled_change_that_fails_is_cancelled(session: MemorySession) -> None:
    task = asyncio.create_task(session.add_items([said("user", "word " * 2_000)] * 2000))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await session.get_items() == []


def test_a_session_lives_in_one_event_loop_after_another(server: ServerProcess, namespace: str) -> None:
    session = MemorySession("trip", AsyncMemoryClient(server.address, namespace=namespace))
    asyncio.run(session.add_items([said("user", "first")]))
    asyncio.run(session.add_items([said("user", "second")]))
    assert asyncio.run(session.pop_item()) == said("user", "second")
    assert asyncio.run(session.get_items()) == [said("user", "first")]
    asyncio.run(session._client.close())


async def test_items_come_back_verbatim(session: MemorySession) -> None:
    await session.add_items(ODD)
    for item in ODD:
        await session.add_items([item])
    found = await session.get_items()
    # As text, because in Python 1 == 1.0 == True.
    assert [json.dumps(item) for item in found] == [json.dumps(item) for item in [*ODD, *ODD]]
    for item in reversed(ODD):
        assert json.dumps(await session.pop_item()) == json.dumps(item)
    assert await session.get_items() == ODD


@pytest.mark.parametrize("limit", [None, 0, 1, 3, 5, 6, 100, -1, -5])
@pytest.mark.parametrize("setting", [None, 0, 2])
async def test_limits_mean_what_they_mean_to_the_sdks_own_session(
    memory: AsyncMemoryClient, limit: int | None, setting: int | None
) -> None:
    settings = SessionSettings(limit=setting)
    ours = MemorySession("s", memory, session_settings=settings)
    theirs = SQLiteSession("s", session_settings=settings)
    items = [said("user", f"number {number}") for number in range(5)]
    for each in (ours, theirs):
        await each.add_items(items)
    assert await ours.get_items(limit) == await theirs.get_items(limit)
    assert await ours.get_items(limit=limit) == await theirs.get_items(limit=limit)
    theirs.close()


async def test_an_empty_session(session: MemorySession) -> None:
    assert await session.get_items() == []
    assert await session.pop_item() is None
    await session.clear_session()
    await session.add_items([])
    assert await session.get_items(3) == []


async def test_more_than_a_thousand_items_are_one_write(
    session: MemorySession, memory: AsyncMemoryClient
) -> None:
    items = [said("user", f"number {number}") for number in range(2501)]
    await session.add_items(items)
    # A record holds several items, so that all of them fit into one batch.
    assert (await memory.namespace_stats()).item_count <= 1000
    assert await session.get_items() == items
    assert await session.get_items(1500) == items[-1500:]
    assert await session.get_items(1) == items[-1:]
    assert [await session.pop_item() for _ in range(4)] == items[:-5:-1]
    await session.add_items([said("assistant", "four less")])
    assert await session.get_items(3) == [*items[-6:-4], said("assistant", "four less")]
    found = await memory.retrieve("2350", mode="lexical")
    assert "user: number 2350" in found[0].text


async def test_what_cannot_be_written_writes_nothing(session: MemorySession) -> None:
    await session.add_items([said("user", "first")])
    with pytest.raises(LimitExceeded):
        await session.add_items([said("user", "second"), said("user", "x" * 3_000_000)])
    with pytest.raises(InvalidArgument, match="items: an item is not JSON"):
        await session.add_items([said("user", "second"), {"role": "user", "content": object()}])  # type: ignore[typeddict-item]
    with pytest.raises(LimitExceeded):
        await session.add_items([said("user", "word " * 2_000)] * 2000)
    assert await session.get_items() == [said("user", "first")]
    largest = said("user", "x" * 1_990_000)
    await session.add_items([largest])
    assert await session.get_items(1) == [largest]


async def test_concurrent_pops_each_get_another_item(server: ServerProcess, namespace: str) -> None:
    items = [said("user", f"number {number}") for number in range(40)]
    async with (
        AsyncMemoryClient(server.address, namespace=namespace) as one,
        AsyncMemoryClient(server.address, namespace=namespace) as other,
    ):
        sessions = [MemorySession("s", one), MemorySession("s", other)]
        await sessions[0].add_items(items)
        popped = await asyncio.gather(*(sessions[number % 2].pop_item() for number in range(50)))
    assert sorted(map(str, filter(None, popped))) == sorted(map(str, items))
    assert popped.count(None) == 10


async def test_concurrent_pops_of_items_that_share_a_record(session: MemorySession) -> None:
    items = [said("user", f"number {number}") for number in range(2010)]
    await session.add_items(items)
    popped = await asyncio.gather(*(session.pop_item() for _ in range(10)))
    assert sorted(map(str, popped)) == sorted(map(str, items[-10:]))
    assert await session.get_items() == items[:-10]


async def test_clearing_removes_this_session_and_nothing_else(
    session: MemorySession, memory: AsyncMemoryClient, namespace: str
) -> None:
    other = MemorySession("other", memory)
    elsewhere = MemorySession("trip", memory.namespace(namespace + "/b"))
    items = [said("user", f"number {number}") for number in range(150)]
    for each in (session, other, elsewhere):
        await each.add_items(items)
    plain = await memory.add("not the SDK's", session_id="trip")
    await memory.save_state("trip", {"step": 1})
    await memory.store_interaction("ada", "hello", session_id="trip")
    await session.clear_session()
    assert await session.get_items() == []
    assert await other.get_items() == await elsewhere.get_items() == items
    assert [item.id async for item in memory.list_items(session_id="trip", kinds=["plain"])] == [plain.id]
    assert len(await memory.retrieve_last_interactions()) == 1
    assert (await memory.load_state("trip")).value == {"step": 1}
    await session.add_items(items[:2])
    assert await session.get_items() == items[:2]


async def test_sessions_of_one_id_in_two_namespaces_are_two(
    session: MemorySession, memory: AsyncMemoryClient, namespace: str
) -> None:
    await session.add_items([said("user", "here")])
    assert await MemorySession("trip", memory.namespace(namespace + "/b")).get_items() == []
    assert await MemorySession("trip/b", memory).get_items() == []


def test_other_clients_read_and_find_what_was_said(server: ServerProcess, namespace: str) -> None:
    async def write() -> None:
        async with AsyncMemoryClient(server.address, namespace=namespace) as memory:
            await MemorySession("trip", memory).add_items(ODD)

    asyncio.run(write())
    with MemoryClient(server.address, namespace=namespace) as client:
        read = [item.content for item in client.list_items(session_id="trip")]
        assert len(read) == len(ODD)
        messages = [content for content in read if isinstance(content, ChatMessage)]
        assert len(messages) == len(ODD)
        assert (str(messages[0].role), messages[0].parts) == ("user", ("Find me a train to Paris",))
        assert (str(messages[1].role), messages[1].text) == ("system", "Be brief.")
        assert (str(messages[2].role), messages[2].parts[0]) == ("assistant", "The user wants a train.")
        call = messages[3].parts[0]
        assert isinstance(call, ToolCall)
        assert (call.name, call.tool_call_id) == ("trains", "call_1")
        assert call.arguments == {"to": "Paris", "seat": "9007199254740993", "spaces": True}
        result = messages[4].parts[0]
        assert isinstance(result, ToolCallResult)
        assert (str(messages[4].role), result.tool_call_id) == ("tool", "call_1")
        assert messages[6].text.startswith(
            "Which animal is this?\n[image/png]\n[file https://example.org/cat.png]\n"
        )
        assert "iVBOiVBO" not in messages[6].text and "gAAAA" not in messages[2].text
        assert messages[7].parts[0] == {
            "type": "image_generation_call",
            "id": "ig_1",
            "result": "[4000 characters]",
            "status": "completed",
        }
        for query, at in (("train to Paris", 0), ("departs", 4), ("animal", 6)):
            found = client.retrieve(query, mode="lexical", session_id="trip", limit=3)
            assert messages[at] in [result.item.content for result in found], query


# The real SDK: the same runs over both sessions.


class Scripted(agents.Model):
    """A model that gives scripted answers and records its inputs."""

    def __init__(self, outputs: Sequence[list[Any]]) -> None:
        self._outputs = list(outputs)
        self.asked: list[Any] = []

    async def get_response(
        self, system_instructions: Any, input: Any, *rest: Any, **more: Any
    ) -> ModelResponse:
        self.asked.append(json.loads(json.dumps(input)))
        return ModelResponse(output=self._outputs.pop(0), usage=Usage(), response_id=None)

    def stream_response(self, *arguments: Any, **more: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


@function_tool
def departures(to: str) -> str:
    """Return when trains leave."""
    return json.dumps({"to": to, "departs": "12:04", "id": 2**53 + 1})


def message(id: str, text: str) -> ResponseOutputMessage:
    content = ResponseOutputText(text=text, type="output_text", annotations=[], logprobs=[])
    return ResponseOutputMessage(
        id=id, content=[content], role="assistant", status="completed", type="message"
    )


def script() -> list[list[Any]]:
    thought = ResponseReasoningItem(
        id="rs_1",
        type="reasoning",
        summary=[Summary(text="A train is needed.", type="summary_text")],
        encrypted_content="opaque" * 20,
    )
    call = ResponseFunctionToolCall(
        id="fc_1", call_id="call_1", name="departures", arguments='{ "to": "Paris"}', type="function_call"
    )
    return [
        [thought, call],
        [message("msg_1", "It leaves at 12:04.")],
        [message("msg_2", "To Paris, as I said.")],
    ]


async def turn(model: Scripted, session: Session, text: str) -> str:
    agent = Agent(name="guide", instructions="Help.", model=model, tools=[departures])
    config = RunConfig(tracing_disabled=True)
    result = await Runner.run(agent, text, session=session, run_config=config)
    return str(result.final_output)


async def test_a_run_with_a_tool_over_two_turns_and_a_restart_of_the_server(tmp_path: Path) -> None:
    theirs, their_model = SQLiteSession("trip"), Scripted(script())
    our_model = Scripted(script())
    for text in ("Find me a train", "Where to?"):
        await turn(their_model, theirs, text)
    with ServerProcess(tmp_path) as first:
        async with AsyncMemoryClient(first.address, namespace="ada") as memory:
            answer = await turn(our_model, MemorySession("trip", memory), "Find me a train")
            assert answer == "It leaves at 12:04."
        assert first.terminate() == 0
    with ServerProcess(tmp_path) as second:
        async with AsyncMemoryClient(second.address, namespace="ada") as memory:
            session = MemorySession("trip", memory)
            assert await turn(our_model, session, "Where to?") == "To Paris, as I said."
            items = await session.get_items()
            kept = await theirs.get_items()
    assert [json.dumps(item) for item in items] == [json.dumps(item) for item in kept]
    assert [item.get("type", item.get("role")) for item in items] == [
        "user",
        "reasoning",
        "function_call",
        "function_call_output",
        "message",
        "user",
        "message",
    ]
    assert our_model.asked == their_model.asked
    assert len(our_model.asked[2]) == 6
    theirs.close()


async def test_a_session_limit_of_the_run_is_honoured(memory: AsyncMemoryClient) -> None:
    session = MemorySession("trip", memory)
    await session.add_items([said("user", f"number {number}") for number in range(10)])
    model = Scripted([[message("msg_1", "Yes.")]])
    agent = Agent(name="guide", model=model)
    config = RunConfig(tracing_disabled=True, session_settings=SessionSettings(limit=2))
    await Runner.run(agent, "Now?", session=session, run_config=config)
    assert [item["content"] for item in model.asked[0]] == ["number 8", "number 9", "Now?"]


def test_the_example_of_the_readme_runs(server: ServerProcess, namespace: str, capsys: Any) -> None:
    (example,) = re.findall(r"```python\n([^`]*MemorySession[^`]*)```", README.read_text())
    code = example.replace("127.0.0.1:50051", server.address).replace('"ada"', repr(namespace))
    # Readers use a provider's model, the test its own.
    code = code.replace('Agent(name="guide"', 'Agent(name="guide", model=model')
    exec(compile(code, "README.md", "exec"), {"model": Scripted([[message("m", "At noon.")]])})
    assert capsys.readouterr().out == "At noon.\n"
