"""Ids that the server makes."""

from __future__ import annotations

import os


def new_id(now_us: int) -> str:
    """Return an id that is unique, and sorts by the time it was made: indexes grow at their end."""
    return f"{now_us:014x}{os.urandom(9).hex()}"
