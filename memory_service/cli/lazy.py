"""A group that imports commands when they are used, so that each starts quickly."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

from memory_service.cli import output


class LazyGroup(click.Group):
    """A group of commands given by module and attribute, such as "package.module:command"."""

    def __init__(self, *args: Any, commands_at: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._commands_at = commands_at

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Do as click does, but print errors through `output`."""
        with output.visible_errors():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Do as click does, but print errors through `output`."""
        with output.visible_errors():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the given order."""
        return list(self._commands_at)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command with this name; return None if there is none."""
        if cmd_name not in self._commands_at:
            return None
        module, _, attribute = self._commands_at[cmd_name].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command
