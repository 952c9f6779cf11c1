"""Inconsistent settings are reported before the server starts."""

from __future__ import annotations

import pytest

from memory_service.config import BadConfig, Config


@pytest.mark.parametrize(
    "name",
    ["sweep_s", "drain_s", "embedder_timeout_s", "embedder_pause_s", "llm_timeout_s", "reranker_timeout_s"],
)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_times_are_numbers(name: str, value: float) -> None:
    with pytest.raises(BadConfig, match=name.removesuffix("_s")):
        Config(**{name: value}).verify()
