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
from server_stores import chosen_stores

CASES = corpus.load()
# Every client runs over the first store, the stubs alone over the others: clients cannot tell stores apart.
STORES = [store for store in chosen_stores() if store != "memory"] or ["hnsw"]


def _runs() -> Iterator[tuple[str, str, Case]]:
    """Yield every case for every client, and for other stores each case that does not choose its store."""
    yield from ((peer, STORES[0], case) for peer in PEERS for case in CASES)
    yield from (
        ("server", s, case) for s in STORES[1:] for case in CASES if "--store" not in case.server.flags
    )


RUNS = [
    pytest.param(*run, id=f"{run[0]}{'' if run[1] == STORES[0] else '-' + run[1]}-{run[2].label}")
    for run in _runs()
]
# The language of each peer; the language's list of left-out cases applies to it.
LANGUAGES = {"python": "python", "python-async": "python", "go": "go", "typescript": "typescript"}


def left_out(peer: str) -> dict[str, str]:
    """Return the cases that a peer cannot run, by label, each with the reason."""
    if peer not in LANGUAGES:
        return {}
    path = ROOT / "clients" / LANGUAGES[peer] / "corpus-left-out.json"
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """The servers of this run."""
    servers = Servers(lambda: tmp_path_factory.mktemp("corpus"))
    yield servers
    servers.close()


@pytest.fixture(scope="module")
def peers(peer_programs: PeerPrograms, servers: Servers) -> Iterator[Peers]:
    """The peers of this run, which end before their servers."""
    peers = Peers(peer_programs)
    yield peers
    peers.close()


def _run(case: Case, name: str, store: str, servers: Servers, peers: Peers) -> None:
    server = servers.get(case.server, store)
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


@pytest.mark.parametrize("peer, store, case", RUNS)
def test_every_implementation_answers_alike(
    peer: str, store: str, case: Case, servers: Servers, peers: Peers
) -> None:
    reason = left_out(peer).get(case.label)
    if reason is None:
        _run(case, peer, store, servers, peers)
        return
    try:
        _run(case, peer, store, servers, peers)
    except Failed:
        pytest.xfail(reason)
    pytest.fail(f"{case.label} is left out ({reason}), and passes: take it from the list")


@pytest.mark.parametrize("peer", LANGUAGES)
def test_what_is_left_out_exists_and_says_why(peer: str) -> None:
    listed = left_out(peer)
    assert listed.keys() - {case.label for case in CASES} == set()
    assert [label for label, reason in listed.items() if len(reason) < 10] == []
