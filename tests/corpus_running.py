"""The peers of a run: their programs built once, and one peer for each server."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from corpus_peers import Connect, Peer, ProcessPeer, StubPeer
from python_peers import AsyncPeer, SyncPeer
from toolchain import ROOT, leave_out, run, tool

CLIENTS = ("python", "python-async", "go", "typescript")
PEERS = ("server", *CLIENTS)
_GO = ROOT / "clients" / "go"
_TYPESCRIPT = ROOT / "clients" / "typescript"
_BUILD_S = 170


class PeerPrograms:
    """What makes peers, by name. Programs are built when they are first asked for.

    They are built outside of the checkout: other tests build there, perhaps at the same time.
    """

    def __init__(self, new_folder: Callable[[str], Path]) -> None:
        self._new_folder = new_folder
        self._connects: dict[str, Connect] = {
            "server": StubPeer,
            "python": SyncPeer,
            "python-async": AsyncPeer,
        }
        self._unbuilt: dict[str, BaseException] = {}

    def get(self, name: str) -> Connect:
        """Return the factory of a peer; a failed build is not repeated. Skips without the toolchain."""
        if name in self._unbuilt:
            raise self._unbuilt[name]
        if name not in self._connects:
            try:
                command = {"go": self._build_go, "typescript": self._build_typescript}[name]()
            except (pytest.skip.Exception, pytest.fail.Exception) as outcome:
                self._unbuilt[name] = outcome
                raise
            self._connects[name] = partial(ProcessPeer, command)
        return self._connects[name]

    def _build_go(self) -> list[str]:
        program = self._new_folder("go-peer") / "peer"
        run([tool("go"), "build", "-o", str(program), "./internal/peer"], _GO, timeout_s=_BUILD_S)
        return [str(program)]

    def _build_typescript(self) -> list[str]:
        node = tool("node")
        if not (_TYPESCRIPT / "node_modules").is_dir():
            leave_out("the packages of the TypeScript client are not installed: run make test")
        folder = self._new_folder("typescript-peer")
        (folder / "node_modules").symlink_to(_TYPESCRIPT / "node_modules")
        shutil.copy(_TYPESCRIPT / "package.json", folder)
        # The types are checked with the client's own tests.
        compiler = [node, "node_modules/typescript/bin/tsc", "-p", "tsconfig.test.json", "--noCheck"]
        run([*compiler, "--outDir", str(folder)], _TYPESCRIPT, timeout_s=_BUILD_S)
        return [node, str(folder / "test" / "peer.js")]


class Peers:
    """The peers of a run: one for each server, except servers that belong to a case."""

    def __init__(self, programs: PeerPrograms) -> None:
        self._programs = programs
        self._open: dict[tuple[str, str], Peer] = {}

    def get(self, name: str, address: str) -> Peer:
        """The peer of this name for a server, started if need be."""
        found = self._open.get((name, address))
        if found is None:
            found = self._open[name, address] = self._programs.get(name)(address)
        return found

    def drop(self, name: str, address: str) -> None:
        """Ends a peer: its server is gone, or it has failed."""
        peer = self._open.pop((name, address), None)
        if peer is not None:
            peer.close()

    def close(self) -> None:
        """Ends all peers."""
        for name, address in list(self._open):
            self.drop(name, address)
