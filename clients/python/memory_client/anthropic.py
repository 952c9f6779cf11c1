"""Anthropic's memory tool over the files of a memory server. Needs the extra `anthropic`.

with MemoryServiceMemoryTool("127.0.0.1:50051", namespace="ada") as tool:
    client.beta.messages.run_tools(..., tools=[tool])
"""

from __future__ import annotations

from typing import Any

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from anthropic.types.beta import (
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)

from memory_client import _anthropic_commands as _commands
from memory_client._adapters import Adapter, AsyncAdapter
from memory_client._anthropic_commands import Steps
from memory_client.aio import AsyncMemoryClient
from memory_client.client import MemoryClient
from memory_client.errors import (
    AlreadyExists,
    Conflict,
    FailedPrecondition,
    InvalidArgument,
    LimitExceeded,
    MemoryServiceError,
    NotFound,
)

_FOR_THE_MODEL = (InvalidArgument, NotFound, AlreadyExists, Conflict, FailedPrecondition, LimitExceeded)
"""Errors that another command can avoid. Others, such as `Unavailable`, are raised as they are."""


class MemoryServiceMemoryTool(Adapter, BetaAbstractMemoryTool):
    """A memory tool for `client.beta.messages.run_tools(..., tools=[tool])`.

    Its files are the namespace's below `/memories`, which `search_files`, `watch` and other tools see too.
    Each command is atomic. Answers and errors are those of the SDK's tool for local files; the size of a
    folder is the sum of its files. A folder exists while a file is below it. A file has at most 1 MiB.

    Raises:
        ToolError: A command cannot be executed; the model reads why.
        MemoryServiceError: The server cannot be reached, or does not allow the call.
    """

    def __init__(
        self, client: MemoryClient | str, *, namespace: str | None = None, cache_control: Any = None
    ) -> None:
        """Make a tool.

        Args:
            client: A client, or the address of a server.
            namespace: The namespace for the files. None: the client's, or "default" for an address.
            cache_control: The SDK's setting for the provider's cache.
        """
        super().__init__(cache_control=cache_control)
        self._connect(client, namespace)

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Return a file with line numbers, or the files and folders below a folder, two levels deep."""
        return self._run(_commands.view(command))

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Write a new file."""
        return self._run(_commands.create(command))

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that occurs once in a file."""
        return self._run(_commands.str_replace(command))

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines in a file."""
        return self._run(_commands.insert(command))

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a folder with everything below it."""
        return self._run(_commands.delete(command))

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Move a file, or a folder with everything below it."""
        return self._run(_commands.rename(command))

    def clear_all_memory(self) -> str:
        """Delete all files of the tool."""
        return self._run(_commands.clear())

    def _run(self, steps: Steps) -> str:
        try:
            method, arguments, options = next(steps)
            while True:
                try:
                    result = getattr(self._client, method)(*arguments, **options)
                    result = list(result) if method == "list_files" else result
                except MemoryServiceError as error:
                    method, arguments, options = steps.throw(error)
                else:
                    method, arguments, options = steps.send(result)
        except StopIteration as end:
            return str(end.value)
        except _FOR_THE_MODEL as error:
            raise ToolError(str(error)) from error


class AsyncMemoryServiceMemoryTool(AsyncAdapter, BetaAsyncAbstractMemoryTool):
    """The same as `MemoryServiceMemoryTool`, for asynchronous clients."""

    def __init__(
        self, client: AsyncMemoryClient | str, *, namespace: str | None = None, cache_control: Any = None
    ) -> None:
        """Make a tool, as `MemoryServiceMemoryTool` does."""
        super().__init__(cache_control=cache_control)
        self._connect(client, namespace)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Return a file with line numbers, or the files and folders below a folder, two levels deep."""
        return await self._run(_commands.view(command))

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Write a new file."""
        return await self._run(_commands.create(command))

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that occurs once in a file."""
        return await self._run(_commands.str_replace(command))

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines in a file."""
        return await self._run(_commands.insert(command))

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a folder with everything below it."""
        return await self._run(_commands.delete(command))

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Move a file, or a folder with everything below it."""
        return await self._run(_commands.rename(command))

    async def clear_all_memory(self) -> str:
        """Delete all files of the tool."""
        return await self._run(_commands.clear())

    async def _run(self, steps: Steps) -> str:
        try:
            method, arguments, options = next(steps)
            while True:
                try:
                    call = getattr(self._client, method)(*arguments, **options)
                    result = [each async for each in call] if method == "list_files" else await call
                except MemoryServiceError as error:
                    method, arguments, options = steps.throw(error)
                else:
                    method, arguments, options = steps.send(result)
        except StopIteration as end:
            return str(end.value)
        except _FOR_THE_MODEL as error:
            raise ToolError(str(error)) from error
