"""No log, audit file, traceback or response to another caller contains what a caller sends."""

from __future__ import annotations

import contextlib
import itertools
import json
import resource
import sqlite3
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message

from embedding_provider import EmbeddingProvider
from grpc_api import METHODS, Api, Connect, outcome, valid_request
from memory_service.audit.verification import entries
from memory_service.v1 import admin_pb2
from server_process import ServerProcess

CANARY = "cAnArY"
TEXT = FieldDescriptor.TYPE_STRING
TEXTS = (TEXT, FieldDescriptor.TYPE_BYTES)
DEPTH_MAX = 5

# The audit log has these: whose data it was, and which item.
NAMES_OF_DATA = ("namespace", "namespaces", "id", "ids", "key", "new_key", "memory_ids", "name")
# And these: whose writes were undone, and a setting that an administrator changed.
PARAMETERS = (
    "UndoWritesRequest.writer",
    "UndoWritesRequest.credential_id",
    "UpdateNamespaceRequest.time_zone",
)


def canary(numbers: Iterator[int], field: FieldDescriptor, length: int = 0) -> str | bytes:
    """Return a unique text. The log may contain those that start with "Id"."""
    named = field.name in NAMES_OF_DATA or field.full_name.endswith(PARAMETERS)
    kind = "Id" if named else "Content"
    text = f"{kind}{CANARY}{next(numbers)}x".ljust(length, "y")
    return text if field.type == TEXT else text.encode()


def fields_of(message: Message, depth: int = 0) -> Iterator[tuple[Any, FieldDescriptor]]:
    """Yield every field of a message and of its inner messages; missing ones are created, one each."""
    for field in message.DESCRIPTOR.fields:
        if field.type in TEXTS:
            yield message, field
        elif field.message_type is not None and depth < DEPTH_MAX:
            if field.message_type.GetOptions().map_entry:
                yield message, field
            elif field.is_repeated:
                yield from fields_of(getattr(message, field.name).add(), depth + 1)
            else:
                inner = getattr(message, field.name)
                inner.SetInParent()
                yield from fields_of(inner, depth + 1)


def plant(message: Any, field: FieldDescriptor, numbers: Iterator[int], length: int = 0) -> None:
    """Put a canary into a field."""
    if field.type in TEXTS:
        value = canary(numbers, field, length)
        if field.is_repeated:
            getattr(message, field.name).append(value)
        else:
            setattr(message, field.name, value)
    elif field.message_type.GetOptions().map_entry:
        entry = field.message_type.fields_by_name
        key, container = canary(numbers, field, length), getattr(message, field.name)
        if entry["value"].type == TEXT:
            container[key] = canary(numbers, field, length)
        else:
            container[key].string_value = canary(numbers, field, length)


def requests(method: MethodDescriptor, namespace: str, numbers: Iterator[int]) -> Iterator[Message | bytes]:
    """Yield valid requests with a canary in one field, and requests with canaries in all, some too long."""
    whole = valid_request(method, namespace)
    count = sum(1 for _ in fields_of(type(whole)()))
    for at in range(count):
        request = valid_request(method, namespace)
        template = type(whole)()
        message, field = next(itertools.islice(fields_of(template), at, None))
        plant(message, field, numbers)
        _clean(template)
        request.MergeFrom(template)
        yield request
    for length in (0, 3000, 70_000):
        request = type(whole)()
        for message, field in fields_of(request):
            plant(message, field, numbers, length)
        yield request
        if "namespace" in request.DESCRIPTOR.fields_by_name:
            request.namespace = namespace  # type: ignore[attr-defined]
            yield request
            # Not valid UTF-8, and truncated.
            yield request.SerializeToString().replace(CANARY[:3].encode(), b"\xff\xfe" + CANARY[2:3].encode())
        yield request.SerializeToString()[:-3]


def _clean(message: Message) -> bool:
    """Remove messages in which nothing is set; return whether one is left."""
    for field, value in message.ListFields():
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            continue
        if field.is_repeated:
            kept = [each for each in value if _clean(each)]
            if len(kept) < len(value):
                message.ClearField(field.name)
        elif not _clean(value):
            message.ClearField(field.name)
    return bool(message.ListFields())


def answers(api: Api, method: MethodDescriptor, request: Message | bytes) -> str:
    """Return the error of a failed call: status, text, details."""
    try:
        api.call(method, request)
    except grpc.RpcError as error:
        return f"{error.code()} {error.details()} {error.trailing_metadata()}"
    except StopIteration:
        pass
    return ""


def seed(api: Api, namespace: str) -> None:
    """Write what valid requests refer to."""
    if outcome(partial(api.get, namespace, "old")) is grpc.StatusCode.NOT_FOUND:
        api.add(namespace, id="old", text="old")
    api.save(namespace, "old", "old")


def failures_of_others(api: Api) -> str:
    """Return the errors that another caller gets for everything that can be refused."""
    told = []
    for method in METHODS:
        numbers = iter(range(10**6))
        for request in itertools.islice(requests(method, "other", numbers), 0, None, 8):
            if isinstance(request, Message):
                raw = request.SerializeToString().replace(CANARY.encode(), b"parrot")
                told.append(answers(api, method, raw))
    return "".join(told)


@pytest.mark.parametrize("embedder", ["none", "openai"])
def test_nothing_that_is_sent_is_in_logs_or_told_to_others(
    tmp_path: Path, connect: Connect, embedder: str
) -> None:
    numbers, step = itertools.count(), 1 if embedder == "none" else 10
    flags = ["--audit", "--audit-reads", "--log-level", "debug", "--embedder", embedder]
    with contextlib.ExitStack() as stack:
        environment = {}
        if embedder == "openai":
            provider = stack.enter_context(EmbeddingProvider())
            provider.refuses = lambda text: len(text) % 2 == 0
            environment = provider.env
        server = ServerProcess(tmp_path, flags=flags, env=environment)
        server.log = deque()  # all of it
        stack.enter_context(server)
        api, sent = connect(server), 0
        for method in METHODS:
            seed(api, "n")
            for request in itertools.islice(requests(method, "n", numbers), 0, None, step):
                answers(api, method, request)
                sent += 1
                if method.name.startswith(("Delete", "Reset", "Clear")):
                    seed(api, "n")
        assert sent > 600 / step
        assert CANARY not in failures_of_others(connect(server))
        told = str(api.admin.GetInfo(admin_pb2.GetInfoRequest()))
        server.terminate()
    log = "\n".join(server.log)
    for secret in environment.values():  # the provider's key and address
        assert secret not in log + told
    assert [line for line in server.log if CANARY in line] == []
    assert "unexpected_error" not in log
    written = "".join(path.read_text() for path in (tmp_path / "audit").iterdir())
    assert f"Id{CANARY}" in written
    assert f"Content{CANARY}" not in written
    # Nor in another spelling: an entry has these fields and no others.
    assert {line.event for line in entries(tmp_path / "audit")} <= {
        "opened",
        "call",
        "intent",
        "missed",
        "closed",
    }


def test_nothing_that_is_sent_is_in_logs_when_the_storage_fails(tmp_path: Path, connect: Connect) -> None:
    numbers = itertools.count()
    with ServerProcess(tmp_path, flags=["--embedder", "none", "--log-level", "debug"]) as server:
        api = connect(server)
        seed(api, "n")
        api.add("broken", id="old", text=f"Content{CANARY}broken")
        records = sqlite3.connect(tmp_path / "records.db")
        changed = records.execute(
            "UPDATE items SET content = substr(content, 1, 20) WHERE content LIKE ?", [f"%{CANARY}%"]
        )
        assert changed.rowcount == 1
        records.commit()
        records.close()
        told = [answers(api, m, valid_request(m, "broken")) for m in METHODS if m.name in ("List", "Update")]
        # From here on no file may grow.
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        for method in METHODS:
            for request in itertools.islice(requests(method, "n", numbers), 0, None, 5):
                told.append(answers(api, method, request))
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        server.terminate()
    log = "\n".join(server.log)
    assert '"write_failed"' in log
    assert '"unexpected_error"' in log
    assert CANARY not in log
    assert "STORAGE_UNAVAILABLE" in "".join(told)


CRASHES = f"""
import asyncio, logging, sys, threading
import uvloop
from memory_service.runtime.event_log import EventLog
from memory_service.server.logs import configure_logging, log_of_loop
configure_logging("debug")
secret = "{CANARY[:3]}" + "{CANARY[3:]}"

def fail(argument):
    try:
        {{}}[argument]
    except KeyError as error:
        raise ValueError("it holds " + argument) from error

async def task():
    fail(secret)

async def main():
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(log_of_loop)
    loop.call_soon(fail, secret)
    forgotten = asyncio.create_task(task(), name=secret)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    del forgotten
    import gc; gc.collect()
    try:
        fail(secret)
    except ValueError:
        EventLog("memory_service").exception("caught")
        logging.getLogger("grpc").exception("a library says %s", secret)
        logging.getLogger("asyncio").warning("it took long: " + secret)

uvloop.run(main())
thread = threading.Thread(target=fail, args=(secret,), name=secret)
thread.start()
thread.join()
(secret + "\\ud800").encode()
"""


def test_no_exception_of_any_way_shows_what_it_holds() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", CRASHES], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 1
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    events = [line["event"] for line in lines]
    assert sorted(events) == sorted(
        ["loop_error", "loop_error", "caught", "library_message", "library_message"]
        + ["uncaught_exception", "uncaught_exception"]
    )
    assert CANARY not in ended.stderr + ended.stdout
    # Information for debugging is there.
    caught = lines[events.index("caught")]
    assert caught["exception"] == "ValueError from KeyError"
    assert caught["places"][-1].endswith(" fail")
