"""The peers of a run: built once, and one for each server."""

from __future__ import annotations

import subprocess
from functools import partial
from pathlib import Path

import pytest

from corpus_peers import Connect, Peer, ProcessPeer, StubPeer
from python_peers import AsyncPeer, SyncPeer
from toolchain import BUILT, ROOT, leave_out, tool

CLIENTS = ("python", "python-async", "go", "typescript")
PEERS = ("server", *CLIENTS)
_GO = ROOT / "clients" / "go"
_GO_PEER = BUILT / "go-peer"
_TYPESCRIPT = ROOT / "clients" / "typescript"
_TYPESCRIPT_PEER = _TYPESCRIPT / "build" / "test" / "peer.js"
_BUILD_S = 170


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
        return SyncPeer if name == "python" else AsyncPeer
    if name == "go":
        _build(tool("go"), "build", "-o", str(_GO_PEER), "./internal/peer", folder=_GO)
        return partial(ProcessPeer, [str(_GO_PEER)])
    npm = tool("npm")
    if not (_TYPESCRIPT / "node_modules").is_dir():
        leave_out("the packages of the TypeScript client are not installed: run make test")
    _build(npm, "run", "--silent", "build:test", folder=_TYPESCRIPT)
    return partial(ProcessPeer, ["node", str(_TYPESCRIPT_PEER)])


def _build(*command: str, folder: Path) -> None:
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_BUILD_S)
    if built.returncode:
        pytest.fail(f"{' '.join(command)}:\n{built.stdout[-3000:]}{built.stderr[-3000:]}")
