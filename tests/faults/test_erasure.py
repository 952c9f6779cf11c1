"""R16: deleted, expired and reset data is in no file of the data folder after a `Flush`."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import msgspec
import pytest
from google.protobuf.message import Message

from contract.builders import (
    MODEL,
    NOW,
    NS,
    SECOND,
    build_item,
    build_request,
    build_state,
    build_write,
    found_by_vector,
    random_vectors,
    recall,
    words_found,
)
from contract.cases import GRAPH
from contract.invariants import assert_consistent
from faults.canaries import canaries_in, canary, contents, unit_vectors, vectors_in
from faults.scale import drawn, rounds
from grpc_api import METHODS, SMALL_GRAPHS, Api, Connect, json_value, outcome, struct, valid_request
from memory_service.data_model import (
    Answer,
    BinaryPart,
    ChatMessage,
    Content,
    DataPart,
    Facet,
    ItemFilter,
    ItemKind,
    ItemWrite,
    OnDuplicate,
    Provenance,
    Receipt,
    RequestKey,
    Role,
    TextPart,
    ToolCallPart,
    ToolCallResult,
    Vector,
)
from memory_service.operations import Operation, RemoveAt, RemoveItem, RemoveState
from memory_service.runtime.clock import now_us
from memory_service.stores import SqliteStore
from memory_service.v1 import (
    admin_pb2,
    memory_pb2,
    overseer_pb2,
    overseer_pb2_grpc,
    state_pb2,
    user_memory_pb2,
    user_memory_pb2_grpc,
)
from server_process import ServerProcess

KEPT = "kept"
VECTORS = dict(zip((f"i{n}" for n in range(90)), unit_vectors(90, stream=1), strict=True))
End = Callable[[SqliteStore], Awaitable[object]]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """A store with small graphs."""
    opened = SqliteStore(tmp_path / "data", GRAPH)
    await opened.open()
    yield opened
    await opened.close()


def planted() -> dict[str, Content]:
    """Return content of every kind, in which each text is a canary."""
    return {
        "text": TextPart(canary("text") + " long" * 2000),
        "data": DataPart({canary("data-key"): [canary("data-value")]}),
        "result": ToolCallResult(canary("call"), canary("tool"), result={"r": canary("result")}),
        "message": ChatMessage(
            Role.ASSISTANT,
            [
                TextPart(canary("part")),
                BinaryPart("image/png", b"", name=canary("file"), url=canary("url"), content_length=-1),
                ToolCallPart("call-1", canary("called"), {"q": canary("argument")}),
            ],
            message_id=canary("message-id"),
            name=canary("speaker"),
            model=(canary("provider"), canary("model")),
        ),
    }


async def plant(store: SqliteStore, namespace: str = NS, expire_us: int | None = None) -> None:
    """Write items and states with canaries in all caller-supplied fields, and vectors, into a graph."""
    common: dict[str, Any] = {
        "labels": {canary("label"): canary("label-value")},
        "metadata": {canary("meta"): canary("meta-value")},
        "session_id": canary("session"),
        "expire_us": expire_us,
    }
    facet = Facet(ItemKind.USER_MEMORY, {"tag": canary("tag")}, {"a": canary("attribute")})
    writes = [
        ItemWrite(build_item(name, content=content, facet=facet, **common), canary(f"words-{name}"))
        for name, content in planted().items()
    ]
    writes += [build_write(name, "w", vector, model=MODEL, **common) for name, vector in VECTORS.items()]
    await store.add_items(namespace, writes, request=build_request(canary("request")))
    for n in range(3):
        state = build_state(
            f"k{n}", {"v": canary("state")}, description=canary("purpose"), expire_us=expire_us
        )
        await store.save_state(namespace, state, request=build_request(f"s{n}"))
    await keep_answer(store, namespace, "answer-of-item", ["i7"], [])
    await keep_answer(store, namespace, "answer-of-state", [], ["k1"])


async def keep_answer(
    store: SqliteStore, namespace: str, name: str, items: list[str], states: list[str]
) -> None:
    """Store an answer, a canary, that mentions items and states."""

    def complete(receipt: Receipt) -> None:
        receipt.answer = Answer(canary(name).encode(), b"bare", items, states)

    await store.record_request(namespace, Receipt(0), RequestKey(name, b"body", complete))


async def _delete_each(store: SqliteStore) -> None:
    for item_id in (*planted(), *VECTORS):
        await store.delete_item(NS, item_id, now_us=NOW, request=build_request(f"d-{item_id}"))
    for n in range(3):
        await store.delete_state(NS, f"k{n}", now_us=NOW)


async def _replace_each(store: SqliteStore) -> None:
    writes = [build_write(item_id) for item_id in (*planted(), *VECTORS)]
    states = [build_state(f"k{n}", description="") for n in range(3)]
    await store.add_items(NS, writes, states=states, on_duplicate=OnDuplicate.REPLACE)
    await store.flush()
    # Replaced versions are kept for a while.
    await store.remove_expired(now_us() + 31 * 24 * 3600 * SECOND, 0, 1000)


async def _clear_and_delete(store: SqliteStore) -> None:
    await store.clear_states(NS)
    await store.add_items(NS, [], removals=[*planted(), *VECTORS])


async def _delete_where(store: SqliteStore) -> None:
    reading = await store.read(NS)
    assert reading.info is not None
    found = await reading.scan(ItemFilter(NOW, session_id=canary("session")), -1, newest=False)
    states: list[Operation] = [RemoveState(f"k{n}", NOW) for n in range(3)]
    await store.write(NS, [RemoveAt(found, reading.info.revision), *states])


async def _redact_each(store: SqliteStore) -> None:
    await store.add_items(
        NS, [build_write(item_id) for item_id in (*planted(), *VECTORS)], on_duplicate=OnDuplicate.REPLACE
    )
    for n in range(3):
        await store.save_state(NS, build_state(f"k{n}", description=""))
    await store.flush()
    for item_id in (*planted(), *VECTORS):
        *_, first = await store.item_versions(NS, item_id, None, 10, now_us=NOW)
        await store.redact_item_version(NS, item_id, first.revision, now_us=NOW)
    for n in range(3):
        *_, state = await store.state_versions(NS, f"k{n}", None, 10, now_us=NOW)
        await store.redact_state_version(NS, f"k{n}", state.revision, now_us=NOW)


async def _as_derived(store: SqliteStore) -> None:
    """Make every item from one more, then delete that one; a version that the change replaces goes too."""
    await store.add_items(NS, [build_write("source")])
    names = [*planted(), *VECTORS]
    items = (await store.get_items(NS, names)).values()
    made = Provenance(canary("writer"), parent_ids=("source",))
    changed = [msgspec.structs.replace(item, provenance=made, update_us=NOW + 1) for item in items]
    writes = [ItemWrite(item, "", keep_vector=True) for item in changed]
    await store.add_items(NS, writes, on_duplicate=OnDuplicate.REPLACE)
    await store.flush()
    facts = frozenset(planted())
    receipt = await store.write(NS, [RemoveItem("source", NOW, derived=True)], facts=facts)
    assert receipt.derived_counts == [len(names)]
    await store.clear_states(NS)


ENDS: dict[str, End] = {
    "derived": _as_derived,
    "redacted": _redact_each,
    "deleted": _delete_each,
    "deleted where": _delete_where,
    "replaced": _replace_each,
    "cleared": _clear_and_delete,
    "reset": lambda store: store.reset(NS, request=build_request("reset")),
    "namespace deleted": lambda store: store.delete_namespace(NS),
    "expired": lambda store: store.remove_expired(NOW + 1, 0, 1000),
}


@pytest.mark.parametrize("end", ENDS)
async def test_contents_that_ended_are_in_no_file(store: SqliteStore, tmp_path: Path, end: str) -> None:
    vectors = {f"kept-{n}": vector for n, vector in enumerate(unit_vectors(50, stream=2))}
    await store.add_items(KEPT, [build_write(name, canary(name), v) for name, v in vectors.items()])
    await plant(store, expire_us=NOW + 1 if end == "expired" else None)
    await store.flush()
    before = contents(tmp_path)
    of_request = {canary("request")}
    assert len(canaries_in(before) - of_request) == 50 + 26
    assert vectors_in(before, VECTORS) == set(VECTORS)
    assert any(name.endswith(".graph") for name in before)
    columns = {name: data for name, data in before.items() if name.endswith(".columns")}
    assert canaries_in(columns) >= {canary(name) for name in ("session", "label", "label-value", "tag")}
    await ENDS[end](store)
    await store.flush()
    after = contents(tmp_path)
    # The id of a request before a reset is remembered for a day, or it would be applied again.
    remembered = set() if end == "namespace deleted" else of_request
    assert canaries_in(after) - remembered == {canary(name) for name in vectors}
    assert vectors_in(after, VECTORS) == set()
    assert vectors_in(after, vectors) == set(vectors)


async def test_a_deletion_is_finished_after_a_crash(store: SqliteStore, tmp_path: Path) -> None:
    await plant(store)
    await store.flush()
    await _delete_each(store)
    # The files of a process that ends here.
    shutil.copytree(tmp_path / "data", tmp_path / "crashed")
    assert vectors_in(contents(tmp_path / "crashed"), VECTORS) == set(VECTORS)
    again = SqliteStore(tmp_path / "crashed", GRAPH)
    await again.open()
    try:
        await again.flush()
        left = contents(tmp_path / "crashed")
        assert (canaries_in(left), vectors_in(left, VECTORS)) == ({canary("request")}, set())
    finally:
        await again.close()


async def test_vectors_of_a_namespace_that_is_not_loaded_leave_its_graph(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "data", GRAPH)
    await store.open()
    await plant(store)
    await store.close()
    await store.open()
    assert vectors_in(contents(tmp_path / "data" / "indexes"), VECTORS) != set()
    await store.delete_item(NS, "i3", now_us=NOW)
    await store.flush()
    assert vectors_in(contents(tmp_path), VECTORS) == VECTORS.keys() - {"i3"}
    live = {name: vector for name, vector in VECTORS.items() if name != "i3"}
    assert await found_by_vector(store, VECTORS["i0"]) == set(live)
    await store.close()


async def test_a_graph_saved_without_its_deleted_vectors_finds_all_others(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "data", GRAPH)
    await store.open()
    vectors = {f"v{n}": vector for n, vector in enumerate(random_vectors(600))}
    await store.add_items(NS, [build_write(name, "", vector) for name, vector in vectors.items()])
    await store.flush()
    gone = [f"v{n}" for n in range(0, 600, 5)]
    for name in gone:
        await store.delete_item(NS, name, now_us=NOW)
    await store.flush()
    await store.close()
    await store.open()
    live: dict[str, Vector] = {name: vector for name, vector in vectors.items() if name not in gone}
    assert (await recall(store, live, random_vectors(40, stream=3))).is_as_promised
    assert (await store.index_info(NS)).graph_count == len(live)
    # Vectors removed from the file come back.
    back = {name: vectors[name] for name in gone[:60]}
    await store.add_items(NS, [build_write(name, "", vector) for name, vector in back.items()])
    await store.flush()
    for name, vector in back.items():
        hits = await recall(store, live | back, [vector], 1)
        assert hits.found == 1, name
    await store.close()


async def test_what_is_deleted_bit_by_bit_leaves_no_bits_in_pages_that_were_split(
    store: SqliteStore, tmp_path: Path
) -> None:
    chance = drawn("splits")
    live: dict[str, str] = {}
    for n in range(rounds(1500, 20_000)):
        key, name = f"{chance.random()}", canary(f"n{n}")
        await store.save_state(NS, build_state(key, name * chance.randrange(1, 80)))
        live[key] = name
        if n % 3 == 0:
            gone = chance.choice(list(live))
            await store.delete_state(NS, gone, now_us=NOW)
            del live[gone]
    await store.flush()
    assert canaries_in(contents(tmp_path)) == set(live.values())
    await assert_consistent(store)


async def test_nothing_is_written_anew_where_nothing_was_deleted(store: SqliteStore, tmp_path: Path) -> None:
    await store.add_items(NS, [build_write(f"i{n}", "kiwi " * 100) for n in range(200)])
    await store.flush()
    await store.delete_item(NS, "i0", now_us=NOW)
    await store.flush()
    records = tmp_path / "data" / "records.db"
    before = records.stat().st_mtime_ns
    await store.flush()
    assert records.stat().st_mtime_ns == before
    assert len(await words_found(store, "kiwi")) == 199


async def test_a_repeated_request_is_answered_alike_although_its_description_is_not_kept_twice(
    store: SqliteStore,
) -> None:
    request = build_request("r")
    first = await store.save_state(NS, build_state("k", description="why"), request=request)
    kept = await store.save_state(NS, build_state("k", 2), request=build_request("keeps"))
    assert kept.description == "why"
    again = await store.save_state(NS, build_state("k", 2), request=build_request("keeps"))
    assert (again.description, again.version) == ("why", kept.version)
    await store.delete_state(NS, "k", now_us=NOW)
    again = await store.save_state(NS, build_state("k", description="why"), request=request)
    assert (again.description, again.version, again.replayed) == ("why", first.version, True)


async def test_an_answer_is_kept_no_longer_than_the_version_it_tells_of(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "data", GRAPH, history_us=0)
    await store.open()
    await plant(store)
    await store.add_items(NS, [build_write("i7")], on_duplicate=OnDuplicate.REPLACE)
    await store.save_state(NS, build_state("k1"))
    await store.flush()
    assert not canaries_in(contents(tmp_path)) & {
        canary(f"answer of {each}") for each in ("an item", "a state")
    }
    found = await store.find_receipt(NS, build_request("answer-of-item"))
    assert found is not None and found.answer == Answer(b"", b"bare")
    await store.close()


def _facts(api: Api, namespace: str) -> dict[str, tuple[Any, Message]]:
    """Return requests whose answers quote stored data: one of each RPC that keeps its answer."""
    user = user_memory_pb2_grpc.UserMemoryServiceStub(api.channel)
    fact = {"category": 1, "reasoning": f"Because of {canary('reason')}", "keep_wording": True}
    said = {"metadata": struct({"m": canary("meta")}), "labels": {"kept": canary("value")}}

    def save(content: str, **fields: Any) -> user_memory_pb2.SaveMemoryRequest:
        return user_memory_pb2.SaveMemoryRequest(namespace=namespace, content=content, **fact, **fields)

    known = user.SaveMemory(save(f"User lives in {canary('london')}", **said)).memory
    for name in ("john", "jack"):
        user.SaveMemory(save(f"User works at {canary(name)}", on_contradiction=2))
    message = {"role": 2, "parts": [{"text": f"I am allergic to {canary('tom')}."}]}
    other = {"id": known.id, "content": f"User lived in {canary('rome')}"}
    named = {"namespace": namespace, "request_id": "r"}
    return {
        "save": (user.SaveMemory, save(f"User lives in {canary('paris')}", request_id="s", **said)),
        "update": (
            user.UpdateMemory,
            user_memory_pb2.UpdateMemoryRequest(memory=other, keep_wording=True, **named),
        ),
        "extract": (
            user.ExtractMemories,
            user_memory_pb2.ExtractMemoriesRequest(messages=[message], **named | {"request_id": "e"}),
        ),
        "consolidate": (
            user.ConsolidateMemories,
            user_memory_pb2.ConsolidateMemoriesRequest(**named | {"request_id": "c"}),
        ),
        "evaluate": (
            overseer_pb2_grpc.OverseerServiceStub(api.channel).EvaluateForStorage,
            overseer_pb2.EvaluateForStorageRequest(
                tool_name="getContacts", key="k", save=True, goal=f"the contacts of {canary('goal')}",
                result=json_value([{"name": canary("jo"), "phone": "1"}]), **named | {"request_id": "v"},
            ),
        ),
    }  # fmt: skip


def _forget_each(api: Api, namespace: str) -> None:
    """Delete all memories and the state, one by one."""
    user = user_memory_pb2_grpc.UserMemoryServiceStub(api.channel)
    wanted = user_memory_pb2.ListMemoriesRequest(namespace=namespace, include_history=True)
    for memory in user.ListMemories(wanted).memories:
        user.DeleteMemory(user_memory_pb2.DeleteMemoryRequest(namespace=namespace, id=memory.id))
    api.state.DeleteState(state_pb2.DeleteStateRequest(namespace=namespace, key="k"))


def _undo_all(api: Api, namespace: str) -> None:
    request = admin_pb2.UndoWritesRequest(namespace=namespace, any_writer=True)
    request.since.FromSeconds(1)
    api.admin.UndoWrites(request)


FORGETTING: dict[str, Callable[[Api, str], object]] = {
    "deleted": _forget_each,
    "reset": lambda api, namespace: api.memory.Reset(memory_pb2.ResetRequest(namespace=namespace)),
    "undone": _undo_all,
}


@pytest.mark.parametrize("how", FORGETTING)
def test_no_answer_outlives_what_it_tells_of(tmp_path: Path, connect: Connect, how: str) -> None:
    namespace = "facts"
    with ServerProcess(tmp_path, flags=["--embedder", "none"]) as server:
        api = connect(server)
        requests = _facts(api, namespace)
        first = {name: call(request) for name, (call, request) in requests.items()}
        assert {name: call(request) for name, (call, request) in requests.items()} == first
        names = ("london", "paris", "rome", "tom", "john", "jack", "reason", "meta", "value", "jo")
        assert canaries_in(contents(tmp_path)) >= {canary(name) for name in names}
        FORGETTING[how](api, namespace)
        api.admin.Flush(admin_pb2.FlushRequest())
        assert canaries_in(contents(tmp_path)) == set()
        revision = api.stats(namespace).revision
        again = {name: call(request) for name, (call, request) in requests.items()}
        assert api.stats(namespace).revision == revision
    assert not any(canary("") in str(answer) for answer in again.values())
    for name, answer in again.items():
        assert answer.revision == first[name].revision, name
    for name in ("save", "update"):
        told, then = again[name], first[name]
        assert (told.outcome, told.memory.id, told.memory.version) == (
            then.outcome,
            then.memory.id,
            then.memory.version,
        )
    assert [m.id for m in again["save"].superseded] == [m.id for m in first["save"].superseded] != []
    assert len(again["extract"].results) == len(first["extract"].results) > 0
    (group,), (then,) = again["consolidate"].consolidations, first["consolidate"].consolidations
    assert [m.id for m in group.sources] == [m.id for m in then.sources] != []
    assert (again["evaluate"].saved, again["evaluate"].key) == (True, "k")


def _plant_everywhere(message: Message, number: list[int]) -> None:
    """Put a different canary after every free text of a message."""
    for field, value in message.ListFields():
        if field.name in ("namespace", "id", "tool_name", "in_response_to", "time_zone"):
            continue
        if field.type == field.TYPE_STRING and not field.is_repeated:
            number[0] += 1
            setattr(message, field.name, f"{value} {canary(str(number[0]))}")
        elif field.message_type is not None and field.message_type.full_name.startswith("memory_service"):
            for part in value if field.is_repeated else [value]:
                if isinstance(part, Message):
                    _plant_everywhere(part, number)


def _write_through_every_service(api: Api, namespace: str) -> None:
    """Call every RPC that stores something, with canaries in its texts."""
    number = [0]
    api.add(namespace, id="old", text=canary("old"), metadata=struct({"m": canary("m")}))
    api.save(namespace, "old", canary("old-state"), description=canary("why"), request_id=canary("r"))
    for method in METHODS:
        if method.name.startswith(
            ("Add", "BatchAdd", "Save", "Store", "Update", "Handle", "Extract", "Evaluate", "Write", "Edit")
        ):
            request = valid_request(method, namespace)
            _plant_everywhere(request, number)
            # The target of an update may not exist.
            ended = outcome(partial(api.call, method, request))
            assert ended in (grpc.StatusCode.OK, grpc.StatusCode.NOT_FOUND), method.name
    assert number[0] > 12


def test_a_namespace_that_was_deleted_over_the_api_is_in_no_file(tmp_path: Path, connect: Connect) -> None:
    namespace = canary("namespace")
    with ServerProcess(tmp_path, env=SMALL_GRAPHS) as server:
        api = connect(server)
        _write_through_every_service(api, namespace)
        items = [memory_pb2.MemoryItem(text=f"{canary(f't{n}')} {n}") for n in range(120)]
        api.memory.BatchAdd(memory_pb2.BatchAddRequest(namespace=namespace, items=items))
        api.retrieve(namespace, query_text="anything")
        api.admin.Flush(admin_pb2.FlushRequest())
        assert len(canaries_in(contents(tmp_path))) > 120 + 12
        api.admin.DeleteNamespace(admin_pb2.DeleteNamespaceRequest(namespace=namespace))
        api.admin.Flush(admin_pb2.FlushRequest())
        assert canaries_in(contents(tmp_path)) == set()
        assert server.terminate() == 0
    assert canaries_in(contents(tmp_path)) == set()
    assert not any(canary("") in line for line in server.log)


def test_a_backup_keeps_what_was_deleted_after_it(tmp_path: Path, connect: Connect) -> None:
    with ServerProcess(tmp_path) as server:
        api = connect(server)
        api.add("a", text=canary("kept"))
        api.save("a", "k", 1)
        api.admin.Backup(admin_pb2.BackupRequest(name="before"))
        api.state.ClearState(state_pb2.ClearStateRequest(namespace="a"))
        api.memory.Reset(memory_pb2.ResetRequest(namespace="a"))
        api.admin.Flush(admin_pb2.FlushRequest())
        # As the operations page says: backups are separate files, which the operator has to remove.
        assert canaries_in(contents(tmp_path, but=["backups"])) == set()
        assert canaries_in(contents(tmp_path / "backups")) == {canary("kept")}
