"""Searches of facts, interactions and fragments leave out untrusted entries and those of other sources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from credentials import Client, connect, keys_in
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess
from test_trusted_lists import LISTS

FACT = {"category": 2, "reasoning": "A lasting preference", "keep_wording": True}
SEARCHES = {
    "SearchMemories": "facts",
    "RetrieveRelevantContext": "interactions",
    "SearchFragments": "documents",
}
USER, AGENT, DERIVED, DOCUMENT = (
    pb.SOURCE_KIND_USER, pb.SOURCE_KIND_AGENT, pb.SOURCE_KIND_DERIVED, pb.SOURCE_KIND_DOCUMENT,
)  # fmt: skip


@dataclass
class Writers:
    """Ada is trusted fully, Mallory a little."""

    ada: Client
    mallory: Client

    def search(self, name: str, **fields: Any) -> Any:
        return self.ada.call(name, namespace="ns", query="what do herons like?", **fields)

    def texts(self, name: str, **fields: Any) -> set[str]:
        """Return the contents of a search's results."""
        found = set()
        for result in self.search(name, **fields).results:
            one = getattr(
                result, {"SearchMemories": "memory", "SearchFragments": "fragment"}.get(name, "interaction")
            )
            found.add(one.text if name == "SearchFragments" else one.content)
        return found


@pytest.fixture(scope="module")
def writers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Writers]:
    folder = tmp_path_factory.mktemp("data")
    keys = keys_in(folder)
    ada, mallory = keys.token("ada"), keys.token("mallory", trust=0.25)
    with ServerProcess(folder, flags=["--auth", "keys"]) as process:
        client = connect(process.address, ada)
        writers = Writers(client, client.presenting(mallory))
        for name, writer in (("ada", writers.ada), ("mallory", writers.mallory)):
            likes = "small fish" if name == "ada" else "cold tea"
            writer.call("SaveMemory", namespace="ns", content=f"User says herons like {likes}", **FACT)
            writer.call(
                "StoreInteraction", namespace="ns", id=name, sender=name, content=f"herons like {likes}"
            )
            writer.call("StoreReflection", namespace="ns", content=f"herons may like {likes}")
            document = {"id": f"of {name}", "text": f"Herons like {likes}."}
            writer.call("AddDocument", namespace="ns", document=document)
        answer = "yes, herons like tea"
        writers.ada.call("StoreResponse", namespace="ns", in_response_to="mallory", content=answer)
        yield writers
        client.channel.close()


@pytest.mark.parametrize("name", SEARCHES)
def test_what_is_not_trusted_is_left_out(writers: Writers, name: str) -> None:
    everything = writers.texts(name)
    assert any("cold tea" in text for text in everything)
    trusted = writers.texts(name, min_trust=0.5)
    assert trusted == {text for text in everything if "cold tea" not in text}
    assert any("small fish" in text for text in trusted)
    assert writers.texts(name, min_trust=0.25) == everything


@pytest.mark.parametrize(
    ("name", "source", "count"),
    [
        ("SearchMemories", DERIVED, 0),
        ("SearchMemories", pb.SOURCE_KIND_UNSPECIFIED, 2),
        ("RetrieveRelevantContext", USER, 2),
        ("RetrieveRelevantContext", AGENT, 1),
        ("RetrieveRelevantContext", DERIVED, 2),
        ("SearchFragments", DOCUMENT, 2),
        ("SearchFragments", USER, 0),
    ],
)
def test_only_what_comes_from_there_is_found(writers: Writers, name: str, source: int, count: int) -> None:
    assert len(writers.texts(name, sources=[source])) == count
    both = writers.texts(name, sources=[source], min_trust=0.5)
    assert len(both) == len(
        [text for text in writers.texts(name, sources=[source]) if "cold tea" not in text]
    )


def test_an_answer_comes_without_the_message_that_is_not_trusted(writers: Writers) -> None:
    def originals(**fields: Any) -> list[str]:
        results = writers.search("RetrieveRelevantContext", **fields).results
        return [r.interaction.original_message.content for r in results if "yes" in r.interaction.content]

    assert originals() == ["herons like cold tea"]
    assert originals(min_trust=0.5) == [""]
    assert originals(sources=[AGENT]) == [""]
    assert originals(sources=[AGENT, USER]) == ["herons like cold tea"]


@pytest.mark.parametrize("name", [*SEARCHES, *LISTS])
def test_wrong_trust_and_unknown_sources_are_refused(writers: Writers, name: str) -> None:
    asked = {"query": "x"} if name in SEARCHES else {}
    for fields, field in (
        ({"min_trust": 1.1}, "min_trust"),
        ({"min_trust": -0.1}, "min_trust"),
        ({"min_trust": float("nan")}, "min_trust"),
        ({"sources": [99]}, "sources"),
    ):
        refusal = writers.ada.refused(name, namespace="ns", **asked, **fields)
        assert (refusal.reason, refusal.fields) == ("INVALID_FIELD", (field,))


@pytest.mark.parametrize("name", ["SearchMemories", "SearchFragments"])
def test_a_page_token_is_good_for_the_same_trust_only(writers: Writers, name: str) -> None:
    first = writers.search(name, page_size=1, min_trust=0.25)
    assert first.next_page_token
    assert (
        len(writers.search(name, page_size=1, min_trust=0.25, page_token=first.next_page_token).results) == 1
    )
    for other in ({}, {"min_trust": 0.2}, {"min_trust": 0.25, "sources": [DERIVED]}):
        fields = {"query": "what do herons like?", "page_size": 1, "page_token": first.next_page_token}
        assert writers.ada.refused(name, namespace="ns", **fields, **other).reason == "INVALID_PAGE_TOKEN"


def test_a_context_of_many_pages_is_trusted_to_the_end(tmp_path: Path) -> None:
    with ServerProcess(flags=["--store", "memory"]) as process:
        client = connect(process.address)
        for n in range(30):
            client.call("StoreInteraction", namespace="ns", id=f"i{n}", sender="ada", content=f"herons {n}")
        asked = {"query": "herons", "exclude_ids": [f"i{n}" for n in range(29)], "min_trust": 1.0}
        answer = client.call("RetrieveRelevantContext", namespace="ns", interaction_limit=1, **asked)
        assert [result.interaction.id for result in answer.results] == ["i29"]
        client.channel.close()
