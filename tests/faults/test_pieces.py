"""However large a request is and whatever it is made of, others wait for no more than a moment.

The event loop is one thread: what it does for a call in one piece, all the others wait for. Each field of
each request that may be large is as large as it may be, and many times that, and the longest piece is
measured where it is done, in the server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

from faults.large_requests import Large, json_value_of, large_requests, reads_all, text_of
from faults.pieces import Spent, TimedServer, timed_server
from faults.scale import SOAK
from grpc_api import METHODS, Api, json_value, outcome, path
from memory_service.server.methods import Audit, audit_of
from memory_service.v1 import (
    admin_pb2,
    interaction_pb2,
    interaction_pb2_grpc,
    knowledge_pb2,
    knowledge_pb2_grpc,
    memory_pb2,
    state_pb2,
    user_memory_pb2,
    user_memory_pb2_grpc,
)

NAMESPACE = "large"
WRITTEN = "written"
ADDS = (
    "Add", "BatchAdd", "BatchWrite", "Import", "Update", "SaveState", "AddDocument",
    "StoreInteraction", "StoreResponse", "StoreReflection",
)  # fmt: skip
"""Methods that add to a namespace of their own: what is read from the other one stays as large as it is."""
PIECE_MS_MAX = 100 if SOAK else 200
"""Beside a test on the other core the same work takes up to twice the processor's time."""
TOTAL_MS_MAX = 1000 if SOAK else 2000
"""Of what is done to a whole namespace of many items, in pieces."""
MANY = 20_000
_TRIES = 3
# Only names in them may be large, and they end what the others read; the second test has them.
OF_ALL = ("Reset", "DeleteNamespace", "ClearState", "Backup", "Flush", "Reembed", "UndoWrites")
RULES = """
[[rules]]
action = "quarantine"
reason = "to be reviewed"
contains = ["ignore all previous instructions"]

[[rules]]
action = "reject"
reason = "looks like a key"
matches = '\\bAKIA[0-9A-Z]{16}\\b'
"""


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TimedServer]:
    """A server with all that looks at what is written."""
    folder = tmp_path_factory.mktemp("timed")
    rules = folder / "rules.toml"
    rules.write_text(RULES)
    with timed_server(folder, "--write-policy-file", str(rules), "--audit", "--audit-reads") as server:
        yield server


@pytest.fixture(scope="module")
def api(timed: TimedServer) -> Iterator[Api]:
    """Its stubs; the namespace has hundreds of items and states, some of them as large as may be."""
    api = Api.connect(timed.process.address)
    keep_items(api)
    keep_states(api)
    keep_others(api)
    yield api
    api.channel.close()


def keep_items(api: Api) -> None:
    labels = {f"k{number}": "v" for number in range(64)}
    items = [
        memory_pb2.MemoryItem(text=f"lorem{number} ipsum", session_id="s", labels=labels)
        for number in range(300)
    ]
    for value in ([1.5] * 60_000, [{}] * 60_000, {f"k{number}": 1 for number in range(20_000)}):
        item = memory_pb2.MemoryItem(session_id="s")
        item.data.fields["v"].CopyFrom(json_value_of(value))
        items += [item] * 3
    for piece in ("a", "lorem{} ipsum, ", "\u4e16", "e\u0301", "(", "ignore all previous instructions "):
        items.append(memory_pb2.MemoryItem(text=text_of(piece, 65_536), session_id="s"))
    for at in range(0, len(items), 3):
        batch = memory_pb2.BatchAddRequest(namespace=NAMESPACE, items=items[at : at + 3])
        api.memory.BatchAdd(batch)
    for namespace in (NAMESPACE, WRITTEN):
        api.add(namespace, id="old", text="old")


def keep_states(api: Api) -> None:
    values = [[1.5] * 200_000, [{}] * 160_000, {f"k{n}": 1 for n in range(70_000)}, "e\u0301" * 340_000]
    for number, value in enumerate(values * 2):
        # The first that are found.
        request = state_pb2.SaveStateRequest(
            namespace=NAMESPACE, key=f"A{number}", value=json_value_of(value)
        )
        api.state.SaveState(request)
    for number in range(300):
        api.save(NAMESPACE, f"{'a' * 500}{number:04}", "lorem")
    for namespace in (NAMESPACE, WRITTEN):
        api.save(namespace, "old", 1)


def keep_others(api: Api) -> None:
    memories = user_memory_pb2_grpc.UserMemoryServiceStub(api.channel)
    for number in range(60):
        request = user_memory_pb2.SaveMemoryRequest(
            namespace=NAMESPACE,
            content=f"User likes lorem{number}",
            category=2,
            reasoning="A lasting preference",
        )
        memories.SaveMemory(request)
    interactions = interaction_pb2_grpc.InteractionServiceStub(api.channel)
    for _ in range(20):
        said = interaction_pb2.StoreInteractionRequest(
            namespace=NAMESPACE, sender="ada", content=text_of("lorem{} ", 20_000), session_id="s"
        )
        interactions.StoreInteraction(said)
    book = knowledge_pb2.Document(id="book", text=text_of("lorem{} ipsum. ", 1 << 19))
    documents = knowledge_pb2_grpc.KnowledgeServiceStub(api.channel)
    documents.AddDocument(knowledge_pb2.AddDocumentRequest(namespace=NAMESPACE, document=book))


def least(timed: TimedServer, call: Callable[[], object]) -> Spent:
    """What the loop spent on a call, the best of three where it is much: there is other work, too."""
    found: list[Spent] = []
    for _ in range(_TRIES):
        outcome(call)
        found.append(timed.spent())
        if found[-1].longest_ms <= PIECE_MS_MAX / 2:
            break
    return min(found, key=lambda spent: spent.longest_ms)


def sent(api: Api, method: MethodDescriptor, large: Large) -> None:
    """Sends a request and reads all that it is answered with; of an endless one the beginning."""
    if method.name != "Watch":
        api.call(method, large.request)
        return
    watch = api.channel.unary_stream(
        path(method),
        request_serializer=lambda request: request.SerializeToString(),
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )(large.request)
    try:
        next(watch)
    finally:
        watch.cancel()


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "method", [m for m in METHODS if m.name not in OF_ALL], ids=lambda method: method.name
)
def test_no_request_keeps_the_event_loop_for_long_in_one_piece(
    timed: TimedServer, api: Api, method: MethodDescriptor
) -> None:
    timed.spent()
    long: list[tuple[float, str, str]] = []
    requests = [
        *large_requests(method, WRITTEN if method.name in ADDS else NAMESPACE),
        *([reads_all(method, NAMESPACE)] if audit_of(path(method)) is Audit.READ else []),
    ]
    for large in requests:
        spent = least(timed, partial(sent, api, method, large))
        if spent.longest_ms > PIECE_MS_MAX:
            long.append((spent.longest_ms, large.name, spent.at))
    assert sorted(long, reverse=True) == []


# Operations on a whole namespace


def fill(api: Api, namespace: str) -> None:
    for at in range(0, MANY, 1000):
        items = [memory_pb2.MemoryItem(id=f"i{at + n}", text=f"lorem{n} ipsum {at}") for n in range(1000)]
        api.memory.BatchAdd(memory_pb2.BatchAddRequest(namespace=namespace, items=items))
    # With words and vectors in memory, which have to go, too.
    api.found(namespace, query_text="ipsum")


def fill_states(api: Api, namespace: str) -> None:
    for at in range(0, MANY, 1000):
        states = [state_pb2.StateEntry(key=f"k{at + n}", value=json_value(1)) for n in range(1000)]
        api.memory.Import(iter([memory_pb2.ImportRequest(namespace=namespace, states=states)]))


def fill_book(api: Api, namespace: str) -> None:
    add_book(api, namespace, "lorem ipsum dolor. ")


def add_book(api: Api, namespace: str, sentence: str) -> object:
    request = knowledge_pb2.AddDocumentRequest(
        namespace=namespace,
        document=knowledge_pb2.Document(id="book", text=sentence * 50_000),
        split=knowledge_pb2.SplitOptions(max_characters=120, overlap_characters=10),
        replace=True,
    )
    return knowledge_pb2_grpc.KnowledgeServiceStub(api.channel).AddDocument(request)


def reset(api: Api, namespace: str) -> object:
    return api.memory.Reset(memory_pb2.ResetRequest(namespace=namespace))


def delete_namespace(api: Api, namespace: str) -> object:
    return api.admin.DeleteNamespace(admin_pb2.DeleteNamespaceRequest(namespace=namespace))


def clear_states(api: Api, namespace: str) -> object:
    return api.state.ClearState(state_pb2.ClearStateRequest(namespace=namespace))


def undo_all(api: Api, namespace: str) -> object:
    request = admin_pb2.UndoWritesRequest(namespace=namespace, any_writer=True, since={"seconds": 1})
    return api.admin.UndoWrites(request)


def reembed(api: Api, namespace: str) -> object:
    return api.admin.Reembed(admin_pb2.ReembedRequest(namespace=namespace, replace_client_vectors=True))


def delete_book(api: Api, namespace: str) -> object:
    request = knowledge_pb2.DeleteDocumentRequest(namespace=namespace, id="book")
    return knowledge_pb2_grpc.KnowledgeServiceStub(api.channel).DeleteDocument(request)


def replace_book(api: Api, namespace: str) -> object:
    return add_book(api, namespace, "lorem ipsum color. ")


def flush(api: Api, namespace: str) -> object:
    return api.admin.Flush(admin_pb2.FlushRequest())


Step = Callable[[Api, str], Any]
# Chains of work on a whole namespace; the last step of each removes it.
WORK: list[tuple[Step, ...]] = [
    (fill, flush, reset), (fill, reembed, delete_namespace), (fill, undo_all),
    (fill_states, clear_states), (fill_states, reset), (fill_book, replace_book, delete_book),
]  # fmt: skip


@pytest.mark.timeout(300)
@pytest.mark.parametrize("steps", WORK, ids=lambda steps: "-".join(step.__name__ for step in steps))
def test_work_on_a_whole_namespace_is_done_in_pieces_and_soon(
    timed: TimedServer, namespace: str, steps: tuple[Step, ...]
) -> None:
    api = Api.connect(timed.process.address)
    prepare, *work = steps
    found: dict[str, list[Spent]] = {step.__name__: [] for step in work}
    for number in range(_TRIES):
        prepare(api, f"{namespace}/{number}")
        for step in work:
            timed.spent()
            step(api, f"{namespace}/{number}")
            found[step.__name__].append(timed.spent())
        if all(map(is_short, found.values())):
            break
    api.channel.close()
    assert {name: spent for name, spent in found.items() if not is_short(spent)} == {}


def is_short(found: list[Spent]) -> bool:
    """Whether the best of several tries was as short as it has to be."""
    return (
        min(spent.longest_ms for spent in found) <= PIECE_MS_MAX
        and min(spent.total_ms for spent in found) <= TOTAL_MS_MAX
    )
