"""Administration: settings, statistics, backups that a server can start from, deleted namespaces."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import grpc
import pytest

import memory_service
from grpc_api import Api, Connect, decode, eventually, exactly, refusal
from memory_service.v1 import admin_pb2, state_pb2
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess


def info(api: Api) -> admin_pb2.GetInfoResponse:
    return api.admin.GetInfo(admin_pb2.GetInfoRequest())


def delete_namespace(api: Api, namespace: str) -> admin_pb2.DeleteNamespaceResponse:
    return api.admin.DeleteNamespace(admin_pb2.DeleteNamespaceRequest(namespace=namespace))


def backup(api: Api, name: str = "") -> admin_pb2.BackupResponse:
    return api.admin.Backup(admin_pb2.BackupRequest(name=name))


def list_pages(api: Api, **fields: Any) -> Iterator[list[admin_pb2.NamespaceSummary]]:
    token = ""
    while True:
        response = api.admin.ListNamespaces(admin_pb2.ListNamespacesRequest(page_token=token, **fields))
        yield list(response.namespaces)
        token = response.next_page_token
        if not token:
            return


def names(api: Api, **fields: Any) -> list[str]:
    return [summary.namespace for page in list_pages(api, **fields) for summary in page]


# Info


def test_info_tells_what_the_server_is(server: ServerProcess, connect: Connect) -> None:
    answer = info(connect(server))
    assert (answer.version, answer.store, answer.llm) == (memory_service.__version__, "hnsw", "none")
    provider, _, model = answer.embedder.partition(":")
    assert (provider, bool(model)) == ("local", True)
    assert answer.embedding_dimension == 256
    assert answer.HasField("start_time")
    assert not answer.HasField("backup")


def test_info_tells_of_the_memory_store(memory_server: ServerProcess, connect: Connect) -> None:
    assert info(connect(memory_server)).store == "memory"


def test_info_tells_that_there_is_no_embedder(tmp_path: Path, connect: Connect) -> None:
    with ServerProcess(tmp_path, flags=["--embedder", "none"]) as process:
        answer = info(connect(process))
    assert (answer.embedder, answer.embedding_dimension) == ("none", 0)


def test_the_limits_in_force_are_told(api: Api) -> None:
    limits = api.limits()
    told = {name: limits.get(name) for name in ("text_bytes_max", "embedding_values_max", "batch_items_max")}
    assert told == {"text_bytes_max": 65536, "embedding_values_max": 4096, "batch_items_max": 1000}
    # Unlimited by default.
    unset = ("calls_per_s_max", "namespace_items_max", "namespace_bytes_max")
    assert [limits.pop(name) for name in unset] == [0, 0, 0]
    assert all(limit > 0 for limit in limits.values()), limits


# Namespaces


def test_namespaces_are_listed_by_prefix_and_name(api: Api, namespace: str) -> None:
    # In byte order; "_" and "." are special to LIKE and to patterns, but not here.
    wanted = [f"{namespace}/{name}" for name in ("A", "B_", "Bx", "a", "a.b", "ab", "b")]
    for name in reversed(wanted):
        api.add(name, text="x")
    assert names(api, prefix=namespace + "/") == wanted
    assert names(api, prefix=namespace + "/B_") == [namespace + "/B_"]
    assert names(api, prefix=namespace + "/a.") == [namespace + "/a.b"]
    assert names(api, prefix=namespace + "/zzz") == []
    assert set(wanted) <= set(names(api))


@pytest.mark.parametrize("page_size", [1, 4, 9, 10])
def test_namespace_pages_add_up_to_the_whole(api: Api, namespace: str, page_size: int) -> None:
    wanted = [f"{namespace}/{i}" for i in range(9)]
    for name in wanted:
        api.add(name, text="x")
    pages = list(list_pages(api, prefix=namespace, page_size=page_size))
    assert all(len(page) <= page_size for page in pages)
    assert [summary.namespace for page in pages for summary in page] == wanted


def test_a_namespace_begins_with_its_first_write(api: Api, namespace: str) -> None:
    api.retrieve(namespace, query_text="x")
    api.items(namespace)
    assert names(api, prefix=namespace) == []
    request = admin_pb2.GetNamespaceStatsRequest(namespace=namespace)
    error = refusal(api.admin.GetNamespaceStats, request)
    assert (error.code, error.reason) == (grpc.StatusCode.NOT_FOUND, "NAMESPACE_NOT_FOUND")
    assert error.metadata == {"namespace": namespace}


def test_a_refused_write_begins_no_namespace(api: Api, namespace: str) -> None:
    refusal(api.memory.Add, pb.AddRequest(namespace=namespace))
    refusal(api.memory.Delete, pb.DeleteRequest(namespace=namespace, id="x"))
    request = state_pb2.SaveStateRequest(namespace=namespace, key="k", expected_version=1)
    request.value.number_value = 1
    refusal(api.state.SaveState, request)
    assert names(api, prefix=namespace) == []


def test_stats_count_what_a_namespace_holds(api: Api, namespace: str) -> None:
    api.add_texts(namespace, "a", "b", "c")
    api.save(namespace, "k", 1)
    api.memory.Delete(pb.DeleteRequest(namespace=namespace, id=api.items(namespace)[0].id))
    stats = api.stats(namespace)
    assert (stats.namespace, stats.revision) == (namespace, 5)
    assert (stats.item_count, stats.state_count, stats.embedded_count) == (2, 1, 2)
    assert (stats.embedding_dimension, stats.embedding_model) == (256, info(api).embedder)
    summary = next(list_pages(api, prefix=namespace))[0]
    assert (summary.item_count, summary.revision) == (2, 5)
    assert exactly(summary.create_time) == exactly(stats.create_time)


def test_stats_tell_of_client_vectors(api: Api, namespace: str) -> None:
    api.add(namespace, text="a", embedding=pb.Embedding(values=[1.0, 0.0, 0.0]))
    stats = api.stats(namespace)
    assert (stats.embedding_dimension, stats.embedding_model) == (3, "client")


def test_stats_tell_how_vectors_are_searched(
    graph_server: ServerProcess, connect: Connect, namespace: str
) -> None:
    api = connect(graph_server)
    for name, count in ((namespace + "/small", 10), (namespace + "/big", 200)):
        items = [
            pb.MemoryItem(text=str(i), embedding=pb.Embedding(values=[1.0, i, i * i % 7]))
            for i in range(count)
        ]
        api.memory.BatchAdd(pb.BatchAddRequest(namespace=name, items=items))
        api.retrieve(name, query_embedding=pb.Embedding(values=[1.0, 1.0, 1.0]))
    # The graph is built while searches go on without it.
    eventually(lambda: api.stats(namespace + "/big").index.kind == "hnsw", "the graph")
    small, big = (api.stats(namespace + name).index for name in ("/small", "/big"))
    assert (small.loaded, small.kind, small.exact_count, small.graph_count) == (True, "exact", 10, 0)
    assert (big.loaded, big.kind, big.exact_count + big.graph_count) == (True, "hnsw", 200)
    assert big.graph_count > 0
    assert big.ef_search > 0
    assert big.memory_bytes > small.memory_bytes > 0


def test_a_deleted_namespace_is_gone_and_begins_anew(api: Api, namespace: str) -> None:
    request = pb.AddRequest(
        namespace=namespace,
        item=pb.MemoryItem(id="a", text="heron", embedding=pb.Embedding(values=[1.0, 2.0])),
        request_id="r",
    )
    api.memory.Add(request)
    api.add_texts(namespace, "b")
    version = api.save(namespace, "k", 1).version
    response = delete_namespace(api, namespace)
    assert (response.removed_item_count, response.removed_state_count) == (2, 1)
    assert names(api, prefix=namespace) == []
    assert api.items(namespace) == api.found(namespace, query_text="heron") == []
    # It starts over: revisions and versions from 1, no request ids, any dimension.
    request.item.embedding.values.append(3.0)
    assert api.memory.Add(request).revision == 1
    assert api.save(namespace, "k", 1).version == version == 1
    assert api.found(namespace, query_text="heron", mode=pb.RETRIEVE_MODE_LEXICAL) == ["heron"]


def test_deleting_an_unknown_namespace_is_refused(api: Api, namespace: str) -> None:
    request = admin_pb2.DeleteNamespaceRequest(namespace=namespace)
    error = refusal(api.admin.DeleteNamespace, request)
    assert (error.code, error.reason) == (grpc.StatusCode.NOT_FOUND, "NAMESPACE_NOT_FOUND")


# Flush and backup


def test_flush_loses_nothing(api: Api, namespace: str) -> None:
    api.add_texts(namespace, "a heron", "an otter")
    before = [exactly(item) for item in api.items(namespace)]
    assert api.admin.Flush(admin_pb2.FlushRequest()).HasField("duration")
    assert [exactly(item) for item in api.items(namespace)] == before
    assert api.found(namespace, query_text="heron", limit=1) == ["a heron"]


def everything(api: Api) -> dict[str, list[bytes]]:
    """Return everything a server holds, by namespace."""
    return {
        name: [
            exactly(record)
            for record in api.memory.Export(pb.ExportRequest(namespace=name, include_embedding=True))
        ]
        for name in names(api)
    }


def test_a_server_started_on_a_backup_holds_what_was_there(tmp_path: Path, connect: Connect) -> None:
    with ServerProcess(tmp_path) as process:
        api = connect(process)
        for name in ("a", "b/c"):
            api.add_texts(name, *(f"text {i} of {name}" for i in range(50)))
            api.save(name, "k", {"name": name})
        answer = backup(api, "first-1.0_x")
        assert (answer.name, answer.namespace_count, answer.item_count) == ("first-1.0_x", 2, 100)
        assert answer.size_bytes > 0
        held = everything(api)
        api.add_texts("a", "after the backup")
    folder = tmp_path / "backups" / "first-1.0_x"
    manifests = [file.read_text() for file in folder.iterdir() if "manifest" in file.name]
    assert answer.checksum.startswith("xxh3_128:")
    assert any(answer.checksum in manifest for manifest in manifests)
    with ServerProcess(folder) as process:
        restored = connect(process)
        assert everything(restored) == held
        assert restored.found("a", query_text="text 7 of a", limit=1) == ["text 7 of a"]
        assert restored.add("a", text="goes on").revision == 52


def test_a_backup_under_load_is_a_moment_of_the_past(tmp_path: Path, connect: Connect) -> None:
    stop = Event()

    def write(api: Api) -> None:
        number = 0
        while not stop.is_set():
            api.add_texts("ns", str(number), str(number + 1))
            number += 2

    with ServerProcess(tmp_path) as process, ThreadPoolExecutor(1) as pool:
        api = connect(process)
        writer = pool.submit(write, api)
        try:
            answers = [backup(api, f"b{i}") for i in range(3)]
        finally:
            stop.set()
        writer.result()
    for answer in answers:
        with ServerProcess(tmp_path / "backups" / answer.name) as process:
            texts = [item.text for item in connect(process).items("ns")]
        assert texts == [str(i) for i in range(len(texts))]
        # Batches of two are complete.
        assert len(texts) == answer.item_count
        assert len(texts) % 2 == 0


def test_a_backup_without_a_name_gets_one(server: ServerProcess, connect: Connect) -> None:
    first = backup(connect(server))
    assert first.name


def test_a_backup_does_not_overwrite_another(server: ServerProcess, connect: Connect) -> None:
    api = connect(server)
    first = backup(api, "taken")
    error = refusal(api.admin.Backup, admin_pb2.BackupRequest(name="taken"))
    assert error.code in {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.ALREADY_EXISTS}
    assert error.names("name")
    assert first.name == "taken"


def test_backups_at_once_are_written_or_refused(tmp_path: Path, connect: Connect) -> None:
    with ServerProcess(tmp_path, flags=["--embedder", "none"]) as process:
        api = connect(process)
        for batch in range(10):
            api.add_texts("ns", *(f"{batch} {i} " + "x" * 3000 for i in range(300)))
        calls = [api.admin.Backup.future(admin_pb2.BackupRequest(name=f"b{i}")) for i in range(4)]
        refused = [decode(call.exception()) for call in calls if call.exception()]
        assert {error.code for error in refused} <= {
            grpc.StatusCode.FAILED_PRECONDITION,
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            grpc.StatusCode.UNAVAILABLE,
        }
        assert len(refused) < 4
        written = {folder.name for folder in (tmp_path / "backups").iterdir()}
        assert written == {f"b{i}" for i, call in enumerate(calls) if not call.exception()}


PATHS_AND_OTHERS = ["../up", "..", ".", "a/b", "/etc/x", "a\\b", ".hidden", "-x", "_x", "a b", "a\n", "a\0"]
PATHS_AND_OTHERS += ["é", "%2e", "x" * 65]


@pytest.mark.parametrize("name", PATHS_AND_OTHERS)
def test_a_backup_name_is_not_a_path(server: ServerProcess, connect: Connect, name: str) -> None:
    error = refusal(connect(server).admin.Backup, admin_pb2.BackupRequest(name=name))
    assert (error.code, error.reason) in {
        (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED"),
    }
    assert error.names("name")


def test_the_memory_store_has_nothing_to_back_up(memory_server: ServerProcess, connect: Connect) -> None:
    error = refusal(connect(memory_server).admin.Backup, admin_pb2.BackupRequest(name="x"))
    assert (error.code, error.reason) == (grpc.StatusCode.UNIMPLEMENTED, "UNSUPPORTED")
    assert error.metadata["feature"]
