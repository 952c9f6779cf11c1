r"""Names of namespaces, and the patterns of names in credentials and policies.

A pattern is a name, or a prefix followed by "*". In both, a star of the name itself is written "\*" and a
backslash "\\", so that every name can be granted alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

NAME_BYTES_MAX = 256
"""Doubled: percent-encoded names no longer fit into the 1024 bytes that clients send to proxies."""

_KEPT_NAMES_MAX = 4096
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)


@lru_cache(maxsize=_KEPT_NAMES_MAX)
def fault_of_name(name: str) -> str:
    """Return what is wrong with the characters of a name; empty if nothing is.

    A name is never changed to a valid one: two spellings of a name must not become one namespace silently.
    """
    if fault := _fault_of_characters(name):
        return fault
    if name != name.strip():
        return "may not begin or end with a space"
    if ".." in name or "//" in name or name[0] == "/" or name[-1] == "/":
        return 'may not contain "..", "//", or "/" at an end'
    return ""


def _fault_of_characters(text: str) -> str:
    if _CONTROL.search(text):
        return "may not contain control characters"
    if not unicodedata.is_normalized("NFC", text):
        return "is not in Unicode normalization form NFC"
    return ""


class Patterns(NamedTuple):
    """What patterns match: exact names, and every name with one of the prefixes."""

    names: frozenset[str]
    prefixes: tuple[str, ...]

    def match(self, name: str) -> bool:
        """Return whether a pattern matches a name."""
        return name in self.names or name.startswith(self.prefixes)


def read_patterns(patterns: Iterable[str]) -> Patterns:
    """Return what patterns match. Raises ValueError for an invalid one."""
    read = [_read(pattern) for pattern in patterns]
    return Patterns(
        frozenset(text for text, is_prefix in read if not is_prefix),
        tuple(text for text, is_prefix in read if is_prefix),
    )


def _read(pattern: str) -> tuple[str, bool]:
    """Return the name or prefix of a pattern, and whether it is a prefix.

    Names that no namespace can have, such as "a//b", are accepted: they match nothing.
    """
    bare = _ESCAPE.sub("", pattern)
    is_prefix = bare.endswith("*") and pattern.endswith("*")
    text = pattern[:-1] if is_prefix else pattern
    if not pattern or "*" in (bare[:-1] if is_prefix else bare):
        raise ValueError('must be a name, or a prefix that ends with "*"; a star of a name is written "\\*"')
    if any(escaped not in ("\\", "*") for escaped in _ESCAPE.findall(text)):
        raise ValueError('a backslash of a name is written "\\\\"')
    text = _ESCAPE.sub(r"\1", text)
    if len(text.encode(errors="surrogatepass")) > NAME_BYTES_MAX:
        raise ValueError(f"has more than {NAME_BYTES_MAX} bytes")
    if fault := _fault_of_characters(text):
        raise ValueError(fault)
    return text, is_prefix


def in_one_line(patterns: Sequence[str]) -> str:
    r"""Return patterns separated by spaces; a space in a pattern is written "\ "."""
    return " ".join(pattern.replace(" ", "\\ ") for pattern in patterns)
