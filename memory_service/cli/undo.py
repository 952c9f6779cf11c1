"""The command that takes back what somebody wrote."""

from __future__ import annotations

from datetime import datetime

import click

from memory_service.cli import rendering
from memory_service.cli.options import client_command, option
from memory_service.cli.parameters import Since
from memory_service.cli.session import Session


@click.command()
@option("--writer", default="", help="Whose writes, by the name of the credential.")
@option("--credential-id", default="", help="With which credential they wrote. Any, if not given.")
@option("--any-writer", is_flag=True, help="What everybody wrote, also without a credential.")
@option("--since", type=Since(), required=True, help="From when on: a time, or how long ago, as in 2h.")
@option("--dry-run", is_flag=True, help="Tell what would be done, and do nothing.")
@client_command
def undo(
    session: Session, writer: str, credential_id: str, any_writer: bool, since: datetime, dry_run: bool
) -> None:
    """Take back what somebody wrote to the namespace.

    Items and states that they added are removed, and what they replaced gets back the version before.
    What they deleted cannot come back.
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
