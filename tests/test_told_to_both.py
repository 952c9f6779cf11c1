"""The same request to two servers at once takes effect once, and the other server causes no refusal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from grpc_api import Api, decode, json_value
from knowledge_api import Library
from memory_service.v1 import admin_pb2, overseer_pb2, overseer_pb2_grpc
from memory_service.v1 import memory_pb2 as pb
from shared_servers import SharedServers, needs_postgres
from user_memories import DUPLICATE, SAVED, User

pytestmark = needs_postgres

TIMES = 100
AT_ONCE = 16
COLOURS = ("red", "blue", "green", "white", "black", "brown", "yellow", "purple", "orange", "grey")
THINGS = (
    "kayak",
    "teapot",
    "violin",
    "tractor",
    "ladder",
    "telescope",
    "sofa",
    "bicycle",
    "lantern",
    "anvil",
)
FACTS = [f"The user owns a {colour} {thing}." for thing in THINGS for colour in COLOURS]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Api, Api]]:
    with SharedServers(tmp_path_factory.mktemp("both")) as servers:
        yield servers.start(), servers.start()


def tell_both(servers: Sequence[Api], tell: Callable[[Api, int], Any]) -> list[tuple[Any, Any]]:
    """Call both servers at the same time, TIMES times; return the results of each pair."""
    with ThreadPoolExecutor(2 * AT_ONCE) as pool:
        told = [[pool.submit(tell, api, number) for api in servers] for number in range(TIMES)]
        return [(first.result(120), second.result(120)) for first, second in told]


def code_of(call: Callable[[], Any]) -> grpc.StatusCode:
    try:
        call()
    except grpc.RpcError as error:
        return decode(error).code
    return grpc.StatusCode.OK


def test_a_fact_is_saved_once(servers: tuple[Api, Api], namespace: str) -> None:
    answers = tell_both(servers, lambda api, n: User(api, namespace).save(FACTS[n]).outcome)
    assert Counter(map(frozenset, answers)) == {frozenset({SAVED, DUPLICATE}): TIMES}
    assert sorted(User(servers[0], namespace).contents(page_size=1000)) == sorted(FACTS)


def test_a_fact_whose_request_comes_to_both_is_answered_alike(
    servers: tuple[Api, Api], namespace: str
) -> None:
    answers = tell_both(
        servers, lambda api, n: User(api, f"{namespace}/{n % 4}").save(FACTS[n], request_id=f"r{n}")
    )
    for first, second in answers:
        assert first.outcome == SAVED
        assert (first.memory.id, first.revision) == (second.memory.id, second.revision)
    kept = [text for part in range(4) for text in User(servers[1], f"{namespace}/{part}").contents()]
    assert sorted(kept) == sorted(FACTS)


def test_a_document_is_added_once(servers: tuple[Api, Api], namespace: str) -> None:
    codes = tell_both(
        servers, lambda api, n: code_of(lambda: Library(api, f"{namespace}/{n % 10}").add(f"d{n}"))
    )
    once = frozenset({grpc.StatusCode.OK, grpc.StatusCode.ALREADY_EXISTS})
    assert Counter(map(frozenset, codes)) == {once: TIMES}
    check_documents(servers[0], namespace)


def test_a_document_whose_request_comes_to_both_is_answered_alike(
    servers: tuple[Api, Api], namespace: str
) -> None:
    answers = tell_both(
        servers, lambda api, n: Library(api, f"{namespace}/{n % 10}").add(f"d{n}", request_id=f"r{n}")
    )
    assert all((a.id, a.version, a.create_time) == (b.id, b.version, b.create_time) for a, b in answers)
    check_documents(servers[1], namespace)


def check_documents(api: Api, namespace: str) -> None:
    for number in range(TIMES):
        found = Library(api, f"{namespace}/{number % 10}").get(f"d{number}")
        assert (found.document.version, len(found.fragments)) == (1, 3)
    # With its three fragments each, and no others.
    assert sum(api.stats(f"{namespace}/{part}").item_count for part in range(10)) == 4 * TIMES


def test_a_document_that_both_replace_has_every_version_once(
    servers: tuple[Api, Api], namespace: str
) -> None:
    answers = tell_both(
        servers, lambda api, n: Library(api, f"{namespace}/{n % 10}").add("d", replace=True).version
    )
    for part in range(10):
        versions = [v for n, both in enumerate(answers) if n % 10 == part for v in both]
        assert sorted(versions) == list(range(1, 2 * TIMES // 10 + 1))


@pytest.mark.parametrize("request_id", ["", "undo"])
def test_what_is_undone_is_undone_once(servers: tuple[Api, Api], namespace: str, request_id: str) -> None:
    for number in range(TIMES):
        servers[number % 2].add_texts(f"{namespace}/{number}", "a heron", "an egret")
        servers[1 - number % 2].save(f"{namespace}/{number}", "key", 1)

    def undo(api: Api, number: int) -> admin_pb2.UndoWritesResponse:
        request = admin_pb2.UndoWritesRequest(
            namespace=f"{namespace}/{number}", any_writer=True, request_id=request_id, since={"seconds": 1}
        )
        return api.admin.UndoWrites(request)

    for number, (first, second) in enumerate(tell_both(servers, undo)):
        assert len(servers[0].items(f"{namespace}/{number}")) == 0
        # Three were written and three removed, each in a separate change.
        assert servers[1].stats(f"{namespace}/{number}").revision == 6
        if request_id:
            assert (first.removed_count, first.revision) == (second.removed_count, second.revision)
        else:
            assert first.removed_count + second.removed_count == 3


@pytest.mark.parametrize("request_id", ["", "storage"])
def test_a_result_is_stored_once(servers: tuple[Api, Api], namespace: str, request_id: str) -> None:
    def evaluate(api: Api, number: int) -> overseer_pb2.EvaluateForStorageResponse:
        request = overseer_pb2.EvaluateForStorageRequest(
            namespace=f"{namespace}/{number % 10}",
            tool_name="fetch_preferences",
            result=json_value({"likes": ["kiwis"]}),
            key=f"fruit{number}",
            save=True,
            request_id=request_id and f"{request_id}{number}",
        )
        return overseer_pb2_grpc.OverseerServiceStub(api.channel).EvaluateForStorage(request)

    for first, second in tell_both(servers, evaluate):
        saved = [answer for answer in (first, second) if answer.saved]
        assert len(saved) == (2 if request_id else 1)
        assert all(answer.entry.version == 1 for answer in saved)
        if request_id:
            assert first.entry == second.entry and first.revision == second.revision


def test_a_namespace_that_both_begin_is_one(servers: tuple[Api, Api], namespace: str) -> None:
    answers = tell_both(servers, lambda api, n: api.add(f"{namespace}/{n}", text="a heron").revision)
    assert all(sorted(revisions) == [1, 2] for revisions in answers)
    assert all(len(servers[0].items(f"{namespace}/{n}")) == 2 for n in range(TIMES))


def test_an_item_of_one_id_is_added_once(servers: tuple[Api, Api], namespace: str) -> None:
    codes = tell_both(servers, lambda api, n: code_of(lambda: api.add(namespace, id=f"i{n}", text="a heron")))
    once = frozenset({grpc.StatusCode.OK, grpc.StatusCode.ALREADY_EXISTS})
    assert Counter(map(frozenset, codes)) == {once: TIMES}
    assert len(servers[1].items(namespace)) == TIMES


def test_an_update_without_a_condition_is_never_refused(servers: tuple[Api, Api], namespace: str) -> None:
    servers[0].add(namespace, id="i", text="a heron", labels={"a": "1"})

    def label(api: Api, number: int) -> grpc.StatusCode:
        item = pb.MemoryItem(id="i", labels={f"{number}": "x"})
        request = pb.UpdateRequest(namespace=namespace, item=item, update_mask={"paths": ["labels"]})
        return code_of(lambda: api.memory.Update(request))

    codes = Counter(code for both in tell_both(servers, label) for code in both)
    assert codes == {grpc.StatusCode.OK: 2 * TIMES}
    assert servers[1].stats(namespace).revision == 2 * TIMES + 1
