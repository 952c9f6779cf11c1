"""Files are found as documents are: the same pieces of the same texts, in the same order."""

from __future__ import annotations

import random

from file_api import Drive
from grpc_api import Api
from knowledge_api import Library
from memory_service.v1 import knowledge_pb2

TEXTS = 50
QUERIES = 50
SEED = 7
_SYLLABLES = ("ba", "do", "ki", "lu", "me", "no", "ra", "si", "tu", "ve")


def _texts(chance: random.Random) -> list[str]:
    """Return texts of 1 or 2 paragraphs, of words that are frequent, rare or in one text only."""
    words = ["".join(chance.choices(_SYLLABLES, k=3)) for _ in range(300)]
    weights = [1 / (rank + 1) for rank in range(len(words))]
    texts = []
    for number in range(TEXTS):
        paragraphs = [
            " ".join(chance.choices(words, weights, k=chance.randint(30, 250))) + f" only{number}{part}."
            for part in range(chance.randint(1, 2))
        ]
        texts.append("\n\n".join(paragraphs))
    return texts


def test_files_and_documents_of_the_same_texts_are_found_alike(api: Api, namespace: str) -> None:
    chance = random.Random(SEED)
    texts = _texts(chance)
    drive, library = Drive(api, f"{namespace}-files"), Library(api, f"{namespace}-documents")
    for number, text in enumerate(texts):
        drive.write(f"/notes/{number:02}.md", text)
        library.add(f"{number:02}", text, split=knowledge_pb2.SplitOptions())
    pieces = 0
    for number in range(QUERIES):
        query = " ".join(chance.sample(chance.choice(texts).split(), 4))
        results = library.search(query, limit=10).results
        found = [(result.fragment.document_id, result.fragment.text) for result in results]
        hits = drive.search(query, limit=10, path=("/", "/notes")[number % 2])
        assert [(hit.path[-5:-3], hit.text) for hit in hits] == found
        pieces += len(found)
    assert pieces > 5 * QUERIES
