"""The next query finds every acknowledged write, while the index changes underneath."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import Any

from grpc_api import Api, struct
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

WRITES = 1000
LEXICAL, VECTOR = pb.RETRIEVE_MODE_LEXICAL, pb.RETRIEVE_MODE_VECTOR
TOPICS = ("the garden at noon", "a train to the coast", "tea with her sister", "the letter from the bank")


def unique_words() -> Iterator[str]:
    """Yield words that no other text has, and that share no stem."""
    for letters in product("bdfgklmnprt", "aeiou", "bdfgklmnprt", "aou", "kmpt"):
        yield "zy" + "".join(letters)


def best(api: Api, namespace: str, asked: Sequence[dict[str, Any]]) -> list[str]:
    """Return the id of the best result of each query, all concurrent; empty if nothing was found."""
    calls = [
        api.memory.Retrieve.future(
            pb.RetrieveRequest(namespace=namespace, options=pb.RetrieveOptions(limit=3, **options))
        )
        for options in asked
    ]
    answers = [call.result() for call in calls]
    assert [answer.degraded for answer in answers if answer.degraded] == []
    return [answer.results[0].item.id if answer.results else "" for answer in answers]


def missed(api: Api, namespace: str, item: pb.MemoryItem, word: str) -> list[str]:
    """Return the kinds of queries for an item that do not return it first."""
    part = {"part": item.labels["part"]}
    alone = f"metadata.number = {item.metadata['number']}"
    embedding = api.get(namespace, item.id, include_embedding=True).embedding
    asked: dict[str, dict[str, Any]] = {
        "word": {"query_text": word, "mode": LEXICAL},
        "word in a label": {"query_text": word, "mode": LEXICAL, "labels": part},
        "vector": {"query_embedding": embedding, "mode": VECTOR},
        "vector in a label": {"query_embedding": embedding, "mode": VECTOR, "labels": part},
        "word in a filter": {"query_text": word, "mode": LEXICAL, "filter": alone},
        "vector in a filter": {"query_embedding": embedding, "mode": VECTOR, "filter": alone},
        "word and vector": {"query_text": word, "query_embedding": embedding},
        "its text, in its session": {"query_text": item.text, "session_id": item.session_id},
    }
    found = best(api, namespace, list(asked.values()))
    return [how for how, first in zip(asked, found, strict=True) if first != item.id]


def add(api: Api, namespace: str, number: int, word: str) -> pb.MemoryItem:
    """Add an item with this word."""
    text = f"{TOPICS[number % len(TOPICS)]} {word}"
    return api.add(
        namespace,
        text=text,
        labels={"part": str(number % 5)},
        metadata=struct({"number": number}),
        session_id=f"session-{number // 20}",
    )


def change(api: Api, namespace: str, item: pb.MemoryItem, word: str) -> pb.MemoryItem:
    """Replace an item's text by one with this word."""
    changed = pb.MemoryItem(id=item.id, text=f"no longer {item.text.rsplit(' ', 1)[0]} but {word}")
    return api.memory.Update(pb.UpdateRequest(namespace=namespace, item=changed)).item


def test_every_write_is_found_by_the_next_query(graph_server: ServerProcess, namespace: str) -> None:
    """One write in ten changes the previous item, one deletes the changed item; the others add."""
    api = Api.connect(graph_server.address)
    wrong: dict[int, list[str]] = {}
    kinds = set()
    item, word = pb.MemoryItem(), ""
    for number, new_word in enumerate(islice(unique_words(), WRITES)):
        if number % 10 == 9:
            api.memory.Delete(pb.DeleteRequest(namespace=namespace, id=item.id))
            still = best(api, namespace, [{"query_text": word, "mode": LEXICAL}, {"query_text": item.text}])
            wrong[number] = ["deleted"] if still[0] or still[1] == item.id else []
            kinds.add(api.stats(namespace).index.kind)
            continue
        item_before, word_before = item, word
        word = new_word
        if number % 10 == 8:
            item = change(api, namespace, item_before, word)
            old = best(api, namespace, [{"query_text": word_before, "mode": LEXICAL}])
            wrong[number] = missed(api, namespace, item, word) + ["the old word"] * bool(old[0])
        else:
            item = add(api, namespace, number, word)
            wrong[number] = missed(api, namespace, item, word)
    api.channel.close()
    assert {number: how for number, how in wrong.items() if how} == {}
    assert kinds == {"exact", "hnsw"}, "it was asked before and after the graph was built"
