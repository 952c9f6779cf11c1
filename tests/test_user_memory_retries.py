"""Memories are written once and whole: retries, restarts, crashes, export and import."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from grpc_api import Api, Connect, refusal
from memory_service.v1 import memory_pb2
from memory_service.v1 import user_memory_pb2 as pb
from server_process import ServerProcess
from user_memories import (
    DUPLICATE,
    IDENTITY,
    PREFERENCE,
    PROJECT,
    REASONING,
    SUPERSEDED,
    User,
    chain,
    message,
    similar,
)


@pytest.fixture
def user(api: Api, namespace: str) -> User:
    return User(api, namespace)


def writes(user: User) -> dict[str, Any]:
    """A request of each writing RPC that has a request_id, ready to be repeated."""
    user.save("I live in London", IDENTITY)
    other = user.save("User prefers dark mode").memory
    gone = user.save("User is building a boat", PROJECT).memory
    similar(user, "User's name is John", "User's name is Jack", category=IDENTITY)
    namespace = user.namespace
    return {
        "UpdateMemory": pb.UpdateMemoryRequest(
            namespace=namespace,
            memory=pb.UserMemory(id=other.id, content="User prefers light mode"),
            expected_version=1,
            request_id="update",
        ),
        "DeleteMemory": pb.DeleteMemoryRequest(
            namespace=namespace, id=gone.id, expected_version=1, request_id="delete"
        ),
        "SaveMemory": pb.SaveMemoryRequest(
            namespace=namespace,
            content="I live in Paris",
            category=IDENTITY,
            reasoning=REASONING,
            request_id="save",
        ),
        "ExtractMemories": pb.ExtractMemoriesRequest(
            namespace=namespace,
            messages=[message("My brother Tom plays chess. I am allergic to peanuts.")],
            request_id="extract",
        ),
        "ConsolidateMemories": pb.ConsolidateMemoriesRequest(namespace=namespace, request_id="consolidate"),
    }


def told(answer: Any) -> Any:
    """Return the parts of a response that must be the same for a repeated request."""
    if isinstance(answer, pb.ExtractMemoriesResponse):
        return [(r.outcome, r.memory) for r in answer.results], answer.examined_count, answer.revision
    if isinstance(answer, pb.ConsolidateMemoriesResponse):
        return [(g.action, g.applied, g.memory) for g in answer.consolidations], answer.revision
    if isinstance(answer, pb.DeleteMemoryResponse):
        return answer
    superseded = list(answer.superseded) if isinstance(answer, pb.SaveMemoryResponse) else []
    return answer.outcome, answer.memory, superseded, answer.revision


def test_a_repeated_request_is_answered_alike_and_writes_once(
    tmp_path: Path, connect: Connect, namespace: str
) -> None:
    with ServerProcess(tmp_path) as server:
        user = User(connect(server), namespace)
        requests = writes(user)
        answers = {}
        for name, request in requests.items():
            call = getattr(user.service, name)
            answers[name] = call(request)
            assert told(call(request)) == told(answers[name]), name
        before = user.memories(include_history=True)
        revision = user.api.stats(namespace).revision
        server.kill()
    with ServerProcess(tmp_path) as server:
        user = User(connect(server), namespace)
        assert user.memories(include_history=True) == before
        for name, request in requests.items():
            assert told(getattr(user.service, name)(request)) == told(answers[name]), name
        assert user.memories(include_history=True) == before
        assert user.api.stats(namespace).revision == revision


def test_retries_that_overtake_each_other_write_once_and_are_answered_alike(user: User) -> None:
    def at_once(call: Callable[[Any], Any], request: Any) -> Any:
        answers = list(threads.map(lambda _: call(request), range(10)))
        assert all(told(answer) == told(answers[0]) for answer in answers)
        return answers[0]

    with ThreadPoolExecutor(10) as threads:
        for turn in range(20):
            save = pb.SaveMemoryRequest(
                namespace=user.namespace,
                content=f"I once owned {turn + 2} boats",
                category=IDENTITY,
                reasoning=REASONING,
                request_id=f"save-{turn}",
            )
            memory = at_once(user.service.SaveMemory, save).memory
            memory.content += " on a lake"
            update = pb.UpdateMemoryRequest(
                namespace=user.namespace, memory=memory, expected_version=1, request_id=f"update-{turn}"
            )
            update.update_mask.paths.append("content")
            assert at_once(user.service.UpdateMemory, update).memory.version == 2
            delete = pb.DeleteMemoryRequest(
                namespace=user.namespace, id=memory.id, expected_version=2, request_id=f"delete-{turn}"
            )
            assert at_once(user.service.DeleteMemory, delete).removed_count == 1
    assert user.memories(include_history=True) == []


def test_a_request_id_with_another_body_is_refused(user: User) -> None:
    user.save("User prefers dark mode", request_id="r")
    request = pb.SaveMemoryRequest(
        namespace=user.namespace,
        content="User prefers light mode",
        category=PREFERENCE,
        reasoning=REASONING,
        request_id="r",
    )
    found = refusal(user.service.SaveMemory, request)
    assert found.reason == "REQUEST_ID_REUSED"


def test_a_crash_leaves_both_changes_of_a_contradiction_or_none(
    tmp_path: Path, connect: Connect, namespace: str
) -> None:
    acknowledged: list[str] = []
    with ServerProcess(tmp_path) as server:
        user = User(connect(server), namespace)
        enough = threading.Event()

        def move() -> None:
            for turn in range(10_000):
                content = f"User lives in City{turn:04d}"
                try:
                    user.save(content, IDENTITY)
                except grpc.RpcError:
                    return
                acknowledged.append(content)
                if turn == 30:
                    enough.set()

        mover = threading.Thread(target=move)
        mover.start()
        assert enough.wait(60)
        server.kill()
        mover.join()
    with ServerProcess(tmp_path) as server:
        user = User(connect(server), namespace)
        history = user.memories(include_history=True, page_size=1000)
        contents = [memory.content for memory in history]
        assert contents[: len(acknowledged)] == acknowledged
        assert len(contents) <= len(acknowledged) + 1
        assert [m.superseded_by for m in history] == [*(m.id for m in history[1:]), ""]
        assert user.memories() == history[-1:]


def test_export_and_import_keep_the_memories(user: User) -> None:
    chain(user)
    source = pb.MemorySource(session_id="s", quote="dark", actor="agent")
    user.save("Remember that I prefer dark mode", source=source, labels={"a": "b"})
    exported = user.api.memory.Export(memory_pb2.ExportRequest(namespace=user.namespace))
    items = [record.item for record in exported]
    copy = User(user.api, f"{user.namespace}/copy")
    user.api.memory.Import(iter([memory_pb2.ImportRequest(namespace=copy.namespace, items=items)]))
    before, after = (u.memories(include_history=True) for u in (user, copy))
    for memory in [*before, *after]:
        # Revisions and times of writes belong to the namespace.
        memory.ClearField("revision")
        memory.ClearField("update_time")
    # An export is ordered by the last writes.
    assert sorted(after, key=lambda m: m.id) == sorted(before, key=lambda m: m.id)
    assert copy.found("Where does the user live?")[0] == "User lives in Rome"
    assert copy.save("User prefers dark mode.").outcome == DUPLICATE
    assert copy.save("I live in Oslo", IDENTITY).outcome == SUPERSEDED
