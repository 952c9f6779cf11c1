"""The checkpointer of LangGraph: the packaged conformance tests, and what they leave out."""

from __future__ import annotations

import operator
import uuid
from collections.abc import AsyncIterator
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from memory_client import AsyncMemoryClient, MemoryClient
from memory_client.langgraph import MemoryServiceSaver


@pytest.mark.parametrize("kind", ["address", "client", "asynchronous client"])
async def test_the_packaged_tests_pass(kind: str, address: str) -> None:
    async def saver() -> AsyncIterator[MemoryServiceSaver]:
        namespace = f"test/{uuid.uuid4()}"
        if kind == "address":
            async with MemoryServiceSaver(address, namespace=namespace) as made:
                yield made
        elif kind == "client":
            with MemoryClient(address, namespace=namespace) as client:
                async with MemoryServiceSaver(client) as made:
                    yield made
        else:
            async with AsyncMemoryClient(address, namespace=namespace) as client_:
                yield MemoryServiceSaver(client_)

    report = await validate(checkpointer_test(name=f"MemoryServiceSaver of {kind}")(saver))
    assert {name: result.failures for name, result in report.results.items() if not result.passed} == {}
    assert len(report.results) == 8
    assert sum(result.tests_passed for result in report.results.values()) == 81


@pytest.fixture
def saver(memory: MemoryClient) -> MemoryServiceSaver:
    """A checkpointer of the namespace."""
    return MemoryServiceSaver(memory)


class State(TypedDict):
    """The state of a graph that adds to a list."""

    said: Annotated[list[str], operator.add]


def ask(state: State) -> dict[str, Any]:
    return {"said": [f"answered {interrupt('what?')}"]}


def graph_with(saver: MemoryServiceSaver) -> Any:
    graph = StateGraph(State).add_node(ask).add_edge(START, "ask").add_edge("ask", END)
    return graph.compile(checkpointer=saver)


def test_a_graph_resumes_in_another_process(saver: MemoryServiceSaver, address: str, namespace: str) -> None:
    config: Any = {"configurable": {"thread_id": "trip"}}
    assert graph_with(saver).invoke({"said": ["hi"]}, config)["__interrupt__"][0].value == "what?"
    with MemoryServiceSaver(address, namespace=namespace) as other:
        result = graph_with(other).invoke(Command(resume="tea"), config)
        assert result["said"] == ["hi", "answered tea"]
        history = list(graph_with(other).get_state_history(config))
    assert [len(state.values.get("said", [])) for state in history] == [2, 1, 0]


def put(saver: MemoryServiceSaver, thread: str, value: Any, number: int = 0, **metadata: Any) -> Any:
    checkpoint = {**empty_checkpoint(), "id": f"{number:08}", "channel_values": {"x": value}}
    config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    return saver.put(config, checkpoint, {"source": "loop", "step": number, **metadata}, {})  # type: ignore[arg-type, typeddict-item]


def test_values_above_a_megabyte_come_back_and_are_copied_and_deleted(
    saver: MemoryServiceSaver, memory: MemoryClient
) -> None:
    large = "é" * 1_700_000
    config = put(saver, "large", large)
    saver.put_writes(config, [("x", large), ("y", 1)], "task")
    for _ in range(2):
        saver.put_writes(config, [("x", "other")], "task")  # It is kept.
    saver.copy_thread("large", "copy")
    for thread in ("large", "copy"):
        found = saver.get_tuple({"configurable": {"thread_id": thread}})
        assert found is not None
        assert found.checkpoint["channel_values"] == {"x": large}
        assert found.pending_writes == [("task", "x", large), ("task", "y", 1)]
    saver.delete_thread("large")
    saver.prune(["copy"], strategy="delete")
    assert list(memory.list_items()) == []


@pytest.mark.parametrize("thread", ["t" * 1000, "李雷|+1 ü\n", "0"])
def test_any_thread_id_will_do(saver: MemoryServiceSaver, thread: str) -> None:
    put(saver, thread, 1)
    found = list(saver.list({"configurable": {"thread_id": thread}}))
    assert [each.config["configurable"]["thread_id"] for each in found] == [thread]
    saver.delete_thread(thread)
    assert list(saver.list(None)) == []


def test_more_checkpoints_than_a_page_come_newest_first(saver: MemoryServiceSaver) -> None:
    for number in range(120):
        put(saver, "long", number, number, parity={"odd": number % 2 == 1})
    config: Any = {"configurable": {"thread_id": "long"}}
    assert [each.metadata["step"] for each in saver.list(config)] == list(reversed(range(120)))
    assert [each.metadata["step"] for each in saver.list(config, filter={"step": 7})] == [7]
    assert len(list(saver.list(config, filter={"none": None}))) == 120
    odd = saver.list(config, filter={"parity": {"odd": True}}, limit=55)
    assert [each.metadata["step"] for each in odd] == list(range(119, 9, -2))


def test_pruning_keeps_what_restores_a_delta_channel(saver: MemoryServiceSaver) -> None:
    config: Any = {"configurable": {"thread_id": "delta", "checkpoint_ns": ""}}
    for number in range(5):
        checkpoint = {
            **empty_checkpoint(),
            "id": str(number),
            "channel_values": {"x": 0} if number == 2 else {},
        }
        metadata = {"step": number, "counters_since_delta_snapshot": {"x": (number, number)}}
        config = saver.put(config, checkpoint, metadata, {})  # type: ignore[arg-type]
    saver.prune(["delta"])
    kept = saver.list({"configurable": {"thread_id": "delta"}})
    assert [each.config["configurable"]["checkpoint_id"] for each in kept] == ["4", "3", "2"]
