"""Word budgets and a list of phrases to avoid in texts that people read. `make lint` runs it."""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Maximum words of the README, of one page and of all pages. Additions have to make room for themselves.
BUDGETS = {"README.md": 1_000, "docs/architecture.md": 4_500, "docs/*.md": 32_000}

# Files of a checked place whose strings have phrases to avoid, with the reason.
EXEMPT = {
    "memory_service/deciders/llm/comparing.py": "a prompt, worded for the model",
    "memory_service/deciders/llm/finding.py": "a prompt, worded for the model",
    "memory_service/deciders/rules/extraction_patterns.py": "a list of words",
    "memory_service/deciders/rules/relevance.py": "a list of words",
    "memory_service/deciders/rules/storage.py": "a list of words",
    "memory_service/deciders/rules/verbs.py": "a list of words",
    "memory_service/domain/facts/prompt_block.py": "a prompt, worded for the model",
    "memory_service/indexes/analysis.py": "a list of words",
    "memory_service/indexes/irregular_verbs.py": "a list of words",
}

# Everything that people read, by place. Of generated code its source is checked.
PLACES = {
    "README": ("README.md",),
    "docs": ("docs/*.md", "benchmarks/README.md", "tests/vectors/README.md"),
    "project": ("CONTRIBUTING.md", "CHANGELOG.md", "RELEASE.md", "SECURITY.md"),
    "clients' READMEs": ("clients/**/README.md",),
    "protos": ("protos/**/*.proto",),
    "server": ("memory_service/**/*.py",),
    "Python client": ("clients/python/**/*.py",),
    "TypeScript client": ("clients/typescript/src/**/*.ts", "clients/typescript/test/**/*.ts"),
    "Go client": ("clients/go/**/*.go",),
    "tests and benchmarks": ("tests/**/*.py", "benchmarks/**/*.py"),
}
_STRINGS_UNREAD = re.compile(r"^(?:tests|benchmarks)/")
"""Of these only comments and docstrings are read: their strings are inputs and names of cases."""
_GENERATED = re.compile(r"^memory_service/v1/|/(?:_gen|_sync|src/gen|memoryv1|node_modules)/")

_VERB = (
    r"(?:is|are|was|were|has|have|had|does|do|can|cannot|could|may|might|must|will|would"
    r"|needs?|wants?|waits?|asks?)"
)


@dataclass(frozen=True)
class Phrase:
    """A pattern to avoid, and what to write instead."""

    pattern: re.Pattern[str]
    instead: str


def _phrase(pattern: str, instead: str) -> Phrase:
    return Phrase(re.compile(pattern), instead)


PHRASES = (
    _phrase(r"\b(?:[Tt]old|[Tt]ells|[Tt]elling)\b(?! apart)", "report, return, show, say"),
    _phrase(r"\b(?:[Ss]ome|[Nn]o|[Aa]ny|[Ee]very)body\b", "name the role: caller, client, user, operator"),
    _phrase(r"\b[Ww]hom\b", "name the role, or turn the sentence round"),
    _phrase(
        rf"(?:^|[.;:!?,] |\b(?:and|but|so|that|if|or) )[Ww]ho (?:{_VERB}|[a-z]+s)\b(?![^.;:|]*\?)",
        "a noun before the relative clause: callers that …",
    ),
    _phrase(
        rf"(?:^|[.;:!?] )What {_VERB}\b(?![^.;:|]*\?)",
        "a noun for the subject, not a clause without a head: 'what is …'",
    ),
    _phrase(
        r"\b[Ww]hat (?:is|was|are|were|has|had|can|cannot|it|they|a \w+|the \w+) [^.?;:|,]{1,50} "
        r"(?:is|are|was|were)\b",
        "a noun for the subject: 'what is … is'",
    ),
    _phrase(
        r"\b(?:nor|neither) (?:is|are|was|does|do|did|can|has|have|will|would) ", "and not, or a new sentence"
    ),
    _phrase(
        r"\bso (?:is|are|was|does|do|did|has|have|can) (?:it|one|that|those|the|an?|what)\b", "also, as well"
    ),
    _phrase(
        r"\bfor (?:it|they|he|she|this|there|that|who|nothing|[A-Z]\w+|the \w+) "
        r"(?:is|are|was|were|has|have|had|keeps?|would|could|cannot|may|must)\b(?![^.;:|]*\?)",
        "because",
    ),
    _phrase(r"\b\w+ of (?:its|their|your|our|his|her) own\b", "its own …, your own …"),
    _phrase(r"\b(?:it is|are) not (?:known|said)\b", "unknown, or say who does not know it"),
    _phrase(r"\banew\b", "again"),
    _phrase(r"\bbut for\b", "except, except for"),
    _phrase(r"\b(?:is|are|was|were|be) away\b", "unavailable, down"),
    _phrase(r"\ball the same[.;,)]", "anyway"),
    _phrase(r"\b[Tt]he ones? (?:who|of which|whose)\b", "name the thing"),
    _phrase(r", too, (?:and|or|but|for|so|which|in|of|by|where|when)\b", "also, before the verb"),
)


@dataclass(frozen=True)
class Hit:
    """A phrase to avoid, found on a line of a file."""

    path: str
    line: int
    text: str
    instead: str

    def __str__(self) -> str:
        return f'{self.path}:{self.line}: "{self.text}": {self.instead}'


def hits(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield offset, matched text and advice of each phrase to avoid in a paragraph."""
    for phrase in PHRASES:
        for match in phrase.pattern.finditer(text):
            yield match.start(), match[0], phrase.instead


def _markdown(text: str) -> Iterator[tuple[int, list[str]]]:
    """Paragraphs, list items and table cells, without code blocks and headings."""
    fenced, start, lines = False, 1, list[str]()
    for number, line in enumerate([*text.splitlines(), ""], 1):
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        alone = not line.strip() or line.startswith(("#", "|", "    ")) or fence or fenced
        if alone or re.match(r"\s*(?:[-*]|\d+\.) ", line):
            if lines:
                yield start, lines
            start, lines = number, []
        if line.startswith("|"):
            yield from ((number, [cell.strip()]) for cell in line.split("|"))
        elif not alone:
            lines = [*lines, re.sub(r"^\s*(?:[-*]|\d+\.) ", "", line)]


def _python(source: str, *, strings: bool = True) -> Iterator[tuple[int, list[str]]]:
    """Comments and docstrings; with `strings` also other strings of several words, such as help texts."""
    nodes = list(ast.walk(ast.parse(source)))
    docstrings = {
        node.body[0].value
        for node in nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in nodes:
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and node.value.count(" ") > 2 and (strings or node in docstrings):
            for offset, lines in _paragraphs(node.value):
                yield node.lineno + offset, lines
    comments = [
        (token.start[0], token.string.lstrip("# "))
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    ]
    yield from _joined(comments)


def _slashes(source: str) -> Iterator[tuple[int, list[str]]]:
    """Comments after `//`, and of blocks `/** … */`."""
    marks = re.compile(r"(?:^\s*|\s)(?:///?|/\*\*?|\*)(?:\s+|$)(.*?)(?:\*/)?$")
    found = ((number, marks.search(line)) for number, line in enumerate(source.splitlines(), 1))
    yield from _joined([(number, match[1]) for number, match in found if match])


def _paragraphs(text: str) -> Iterator[tuple[int, list[str]]]:
    """Paragraphs of a text, with the offset of their first line."""
    yield from _joined([(number, line) for number, line in enumerate(text.splitlines()) if line.strip()])


def _joined(numbered: list[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    """Adjacent lines as one paragraph."""
    start, lines, last = 0, list[str](), -1
    for number, line in numbered:
        if lines and number != last + 1:
            yield start, lines
            lines = []
        start, lines, last = start if lines else number, [*lines, line], number
    if lines:
        yield start, lines


_READERS = {".md": _markdown, ".proto": _slashes, ".ts": _slashes, ".go": _slashes}


def hits_of(path: Path, root: Path = ROOT) -> list[Hit]:
    """Return every phrase to avoid in the prose of a file, by line."""
    name, source = str(path.relative_to(root)), path.read_text()
    if path.suffix == ".py":
        read = _python(source, strings=not _STRINGS_UNREAD.match(name))
    else:
        read = _READERS[path.suffix](source)
    found = []
    for start, lines in read:
        stripped = [re.sub(r"`[^`]*`|\]\([^)]*\)", "x", line.strip()) for line in lines]
        text = " ".join(stripped)
        for offset, matched, instead in hits(text):
            line, passed = start, 0
            for length in map(len, stripped):
                passed += length + 1
                if passed > offset:
                    break
                line += 1
            found.append(Hit(name, line, matched, instead))
    return sorted(found, key=lambda hit: hit.line)


def over_budget(root: Path = ROOT) -> list[str]:
    """Return a message for each budget that is exceeded."""
    messages = []
    for pattern, most in BUDGETS.items():
        words = sum(len(path.read_text().split()) for path in root.glob(pattern))
        if words > most:
            messages.append(f"{pattern}: {words} words, at most {most}: shorten something")
    return messages


def files(place: str, root: Path = ROOT) -> list[Path]:
    """Return the files of a place that are written by hand."""
    paths = {path for pattern in PLACES[place] for path in root.glob(pattern)}
    return sorted(path for path in paths if not _GENERATED.search(str(path.relative_to(root))))


def checked_files(root: Path = ROOT) -> list[Path]:
    """Return the files that must have no hit."""
    found = [path for place in PLACES for path in files(place, root)]
    return [path for path in found if str(path.relative_to(root)) not in EXEMPT]


def problems(root: Path = ROOT) -> list[str]:
    """Return a message for each exceeded budget and each hit in a checked file."""
    return [*over_budget(root), *(str(hit) for path in checked_files(root) for hit in hits_of(path, root))]


def main() -> int:
    """Print the problems."""
    messages = problems()
    print(*messages, sep="\n", end="\n" if messages else "")
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
