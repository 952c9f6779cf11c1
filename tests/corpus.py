"""The corpus of tests/vectors: cases read, filled in, run through a peer and judged.

The format is described in tests/vectors/README.md. What talks to a server is in corpus_peers.py,
the servers are in corpus_servers.py.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
VECTORS = ROOT / "tests" / "vectors"

_FILE_KEYS = {"about", "server", "cases"}
_SERVER_KEYS = {"flags", "env", "own", "file_bytes_max", "refuses"}
_CASE_KEYS = {"name", "steps"}
_STEP_KEYS = {"call", "request", "requests", "response", "responses", "error", "save", "all_pages"}
_ERROR_KEYS = {"code", "reason", "field", "metadata"}
_EXPECTATIONS = {"response", "responses", "error"}
_SUMMED = {"tokenCount", "deletedCount"}
_REFERENCE = re.compile(r"\$\{([a-z_0-9]+)\}")
_PATH_STEP = re.compile(r"\.?([A-Za-z_][A-Za-z_0-9]*)|\[(\d+)\]")


class CorpusError(ValueError):
    """A file of the corpus says what the format does not allow."""


class Failed(AssertionError):
    """A case failed; the message has the step, the path and both values."""


@dataclass(frozen=True)
class Settings:
    """How the server of a file is started; files with equal settings share one."""

    flags: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    own: bool = False
    """Whether each case has a server of its own, which it may fill or break."""
    file_bytes_max: int = 0
    """The most bytes that a file of the server may have; 0: as many as it likes."""
    refuses: str = ""
    """JSON: the calls that are refused, each with its error, by what stands in the server's place."""


@dataclass(frozen=True)
class Case:
    """One case: its steps are run in order, in namespaces that no other case has."""

    file: str
    name: str
    server: Settings
    steps: tuple[dict[str, Any], ...] = field(hash=False)

    @property
    def label(self) -> str:
        """The case as lists of left-out cases name it."""
        return f"{self.file}: {self.name}"


# Reading


def load(folder: Path = VECTORS) -> list[Case]:
    """All cases, file by file; raises CorpusError for what the format does not allow."""
    return [case for path in sorted(folder.glob("*.json")) for case in _read(path)]


def _read(path: Path) -> Iterator[Case]:
    file = json.loads(path.read_text(encoding="utf-8"))
    _only(path.name, file, _FILE_KEYS)
    settings = _settings(path.name, file.get("server", {}))
    names: set[str] = set()
    for case in file["cases"]:
        where = f"{path.name}: {case.get('name')}"
        _only(where, case, _CASE_KEYS)
        if case["name"] in names:
            raise CorpusError(f"{where}: the name occurs twice")
        names.add(case["name"])
        for number, step in enumerate(case["steps"], 1):
            _check_step(f"{where}: step {number}", step)
        yield Case(path.name, case["name"], settings, tuple(case["steps"]))


def _settings(where: str, server: dict[str, Any]) -> Settings:
    _only(f"{where}: server", server, _SERVER_KEYS)
    return Settings(
        tuple(server.get("flags", ())),
        tuple(sorted(server.get("env", {}).items())),
        server.get("own", False),
        server.get("file_bytes_max", 0),
        json.dumps(server["refuses"], sort_keys=True) if "refuses" in server else "",
    )


def _check_step(where: str, step: dict[str, Any]) -> None:
    if "runner" in step:
        _only(where, step, {"runner"})
        return
    _only(where, step, _STEP_KEYS)
    if len(_EXPECTATIONS & step.keys()) != 1:
        raise CorpusError(f"{where}: exactly one of {sorted(_EXPECTATIONS)} is needed")
    if ("request" in step) == ("requests" in step):
        raise CorpusError(f"{where}: exactly one of request and requests is needed")
    if "error" in step:
        _only(where, step["error"], _ERROR_KEYS)


def _only(where: str, found: Mapping[str, Any], allowed: set[str]) -> None:
    if unknown := found.keys() - allowed:
        raise CorpusError(f"{where}: unknown {sorted(unknown)}")


# Filling in


def fill_in(value: Any, names: Mapping[str, Any]) -> Any:
    """The value with what is saved in the place of ${name}, and with long values written out."""
    if isinstance(value, str):
        return _fill_text(value, names)
    if isinstance(value, list):
        return [fill_in(inner, names) for inner in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"$repeat"}:
        return fill_in(value["$repeat"]["value"], names) * value["$repeat"]["count"]
    if value.keys() == {"$numbered"}:
        entry = value["$numbered"]
        return {f"{entry['key']}{n}": fill_in(entry["value"], names) for n in range(entry["count"])}
    return {key: fill_in(inner, names) for key, inner in value.items()}


def _fill_text(text: str, names: Mapping[str, Any]) -> Any:
    if whole := _REFERENCE.fullmatch(text):
        return _saved(whole[1], names)
    return _REFERENCE.sub(lambda found: str(_saved(found[1], names)), text)


def _saved(name: str, names: Mapping[str, Any]) -> Any:
    if name not in names:
        raise CorpusError(f"nothing is saved as {name!r}")
    return names[name]


def at_path(value: Any, path: str) -> Any:
    """Return the value at a path such as "results[0].item.id"; raise Failed if there is none."""
    position = 0
    while position < len(path):
        found = _PATH_STEP.match(path, position)
        if found is None:
            raise CorpusError(f"{path!r} is no path")
        key: str | int = found[1] if found[1] is not None else int(found[2])
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            raise Failed(f"nothing at {path!r} to save") from None
        position = found.end()
    return value


# Judging

_MISSING: Any = object()


def mismatches(expected: Any, actual: Any, path: str = "response") -> Iterator[str]:
    """Each place where the answer is not what is expected, with both values."""
    if expected == "$any":
        if actual is _MISSING or _is_default(actual):
            yield f"{path}: is {_shown(actual)}, expected a value"
    elif expected == "$absent":
        if actual is not _MISSING and not _is_default(actual):
            yield f"{path}: is {_shown(actual)}, expected none"
    elif isinstance(expected, dict) and expected.keys() == {"$exactly"}:
        if actual is _MISSING or not _same(expected["$exactly"], actual):
            yield f"{path}: is {_shown(actual)}, expected exactly {_shown(expected['$exactly'])}"
    elif isinstance(expected, dict) and expected.keys() == {"$contains"}:
        if not _contains(expected["$contains"], actual):
            yield f"{path}: is {_shown(actual)}, expected it to contain {_shown(expected['$contains'])}"
    elif actual is _MISSING:
        if not _is_default(expected):
            yield f"{path}: is not there, expected {_shown(expected)}"
    elif isinstance(expected, dict) and isinstance(actual, dict):
        for key, inner in expected.items():
            yield from mismatches(inner, actual.get(key, _MISSING), f"{path}.{key}")
    elif isinstance(expected, list) and isinstance(actual, list):
        yield from _list_mismatches(expected, actual, path)
    elif not _same(expected, actual):
        yield f"{path}: is {_shown(actual)}, expected {_shown(expected)}"


def _list_mismatches(expected: list[Any], actual: list[Any], path: str) -> Iterator[str]:
    if len(expected) != len(actual):
        yield f"{path}: has {len(actual)} elements, expected {len(expected)}: {_shown(actual)}"
        return
    for at, (wanted, found) in enumerate(zip(expected, actual, strict=True)):
        yield from mismatches(wanted, found, f"{path}[{at}]")


def _contains(wanted: Any, actual: Any) -> bool:
    if isinstance(actual, str):
        return isinstance(wanted, str) and wanted in actual
    return isinstance(actual, list) and any(not list(mismatches(wanted, found)) for found in actual)


def _is_default(value: Any) -> bool:
    return value is None or value is False or value in ("", "0", [], {}) or _same(0, value)


def _same(expected: Any, actual: Any) -> bool:
    """Equal, numbers to within a relative 1e-6; a field more or less is a difference."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(_same(expected[k], actual[k]) for k in expected)
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(_same, expected, actual))
    if _is_number(expected) and _is_number(actual):
        return math.isclose(expected, actual, rel_tol=1e-6)
    return type(expected) is type(actual) and expected == actual


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    if value is _MISSING:
        return "not there"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 600 else f"{text[:600]}... ({len(text)} characters)"


# Running

Call = Callable[[dict[str, Any]], dict[str, Any]]


def run(case: Case, call: Call, deed: Callable[[str], None], names: dict[str, Any]) -> None:
    """Runs the steps of a case; raises Failed at the first that does not go as it says.

    `call` is the peer's, `deed` does what a step leaves to the runner; `names` holds what is saved
    from the start, such as the namespace.
    """
    for number, step in enumerate(case.steps, 1):
        if "runner" in step:
            deed(step["runner"])
            continue
        answer = _all_pages(call, _asked(step, names)) if step.get("all_pages") else call(_asked(step, names))
        try:
            _judge(fill_in(_expected(step), names), answer)
            for name, path in step.get("save", {}).items():
                names[name] = at_path(answer.get("response", answer.get("responses")), path)
        except Failed as failure:
            raise Failed(f"{case.label}: step {number}, {step['call']}: {failure}") from None


def _asked(step: dict[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    """The line that a peer reads."""
    asked = {key: fill_in(step[key], names) for key in ("call", "request", "requests") if key in step}
    if step["call"] == "MemoryService/Watch":
        asked["take"] = len(step.get("responses", ())) or 1
    return asked


def _all_pages(call: Call, asked: dict[str, Any]) -> dict[str, Any]:
    """The lists of all pages joined, the counts summed. A client that fetches pages itself gives no token."""
    answer = call(asked)
    joined = answer.get("response", {})
    page = joined
    while token := page.pop("nextPageToken", ""):
        answer_to_page = call({**asked, "request": _next_page(asked["request"], token)})
        if "response" not in answer_to_page:
            return answer_to_page
        page = answer_to_page["response"]
        for key, value in page.items():
            if isinstance(value, list):
                joined[key] = [*joined.get(key, []), *value]
        for key in _SUMMED & page.keys():
            total = int(joined.get(key, 0)) + int(page[key])
            joined[key] = str(total) if isinstance(page[key], str) else total
    return answer


def _next_page(request: dict[str, Any], token: str) -> dict[str, Any]:
    """The request for the page of a token, which stands among the options where there are some."""
    if "options" in request:
        return {**request, "options": {**request["options"], "pageToken": token}}
    return {**request, "pageToken": token}


def _expected(step: dict[str, Any]) -> dict[str, Any]:
    return {key: step[key] for key in _EXPECTATIONS if key in step}


def _judge(expected: dict[str, Any], answer: dict[str, Any]) -> None:
    ((kind, wanted),) = expected.items()
    if kind not in answer:
        raise Failed(f"expected {kind}, got {_shown(answer)}")
    found = list(mismatches(wanted, answer[kind], kind))
    if found:
        raise Failed("; ".join(found[:10]) + f"\nthe whole answer: {_shown(answer)}")
