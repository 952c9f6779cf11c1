"""Commands on the server as a whole: health, stats, namespaces, flush."""

from __future__ import annotations

import click

from memory_service.cli import output, rendering
from memory_service.cli.options import client_command, option
from memory_service.cli.session import CommandError, Session


@click.command()
@client_command
def health(session: Session) -> None:
    """Print whether the server takes calls, and what it is; exit code 1 if it does not take any.

    Where a server asks for credentials, it tells only with one what it is; on a port for health alone, never.
    """
    from memory_client import PermissionDenied, Unauthenticated, Unsupported

    status = session.client.health()
    if status != "serving":
        raise CommandError(f"the server answers: {status}")
    try:
        info = session.client.info()
    except (Unauthenticated, PermissionDenied) as error:
        # Health is for everybody: who only asks whether it serves, as a probe does, needs no key.
        session.tell({"status": status}, f"status: {status}")
        output.note(f"note: what the server is, it tells only with a credential ({error.code})")
        return
    except Unsupported:
        session.tell({"status": status}, f"status: {status}")
        return
    session.tell({"status": status, **rendering.to_json(info)}, f"status: {status}\n{rendering.fields(info)}")


@click.command()
@client_command
def stats(session: Session) -> None:
    """Print what the namespace holds."""
    found = session.client.namespace_stats()
    session.tell(found, rendering.fields(found))


@click.command()
@option("--prefix", default="", help="Only namespaces whose names begin so.")
@client_command
def namespaces(session: Session, prefix: str) -> None:
    """Print all namespaces: items, revision, first write, name."""
    for found in session.client.list_namespaces(prefix=prefix):
        row = f"{found.item_count:>10} items  {found.revision:>10}  {rendering.moment(found.create_time)}"
        session.tell(found, f"{row}  {rendering.one_line(found.namespace)}")


@click.command()
@client_command
def flush(session: Session) -> None:
    """Save indexes and log, and take what was deleted out of the files. Nothing is lost without it."""
    took = session.client.flush()
    session.tell({"duration": took}, f"flushed in {took.total_seconds():.2f} s")
