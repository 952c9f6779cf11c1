"""Orders files by how often words occur in them, as Pydantic AI Harness's own stores do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic_ai_harness.memory import MemorySearchMatch


def matched(
    contents: Mapping[str, str], terms: Sequence[str], *, prefix: str, limit: int, max_chars: int
) -> tuple[list[MemorySearchMatch], bool]:
    """Return the files in which the terms occur most often, and whether there are more.

    Args:
        contents: The contents of the files by path.
        terms: Words in lower case. In a path they count twice.
        prefix: The beginning of all paths, which is not compared or counted.
        limit: Maximum number of matches.
        max_chars: Maximum number of characters of all paths and snippets together.
    """
    scores = {path: _score(path.removeprefix(prefix), content, terms) for path, content in contents.items()}
    best = sorted((path for path, score in scores.items() if score), key=lambda path: (-scores[path], path))
    matches: list[MemorySearchMatch] = []
    for path in best[:limit]:
        available = max_chars - len(path.removeprefix(prefix))
        if available <= 0:
            break
        snippet = _snippet(contents[path], terms, available)
        matches.append(MemorySearchMatch(path=path, snippet=snippet, score=float(scores[path])))
        max_chars = available - len(snippet)
    return matches, len(matches) < len(best)


def _score(path: str, content: str, terms: Sequence[str]) -> int:
    return sum(content.lower().count(term) + 2 * path.lower().count(term) for term in terms)


def _snippet(content: str, terms: Sequence[str], size: int) -> str:
    """Return a part of the content around the first word, of at most `size` characters."""
    found = [at for term in terms if (at := content.lower().find(term)) >= 0]
    start = max(0, min(min(found, default=0) - size // 3, len(content) - size))
    snippet = content[start : start + size]
    if start:
        snippet = "..."[: len(snippet)] + snippet[3:]
    if start + size < len(content):
        snippet = snippet[:-3] + "..."[: len(snippet)]
    return snippet
