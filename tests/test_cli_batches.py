"""The commands that change many items and states at once, against a real server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from memory_service.cli import main
from server_process import ServerProcess

Run = Callable[..., Result]


@pytest.fixture
def run(server: ServerProcess, namespace: str) -> Run:
    """Run a command in the test's namespace."""
    environment = {"MEMORY_SERVICE_ADDRESS": server.address, "MEMORY_SERVICE_NAMESPACE": namespace}

    def run(*arguments: str, stdin: str | bytes | None = None, exit_code: int = 0) -> Result:
        result = CliRunner(env=environment).invoke(main, arguments, input=stdin)
        assert result.exit_code == exit_code, (result.stderr, result.exception)
        return result

    return run


def json_lines(result: Result) -> list[Any]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def ids(run: Run) -> list[str]:
    return [item["id"] for item in json_lines(run("list", "--json"))]


def lines(*operations: Any) -> str:
    return "".join(json.dumps(operation) + "\n" for operation in operations)


def test_add_skips_or_replaces_an_id_that_exists(run: Run) -> None:
    run("add", "first", "--id", "a")
    skipped = run("add", "second", "--id", "a", "--on-duplicate", "skip")
    assert (skipped.stdout, skipped.stderr) == ("a\n", "note: skipped: the item a exists\n")
    assert json_lines(run("get", "a", "--json"))[0]["text"] == "first"
    replaced = run("add", "third", "--id", "a", "--on-duplicate", "replace")
    assert (replaced.stdout, replaced.stderr) == ("a\n", "")
    assert json_lines(run("get", "a", "--json"))[0]["text"] == "third"
    assert "ITEM_ALREADY_EXISTS" in run("add", "x", "--id", "a", "--on-duplicate", "fail", exit_code=1).stderr


def test_items_are_deleted_by_conditions_after_a_question(run: Run) -> None:
    for item_id, session in (("a", "s"), ("b", "s"), ("c", "t"), ("d", "t")):
        run("add", "x", "--id", item_id, "--session", session, "--label", f"id={item_id}")
    assert run("delete-where", "--session", "s", "--dry-run").stdout == "2 items would be deleted\n"
    assert json_lines(run("delete-where", "--session", "s", "--dry-run", "--json")) == [
        {"deleted_count": 2, "dry_run": True}
    ]
    refused = run("delete-where", "--session", "s", stdin="n\n", exit_code=1)
    assert "Delete 2 items of the namespace" in refused.stderr
    assert refused.stderr.endswith("error: nothing was deleted\n")
    assert ids(run) == ["a", "b", "c", "d"]
    assert run("delete-where", "--session", "s", stdin="y\n").stdout == "deleted 2 items\n"
    assert run("delete-where", "--label", "id=c", "--filter", "id = c", "--yes").stdout == "deleted 1 items\n"
    assert run("delete-where", "--kind", "message", "--yes").stdout == "deleted 0 items\n"
    assert run("delete-where", "--end-time", "1h", "--yes").stdout == "deleted 0 items\n", "too young"
    assert run("delete-where", "--start-time", "2999-01-01", "--yes").stdout == "deleted 0 items\n"
    assert json_lines(run("delete-where", "--start-time", "1h", "--kind", "plain", "--yes", "--json")) == [
        {"deleted_count": 1, "derived_count": 0}
    ]
    assert ids(run) == []


def test_deleting_everything_by_conditions_is_refused(run: Run) -> None:
    assert "give a condition" in run("delete-where", "--yes", exit_code=2).stderr
    assert "'document'" in run("delete-where", "--kind", "document", exit_code=2).stderr
    wrong = run("delete-where", "--filter", "role == user", "--yes", exit_code=1)
    assert wrong.stderr.endswith("(INVALID_FIELD)\n")


def test_a_variable_of_another_command_is_no_condition_of_a_deletion(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("add", "x", "--id", "a")
    monkeypatch.setenv("MEMORY_SERVICE_FILTER", "id = a")
    assert "give a condition" in run("delete-where", "--yes", exit_code=2).stderr
    monkeypatch.setenv("MEMORY_SERVICE_DELETE_WHERE_FILTER", "id = a")
    assert run("delete-where", "--yes").stdout == "deleted 1 items\n"


def test_a_file_of_operations_is_applied(run: Run, tmp_path: Path) -> None:
    run("add", "x", "--id", "old", "--session", "s")
    run("add", "x", "--id", "kept")
    run("state", "save", "draft", "1")
    file = tmp_path / "batch.jsonl"
    file.write_text(
        lines(
            {"add": {"item": {"id": "new", "text": "Ada likes tea"}}},
            {"add": {"item": {"id": "old", "text": "y"}, "onDuplicate": "ON_DUPLICATE_SKIP"}},
            {"update": {"item": {"id": "kept", "text": "changed"}}},
            {"saveState": {"key": "plan", "value": {"step": 1, "big": 9007199254740993}}},
        )
        + "\n"
        + lines(
            {"delete_state": {"key": "draft", "expected_version": "1"}},
            {"delete": {"id": "none", "allow_missing": True}},
            {"delete_where": {"session_id": "s"}},
        )
    )
    assert run("write", str(file)).stdout.splitlines() == [
        "added new",
        "skipped old",
        "updated kept",
        "saved plan, version 1",
        "deleted draft",
        "missing none",
        "deleted 0 items",
    ]
    assert ids(run) == ["old", "kept", "new"], "what another operation names stays"
    assert json.loads(run("state", "load", "plan").stdout) == {"step": 1, "big": "9007199254740993"}


def test_results_are_printed_as_json(run: Run) -> None:
    operations = lines({"add": {"item": {"id": "a", "text": "x"}}}, {"delete_where": {"session_id": "s"}})
    added, deleted = json_lines(run("write", "-", "--json", stdin=operations))
    assert (added["id"], added["revision"], added["create_time"]) == ("a", 1, added["update_time"])
    assert (deleted["id"], deleted["deleted_count"]) == ("", 0)


def test_nothing_is_applied_if_an_operation_fails(run: Run) -> None:
    good = {"add": {"item": {"text": "x"}}}
    missing = run("write", "-", stdin=lines(good, {"delete": {"id": "none"}}), exit_code=1)
    assert missing.stderr.startswith("error: operations[1].delete: no item ")
    assert missing.stderr.endswith("(ITEM_NOT_FOUND)\n")
    stale = {"save_state": {"key": "k", "value": 1, "expected_version": "7"}}
    conflict = run("write", "-", stdin=lines(good, good, stale), exit_code=1).stderr
    assert conflict.startswith("error: operations[2].save_state: ")
    assert conflict.count("operations[") == 1
    empty = run("write", "-", stdin=lines(good, {"add": {"item": {"text": ""}}}), exit_code=1)
    assert empty.stderr.startswith("error: operations[1].add.item.text: ")
    assert run("write", "-", stdin="", exit_code=1).stderr.startswith("error: operations")
    assert ids(run) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "stdin:2: not JSON"),
        ("[]", "stdin:2: expected an object, not []"),
        ("{}", "stdin:2: no operation"),
        ('{"burn": {}}', "stdin:2: "),
        ('{"save_state": {"key": "k"}}', "stdin:2: save_state.value is required"),
        ('{"save_state": {"key": "k", "value": NaN}}', "stdin:2: NaN is not a JSON number"),
        ("[" * 100_000, "stdin:2: nested too deeply"),
        (json.dumps({"add": {"item": {"text": 5}}}), "stdin:2: "),
    ],
)
def test_a_line_that_is_no_operation_is_named(run: Run, line: str, message: str) -> None:
    good = lines({"add": {"item": {"text": "x"}}})
    refused = run("write", "-", stdin=good + line + "\n", exit_code=1)
    assert refused.stderr.startswith(f"error: {message}")
    assert refused.stderr.count("\n") == 1
    assert ids(run) == []
