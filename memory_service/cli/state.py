"""Commands on state: save, load, list, search, delete, clear."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import Any

import click

from memory_service.cli import output, rendering
from memory_service.cli.options import client_command, option
from memory_service.cli.parameters import Duration, json_or_text
from memory_service.cli.session import CommandError, Session

_EXPECTED_VERSION = option(
    "--expected-version",
    type=int,
    help="Do it only if this is the key's version; 0: only if there is no such key.",
)


@click.group()
def state() -> None:
    """Named values with versions: save, load, list, search, delete, clear."""


@state.command()
@click.argument("key")
@click.argument("value")
@_EXPECTED_VERSION
@option(
    "--ttl", type=Duration(), help="How long the entry lives, as in 30s, 15m, 12h, 7d. For ever if not given."
)
@option("--description", help="What the value is for. The present description stays if not given.")
@client_command
def save(
    session: Session,
    key: str,
    value: str,
    expected_version: int | None,
    ttl: timedelta | None,
    description: str | None,
) -> None:
    """Keep VALUE under KEY and print the version.

    VALUE is JSON; what is not JSON is kept as plain text, so that `hello` and `"hello"` are the same. A
    VALUE of "-" is read from stdin. Put "--" before a VALUE that begins with a dash.
    """
    text = sys.stdin.read() if value == "-" else value
    entry = session.client.save_state(
        key, json_or_text(text), expected_version=expected_version, ttl=ttl, description=description
    )
    session.tell(_without_value(entry), f"version {entry.version}")


@state.command()
@click.argument("key")
@client_command
def load(session: Session, key: str) -> None:
    """Print the value of KEY: a text as it is, anything else as JSON."""
    entry = session.client.load_state(key)
    is_text = isinstance(entry.value, str)
    session.tell(entry, entry.value if is_text else output.json_text(entry.value, indent=2))


@state.command("list")
@option("--preview/--no-preview", default=True, help="Show the beginning of each value.")
@client_command
def list_keys(session: Session, preview: bool) -> None:
    """Print all keys: time, version, size, key, beginning of the value."""
    for entry in session.client.list_state_keys(include_preview=preview):
        session.tell(_without_value(entry), rendering.state_row(entry))


@state.command()
@click.argument("pattern")
@client_command
def search(session: Session, pattern: str) -> None:
    """Print the entries whose whole key matches PATTERN, such as "plan/*"."""
    for entry in session.client.search_state(pattern):
        session.tell(entry, rendering.state_row(entry))


@state.command()
@click.argument("key")
@_EXPECTED_VERSION
@client_command
def delete(session: Session, key: str, expected_version: int | None) -> None:
    """Remove KEY."""
    revision = session.client.delete_state(key, expected_version=expected_version)
    session.tell({"revision": revision}, f"deleted {rendering.one_line(key)}")


@state.command()
@option("--yes", is_flag=True, help="Do not ask whether this is meant.")
@client_command
def clear(session: Session, yes: bool) -> None:
    """Remove all keys of the namespace and leave its items alone."""
    if not yes and not output.confirm(f"Remove all state of the namespace {session.namespace!r}?"):
        raise CommandError("nothing was removed")
    removed = session.client.clear_state()
    session.tell(removed, f"removed {removed.state_count} state keys")


def _without_value(entry: Any) -> dict[str, Any]:
    """Return the JSON of an entry whose value the server left out, which is not to look like a null."""
    values: dict[str, Any] = rendering.to_json(entry)
    values.pop("value", None)
    return values
