"""Finds and validates the JSON object in a model's answer.

Small models write text before and after it, put it into a code fence or another object, or stop in the
middle. The result is one complete answer or none: never a part of one or a guess.
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
# Quotes of the answer in an error message: the text is untrusted.
_QUOTED = re.compile(r"""(?<=value) (['"]).*\1""", re.DOTALL)
_OPENING = re.compile(r"[{\[]")
_CLOSING = {"{": "}", "[": "]"}


class UnreadableAnswer(ValueError):
    """The text has no answer of the type; the message describes the problem to the model."""


class _Malformed:
    """Stands for malformed JSON."""


def read_answer(text: str, answer_type: type[T]) -> T:
    """Return the only answer in a text. Raises UnreadableAnswer for none, an incomplete one, or several."""
    if len(text) > _CHARS_MAX:
        raise UnreadableAnswer("it is too long")
    # The reasoning before an answer may contain answers that the model rejects.
    values = list(islice(_values_in(text.rpartition(_THOUGHT_END)[2]), _VALUES_MAX + 1))
    if len(values) > _VALUES_MAX:
        raise UnreadableAnswer("there are too many objects in it")
    answers: list[T] = []
    problems: list[str] = []
    for value in values:
        _find(value, answer_type, answers, problems, _DEPTH_MAX)
    if any(answer != answers[0] for answer in answers[1:]):
        raise UnreadableAnswer("there are several different answers; give only one")
    if answers:
        return answers[0]
    if problems:
        raise UnreadableAnswer(problems[0])
    if any(isinstance(value, _Malformed) for value in values):
        raise UnreadableAnswer("it is not valid JSON")
    raise UnreadableAnswer("there is no JSON object with the required fields")


def _values_in(text: str) -> Iterator[object]:
    """Yield all objects and arrays in a text, except nested ones.

    Raises UnreadableAnswer if one is cut off.
    """
    decoder = json.JSONDecoder(strict=False, parse_constant=_refuse_constant)
    end = 0
    while opening := _OPENING.search(text, end):
        at = opening.start()
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            # Parts of malformed JSON are not answers, so skip all of it.
            value, end = _Malformed(), _closing(text, at)
        yield value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _closing(text: str, start: int) -> int:
    """Return the end of the bracket that opens at `start`. Raises UnreadableAnswer if it is not closed."""
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
    """Collect the answers in a value: itself or values within it."""
    if isinstance(value, str):
        value = _decoded(value)
    if isinstance(value, dict) and _names(answer_type) & value.keys():
        try:
            # Encode and decode again, because only this rejects half surrogate pairs.
            answers.append(msgspec.json.decode(msgspec.json.encode(value), type=answer_type, strict=False))
        except UnicodeEncodeError:
            problems.append("it has invalid characters")
        except (msgspec.MsgspecError, OverflowError, RecursionError) as error:
            problems.append(_QUOTED.sub("", str(error))[:200])
        # A value within an invalid answer is a part of it, not another answer.
        return
    if not isinstance(value, (dict, list)) or depth == 0:
        return
    for inner in value.values() if isinstance(value, dict) else value:
        _find(inner, answer_type, answers, problems, depth - 1)


def _names(answer_type: type[msgspec.Struct]) -> set[str]:
    """Return the fields of an answer. An object without any of them is none, even if all are optional."""
    return {field.encode_name for field in msgspec.structs.fields(answer_type)}


def _decoded(text: str) -> object:
    """Return the value of a string that is JSON as a whole, or None."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        return json.loads(text, strict=False, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
