"""The command line against a real server."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from memory_client import BinaryPart, MemoryClient, chat_message
from memory_service import __version__
from memory_service.cli import main
from memory_service.cli.parameters import Duration
from server_process import ServerProcess

Run = Callable[..., Result]


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


def commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """All commands with their full names."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{path}{name} ")
        else:
            yield path + name, command


def test_the_commands_that_there_are() -> None:
    assert {name for name, _ in commands(main)} >= {
        *(
            "serve",
            "health",
            "add",
            "retrieve",
            "list",
            "labels",
            "get",
            "delete",
            "reset",
            "import",
            "export",
        ),
        *("delete-where", "write", "versions", "redact"),
        *("stats", "namespaces", "reembed", "undo", "flush", "watch", "restore", "rekey"),
        *("backup write", "backup verify"),
        *(
            f"state {name}"
            for name in ("save", "load", "list", "search", "versions", "redact", "rename", "delete", "clear")
        ),
    }


def test_every_option_has_a_variable_and_every_thing_a_sentence() -> None:
    for name, command in commands(main):
        assert command.help and command.help.split("\n")[0].endswith("."), name
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help and parameter.help.endswith("."), (name, parameter.name)
                assert re.fullmatch(r"MEMORY_SERVICE_[A-Z0-9_]+", str(parameter.envvar)), (
                    name,
                    parameter.name,
                )
                assert parameter.show_envvar


def test_client_commands_load_no_server() -> None:
    heavy = {"numpy", "openai", "hnswlib", "apsw", "wordllama", "uvloop", "memory_service.server"}
    code = f"import sys, memory_service.cli.items, memory_client; print({heavy!r} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


def test_python_m_is_the_command() -> None:
    command = [sys.executable, "-m", "memory_service", "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == __version__


def test_add_and_retrieve(run: Run) -> None:
    item_id = run("add", "Ada likes green tea").stdout.strip()
    run(
        "add",
        "I play the piano",
        "--role",
        "user",
        "--name",
        "Bob",
        "--session",
        "s",
        "--label",
        "a=b",
        "--ttl",
        "7d",
    )
    (row,) = run("retrieve", "piano", "--limit", "1").stdout.splitlines()
    assert re.fullmatch(r" *\d\.\d{4}  \S+ +\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ  Bob +I play the piano", row)
    rows = run("retrieve").stdout.splitlines()
    assert [row.rsplit("  ")[-1] for row in rows] == ["Ada likes green tea", "I play the piano"]
    (found,) = json_lines(run("retrieve", "--label", "a=b", "--session", "s", "--json"))
    assert found["item"]["chat_message"]["name"] == "Bob"
    assert found["item"]["labels"] == {"a": "b"}
    assert "expire_time" in found["item"]
    assert run("get", item_id).stdout.startswith("id ")


def test_an_item_is_found_by_its_index_in_place_of_its_text(run: Run) -> None:
    run("add", "see the attached file", "--id", "a", "--index", "the invoice of the plumber")
    run("add", "a note on plumbers", "--id", "b", "--index", "")
    found = run("retrieve", "plumber", "--json", "--mode", "lexical").stdout.splitlines()
    assert [json.loads(line)["item"]["text"] for line in found] == ["see the attached file"]
    kept = [json.loads(line) for line in run("list", "--json").stdout.splitlines()]
    assert [(item["id"], item["index"]) for item in kept] == [("a", "the invoice of the plumber"), ("b", "")]


def test_add_reads_stdin_and_metadata(run: Run) -> None:
    run("add", "-", "--metadata", '{"a": [1]}', "--id", "mine", stdin="two\nlines\x1b[31m")
    (item,) = json_lines(run("list", "--json"))
    assert (item["id"], item["text"], item["metadata"]) == ("mine", "two\nlines\x1b[31m", {"a": [1]})
    assert run("list").stdout.endswith("two lines [31m\n"), "nothing commands the terminal"


def test_explain_shows_the_shares(run: Run) -> None:
    run("add", "Ada likes green tea")
    lines = run("retrieve", "tea", "--mode", "lexical", "--explain").stdout.splitlines()
    assert len(lines) == 2
    assert "lexical:" in lines[1]


def test_what_a_score_is_made_of_can_be_weighed(run: Run) -> None:
    run("add", "a heron", "--id", "high", "--importance", "0.9")
    run("add", "a heron", "--id", "low", "--importance", "0.1")
    found = json_lines(run("retrieve", "heron", "--weight", "importance=1", "--json"))
    assert [result["item"]["id"] for result in found] == ["high", "low"]
    assert found[0]["item"]["importance"] == 0.9
    run("retrieve", "heron", "--filter", "id = low", "--record-usage")
    found = json_lines(
        run(
            "retrieve",
            "heron",
            "--weight",
            "lexical=0",
            "--weight",
            "vector=0",
            "--weight",
            "usage=1",
            "--json",
        )
    )
    assert [(result["item"]["id"], result["score"]) for result in found] == [("low", 0.25), ("high", 0)]
    aged = ("--weight", "recency=1", "--half-life", "1d", "--now", "2999-01-01", "--explain")
    assert "recency: 0.0000" in run("retrieve", "heron", *aged).stdout
    run("add", "a heron", "--importance", "2", exit_code=1)


def test_neighbours_stand_around_a_result(run: Run) -> None:
    for text in ("one", "a heron", "three"):
        run("add", text, "--session", "s")
    options = ("--mode", "lexical", "--limit", "1", "--context-window", "1")
    before, found, share, after = run("retrieve", "heron", *options, "--explain").stdout.splitlines()
    assert before.startswith(" " * 9) and before.endswith("  one")
    assert re.match(r" *\d\.\d{4}  ", found) and "lexical:" in share
    assert after.startswith(" " * 9) and after.endswith("  three")
    groups = run("retrieve", "--session", "s", "--context-window", "1").stdout.split("\n\n")
    assert [len(group.splitlines()) for group in groups] == [2, 3, 2]
    (result,) = json_lines(run("retrieve", "heron", *options, "--json"))
    said = [item["text"] for item in (*result["before"], result["item"], *result["after"])]
    assert said == ["one", "a heron", "three"]


def test_results_of_several_namespaces_name_them(run: Run, namespace: str) -> None:
    run("add", "Ada likes green tea")
    other = f"{namespace}/other"
    run("add", "Bob likes black tea", "--namespace", other)
    alone = run("retrieve", "tea").stdout.splitlines()
    assert namespace not in alone[0]
    rows = run("retrieve", "tea", "--also-namespace", other).stdout.splitlines()
    found = {row.split()[1]: " ".join(row.split()[-4:]) for row in rows}
    assert found == {namespace: "Ada likes green tea", other: "Bob likes black tea"}


def test_the_best_that_fit_come_and_their_tokens_are_told(run: Run) -> None:
    run("add", "heron " * 50)
    run("add", "a heron in the reeds")
    result = run("retrieve", "heron", "--mode", "lexical", "--max-tokens", "10")
    assert result.stdout.endswith("a heron in the reeds\n") and len(result.stdout.splitlines()) == 1
    assert result.stderr == "note: about 5 tokens\n"


def test_a_server_without_a_reranker_says_so(run: Run) -> None:
    run("add", "a heron")
    assert run("retrieve", "heron", "--rerank").stderr.endswith("(NO_RERANKER)\n")
    assert json_lines(run("health", "--json"))[0]["reranker"] == "none"


def test_labels_are_printed_with_their_counts(run: Run) -> None:
    for label in ("topic=travel", "topic=money", "topic=travel", "by=ada"):
        run("add", "x", "--label", label)
    assert run("labels", "topic").stdout.split() == ["1", "money", "2", "travel"]
    assert json_lines(run("labels", "topic", "--prefix", "t", "--json")) == [{"value": "travel", "count": 2}]
    assert run("labels", "topic", "--limit", "1").stdout.split() == ["1", "money"]
    assert run("labels", "none").stdout == ""


def test_list_is_limited_and_turned_round(run: Run) -> None:
    for text in ("one", "two", "three"):
        run("add", text)
    assert [item["text"] for item in json_lines(run("list", "--limit", "2", "--json"))] == ["one", "two"]
    newest = json_lines(run("list", "--newest-first", "--limit", "1", "--json"))
    assert [item["text"] for item in newest] == ["three"]
    assert len(run("list", "--limit", "-1").stdout.splitlines()) == 3


def test_filters(run: Run) -> None:
    run("add", "Ada likes tea", "--metadata", '{"n": 1}')
    run("add", "Bo likes tea", "--label", "topic=tea", "--role", "user")
    for command in (["list"], ["retrieve"], ["retrieve", "tea"]):
        for expression, text in (("metadata.n >= 1", "Ada"), ("labels.topic = tea role = user", "Bo")):
            (found,) = run(*command, "--filter", expression).stdout.splitlines()
            assert f"{text} likes tea" in found
    wrong = run("list", "--filter", "metadata.n >> 1", exit_code=1)
    assert "filter: column 13: expected a value" in wrong.stderr


def test_what_is_not_trusted_is_left_out(run: Run) -> None:
    run(
        "add",
        "--id",
        "web",
        "--source",
        "web",
        "--source-uri",
        "https://example.com/",
        "--trust",
        "0.25",
        "a heron",
    )
    run("add", "--id", "child", "--parent", "web", "a heron")
    run("add", "--id", "own", "a heron")
    assert [item["id"] for item in json_lines(run("list", "--min-trust", "0.5", "--json"))] == ["own"]
    found = json_lines(run("retrieve", "--source", "web", "--source", "agent", "--json", "heron"))
    assert [(result["item"]["id"], result["item"]["provenance"]["trust"]) for result in found] == [
        ("web", 0.25)
    ]
    assert json_lines(run("get", "child", "--json"))[0]["provenance"]["parent_ids"] == ["web"]


def test_undo(run: Run) -> None:
    run("add", "--id", "a", "a heron")
    told = run("undo", "--any-writer", "--since", "1h", "--dry-run")
    assert told.stdout == "would be removed: 1, would be restored: 0, cannot be undone: 0\n"
    run("delete", "a")
    run("add", "--id", "b", "a heron")
    (done,) = json_lines(run("undo", "--any-writer", "--since", "2026-01-31T12:00:00Z", "--json"))
    assert (done["removed_count"], done["unrestorable_count"]) == (1, 1)
    assert run("list").stdout == ""
    assert "writer" in run("undo", "--since", "1h", exit_code=1).stderr
    assert "--since" in run("undo", "--any-writer", exit_code=2).stderr


def test_delete_and_reset(run: Run) -> None:
    run("add", "x", "--id", "a")
    run("add", "y")
    run("delete", "a")
    error = run("delete", "a", exit_code=1).stderr
    assert re.fullmatch(r"error: .+ \(ITEM_NOT_FOUND\)\n", error)
    run("reset", stdin="n\n", exit_code=1)
    assert run("reset", stdin="y\n").stdout == "deleted 1 items and 0 state keys\n"
    assert json_lines(run("reset", "--yes", "--json"))[0]["item_count"] == 0


def test_state(run: Run) -> None:
    assert run("state", "save", "plan/a", '{"step": 1}', "--description", "d").stdout == "version 1\n"
    run("state", "save", "plan/b", "plain text", "--ttl", "1h")
    run("state", "save", "n", "--", "-5")
    assert json.loads(run("state", "load", "plan/a").stdout) == {"step": 1}
    assert run("state", "load", "plan/b").stdout == "plain text\n"
    assert json_lines(run("state", "load", "n", "--json"))[0]["value"] == -5
    conflict = run("state", "save", "plan/a", "2", "--expected-version", "7", exit_code=1).stderr
    assert conflict.endswith("(VERSION_MISMATCH)\n")
    entries = json_lines(run("state", "list", "--json"))
    assert [entry["key"] for entry in entries] == ["n", "plan/a", "plan/b"]
    assert not any("value" in entry for entry in entries)
    found = json_lines(run("state", "search", "plan/*", "--json"))
    assert [entry["value"] for entry in found] == [{"step": 1}, "plain text"]
    assert [e["key"] for e in json_lines(run("state", "list", "--prefix", "plan/", "--json"))] == [
        "plan/a",
        "plan/b",
    ]
    assert run("state", "rename", "plan/a", "plan/c").stdout == "renamed plan/a to plan/c, version 1\n"
    refused = run("state", "rename", "plan/c", "n", exit_code=1).stderr
    assert refused.endswith("(STATE_ALREADY_EXISTS)\n")
    run("state", "rename", "plan/c", "plan/a")
    run("state", "delete", "plan/a", "--expected-version", "2")
    assert run("state", "clear", "--yes").stdout == "deleted 2 state keys\n"


def test_versions(run: Run) -> None:
    run("add", "one", "--id", "a")
    run("write", "-", stdin='{"update": {"item": {"id": "a", "text": "two"}}}\n')
    run("state", "save", "k", "[1]")
    run("state", "save", "k", "2")
    listed = run("versions", "a").stdout.splitlines()
    assert [line.split()[-1] for line in listed] == ["two", "one"]
    assert [line.split()[-1] for line in run("state", "versions", "k").stdout.splitlines()] == ["2", "[1]"]
    assert json_lines(run("get", "a", "--revision", "1", "--json"))[0]["text"] == "one"
    assert run("state", "load", "k", "--revision", "3").stdout == "[\n  1\n]\n"
    assert run("redact", "a", "1", stdin="n\n", exit_code=1).stderr.endswith("nothing was redacted\n")
    assert run("redact", "a", "1", "--yes").stdout == "redacted a at revision 1\n"
    assert run("state", "redact", "k", "3", "--yes").stdout == "redacted k at revision 3\n"
    assert [line["kind"] for line in json_lines(run("versions", "a", "--json"))] == ["current", "redacted"]
    for command in (("state", "load", "k", "--revision", "3"), ("get", "a", "--revision", "1")):
        assert run(*command, exit_code=1).stderr.endswith("was redacted (VERSION_NOT_FOUND)\n")
    told = run("state", "load", "k", "--revision", "1", exit_code=1).stderr
    assert "a revision of the namespace, not the state's version" in told
    assert "VERSION_IS_CURRENT" in run("redact", "a", "2", "--yes", exit_code=1).stderr


def test_what_is_nested_too_deeply_is_refused(run: Run, tmp_path: Path) -> None:
    nested = "[" * 100_000
    assert run("state", "save", "k", nested, exit_code=1).stderr.count("\n") == 1
    assert "not JSON" in run("add", "x", "--metadata", nested, exit_code=2).stderr
    for broken in (f"{nested}\n", "[]\n", '{"revision": "x"}\n', "{}\n"):
        (tmp_path / "all.jsonl.part").write_text(broken)
        told = run("export", str(tmp_path / "all.jsonl"), "--resume", exit_code=1).stderr
        assert "line at byte 0 of the .part" in told
        assert (tmp_path / "all.jsonl.part").read_text() == broken


def test_a_value_that_no_double_holds_is_refused(run: Run) -> None:
    error = run("state", "save", "k", "9007199254740993", exit_code=1).stderr
    assert error == "error: value: 9007199254740993 is beyond 2^53; send it as a string (INVALID_ARGUMENT)\n"


CHAT = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Do you like tea?", "name": "Ada"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "yes"},
]


def test_import_of_a_chat_is_repeatable(run: Run, tmp_path: Path) -> None:
    chat = tmp_path / "morning.json"
    chat.write_text(json.dumps(CHAT))
    assert run("import", str(chat), "--dry-run").stdout == "4 records can be imported\n"
    assert run("list").stdout == ""
    assert (
        run("import", str(chat), "--label", "from=file").stdout
        == "imported 4 items and 0 state keys, skipped 0\n"
    )
    items = json_lines(run("list", "--json"))
    assert {item["session_id"] for item in items} == {"morning"}
    assert all(item["labels"] == {"from": "file"} for item in items)
    told = run("import", str(chat), exit_code=1).stderr
    assert told.startswith("error: morning.json:1: element 0: an item ")
    assert told.endswith("; choose with --on-duplicate skip or replace (ITEM_ALREADY_EXISTS)\n")
    again = json_lines(run("import", str(chat), "--on-duplicate", "skip", "--json"))[0]
    assert (again["imported_count"], again["skipped_count"]) == (0, 4)
    assert json_lines(run("list", "--json")) == items


def test_a_record_that_exists_is_named_by_its_lines(run: Run, tmp_path: Path) -> None:
    records = tmp_path / "all.jsonl"
    records.write_text('{"id": "a", "text": "1"}\n\n{"kind": "state", "key": "a", "value": 1}\n')
    run("state", "save", "a", "2")
    assert run("import", str(records), exit_code=1).stderr.startswith("error: all.jsonl:3: state 'a' is at ")
    records.write_text('{"id": "b", "text": "1"}\n{"id": "b", "text": "2"}\n{"id": \n')
    told = run("import", str(records), exit_code=1).stderr
    assert told.startswith("error: all.jsonl:3: not JSON")
    records.write_text('{"id": "b", "text": "1"}\n{"id": "b", "text": "2"}\n')
    told = run("import", str(records), exit_code=1).stderr
    assert told.startswith("error: all.jsonl:1, all.jsonl:2: ")
    piped = run("import", "-", stdin=records.read_text(), exit_code=1).stderr
    assert piped.startswith("error: an item 'b' exists")
    assert "--on-duplicate skip" in piped


def test_import_from_stdin_tells_the_bad_line(run: Run) -> None:
    lines = "".join(json.dumps(message) + "\n" for message in CHAT)
    error = run("import", "-", "--session", "s", stdin=lines + '{"role": "boss"}\n', exit_code=1).stderr
    assert error.startswith('error: stdin:5: "role" is one of')
    assert run("list").stdout == "", "nothing of the batch that the bad line would be in"


def test_export_is_imported_exactly(run: Run, server: ServerProcess, namespace: str, tmp_path: Path) -> None:
    with MemoryClient(server.address, namespace=namespace) as client:
        picture = BinaryPart(b"\x00\xff", "image/png", content_length=2)
        # First, so that the namespace stores vectors of clients.
        client.add("vector", embedding=[0.1, 0.2, 0.3], session_id="s")
        client.add(chat_message("user", "see", picture), labels={"a": "b"}, metadata={"m": [1, None]})
        client.save_state("plan", {"step": 1.5}, description="d")
    file = tmp_path / "all.jsonl"
    assert run("export", str(file), "--include-embedding").stdout == f"exported 3 records to {file}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["all.jsonl"]
    copy = f"{namespace}/copy"
    run("import", str(file), "--format", "items", "--namespace", copy)
    exported = run("export", "--include-embedding", "--namespace", copy).stdout.splitlines()
    ours = [json.loads(line) for line in file.read_text().splitlines()]
    assert [essence(json.loads(line)) for line in exported] == [essence(record) for record in ours]
    assert [record["kind"] for record in ours] == ["item", "item", "state"]


def essence(record: dict[str, Any]) -> dict[str, Any]:
    """Return what an import keeps: everything except the fields that the server sets on each write."""
    left_out = {"revision", "update_time"} | (
        {"create_time", "version"} if record["kind"] == "state" else set()
    )
    return {key: value for key, value in record.items() if key not in left_out}


def test_a_broken_export_is_continued(run: Run, tmp_path: Path) -> None:
    for text in ("one", "two", "three"):
        run("add", text)
    file = tmp_path / "all.jsonl"
    run("export", str(file))
    whole = file.read_bytes()
    assert run("export", str(file), "--resume", exit_code=1).stderr.startswith("error: there is no ")
    for cut in (0, len(whole) // 2, len(whole) - 1, len(whole)):
        (tmp_path / "all.jsonl.part").write_bytes(whole[:cut])
        run("export", str(file), "--resume")
        assert file.read_bytes() == whole


def test_an_export_that_wrote_nothing_leaves_no_file(run: Run, tmp_path: Path) -> None:
    command = ("export", str(tmp_path / "x.jsonl"), "--namespace", "nosuch")
    assert "NAMESPACE_NOT_FOUND" in run(*command, exit_code=1).stderr
    assert list(tmp_path.iterdir()) == []


def test_watch_prints_changes(run: Run, server: ServerProcess, namespace: str) -> None:
    run("add", "before")
    command = [sys.executable, "-m", "memory_service", "watch", "--after-revision", "0", "--json"]
    command += ["--address", server.address, "--namespace", namespace]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        try:
            assert json.loads(watching.stdout.readline())["item"]["text"] == "before"
            run("add", "after")
            assert json.loads(watching.stdout.readline())["type"] == "item_added"
        finally:
            watching.terminate()


def test_administration(run: Run, namespace: str) -> None:
    assert run("stats", exit_code=1).stderr.endswith("(NAMESPACE_NOT_FOUND)\n")
    run("add", "x")
    assert re.search(r"^item_count +1$", run("stats").stdout, re.MULTILINE)
    (stats,) = json_lines(run("stats", "--json"))
    assert stats["namespace"] == namespace and not stats.get("usage")
    (stats,) = json_lines(run("stats", "--usage", "--json"))
    assert stats["usage"]["call_count"] == 5 and stats["usage"]["byte_count"] > 0
    (found,) = run("namespaces", "--prefix", namespace).stdout.splitlines()
    assert found.endswith(namespace)
    assert run("health").stdout.startswith("status: serving\n")
    assert json_lines(run("health", "--json"))[0]["store"] == "hnsw"
    assert run("flush").stdout.startswith("flushed in ")
    name = json_lines(run("backup", "--json"))[0]["name"]
    assert run("backup", name, exit_code=1).stderr.startswith("error: ")


def test_settings_are_printed_and_changed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("settings", exit_code=1).stderr.endswith("(NAMESPACE_NOT_FOUND)\n")
    run("add", "x")
    assert json_lines(run("settings", "--json")) == [{"time_zone": "", "version": 0}]
    monkeypatch.setenv("MEMORY_SERVICE_TIME_ZONE", "Asia/Tokyo")
    assert json_lines(run("settings", "--json"))[0]["version"] == 0, "meant for `retrieve`"
    changed = run("settings", "--time-zone", "Europe/Berlin", "--default-ttl", "7d").stdout
    assert changed.split() == ["time_zone", "Europe/Berlin", "default_ttl", "604800s", "version", "1"]
    assert run("settings").stdout == changed
    assert "needs a change" in run("settings", "--expected-version", "1", exit_code=2).stderr
    monkeypatch.setenv("MEMORY_SERVICE_SETTINGS_TIME_ZONE", "Europe/Paris")
    assert json_lines(run("settings", "--json"))[0]["time_zone"] == "Europe/Paris"


def test_namespaces_move_to_the_servers_embedder(tmp_path: Path) -> None:
    def run(server: ServerProcess, *arguments: str, exit_code: int = 0) -> Result:
        result = CliRunner(env={"MEMORY_SERVICE_ADDRESS": server.address}).invoke(main, arguments)
        assert result.exit_code == exit_code, (result.stderr, result.exception)
        return result

    def pending(server: ServerProcess, namespace: str) -> int:
        (stats,) = json_lines(run(server, "stats", "--namespace", namespace, "--json"))
        return int(stats["pending_count"])

    with ServerProcess(tmp_path, flags=["--embedder", "none"]) as server:
        for name in ("a", "b", "default"):
            run(server, "add", "--namespace", name, "a heron")
        refused = run(server, "reembed", "a", exit_code=1)
        assert refused.stderr.startswith("error: a: ") and "EMBEDDER_REQUIRED" in refused.stderr
        assert "EMBEDDER_REQUIRED" in run(server, "reembed", "--all", exit_code=1).stderr
    with ServerProcess(tmp_path) as server:
        with MemoryClient(server.address, namespace="own") as client:
            client.add("own", embedding=[1.0, 0.0])
        assert run(server, "reembed").stdout == "         1 items to embed  local:wordllama-256  default\n"
        assert pending(server, "default") == 0
        (begun,) = json_lines(run(server, "reembed", "a", "--no-wait", "--json"))
        assert begun == {
            "namespace": "a", "pending_count": 1, "embedding_model": "local:wordllama-256", "revision": 1
        }  # fmt: skip
        every = run(server, "reembed", "--all")
        assert [line.split()[-1] for line in every.stdout.splitlines()] == ["a", "b", "default"]
        assert every.stderr.startswith("note: own is skipped: ")
        assert [pending(server, name) for name in ("a", "b", "own")] == [0, 0, 0]
        assert "EMBEDDER_REQUIRED" in run(server, "reembed", "own", exit_code=1).stderr
        run(server, "reembed", "own", "--replace-client-vectors")
        (stats,) = json_lines(run(server, "stats", "--namespace", "own", "--json"))
        assert (stats["embedding_model"], stats["embedded_count"]) == ("local:wordllama-256", 1)
        assert "NAMESPACE_NOT_FOUND" in run(server, "reembed", "a", "nowhere", exit_code=1).stderr
        assert run(server, "reembed", "a", "--all", exit_code=2).stderr.endswith("not both\n")


def test_a_server_that_is_not_there() -> None:
    result = CliRunner().invoke(main, ["list", "--address", "127.0.0.1:1"])
    assert result.exit_code == 1
    told = "error: no server responds at 127.0.0.1:1; start one with: memory-service serve (UNAVAILABLE)\n"
    assert result.stderr == told
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("15m", 900), ("12h", 43200), ("7d", 604800), ("1h30m", 5400), ("0.5s", 0.5)],
)
def test_durations(text: str, seconds: float) -> None:
    assert Duration().convert(text, None, None).total_seconds() == seconds


@pytest.mark.parametrize(
    "arguments",
    [
        ["add", "x", "--ttl", "soon"],
        ["add", "x", "--ttl", "5"],
        ["add", "x", "--ttl", "9999999999d"],
        ["add", "x", "--label", "nothing"],
        ["add", "x", "--metadata", "[1]"],
        ["add", "x", "--metadata", "{"],
        ["add", "x", "--name", "Ada"],
        ["add", "x", "--role", "boss"],
        ["retrieve", "--mode", "magic"],
        ["retrieve", "x", "--weight", "luck=1"],
        ["retrieve", "x", "--weight", "recency=much"],
        ["retrieve", "x", "--now", "noon"],
        ["retrieve", "x", "--half-life", "7"],
        ["import", "/no/such/file"],
        ["export", "--resume"],
        ["no such command"],
    ],
    ids=" ".join,
)
def test_what_cannot_be_meant_is_refused_before_any_call(arguments: list[str]) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2, result.output
    assert "Error: " in result.stderr
