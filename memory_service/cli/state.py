"""Commands on state: save, load, list, search, versions, redact, rename, delete, clear."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import Any

import click

from memory_service.cli import output, rendering
from memory_service.cli.options import client_command, option
from memory_service.cli.parameters import Duration, json_or_text
from memory_service.cli.session import CommandError, Session
from memory_service.cli.versions import confirm, revision_option, row, yes_option

_EXPECTED_VERSION = option(
    "--expected-version",
    type=int,
    help="Only if the key has this version; 0: only if it does not exist.",
)


@click.group()
def state() -> None:
    """Manage named values and their versions: save, load, list, search, rename, redact, delete, clear."""


@state.command()
@click.argument("key")
@click.argument("value")
@_EXPECTED_VERSION
@option("--ttl", type=Duration(), help="Time to live, such as 30s, 15m, 12h or 7d; default: forever.")
@option("--description", help="Purpose of the value; default: unchanged.")
@client_command
def save(
    session: Session,
    key: str,
    value: str,
    expected_version: int | None,
    ttl: timedelta | None,
    description: str | None,
) -> None:
    """Store VALUE under KEY and print the version.

    VALUE is JSON, or else plain text: `hello` and `"hello"` are the same. "-" reads stdin. Put "--" before a
    VALUE that begins with a dash.
    """
    text = sys.stdin.read() if value == "-" else value
    entry = session.client.save_state(
        key, json_or_text(text), expected_version=expected_version, ttl=ttl, description=description
    )
    session.tell(_without_value(entry), f"version {entry.version}")


@state.command()
@click.argument("key")
@revision_option
@client_command
def load(session: Session, key: str, revision: int) -> None:
    """Print the value of KEY: text without quotes, anything else as JSON."""
    entry = session.client.load_state(key, revision=revision)
    is_text = isinstance(entry.value, str)
    session.tell(entry, entry.value if is_text else output.json_text(entry.value, indent=2))


@state.command("list")
@option("--prefix", default="", help="Only keys that begin with this.")
@option("--preview/--no-preview", default=True, help="Show the beginning of each value.")
@client_command
def list_keys(session: Session, prefix: str, preview: bool) -> None:
    """Print all keys: time, version, size, key, beginning of the value."""
    for entry in session.client.list_state_keys(prefix=prefix, include_preview=preview):
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
    """Delete KEY."""
    revision = session.client.delete_state(key, expected_version=expected_version)
    session.tell({"revision": revision}, f"deleted {rendering.one_line(key)}")


@state.command()
@click.argument("key")
@client_command
def versions(session: Session, key: str) -> None:
    """Print the kept versions of KEY, newest first: revision, time, kind, writer, value."""
    for version in session.client.list_state_versions(key):
        value = None if version.entry is None else output.json_text(version.entry.value)
        session.tell(version, row(version.revision, version, value))


@state.command()
@click.argument("key")
@click.argument("revision", type=int)
@yes_option
@client_command
def redact(session: Session, key: str, revision: int, yes: bool) -> None:
    """Remove the value of the version of KEY that was written at REVISION."""
    confirm(yes, f"{key} at revision {revision}")
    at = session.client.redact_state_version(key, revision)
    session.tell({"revision": at}, f"redacted {rendering.one_line(key)} at revision {revision}")


@state.command()
@click.argument("key")
@click.argument("new_key")
@_EXPECTED_VERSION
@client_command
def rename(session: Session, key: str, new_key: str, expected_version: int | None) -> None:
    """Give the value of KEY the key NEW_KEY."""
    entry = session.client.rename_state(key, new_key, expected_version=expected_version)
    told = f"renamed {rendering.one_line(key)} to {rendering.one_line(new_key)}, version {entry.version}"
    session.tell(_without_value(entry), told)


@state.command()
@option("--yes", is_flag=True, help="Do not ask for confirmation.")
@client_command
def clear(session: Session, yes: bool) -> None:
    """Delete all keys of the namespace, but not its items."""
    if not yes and not output.confirm(f"Delete all state of the namespace {session.namespace!r}?"):
        raise CommandError("nothing was deleted")
    removed = session.client.clear_state()
    session.tell(removed, f"deleted {removed.state_count} state keys")


def _without_value(entry: Any) -> dict[str, Any]:
    """Return an entry without its value as JSON values; the server omitted it, and null would be wrong."""
    values: dict[str, Any] = rendering.to_json(entry)
    values.pop("value", None)
    return values
