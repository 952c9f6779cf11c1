"""The command that re-embeds namespaces with the server's embedder."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from memory_service.cli import output, rendering
from memory_service.cli.options import client_command, option
from memory_service.cli.session import CommandError, Session

if TYPE_CHECKING:
    from memory_client import Reembedding

_POLL_S = 0.2


@click.command()
@click.argument("namespaces", metavar="[NAMESPACE]...", nargs=-1)
@option("--all", "everything", is_flag=True, help="All namespaces.")
@option(
    "--replace-client-vectors",
    is_flag=True,
    help="Also replace vectors that clients supplied; they are lost.",
)
@option("--wait/--no-wait", default=True, help="Wait until all items are embedded.")
@client_command
def reembed(
    session: Session, namespaces: Sequence[str], everything: bool, replace_client_vectors: bool, wait: bool
) -> None:
    """Re-embed namespaces with the server's embedder while it runs.

    Default NAMESPACE: that of --namespace. The server embeds the items in the background, even if this
    command is interrupted or the server restarts; run the command again to wait for the rest. Namespaces
    that already use this embedder are skipped, and with --all also those with vectors of clients.
    """
    if everything and namespaces:
        raise click.UsageError("give namespaces or --all, not both")
    names = namespaces or (session.namespace,)
    if everything:
        names = [found.namespace for found in session.client.list_namespaces()]
    waiting: dict[str, int] = {}
    for name in names:
        moved = _begin(session, name, replace_client_vectors, leave_alone=everything)
        if moved is not None:
            waiting[name] = moved.pending_count
            text = f"{moved.pending_count:>10} items to embed  {moved.embedding_model}  {name}"
            session.tell({"namespace": name, **_fields(moved)}, rendering.one_line(text))
    if wait:
        _wait(session, waiting)


def _fields(moved: Reembedding) -> dict[str, object]:
    return {
        "pending_count": moved.pending_count,
        "embedding_model": moved.embedding_model,
        "revision": moved.revision,
    }


def _begin(
    session: Session, name: str, replace_client_vectors: bool, *, leave_alone: bool
) -> Reembedding | None:
    """Begin to re-embed a namespace; return None if it is skipped."""
    from memory_client import FailedPrecondition, MemoryServiceError, NotFound

    try:
        return session.client.namespace(name).reembed(replace_client_vectors=replace_client_vectors)
    except MemoryServiceError as error:
        passed_over = isinstance(error, NotFound | FailedPrecondition) and leave_alone
        # Without an embedder, none of them can be re-embedded.
        if passed_over and session.client.info().embedder != "none":
            output.note(f"note: {name} is skipped: {error}")
            return None
        raise CommandError(f"{name}: {error} ({error.reason or error.code})") from None


def _wait(session: Session, waiting: dict[str, int]) -> None:
    """Show the progress until no item is pending. Counts grow if more is written meanwhile."""
    done = 0
    with output.progress(desc="reembed", total=sum(waiting.values()), unit=" items", leave=False) as bar:
        while waiting:
            for name, before in list(waiting.items()):
                now = _pending_count(session, name)
                done += before - now
                waiting[name] = now
                if not now:
                    del waiting[name]
            bar.update(max(done - bar.n, 0))
            if waiting:
                time.sleep(_POLL_S)


def _pending_count(session: Session, name: str) -> int:
    from memory_client import NotFound

    try:
        return session.client.namespace(name).namespace_stats().pending_count
    except NotFound:
        return 0  # It was deleted meanwhile.
