"""How well rules find the state that a goal needs, on hand-labelled cases."""

from __future__ import annotations

import pytest

from grpc_api import Api, Connect
from relevance_cases import cases, measure
from server_process import ServerProcess

BAR = 0.8


def test_the_set_is_as_large_as_promised() -> None:
    found = cases()
    assert len(found) >= 70
    assert sum(case.held_out for case in found) >= 25
    assert sum(not case.relevant for case in found) >= 10
    assert sum(len(case.relevant) > 1 for case in found) >= 5


@pytest.mark.parametrize("held_out", [False, True], ids=["tuned", "held out"])
def test_rules_and_the_local_embedder_find_what_is_needed(
    server: ServerProcess, connect: Connect, namespace: str, held_out: bool
) -> None:
    score = measure(connect(server), namespace, [case for case in cases() if case.held_out is held_out])
    assert score.precision >= BAR, score.misses
    assert score.recall >= BAR, score.misses


def test_rules_find_what_is_needed_by_words_alone(connect: Connect, namespace: str) -> None:
    with ServerProcess(flags=["--store", "memory", "--embedder", "none"]) as process:
        api: Api = connect(process)
        score = measure(api, namespace, cases())
    assert score.precision >= BAR, score.misses
    assert score.recall >= BAR, score.misses
