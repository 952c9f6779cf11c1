"""The contents of a server's audit log, and the server's behaviour when it cannot write it."""

from __future__ import annotations

import asyncio
import json
import resource
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from click.testing import CliRunner, Result
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from credentials import connect as connect_client
from credentials import keys_in
from grpc_api import METHODS, Connect, eventually, outcome, path, refusal, valid_request
from memory_service.audit.entries import Entry, Line
from memory_service.audit.log import AuditLog
from memory_service.audit.verification import entries, verify
from memory_service.cli import main
from memory_service.errors import Overloaded, PermissionDenied, Unauthenticated
from memory_service.limits import Limits
from memory_service.server.audited_fields import PARAMETERS
from memory_service.server.auditing import Auditing, note_request
from memory_service.server.call_guard import CallGuard
from memory_service.server.errors import abort_of
from memory_service.server.methods import Audit, audit_of
from memory_service.v1 import admin_pb2, memory_pb2_grpc
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

AUDIT = ["--audit", "--embedder", "none"]


def calls(data_dir: Path) -> list[Line]:
    """Return the entries of calls, without those of the log itself."""
    verdict = verify(data_dir / "audit")
    assert verdict.problem is None
    return [line for line in entries(data_dir / "audit") if line.rpc]


def command(data_dir: Path, *arguments: str) -> Result:
    """Run `memory-service audit`."""
    return CliRunner().invoke(main, ["audit", *arguments, "--data-dir", str(data_dir)])


@pytest.mark.parametrize("with_reads", [False, True])
def test_every_rpc_that_changes_something_leaves_an_entry_and_reads_if_asked_for(
    tmp_path: Path, connect: Connect, with_reads: bool
) -> None:
    flags = [*AUDIT, *(["--audit-reads"] if with_reads else [])]
    codes: dict[str, grpc.StatusCode] = {}
    with ServerProcess(tmp_path, flags=flags) as server:
        api = connect(server)
        for method in METHODS:
            namespace = f"audit/{method.name}"
            api.add(namespace, id="old", text="old")
            api.save(namespace, "old", "old")
            codes[path(method)] = outcome(partial(api.call, method, valid_request(method, namespace)))
        server.terminate()
    found = calls(tmp_path)
    for method in METHODS:
        own = [line for line in found if line.rpc == path(method)]
        if method.name in ("Add", "SaveState"):  # which write what the others need
            own = [line for line in own if line.ids != ["old"]]
        if audit_of(path(method)) is Audit.READ and not with_reads:
            assert own == [], method.name
            continue
        events = ["call"]
        if audit_of(path(method)) is Audit.AHEAD or method.client_streaming or method.server_streaming:
            events = ["intent", "call"]
        assert [line.event for line in own] == events, method.name
        if "namespace" in method.input_type.fields_by_name:
            assert {line.namespace for line in own} == {f"audit/{method.name}"}
        code = codes[path(method)]
        # A watch never ends by itself: the test's client cancelled it.
        assert own[-1].code == ("CANCELLED" if method.name == "Watch" else code.name)
        assert own[-1].decision == ("allowed" if own[-1].code == "OK" else "failed")
        assert own[0].peer.startswith("ipv4:127.0.0.1:")


def test_entries_tell_ids_and_revisions_also_those_that_the_server_gave(
    tmp_path: Path, connect: Connect
) -> None:
    with ServerProcess(tmp_path, flags=AUDIT) as server:
        api = connect(server)
        item = api.add("n", text="secret text", labels={"key": "secret label"})
        batch = api.add_texts("n", *(f"text {number}" for number in range(150)))
        api.memory.Delete(pb.DeleteRequest(namespace="n", id=item.id))
        server.terminate()
    added, many, intent, deleted = calls(tmp_path)
    assert (added.ids, added.revision) == ([item.id], item.revision)
    assert many.id_count == 150
    assert many.ids == [each.id for each in batch.items[:100]]
    assert (intent.event, intent.ids, intent.revision, intent.code) == ("intent", [item.id], 0, "")
    assert (deleted.event, deleted.call, deleted.ids) == ("call", intent.call, [item.id])
    assert deleted.revision == batch.revision + 1


def test_each_choice_of_a_request_that_writes_is_in_its_entries() -> None:
    """The same holds for a new field, unless it is named here."""
    untold = {
        *("category", "categories", "is_error"),  # of the content
        *("decide_by", "keep_wording", "explicit_request"),  # how the server decides
    }
    writing = [method.input_type for method in METHODS if audit_of(path(method)) is not Audit.READ]
    choices = {
        (request.full_name, field.name)
        for request in writing
        for field in request.fields
        if field.type in (field.TYPE_BOOL, field.TYPE_ENUM) and field.name not in untold
    }
    told = {(name, field) for name, fields in PARAMETERS.items() for field in fields}
    assert choices <= told
    # Besides what a read may change, the namespaces that it reaches.
    requests = [*writing, pb.RetrieveRequest.DESCRIPTOR]
    assert told <= {(request.full_name, field.name) for request in requests for field in request.fields}


def test_entries_tell_what_was_to_be_done_where_the_method_does_not(tmp_path: Path, connect: Connect) -> None:
    since, told_since = Timestamp(seconds=1_700_000_000), {"since": "2023-11-14T22:13:20Z"}
    requests: list[tuple[str, Message, dict[str, str]]] = [
        ("UndoWrites", admin_pb2.UndoWritesRequest(writer="w" * 600, since=since, dry_run=True),
         {"writer": "w" * 512, "dry_run": "true"} | told_since),
        ("UndoWrites", admin_pb2.UndoWritesRequest(namespace="n", credential_id="c", since=since),
         {"credential_id": "c"} | told_since),
        ("UndoWrites", admin_pb2.UndoWritesRequest(any_writer=True, since=Timestamp(seconds=2**62)),
         {"any_writer": "true"}),
        ("ReviewQuarantined", admin_pb2.ReviewQuarantinedRequest(
            namespace="n", id="i", decision=admin_pb2.QUARANTINE_DECISION_DELETE),
         {"decision": "QUARANTINE_DECISION_DELETE"}),
        ("ReviewQuarantined", admin_pb2.ReviewQuarantinedRequest(id="i", decision=9), {"decision": "9"}),
        ("Reembed", admin_pb2.ReembedRequest(namespace="n", replace_client_vectors=True),
         {"replace_client_vectors": "true"}),
        ("Import", pb.ImportRequest(namespace="n", on_duplicate=pb.ON_DUPLICATE_REPLACE),
         {"on_duplicate": "ON_DUPLICATE_REPLACE"}),
    ]  # fmt: skip
    with ServerProcess(tmp_path, flags=AUDIT) as server:
        api = connect(server)
        for name, request, _ in requests:
            outcome(partial(api.call, method_of(name), request))
        api.memory.Retrieve(searching(True))
        server.terminate()
    *found, counted = calls(tmp_path)
    told = [(path(method_of(name)), parameters) for name, _, parameters in requests for _ in range(2)]
    assert [(line.rpc, line.parameters) for line in found] == told  # of the intent and of the outcome
    assert counted.parameters == {}  # of a write without details
    shown = command(tmp_path, "show", "--rpc", "UndoWrites").output.splitlines()
    assert "  credential_id c  since 2023-11-14T22:13:20Z" in shown[2]


def test_a_search_that_counts_its_results_as_used_is_a_write(tmp_path: Path, connect: Connect) -> None:
    with ServerProcess(tmp_path, flags=AUDIT) as server:
        api = connect(server)
        items = [api.add("n", text=text, session_id="s") for text in "abc"]
        for record_usage in (False, True):
            api.memory.Retrieve(searching(record_usage, limit=1, context_window=1))
        server.terminate()
    *_, counted = found = calls(tmp_path)
    assert len(found) == 4
    assert (counted.event, counted.rpc, counted.code) == ("call", path(method_of("Retrieve")), "OK")
    # Its neighbours are in the result and were not counted.
    assert (counted.namespace, counted.ids) == ("n", [items[1].id])


def method_of(name: str) -> MethodDescriptor:
    return next(method for method in METHODS if method.name == name)


def searching(record_usage: bool, **options: Any) -> pb.RetrieveRequest:
    """Retrieve "b" by its words."""
    found = pb.RetrieveOptions(
        query_text="b", mode=pb.RETRIEVE_MODE_LEXICAL, record_usage=record_usage, **options
    )
    return pb.RetrieveRequest(namespace="n", options=found)


def test_without_the_option_there_is_no_log(tmp_path: Path, connect: Connect) -> None:
    with ServerProcess(tmp_path, flags=["--embedder", "none"]) as server:
        connect(server).add("n", text="x")
        server.terminate()
    assert not (tmp_path / "audit").exists()


def test_what_the_guard_refuses_leaves_an_entry(tmp_path: Path, connect: Connect) -> None:
    add, delete = method_of("Add"), method_of("Delete")
    with ServerProcess(tmp_path, flags=AUDIT) as server:
        api = connect(server)
        for method in (add, delete):
            refusal(partial(api.call, method), b"\xff" * 11)
        server.terminate()
    assert [(line.rpc, line.decision, line.code) for line in calls(tmp_path)] == [
        (path(add), "failed", "INVALID_ARGUMENT"),
        (path(delete), "failed", "INVALID_ARGUMENT"),
    ]


# Calls with insufficient credentials


class Denying(memory_pb2_grpc.MemoryServiceServicer):
    """A service that denies a call after it began, like a check within a stream."""

    async def Add(self, request: pb.AddRequest, context: object) -> pb.AddResponse:  # noqa: N802
        raise PermissionDenied


@pytest.fixture
async def denying(tmp_path: Path) -> AsyncIterator[tuple[str, AuditLog]]:
    """A server that denies Get for lack of a credential, Delete for lack of a role, and also Add.

    It is too busy for Retrieve.
    """
    log = AuditLog(tmp_path / "audit", "1")
    log.open()
    guard = CallGuard(Limits())
    refusals = {
        "Get": Unauthenticated(),
        "Delete": PermissionDenied(),
        "Retrieve": Overloaded("concurrent_calls_max", 1),
    }

    def wrap(method: str, handler: object) -> object:
        error = refusals.get(method.rpartition("/")[2])
        if error is None:
            return guard.wrap(method, handler)

        async def refuse(_requests: object, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
            note_request(await context.read())
            await context.abort(*abort_of(error))

        return grpc.stream_unary_rpc_method_handler(refuse)

    server = grpc.aio.server()
    registrar = guard.guarding(server)
    registrar._wrap = Auditing(log, reads=False).around(wrap)
    memory_pb2_grpc.add_MemoryServiceServicer_to_server(Denying(), registrar)  # type: ignore[arg-type]
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield f"127.0.0.1:{port}", log
    await server.stop(None)
    await log.close()


async def test_every_denied_call_leaves_one_entry_also_of_a_read(
    tmp_path: Path, denying: tuple[str, AuditLog]
) -> None:
    address, log = denying
    async with grpc.aio.insecure_channel(address) as channel:
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        for request in (
            pb.AddRequest(namespace="n", item=pb.MemoryItem(id="a")),
            pb.GetRequest(namespace="n", id="a"),
            pb.DeleteRequest(namespace="n", id="a"),
            searching(record_usage=False),
            searching(record_usage=True),
        ):
            method = type(request).__name__.removesuffix("Request")
            with pytest.raises(grpc.aio.AioRpcError):
                await getattr(stub, method)(request)
    await log.write_ahead(Entry(event="closed"))  # and with it everything before
    found = [line for line in entries(tmp_path / "audit") if line.rpc]
    told = [
        (line.rpc.rpartition("/")[2], line.decision, line.code, line.namespace, line.ids) for line in found
    ]
    assert told == [
        ("Add", "denied", "PERMISSION_DENIED", "n", ["a"]),
        ("Get", "denied", "UNAUTHENTICATED", "", []),  # the request of an unknown caller is not trusted
        ("Delete", "denied", "PERMISSION_DENIED", "n", ["a"]),
        ("Retrieve", "failed", "RESOURCE_EXHAUSTED", "n", []),  # the call that would have written
    ]


class Waiting(memory_pb2_grpc.MemoryServiceServicer):
    """A service whose calls never end."""

    async def Add(self, request: pb.AddRequest, context: object) -> pb.AddResponse:  # noqa: N802
        return await asyncio.Future()


async def test_the_entry_of_a_call_tells_that_its_caller_left_also_before_it_was_let_in(
    tmp_path: Path,
) -> None:
    log = AuditLog(tmp_path / "audit", "1")
    log.open()
    guard = CallGuard(Limits(concurrent_calls_max=1))
    ended: asyncio.Queue[None] = asyncio.Queue()

    def wrap(method: str, handler: Any) -> Any:
        guarded = guard.wrap(method, handler)

        async def told(requests: object, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
            try:
                return await guarded.stream_unary(requests, context)  # type: ignore[no-any-return]
            finally:
                ended.put_nowait(None)

        return guarded._replace(stream_unary=told) if guarded.stream_unary else guarded

    server = grpc.aio.server()
    registrar = guard.guarding(server)
    registrar._wrap = Auditing(log, reads=False).around(wrap)
    memory_pb2_grpc.add_MemoryServiceServicer_to_server(Waiting(), registrar)  # type: ignore[arg-type]
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        under_way, waiting = (stub.Add(pb.AddRequest(namespace=namespace)) for namespace in "ab")
        # Their requests have been read, so that both entries name a namespace.
        await asyncio.to_thread(eventually, lambda: guard._calls == 2, "two calls, of which one waits")
        for call in (waiting, under_way):
            call.cancel()
            await ended.get()
    await server.stop(None)
    await log.close()
    found = [(line.namespace, line.decision, line.code) for line in calls(tmp_path)]
    assert found == [("b", "failed", "CANCELLED"), ("a", "failed", "CANCELLED")]


def test_with_credentials_there_is_a_log_that_names_whom_was_denied_what(tmp_path: Path) -> None:
    token = keys_in(tmp_path).token("me", ("mine",))
    # A server each: of over a hundred rejections in one second some would only be counted.
    for presented, namespace in (("", "mine"), (token, "theirs")):
        with ServerProcess(tmp_path, flags=["--auth", "keys", "--embedder", "none"]) as server:
            nobody = connect_client(server.address)
            client = nobody.presenting(presented) if presented else nobody
            for method in METHODS:
                outcome(partial(client.call, method, valid_request(method, namespace)))
            server.terminate()
            nobody.channel.close()
    found = calls(tmp_path)
    for method in METHODS:
        unknown, *denied = [line for line in found if line.rpc == path(method)]
        assert (unknown.code, unknown.caller, unknown.namespace) == ("UNAUTHENTICATED", "", "")
        if "namespace" in method.input_type.fields_by_name:
            assert [(line.code, line.caller) for line in denied] == [("PERMISSION_DENIED", "me")]
            assert denied[0].credential
            assert denied[0].namespace in ("theirs", "")  # the namespace of an upload is unknown


# A disk that accepts no more


def limit_file_size(server: ServerProcess, size_bytes: int) -> None:
    """Limit the size of the server's files: the write that exceeds it is cut, the next one fails."""
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size_bytes, resource.RLIM_INFINITY))


def test_while_the_log_cannot_be_written_nothing_is_changed_and_reads_go_on(
    tmp_path: Path, connect: Connect
) -> None:
    delete, add = pb.DeleteRequest(namespace="n", id="a"), pb.AddRequest(namespace="n")
    add.item.text = "y"
    with ServerProcess(tmp_path, flags=AUDIT) as server:
        api = connect(server)
        api.add("n", id="a", text="b")
        api.admin.Flush(admin_pb2.FlushRequest())  # everything before is in the file now
        size = sum(file.stat().st_size for file in (tmp_path / "audit").glob("*.jsonl"))
        limit_file_size(server, size + 100)  # the next line is cut in two
        for call, request in (
            (api.memory.Delete, delete),
            (api.memory.Add, add),
            (api.memory.Retrieve, searching(record_usage=True)),
            (api.admin.Flush, admin_pb2.FlushRequest()),
        ):
            assert refusal(call, request).reason == "STORAGE_FULL"
        assert [item.text for item in api.items("n")] == ["b"]
        assert len(api.memory.Retrieve(searching(record_usage=False)).results) == 1
        limit_file_size(server, resource.RLIM_INFINITY)
        api.memory.Add(add)
        api.memory.Delete(delete)
        server.terminate()
    ended = [(line.rpc.rpartition("/")[2], line.code) for line in calls(tmp_path) if line.event == "call"]
    full = "RESOURCE_EXHAUSTED"
    refused = [(name, full) for name in ("Delete", "Add", "Retrieve", "Flush")]
    assert ended[-6:] == [*refused, ("Add", "OK"), ("Delete", "OK")]
    assert '"audit_log_failed"' in "".join(server.log)


# The commands


def test_the_commands_show_and_verify(tmp_path: Path, connect: Connect) -> None:
    with ServerProcess(tmp_path, flags=AUDIT) as server:
        api = connect(server)
        api.add("a", id="one", text="x")
        api.add("b", id="two", text="x")
        api.memory.Delete(pb.DeleteRequest(namespace="b", id="two"))
        outcome(partial(api.memory.Delete, pb.DeleteRequest(namespace="b", id="two")))
        # A server may be writing at the same time.
        assert command(tmp_path, "verify").exit_code == 0
        server.terminate()
    verified = command(tmp_path, "verify")
    assert verified.exit_code == 0
    assert "8 entries in 1 files, the chain is intact" in verified.stdout
    noted = verified.stdout.splitlines()[-1]
    assert command(tmp_path, "verify", "--known", noted).exit_code == 0

    def shown(*filters: str) -> list[tuple[str, ...]]:
        lines = command(tmp_path, "show", "--json", *filters).stdout.splitlines()
        return [(line["event"], *line.get("ids", [])) for line in map(json.loads, lines)]

    assert len(shown()) == 8
    assert shown("--rpc", "Add") == [("call", "one"), ("call", "two")]
    assert shown("--namespace", "a") == shown("--id", "one") == [("call", "one")]
    assert shown("--decision", "failed") == [("call", "two")]
    assert shown("--caller", "nobody") == shown("--since", "2100-01-01T00:00:00Z") == []
    assert "Delete  b  failed NOT_FOUND  two" in command(tmp_path, "show").stdout

    (file,) = (tmp_path / "audit").glob("*.jsonl")
    file.write_bytes(file.read_bytes().replace(b'"one"', b'"eno"'))
    tampered = command(tmp_path, "verify")
    assert tampered.exit_code == 1
    assert f"{file.name}:2: changed" in tampered.stderr
    assert command(tmp_path / "nothing", "verify").exit_code == 1
