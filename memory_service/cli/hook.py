"""Commands that coding agents run as hooks. They never fail: an error would disturb the agent."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import click

from memory_service.cli import output
from memory_service.cli.connection import CONNECTION_ARGUMENTS, connection_settings
from memory_service.cli.options import DEFAULT_NAMESPACE, F, connection_options, option


class HookGroup(click.Group):
    """A group that reports wrong options on stderr and ends with exit code 0: 2 would block the prompt."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Do as click does, but end with exit code 0."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.ClickException as error:
            _ignore(error)

    def invoke(self, ctx: click.Context) -> Any:
        """Do as click does, but end with exit code 0."""
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            _ignore(error)


def _ignore(error: click.ClickException) -> NoReturn:
    output.note(f"note: {error.format_message()}")
    sys.exit(0)


_OPTIONS = (
    connection_options,
    option("--namespace", default=DEFAULT_NAMESPACE, help="Namespace to act on."),
    option("--timeout", variable="HOOK_TIMEOUT", default=1.0, help="Seconds after which the hook gives up."),
    option(
        "--log",
        variable="HOOK_LOG",
        type=click.Path(path_type=Path),
        help="File for a line about each call; default: none.",
    ),
)
_max_tokens = option(
    "--max-tokens",
    variable="HOOK_MAX_TOKENS",
    type=click.IntRange(1, 100_000),
    default=1000,
    help="Maximum estimated tokens of the text for the model.",
)
_extract = option(
    "--extract/--no-extract",
    variable="HOOK_EXTRACT",
    default=True,
    help="Extract facts about the user from the messages, by rules.",
)


def _hook_options(function: F) -> F:
    for add in reversed(_OPTIONS):
        function = add(function)
    return function


@click.group(cls=HookGroup)
def hook() -> None:
    """Give a coding agent memory: hooks of Claude Code and Codex.

    Each reads the hook's JSON from stdin and answers as these agents expect. It ends within --timeout and
    with exit code 0, whatever happens. See docs/mcp.md.
    """


@hook.command("session-start")
@_hook_options
@_max_tokens
def session_start(**asked: Any) -> None:
    """Print the facts about the user for the model, as the hook SessionStart."""
    _run("session-start", "preloaded", **asked)


@hook.command("user-prompt")
@_hook_options
@_max_tokens
def user_prompt(**asked: Any) -> None:
    """Print memories that answer the prompt for the model, as the hook UserPromptSubmit."""
    _run("user-prompt", "relevant", **asked)


@hook.command("stop")
@_hook_options
@_extract
def stop(**asked: Any) -> None:
    """Record the new messages of the transcript, as the hook Stop."""
    _run("stop", "record", **asked)


@hook.command("session-end")
@_hook_options
@_extract
def session_end(**asked: Any) -> None:
    """Record the new messages of the transcript, as the hook SessionEnd."""
    _run("session-end", "record", **asked)


def _run(
    event: str, action: str, *, address: str, namespace: str, timeout: float, log: Path | None, **asked: Any
) -> None:
    import os

    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from memory_service.hooks.running import run

    connection = {name: asked.pop(name) for name in CONNECTION_ARGUMENTS}

    def answer(given: Mapping[str, Any], end: float) -> str:
        # gRPC is imported while the time is running.
        from memory_service.hooks import events
        from memory_service.hooks.calls import Connection

        server = Connection(address, connection_settings(**connection), end=end)
        act: Callable[..., str] = getattr(events, action)
        return act(server, events.Settings(namespace, **asked), given)

    run(event, timeout, log, answer)
