"""A write policy from a file of rules. The only file that imports re2: linear time for any pattern."""

from __future__ import annotations

import asyncio
import functools
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import re2

from memory_service.data_model import ItemKind, Json, Role, SourceKind
from memory_service.namespaces import Patterns, read_patterns
from memory_service.policies.base import ALLOWED, Action, CannotLoadPolicy, Proposal, Verdict, WritePolicy
from memory_service.policies.folding import Folded, Phrase, folded, without_unseen

_FILE_BYTES_MAX = 1 << 20
_RULES_MAX = 1000
_PATTERN_CHARS_MAX = 1000
_PATTERN_MEMORY_BYTES = 8 << 20
_LONG_CHARS = 20_000
_KINDS = ("state", *(kind.name.lower() for kind in ItemKind))
_SOURCES = tuple(source.name.lower() for source in SourceKind)
_ROLES = tuple(role.value for role in Role)


class Rule(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """An action for proposals that meet all conditions. A missing condition is always met."""

    action: Action
    reason: str = ""
    sources: list[str] | None = None
    trust_below: float | None = None
    roles: list[str] | None = None
    kinds: list[str] | None = None
    namespaces: list[str] | None = None
    contains: list[str] | None = None
    matches: str | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    rules: list[Rule]


def read_rules(path: Path) -> RulesPolicy:
    """Return the policy of a file, JSON if its name ends in .json, else TOML. Raises CannotLoadPolicy."""
    try:
        raw = path.read_bytes()
        if len(raw) > _FILE_BYTES_MAX:
            raise ValueError(f"has more than {_FILE_BYTES_MAX} bytes")
        data = msgspec.json.decode(raw) if path.suffix == ".json" else tomllib.loads(raw.decode())
        return RulesPolicy(msgspec.convert(data, _File).rules)
    except OSError as error:
        raise CannotLoadPolicy(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise CannotLoadPolicy(f"{path}: {error}") from error


class RulesPolicy(WritePolicy):
    """The first rule whose conditions are all met decides; without one, the write is allowed."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        """Raises ValueError with the location of an error, such as `rules[2].roles`."""
        if len(rules) > _RULES_MAX:
            raise ValueError(f"rules: has more than {_RULES_MAX} entries")
        self._rules = [_compiled(f"rules[{at}]", rule) for at, rule in enumerate(rules)]
        self._reads = any(rule.phrases or rule.pattern for rule in self._rules)

    async def judge(self, proposals: Sequence[Proposal]) -> Sequence[Verdict]:
        chars = sum(_chars(proposal) for proposal in proposals) if self._reads else 0
        if chars > _LONG_CHARS:
            return await asyncio.to_thread(self._judge_all, proposals)
        return self._judge_all(proposals)

    def _judge_all(self, proposals: Sequence[Proposal]) -> list[Verdict]:
        return [self._judge(proposal) for proposal in proposals]

    def _judge(self, proposal: Proposal) -> Verdict:
        read: _Read | None = None
        for rule in self._rules:
            if not rule.applies(proposal):
                continue
            if rule.phrases or rule.pattern:
                read = read or _Read(proposal)
                if not rule.finds(read):
                    continue
            return rule.verdict
        return ALLOWED


class _Read:
    """The words of a proposal in the forms that rules search, each made on first use."""

    def __init__(self, proposal: Proposal) -> None:
        said = proposal.provenance
        self.text = "\n".join(
            (
                proposal.text,
                *_leaves(proposal.labels),
                *_leaves(proposal.metadata),
                said.source_uri,
                said.model,
                *proposal.names,
            )
        )

    @functools.cached_property
    def folded(self) -> Folded:
        """The form in which phrases are searched for."""
        return folded(self.text)

    @functools.cached_property
    def seen(self) -> str:
        """The form that a reader sees."""
        return without_unseen(self.text)


@dataclass(frozen=True, slots=True)
class _Compiled:
    verdict: Verdict
    sources: frozenset[SourceKind]
    trust_below: float | None
    roles: frozenset[str]
    kinds: frozenset[str]
    namespaces: Patterns | None
    phrases: tuple[Phrase, ...]
    pattern: Any

    def applies(self, proposal: Proposal) -> bool:
        """Whether all conditions except those on words are met."""
        kind = "state" if proposal.kind is None else proposal.kind.name.lower()
        return (
            (not self.sources or proposal.source in self.sources)
            and (self.trust_below is None or proposal.provenance.trust < self.trust_below)
            and (not self.roles or proposal.role in self.roles)
            and (not self.kinds or kind in self.kinds)
            and (self.namespaces is None or self.namespaces.match(proposal.namespace))
        )

    def finds(self, read: _Read) -> bool:
        """Whether the words contain a phrase or match the pattern."""
        return any(phrase.is_in(read.folded) for phrase in self.phrases) or (
            self.pattern is not None
            # Also the original text: a pattern may have invisible characters.
            and any(self.pattern.search(text) is not None for text in {read.text: None, read.seen: None})
        )


def _compiled(place: str, rule: Rule) -> _Compiled:
    if rule.action is not Action.ALLOW and not rule.reason.strip():
        raise ValueError(f"{place}.reason: is required, because writers receive it")
    if rule.trust_below is not None and not 0 < rule.trust_below <= 1:
        raise ValueError(f"{place}.trust_below: must be above 0 and at most 1")
    phrases = tuple(Phrase(words) for words in _given(f"{place}.contains", rule.contains))
    if not all(phrase.text for phrase in phrases):
        raise ValueError(f"{place}.contains: a phrase is empty")
    return _Compiled(
        Verdict(rule.action, rule.reason),
        frozenset(SourceKind[name.upper()] for name in _named(f"{place}.sources", rule.sources, _SOURCES)),
        rule.trust_below,
        frozenset(_named(f"{place}.roles", rule.roles, _ROLES)),
        frozenset(_named(f"{place}.kinds", rule.kinds, _KINDS)),
        _namespaces(f"{place}.namespaces", rule.namespaces),
        phrases,
        None if rule.matches is None else _pattern(f"{place}.matches", rule.matches),
    )


def _given(place: str, values: list[str] | None) -> list[str]:
    """Return the values of a condition. Reject an empty list, which could mean everything or nothing."""
    if values is not None and not values:
        raise ValueError(f"{place}: is empty; omit it")
    return values or []


def _named(place: str, values: list[str] | None, known: Sequence[str]) -> list[str]:
    for at, value in enumerate(_given(place, values)):
        if value not in known:
            raise ValueError(f"{place}[{at}]: {value!r} is not one of {', '.join(known)}")
    return values or []


def _namespaces(place: str, values: list[str] | None) -> Patterns | None:
    """Return the patterns, in the notation that credentials also use. None: every namespace."""
    for at, value in enumerate(_given(place, values)):
        try:
            read_patterns([value])
        except ValueError as error:
            raise ValueError(f"{place}[{at}]: {error}") from None
    return read_patterns(values) if values else None


def _pattern(place: str, pattern: str) -> Any:
    if not 0 < len(pattern) <= _PATTERN_CHARS_MAX:
        raise ValueError(f"{place}: must have 1 to {_PATTERN_CHARS_MAX} characters")
    options = re2.Options()
    options.max_mem = _PATTERN_MEMORY_BYTES
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        problem = error.args[0]
        raise ValueError(f"{place}: {problem.decode() if isinstance(problem, bytes) else problem}") from None


def _chars(proposal: Proposal) -> int:
    """Return about how many characters a proposal has; its labels and names are short."""
    return len(proposal.text) + sum(map(len, _leaves(proposal.metadata)))


def _leaves(value: Json) -> Iterator[str]:
    """Yield the keys and texts of a JSON value."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    elif isinstance(value, str):
        yield value
