"""Commands on a server as a whole: health, stats, namespaces, flush."""

from __future__ import annotations

import click

from memory_service.cli import output, rendering
from memory_service.cli.options import client_command, option
from memory_service.cli.session import CommandError, Session


@click.command()
@client_command
def health(session: Session) -> None:
    """Print whether the server accepts calls, and its settings. Exit code 1: it does not.

    The settings need a credential if the server requires one, and are not available at a health address.
    """
    from memory_client import PermissionDenied, Unauthenticated, Unsupported

    status = session.client.health()
    if status != "serving":
        raise CommandError(f"the server reports: {status}")
    try:
        info = session.client.info()
    except (Unauthenticated, PermissionDenied) as error:
        # Health needs no credential, so that a probe without one can succeed.
        session.tell({"status": status}, f"status: {status}")
        output.note(f"note: a credential is needed for the server's settings ({error.code})")
        return
    except Unsupported:
        session.tell({"status": status}, f"status: {status}")
        return
    session.tell({"status": status, **rendering.to_json(info)}, f"status: {status}\n{rendering.fields(info)}")


@click.command()
@client_command
def stats(session: Session) -> None:
    """Print the counts, sizes and times of the namespace."""
    found = session.client.namespace_stats()
    session.tell(found, rendering.fields(found))


@click.command()
@option("--prefix", default="", help="Only namespaces whose names begin with this.")
@client_command
def namespaces(session: Session, prefix: str) -> None:
    """Print all namespaces: items, revision, first write, name."""
    for found in session.client.list_namespaces(prefix=prefix):
        row = f"{found.item_count:>10} items  {found.revision:>10}  {rendering.moment(found.create_time)}"
        session.tell(found, f"{row}  {rendering.one_line(found.namespace)}")


@click.command()
@client_command
def flush(session: Session) -> None:
    """Save index snapshots and purge deleted data from files. Acknowledged writes are durable anyway."""
    took = session.client.flush()
    session.tell({"duration": took}, f"flushed in {took.total_seconds():.2f} s")
