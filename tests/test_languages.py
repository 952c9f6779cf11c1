"""The clients together: each reads what the others wrote, across restarts and in large amounts."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from corpus_peers import Peer, ProcessPeer, StubPeer
from corpus_running import CLIENTS, PeerPrograms, Peers
from memory_client import MemoryClient, MemoryItem
from server_process import ServerProcess

MANY = 20_000
_TEXT_BYTES = 5000
# What a client may grow by while it goes through 100 MB: pages, and garbage that is not yet collected.
_GROWTH_BYTES_MAX = 64 * 1024 * 1024

PARTS: list[dict[str, Any]] = [
    {"text": "naïve 漢字 🦜 e\u0301 \u202eright to left\u202c\ttab\nline"},
    {"text": ""},
    {"text": "9007199254740993"},
    {"data": {"id": "9007199254740993", "deep": [1.5, None, True, {"k": ""}, []], "": {}, "big": 1e300}},
    {"data": {}},
    {"binary": {"name": "p.png", "mimeType": "image/png", "content": "AP8AcG5n", "contentLength": "6"}},
    {"binary": {"url": "https://example.com/p.png", "mimeType": "image/png", "contentLength": "-1"}},
    {"binary": {"name": "", "url": "", "contentLength": "0"}},
    {"toolCall": {"toolCallId": "call-1", "name": "search", "arguments": {"q": "tea", "n": 3}}},
    {"toolCall": {"name": "bare", "arguments": {}}},
    {"toolCall": {"name": "none"}},
    {"toolCallResult": {"toolCallId": "call-1", "name": "search", "result": {"hits": []}}},
    {"toolCallResult": {"name": "null", "result": None}},
    {"toolCallResult": {"name": "none", "isError": True}},
]

ITEMS: list[dict[str, Any]] = [
    {
        "id": "everything",
        "sessionId": "trip",
        "createTime": "2026-01-02T03:04:05.123457Z",
        "expireTime": "2999-12-31T23:59:59.999999Z",
        "labels": {"topic": "tea", "ünï": "", "k" * 64: "v" * 256},
        "metadata": {"nested": {"list": [1, 2.25, "x", None, False]}, "empty": {}},
        "chatMessage": {
            "messageId": "m-1",
            "role": "ROLE_ASSISTANT",
            "name": "Ada",
            "model": {"provider": "openai", "id": "gpt-5"},
            "createTime": "1999-12-31T23:59:59.000001Z",
            "parts": PARTS,
        },
    },
    {"id": "empty name", "chatMessage": {"role": "ROLE_TOOL", "name": "", "parts": [{"text": "x"}]}},
    {"id": "no name", "chatMessage": {"role": "ROLE_SYSTEM", "parts": [{"text": "x"}]}},
    {"id": "no parts", "chatMessage": {"role": "ROLE_USER"}},
    {"id": "text", "text": "9007199254740993 \u0000".rstrip("\u0000") + "é"},
    {"id": "data", "data": {"a": {"b": [{"c": -0.5}]}, "t": "2026-01-02T03:04:05Z"}},
    {"id": "result", "toolCallResult": {"toolCallId": "c", "name": "weather", "result": ["sunny", 21.5]}},
    {"id": "before the epoch", "createTime": "1969-07-20T20:17:40.000001Z", "text": "landed"},
]


@pytest.fixture(scope="module")
def peers(peer_programs: PeerPrograms) -> Iterator[Peers]:
    """The clients' peers."""
    peers = Peers(peer_programs)
    yield peers
    peers.close()


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> str:
    """Each client in turn."""
    return str(request.param)


def listed(peer: Peer, namespace: str) -> list[dict[str, Any]]:
    answer = peer.call({"call": "MemoryService/List", "request": {"namespace": namespace}})
    items = answer["response"]["items"]
    # Missing metadata and empty metadata are the same.
    return [{k: v for k, v in item.items() if (k, v) != ("metadata", {})} for item in items]


def test_what_one_writes_every_other_reads(
    client: str, server: ServerProcess, peers: Peers, namespace: str
) -> None:
    request = {"namespace": namespace, "items": ITEMS}
    written = peers.get(client, server.address).call({"call": "MemoryService/BatchAdd", "request": request})
    assert "response" in written, written
    stored = listed(StubPeer(server.address), namespace)
    for item, sent in zip(stored, ITEMS, strict=True):
        assert {field: item.get(field) for field in sent} == sent
    for reader in CLIENTS:
        assert listed(peers.get(reader, server.address), namespace) == stored, reader


def test_a_restart_reaches_no_caller_and_nothing_is_written_twice(tmp_path: Path, peers: Peers) -> None:
    count = 120
    begun = threading.Barrier(len(CLIENTS) + 1, timeout=120)

    def write(name: str, address: str) -> list[dict[str, Any]]:
        peer, failed = peers.get(name, address), []
        for n in range(count):
            if n == count // 3:
                begun.wait()
            item = {"text": f"item {n}"}
            for call, request in (
                ("MemoryService/Add", {"namespace": name, "item": item}),
                ("StateService/SaveState", {"namespace": name, "key": "step", "value": n}),
                ("MemoryService/Retrieve", {"namespace": name, "options": {"limit": 1}}),
            ):
                answer = peer.call({"call": call, "request": request})
                if "response" not in answer:
                    failed.append(answer)
        return failed

    first = ServerProcess(tmp_path, flags=["--embedder", "none"]).start()
    for name in CLIENTS:
        peers.get(name, first.address)  # Built before any client starts its timeouts.
    with ThreadPoolExecutor(len(CLIENTS)) as pool:
        writing = {name: pool.submit(write, name, first.address) for name in CLIENTS}
        begun.wait()
        first.terminate()
        again = ["--embedder", "none", "--address", first.address]
        with ServerProcess(tmp_path, flags=again) as second:
            assert {name: writer.result(timeout=150) for name, writer in writing.items()} == {
                name: [] for name in CLIENTS
            }
            for name in CLIENTS:
                stub = StubPeer(second.address)
                request = {"namespace": name, "pageSize": 1000}
                items = stub.call({"call": "MemoryService/List", "request": request})["response"]["items"]
                assert [item["text"] for item in items] == [f"item {n}" for n in range(count)]
                state = {"namespace": name, "key": "step"}
                entry = stub.call({"call": "StateService/LoadState", "request": state})["response"]["entry"]
                assert (entry["version"], entry["value"]) == (str(count), count - 1)


@pytest.fixture(scope="module")
def full_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with a namespace "many" of 100 MB."""
    with ServerProcess(tmp_path_factory.mktemp("many"), flags=["--embedder", "none"]) as server:
        with MemoryClient(server.address, namespace="many") as writer:
            ballast = {"ballast": "x" * _TEXT_BYTES}
            writer.import_items(MemoryItem(content=f"item {n}", metadata=ballast) for n in range(MANY))
        yield server


@pytest.mark.parametrize("by", ["list", "retrieve"])
def test_everything_comes_and_in_order(
    client: str, by: str, full_server: ServerProcess, peers: Peers
) -> None:
    peer = peers.get(client, full_server.address)
    # Once with little data, so that memory for what is loaded once does not count.
    peer.call({"call": "Iterate", "request": {"namespace": "nobody", "by": by}})
    pid = peer.pid if isinstance(peer, ProcessPeer) else os.getpid()
    before = restarted_peak_bytes(pid)
    answer = peer.call({"call": "Iterate", "request": {"namespace": "many", "by": by}})
    last = f"item {MANY - 1}"
    assert answer == {"response": {"count": MANY, "first": "item 0", "last": last, "ordered": True}}
    if by == "list":
        assert peak_bytes(pid) - before < _GROWTH_BYTES_MAX


def restarted_peak_bytes(pid: int) -> int:
    """Reset the peak of a process's memory and return what it has now."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return peak_bytes(pid)


def peak_bytes(pid: int) -> int:
    """Return the peak of a process's resident memory."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024
