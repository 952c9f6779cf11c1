"""The tools of `memory-service mcp`, over stdio by the SDK's own client, against a real server."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from mcp import Client
from mcp.shared.exceptions import MCPError

from credentials import keys_in
from mcp_hosts import answer, failure, for_fixture, host, parameters
from memory_client import MemoryClient, chat_message
from server_process import ServerProcess

TOOLS = {
    "remember",
    "recall",
    "recent",
    "forget",
    "list_memories",
    "save_state",
    "load_state",
    "read_file",
    "write_file",
    "edit_file",
    "list_files",
    "search_files",
}


@pytest_asyncio.fixture
async def agent(server: ServerProcess, namespace: str, tmp_path: Path) -> AsyncIterator[Client]:
    """A host with the default tools."""
    async with for_fixture(host(tmp_path, parameters(server.address, namespace))) as client:
        yield client


async def test_the_tools_and_what_hosts_are_told_about_them(agent: Client) -> None:
    tools = {tool.name: tool for tool in (await agent.list_tools()).tools}
    assert set(tools) == TOOLS
    for tool in tools.values():
        assert (
            tool.description is not None and tool.annotations is not None and tool.output_schema is not None
        )
        assert "\n" not in tool.description.replace("\n\n", "")
        assert tool.annotations.open_world_hint is False
        schemas = json.dumps([tool.input_schema, tool.output_schema])
        assert "$ref" not in schemas
        assert "namespace" not in schemas
        assert tool.input_schema["additionalProperties"] is False
        for field in tool.input_schema["properties"].values():
            assert field["description"]
    read_only = {name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint}
    assert read_only == {
        "recall",
        "recent",
        "list_memories",
        "load_state",
        "read_file",
        "list_files",
        "search_files",
    }
    destructive = {
        name for name, tool in tools.items() if tool.annotations and tool.annotations.destructive_hint
    }
    assert destructive == {"forget", "save_state", "write_file", "edit_file"}
    assert agent.instructions is not None and "remember" in agent.instructions


async def test_facts(agent: Client) -> None:
    saved = await answer(agent, "remember", content="The user lives in Paris", category="identity")
    assert saved["outcome"] == "saved"
    again = await answer(agent, "remember", content="The user lives in Paris", category="identity")
    assert again["outcome"] == "duplicate" and again["memory"]["id"] == saved["memory"]["id"]
    moved = await answer(agent, "remember", content="The user lives in Rome", category="identity")
    assert [fact["content"] for fact in moved["replaced"]] == ["The user lives in Paris"]

    found = await answer(agent, "recall", query="Where does the user live?")
    assert [fact["content"] for fact in found["memories"]] == ["The user lives in Rome"]
    await answer(agent, "remember", content="The user likes green tea", category="preference")
    listed = await answer(agent, "list_memories")
    assert [fact["category"] for fact in listed["memories"]] == ["preference", "identity"]
    assert (await answer(agent, "list_memories", category="preference"))["memories"] == listed["memories"][:1]

    assert await answer(agent, "forget", id=moved["memory"]["id"]) == {"deleted": 1}
    assert "list_memories" in await failure(agent, "forget", {"id": moved["memory"]["id"]})
    assert [fact["content"] for fact in (await answer(agent, "list_memories"))["memories"]] == [
        "The user likes green tea"
    ]


async def test_lists_of_facts_have_pages(agent: Client, server: ServerProcess, namespace: str) -> None:
    cities = ["Oslo", "Rome", "Lima", "Cairo", "Quito"]
    with MemoryClient(server.address, namespace=namespace) as memory:
        for city in cities:
            memory.save_memory(
                f"User met a colleague from {city}",
                "context",
                "They work there",
                on_contradiction="keep_both",
            )
    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = await answer(agent, "list_memories", limit=2, offset=offset)
        seen += [fact["content"].rpartition(" ")[2] for fact in page["memories"]]
        offset = page.get("next_offset")
    assert seen == cities[::-1]


async def test_conversations(agent: Client, server: ServerProcess, namespace: str) -> None:
    with MemoryClient(server.address, namespace=namespace) as memory:
        memory.add(chat_message("user", "My flight to Lisbon is on Monday", name="Ada"), session_id="trip")
        memory.add(chat_message("assistant", "Noted."), session_id="trip")
        other = memory.add(chat_message("user", "I play the piano"), session_id="music")
    recent = await answer(agent, "recent", limit=2)
    assert [passage["text"] for passage in recent["passages"]] == ["Noted.", "I play the piano"]
    found = await answer(agent, "recall", query="When is the flight?")
    assert found["passages"][0]["text"] == "My flight to Lisbon is on Monday"
    assert found["passages"][0]["speaker"] == "Ada"
    only = await answer(agent, "recall", query="When is the flight?", session_id="music")
    assert only["passages"] == [] and "recent" in only["note"]
    assert await answer(agent, "forget", id=other.id) == {"deleted": 1}
    assert (await answer(agent, "recent", session_id="music"))["passages"] == []


async def test_states(agent: Client) -> None:
    assert await answer(agent, "load_state") == {}
    assert "there are none" in await failure(agent, "load_state", {"key": "plan"})
    saved = await answer(
        agent, "save_state", key="plan", value={"steps": [1, None, "x"]}, description="A plan"
    )
    await answer(agent, "save_state", key="plan", value={"steps": []}, expected_version=saved["version"])
    conflict = await failure(agent, "save_state", {"key": "plan", "value": 1, "expected_version": 1})
    assert "version 2" in conflict and "read it" in conflict
    loaded = await answer(agent, "load_state", key="plan")
    assert loaded == {"key": "plan", "value": {"steps": []}, "version": 2, "description": "A plan"}
    assert "Keys: plan." in await failure(agent, "load_state", {"key": "plans"})
    (key,) = (await answer(agent, "load_state", prefix="pl"))["keys"]
    assert key["description"] == "A plan"
    await answer(agent, "save_state", key="none", value=None)
    assert (await answer(agent, "load_state", key="none"))["value"] is None
    assert await answer(agent, "forget", key="none") == {"deleted": 1}


async def test_files(agent: Client) -> None:
    written = await answer(agent, "write_file", path="/notes/trip.md", content="# Trip\nThe train leaves.\n")
    assert written["created"]
    edited = await answer(
        agent, "edit_file", path="/notes/trip.md", old_text="leaves", new_text="leaves at 9"
    )
    assert edited["start_line"] == 2
    await answer(agent, "edit_file", path="/notes/trip.md", after_line=0, new_text="Draft")
    await answer(agent, "edit_file", path="/notes/trip.md", new_text="The end\n")
    read = await answer(agent, "read_file", path="/notes/trip.md")
    assert read["content"] == "Draft\n# Trip\nThe train leaves at 9.\nThe end\n" and read["line_count"] == 4
    assert (await answer(agent, "read_file", path="/notes/trip.md", start_line=2, end_line=2))[
        "content"
    ] == "# Trip\n"
    stale = {"path": "/notes/trip.md", "content": "x", "expected_version": written["version"]}
    assert "read it" in await failure(agent, "write_file", stale)
    again = {"path": "/notes/trip.md", "old_text": "e", "new_text": ""}
    assert "enough lines" in await failure(agent, "edit_file", again)
    assert "write_file" in await failure(agent, "edit_file", {"path": "/x.md", "new_text": "x"})
    assert "list_files" in await failure(agent, "read_file", {"path": "/x.md"})
    listed = await answer(agent, "list_files")
    assert [entry["path"] for entry in listed["entries"]] == ["/notes/", "/notes/trip.md"]
    (found,) = (await answer(agent, "search_files", query="When does the train leave?"))["results"]
    assert found["path"] == "/notes/trip.md" and found["start_line"] == 1
    assert await answer(agent, "forget", path="/notes/trip.md") == {"deleted": 1}


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("remember", {}, "missing required field `content`"),
    ("remember", {"content": "x"}, "split longer texts"),
    ("remember", {"content": "y" * 501}, "write_file"),
    ("remember", {"content": "The user sings", "category": "hobby"}, "`category`"),
    ("recall", {"query": ""}, "`query`"),
    ("recall", {"query": "x", "limit": 0}, "`limit`"),
    ("recall", {"query": "x", "namespace": "other"}, "unknown field `namespace`"),
    ("recent", {"limit": "many"}, "`limit`"),
    ("forget", {}, "exactly one"),
    ("forget", {"id": "a", "key": "b"}, "exactly one"),
    ("forget", {"key": "nothing"}, "load_state"),
    ("list_memories", {"offset": -1}, "`offset`"),
    ("save_state", {"key": "x"}, "missing required field `value`"),
    ("load_state", {"key": 5}, "`key`"),
    ("read_file", {"path": "/a/../b"}, "path"),
    ("write_file", {"path": "/a", "content": "x" * 1_100_000}, "over the limit"),
    ("edit_file", {"path": "/a", "new_text": "x", "old_text": "y", "after_line": 1}, "not both"),
    ("list_files", {"depth": -1}, "`depth`"),
    ("search_files", {"query": "x", "limit": 1000}, "`limit`"),
]


async def test_bad_arguments_are_answered_with_what_to_do(agent: Client) -> None:
    for name, arguments, expected in BAD:
        text = await failure(agent, name, arguments)
        assert expected in text and len(text) < 500, (name, text)
    assert {name for name, _, _ in BAD} == TOOLS
    with pytest.raises(MCPError, match="Unknown tool: remind.*remember"):
        await agent.call_tool("remind", {})
    # Numbers as texts are what models send.
    assert (await answer(agent, "recall", query="nothing", limit="3"))["memories"] == []


async def test_every_answer_is_bounded(server: ServerProcess, namespace: str, tmp_path: Path) -> None:
    nasty = '\x01\x02"\\\n' * 400
    with MemoryClient(server.address, namespace=namespace) as memory:
        for number in range(20):
            memory.add(chat_message("user", f"{number} piano {nasty}", name="A" * 100))
            memory.save_memory(
                f"User owns piano number {number} " + "x" * 400,
                "context",
                "They said it",
                on_contradiction="keep_both",
            )
            memory.write_file(f"/{number}/{'n' * 200}.md", f"piano {nasty}\n{nasty * 20}")
            memory.save_state(f"{number}/" + "k" * 400, "v" * 3000, description="d" * 400)
        memory.save_state("long", {"text": nasty * 10})
        memory.write_file("/line.md", "\x01" * 10_000)
    command = parameters(server.address, namespace, "--max-characters", "2000")
    async with host(tmp_path, command) as agent:
        calls = [
            ("recall", {"query": "piano", "limit": 50}),
            ("recent", {"limit": 200}),
            ("list_memories", {"limit": 200}),
            ("load_state", {}),
            ("load_state", {"key": "long"}),
            ("read_file", {"path": f"/3/{'n' * 200}.md"}),
            ("read_file", {"path": "/line.md"}),
            ("list_files", {}),
            ("search_files", {"query": "piano", "limit": 50}),
        ]
        for name, arguments in calls:
            result = await agent.call_tool(name, arguments)
            assert not result.is_error, (name, result.content[0].text)
            assert len(result.content[0].text) <= 2000, name
            assert json.loads(result.content[0].text) == result.structured_content
            assert len(result.content[0].text) > 300 or "omitted" in result.structured_content, name
        # A long file is read in parts, without a gap.
        lines = [f"line {number} " + "é" * 50 + "\n" for number in range(100)]
        await answer(agent, "write_file", path="/long.md", content="".join(lines))
        read, line = "", 1
        while line:
            part = await answer(agent, "read_file", path="/long.md", start_line=line)
            read, line = read + part["content"], part.get("next_line", 0)
        assert read == "".join(lines)
        assert (await answer(agent, "read_file", path="/line.md"))["line_cut"]


async def test_what_is_remembered_in_one_session_is_recalled_in_the_next(
    server: ServerProcess, namespace: str, tmp_path: Path
) -> None:
    """A scripted model, which knows of the tools only what the server lists."""
    async with host(tmp_path, parameters(server.address, namespace)) as first:
        tool = next(
            each for each in (await first.list_tools()).tools if "Save one fact" in (each.description or "")
        )
        (argument,) = tool.input_schema["required"]
        await answer(first, tool.name, **{argument: "The user's sister is called Mia"})
    async with host(tmp_path, parameters(server.address, namespace)) as second:
        tool = next(
            each
            for each in (await second.list_tools()).tools
            if "everything remembered" in (each.description or "")
        )
        (argument,) = tool.input_schema["required"]
        found = await second.call_tool(tool.name, {argument: "What is my sister's name?"})
        assert "called Mia" in found.content[0].text
    assert (tmp_path / "stderr").read_text() == ""


async def test_every_tool_says_how_to_start_a_server_that_is_away(tmp_path: Path, namespace: str) -> None:
    good: dict[str, dict[str, Any]] = {
        "remember": {"content": "The user likes tea"},
        "recall": {"query": "tea"},
        "forget": {"id": "x"},
        "save_state": {"key": "x", "value": 1},
        "read_file": {"path": "/x"},
        "write_file": {"path": "/x", "content": "x"},
        "edit_file": {"path": "/x", "new_text": "x"},
        "search_files": {"query": "x"},
    }
    with ServerProcess(flags=["--store", "memory"]) as process:
        async with host(tmp_path, parameters(process.address, namespace)) as agent:
            await answer(agent, "recent")
            process.kill()
            for name in TOOLS:
                text = await failure(agent, name, good.get(name, {}))
                assert "memory-service serve" in text and process.address in text
            assert [resource.name for resource in (await agent.list_resources()).resources] == [
                "memories",
                "recent",
            ]
            with pytest.raises(MCPError, match="memory-service serve"):
                await agent.read_resource("memory://memories")
    async with host(tmp_path, parameters(process.address, namespace)) as agent:
        assert len((await agent.list_tools()).tools) == 12
        assert "memory-service serve" in await failure(agent, "recent", {})


async def test_a_server_that_does_not_answer_costs_the_timeout(tmp_path: Path, namespace: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        async with host(tmp_path, parameters(address, namespace, "--timeout", "1")) as agent:
            assert "go on without" in await failure(agent, "recent", {})


async def test_the_credential_and_the_namespace_come_from_the_settings(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    key = keys_in(data).token(roles=("read", "write"), namespaces=("ada", "team"))
    with ServerProcess(data, flags=("--auth", "keys", "--embedder", "none")) as process:
        async with host(tmp_path, parameters(process.address, "ada")) as agent:
            assert "MEMORY_SERVICE_API_KEY" in await failure(agent, "recent", {})
        async with host(tmp_path, parameters(process.address, "bob", API_KEY=key)) as agent:
            assert "ask the user" in await failure(agent, "recent", {})
        command = parameters(process.address, "ada", "--allow-namespace", API_KEY=key)
        async with host(tmp_path, command) as agent:
            tools = (await agent.list_tools()).tools
            assert all("namespace" in tool.input_schema["properties"] for tool in tools)
            await answer(agent, "save_state", key="x", value=1)
            await answer(agent, "save_state", key="y", value=1, namespace="team")
            keys_found = (await answer(agent, "load_state", namespace="team"))["keys"]
            assert [each["key"] for each in keys_found] == ["y"]
            assert "ask the user" in await failure(agent, "load_state", {"namespace": "bob"})
            assert "namespace" in await failure(agent, "load_state", {"namespace": 5})
