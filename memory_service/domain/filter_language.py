"""The filter language: a subset of AIP-160, parsed into a predicate. See docs/filters.md.

The grammar is LALR(1): the parser reads each token once and keeps an explicit stack, so no text can make it
slow or overflow the stack.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, cast

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedInput, UnexpectedToken, v_args

from memory_service.domain.filter_fields import Word, comparison, membership, shown
from memory_service.domain.filter_values import Json, Literal, Misfit, unquoted
from memory_service.errors import InvalidArgument
from memory_service.limits import Limits
from memory_service.predicates import And, Not, Or, Predicate, column_fields

_GRAMMAR = r"""
start: conjunction
conjunction: sequence ("AND" sequence)*
sequence: disjunction+
disjunction: _term ("OR" _term)*
_term: negation | _simple
negation: ("NOT" | "-") _simple
_simple: restriction | group
group: "(" conjunction ")"
restriction: path COMPARATOR value
    | path IN "(" value ("," value)* ")" -> membership
path: NAME (_DOT (KEY | STRING))*
value: TIME | BARE | STRING | array | object
array: ARRAY [_json ("," _json)*] _END_ARRAY
object: OBJECT [pair ("," pair)*] _END_OBJECT
pair: STRING _COLON _json
_json: scalar | array | object
scalar: STRING | SCALAR

_DOT: "."
_COLON: ":"
IN: "IN"
// Anything else that begins with a bracket is a text.
ARRAY.3: /\[(?=\s*([\["'{\]+.\d-]|(true|false|null)(?![^\s,\]])))/
OBJECT.3: /\{(?=\s*["'}])/
_END_ARRAY.3: "]"
_END_OBJECT.3: "}"
SCALAR: /[^\s()"'<>=!:,\\\[\]{}]+/
COMPARATOR: "!=" | "<=" | ">=" | "=" | "<" | ">" | ":"
NAME: /(?!(AND|OR|NOT)(?![^\s()"'<>=!:,.\\]))[^\s()"'<>=!:,.\\-][^\s()"'<>=!:,.\\]*/
KEY: /[^\s()"'<>=!:,.\\]+/
STRING: /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/s
TIME.2: /\d{4}-\d\d-\d\d[Tt]\d\d:[\d:.]*([Zz]|[+-]\d\d:\d\d)?/
BARE: /[^\s()"'<>=!:,\\]+/
SPACE: /\s+/
%ignore SPACE
"""

_EXPECTED = {
    "NAME": "a field",
    "KEY": "a key",
    "BARE": "a value",
    "TIME": "a value",
    "STRING": "a quoted text",
    "COMPARATOR": "one of = != < <= > >= :",
    "IN": "IN",
    "_DOT": '"."',
    "_COLON": '":"',
    "SCALAR": "a number, true, false or null",
    "COMMA": '","',
    "_END_ARRAY": '"]"',
    "_END_OBJECT": '"}"',
    "AND": "AND",
    "OR": "OR",
    "NOT": "NOT",
    "MINUS": '"-"',
    "LPAR": '"("',
    "RPAR": '")"',
    "$END": "the end",
}
"""The terminals of the grammar, as errors name them."""
_KEPT_FILTERS_MAX = 256
_SMALL_OPERATOR = re.compile(r"(?<![^\s)])(and|or|not)\s*$", re.IGNORECASE)

_SMALL_IN = re.compile(r"in(?=[\s(]|$)", re.IGNORECASE)


class FilterLanguage:
    """Parses filters within the limits."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._bounds = _Bounds(limits)
        self._parser = Lark(
            _GRAMMAR,
            parser="lalr",
            lexer="contextual",
            maybe_placeholders=False,
            # Builds the predicate instead of a tree.
            transformer=_ToPredicate(),
            lexer_callbacks=self._bounds.callbacks,
        )
        # The same few filters recur, and a predicate never changes.
        self._read = lru_cache(_KEPT_FILTERS_MAX)(self._read_anew)

    def parse(self, field: str, text: str) -> Predicate | None:
        """Return the predicate of a filter; None for an empty one.

        Raises InvalidArgument of `field` with the column of the mistake, counted in characters from 1.
        """
        if len(text.encode()) > self._limits.filter_bytes_max:
            raise InvalidArgument(field, f"has more than {self._limits.filter_bytes_max} bytes")
        if not text.strip():
            return None
        try:
            return self._read(text)
        except Misfit as misfit:
            column = misfit.at + 1
            raise InvalidArgument(field, f"column {column}: {misfit.problem}", column=column) from None

    def _read_anew(self, text: str) -> Predicate:
        self._bounds.begin()
        try:
            predicate = cast(Predicate, self._parser.parse(text))
        except UnexpectedInput as error:
            raise self._misfit(error, text) from None
        if len(column_fields(predicate)) > self._limits.filter_fields_max:
            raise Misfit(0, f"there are more than {self._limits.filter_fields_max} different fields")
        return predicate

    def _misfit(self, error: UnexpectedInput, text: str) -> Misfit:
        """Return where a text leaves the grammar, and what was expected there."""
        if isinstance(error, UnexpectedToken):
            ended = error.token.type == "$END"
            at, found = (len(text), "the end") if ended else (_at(error.token), shown(error.token.value))
            wanted = error.accepts or error.expected
        else:
            assert isinstance(error, UnexpectedCharacters)
            at = error.pos_in_stream or 0
            found = shown(text[at])
            self._bounds.begin()
            before = self._parser.parse_interactive(text[:at])
            before.exhaust_lexer()
            wanted = before.accepts()  # type: ignore[no-untyped-call]
        if "IN" in wanted and (small := _SMALL_IN.match(text, at)):
            return Misfit(at, "write IN in capitals")
        if (small := _SMALL_OPERATOR.search(text, 0, at)) and not small[1].isupper():
            return Misfit(small.start(1), f"write {small[1].upper()} in capitals")
        if text[at : at + 1] in ('"', "'") and not isinstance(error, UnexpectedToken):
            return Misfit(at, "the quoted text has no end")
        # In the order of the table, each once.
        expected = list(dict.fromkeys(word for name, word in _EXPECTED.items() if name in wanted))
        listed = " or ".join([", ".join(expected[:-1]), expected[-1]] if len(expected) > 1 else expected)
        return Misfit(at, f"expected {listed}, not {found}")


class _Bounds:
    """Stops the parser at the first token beyond the limits."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.callbacks: dict[str, Callable[[Token], Token]] = {
            "LPAR": self._open, "RPAR": self._close, "_DOT": self._go_down, "COMPARATOR": self._compare,
            "ARRAY": self._open_json, "OBJECT": self._open_json, "_END_ARRAY": self._close_json,
            "_END_OBJECT": self._close_json, "IN": self._compare, "COMMA": self._separate,
        }  # fmt: skip
        self.begin()

    def begin(self) -> None:
        """Start a new text."""
        self._depth = self._nested = self._terms = self._keys = 0

    def _open(self, token: Token) -> Token:
        self._depth += 1
        if self._depth > self._limits.filter_depth_max:
            raise Misfit(_at(token), f"parentheses are nested more than {self._limits.filter_depth_max} deep")
        return token

    def _close(self, token: Token) -> Token:
        self._depth -= 1
        return token

    def _open_json(self, token: Token) -> Token:
        self._nested += 1
        return self._open(token)

    def _close_json(self, token: Token) -> Token:
        self._nested -= 1
        return self._close(token)

    def _separate(self, token: Token) -> Token:
        # Each value of IN is a comparison.
        return token if self._nested else self._compare(token)

    def _go_down(self, token: Token) -> Token:
        self._keys += 1
        if self._keys > self._limits.metadata_depth_max:
            raise Misfit(_at(token), f"metadata has at most {self._limits.metadata_depth_max} levels")
        return token

    def _compare(self, token: Token) -> Token:
        self._keys = 0
        self._terms += 1
        if self._terms > self._limits.filter_terms_max:
            raise Misfit(_at(token), f"there are more than {self._limits.filter_terms_max} comparisons")
        return token


class _ToPredicate(Transformer[Token, object]):
    """Builds the predicate of each rule during parsing. Raises Misfit."""

    def start(self, parts: list[Predicate]) -> Predicate:
        return parts[0]

    group = start

    def conjunction(self, parts: list[Predicate]) -> Predicate:
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    sequence = conjunction

    def disjunction(self, parts: list[Predicate]) -> Predicate:
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def negation(self, parts: list[Predicate]) -> Predicate:
        return Not(parts[0])

    @v_args(inline=True)
    def restriction(self, path: Sequence[Word], operator: Token, literal: Literal) -> Predicate:
        return comparison(path, Word(operator.value, _at(operator)), literal)

    @v_args(inline=True)
    def membership(self, path: Sequence[Word], within: Token, *literals: Literal) -> Predicate:
        return membership(path, _at(within), literals)

    def path(self, tokens: list[Token]) -> list[Word]:
        return [
            Word(unquoted(token, _at(token)) if token.type == "STRING" else token.value, _at(token))
            for token in tokens
        ]

    def array(self, parts: list[Any]) -> Json:
        return Json([part.value for part in parts[1:]], _at(parts[0]))

    def object(self, parts: list[Any]) -> Json:
        return Json(dict(parts[1:]), _at(parts[0]))

    @v_args(inline=True)
    def pair(self, key: Token, found: Json) -> tuple[str, Any]:
        return unquoted(key.value, _at(key)), found.value

    @v_args(inline=True)
    def scalar(self, token: Token) -> Json:
        at = _at(token)
        if token.type == "STRING":
            return Json(unquoted(token.value, at), at)
        value = Literal.bare(token.value, at).as_json(wildcards=False)
        if isinstance(value, str):
            raise Misfit(at, "expected a quoted text, a number, true, false or null")
        return Json(value, at)

    @v_args(inline=True)
    def value(self, token: Token | Json) -> Literal:
        if isinstance(token, Json):
            return Literal.nested(token)
        read = Literal.in_quotes if token.type == "STRING" else Literal.bare
        return read(token.value, _at(token))


def _at(token: Token) -> int:
    assert token.start_pos is not None
    return token.start_pos
