"""The toolset of the reference server `server-memory`: its names, inputs and outputs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio
from mcp import Client

from mcp_hosts import answer, failure, for_fixture, host, parameters
from memory_client import MemoryClient
from server_process import ServerProcess

TOOLS = (
    "create_entities",
    "create_relations",
    "add_observations",
    "delete_entities",
    "delete_observations",
    "delete_relations",
    "read_graph",
    "search_nodes",
    "open_nodes",
)
ADA = {"name": "Ada", "entityType": "person", "observations": ["likes tea", "plays the *piano*"]}
BOB = {"name": 'Bob "B"', "entityType": "person", "observations": []}
ACME = {"name": "Acme", "entityType": "company", "observations": ["makes rockets"]}
KNOWS = {"from": "Ada", "to": 'Bob "B"', "relationType": "knows"}
WORKS = {"from": 'Bob "B"', "to": "Acme", "relationType": "works_at"}


@pytest_asyncio.fixture
async def graph(server: ServerProcess, namespace: str, tmp_path: Path) -> AsyncIterator[Client]:
    """A host with the tools of the knowledge graph, which has three entities and two relations."""
    command = parameters(server.address, namespace, "--toolset", "knowledge-graph")
    async with for_fixture(host(tmp_path, command)) as client:
        await answer(client, "create_entities", entities=[ADA, BOB, ACME])
        await answer(client, "create_relations", relations=[KNOWS, WORKS])
        yield client


async def test_the_tools(graph: Client) -> None:
    tools = (await graph.list_tools()).tools
    assert tuple(tool.name for tool in tools) == TOOLS
    required = {tool.name: tool.input_schema.get("required", []) for tool in tools}
    assert required == {
        "create_entities": ["entities"],
        "create_relations": ["relations"],
        "add_observations": ["observations"],
        "delete_entities": ["entityNames"],
        "delete_observations": ["deletions"],
        "delete_relations": ["relations"],
        "read_graph": [],
        "search_nodes": ["query"],
        "open_nodes": ["names"],
    }
    read_only = [tool.name for tool in tools if tool.annotations and tool.annotations.read_only_hint]
    assert read_only == ["read_graph", "search_nodes", "open_nodes"]


async def test_creating_is_creating_once(graph: Client) -> None:
    assert await answer(graph, "read_graph") == {"entities": [ADA, BOB, ACME], "relations": [KNOWS, WORKS]}
    new = {"name": "Zoe", "entityType": "person", "observations": []}
    changed = {**ADA, "observations": ["changed"]}
    created = await graph.call_tool("create_entities", {"entities": [changed, new, new]})
    assert created.structured_content == {"entities": [new]}
    assert json.loads(created.content[0].text) == [new]
    other = {**KNOWS, "relationType": "likes"}
    assert await answer(graph, "create_relations", relations=[KNOWS, other]) == {"relations": [other]}
    assert (await answer(graph, "read_graph"))["entities"] == [ADA, BOB, ACME, new]
    assert await answer(graph, "create_entities", entities=[]) == {"entities": []}


async def test_observations(graph: Client) -> None:
    more = [{"entityName": "Acme", "contents": ["makes rockets", "is rich"]}]
    added = await graph.call_tool("add_observations", {"observations": more})
    assert added.structured_content == {"results": [{"entityName": "Acme", "addedObservations": ["is rich"]}]}
    assert json.loads(added.content[0].text) == added.structured_content["results"]
    missing = [{"entityName": "Ada", "contents": ["x"]}, {"entityName": "Eve", "contents": ["y"]}]
    assert "Entity with name Eve not found" in await failure(
        graph, "add_observations", {"observations": missing}
    )
    deletions = [
        {"entityName": "Acme", "observations": ["makes rockets"]},
        {"entityName": "Eve", "observations": []},
    ]
    deleted = await graph.call_tool("delete_observations", {"deletions": deletions})
    assert deleted.structured_content == {"success": True, "message": "Observations deleted successfully"}
    assert deleted.content[0].text == "Observations deleted successfully"
    entities = (await answer(graph, "read_graph"))["entities"]
    assert entities == [ADA, BOB, {**ACME, "observations": ["is rich"]}]


async def test_observations_of_two_agents_at_once_are_all_kept(graph: Client) -> None:
    adding = [
        answer(graph, "add_observations", observations=[{"entityName": "Ada", "contents": [str(number)]}])
        for number in range(4)
    ]
    await asyncio.gather(*adding)
    (ada,) = (await answer(graph, "open_nodes", names=["Ada"]))["entities"]
    assert sorted(ada["observations"][2:]) == ["0", "1", "2", "3"]


async def test_searching_and_opening(graph: Client) -> None:
    found = {
        "ROCKET": ([ACME], [WORKS]),
        "*PIANO": ([ADA], [KNOWS]),
        'b "b': ([BOB], [KNOWS, WORKS]),
        "person": ([ADA, BOB], [KNOWS, WORKS]),
        "": ([ADA, BOB, ACME], [KNOWS, WORKS]),
        # The reference server finds nothing for a question.
        "Who makes a rocket?": ([ACME], [WORKS]),
        "zzz": ([], []),
    }
    for query, (entities, relations) in found.items():
        expected = {"entities": entities, "relations": relations}
        assert await answer(graph, "search_nodes", query=query) == expected, query
    opened = await answer(graph, "open_nodes", names=["Ada", "Acme", "Eve"])
    assert opened == {"entities": [ADA, ACME], "relations": [KNOWS, WORKS]}
    assert await answer(graph, "open_nodes", names=[]) == {"entities": [], "relations": []}
    assert await answer(graph, "search_nodes", query="x" * 5000) == {"entities": [], "relations": []}


async def test_deleting(graph: Client) -> None:
    deleted = await answer(graph, "delete_relations", relations=[WORKS, {**WORKS, "to": "Eve"}])
    assert deleted == {"success": True, "message": "Relations deleted successfully"}
    assert (await answer(graph, "read_graph"))["relations"] == [KNOWS]
    deleted = await answer(graph, "delete_entities", entityNames=["Ada", "Ada", "Eve"])
    assert deleted == {"success": True, "message": "Entities deleted successfully"}
    assert await answer(graph, "read_graph") == {"entities": [BOB, ACME], "relations": []}


async def test_bad_arguments(graph: Client) -> None:
    bad: list[tuple[str, dict[str, Any], str]] = [
        ("create_entities", {"entities": [{"name": "x"}]}, "entityType"),
        ("create_entities", {"entities": "Ada"}, "`entities`"),
        ("create_relations", {"relations": [{"from": "x", "to": "y"}]}, "relationType"),
        ("add_observations", {"observations": [{"entityName": "x"}]}, "contents"),
        ("delete_entities", {}, "entityNames"),
        ("delete_observations", {"deletions": [{}]}, "entityName"),
        ("delete_relations", {"relations": [1]}, "relations"),
        ("read_graph", {"all": True}, "`all`"),
        ("search_nodes", {}, "query"),
        ("open_nodes", {"names": [1]}, "names"),
    ]
    for name, arguments, expected in bad:
        assert expected in await failure(graph, name, arguments), name
    assert {name for name, _, _ in bad} == set(TOOLS)


async def test_a_large_graph_is_cut_and_the_answer_says_so(
    server: ServerProcess, namespace: str, tmp_path: Path
) -> None:
    command = parameters(
        server.address, namespace, "--toolset", "knowledge-graph", "--max-characters", "4000"
    )
    async with host(tmp_path, command) as graph:
        entities = [{"name": f"n{n}", "entityType": "x", "observations": ["y" * 50]} for n in range(100)]
        relations = [{"from": f"n{n}", "to": "n0", "relationType": "r"} for n in range(100)]
        await answer(graph, "create_entities", entities=entities)
        await answer(graph, "create_relations", relations=relations)
        for name, arguments in (("read_graph", {}), ("open_nodes", {"names": [f"n{n}" for n in range(100)]})):
            result = await graph.call_tool(name, arguments)
            found = result.structured_content
            assert len(result.content[0].text) <= 4000
            assert found["omitted"] == 200 - len(found["entities"]) - len(found["relations"])
            assert found["entities"] == entities[: len(found["entities"])]
        await answer(graph, "delete_entities", entityNames=[each["name"] for each in entities])
        assert await answer(graph, "read_graph") == {"entities": [], "relations": []}


async def test_the_resource_and_the_items(graph: Client, server: ServerProcess, namespace: str) -> None:
    (content,) = (await graph.read_resource("memory://knowledge-graph")).contents
    assert json.loads(content.text) == await answer(graph, "read_graph")  # type: ignore[union-attr]
    with MemoryClient(server.address, namespace=namespace) as memory:
        # Each is what a line of the reference server's file has.
        lines = [item.content for item in memory.list_items()]
        assert lines[0] == {"type": "entity", **ADA} and lines[-1] == {"type": "relation", **WORKS}
        assert memory.retrieve("Who likes tea?")[0].item.content == lines[0]
