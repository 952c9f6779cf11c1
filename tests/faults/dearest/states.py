"""The most expensive requests of StateService and OverseerService."""

from __future__ import annotations

from google.protobuf import struct_pb2

from faults.dearest.world import KIB, MANY_ITEMS, Dear, World, again, data_of_numbers, numbers
from grpc_api import json_value
from memory_service.v1 import memory_pb2, overseer_pb2
from memory_service.v1 import state_pb2 as pb

_NUMBERS = 245_000


def _saves(world: World, value: struct_pb2.Value) -> list[pb.SaveStateRequest]:
    namespace = world.fresh()
    return [
        pb.SaveStateRequest(namespace=namespace, key="k" * 512, value=value, request_id=f"r{at}")
        for at in range(5)
    ]


def _text(world: World) -> struct_pb2.Value:
    return json_value(world.text(1000 * KIB))


def _kept(world: World, *values: struct_pb2.Value) -> str:
    namespace = world.fresh()
    for at, value in enumerate(values):
        world.api.state.SaveState(pb.SaveStateRequest(namespace=namespace, key=f"k{at}", value=value))
    return namespace


def many_states(world: World, count: int = MANY_ITEMS, words: int = 0) -> str:
    """Return a namespace with that many states, whose keys are as long as allowed."""
    namespace = world.fresh()
    for begin in range(0, count, 1000):
        entries = [
            pb.StateEntry(
                key=f"{at:08d}{'ab' * 252}", value=json_value(world.text(words * 5) if words else at),
                description=world.text(words * 5)[:1000],
            )
            for at in range(begin, begin + 1000)
        ]  # fmt: skip
        world.api.memory.Import(iter([memory_pb2.ImportRequest(namespace=namespace, states=entries)]))
    return namespace


def _versions(world: World) -> str:
    """Return a namespace with a key that has eight large versions."""
    namespace = world.fresh()
    for _ in range(8):
        request = pb.SaveStateRequest(namespace=namespace, key="k0", value=numbers(_NUMBERS))
        world.api.state.SaveState(request)
    return namespace


def _patterns(world: World) -> list[pb.SearchStateRequest]:
    namespace = many_states(world)
    return [
        pb.SearchStateRequest(namespace=namespace, pattern=pattern, page_size=1000)
        for pattern in ("*" * 512, "*a" * 255 + "c", "?" * 511 + "x", "*a*b" * 127, "[!a]*" * 100)
    ]


def _relevance(world: World) -> list[overseer_pb2.CheckRelevanceRequest]:
    namespace = many_states(world, words=150)
    return again(
        overseer_pb2.CheckRelevanceRequest(
            namespace=namespace, goal=world.most_words(16_000), max_candidates=200, limit=100, explain=True,
        ),
        3,
    )  # fmt: skip


def _evaluations(
    world: World, result: struct_pb2.Value, **fields: object
) -> list[overseer_pb2.EvaluateForStorageRequest]:
    return [
        overseer_pb2.EvaluateForStorageRequest(
            namespace=world.fresh(), tool_name="get_profile", result=result, save=True, request_id=f"r{at}",
            goal="remember " + world.text(16_000), **fields,
        )  # type: ignore[arg-type]
        for at in range(4)
    ]  # fmt: skip


STATES = {
    "SaveState": [
        Dear("numbers", lambda w: _saves(w, numbers(_NUMBERS))),
        Dear("a text", lambda w: _saves(w, _text(w))),
    ],
    "LoadState": [
        Dear(
            "numbers", lambda w: again(pb.LoadStateRequest(namespace=_kept(w, numbers(_NUMBERS)), key="k0"))
        ),
        Dear("a text", lambda w: again(pb.LoadStateRequest(namespace=_kept(w, _text(w)), key="k0"), 10), 4),
    ],
    "ListStateKeys": [
        Dear("many", lambda w: again(pb.ListStateKeysRequest(namespace=many_states(w), page_size=1000))),
        Dear(
            "previews of large values",
            lambda w: again(
                pb.ListStateKeysRequest(
                    namespace=_kept(w, *[numbers(_NUMBERS)] * 20), include_preview=True, page_size=1000
                )
            ),
        ),
        Dear(
            "a prefix",
            lambda w: again(pb.ListStateKeysRequest(namespace=many_states(w), prefix="k", page_size=1000)),
        ),
    ],
    "ListStateVersions": [
        Dear(
            "large values",
            lambda w: again(pb.ListStateVersionsRequest(namespace=_versions(w), key="k0", page_size=1000), 3),
        ),
    ],
    "RedactStateVersion": [
        Dear(
            "large",
            lambda w: [
                pb.RedactStateVersionRequest(namespace=_versions(w), key="k0", revision=1) for _ in range(2)
            ],
        ),
    ],
    "RenameState": [
        Dear(
            "numbers",
            lambda w: [
                pb.RenameStateRequest(
                    namespace=_kept(w, numbers(_NUMBERS)), key="k0", new_key="k", request_id="r"
                )
                for _ in range(3)
            ],
        ),
    ],
    "SearchState": [
        Dear("patterns", _patterns),
        Dear(
            "large values",
            lambda w: again(
                pb.SearchStateRequest(
                    namespace=_kept(w, *[numbers(_NUMBERS)] * 8), pattern="*", page_size=1000
                )
            ),
        ),
    ],
    "DeleteState": [
        Dear(
            "numbers",
            lambda w: [
                pb.DeleteStateRequest(namespace=_kept(w, numbers(_NUMBERS)), key="k0", request_id="r")
                for _ in range(3)
            ],
        ),
    ],
    "ClearState": [
        Dear("many", lambda w: [pb.ClearStateRequest(namespace=many_states(w), request_id="r")]),
    ],
}

OVERSEER = {
    "CheckRelevance": [Dear("a long goal and many states", _relevance)],
    "EvaluateForStorage": [
        Dear("numbers", lambda w: _evaluations(w, numbers(_NUMBERS))),
        Dear("arguments, too", lambda w: _evaluations(w, numbers(220_000), arguments=data_of_numbers(7_000))),
        Dear(
            "people", lambda w: _evaluations(w, json_value([{"name": w.text(20), "email": "a@b.c"}] * 15_000))
        ),
    ],
}
