"""The parts of a message in OpenAI's format: texts, images, audio, files, tool calls."""

from __future__ import annotations

import base64
import binascii
import json
import mimetypes
import urllib.parse
from collections.abc import Mapping
from typing import Any

from memory_client import BinaryPart, Part, ToolCall

FILE_BYTES_MAX = 1024 * 1024
"""The largest file that the server stores."""

_EXACT_DIGITS_MAX = len(str(-(2**53)))

RAW_ARGUMENTS = "_raw"
"""Key for arguments that are not a JSON object: the model's output as a string."""


class PartReader:
    """Reads the parts of one message, and collects the fields that have no place in a part."""

    def __init__(self, *, omit_large_files: bool) -> None:
        self._omit_large_files = omit_large_files
        self.parts: list[Part] = []
        self.leftover: dict[str, Any] = {}
        """Fields that have no place in a part, by the part's index as a string."""

    def add(self, part: Any) -> None:
        """Read one part of a message's content.

        Raises:
            ValueError: The part is malformed, or its file too large.
        """
        if isinstance(part, str):
            self.parts.append(part)
            return
        if not isinstance(part, dict):
            raise ValueError(f"a part of the content is neither text nor object: {json.dumps(part)[:40]}")
        kind = part.get("type")
        if kind in ("text", "input_text", "output_text") and isinstance(part.get("text"), str):
            self._append(part["text"], _without(part, "type", "text"))
        elif kind in ("image_url", "input_image") and "image_url" in part:
            self._add_image(part)
        elif kind == "input_audio" and isinstance(part.get("input_audio"), dict):
            self._add_audio(part)
        elif kind in ("file", "input_file"):
            self._add_file(part)
        else:
            # A refusal, or an unknown kind of part: stored unchanged.
            self.parts.append(part)

    def add_tool_call(self, call: Any) -> None:
        """Read one of a message's tool calls.

        Raises:
            ValueError: The call is malformed.
        """
        if not isinstance(call, dict):
            raise ValueError(f"a tool call is not an object: {json.dumps(call)[:40]}")
        kind = "custom" if isinstance(call.get("custom"), dict) else "function"
        function = call.get(kind)
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise ValueError("a tool call has no function with a name")
        given = function.get("input") if kind == "custom" else function.get("arguments")
        part = ToolCall(function["name"], arguments_of(given), str(call.get("id") or ""))
        leftover = _without(call, "id", kind, *(["type"] if call.get("type") == "function" else []))
        self._append(part, leftover | _without(function, "name", "arguments", "input"))

    def _append(self, part: Part, leftover: Mapping[str, Any]) -> None:
        kept = {key: value for key, value in leftover.items() if value is not None}
        if kept:
            self.leftover[str(len(self.parts))] = kept
        self.parts.append(part)

    def _add_image(self, part: dict[str, Any]) -> None:
        image = part["image_url"]
        fields = image if isinstance(image, dict) else {"url": image}
        url = fields.get("url")
        if not isinstance(url, str):
            raise ValueError("an image has no url")
        leftover = _without(part, "type", "image_url") | _without(fields, "url")
        self._add_url(url, None, leftover, part["type"])

    def _add_audio(self, part: dict[str, Any]) -> None:
        audio = part["input_audio"]
        sound = str(audio.get("format") or "")
        content = _base64(audio.get("data"), "input_audio.data")
        mime_type = f"audio/{sound}" if sound else ""
        leftover = _without(part, "type", "input_audio") | _without(audio, "data", "format")
        self._add_bytes(content, mime_type, None, leftover, part["type"])

    def _add_file(self, part: dict[str, Any]) -> None:
        fields = part["file"] if isinstance(part.get("file"), dict) else _without(part, "type")
        name = fields.get("filename") if isinstance(fields.get("filename"), str) else None
        data, url = fields.get("file_data"), fields.get("file_url")
        leftover = _without(part, "type", "file") if "file" in part else {}
        leftover |= _without(fields, "file_data", "file_url", "filename")
        if isinstance(data, str) and not data.startswith("data:"):
            mime_type = mimetypes.guess_type(name or "")[0] or ""
            self._add_bytes(_base64(data, "file_data"), mime_type, name, leftover, part["type"])
        elif isinstance(location := data or url, str):
            self._add_url(location, name, leftover, part["type"])
        else:
            self.parts.append(part)

    def _add_url(self, url: str, name: str | None, leftover: dict[str, Any], kind: str) -> None:
        if url.startswith("data:"):
            mime_type, content = _data_url(url)
            self._add_bytes(content, mime_type, name, leftover, kind)
            return
        mime_type = mimetypes.guess_type(urllib.parse.urlsplit(url).path)[0] or ""
        self._append_file(BinaryPart(mime_type=mime_type, name=name, url=url), leftover, kind)

    def _add_bytes(
        self, content: bytes, mime_type: str, name: str | None, leftover: dict[str, Any], kind: str
    ) -> None:
        if len(content) <= FILE_BYTES_MAX:
            part = BinaryPart(content, mime_type, name, content_length=len(content))
        elif self._omit_large_files:
            part = BinaryPart(mime_type=mime_type, name=name, content_length=-len(content))
        else:
            raise ValueError(f"a file of {len(content)} bytes; the server stores at most {FILE_BYTES_MAX}")
        self._append_file(part, leftover, kind)

    def _append_file(self, part: BinaryPart, leftover: dict[str, Any], kind: str) -> None:
        # Without a MIME type, the kind of the part distinguishes it from other files.
        self._append(part, leftover if part.mime_type else {"type": kind, **leftover})


def arguments_of(arguments: Any) -> dict[str, Any] | None:
    """Return the arguments of a tool call, which OpenAI sends as a JSON string.

    Anything but a JSON object is stored as a string under "_raw". None and "" are no arguments.
    """
    if isinstance(arguments, dict) or arguments is None or arguments == "":
        return arguments or None
    if not isinstance(arguments, str):
        return {RAW_ARGUMENTS: json.dumps(arguments)}
    try:
        value = json.loads(arguments, parse_int=_exact_integer, parse_constant=_refuse)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return {RAW_ARGUMENTS: arguments}
    return value if isinstance(value, dict) else {RAW_ARGUMENTS: arguments}


def _exact_integer(digits: str) -> int:
    # Arguments with an integer that a double cannot represent are stored as the model wrote them.
    if len(digits) > _EXACT_DIGITS_MAX or abs(int(digits)) > 2**53:
        raise ValueError(digits)
    return int(digits)


def _refuse(text: str) -> Any:
    raise ValueError(text)


def _without(fields: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in keys}


def _base64(text: Any, where: str) -> bytes:
    if not isinstance(text, str):
        raise ValueError(f"{where} is missing")
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"{where} is not base64") from None


def _data_url(url: str) -> tuple[str, bytes]:
    head, comma, body = url[len("data:") :].partition(",")
    if not comma:
        raise ValueError("a data: URL has no data")
    mime_type, *parameters = head.split(";")
    if parameters and parameters[-1].strip().lower() == "base64":
        return mime_type, _base64(urllib.parse.unquote(body), "the data: URL")
    return mime_type, urllib.parse.unquote_to_bytes(body)
