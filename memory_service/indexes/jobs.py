"""Work on an index that another thread does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Job:
    """Work for another thread, and what to do with its result in the index's own thread.

    `fail` gives it up there, should the work have raised.
    """

    work: Callable[[], object]
    finish: Callable[[object], None]
    fail: Callable[[], None]
