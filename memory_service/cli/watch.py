"""The command that shows changes as they happen."""

from __future__ import annotations

import contextlib

import click

from memory_service.cli import rendering
from memory_service.cli.options import client_command, option
from memory_service.cli.session import Session


@click.command()
@option("--after-revision", type=int, help="Changes after this revision; 0: all; default: from now on.")
@client_command
def watch(session: Session, after_revision: int | None) -> None:
    """Print every change of the namespace as it happens, until Ctrl-C.

    Columns: revision, type, id or key, text or value. If the server goes down, wait for it.
    """
    changes = session.client.watch(after_revision=after_revision)
    with contextlib.suppress(KeyboardInterrupt), contextlib.closing(changes):
        for change in changes:
            session.tell(change, rendering.change_row(change))
