"""Commands on facts about a user: save, search, list, delete, preload, extract, export."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memory_service.cli import output
from memory_service.cli.memory_rendering import as_json, as_markdown, memory_row, outcome_rows
from memory_service.cli.options import (
    client_command,
    labels_option,
    min_trust_option,
    mode_option,
    option,
    session_option,
    sources_option,
)
from memory_service.cli.parameters import Duration, JsonObject, Moment
from memory_service.cli.session import CommandError, Session

if TYPE_CHECKING:
    from memory_client import ChatMessage, Extraction, SavedMemory

_CATEGORY = click.Choice(["identity", "preference", "relationship", "project", "context"])

_CATEGORIES = option(
    "--category",
    "categories",
    type=_CATEGORY,
    multiple=True,
    help="Only memories of this category; repeatable.",
)
_HISTORY = option(
    "--history", "include_history", is_flag=True, help="Include memories that are no longer valid."
)
_AS_OF = option(
    "--as-of",
    "as_of_time",
    type=Moment(),
    help="Memories that were valid at this time; default: now.",
)
_MIN_IMPORTANCE = option(
    "--min-importance", type=float, help="Only memories with at least this importance now."
)
_DECIDE_BY = option(
    "--decide-by",
    type=click.Choice(["llm", "rules"]),
    help="Decide with the language model or by rules; default: the model if available.",
)
_ON_CONTRADICTION = option(
    "--on-contradiction",
    type=click.Choice(["supersede", "keep_both", "refuse"]),
    default="supersede",
    help="What to do with a fact that contradicts a known one.",
)


@click.group()
def memories() -> None:
    """Manage facts about a user: save, search, list, delete, preload, extract, export."""


@memories.command()
@click.argument("content")
@option("--category", type=_CATEGORY, required=True, help="Category of the fact.")
@option("--reasoning", required=True, help="Why the fact is worth remembering, in 10 to 200 characters.")
@session_option
@option("--quote", default="", help="Literal words of the user.")
@option("--actor", default="", help="Name of the agent or application that saves the memory.")
@option(
    "--explicit-request", is_flag=True, help="The user asked to remember it, which makes it more important."
)
@_ON_CONTRADICTION
@option("--valid-from", "valid_from_time", type=Moment(), help="Since when the fact is valid; default: now.")
@option("--ttl", type=Duration(), help="Time to live, such as 30s, 15m, 12h or 7d; default: forever.")
@labels_option
@option("--metadata", type=JsonObject(), help="JSON object to store with the memory.")
@option("--keep-wording", is_flag=True, help="Save CONTENT unchanged, not in the third person.")
@_DECIDE_BY
@client_command
def save(session: Session, session_id: str, quote: str, actor: str, **asked: Any) -> None:
    """Save the fact CONTENT unless it is known; print the outcome, id and content."""
    from memory_client import MemorySource

    source = MemorySource(session_id=session_id, quote=quote, actor=actor)
    saved = session.client.save_memory(source=source, **asked)
    session.tell(saved, outcome_rows(saved))
    _note(session, saved)


def _note(session: Session, answer: SavedMemory | Extraction) -> None:
    """Print to stderr what the server could not do, and failures that it handled."""
    from memory_client import Degradation

    failures = [Degradation(failure.reason, failure.message) for failure in answer.failures]
    session.note([*answer.degraded, *failures])


@memories.command()
@click.argument("query")
@option("--limit", default=5, help="Maximum number of memories; -1: all.")
@_CATEGORIES
@_AS_OF
@_HISTORY
@_MIN_IMPORTANCE
@session_option
@labels_option
@mode_option
@option("--min-score", type=float, help="Only memories with at least this score.")
@min_trust_option
@sources_option
@client_command
def search(session: Session, **asked: Any) -> None:
    """Print the memories that match QUERY best, best first.

    Columns: score, id, valid from, valid until, category, importance, content.
    """
    results = session.client.search_memories(**asked)
    for result in results:
        session.tell(result, memory_row(result.memory, f"{result.score:7.4f}  "))
    session.note(results.degraded)


@memories.command("list")
@option("--limit", default=100, help="Maximum number of memories; -1: all.")
@_CATEGORIES
@_AS_OF
@_HISTORY
@_MIN_IMPORTANCE
@session_option
@labels_option
@option("--newest-first", is_flag=True, help="Newest memory first.")
@min_trust_option
@sources_option
@client_command
def list_memories(session: Session, limit: int, **asked: Any) -> None:
    """Print the memories in insertion order.

    Columns: id, valid from, valid until, category, importance, content.
    """
    found = session.client.list_memories(**asked)
    for memory in itertools.islice(found, limit if limit >= 0 else None):
        session.tell(memory, memory_row(memory))


@memories.command()
@click.argument("memory_id", metavar="ID")
@option("--history", is_flag=True, help="Also delete the memories that it superseded or was merged from.")
@option("--keep-derived", is_flag=True, help="Keep what was made only from the deleted memories.")
@option("--expected-version", type=int, help="Only if the memory has this version.")
@client_command
def delete(
    session: Session, memory_id: str, history: bool, keep_derived: bool, expected_version: int | None
) -> None:
    """Delete the memory ID, and what was made only from it."""
    removed = session.client.delete_memory(
        memory_id, include_history=history, expected_version=expected_version, keep_derived=keep_derived
    )
    noun = "memory" if removed.count == 1 else "memories"
    session.tell(removed, f"deleted {removed.count} {noun}{output.and_derived(removed.derived_count)}")


@memories.command()
@option("--max-tokens", default=1000, help="Estimated maximum tokens of the text; -1: no limit.")
@_CATEGORIES
@option("--limit", default=100, help="Maximum number of memories.")
@_MIN_IMPORTANCE
@_AS_OF
@labels_option
@min_trust_option
@sources_option
@option(
    "--if-not-revision",
    type=int,
    help="The revision of an earlier result; if the text is the same since, print none and exit with 0.",
)
@client_command
def preload(session: Session, **asked: Any) -> None:
    """Print the most important memories as a block for a system prompt, in the order of saving.

    Without --category: identity, preference and relationship.
    """
    found = session.client.get_preloaded_memories(**asked)
    if not found.unchanged or session.as_json:
        session.tell(found, found.text)
    if found.unchanged:
        output.note("note: the text is unchanged")
    elif found.omitted_count:
        output.note(f"note: {found.omitted_count} memories were omitted")


@memories.command()
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@session_option
@option("--after-revision", default=0, help="Only later items of the session; without FILE.")
@option("--limit", type=int, help="Maximum items of the session; default: 100; without FILE.")
@option(
    "--recalled",
    "recalled_memory_ids",
    multiple=True,
    help="Id of a memory that was included in the conversation; repeatable.",
)
@_CATEGORIES
@option("--dry-run", is_flag=True, help="Print what would be saved without saving it.")
@_ON_CONTRADICTION
@_DECIDE_BY
@option("--actor", default="", help="Name of the agent or application that saves the memory.")
@labels_option
@client_command
def extract(session: Session, file: str | None, **asked: Any) -> None:
    """Extract facts about the user from the messages of FILE or the items of --session, and save them.

    FILE is JSON or JSONL in OpenAI's format, "-" is stdin; its messages are not stored. Columns: outcome, id,
    content.
    """
    if file is None and not asked["session_id"]:
        raise click.UsageError("give a FILE or a --session")
    if file is not None and (asked["after_revision"] or asked["limit"] is not None):
        raise click.UsageError("--after-revision and --limit need a --session without a FILE")
    found = session.client.extract_memories(_messages(file) if file else (), **asked)
    if session.as_json:
        session.tell(found, "")
    for result in () if session.as_json else found.results:
        output.tell(outcome_rows(result))
    if found.more:
        output.note(f"note: there are more items; continue with --after-revision {found.examined_revision}")
    _note(session, found)


def _messages(file: str) -> list[ChatMessage]:
    from memory_client import ChatMessage, MemoryItem
    from memory_service.importing import read_records

    with click.open_file(file, "rb") as lines:
        records = list(read_records(lines, name=file, format="openai", session_id="", omit_large_files=True))
    contents = [record.content for record in records if isinstance(record, MemoryItem)]
    return [content for content in contents if isinstance(content, ChatMessage)]


@memories.command()
@option(
    "--format",
    "file_format",
    type=click.Choice(["json", "markdown"]),
    default="json",
    variable="MEMORIES_FORMAT",
    help="Format of the export.",
)
@option(
    "--output",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write; default: stdout.",
)
@client_command
def export(session: Session, file_format: str, file: Path | None) -> None:
    """Export all memories with their history as a JSON list or as Markdown."""
    found = list(session.client.list_memories(include_history=True, page_size=1000))
    text = as_json(found) if file_format == "json" else as_markdown(session.namespace, found)
    if file is None:
        output.tell(text.removesuffix("\n"))
        return
    part = file.with_name(file.name + ".part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(file)
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}") from None
    record = {"exported_count": len(found), "file": str(file)}
    session.tell(record, f"exported {len(found)} memories to {file}")
