"""Reads a model's answer: finds the JSON object in whatever stands around it, and validates it.

Small models talk before and after it, put it into a code fence or into another object, or stop in
the middle. What is found is one whole answer or none: never a part of one, never a guess.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import NoReturn, TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)

_CHARS_MAX = 100_000
_VALUES_MAX = 500
_DEPTH_MAX = 5
_THOUGHT_END = "</think>"
# Where a problem's description quotes the answer: the text may come from anybody.
_QUOTED = re.compile(r"""(?<=value) (['"]).*\1""", re.DOTALL)
_OPENING = re.compile(r"[{\[]")
_CLOSING = {"{": "}", "[": "]"}


class UnreadableAnswer(ValueError):
    """There is no answer of the type in the text; says what is wrong in words that a model can act on."""


class _Malformed:
    """Stands for what looks like JSON and is not."""


def read_answer(text: str, answer_type: type[T]) -> T:
    """Return the one answer in a text. Raises UnreadableAnswer for none, a cut-off one or different ones."""
    if len(text) > _CHARS_MAX:
        raise UnreadableAnswer("it is too long")
    # What a model thinks before it answers is full of answers that it does not give.
    values = list(islice(_values_in(text.rpartition(_THOUGHT_END)[2]), _VALUES_MAX + 1))
    if len(values) > _VALUES_MAX:
        raise UnreadableAnswer("there are too many objects in it")
    answers: list[T] = []
    problems: list[str] = []
    for value in values:
        _find(value, answer_type, answers, problems, _DEPTH_MAX)
    if any(answer != answers[0] for answer in answers[1:]):
        raise UnreadableAnswer("there are several different answers, and only one is wanted")
    if answers:
        return answers[0]
    if problems:
        raise UnreadableAnswer(problems[0])
    if any(isinstance(value, _Malformed) for value in values):
        raise UnreadableAnswer("what is there is not valid JSON")
    raise UnreadableAnswer("there is no JSON object with the wanted fields")


def _values_in(text: str) -> Iterator[object]:
    """All objects and arrays in a text, but for those inside of others.

    Raises UnreadableAnswer where one is cut off.
    """
    decoder = json.JSONDecoder(strict=False, parse_constant=_refuse_constant)
    end = 0
    while opening := _OPENING.search(text, end):
        at = opening.start()
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            # Parts of what is malformed are not answers, so all of it is passed over.
            value, end = _Malformed(), _closing(text, at)
        yield value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _closing(text: str, start: int) -> int:
    """Where the bracket that opens at `start` is closed. Raises UnreadableAnswer where it is not."""
    opened: list[str] = []
    in_string = False
    at = start
    while at < len(text):
        char = text[at]
        if in_string:
            at += char == "\\"
            in_string = char != '"'
        elif char == '"':
            in_string = True
        elif char in _CLOSING:
            opened.append(_CLOSING[char])
        elif char == opened[-1]:
            opened.pop()
            if not opened:
                return at + 1
        at += 1
    raise UnreadableAnswer("it is cut off: the JSON does not end")


def _find(value: object, answer_type: type[T], answers: list[T], problems: list[str], depth: int) -> None:
    """Collect the answers in a value: itself, or what it wraps."""
    if isinstance(value, str):
        value = _decoded(value)
    if isinstance(value, dict) and _names(answer_type) & value.keys():
        try:
            # Encoded and read again, because only this refuses half surrogate pairs.
            answers.append(msgspec.json.decode(msgspec.json.encode(value), type=answer_type, strict=False))
        except UnicodeEncodeError:
            problems.append("it has characters that do not exist")
        except (msgspec.MsgspecError, OverflowError, RecursionError) as error:
            problems.append(_QUOTED.sub("", str(error))[:200])
        # What is inside of a bad answer is a part of it, not another one.
        return
    if not isinstance(value, (dict, list)) or depth == 0:
        return
    for inner in value.values() if isinstance(value, dict) else value:
        _find(inner, answer_type, answers, problems, depth - 1)


def _names(answer_type: type[msgspec.Struct]) -> set[str]:
    """The fields of an answer. One that has none of them is no answer, even if it has to have none."""
    return {field.encode_name for field in msgspec.structs.fields(answer_type)}


def _decoded(text: str) -> object:
    """What a string that is JSON as a whole stands for; None for any other text."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        return json.loads(text, strict=False, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
