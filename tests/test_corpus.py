"""The corpus of tests/vectors, through the server's stubs and through each client."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator

import pytest

import corpus
from corpus import ROOT, Case, Failed
from corpus_peers import PeerFailed
from corpus_running import PEERS, PeerPrograms, Peers
from corpus_servers import Servers

CASES = corpus.load()
# The language that a peer is written in, whose list of left-out cases counts for it.
LANGUAGES = {"python": "python", "python-async": "python", "go": "go", "typescript": "typescript"}


def left_out(peer: str) -> dict[str, str]:
    """The cases that a peer cannot run, by label, each with the reason."""
    if peer not in LANGUAGES:
        return {}
    path = ROOT / "clients" / LANGUAGES[peer] / "corpus-left-out.json"
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """The servers of the run."""
    servers = Servers(lambda: tmp_path_factory.mktemp("corpus"))
    yield servers
    servers.close()


@pytest.fixture(scope="module")
def peers(peer_programs: PeerPrograms, servers: Servers) -> Iterator[Peers]:
    """The peers of the run, which end before their servers."""
    peers = Peers(peer_programs)
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
