"""The filter language: valid filters, errors and their places, and that no text breaks the parser."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_service.domain.filter_language import FilterLanguage
from memory_service.errors import InvalidArgument
from memory_service.indexes.value_columns import COLUMNS_MAX
from memory_service.limits import Limits
from memory_service.predicates import (
    And,
    Comparison,
    Field,
    FieldName,
    Not,
    Operator,
    Or,
    Pattern,
    Present,
    Structure,
)

LIMITS = Limits()
LANGUAGE = FilterLanguage(LIMITS)


def field(name: str, *path: str) -> Field:
    return Field(FieldName(name), path)


def compare(name: str, operator: str, operand: Any) -> Comparison:
    root, *path = name.split(".")
    return Comparison(field(root, *path), Operator(operator), operand)


A, B, C, D = (compare(f"labels.{name}", "=", "1") for name in "abcd")
MAY_1 = 1_682_899_200_000_000

READ = {
    "labels.a = 1": A,
    "labels.a=1": A,
    "\n labels . a\t= 1 ": A,
    "labels.a = 1 AND labels.b = 1": And((A, B)),
    "labels.a = 1 AND labels.b = 1 AND labels.c = 1": And((A, B, C)),
    "labels.a = 1 labels.b = 1": And((A, B)),
    "labels.a = 1 OR labels.b = 1": Or((A, B)),
    "labels.a = 1 AND labels.b = 1 OR labels.c = 1": And((A, Or((B, C)))),
    "labels.a = 1 OR labels.b = 1 AND labels.c = 1 OR labels.d = 1": And((Or((A, B)), Or((C, D)))),
    "labels.a = 1 labels.b = 1 OR labels.c = 1 AND labels.d = 1": And((And((A, Or((B, C)))), D)),
    "(labels.a = 1 AND labels.b = 1) OR labels.c = 1": Or((And((A, B)), C)),
    "((labels.a = 1))": A,
    "NOT labels.a = 1": Not(A),
    "-labels.a = 1": Not(A),
    "NOT (labels.a = 1 OR labels.b = 1)": Not(Or((A, B))),
    "NOT labels.a = 1 OR labels.b = 1": Or((Not(A), B)),
    "-(NOT labels.a = 1)": Not(Not(A)),
    "labels.ANDREW = NOTHING": compare("labels.ANDREW", "=", "NOTHING"),
    "labels:a": Present(field("labels", "a")),
    'labels:"a b"': Present(field("labels", "a b")),
    "labels.a:*": Present(field("labels", "a")),
    "labels.AND:*": Present(field("labels", "AND")),
    'labels."a.b\\"\u00e9" != \'x y\'': Comparison(
        field("labels", 'a.b"\u00e9'), Operator.UNEQUAL, "x y"
    ),
    "metadata:a": Present(field("metadata", "a")),
    "data:a": Present(field("data", "a")),
    "data.a.b = 1": compare("data.a.b", "=", 1.0),
    "labels.a IN (1)": A,
    "NOT labels.a IN(1,\"2\" , 3*)": Not(
        Or((A, compare("labels.a", "=", "2"), compare("labels.a", "=", Pattern("3", False, True))))
    ),
    "labels.a IN (1) labels.IN = IN": And((A, compare("labels.IN", "=", "IN"))),
    "metadata.a = []": compare("metadata.a", "=", Structure("[]")),
    "data.a != {}": compare("data.a", "!=", Structure("{}")),
    'metadata.a=[1,-0, "b c" ,[true],{"z":null,"a":{}}]': compare(
        "metadata.a", "=", Structure('[1.0,0.0,"b c",[true],{"a":{},"z":null}]')
    ),
    "metadata.a = [b]": compare("metadata.a", "=", "[b]"),
    "metadata.a = {b}": compare("metadata.a", "=", "{b}"),
    'metadata.a IN ([1], "[1]")': Or(
        (compare("metadata.a", "=", Structure("[1.0]")), compare("metadata.a", "=", "[1]"))
    ),
    "metadata.a.b.c:*": Present(field("metadata", "a", "b", "c")),
    "metadata.2024.x-y:*": Present(field("metadata", "2024", "x-y")),
    'metadata.a:"*"': compare("metadata.a", ":", Pattern("", True, True)),
    "metadata.a = 5": compare("metadata.a", "=", 5.0),
    "metadata.a = -0.5e1": compare("metadata.a", "=", -5.0),
    "metadata.a = .5": compare("metadata.a", "=", 0.5),
    'metadata.a = "5"': compare("metadata.a", "=", "5"),
    "metadata.a = 5x": compare("metadata.a", "=", "5x"),
    "metadata.a = \u0665": compare("metadata.a", "=", "\u0665"),
    "metadata.a = true": compare("metadata.a", "=", True),
    "metadata.a != false": compare("metadata.a", "!=", False),
    "metadata.a:null": compare("metadata.a", ":", None),
    'metadata.a = "null"': compare("metadata.a", "=", "null"),
    "metadata.a = NaN": compare("metadata.a", "=", "NaN"),
    "metadata.a > 2024-05-01": compare("metadata.a", ">", "2024-05-01"),
    "metadata.a = example.com": compare("metadata.a", "=", "example.com"),
    "metadata.a <= tra*": compare("metadata.a", "<=", "tra*"),
    "name = tra*": compare("name", "=", Pattern("tra", False, True)),
    'name = "*vel"': compare("name", "=", Pattern("vel", True, False)),
    'name = "*r*e*"': compare("name", "=", Pattern("r*e", True, True)),
    'name = "r*e"': compare("name", "=", "r*e"),
    'name = "\\*vel"': compare("name", "=", "*vel"),
    'name = "\\*vel*"': compare("name", "=", Pattern("*vel", False, True)),
    'name = "*"': compare("name", "=", Pattern("", True, True)),
    "id >= i5": compare("id", ">=", "i5"),
    "session_id = ''": compare("session_id", "=", ""),
    'name = "\\b\\f\\n\\r\\t\\/\\\\"': compare("name", "=", "\b\f\n\r\t/\\"),
    'name = "\\u00e9\\ud83d\\ude00\\u002a"': compare("name", "=", "\u00e9\U0001f600*"),
    "name = '\x00'": compare("name", "=", "\x00"),
    "name = 12": compare("name", "=", "12"),
    "role = user": compare("role", "=", "user"),
    "role:ROLE_TOOL": compare("role", ":", "tool"),
    'role != "assistant"': compare("role", "!=", "assistant"),
    "kind = message": compare("kind", "=", 1),
    "kind = ITEM_KIND_USER_MEMORY": compare("kind", "=", 4),
    "kind = ITEM_KIND_UNSPECIFIED": compare("kind", "=", 0),
    "kind != plain": compare("kind", "!=", 0),
    "create_time >= 2023-05-01": compare("create_time", ">=", MAY_1),
    'create_time >= "2023-05-01"': compare("create_time", ">=", MAY_1),
    "create_time < 2023-05-01T02:00:00+02:00": compare("create_time", "<", MAY_1),
    "create_time < '2023-04-30 22:30:00-01:30'": compare("create_time", "<", MAY_1),
    "update_time = 2023-05-01T00:00:00.123456789Z": compare("update_time", "=", MAY_1 + 123_456),
    "importance > .5": compare("importance", ">", 0.5),
    "expire_time != 2023-05-01t00:00z": compare("expire_time", "!=", MAY_1),
    "create_time > 0001-01-01T00:00:00+14:00": compare("create_time", ">", -62_135_647_200_000_000),
    "create_time < 9999-12-31T23:59:59.999999Z": compare("create_time", "<", 253_402_300_799_999_999),
}  # fmt: skip


@pytest.mark.parametrize("text", READ)
def test_what_a_filter_says(text: str) -> None:
    parsed = LANGUAGE.parse("filter", text)
    assert parsed == READ[text]
    # In Python, 1 == True; in a filter they differ.
    assert repr(parsed) == repr(READ[text])


@pytest.mark.parametrize("text", ["", " ", "\n\t "])
def test_a_filter_that_says_nothing(text: str) -> None:
    assert LANGUAGE.parse("filter", text) is None


DEEP = LIMITS.filter_depth_max
REFUSED = {
    "x": (2, "expected one of ="),
    "x = 1": (1, 'expected a field (id, session_id, role, name, kind, create_time'),
    "Role = user": (1, "expected a field"),
    '"quoted" = 1': (1, "expected a field"),
    "role": (5, "not the end"),
    "role =": (7, "expected a value or a quoted text, not the end"),
    "role == user": (7, 'expected a value or a quoted text, not "="'),
    "role = user AND": (16, 'expected a field, NOT, "-" or "(", not the end'),
    "AND role = user": (1, "expected a field"),
    "role = user OR OR role = tool": (16, 'not "OR"'),
    "role = user and role = tool": (13, "write AND in capitals"),
    "not role = user": (1, "write NOT in capitals"),
    "NOT NOT role = user": (5, 'expected a field or "(", not "NOT"'),
    "(role = user": (13, '")", not the end'),
    "role = user)": (12, 'not ")"'),
    "()": (2, 'not ")"'),
    "role = (user OR tool)": (8, 'not "("'),
    "f(x)": (2, 'not "("'),
    "role = user; DROP TABLE items": (8, "expected one of system, user, assistant, tool"),
    "1=1; DROP TABLE items": (1, "expected a field"),
    "labels.url = http://x": (18, 'not ":"'),
    "labels.a = b, c": (13, 'not ","'),
    'labels.a = "b': (12, "the quoted text has no end"),
    'labels.a = "b\\x"': (14, "expected one of"),
    'labels.a = "\\ud800"': (13, "half of a surrogate pair"),
    'labels.a = "\\ude00\\ud83d"': (13, "half of a surrogate pair"),
    'labels."\\q" = 1': (9, "expected one of"),
    "labels.a.b = 1": (10, "quote a key that contains dots"),
    "labels = 1": (8, "expected labels.KEY"),
    "metadata < 1": (10, "expected metadata.KEY"),
    "labels:*": (8, "expected a key"),
    "labels. = 1": (9, "expected a key or a quoted text"),
    "role.x = user": (6, "role has no parts"),
    "create_time.year = 2023": (13, "create_time has no parts"),
    "role < user": (6, "role has no order"),
    'labels.k = ["v"]': (12, "only metadata and data have lists and objects"),
    'metadata.a:["b"]': (11, "expected = or !="),
    "metadata.a < [1]": (12, "expected = or !="),
    'metadata.a = ["b", c]': (20, "expected a quoted text, a number, true, false or null"),
    'metadata.a = {"b" 1}': (19, 'expected ":", not "1}"'),
    'metadata.a = {"b": 1': (21, 'expected "," or "}"'),
    'metadata.a = [1, "b': (18, "the quoted text has no end"),
    "metadata.a IN ()": (16, "expected a value"),
    "metadata.a IN 1": (15, 'expected "("'),
    "metadata.a in (1)": (12, "write IN in capitals"),
    "metadata.a IN (1 2)": (18, 'expected "," or ")"'),
    "data = 1": (6, "expected data.KEY, or data:KEY"),
    "metadata.a = " + "[" * 17 + "]" * 17: (30, "parentheses are nested more than 16 deep"),
    "metadata.a IN (" + ", ".join("1" for _ in range(65)) + ")": (206, "there are more than 64 comparisons"),
    "role = *er": (8, "expected one of system"),
    "role = 1": (8, "expected one of system"),
    "kind >= message": (6, "kind has no order"),
    "kind = nothing": (8, 'not "nothing"'),
    "metadata.a > true": (12, "true has no order"),
    "metadata.a <= null": (12, "null has no order"),
    "metadata.a = 1e999": (14, "out of range"),
    "metadata.a = " + "9" * 400: (14, "out of range"),
    "importance > high": (14, "expected a number"),
    "importance.x > 1": (12, "importance has no parts"),
    "create_time > 5": (15, "expected a time"),
    "create_time > soon": (15, "expected a time"),
    "create_time = 2023-05-*": (15, "expected a time"),
    "create_time > 2023-13-01": (15, "there is no such time"),
    "create_time > 2023-05-01T25:00:00Z": (15, "there is no such time"),
    "create_time > 0000-01-01": (15, "there is no such time"),
    "role = user\x00": (8, 'not "user "'),
    "labels.a" + ".a" * 32 + " = 1": (71, "at most 32 levels"),
    "(" * (DEEP + 1) + "role = user" + ")" * (DEEP + 1): (DEEP + 1, f"more than {DEEP} deep"),
    "(" * LIMITS.filter_bytes_max: (DEEP + 1, f"more than {DEEP} deep"),
    ")" * LIMITS.filter_bytes_max: (1, 'not ")"'),
    "-" * LIMITS.filter_bytes_max: (2, 'expected a field or "(", not "---'),
    "id:a " * (LIMITS.filter_terms_max + 1): (5 * LIMITS.filter_terms_max + 3, "more than 64 comparisons"),
    " ".join(f"metadata.a{n}:*" for n in range(LIMITS.filter_fields_max + 1)): (1, "more than 16 different"),
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:40])
def test_what_is_refused_and_where(text: str) -> None:
    column, expected = REFUSED[text]
    with pytest.raises(InvalidArgument) as refused:
        LANGUAGE.parse("options.filter", text)
    assert refused.value.message.startswith(f"options.filter: column {column}: ")
    assert expected in refused.value.problem
    assert refused.value.metadata["column"] == str(column)
    assert refused.value.field == "options.filter"
    # The message does not repeat a long text in full.
    assert len(refused.value.message) < 250


@pytest.mark.parametrize("text", ["id:" + "a" * LIMITS.filter_bytes_max, "\u00e9" * 2100])
def test_a_filter_has_a_greatest_size(text: str) -> None:
    with pytest.raises(InvalidArgument, match="has more than 4096 bytes"):
        LANGUAGE.parse("filter", text)


def test_what_is_within_the_limits_is_read() -> None:
    nested = "(" * DEEP + "role = user" + ")" * DEEP
    assert LANGUAGE.parse("filter", nested) == compare("role", "=", "user")
    many = LANGUAGE.parse("filter", "id:a " * LIMITS.filter_terms_max)
    assert isinstance(many, And) and len(many.parts) == LIMITS.filter_terms_max
    fields = " ".join(f"metadata.a{n}:*" for n in range(LIMITS.filter_fields_max))
    assert LANGUAGE.parse("filter", fields + " labels.k = v session_id = s create_time > 2023-01-01")
    assert LANGUAGE.parse("filter", "metadata.a.a.a.a.a.a.a.a = 1 AND metadata.a.a.a.a.a.a.a.a = 2")
    exact = "id:" + "a" * (LIMITS.filter_bytes_max - 3)
    assert LANGUAGE.parse("filter", exact) is not None


def test_a_view_keeps_the_columns_of_any_one_filter() -> None:
    assert LIMITS.filter_fields_max <= COLUMNS_MAX


def test_what_was_refused_does_not_count_for_the_next() -> None:
    for _ in range(3):
        for text in ("((((", "id:a " * 40 + ",", "metadata.a.a.a.a.a.a,"):
            with pytest.raises(InvalidArgument):
                LANGUAGE.parse("filter", text)
    assert LANGUAGE.parse("filter", "(" * DEEP + "id:a " * 40 + ")" * DEEP) is not None


_PIECES = st.sampled_from(
    ["labels", "metadata", ".", "a", "role", "user", "create_time", "2023-05-01", "=", "!=", "<", ">=", ":",
     "*", "(", ")", "-", " ", "AND", "OR", "NOT", " AND ", " OR ", " NOT ", '"', "'", "\\", "\\u", "5",
     "1e9", "true", "\x00", "\u2028", "\U0001f600", "\n", ",", "!", "T10:00:00Z",
     "[", "]", "{", "}", " IN ", "null"]
)  # fmt: skip


@settings(max_examples=400, deadline=None, derandomize=True, database=None)
@given(st.one_of(st.text(max_size=60), st.lists(_PIECES, max_size=40).map("".join)))
def test_any_text_is_read_or_refused_at_a_place_in_it(text: str) -> None:
    error = None
    try:
        LANGUAGE.parse("filter", text)
    except InvalidArgument as refused:
        error = refused
    if error is not None:
        assert 1 <= int(error.metadata["column"]) <= len(text) + 1
        assert error.message.isprintable()


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(st.text(max_size=40))
def test_any_text_can_be_quoted(text: str) -> None:
    quoted = json.dumps(text).replace("*", "\\*")
    assert LANGUAGE.parse("filter", f"name = {quoted}") == compare("name", "=", text)
