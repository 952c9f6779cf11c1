"""Commands on documents: add, list, get, search, delete."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memory_service.cli import output
from memory_service.cli.options import (
    client_command,
    labels_option,
    min_trust_option,
    mode_option,
    option,
    session_option,
    sources_option,
)
from memory_service.cli.parameters import Duration, JsonObject
from memory_service.cli.rendering import moment, one_line
from memory_service.cli.session import CommandError, Session

if TYPE_CHECKING:
    from memory_client import Document, FragmentResult


@click.group()
def documents() -> None:
    """Texts that are kept whole and searched by their fragments: add, list, get, search, delete."""


@documents.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@option("--title", help="Title of the document. The name of FILE if not given.")
@option("--source", help="What the text comes from, such as a URL. The path of FILE if not given.")
@option("--id", default="", help="Id of the document. Made by the server if not given.")
@session_option
@labels_option
@option("--metadata", type=JsonObject(), help="JSON object to keep with the document.")
@option("--ttl", type=Duration(), help="How long it lives, as in 30s, 15m, 12h, 7d. For ever if not given.")
@option("--max-characters", type=int, help="The most characters of a fragment. The server's if not given.")
@option(
    "--overlap-characters",
    type=int,
    help="The most characters that a fragment repeats of the one before. The server's if not given.",
)
@option("--replace", is_flag=True, help="Take the place of the document that has this id, if there is one.")
@option("--expected-version", type=int, help="With --replace: only if this is the document's version.")
@client_command
def add(session: Session, file: str, title: str | None, source: str | None, **asked: Any) -> None:
    """Keep the text of FILE, in UTF-8, as a document and print its id. A FILE of "-" is stdin."""
    is_stdin = file == "-"
    document = session.client.add_document(
        _text(file),
        title=("" if is_stdin else Path(file).name) if title is None else title,
        source=("" if is_stdin else file) if source is None else source,
        **asked,
    )
    session.tell(document, document.id)
    session.note(document.degraded)


def _text(file: str) -> str:
    with click.open_file(file, "rb") as opened:
        content: bytes = opened.read()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CommandError(f"{file} is no text in UTF-8: byte {error.start} fits nothing") from None


@documents.command("list")
@option("--limit", default=100, help="The most documents wanted; -1 for all.")
@session_option
@labels_option
@option("--newest-first", is_flag=True, help="Begin with the newest document.")
@min_trust_option
@sources_option
@client_command
def list_documents(session: Session, limit: int, **asked: Any) -> None:
    """Print the documents in the order in which they were added.

    Columns: id, time, version, fragments, size, title or else the beginning of the text.
    """
    found = session.client.list_documents(**asked)
    for document in itertools.islice(found, limit if limit >= 0 else None):
        session.tell(document, _document_row(document))


def _document_row(document: Document) -> str:
    row = f"{one_line(document.id):36}  {moment(document.create_time)}  v{document.version:<5}"
    row += f" {document.fragment_count:>5} fragments  {document.size_bytes:>8} B"
    return f"{row}  {one_line(document.title or document.preview)}"


@documents.command()
@click.argument("document_id", metavar="ID")
@option("--fragments", is_flag=True, help="Print the fragments, each with its offsets, in place of the text.")
@client_command
def get(session: Session, document_id: str, fragments: bool) -> None:
    """Print the text of the document ID, byte for byte where it goes to a file; with --json all of it."""
    document = session.client.get_document(document_id, include_fragments=fragments)
    rows = [
        f"{f.index:>5}  {f.start_offset:>8}-{f.end_offset:<8}  {one_line(f.text)}" for f in document.fragments
    ]
    if fragments or session.as_json:
        session.tell(document, "\n".join(rows))
    else:
        output.tell_exactly(document.text)


@documents.command()
@click.argument("query")
@option("--limit", default=5, help="The most fragments wanted; -1 for all.")
@option("--document", "document_ids", multiple=True, help="Only of the document of this id; repeatable.")
@session_option
@labels_option
@mode_option
@option("--min-score", type=float, help="Only fragments that score at least this.")
@min_trust_option
@sources_option
@client_command
def search(session: Session, **asked: Any) -> None:
    """Print the fragments that fit QUERY best, the best first.

    Columns: score, id of the document, its title, offsets, text.
    """
    results = session.client.search_fragments(**asked)
    for result in results:
        session.tell(result, _fragment_row(result))
    session.note(results.degraded)


def _fragment_row(result: FragmentResult) -> str:
    fragment = result.fragment
    row = f"{result.score:7.4f}  {one_line(fragment.document_id):36}"
    row += f"  {one_line(result.document.title):20}  {fragment.start_offset}-{fragment.end_offset}"
    return f"{row}  {one_line(fragment.text)}"


@documents.command()
@click.argument("document_id", metavar="ID")
@option("--expected-version", type=int, help="Do it only if this is the document's version.")
@client_command
def delete(session: Session, document_id: str, expected_version: int | None) -> None:
    """Remove the document ID and all its fragments."""
    removed = session.client.delete_document(document_id, expected_version=expected_version)
    session.tell(removed, f"deleted {one_line(document_id)} with {removed.fragment_count} fragments")
