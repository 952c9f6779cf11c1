"""The memory tool, by the tests of the SDK's tool for local files and beside that tool."""

from __future__ import annotations

import inspect
import random
from collections.abc import Awaitable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from anthropic.lib.tools import ToolError
from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool

from memory_client import MemoryClient
from memory_client.anthropic import AsyncMemoryServiceMemoryTool, MemoryServiceMemoryTool
from repositories import checkout, run_suite

EXCEPTIONS = {
    "test_mkdir_parents_not_world_writable_under_permissive_umask": "modes of folders on disk",
    "test_symlink_validation_reject_symlink_pointing_outside_memories": "links on disk",
    "test_symlink_validation_reject_creating_files_through_symlink_pointing_outside": "links on disk",
    "test_symlink_validation_reject_parent_directory_that_is_symlink_pointing_outside": "links on disk",
    "test_validate_path_returns_resolved_path_not_symlink_target": "links on disk",
    "test_view_error_for_files_with_too_many_lines": "a file of 5 MB; the server takes 1 MiB",
}


def test_the_sdks_tests_pass(address: str, tmp_path: Path) -> None:
    suite = checkout("ANTHROPIC") / "tests" / "lib" / "tools" / "memory_tools" / "test_filesystem.py"
    outcomes = run_suite([suite], "swap_anthropic", tmp_path, env={"CONFORMANCE_SERVER": address})
    failed = {name for name, outcome in outcomes.items() if outcome == "failed"}
    assert {name.rpartition("::")[2] for name in failed} <= EXCEPTIONS.keys()
    assert list(outcomes.values()).count("passed") >= 37


@pytest.fixture
def tool(address: str, namespace: str) -> Iterator[MemoryServiceMemoryTool]:
    with MemoryServiceMemoryTool(address, namespace=namespace) as made:
        yield made


async def answer(tool: Any, command: dict[str, Any]) -> str:
    """Return what the model reads, with the sizes of folders left out."""
    try:
        said: str | Awaitable[str] = tool.call(command)
        text = str(await said if inspect.isawaitable(said) else said)
    except ToolError as error:
        return f"error: {error}"
    lines = text.split("\n")
    is_folder = [line.endswith("/") or number == 1 for number, line in enumerate(lines)]
    if "directories" in lines[0]:
        lines = [
            line.partition("\t")[2] if folder else line for line, folder in zip(lines, is_folder, strict=True)
        ]
    return "\n".join(lines)


PATHS = ["/memories", "/memories/a.txt", "/memories/dir/b.txt", "/memories/dir", "/memories/dir/../a.txt"]
PATHS += ["/memories/.hidden", "/memories/dir/deep/er/c.txt", "/tmp/x", "/memories/../x", "/memories/a"]
TEXTS = ["one", "one\ntwo\n", "", "one\r\ntwo\rone", "äöü\n\n\n", "two\nthree\nfour\nfive\nsix\nseven\n"]


def commands(rng: random.Random) -> Iterator[dict[str, Any]]:
    """Yield commands at random; only such as end with an answer on local files too."""
    while True:
        path, text = rng.choice(PATHS), rng.choice(TEXTS)
        ranges = [None, None, [1, -1], [2, 3], [3, 2], [0, 5], [9, 12], [2, -1]]
        yield rng.choice(
            [
                {"command": "view", "path": path, "view_range": rng.choice(ranges)},
                {"command": "create", "path": path, "file_text": text},
                {
                    "command": "str_replace",
                    "path": path,
                    "old_str": rng.choice(["one", "two", "\n"]),
                    "new_str": text,
                },
                {"command": "insert", "path": path, "insert_line": rng.randrange(-1, 5), "insert_text": text},
                {"command": "delete", "path": path},
                {"command": "rename", "old_path": path, "new_path": rng.choice(PATHS)},
            ]
        )


def remove_empty_folders(root: Path) -> None:
    """Remove what the server does not have."""
    for folder in sorted(root.glob("**/"), reverse=True):
        if folder != root and not any(folder.iterdir()):
            folder.rmdir()


@pytest.mark.parametrize("number", range(10))
async def test_answers_are_those_of_the_tool_for_local_files(
    number: int, address: str, namespace: str, tmp_path: Path
) -> None:
    rng, local = random.Random(number), BetaLocalFilesystemMemoryTool(str(tmp_path))
    with MemoryServiceMemoryTool(address, namespace=namespace) as tool:
        async with AsyncMemoryServiceMemoryTool(address, namespace=f"{namespace}/aio") as aio:
            for command, _ in zip(commands(rng), range(60), strict=False):
                try:
                    expected = await answer(local, command)
                except OSError:
                    continue  # A file in place of a folder: the local tool has no answer.
                remove_empty_folders(tmp_path / "memories")
                for each in (tool, aio):
                    assert await answer(each, command) == expected, command


def test_concurrent_changes_are_not_lost(tool: MemoryServiceMemoryTool) -> None:
    tool.call({"command": "create", "path": "/memories/a.txt", "file_text": ""})
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(
                lambda n: tool.call(
                    {"command": "insert", "path": "/memories/a.txt", "insert_line": 0, "insert_text": str(n)}
                ),
                range(24),
            )
        )
    viewed = str(tool.call({"command": "view", "path": "/memories/a.txt"}))
    assert sorted(int(line.split("\t")[1]) for line in viewed.split("\n")[1:-1]) == list(range(24))


def test_files_are_found_by_the_client(tool: MemoryServiceMemoryTool, memory: MemoryClient) -> None:
    tool.call({"command": "create", "path": "/memories/ada.md", "file_text": "Ada likes green tea"})
    assert memory.search_files("tea")[0].path == "/memories/ada.md"
    assert tool.clear_all_memory() == "All memory cleared"
    assert not list(memory.list_files())
    assert tool.clear_all_memory() == "All memory cleared"


def test_errors_that_the_model_can_avoid_are_answers(tool: MemoryServiceMemoryTool) -> None:
    with pytest.raises(ToolError, match="limit of 1048576"):
        tool.call({"command": "create", "path": "/memories/a", "file_text": "x" * 1_100_000})
    with pytest.raises(ToolError, match="control characters"):
        tool.call({"command": "create", "path": "/memories/a\x01", "file_text": "x"})
