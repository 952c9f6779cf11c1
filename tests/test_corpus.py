"""The corpus of tests/vectors, through the server's stubs and through each client."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import corpus
from corpus import ROOT, Case, Failed
from corpus_peers import Connect, Peer, PeerFailed, ProcessPeer, StubPeer
from corpus_servers import Servers

CASES = corpus.load()
PEERS = ("server", "python", "python-async", "go", "typescript")
# The language that a peer is written in, whose list of left-out cases counts for it.
LANGUAGES = {"python": "python", "python-async": "python", "go": "go", "typescript": "typescript"}
_GO = ROOT / "clients" / "go"
_GO_PEER = ROOT / "build" / "bin" / "go-peer"
_TYPESCRIPT = ROOT / "clients" / "typescript"
_TYPESCRIPT_PEER = _TYPESCRIPT / "build" / "test" / "peer.js"
_BUILD_S = 170


def left_out(peer: str) -> dict[str, str]:
    """The cases that a peer cannot run, by label, each with the reason."""
    if peer not in LANGUAGES:
        return {}
    path = ROOT / "clients" / LANGUAGES[peer] / "corpus-left-out.json"
    return json.loads(path.read_text(encoding="utf-8"))


class Peers:
    """The peers of a run: one for each server, but for servers that are a case's own."""

    def __init__(self) -> None:
        self._connects: dict[str, Connect] = {}
        self._unbuilt: dict[str, BaseException] = {}
        self._open: dict[tuple[str, str], Peer] = {}

    def get(self, name: str, address: str) -> Peer:
        """The peer of this name for a server, started if need be."""
        found = self._open.get((name, address))
        if found is None:
            found = self._open[name, address] = self._connect(name)(address)
        return found

    def _connect(self, name: str) -> Connect:
        """What makes peers of a name; what cannot be built is tried once."""
        if name in self._unbuilt:
            raise self._unbuilt[name]
        if name not in self._connects:
            try:
                self._connects[name] = _connect(name)
            except (pytest.skip.Exception, pytest.fail.Exception) as outcome:
                self._unbuilt[name] = outcome
                raise
        return self._connects[name]

    def drop(self, name: str, address: str) -> None:
        """Ends a peer: its server is gone, or it has failed."""
        peer = self._open.pop((name, address), None)
        if peer is not None:
            peer.close()

    def close(self) -> None:
        """Ends all peers."""
        for name, address in list(self._open):
            self.drop(name, address)


def _connect(name: str) -> Connect:
    """What makes peers of a name; builds their program first. Skips where its toolchain is missing."""
    if name == "server":
        return StubPeer
    if name in ("python", "python-async"):
        python_peers = importlib.import_module("python_peers")
        return python_peers.SyncPeer if name == "python" else python_peers.AsyncPeer
    if name == "go":
        _need("go", "the Go client's peer is built with it")
        _build("go", "build", "-o", str(_GO_PEER), "./internal/peer", folder=_GO)
        return partial(ProcessPeer, [str(_GO_PEER)])
    _need("npm", "the TypeScript client's peer is built with it")
    if not (_TYPESCRIPT / "node_modules").exists():
        _build("npm", "ci", "--no-audit", "--no-fund", folder=_TYPESCRIPT)
    _build("npm", "run", "--silent", "build:test", folder=_TYPESCRIPT)
    return partial(ProcessPeer, ["node", str(_TYPESCRIPT_PEER)])


def _need(program: str, why: str) -> None:
    if shutil.which(program) is None:
        missing = f"no {program}: {why}"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)


def _build(*command: str, folder: Path) -> None:
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_BUILD_S)
    if built.returncode:
        pytest.fail(f"{' '.join(command)}:\n{built.stdout[-3000:]}{built.stderr[-3000:]}")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """The servers of the run."""
    servers = Servers(lambda: tmp_path_factory.mktemp("corpus"))
    yield servers
    servers.close()


@pytest.fixture(scope="module")
def peers(servers: Servers) -> Iterator[Peers]:
    """The peers of the run, which end before their servers."""
    peers = Peers()
    yield peers
    peers.close()


def _run(case: Case, name: str, servers: Servers, peers: Peers) -> None:
    server = servers.get(case.server)
    try:
        peer = peers.get(name, server.address)
        names = {"namespace": f"case-{uuid.uuid4().hex[:12]}"}
        try:
            corpus.run(case, peer.call, server.deed, names)
        except PeerFailed:
            peers.drop(name, server.address)
            raise
    finally:
        if case.server.own:
            peers.drop(name, server.address)
            server.close()


@pytest.mark.parametrize("case", CASES, ids=[case.label for case in CASES])
@pytest.mark.parametrize("peer", PEERS)
def test_every_implementation_answers_alike(peer: str, case: Case, servers: Servers, peers: Peers) -> None:
    reason = left_out(peer).get(case.label)
    if reason is None:
        _run(case, peer, servers, peers)
        return
    try:
        _run(case, peer, servers, peers)
    except Failed:
        pytest.xfail(reason)
    pytest.fail(f"{case.label} is left out ({reason}), and passes: take it from the list")


@pytest.mark.parametrize("peer", LANGUAGES)
def test_what_is_left_out_exists_and_says_why(peer: str) -> None:
    listed = left_out(peer)
    assert listed.keys() - {case.label for case in CASES} == set()
    assert [label for label, reason in listed.items() if len(reason) < 10] == []
