"""Asks a language model whether to keep a result of a tool."""

from __future__ import annotations

import msgspec

from memory_service.deciders.base import ToolOutput

_RESULT_CHARS_SHOWN = 2000
_ARGUMENTS_CHARS_SHOWN = 1000
INSTRUCTIONS = """\
You decide whether the result of a tool should be saved to memory for future use. Save only what is useful
across multiple sessions, such as preferences, lists of people, profiles, settings or patterns. Do not save
data for a single query, such as times, the weather, one-off numbers or the hits of a search; never save
passwords or tokens. "result" may be cut off. Answer with save; with key, a short descriptive name in
snake_case to keep it under; with description, one sentence that says what the value is, so that it is found
again; and with reason, a brief explanation."""


class StorageAnswer(msgspec.Struct):
    """Whether to save the result, and as what."""

    save: bool
    key: str = ""
    reason: str = ""
    description: str = ""


def shown(asked: ToolOutput) -> dict[str, str]:
    """Return the description of a result for the model."""
    data = {"tool": asked.tool_name, "goal": asked.goal or "(not known)"}
    if asked.arguments:
        data["arguments"] = _beginning(msgspec.json.encode(asked.arguments), _ARGUMENTS_CHARS_SHOWN)
    data["result"] = _beginning(asked.encoded, _RESULT_CHARS_SHOWN)
    if asked.key:
        data["key that the caller chose"] = asked.key
    if asked.before is not None:
        data["value that the key has now"] = _beginning(asked.before, _ARGUMENTS_CHARS_SHOWN)
    return data


def _beginning(encoded: bytes, chars: int) -> str:
    text = encoded.decode()
    return text if len(text) <= chars else text[:chars] + "..."
