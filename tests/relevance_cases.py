"""The goals and state with which relevance is measured, and the measurement through the API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grpc_api import Api
from memory_service.v1 import overseer_pb2, overseer_pb2_grpc

_FILE = Path(__file__).parent / "data" / "relevance.json"


@dataclass(frozen=True)
class Case:
    """A goal, the state (by key, with "value" and perhaps "description") and the keys that it needs."""

    name: str
    goal: str
    states: dict[str, dict[str, Any]]
    relevant: frozenset[str]
    held_out: bool


@dataclass(frozen=True)
class Miss:
    """A case that returned other keys than it needs."""

    case: Case
    extra: list[str]
    missing: list[str]


@dataclass(frozen=True)
class Score:
    """Counts of right, wrong and missing keys, and the cases that went wrong."""

    right: int
    extra: int
    missing: int
    misses: list[Miss]

    @property
    def precision(self) -> float:
        """Return the share of found keys that are needed."""
        return self.right / max(self.right + self.extra, 1)

    @property
    def recall(self) -> float:
        """Return the share of needed keys that were found."""
        return self.right / max(self.right + self.missing, 1)


def cases() -> list[Case]:
    """Return all cases in the order of the file."""
    return list(_cases(json.loads(_FILE.read_text(encoding="utf-8"))))


def _cases(read: dict[str, Any]) -> Iterator[Case]:
    for group in read["sets"]:
        for case in group["cases"]:
            relevant = frozenset(case["relevant"])
            assert relevant <= group["states"].keys(), case
            yield Case(group["name"], case["goal"], group["states"], relevant, group["held_out"])


def measure(api: Api, prefix: str, wanted: list[Case]) -> Score:
    """Save the state of the cases in namespaces with this prefix, query every goal and compare."""
    overseer = overseer_pb2_grpc.OverseerServiceStub(api.channel)
    saved: set[str] = set()
    right, misses = 0, []
    for case in wanted:
        namespace = f"{prefix}/{case.name}"
        if namespace not in saved:
            saved.add(namespace)
            for key, state in case.states.items():
                api.save(namespace, key, state["value"], description=state.get("description", ""))
        asked = overseer_pb2.CheckRelevanceRequest(namespace=namespace, goal=case.goal)
        found = {entry.key for entry in overseer.CheckRelevance(asked).entries}
        right += len(found & case.relevant)
        if found != case.relevant:
            misses.append(Miss(case, sorted(found - case.relevant), sorted(case.relevant - found)))
    extra, missing = (sum(len(getattr(miss, kind)) for miss in misses) for kind in ("extra", "missing"))
    return Score(right, extra, missing, misses)
