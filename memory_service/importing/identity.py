"""Ids for records without one: the same record of the same file always gets the same id."""

from __future__ import annotations

import json
import uuid
from typing import Any

_NAMESPACE = uuid.UUID("5a0c3f5e-6a55-4d0c-9d51-7a0d3b9f1c77")
"""Never change it: the ids of all imports depend on it."""


def derived_id(session_id: str, position: int, content: Any) -> str:
    """Return the id of the content at a position (from 0 or from 1) of a session."""
    return str(uuid.uuid5(_NAMESPACE, json.dumps([session_id, position, content], sort_keys=True)))
