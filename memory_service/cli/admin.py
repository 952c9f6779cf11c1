"""Commands on a server as a whole: health, stats, namespaces, settings, flush."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from memory_service.cli import output, rendering
from memory_service.cli.options import client_command, option, own_variables
from memory_service.cli.parameters import Duration
from memory_service.cli.session import CommandError, Session

if TYPE_CHECKING:
    from memory_client import NamespaceSettings


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
@option("--usage", is_flag=True, help="Also print its bytes and calls, for which all of it may be read.")
@client_command
def stats(session: Session, usage: bool) -> None:
    """Print the counts, sizes and times of the namespace."""
    found = session.client.namespace_stats(include_usage=usage)
    session.tell(found, rendering.fields(found))


@click.command()
@option("--prefix", default="", help="Only namespaces whose names begin with this.")
@client_command
def namespaces(session: Session, prefix: str) -> None:
    """Print all namespaces: items, revision, first write, name."""
    for found in session.client.list_namespaces(prefix=prefix):
        row = f"{found.item_count:>10} items  {found.revision:>10}  {rendering.moment(found.create_time)}"
        session.tell(found, f"{row}  {rendering.one_line(found.namespace)}")


@own_variables
@click.command()
@option("--time-zone", help='IANA name of the time zone of its users, such as Europe/Berlin; "": UTC.')
@option(
    "--default-ttl",
    type=Duration(),
    help="Time to live of items of conversations that are added without one, such as 7d; not of imports, "
    "facts, states, files and documents.",
)
@option("--no-default-ttl", is_flag=True, help="Let such items live forever.")
@option("--expected-version", type=int, help="Only if the settings have this version; 0: if there are none.")
@client_command
def settings(
    session: Session,
    time_zone: str | None,
    default_ttl: timedelta | None,
    no_default_ttl: bool,
    expected_version: int | None,
) -> None:
    """Change settings of the namespace, and print them; without options, only print them."""
    changes: dict[str, Any] = {} if time_zone is None else {"time_zone": time_zone}
    if default_ttl is not None or no_default_ttl:
        if default_ttl is not None and no_default_ttl:
            raise CommandError("--default-ttl and --no-default-ttl exclude each other")
        changes["default_ttl"] = default_ttl
    if changes:
        found = session.client.update_namespace(**changes, expected_version=expected_version)
    elif expected_version is not None:
        raise click.UsageError("--expected-version needs a change")
    else:
        found = _settings_of(session)
    session.tell(found, rendering.fields(found))


def _settings_of(session: Session) -> NamespaceSettings:
    from memory_client import NamespaceSettings

    never_set = NamespaceSettings(time_zone="", default_ttl=None, version=0)
    return session.client.namespace_stats().settings or never_set


@click.command()
@client_command
def flush(session: Session) -> None:
    """Save index snapshots and purge deleted data from files. Acknowledged writes are durable anyway."""
    took = session.client.flush()
    session.tell({"duration": took}, f"flushed in {took.total_seconds():.2f} s")
