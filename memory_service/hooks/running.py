"""The life of a hook: it ends in time, with exit code 0, and without a word of its errors."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_INPUT_BYTES_MAX = 8 * 1024 * 1024
_AGE_S_MAX = 10.0
"""An older process did something else before: a wrapper that was replaced by this program."""
_RESERVE_S = 0.05
"""Left of the time for ending, when a call has used up the rest."""
EVENT_NAMES: Mapping[str, str] = {
    "session-start": "SessionStart",
    "user-prompt": "UserPromptSubmit",
    "stop": "Stop",
    "session-end": "SessionEnd",
}


def started_ago() -> float:
    """Return the seconds since this process started; 0 if it is unknown."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19])
        ago = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        return ago if 0.0 <= ago < _AGE_S_MAX else 0.0
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0


def run(
    event: str, timeout_s: float, log: Path | None, answer: Callable[[Mapping[str, Any], float], str]
) -> None:
    """Read the event from stdin, write the text of `answer` for the model to stdout, and end the process.

    `answer` gets the event and the monotonic time by which it must be done. The process ends with exit code
    0 after `timeout_s` at the latest, counted from its start; then it has written all of its output or none.
    """
    left = timeout_s - started_ago()
    end = time.monotonic() + left - _RESERVE_S
    watchdog = threading.Timer(max(0.0, left), _end, [log, event, "gave up: out of time"])
    watchdog.daemon = True
    watchdog.start()
    try:
        text = answer(_given(sys.stdin.buffer.read(_INPUT_BYTES_MAX)), end)
        if text:
            specific = {"hookEventName": EVENT_NAMES[event], "additionalContext": text}
            output = json.dumps({"hookSpecificOutput": specific})
            watchdog.cancel()
            os.write(1, output.encode())
        outcome = f"done: {len(text)} characters for the model"
    except BaseException as error:
        # A hook must never disturb the agent, whatever went wrong.
        outcome = f"gave up: {type(error).__name__} {_code(error)}".rstrip()
    _end(log, event, outcome)


def _given(raw: bytes) -> Mapping[str, Any]:
    given = json.loads(raw)
    if not isinstance(given, dict):
        raise TypeError("not an object")
    return given


def _code(error: BaseException) -> str:
    """Return gRPC's code of an error, without its text, which may quote what was said."""
    code = getattr(error, "code", None)
    return str(code()) if callable(code) else ""


def _end(log: Path | None, event: str, outcome: str) -> None:
    try:
        if log is not None:
            with log.open("a") as file:
                file.write(f"{datetime.now(UTC).isoformat()} {event} {started_ago():.3f}s {outcome}\n")
    finally:
        # At once: neither gRPC nor Python need to tidy up, which takes longer than the calls.
        os._exit(0)
