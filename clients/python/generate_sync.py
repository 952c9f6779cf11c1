#!/usr/bin/env python3
"""Generates the synchronous client from the asynchronous one.

    clients/python/generate_sync.py            write the files
    clients/python/generate_sync.py --check    list the files that are out of date

The clients' methods differ only in `async`, `await` and a few names. So each module of `_aio` except the
transport, and `aio.py`, is rewritten by the rules below and formatted by ruff. The two transports differ more
and are written by hand.
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
        # Differences of their documentation.
        (r"\bThe asynchronous client\b", "The synchronous client"),
        (r"\bFor use in any event loop\b", "Safe for use from many threads"),
        (r"; each event loop\n .* `asyncio\.run` ends\b", ""),
        (r"\bin the event loop\b", "in another thread"),
    )
]

_LEFT = re.compile(r"\b(async|await|asyncio|aio|Async\w+|async_\w+|event loop)\b|_aio\b")
"""Must not be in a generated file: a rule is missing."""


def sources() -> Iterator[tuple[Path, Path]]:
    """Yield each source and its generated file."""
    for source in sorted((PACKAGE / "_aio").glob("*.py")):
        if source.name not in _BY_HAND:
            yield source, PACKAGE / "_sync" / source.name
    yield PACKAGE / "aio.py", PACKAGE / "client.py"


def generated(source: Path, target: Path) -> str:
    """Return the synchronous form of a source.

    Raises:
        ValueError: Something asynchronous is left, for which there is no rule.
    """
    text = source.read_text()
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    if left := _LEFT.search(text):
        raise ValueError(f"{source}: no rule for {left[0]!r}")
    name = source.relative_to(PACKAGE).as_posix()
    header = f"# Generated from {name} by generate_sync.py. Do not edit: change that and run it again.\n"
    sorted_imports = _ruff(target, header + text, "check", "--select", "I", "--fix")
    return _ruff(target, sorted_imports, "format")


def _ruff(path: Path, text: str, *command: str) -> str:
    """Run ruff over a text, with the settings for the path."""
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
            print(f"{target}: out of date, run clients/python/generate_sync.py", file=sys.stderr)
        else:
            target.write_text(text)
    return 1 if stale and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
