"""A client of OpenAI's HTTP API or a compatible one; the only file that imports `openai`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import openai

_PASSING_STATUSES = (408, 409, 429)
# Errors of the library's HTTP client before any of the request is sent.
_UNREACHED = ("ConnectError", "ConnectTimeout")
# The library's default. Doubled: an unreachable server is detected that much later.
_CONNECT_TIMEOUT_S = 5.0


class ApiFailed(Exception):
    """The server did not respond, returned an error, or returned something invalid.

    `cause` names the failure without any text from the server.
    """

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause
        self.status = 0
        """The HTTP status of an error; 0: the server sent none."""
        self.parameter = ""
        """The parameter of the request that the server objects to, if it says."""
        self.retry_after_s: float | None = None
        """When to retry, if the server says."""
        self.timed_out = False
        self.unreached = False
        """Whether the connection failed, so that the request cannot be the cause."""
        self.may_pass = False
        """Whether the same request may succeed a little later."""

    @classmethod
    def of(cls, error: Exception) -> ApiFailed:
        """Convert an error of the library."""
        failed = cls(type(error).__name__)
        failed.timed_out = isinstance(error, openai.APITimeoutError)
        failed.unreached = type(error.__cause__).__name__ in _UNREACHED
        failed.may_pass = isinstance(error, openai.APIConnectionError)
        if isinstance(error, openai.APIStatusError):
            failed.status = error.status_code
            failed.parameter = error.param if isinstance(error.param, str) else ""
            failed.retry_after_s = _seconds(error.response.headers.get("retry-after"))
            failed.may_pass = failed.status in _PASSING_STATUSES or failed.status >= 500
        return failed


@dataclass(frozen=True)
class Completion:
    """A completion of a model. Token counts are the server's, 0 if it sends none."""

    text: str
    cut_off: bool
    input_tokens: int
    output_tokens: int


class OpenAIApi:
    """A connection to the server. OPENAI_API_KEY and OPENAI_BASE_URL mean the same as for `openai`.

    Each method raises ApiFailed, and nothing else, if there is no answer.
    """

    def __init__(self, timeout_s: float, retries: int) -> None:
        self._client = openai.AsyncOpenAI(
            timeout=openai.Timeout(timeout_s, connect=min(timeout_s, _CONNECT_TIMEOUT_S)), max_retries=retries
        )

    async def embed(self, model: str, texts: Sequence[str], dimension: int) -> list[list[float]]:
        """Return the vectors of texts as the server sent them, in order; `dimension` 0 is not sent."""
        # Sent only on request: not every server supports the parameter.
        options: dict[str, Any] = {"dimensions": dimension} if dimension else {}
        try:
            response = await self._client.embeddings.create(
                model=model, input=list(texts), encoding_format="float", **options
            )
            # By index, and each exactly once: a vector of another text would never be noticed.
            found = {datum.index: datum.embedding for datum in response.data}
            return [found[at] for at in range(len(response.data))]
        except Exception as error:
            # Not only the library's errors: lower layers and invalid answers raise others.
            raise ApiFailed.of(error) from error

    async def complete(self, options: Mapping[str, Any]) -> Completion:
        """Return the completion of a chat; `options` are the fields of the request."""
        try:
            response = await self._client.chat.completions.create(**options)
            choice = response.choices[0]
            content: object = choice.message.content
            return Completion(
                # Unpaired surrogates can be neither stored nor sent back.
                text=content.encode(errors="replace").decode() if isinstance(content, str) else "",
                cut_off=choice.finish_reason == "length",
                input_tokens=_count(response.usage, "prompt_tokens"),
                output_tokens=_count(response.usage, "completion_tokens"),
            )
        except Exception as error:
            raise ApiFailed.of(error) from error

    async def close(self) -> None:
        """Close connections."""
        await self._client.close()


def _count(usage: object, name: str) -> int:
    """A token count; the library passes on what the server sent, whatever its type."""
    value = getattr(usage, name, 0)
    return value if isinstance(value, int) and value > 0 else 0


def _seconds(header: str | None) -> float | None:
    """The seconds in a header; None if there are none, or a date."""
    try:
        seconds = float(header or "")
    except ValueError:
        return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None
