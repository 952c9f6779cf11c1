"""Items to store: short messages like those that people write to an assistant."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from google.protobuf.timestamp_pb2 import Timestamp

from benchmarks.settings import IMPORT_BATCH, LIMIT
from benchmarks.vectors import Vectors
from memory_service.v1 import memory_pb2

_FIRST_SECOND = 1_700_000_000
_OPENINGS = (
    "I told you that {who}",
    "By the way, {who}",
    "Please remember that {who}",
    "It turns out {who}",
    "Yesterday {who}",
    "Last {month} {who}",
    "Did I mention that {who}",
    "{who}'s sister says {who}",
)
_DEEDS = (
    "booked a {quality} {thing} in {place}",
    "stopped eating {food} because of an allergy",
    "prefers {food} over {food2} for breakfast",
    "is learning {skill} with a {quality} teacher",
    "moved from {place} to {place2}",
    "has to renew the {thing} before the {day}th of {month}",
    "lost the {thing} on the way to {place}",
    "wants to paint the {thing} {colour}",
    "started a new job at the {work} in {place}",
    "is training for the {place} marathon in {month}",
)
_ENDINGS = (
    "and asked me to keep it quiet until {month}.",
    "so we should change the plan for {month} {day}.",
    "which cost {amount} euros in the end.",
    "and it went better than expected!",
    "but the {work} never answered the letter.",
    "because {who2} recommended it last year.",
    "and I would like to do the same.",
    "so remind me to bring {food} next time.",
)
_WORDS = {
    "who": "Ada Ben Chloe Dmitri Elena Farid Grace Hiro Ines Jonas Kemi Liam Nadia Omar Priya Quentin Rosa",
    "month": "January February March April May June July August September October November December",
    "quality": "cheap quiet sunny patient strict famous tiny spacious reliable friendly modern old",
    "thing": "flat passport bicycle guitar kitchen garden ticket laptop licence insurance boat camera",
    "place": "Lisbon Oslo Nairobi Kyoto Toronto Porto Leipzig Lagos Hanoi Quito Dublin Tbilisi Perth Lyon",
    "food": "peanuts rye-bread tofu oranges lentils goat-cheese espresso porridge mussels mangoes walnuts",
    "skill": "Portuguese welding chess pottery sailing calculus juggling Morse-code gardening the-violin",
    "colour": "green turquoise dark-red yellow white ochre violet grey",
    "work": "hospital bakery harbour university observatory library shipyard theatre bank museum",
}
_CHOICES = {name: [word.replace("-", " ") for word in words.split()] for name, words in _WORDS.items()}


def text(number: int) -> str:
    """Return the text of an item; the same number gives the same text."""
    rng = random.Random(number)
    values = {name: rng.choice(words) for name, words in _CHOICES.items()}
    values.update(
        who2=rng.choice(_CHOICES["who"]),
        place2=rng.choice(_CHOICES["place"]),
        food2=rng.choice(_CHOICES["food"]),
        day=str(rng.randint(1, 28)),
        amount=str(rng.randint(10, 9_999)),
    )
    template = " ".join((rng.choice(_OPENINGS), rng.choice(_DEEDS), rng.choice(_ENDINGS)))
    return template.format(**values)


def item(
    number: int, *, vector: Sequence[float] | None = None, with_id: bool = True
) -> memory_pb2.MemoryItem:
    """Return an item as a client adds it: a chat message of a session, with the writer's vector if given."""
    made = memory_pb2.MemoryItem(
        id=item_id(number) if with_id else "",
        session_id=f"session-{number // 20}",
        chat_message=memory_pb2.ChatMessage(
            role=memory_pb2.ROLE_USER, parts=[memory_pb2.Part(text=text(number))]
        ),
        create_time=Timestamp(seconds=_FIRST_SECOND + number),
    )
    if vector is not None:
        made.embedding.values.extend(vector)
    return made


def item_id(number: int) -> str:
    """Return the id of an item."""
    return f"item-{number:07d}"


def number_of(identifier: str) -> int:
    """Return the number of the item with this id."""
    return int(identifier.removeprefix("item-"))


def import_messages(namespace: str, count: int, vectors: Vectors | None, first: int = 0) -> Iterator[bytes]:
    """Return the messages of an Import of `count` items, ready to send; without vectors the server embeds."""
    for start in range(0, count, IMPORT_BATCH):
        rows = range(start, min(start + IMPORT_BATCH, count))
        batch = [item(first + row, vector=None if vectors is None else vectors[row].tolist()) for row in rows]
        yield memory_pb2.ImportRequest(namespace=namespace, items=batch).SerializeToString()


def retrieve_requests(namespace: str, queries: Vectors) -> list[bytes]:
    """Return one Retrieve by vector per query, ready to send."""
    return [
        memory_pb2.RetrieveRequest(
            namespace=namespace,
            options=memory_pb2.RetrieveOptions(
                limit=LIMIT, query_embedding=memory_pb2.Embedding(values=query.tolist())
            ),
        ).SerializeToString()
        for query in queries
    ]


def answered_item(number: int) -> memory_pb2.MemoryItem:
    """Return an item as a server does: with the fields that the server sets, without the vector."""
    made = item(number)
    made.update_time.CopyFrom(Timestamp(seconds=_FIRST_SECOND + number, nanos=123_456_000))
    made.revision = number + 1
    return made
