"""Work on an index for another thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Job:
    """Work for another thread, and how to use its result in the index's thread.

    Call `fail` there if the work raised.
    """

    work: Callable[[], object]
    finish: Callable[[object], None]
    fail: Callable[[], None]
