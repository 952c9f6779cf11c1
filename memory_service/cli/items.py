"""Commands on items: add, retrieve, list, get, delete, reset."""

from __future__ import annotations

import itertools
import sys
from datetime import timedelta
from typing import Any

import click

from memory_service.cli import output, rendering
from memory_service.cli.options import (
    SOURCE_KINDS,
    client_command,
    labels_option,
    min_trust_option,
    option,
    session_option,
    sources_option,
)
from memory_service.cli.parameters import Duration, JsonObject, Moment, Weight
from memory_service.cli.session import CommandError, Session

_FILTER = option(
    "--filter",
    default="",
    help="""Expression that holds for the items, such as 'labels.topic = "travel" AND role = user'.""",
)
_ROLES = click.Choice(["system", "user", "assistant", "tool"])
_MODES = click.Choice(["hybrid", "vector", "lexical"])


@click.command()
@click.argument("text")
@option("--role", type=_ROLES, help="Keep the text as a chat message of this role.")
@option("--name", help="Name of the one who speaks; with --role.")
@session_option
@labels_option
@option("--metadata", type=JsonObject(), help="JSON object to keep with the item.")
@option(
    "--ttl", type=Duration(), help="How long the item lives, as in 30s, 15m, 12h, 7d. For ever if not given."
)
@option("--id", default="", help="Id of the item. Made by the server if not given.")
@option("--importance", type=float, help="How important it is, 0 to 1, for searches that weigh it.")
@option(
    "--source",
    variable="SOURCE_KIND",
    type=SOURCE_KINDS,
    help="Where the content comes from. What it tells, if not given.",
)
@option("--source-uri", default="", help="Where it was found, such as the address of a page.")
@option("--parent", "parent_ids", multiple=True, help="Id of an item that it was made of; may be repeated.")
@option("--trust", type=float, help="How far it is trusted, 0 to 1; it can only lower.")
@client_command
def add(
    session: Session,
    text: str,
    role: str | None,
    name: str | None,
    source: str | None,
    source_uri: str,
    parent_ids: tuple[str, ...],
    trust: float | None,
    **asked: Any,
) -> None:
    """Keep TEXT and print its id. A TEXT of "-" is read from stdin."""
    from memory_client import Provenance, chat_message

    if name and not role:
        raise click.UsageError("--name needs --role")
    text = sys.stdin.read() if text == "-" else text
    said = Provenance(
        source=source or "unspecified", source_uri=source_uri, parent_ids=parent_ids, trust=trust
    )
    item = session.client.add(
        chat_message(role, text, name=name) if role else text,
        provenance=None if said == Provenance(source="unspecified") else said,
        **asked,
    )
    session.tell(item, item.id)
    session.note(item.degraded)


@click.command()
@click.argument("query", required=False)
@option("--limit", default=10, help="The most items wanted; -1 for all.")
@session_option
@labels_option
@_FILTER
@min_trust_option
@sources_option
@option("--mode", type=_MODES, help="By what the query is answered. What fits it, if not given.")
@option("--min-score", type=float, help="Only items that score at least this.")
@option("--explain", is_flag=True, help="Show how each score came about.")
@option(
    "--now", type=Moment(), help='What "yesterday" in the query is relative to. The present if not given.'
)
@option(
    "--weight",
    "weights",
    type=Weight(),
    multiple=True,
    help="What a score is made of: lexical, vector, recency, importance or usage, as in recency=0.2; "
    "give it several times for several weights.",
)
@option("--half-life", type=Duration(), help="Age at which recency is one half, as in 12h. 7d if not given.")
@option(
    "--context-window", default=0, help="Neighbours to print before and after each item, at most so many."
)
@option("--max-tokens", type=int, help="What the texts may take together, estimated. No bound if not given.")
@option("--rerank", is_flag=True, help="Let the server's reranker put the best items in order.")
@option("--record-usage", is_flag=True, help="Count each item as used once.")
@client_command
def retrieve(
    session: Session,
    weights: tuple[tuple[str, float], ...],
    half_life: timedelta | None,
    context_window: int,
    max_tokens: int | None,
    **asked: Any,
) -> None:
    """Print the best items for QUERY, the best first.

    Without a QUERY: the newest items, the oldest of them first. Columns: score, id, time, speaker, text.
    Neighbours have no score; an empty line parts one item with its neighbours from the next.
    """
    from memory_client import ScoreWeights

    is_weighed = bool(weights) or half_life is not None
    scoring = ScoreWeights(**dict(weights), recency_half_life=half_life) if is_weighed else None
    results = session.client.retrieve(
        weights=scoring, context_window=context_window, max_tokens=max_tokens, **asked
    )
    for number, result in enumerate(results):
        parted = "\n" if number and context_window else ""
        session.tell(result, parted + rendering.result_rows(result))
    session.note(results.degraded)
    if max_tokens is not None:
        output.note(f"note: about {results.token_count} tokens")


@click.command("list")
@option("--limit", default=100, help="The most items wanted; -1 for all.")
@session_option
@labels_option
@_FILTER
@min_trust_option
@sources_option
@option("--newest-first", is_flag=True, help="Begin with the newest item.")
@client_command
def list_items(session: Session, limit: int, **asked: Any) -> None:
    """Print the items in the order in which they were added: id, time, speaker, text."""
    items = session.client.list_items(**asked)
    for item in itertools.islice(items, limit if limit >= 0 else None):
        session.tell(item, rendering.item_row(item))


@click.command()
@click.argument("item_id", metavar="ID")
@option("--include-embedding", is_flag=True, help="Print the item's vector, too.")
@client_command
def get(session: Session, item_id: str, include_embedding: bool) -> None:
    """Print all of the item ID."""
    item = session.client.get(item_id, include_embedding=include_embedding)
    session.tell(item, rendering.fields(item))


@click.command()
@click.argument("item_id", metavar="ID")
@client_command
def delete(session: Session, item_id: str) -> None:
    """Remove the item ID and everything derived from it."""
    revision = session.client.delete(item_id)
    session.tell({"revision": revision}, f"deleted {item_id}")


@click.command()
@option("--yes", is_flag=True, help="Do not ask whether this is meant.")
@client_command
def reset(session: Session, yes: bool) -> None:
    """Remove everything of the namespace: items, state and history."""
    if not yes and not output.confirm(f"Remove everything of the namespace {session.namespace!r}?"):
        raise CommandError("nothing was removed")
    removed = session.client.reset()
    session.tell(removed, f"removed {removed.item_count} items and {removed.state_count} state keys")
