#!/usr/bin/env python3
"""Writes the synchronous client out of the asynchronous one, which is the source of both.

    clients/python/generate_sync.py            write the files
    clients/python/generate_sync.py --check    tell which of them are not up to date

The methods of both clients differ in `async`, `await` and a few names. So each module of `_aio` but the
transport, and `aio.py`, is rewritten by the rules below and formatted by ruff. The transports are two files
written by hand: that is where the clients really differ.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent / "memory_client"

_BY_HAND = ("__init__.py", "transport.py")

_RULES = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\basync (def|for|with)\b", r"\1"),
        (r"\bawait ", ""),
        (r"\bAsyncGenerator\[(\w+(?: \| \w+)*), None\]", r"Generator[\1, None, None]"),
        (r"\bAsync(Generator|Iterator|MemoryClient|Records)\b", r"\1"),
        (r"\basync_batches\b", "batches"),
        (r" \| Awaitable\[str\]|\bAwaitable, ", ""),
        (r"\b__a(enter|exit)__\b", r"__\1__"),
        (r"\bmemory_client\._aio\b", "memory_client._sync"),
        # What the documentation of the two does not have in common.
        (r"\bThe asynchronous client\b", "The synchronous client"),
        (r"\bFor use in one event loop\b", "Safe for use from many threads"),
        (r"\bin the event loop\b", "in another thread"),
    )
]

_LEFT = re.compile(r"\b(async|await|asyncio|aio|Async\w+|async_\w+|event loop)\b|_aio\b")
"""What no generated file may hold: a rule is missing."""


def sources() -> Iterator[tuple[Path, Path]]:
    """Yield each source and the file that is made of it."""
    for source in sorted((PACKAGE / "_aio").glob("*.py")):
        if source.name not in _BY_HAND:
            yield source, PACKAGE / "_sync" / source.name
    yield PACKAGE / "aio.py", PACKAGE / "client.py"


def generated(source: Path, target: Path) -> str:
    """Return the synchronous form of a source.

    Raises:
        ValueError: Something asynchronous is left that no rule knows.
    """
    text = source.read_text()
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    if left := _LEFT.search(text):
        raise ValueError(f"{source}: no rule for {left[0]!r}")
    name = source.relative_to(PACKAGE).as_posix()
    header = f"# Generated from {name} by generate_sync.py. Do not edit: change that and generate anew.\n"
    sorted_imports = _ruff(target, header + text, "check", "--select", "I", "--fix")
    return _ruff(target, sorted_imports, "format")


def _ruff(path: Path, text: str, *command: str) -> str:
    """Run ruff over a text, with the settings that hold for the path."""
    program = [sys.executable, "-m", "ruff", *command, "--quiet", "--stdin-filename", str(path), "-"]
    return subprocess.run(program, input=text, capture_output=True, text=True, check=True).stdout


def main() -> int:
    """Write the files, or check them; return the exit code."""
    stale = [
        (target, text)
        for source, target in sources()
        if (text := generated(source, target)) != (target.read_text() if target.exists() else "")
    ]
    for target, text in stale:
        if "--check" in sys.argv[1:]:
            print(f"{target}: not up to date, run clients/python/generate_sync.py", file=sys.stderr)
        else:
            target.write_text(text)
    return 1 if stale and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
