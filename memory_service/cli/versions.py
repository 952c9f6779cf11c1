"""Commands on versions of items."""

from __future__ import annotations

from typing import Any

import click

from memory_service.cli import output, rendering
from memory_service.cli.options import client_command, option
from memory_service.cli.session import CommandError, Session

revision_option = option("--revision", type=int, default=0, help="The version written at this revision.")
yes_option = option("--yes", is_flag=True, help="Do not ask for confirmation.")


@click.command()
@click.argument("item_id", metavar="ID")
@client_command
def versions(session: Session, item_id: str) -> None:
    """Print the kept versions of the item ID, newest first: revision, time, kind, writer, text."""
    for version in session.client.list_item_versions(item_id):
        session.tell(
            version, row(version.revision, version, None if version.item is None else version.item.text)
        )


@click.command()
@click.argument("item_id", metavar="ID")
@click.argument("revision", type=int)
@yes_option
@client_command
def redact(session: Session, item_id: str, revision: int, yes: bool) -> None:
    """Remove the content of the version of the item ID that was written at REVISION."""
    confirm(yes, f"{item_id} at revision {revision}")
    at = session.client.redact_version(item_id, revision)
    session.tell({"revision": at}, f"redacted {rendering.one_line(item_id)} at revision {revision}")


def confirm(yes: bool, what: str) -> None:
    """Ask whether to redact a version, unless `yes`."""
    if not yes and not output.confirm(f"Remove the content of {rendering.one_line(what)}?"):
        raise CommandError("nothing was redacted")


def row(revision: int, version: Any, text: str | None) -> str:
    """Return a line for the version that was written at a revision."""
    who = rendering.one_line(version.writer) or "-"
    told = f"{revision:>10}  {rendering.moment(version.time)}  {version.kind:<8}  {who}"
    return f"{told}  {rendering.one_line(text)}" if text else told
