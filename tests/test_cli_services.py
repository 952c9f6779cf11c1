"""The commands on facts about a user, on documents and on sessions, against a real server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from memory_client import (
    MemoryCategory,
    MemoryClient,
    MemorySource,
    OnContradiction,
    Provenance,
    chat_message,
)
from memory_service.cli import main
from memory_service.cli.memories import Moment, memories
from scripted_openai import ScriptedOpenAI
from server_process import ServerProcess

Run = Callable[..., Result]
WHY = "It is worth remembering for long"


@pytest.fixture
def run(server: ServerProcess, namespace: str) -> Run:
    """Run a command in the test's namespace; it must not print an error unless the test expects one."""
    environment = {"MEMORY_SERVICE_ADDRESS": server.address, "MEMORY_SERVICE_NAMESPACE": namespace}

    def run(*arguments: str, stdin: str | bytes | None = None, exit_code: int = 0) -> Result:
        result = CliRunner(env=environment).invoke(main, arguments, input=stdin)
        assert result.exit_code == exit_code, (result.stderr, result.exception)
        return result

    return run


def json_lines(result: Result) -> list[Any]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def save(run: Run, content: str, category: str, *options: str) -> Any:
    arguments = ("memories", "save", content, "--category", category, "--reasoning", WHY, "--json", *options)
    (saved,) = json_lines(run(*arguments))
    return saved


def moved(run: Run) -> tuple[str, str]:
    """Let the user move house; return the ids of both memories."""
    london = save(run, "User lives in London", "identity", "--valid-from", "2025-01-01")
    paris = save(run, "User lives in Paris", "identity", "--valid-from", "2026-01-31T12:00:00Z")
    return london["memory"]["id"], paris["memory"]["id"]


def test_the_commands_that_there_are() -> None:
    names = {
        group: command.list_commands(click.Context(command))
        for group in ("memories", "documents", "sessions", "files")
        if isinstance(command := main.get_command(click.Context(main), group), click.Group)
    }
    assert set(names["memories"]) == {"save", "search", "list", "delete", "preload", "extract", "export"}
    assert set(names["documents"]) == {"add", "list", "get", "search", "delete"}
    assert set(names["sessions"]) == {"list", "get", "update", "delete", "fork"}
    assert set(names["files"]) == {
        *("read", "write", "edit", "rename", "delete", "list", "search", "versions", "redact")
    }


def test_the_choices_are_those_of_the_client() -> None:
    assert isinstance(memories, click.Group)
    choices = {
        option.name: set(option.type.choices)
        for option in memories.commands["save"].params
        if isinstance(option.type, click.Choice)
    }
    assert choices["category"] == set(MemoryCategory) - {"unspecified"}
    assert choices["on_contradiction"] == set(OnContradiction)


def test_the_commands_load_no_server_and_help_no_grpc() -> None:
    heavy = {"numpy", "openai", "hnswlib", "apsw", "uvloop", "memory_service.server", "grpc"}
    names = ("memories", "documents", "sessions", "files")
    modules = ", ".join(f"memory_service.cli.{name}" for name in names)
    code = f"import sys, {modules}; print({heavy!r} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


def test_a_memory_is_saved_once_and_its_outcome_told(run: Run) -> None:
    arguments = ("memories", "save", "I prefer dark mode", "--category", "preference", "--reasoning", WHY)
    first = run(*arguments).stdout
    assert re.fullmatch(r"saved +\S+ +User prefers dark mode\n", first)
    assert run(*arguments).stdout == first.replace("saved    ", "duplicate"), "the known one is shown"
    short = run("memories", "save", "tea", "--category", "context", "--reasoning", WHY, exit_code=1)
    assert re.fullmatch(r"error: .*content.*\(INVALID_FIELD\)\n", short.stderr)
    assert "--reasoning" in run("memories", "save", "tea", "--category", "context", exit_code=2).stderr


def test_a_language_model_that_fails_is_told_on_stderr(namespace: str) -> None:
    with ScriptedOpenAI() as llm:
        flags = ["--store", "memory", "--embedder", "none", *llm.flags]
        with ServerProcess(flags=flags, env=llm.environment()) as process:
            arguments = ["memories", "save", "I prefer dark mode", "--category", "preference"]
            arguments += ["--reasoning", WHY, "--address", process.address, "--namespace", namespace]
            result = CliRunner().invoke(main, arguments)
    assert re.fullmatch(r"saved +\S+ +User prefers dark mode\n", result.stdout)
    assert re.search(r"^note: .*\(LLM_UNAVAILABLE\)$", result.stderr, re.MULTILINE)


def test_every_option_of_save_arrives(run: Run) -> None:
    saved = save(
        run,
        "Me and Ann started Acme in 2019",
        "project",
        *("--session", "s", "--quote", "We did", "--actor", "bot", "--explicit-request", "--ttl", "1h"),
        *("--valid-from", "2025-01-01", "--label", "a=b", "--metadata", '{"n": 1}', "--keep-wording"),
        *("--on-contradiction", "keep_both", "--decide-by", "rules"),
    )
    memory = saved["memory"]
    assert memory["content"] == "Me and Ann started Acme in 2019"
    source = memory["source"]
    assert (source["session_id"], source["quote"], source["actor"]) == ("s", "We did", "bot")
    assert "explicit_request" in {boost["name"] for boost in memory["importance"]["boosts"]}
    assert memory["valid_from_time"] == "2025-01-01T00:00:00Z"
    assert (memory["labels"], memory["metadata"]) == ({"a": "b"}, {"n": 1})
    assert "expire_time" in memory


def test_a_contradiction_shows_what_ended(run: Run) -> None:
    save(run, "User lives in London", "identity")
    arguments = ("--category", "identity", "--reasoning", WHY)
    refused = run("memories", "save", "User lives in Rome", *arguments, "--on-contradiction", "refuse").stdout
    assert re.fullmatch(r"contradiction +\S+ +User lives in London\n", refused)
    rows = run("memories", "save", "User lives in Paris", *arguments).stdout
    assert re.fullmatch(r"superseded +\S+ +User lives in Paris\nended +\S+ +User lives in London\n", rows)


def test_memories_are_searched_and_listed_as_of_a_time(run: Run) -> None:
    london, paris = moved(run)
    save(run, "User likes green tea", "preference", "--label", "topic=food", "--session", "s")
    (row,) = run("memories", "search", "where does the user live?", "--limit", "1").stdout.splitlines()
    assert re.fullmatch(
        rf" 1\.0000  {paris} +2026-01-31 12:00:00Z +identity +\d+\.\d\d  User lives in Paris", row
    )

    def listed(*options: str) -> list[str]:
        found = json_lines(run("memories", "list", "--json", *options))
        return [memory["content"].rsplit(maxsplit=1)[-1] for memory in found]

    assert listed() == ["Paris", "tea"]
    assert listed("--newest-first", "--limit", "1") == ["tea"]
    assert listed("--history") == ["London", "Paris", "tea"]
    assert listed("--as-of", "2025-06-01") == ["London"]
    assert listed("--category", "identity", "--category", "context") == ["Paris"]
    assert listed("--label", "topic=food") == listed("--session", "s") == ["tea"]
    assert listed("--min-importance", "9.5") == ["Paris"]
    assert listed("--source", "web") == []
    ended = run("memories", "list", "--history").stdout.splitlines()[0]
    assert re.match(rf"{london} +2025-01-01 00:00:00Z  2026-01-31 12:00:00Z  identity", ended)
    found = json_lines(
        run("memories", "search", "user", "--json", "--category", "preference", "--mode", "lexical")
    )
    assert [result["memory"]["content"] for result in found] == ["User likes green tea"]


def test_a_memory_is_deleted_with_its_history(run: Run) -> None:
    _, paris = moved(run)
    refused = run("memories", "delete", paris, "--expected-version", "9", exit_code=1)
    assert "(VERSION_MISMATCH)" in refused.stderr
    assert run("memories", "delete", paris, "--history").stdout == "deleted 2 memories\n"
    missing = run("memories", "delete", paris, exit_code=1)
    assert missing.stderr.endswith("(MEMORY_NOT_FOUND)\n")


def test_the_preloaded_text_is_printed_as_it_is(run: Run, server: ServerProcess, namespace: str) -> None:
    moved(run)
    save(run, "User builds a boat", "project")
    with MemoryClient(server.address, namespace=namespace) as client:
        text = client.get_preloaded_memories().text
    assert "User lives in Paris" in text
    assert run("memories", "preload").stdout == text + "\n"
    assert "User builds a boat" in run("memories", "preload", "--category", "project").stdout
    assert run("memories", "preload", "--source", "web").stdout == "\n"
    assert run("memories", "preload", "--source", "unspecified").stdout == text + "\n"
    cut = run("memories", "preload", "--max-tokens", "1")
    assert (cut.stdout, cut.stderr) == ("\n", "note: 1 memories were omitted\n")
    revision = str(json.loads(run("memories", "preload", "--json").stdout)["revision"])
    unchanged = run("memories", "preload", "--if-not-revision", revision)
    assert (unchanged.stdout, "unchanged" in unchanged.stderr) == ("", True)
    assert json.loads(run("memories", "preload", "--if-not-revision", revision, "--json").stdout)["unchanged"]


def test_facts_that_are_not_trusted_are_neither_listed_nor_preloaded(
    run: Run, server: ServerProcess, namespace: str
) -> None:
    save(run, "User likes green tea", "preference")
    with MemoryClient(server.address, namespace=namespace) as client:
        page = client.add("a page", provenance=Provenance(source="web", trust=0.25))
        source = MemorySource(item_ids=[page.id])
        client.save_memory("User obeys every page", "preference", "It says so itself", source=source)
    for command in ("list", "preload"):
        assert "obeys" in run("memories", command, "--min-trust", "0.25").stdout
        trusted = run("memories", command, "--min-trust", "0.5").stdout
        assert "green tea" in trusted and "obeys" not in trusted
    known, made = (memory.get("provenance") for memory in json_lines(run("memories", "list", "--json")))
    assert known is None
    assert (made["trust"], made["source"], made["parent_ids"]) == (0.25, "derived", [page.id])
    assert "min_trust" in run("memories", "preload", "--min-trust", "2", exit_code=1).stderr


def test_deletions_count_what_was_derived(run: Run, server: ServerProcess, namespace: str) -> None:
    with MemoryClient(server.address, namespace=namespace) as client:

        def derive(*parents: str) -> None:
            for parent in parents:
                client.add("x", provenance=Provenance(parent_ids=[parent]))

        for item_id in ("a", "b", "c"):
            client.add("x", id=item_id, session_id=item_id)
        tea = client.save_memory("User drinks tea", "preference", "It will matter later").memory
        assert tea is not None
        document = client.add_document("Otters sleep holding hands.", id="book")
        derive("a", "b", "c", tea.id, tea.id, document.id)
    assert run("delete", "a").stdout == "deleted a, and 1 derived\n"
    assert run("delete-where", "--session", "b", "--yes").stdout == "deleted 1 items, and 1 derived\n"
    assert json_lines(run("sessions", "delete", "c", "--yes", "--json")) == [
        {"deleted_count": 1, "derived_count": 1}
    ]
    assert run("memories", "delete", tea.id).stdout == "deleted 1 memory, and 2 derived\n"
    kept = run("documents", "delete", "book", "--keep-derived").stdout
    assert kept == "deleted book with 1 fragments\n"


def test_facts_are_extracted_from_a_file_or_a_session(
    run: Run, server: ServerProcess, namespace: str
) -> None:
    messages = json.dumps([{"role": "user", "content": "I am allergic to peanuts."}])
    tried = run("memories", "extract", "-", "--dry-run", stdin=messages).stdout
    assert re.fullmatch(r"saved +User is allergic to peanuts\n", tried)
    assert run("memories", "list").stdout == ""
    (found,) = json_lines(run("memories", "extract", "-", "--json", "--actor", "bot", stdin=messages))
    assert found["results"][0]["memory"]["source"]["actor"] == "bot"
    known = run("memories", "extract", "-", stdin=messages).stdout
    assert re.fullmatch(r"duplicate +\S+ +User is allergic to peanuts\n", known)
    with MemoryClient(server.address, namespace=namespace) as client:
        first = client.add(chat_message("user", "I live in Lisbon."), session_id="s")
        client.add(chat_message("user", "I play the piano."), session_id="s")
    begun = run("memories", "extract", "--session", "s", "--limit", "1")
    assert "User lives in Lisbon" in begun.stdout
    assert begun.stderr == f"note: there are more items; continue with --after-revision {first.revision}\n"
    run("memories", "extract", exit_code=2)
    run("memories", "extract", "-", "--limit", "1", stdin=messages, exit_code=2)


def test_an_export_as_json_has_every_field_and_the_history(run: Run, tmp_path: Path) -> None:
    moved(run)
    london, paris = json.loads(run("memories", "export").stdout)
    assert (london["status"], london["superseded_by"]) == ("superseded", paris["id"])
    assert (london["valid_until_time"], paris["valid_until_time"]) == ("2026-01-31T12:00:00Z", None)
    assert paris["importance"]["base"] == 10
    assert london.keys() == paris.keys() >= {"reasoning", "source", "labels", "metadata", "expire_time"}
    file = tmp_path / "memories.json"
    told = run("memories", "export", "--format", "json", "--output", str(file)).stdout
    assert told == f"exported 2 memories to {file}\n"
    assert json.loads(file.read_text()) == [london, paris]
    assert os.listdir(tmp_path) == ["memories.json"]


def test_an_export_as_markdown_is_read_by_humans(run: Run, namespace: str, tmp_path: Path) -> None:
    moved(run)
    save(run, "User likes [dark_mode] *always*", "preference", "--valid-from", "2026-02-01")
    expected = rf"""# Memories of {namespace}

## Identity

- User lives in Paris \(importance 11; since 2026-01-31 12:00:00Z\)

## Preferences

- User likes \\\[dark\\_mode\\\] \\\*always\\\* \(importance 9; since 2026-02-01 00:00:00Z\)

## History

- User lives in London \(identity; importance 11; 2025-01-01 00:00:00Z to 2026-01-31 12:00:00Z; """
    expected += r"superseded by: User lives in Paris\)" + "\n"
    text = run("memories", "export", "--format", "markdown").stdout
    assert re.fullmatch(expected, text), text
    file = tmp_path / "memories.md"
    run("memories", "export", "--format", "markdown", "--output", str(file))
    assert file.read_text() == text


def test_an_export_that_cannot_be_written_leaves_the_old_file(run: Run, tmp_path: Path) -> None:
    moved(run)
    refused = run("memories", "export", "--output", str(tmp_path / "no" / "file.json"), exit_code=1)
    assert refused.stderr.startswith("error: ")
    assert run("memories", "export", "--namespace", "test/empty").stdout == "[]\n"


@pytest.mark.parametrize(
    "text,expected",
    [
        ("2026-01-31", "2026-01-31T00:00:00+00:00"),
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00+00:00"),
        ("2026-01-31T12:00:00+02:00", "2026-01-31T12:00:00+02:00"),
    ],
)
def test_times_without_a_zone_are_utc(text: str, expected: str) -> None:
    assert Moment().convert(text, None, None).isoformat() == expected


def test_what_is_no_time_is_refused(run: Run) -> None:
    assert "is not a time" in run("memories", "list", "--as-of", "yesterday", exit_code=2).stderr


def test_a_document_is_added_shown_and_removed(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    text = "Otters sleep holding hands. 😀\n\nThe train to Lisbon leaves at noon.\n"
    file.write_bytes(b"\xef\xbb\xbf" + text.encode())
    document_id = run(
        *("documents", "add", str(file), "--label", "a=b", "--session", "s", "--metadata", '{"n": 1}'),
        *("--ttl", "1h", "--max-characters", "100", "--overlap-characters", "0"),
    ).stdout.strip()
    (row,) = run("documents", "list").stdout.splitlines()
    assert re.fullmatch(
        rf"{document_id} +\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\dZ  v1 +1 fragments +\d+ B  notes\.md", row
    )
    assert run("documents", "get", document_id).stdout == text
    (whole,) = json_lines(run("documents", "get", document_id, "--fragments", "--json"))
    assert (whole["title"], whole["source"], whole["session_id"]) == ("notes.md", str(file), "s")
    assert (whole["labels"], whole["metadata"]) == ({"a": "b"}, {"n": 1})
    assert "expire_time" in whole
    assert [f["start_offset"] for f in whole["fragments"]] == [0]
    fragments = run("documents", "get", document_id, "--fragments").stdout
    assert re.match(r" +0 +0-\d+ +Otters sleep holding hands\. 😀  The train", fragments)
    assert json_lines(run("documents", "list", "--label", "a=c", "--json")) == []
    assert run("documents", "delete", document_id).stdout == f"deleted {document_id} with 1 fragments\n"
    assert run("documents", "get", document_id, exit_code=1).stderr.endswith("(DOCUMENT_NOT_FOUND)\n")


def test_a_document_of_an_id_is_replaced_only_if_asked_to(run: Run) -> None:
    run("documents", "add", "-", "--id", "d", "--title", "T", "--source", "web", stdin="First text.")
    taken = run("documents", "add", "-", "--id", "d", stdin="Second text.", exit_code=1)
    assert taken.stderr.endswith("(DOCUMENT_ALREADY_EXISTS)\n")
    stale = ("documents", "add", "-", "--id", "d", "--replace", "--expected-version", "2")
    assert "(VERSION_MISMATCH)" in run(*stale, stdin="Second text.", exit_code=1).stderr
    run("documents", "add", "-", "--id", "d", "--replace", stdin="Second text.")
    (document,) = json_lines(run("documents", "list", "--min-trust", "1", "--source", "document", "--json"))
    assert json_lines(run("documents", "list", "--source", "web", "--json")) == []
    assert (document["version"], document["preview"], document["title"]) == (2, "Second text.", "")


def test_fragments_are_searched(run: Run) -> None:
    run("documents", "add", "-", "--id", "otters", "--title", "Animals", stdin="Otters sleep holding hands.")
    run("documents", "add", "-", "--id", "train", stdin="The train leaves at noon.")
    (row,) = run("documents", "search", "when does the train leave?", "--limit", "1").stdout.splitlines()
    assert re.fullmatch(r" 1\.0000  train +0-25  The train leaves at noon\.", row)
    found = json_lines(run("documents", "search", "sleep train", "--document", "otters", "--json"))
    assert [(each["document"]["title"], each["fragment"]["index"]) for each in found] == [("Animals", 0)]


def test_a_file_that_is_no_text_is_refused(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "image.png"
    file.write_bytes(b"abc\xff\xfe")
    refused = run("documents", "add", str(file), exit_code=1)
    assert refused.stderr == f"error: {file} is not UTF-8 text: byte 3 is invalid\n"
    assert run("documents", "list").stdout == ""


def test_options_come_from_the_environment(server: ServerProcess, namespace: str) -> None:
    environment = {
        "MEMORY_SERVICE_ADDRESS": server.address,
        "MEMORY_SERVICE_NAMESPACE": namespace,
        "MEMORY_SERVICE_CATEGORY": "project",
        "MEMORY_SERVICE_REASONING": WHY,
        "MEMORY_SERVICE_KEEP_WORDING": "true",
    }
    result = CliRunner(env=environment).invoke(main, ["memories", "save", "My boat is nearly done"])
    assert result.exit_code == 0, result.stderr
    result = CliRunner(env=environment).invoke(main, ["memories", "list"])
    assert re.fullmatch(r"\S+ .* project .* My boat is nearly done\n", result.stdout)


def test_sessions_are_managed(run: Run, tmp_path: Path) -> None:
    for text in ("one", "two"):
        run("add", text, "--session", "a")
    (row,) = run("sessions", "list").stdout.splitlines()
    assert row.split()[2:] == ["2", "a"]
    version = run(
        "sessions", "update", "a", "--title", "Tea", "--label", "k=v", "--metadata", '{"n": 1}'
    ).stdout
    assert version == "version 3\n"
    stale = ("sessions", "update", "a", "--title", "x", "--expected-version", "1")
    assert "version 3" in run(*stale, exit_code=1).stderr
    assert "Tea" in run("sessions", "get", "a").stdout
    (whole,) = json_lines(run("sessions", "get", "a", "--json"))
    assert (whole["title"], whole["labels"], whole["metadata"]) == ("Tea", {"k": "v"}, {"n": 1})
    assert json_lines(run("sessions", "list", "--label", "k=w", "--json")) == []
    assert run("sessions", "fork", "a", "--new-session-id", "b", "--until-revision", "1").stdout == "b\n"
    (forked,) = json_lines(run("sessions", "get", "b", "--json"))
    assert (forked["item_count"], forked["forked_from"]["session_id"]) == (1, "a")
    assert "--title" in run("sessions", "update", "a", exit_code=2).stderr
    assert "nothing was deleted" in run("sessions", "delete", "a", stdin="n\n", exit_code=1).stderr
    assert run("sessions", "delete", "a", "--yes").stdout == "deleted 2 items\n"
    run("sessions", "get", "a", exit_code=1)
    assert run("sessions", "update", "c", "--title", "New", "--allow-missing").stdout.startswith("version")
    kept = json_lines(run("sessions", "list", "--limit", "-1", "--json"))
    assert [each["session_id"] for each in kept] == ["c", "b"]
    run("export", str(tmp_path / "all.jsonl"))
    run("import", str(tmp_path / "all.jsonl"), "--namespace", "imported/sessions")
    copies = json_lines(run("sessions", "list", "--namespace", "imported/sessions", "--json"))
    assert [each["title"] for each in copies] == ["New", "Tea"]


# Files


def test_a_file_is_written_edited_read_and_deleted(run: Run, tmp_path: Path) -> None:
    version = run("files", "write", "/notes/ada.md", stdin="# Ada\nLikes tea.\n").stdout.strip()
    source = tmp_path / "plan.txt"
    source.write_bytes("Pack für Porto.\n".encode())
    run("files", "write", "/plan", str(source), "--expected-version", "0")
    stale = ("files", "write", "/plan", "-", "--expected-version", "0")
    assert run(*stale, stdin="x", exit_code=1).stderr.endswith("(VERSION_MISMATCH)\n")
    edit = ("files", "edit", "/notes/ada.md")
    run(*edit, "--replace", "tea", "coffee", "--expected-version", version)
    run(*edit, "--insert", "1", "Lives in Porto.")
    run(*edit, "--append", "The end.\n")
    assert run(*edit, "--replace", "none", "x", exit_code=1).stderr.endswith("(OCCURRENCE_MISMATCH)\n")
    assert "is required" in run(*edit, exit_code=2).stderr
    both = run(*edit, "--insert", "1", "x", "--append", "y", exit_code=2)
    assert "only one of --replace, --insert and --append may be given" in both.stderr
    text = "# Ada\nLives in Porto.\nLikes coffee.\nThe end.\n"
    assert run("files", "read", "/notes/ada.md").stdout == text
    assert (
        run("files", "read", "/notes/ada.md", "--start-line", "4", "--end-line", "-1").stdout == "The end.\n"
    )
    assert run("files", "read", "/notes/ada.md", "--version", version).stdout == "# Ada\nLikes tea.\n"
    cut = run("files", "read", "/notes/ada.md", "--max-characters", "7")
    assert (cut.stdout, cut.stderr) == ("# Ada\n", "note: more follows after line 1 of 4\n")
    (whole,) = json_lines(run("files", "read", "/plan", "--json"))
    assert whole["line_count"] == 1
    source.write_bytes(b"\xff")
    assert "is not UTF-8" in run("files", "write", "/plan", str(source), exit_code=1).stderr


def test_files_are_listed_searched_renamed_and_deleted(run: Run) -> None:
    run("files", "write", "/a/otters.md", stdin="Otters sleep\nholding hands.\n")
    run("files", "write", "/b", stdin="The train leaves at noon.\n")
    rows = [row.split()[-1] for row in run("files", "list").stdout.splitlines()]
    assert rows == ["/a/", "/a/otters.md", "/b"]
    assert len(run("files", "list", "--depth", "1").stdout.splitlines()) == 2
    found = run("files", "search", "otters", "--path", "/a", "--limit", "1", "--max-characters", "100").stdout
    assert "/a/otters.md:1-2" in found
    assert run("files", "rename", "/a", "/c/d").stdout == "renamed 1 files\n"
    refused = run("files", "delete", "/c", exit_code=1).stderr
    assert refused == "error: /c is a folder: delete it with --recursive (FOLDER_NOT_EMPTY)\n"
    assert run("files", "delete", "/c", "--recursive").stdout == "deleted 1 files\n"
    assert run("files", "read", "/c/d/otters.md", exit_code=1).stderr.endswith("(FILE_NOT_FOUND)\n")


def test_the_versions_of_a_file_are_listed_and_redacted(run: Run) -> None:
    first = run("files", "write", "/plan", stdin="one\n").stdout.strip()
    second = run("files", "write", "/plan", stdin="two and more\n").stdout.strip()
    rows = [line.split() for line in run("files", "versions", "/plan").stdout.splitlines()]
    assert [(row[0], row[-1]) for row in rows] == [(second, "/plan"), (first, "/plan")]
    assert [row[-3:-1] for row in rows] == [["13", "B"], ["4", "B"]]
    redact = ("files", "redact", "/plan", first)
    assert run(*redact, stdin="n\n", exit_code=1).stderr.endswith("error: nothing was redacted\n")
    assert run("files", "read", "/plan", "--version", first).stdout == "one\n"
    assert run(*redact, "--yes").stdout == f"redacted version {first} of /plan\n"
    assert [each["path"] for each in json_lines(run("files", "versions", "/plan", "--json"))] == ["/plan", ""]
    current = run("files", "redact", "/plan", second, "--yes", exit_code=1)
    assert current.stderr.endswith("(VERSION_IS_CURRENT)\n")


def test_variables_of_other_commands_do_not_change_files(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    version = run("files", "write", "/plan", stdin="one\n").stdout.strip()
    run("files", "write", "/plan", stdin="two\n")
    monkeypatch.setenv("MEMORY_SERVICE_VERSION", "0.1.0")
    assert run("files", "read", "/plan").stdout == "two\n"
    monkeypatch.setenv("MEMORY_SERVICE_FILES_VERSION", version)
    assert run("files", "read", "/plan").stdout == "one\n"
