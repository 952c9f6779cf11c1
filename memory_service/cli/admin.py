"""Commands on the server as a whole: health, stats, namespaces, flush, backup."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from memory_service.cli import output
from memory_service.cli.options import client_command, option
from memory_service.cli.session import CommandError, Session

if TYPE_CHECKING:
    from tqdm import tqdm

_POLL_S = 0.2


@click.command()
@client_command
def health(session: Session) -> None:
    """Print whether the server takes calls, and what it is; exit code 1 if it does not."""
    status = session.client.health()
    if status != "serving":
        raise CommandError(f"the server answers: {status}")
    info = session.client.info()
    session.tell({"status": status, **output.to_json(info)}, f"status: {status}\n{output.fields(info)}")


@click.command()
@client_command
def stats(session: Session) -> None:
    """Print what the namespace holds."""
    found = session.client.namespace_stats()
    session.tell(found, output.fields(found))


@click.command()
@option("--prefix", default="", help="Only namespaces whose names begin so.")
@client_command
def namespaces(session: Session, prefix: str) -> None:
    """Print all namespaces: items, revision, first write, name."""
    for found in session.client.list_namespaces(prefix=prefix):
        row = f"{found.item_count:>10} items  {found.revision:>10}  {output.moment(found.create_time)}"
        session.tell(found, f"{row}  {found.namespace}")


@click.command()
@client_command
def flush(session: Session) -> None:
    """Save indexes and log, so that the next start of the server is quick. Nothing is lost without it."""
    took = session.client.flush()
    session.tell({"duration": took}, f"flushed in {took.total_seconds():.2f} s")


@click.command()
@click.argument("name", default="")
@client_command
def backup(session: Session, name: str) -> None:
    """Write a consistent copy of all records to the server's backup folder, as NAME.

    Without a NAME the present time makes one.
    """
    with _backup_progress(session):
        written = session.client.backup(name)
    session.tell(written, output.fields(written))


@contextmanager
def _backup_progress(session: Session) -> Iterator[None]:
    """Show the progress that the server tells while it writes a backup."""
    from tqdm import tqdm

    done = threading.Event()
    with tqdm(desc="backup", unit="B", unit_scale=True, disable=None, leave=False) as bar:
        poller = threading.Thread(target=_poll, args=(session, bar, done), daemon=True)
        poller.start()
        try:
            yield
        finally:
            done.set()
            poller.join()


def _poll(session: Session, bar: tqdm[Any], done: threading.Event) -> None:
    from memory_client import MemoryServiceError

    while not bar.disable and not done.wait(_POLL_S):
        try:
            progress = session.client.info().backup
        except MemoryServiceError:
            return  # The bar stands still; the backup itself tells what is wrong.
        if progress is not None:
            bar.total = progress.total_bytes
            bar.update(progress.done_bytes - bar.n)
