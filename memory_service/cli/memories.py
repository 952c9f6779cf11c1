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
    help="Only memories of this category; give it several times for several categories.",
)
_HISTORY = option("--history", "include_history", is_flag=True, help="Also memories that hold no more.")
_AS_OF = option(
    "--as-of",
    "as_of_time",
    type=Moment(),
    help="Memories that held at this time. Those that hold now if not given.",
)
_MIN_IMPORTANCE = option("--min-importance", type=float, help="Only memories at least this important by now.")
_DECIDE_BY = option(
    "--decide-by",
    type=click.Choice(["llm", "rules"]),
    help="Who is to decide. The language model if it can, else rules, if not given.",
)
_ON_CONTRADICTION = option(
    "--on-contradiction",
    type=click.Choice(["supersede", "keep_both", "refuse"]),
    default="supersede",
    help="What becomes of a fact that contradicts a known one.",
)


@click.group()
def memories() -> None:
    """Facts about a user: save, search, list, delete, preload, extract, export."""


@memories.command()
@click.argument("content")
@option("--category", type=_CATEGORY, required=True, help="What the fact is about.")
@option("--reasoning", required=True, help="Why it is worth remembering, in 10 to 200 characters.")
@session_option
@option("--quote", default="", help="What the user said, word for word.")
@option("--actor", default="", help="Who saves it, such as an agent's name.")
@option("--explicit-request", is_flag=True, help="The user asked for it: it is more important.")
@_ON_CONTRADICTION
@option(
    "--valid-from", "valid_from_time", type=Moment(), help="When the fact began to hold. Now if not given."
)
@option("--ttl", type=Duration(), help="How long it lives, as in 30s, 15m, 12h, 7d. For ever if not given.")
@labels_option
@option("--metadata", type=JsonObject(), help="JSON object to keep with the memory.")
@option("--keep-wording", is_flag=True, help="Save CONTENT as it is, not in the third person.")
@_DECIDE_BY
@client_command
def save(session: Session, session_id: str, quote: str, actor: str, **asked: Any) -> None:
    """Save the fact CONTENT, unless it is known; print what became of it, id and content."""
    from memory_client import MemorySource

    source = MemorySource(session_id=session_id, quote=quote, actor=actor)
    saved = session.client.save_memory(source=source, **asked)
    session.tell(saved, outcome_rows(saved))
    _note(session, saved)


def _note(session: Session, answer: SavedMemory | Extraction) -> None:
    """Tell on stderr what the server could not do, and what went wrong on the way to its decision."""
    from memory_client import Degradation

    failures = [Degradation(failure.reason, failure.message) for failure in answer.failures]
    session.note([*answer.degraded, *failures])


@memories.command()
@click.argument("query")
@option("--limit", default=5, help="The most memories wanted; -1 for all.")
@_CATEGORIES
@_AS_OF
@_HISTORY
@_MIN_IMPORTANCE
@session_option
@labels_option
@mode_option
@option("--min-score", type=float, help="Only memories that score at least this.")
@min_trust_option
@sources_option
@client_command
def search(session: Session, **asked: Any) -> None:
    """Print the memories that fit QUERY best, the best first.

    Columns: score, id, from when and until when it holds, category, importance, content.
    """
    results = session.client.search_memories(**asked)
    for result in results:
        session.tell(result, memory_row(result.memory, f"{result.score:7.4f}  "))
    session.note(results.degraded)


@memories.command("list")
@option("--limit", default=100, help="The most memories wanted; -1 for all.")
@_CATEGORIES
@_AS_OF
@_HISTORY
@_MIN_IMPORTANCE
@session_option
@labels_option
@option("--newest-first", is_flag=True, help="Begin with the newest memory.")
@min_trust_option
@sources_option
@client_command
def list_memories(session: Session, limit: int, **asked: Any) -> None:
    """Print the memories in the order in which they were saved.

    Columns: id, from when and until when it holds, category, importance, content.
    """
    found = session.client.list_memories(**asked)
    for memory in itertools.islice(found, limit if limit >= 0 else None):
        session.tell(memory, memory_row(memory))


@memories.command()
@click.argument("memory_id", metavar="ID")
@option("--history", is_flag=True, help="Remove also what the memory superseded or was made out of.")
@option("--expected-version", type=int, help="Do it only if this is the memory's version.")
@client_command
def delete(session: Session, memory_id: str, history: bool, expected_version: int | None) -> None:
    """Remove the memory ID."""
    removed = session.client.delete_memory(
        memory_id, include_history=history, expected_version=expected_version
    )
    session.tell(removed, f"deleted {removed.count} {'memory' if removed.count == 1 else 'memories'}")


@memories.command()
@option("--max-tokens", default=1000, help="Tokens that the text may take, estimated; -1: no bound.")
@_CATEGORIES
@option("--limit", default=100, help="The most memories wanted.")
@_MIN_IMPORTANCE
@_AS_OF
@labels_option
@min_trust_option
@sources_option
@client_command
def preload(session: Session, **asked: Any) -> None:
    """Print the most important memories as a block for a system prompt.

    Without --category: identity, preference and relationship.
    """
    found = session.client.get_preloaded_memories(**asked)
    session.tell(found, found.text)
    if found.omitted_count:
        output.note(f"note: {found.omitted_count} memories were left out")


@memories.command()
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@session_option
@option("--after-revision", default=0, help="Only items of the session later than this; without a FILE.")
@option("--limit", type=int, help="The most items of the session, 100 if not given; without a FILE.")
@option(
    "--recalled",
    "recalled_memory_ids",
    multiple=True,
    help="Id of a memory that was put into the conversation; repeatable.",
)
@_CATEGORIES
@option("--dry-run", is_flag=True, help="Tell what would be saved, and write nothing.")
@_ON_CONTRADICTION
@_DECIDE_BY
@option("--actor", default="", help="Who has the memories saved, such as an agent's name.")
@labels_option
@client_command
def extract(session: Session, file: str | None, **asked: Any) -> None:
    """Find facts about the user in the messages of FILE, or in the items of --session, and save them.

    FILE is JSON or JSONL in OpenAI's format, "-" is stdin; it is not stored. Columns: what became of
    each fact, id, content.
    """
    if file is None and not asked["session_id"]:
        raise click.UsageError("give a FILE or a --session")
    if file is not None and (asked["after_revision"] or asked["limit"] is not None):
        raise click.UsageError("--after-revision and --limit are for a --session without a FILE")
    found = session.client.extract_memories(_messages(file) if file else (), **asked)
    if session.as_json:
        session.tell(found, "")
    for result in () if session.as_json else found.results:
        output.tell(outcome_rows(result))
    if found.more:
        output.note(f"note: there is more; go on with --after-revision {found.examined_revision}")
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
    help="Of the export.",
)
@option(
    "--output",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write. Stdout if not given.",
)
@client_command
def export(session: Session, file_format: str, file: Path | None) -> None:
    """Write all memories with their history: a JSON list of objects, or Markdown to read."""
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
