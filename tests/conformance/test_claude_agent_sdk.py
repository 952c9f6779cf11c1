"""The store of transcripts, by the SDK's own conformance suite and where it is silent."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import Any

import pytest
from claude_agent_sdk import list_sessions_from_store, project_key_for_directory
from claude_agent_sdk.testing import run_session_store_conformance

from memory_client import AsyncMemoryClient, LimitExceeded, MemoryServiceError
from memory_client.claude_agent_sdk import MemoryServiceSessionStore

KEY: Any = {"project_key": "/home/ada/[x]*", "session_id": "trip"}


def said(role: str, content: Any, **more: Any) -> Any:
    message = {"role": role, "content": content}
    return {"type": role, "uuid": uuid.uuid4().hex, "message": message, **more}


@pytest.fixture
def store(async_memory: AsyncMemoryClient) -> MemoryServiceSessionStore:
    return MemoryServiceSessionStore(async_memory)


async def test_the_sdks_conformance_suite_passes(async_memory: AsyncMemoryClient) -> None:
    await run_session_store_conformance(
        lambda: MemoryServiceSessionStore(async_memory, namespace=f"test/{uuid.uuid4().hex}")
    )


async def test_entries_come_back_as_they_were_appended(store: MemoryServiceSessionStore) -> None:
    entries = [
        said("user", "Find me a train \ud800 to Paris", big=2**70, fraction=1e-320, nothing=None),
        said("assistant", [{"type": "tool_use", "id": "c", "name": "trains", "input": {"deep": [[[[]]]]}}]),
        said("user", [{"type": "tool_result", "tool_use_id": "c", "content": "x" * 100_000}]),
        said("user", [{"type": "image", "source": {"data": "QUJD" * 1_000_000}}]),
        {"type": "custom-title", "customTitle": "Trip"},
    ]
    await store.append(KEY, entries)
    assert await store.load(KEY) == entries


async def test_an_entry_is_kept_once(store: MemoryServiceSessionStore) -> None:
    first, second = said("user", "one"), said("user", "A" * 1_500_000)
    await store.append(KEY, [first, first, second])
    await store.append(KEY, [second, {**first, "changed": True}])
    assert await store.load(KEY) == [first, second]
    other: Any = {**KEY, "subpath": "subagents/agent-1"}
    await store.append(other, [first])
    assert await store.load(other) == [first]


async def test_many_entries_keep_their_order(store: MemoryServiceSessionStore) -> None:
    entries = [said("user", f"entry {number}") for number in range(2500)]
    await asyncio.gather(*(store.append(KEY, entries[at : at + 500]) for at in range(0, 2500, 500)))
    assert await store.load(KEY) == entries


async def test_stores_that_append_at_once_lose_nothing(address: str, namespace: str) -> None:
    async with (
        MemoryServiceSessionStore(address, namespace=namespace) as one,
        MemoryServiceSessionStore(address, namespace=namespace) as two,
    ):
        texts = [f"entry {number}" for number in range(20)]
        appends = [store.append(KEY, [said("user", text)]) for text in texts for store in (one, two)]
        await asyncio.gather(*appends)
        loaded = await one.load(KEY)
        assert loaded is not None
        assert sorted(entry["message"]["content"] for entry in loaded) == sorted(texts * 2)
        assert [each["session_id"] for each in await two.list_sessions(KEY["project_key"])] == ["trip"]

        fields = ["customTitle", "aiTitle", "lastPrompt", "summary", "gitBranch"]
        entries: list[Any] = [{"type": "x", field: field} for field in fields]
        stores = (one, two, one, two, one)
        await asyncio.gather(
            *(each.append(KEY, [entry]) for each, entry in zip(stores, entries, strict=True))
        )
        (summary,) = await one.list_session_summaries(KEY["project_key"])
        assert set(fields) <= set(summary["data"].values())


async def test_the_sdk_lists_sessions_by_their_summaries(
    store: MemoryServiceSessionStore, tmp_path: Any
) -> None:
    project = project_key_for_directory(str(tmp_path))
    key: Any = {"project_key": project, "session_id": str(uuid.uuid4())}
    await store.append(key, [said("user", "Find me a train", timestamp="2026-01-02T03:04:05.678Z")])
    (listed,) = await list_sessions_from_store(store, directory=str(tmp_path))
    assert (listed.session_id, listed.first_prompt) == (key["session_id"], "Find me a train")


async def test_what_was_said_is_found(
    store: MemoryServiceSessionStore, async_memory: AsyncMemoryClient
) -> None:
    meta = said("user", "Caveat: a train of thought", isMeta=True)
    await store.append(
        KEY, [said("user", "Find me a train to Paris"), meta, {"type": "mode", "mode": "train"}]
    )
    found = await async_memory.retrieve("train", session_id="trip")
    assert {(result.item.content.role, result.text) for result in found} == {  # type: ignore[union-attr]
        ("user", "Find me a train to Paris"),
        ("system", "Caveat: a train of thought"),
    }


async def test_errors_are_the_clients(store: MemoryServiceSessionStore) -> None:
    with pytest.raises(LimitExceeded):
        await store.append(KEY, [said("user", "A" * 20_000_000)])
    assert await store.load(KEY) is None
    unreachable = MemoryServiceSessionStore("127.0.0.1:1")
    with pytest.raises(MemoryServiceError):
        await unreachable.append(KEY, [json.loads('{"type": "x"}')])
    await unreachable.aclose()
