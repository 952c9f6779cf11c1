"""The store for Pydantic AI Harness, by its tests of stores and where they are silent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_harness.memory import (
    InMemoryStore,
    Memory,
    MemoryConflictError,
    MemoryOperation,
    MemoryOperationConflictError,
    MetadataMemoryStore,
)

from memory_client import AsyncMemoryClient
from memory_client.pydantic_ai import MemoryServiceMemoryStore
from repositories import checkout, run_suite


def test_the_tests_of_stores_pass(address: str, tmp_path: Path) -> None:
    suite = checkout("PYDANTIC_AI") / "tests" / "memory" / "test_stores.py"
    arguments = ["--noconftest", "-k", "local_store or bundled_stores"]
    outcomes = run_suite(
        [suite], "swap_pydantic_ai", tmp_path, env={"CONFORMANCE_SERVER": address}, arguments=arguments
    )
    assert set(outcomes.values()) == {"passed"}
    assert len(outcomes) >= 39


@pytest_asyncio.fixture
async def store(address: str, namespace: str) -> AsyncIterator[MemoryServiceMemoryStore]:
    async with MemoryServiceMemoryStore(address, namespace=namespace) as made:
        yield made


async def test_metadata_and_operation_are_those_of_the_last_write(
    store: MemoryServiceMemoryStore, async_memory: AsyncMemoryClient
) -> None:
    assert isinstance(store, MetadataMemoryStore)
    operation = MemoryOperation("run:call", "write")
    first = await store.write_with_metadata(
        "a.md", "one", expected_version=None, metadata={"by": "ada"}, operation=operation
    )
    file = await store.read("a.md", max_chars=10)
    assert file is not None
    assert (file.metadata, file.operation_id) == ({"by": "ada"}, "run:call")

    second = await store.write("a.md", "one", expected_version=first.version)
    file = await store.read("a.md", max_chars=10)
    assert file is not None
    assert (file.metadata, file.operation_id, file.version) == (None, None, second.version)

    await store.write_with_metadata("a.md", "two", expected_version=second.version, metadata={"by": "bob"})
    await async_memory.write_file("/memories/a.md", "by another tool")
    file = await store.read("a.md", max_chars=100)
    assert file is not None
    assert (file.content, file.metadata) == ("by another tool", None)


async def test_a_receipt_has_the_version_of_its_write(store: MemoryServiceMemoryStore) -> None:
    operations = [MemoryOperation(f"call {number}", "same") for number in range(4)]
    version, versions = None, []
    for number, operation in enumerate(operations):
        text = f"{'words ' * 3000 * number}{number}"
        version = (await store.write("a.md", text, expected_version=version, operation=operation)).version
        versions.append(version)
    receipts = [await store.get_operation(operation) for operation in operations]
    assert [receipt.version if receipt else None for receipt in receipts] == versions
    assert [receipt.existed if receipt else None for receipt in receipts] == [False, True, True, True]

    await store.delete("a.md", expected_version=version, operation=MemoryOperation("delete", "d"))
    replay = await store.delete("a.md", expected_version=version, operation=MemoryOperation("delete", "d"))
    assert (replay.version, replay.replayed, replay.existed) == (None, True, True)
    gone = await store.write("a.md", "x", expected_version=None, operation=operations[0])
    assert gone.replayed
    assert gone.version is not None
    with pytest.raises(MemoryConflictError):
        await store.write("a.md", "x", expected_version=gone.version)
    with pytest.raises(MemoryOperationConflictError):
        await store.write("b.md", "x", expected_version=None, operation=MemoryOperation("call 0", "other"))
    assert await store.list_paths(limit=10) == []


async def test_of_equal_writes_at_once_one_is_applied(address: str, namespace: str) -> None:
    async with (
        MemoryServiceMemoryStore(address, namespace=namespace) as one,
        MemoryServiceMemoryStore(address, namespace=namespace) as two,
    ):
        operation = MemoryOperation("call", "write")
        stores = [one, two] * 4
        written = await asyncio.gather(
            *(store.write("a.md", "x", expected_version=None, operation=operation) for store in stores)
        )
        assert [each.replayed for each in written].count(False) == 1
        assert len({each.version for each in written}) == 1

        async def raced(store: MemoryServiceMemoryStore, number: int) -> bool:
            try:
                await store.write("a.md", str(number), expected_version=written[0].version)
            except MemoryConflictError:
                return False
            return True

        assert sum(await asyncio.gather(*(raced(store, n) for n, store in enumerate(stores)))) == 1


async def test_a_search_of_many_files_finds_the_best(store: MemoryServiceMemoryStore) -> None:
    local = InMemoryStore()
    for number in range(60):
        text = f"Note {number} about {'trains to Paris' if number == 42 else 'tea'}"
        for each in (store, local):
            await each.write(f"main/note-{number}.md", text, expected_version=None)
            await each.write(f"main/deeper/note-{number}.md", text, expected_version=None)
    bounds: dict[str, Any] = {"limit": 5, "max_files": 100, "max_chars": 500, "max_file_chars": 100}
    found, expected = [await each.search("main/", "trains paris", **bounds) for each in (store, local)]
    assert found == expected
    assert found.scanned == 60


async def test_an_agent_remembers(store: MemoryServiceMemoryStore) -> None:
    seen: list[str] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(f"{info.instructions} {messages}")
        names = [tool.name for tool in info.function_tools]
        if len(messages) == 1 and len(seen) == 1:
            assert "write_memory" in names, names
            return ModelResponse(parts=[ToolCallPart("write_memory", {"content": "Ada likes tea"})])
        return ModelResponse(parts=[TextPart("done")])

    for prompt in ("I like tea", "What do I like?"):
        agent = Agent(FunctionModel(model), capabilities=[Memory(store, agent_name="guide")])
        assert (await agent.run(prompt)).output == "done"
    assert await store.list_paths(limit=10) != []
    assert "Ada likes tea" in seen[-1]
