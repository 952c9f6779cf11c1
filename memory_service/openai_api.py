"""OpenAI's HTTP API, or that of any server that speaks it: the one file that imports `openai`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import openai

_PASSING_STATUSES = (408, 409, 429)
# What the library's HTTP client raises before anything of a request is sent.
_UNREACHED = ("ConnectError", "ConnectTimeout")
# As long as the library waits by itself. Twice as long: so much later it is known that nobody is there.
_CONNECT_TIMEOUT_S = 5.0


class ApiFailed(Exception):
    """The server did not answer, or with an error, or with something that is no answer.

    `cause` names what went wrong without any text of the server's.
    """

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause
        self.status = 0
        """The HTTP status of an error; 0: the server sent none."""
        self.parameter = ""
        """The parameter of the request that the server objects to, where it tells."""
        self.retry_after_s: float | None = None
        """When to come back, where the server tells."""
        self.timed_out = False
        self.unreached = False
        """Whether no connection came about, so that it cannot be for anything in the request."""
        self.may_pass = False
        """Whether the same request may be answered a little later."""

    @classmethod
    def of(cls, error: Exception) -> ApiFailed:
        """What an error of the library means."""
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
    """What a model said. Token counts are the server's; 0 where it does not tell."""

    text: str
    cut_off: bool
    input_tokens: int
    output_tokens: int


class OpenAIApi:
    """A connection to the server. OPENAI_API_KEY and OPENAI_BASE_URL mean what they mean to `openai`.

    Each method raises ApiFailed, and nothing else, when there is no answer.
    """

    def __init__(self, timeout_s: float, retries: int) -> None:
        self._client = openai.AsyncOpenAI(
            timeout=openai.Timeout(timeout_s, connect=min(timeout_s, _CONNECT_TIMEOUT_S)), max_retries=retries
        )

    async def embed(self, model: str, texts: Sequence[str], dimension: int) -> list[list[float]]:
        """Return what the server says to be the vectors of texts, in order; `dimension` 0 is not sent."""
        # Sent only where it was asked for: not every server knows the parameter.
        options: dict[str, Any] = {"dimensions": dimension} if dimension else {}
        try:
            response = await self._client.embeddings.create(
                model=model, input=list(texts), encoding_format="float", **options
            )
            # By their numbers, each of which comes once: the vector of another text would be found for ever.
            found = {datum.index: datum.embedding for datum in response.data}
            return [found[at] for at in range(len(response.data))]
        except Exception as error:
            # Not the library's errors alone: what is below it raises others, as do wrong answers.
            raise ApiFailed.of(error) from error

    async def complete(self, options: Mapping[str, Any]) -> Completion:
        """Return the completion of a chat; `options` are the fields of the request."""
        try:
            response = await self._client.chat.completions.create(**options)
            choice = response.choices[0]
            content: object = choice.message.content
            return Completion(
                # Half surrogate pairs can be neither stored nor sent back.
                text=content.encode(errors="replace").decode() if isinstance(content, str) else "",
                cut_off=choice.finish_reason == "length",
                input_tokens=_count(response.usage, "prompt_tokens"),
                output_tokens=_count(response.usage, "completion_tokens"),
            )
        except Exception as error:
            raise ApiFailed.of(error) from error

    async def close(self) -> None:
        """Release connections."""
        await self._client.close()


def _count(usage: object, name: str) -> int:
    """A count of tokens; the library hands on what the server sent, whatever its type."""
    value = getattr(usage, name, 0)
    return value if isinstance(value, int) and value > 0 else 0


def _seconds(header: str | None) -> float | None:
    """A header's seconds; None where it has none, or a date."""
    try:
        seconds = float(header or "")
    except ValueError:
        return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None
