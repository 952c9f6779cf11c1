"""The word budgets and the list of phrases to avoid: they find what they should, and the texts are clean."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

import wording

# Sentences that this project once had, each in several ways to avoid.
QUOTED = (
    "Host and port where health is told, too, and nothing else: without TLS and credentials, and never "
    "behind other calls.",
    "Return how long a call will be here that comes behind so many of its owner; 0: it is not known.",
    "who waits as it is told to loses nothing, and who asks again at once leaves the server time for those "
    "it answers",
    "Of somebody whom no credential names nothing is believed, nor is it worth the work.",
)

# For each phrase a sentence, and what is found in it.
EXAMPLES = {
    "The port where health is told.": "told",
    "It is done by nobody.": "nobody",
    "The client to whom it is sent.": "whom",
    "Who waits loses nothing.": "Who waits",
    "It is short. What is written ahead comes first.": ". What is",
    "Then what the disk holds is unknown.": "what the disk holds is",
    "It is not stored, nor is it sent.": "nor is ",
    "Items expire, and so do the states.": "so do the",
    "They are rejected, for the server keeps doubles.": "for the server keeps",
    "A log on a disk of its own.": "disk of its own",
    "The time is not given: it is not known.": "it is not known",
    "Entries are written anew.": "anew",
    "All are rejected but for health.": "but for",
    "The next server if the first is away.": "is away",
    "It is sent all the same.": "all the same.",
    "The one who speaks.": "The one who",
    "It is kept there, too, and sent.": ", too, and",
}

PLAIN = (
    "Also serve gRPC health checks on this host:port, without TLS or credentials and independent of "
    "request load.",
    "Estimate a new call's time in the system (Little's law), given `count` calls of the same owner ahead of "
    "it. 0 if unknown.",
    "Clients that honour `RetryInfo` lose nothing; clients that retry at once no longer slow down the "
    "others.",
    "Don't decode unauthenticated requests.",
    "What is a namespace? Who may read it?",
    "Callers who need this wait for it. It lists the tests behind each promise, and what is not promised.",
    "Tokens are told apart by their prefix.",
)


@pytest.mark.parametrize("sentence", QUOTED)
def test_a_sentence_that_was_quoted_is_found(sentence: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    wrapped = sentence.replace(" ", "\n", 3)
    page.write_text(f"# A page\n\n- An item\n\n{wrapped}\n")
    assert wording.hits_of(page, tmp_path)


@pytest.mark.parametrize("sentence", PLAIN)
def test_a_plain_sentence_is_left_alone(sentence: str) -> None:
    assert list(wording.hits(sentence)) == []


@pytest.mark.parametrize(("sentence", "found"), EXAMPLES.items())
def test_a_phrase_is_found(sentence: str, found: str) -> None:
    assert found in [matched for _, matched, _ in wording.hits(sentence)]


def test_each_phrase_has_an_example() -> None:
    unused = [p.pattern.pattern for p in wording.PHRASES if not any(map(p.pattern.search, EXAMPLES))]
    assert unused == []


def test_code_and_links_of_a_page_are_not_prose(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Use `told`, or [this](#told).\n\n```python\ntold = 1\n```\n\n    told\n\n# What is told is told\n"
    )
    assert wording.hits_of(page, tmp_path) == []


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("table.md", "| a | b |\n|---|---|\n| x | it is told |\n", 3),
        ("code.py", 'x = 1\n# It is\n# told.\ntold = "told"\n', 3),
        ("doc.py", 'def f():\n    """Return it.\n\n    It is told here.\n    """\n', 4),
        ("api.proto", "// First.\nmessage Told {\n  // It is told.\n  int32 told = 1;\n}\n", 3),
        ("client.ts", "/** It is\n *  told. */\nconst told = 1;\n", 2),
    ],
)
def test_a_hit_has_its_line(name: str, text: str, line: int, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert [hit.line for hit in wording.hits_of(tmp_path / name, tmp_path)] == [line]


def test_a_budget_that_is_exceeded_is_reported(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("word " * 1_001)
    (tmp_path / "docs" / "architecture.md").write_text("word " * 4_500)
    (tmp_path / "docs" / "others.md").write_text("word " * 27_501)
    reported = wording.over_budget(tmp_path)
    assert [message.split(":")[0] for message in reported] == ["README.md", "docs/*.md"]


def test_of_tests_and_benchmarks_comments_and_docstrings_are_read(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    source = '"""It is told to the client."""\n# It is told.\nNAME = "it is told to nobody"\n'
    (tmp_path / "tests" / "test_a.py").write_text(source)
    (tmp_path / "a.py").write_text(source)
    assert len(wording.hits_of(tmp_path / "tests" / "test_a.py", tmp_path)) == 2
    assert len(wording.hits_of(tmp_path / "a.py", tmp_path)) == 4


def test_everything_is_checked_but_generated_and_exempt_files() -> None:
    checked = {str(path.relative_to(wording.ROOT)) for path in wording.checked_files()}
    texts = ("README.md", "docs/api.md", "CONTRIBUTING.md", "clients/go/README.md", "clients/go/items.go")
    sources = (
        "protos/memory_service/v1/memory.proto",
        "memory_service/domain/items.py",
        "clients/python/memory_client/_aio/memory.py",
        "clients/typescript/src/memory.ts",
    )
    assert checked >= {*texts, *sources}
    assert checked >= {"tests/test_access.py", "tests/faults/load.py", "benchmarks/search.py"}
    assert not [path for path in checked if path.startswith("memory_service/v1")]


def test_an_exempt_file_needs_its_exemption() -> None:
    needless = [path for path in wording.EXEMPT if not wording.hits_of(wording.ROOT / path)]
    assert needless == []


@pytest.mark.parametrize("sentence", QUOTED)
@pytest.mark.parametrize(
    "name", ["memory_service/clock.py", "protos/api.proto", "clients/typescript/src/a.ts"]
)
def test_a_sentence_that_was_quoted_fails_the_check(sentence: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    comment = "#" if path.suffix == ".py" else "//"
    path.write_text("".join(f"{comment} {line}\n" for line in textwrap.wrap(sentence, 60)))
    assert any(problem.startswith(f"{name}:") for problem in wording.problems(tmp_path))
