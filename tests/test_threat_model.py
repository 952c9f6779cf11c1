"""The threat model: each attack has a control and an existing test."""

from __future__ import annotations

import ast

from tables_of_docs import named_tests, rows
from toolchain import ROOT

TEXT = (ROOT / "docs" / "threat-model.md").read_text()


def test_every_attack_names_tests_that_there_are() -> None:
    attacks = rows(TEXT, "Attacks")
    assert len(attacks) >= 18
    for attack, control, shown_by in attacks:
        assert control and named_tests(shown_by), attack


RUNS_CODE = (
    "pickle",
    "cPickle",
    "marshal",
    "shelve",
    "dill",
    "joblib",
    "subprocess",
    "os.system",
    "os.popen",
)


def test_the_server_has_nothing_that_runs_what_it_is_sent() -> None:
    found = []
    for path in (ROOT / "memory_service").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names]
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            elif isinstance(node, ast.Call):
                names = [ast.unparse(node.func)]
                if any(
                    word.arg == "allow_pickle" and ast.unparse(word.value) != "False"
                    for word in node.keywords
                ):
                    names.append("pickle")
            else:
                continue
            found += [
                f"{path.name}: {name}" for name in names if name in (*RUNS_CODE, "eval", "exec", "compile")
            ]
    assert found == []


def test_it_says_that_retrieved_memory_is_untrusted_and_what_is_not_defended() -> None:
    assert "Retrieved memory is untrusted input" in TEXT
    assert "\n## What is not defended\n" in TEXT
