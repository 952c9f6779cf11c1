"""Commands on writes that a write policy quarantined: list, release, delete."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import click

from memory_service.cli.options import client_command, option
from memory_service.cli.rendering import item_row, moment, one_line
from memory_service.cli.session import Session

if TYPE_CHECKING:
    from memory_client import QuarantinedWrite


@click.group()
def quarantine() -> None:
    """Review quarantined writes: list, release, delete."""


@quarantine.command("list")
@option("--limit", default=100, help="Maximum number of writes; -1: all.")
@client_command
def list_writes(session: Session, limit: int) -> None:
    """Print the writes in quarantine, oldest first: id, time, reason, and below them their items."""
    writes = session.client.list_quarantined()
    for write in itertools.islice(writes, limit if limit >= 0 else None):
        session.tell(write, _rows(write))


def _rows(write: QuarantinedWrite) -> str:
    rows = [f"{write.id}  {moment(write.create_time)}  {one_line(write.reason)}"]
    for item in write.items:
        rows.append(item_row(item, before="  "))
        known = item.provenance
        if known is not None:
            source = getattr(known.source, "value", known.source)
            rows.append(
                f"    by {one_line(known.writer) or 'an unknown writer'}, {source}, trust {known.trust:g}"
            )
    return "\n".join(rows)


@quarantine.command()
@click.argument("write_id", metavar="ID")
@client_command
def release(session: Session, write_id: str) -> None:
    """Execute the write ID now."""
    done = session.client.review_quarantined(write_id, "release")
    items = "1 item" if done.item_count == 1 else f"{done.item_count} items"
    session.tell(done, f"{items} written")
    session.note(done.degraded)


@quarantine.command()
@click.argument("write_id", metavar="ID")
@client_command
def delete(session: Session, write_id: str) -> None:
    """Discard the write ID permanently."""
    session.tell(session.client.review_quarantined(write_id, "delete"), "deleted")
