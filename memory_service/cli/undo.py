"""The command that undoes the writes of a writer."""

from __future__ import annotations

from datetime import datetime

import click

from memory_service.cli import rendering
from memory_service.cli.options import client_command, option
from memory_service.cli.parameters import Since
from memory_service.cli.session import Session


@click.command()
@option("--writer", default="", help="Undo writes of this writer (principal of the credential).")
@option("--credential-id", default="", help="Only writes with this credential; default: any.")
@option("--any-writer", is_flag=True, help="Undo writes of all callers, also without a credential.")
@option(
    "--since",
    type=Since(),
    required=True,
    help="Undo writes since this time, or since this long ago, such as 2h.",
)
@option("--dry-run", is_flag=True, help="Print what would be undone without undoing it.")
@client_command
def undo(
    session: Session, writer: str, credential_id: str, any_writer: bool, since: datetime, dry_run: bool
) -> None:
    """Undo the writes of a writer to the namespace.

    Added items and states are removed, and replaced ones are restored to the version before. Deleted ones
    cannot be restored.
    """
    done = session.client.undo_writes(
        since, writer=writer, credential_id=credential_id, any_writer=any_writer, dry_run=dry_run
    )
    verb = "would be " if dry_run else ""
    rows = [
        f"{verb}removed: {done.removed_count}, {verb}restored: {done.restored_count}, "
        f"cannot be undone: {done.unrestorable_count}"
    ]
    rows += [f"  {rendering.one_line(name)}" for name in done.unrestorable_ids]
    session.tell(done, "\n".join(rows))
