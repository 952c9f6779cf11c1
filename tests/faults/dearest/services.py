"""The most expensive requests of the services built on items: interactions, facts, documents."""

from __future__ import annotations

from faults.dearest.world import KIB, LABELS, MANY_ITEMS, METADATA, MIB, TEXT, Dear, World, again
from memory_service.v1 import interaction_pb2, knowledge_pb2, memory_pb2
from memory_service.v1 import user_memory_pb2 as pb
from memory_service.v1 import user_memory_pb2_grpc as pb_grpc

_REASON = "It will matter in later conversations"


# --- interactions -----------------------------------------------------------------------------


def _conversation(world: World) -> str:
    """Return a namespace of messages with their responses, and reflections."""
    namespace = world.fresh()
    kinds = (memory_pb2.ITEM_KIND_MESSAGE, memory_pb2.ITEM_KIND_RESPONSE, memory_pb2.ITEM_KIND_REFLECTION)
    stub = world.interactions
    world.interactions.StoreInteraction(
        interaction_pb2.StoreInteractionRequest(
            namespace=namespace, id="m", sender="ada", content=world.text(TEXT)
        )
    )
    stub.StoreResponse(
        interaction_pb2.StoreResponseRequest(
            namespace=namespace, in_response_to="m", content=world.text(TEXT)
        )
    )
    stub.StoreReflection(
        interaction_pb2.StoreReflectionRequest(
            namespace=namespace, interaction_ids=["m"], content=world.text(TEXT)
        )
    )
    exported = [
        reply.item for reply in world.api.memory.Export(memory_pb2.ExportRequest(namespace=namespace))
        if reply.item.kind in kinds
    ]  # fmt: skip
    # Many at once, as in an import.
    for items in world.batches(MANY_ITEMS, lambda at: _copy(world, exported[at % 3], at)):
        world.api.memory.Import(iter([memory_pb2.ImportRequest(namespace=namespace, items=items)]))
    return namespace


def _copy(world: World, item: memory_pb2.MemoryItem, at: int) -> memory_pb2.MemoryItem:
    copied = memory_pb2.MemoryItem()
    copied.CopyFrom(item)
    copied.id = f"c{at}"
    for part in copied.chat_message.parts if copied.HasField("chat_message") else ():
        part.text = world.text(2000)
    if not copied.HasField("chat_message"):
        copied.text = world.text(2000)
    return copied


def _contexts(world: World) -> list[interaction_pb2.RetrieveRelevantContextRequest]:
    return again(
        interaction_pb2.RetrieveRelevantContextRequest(
            namespace=world.once(_conversation), query=world.most_words(),
            interaction_limit=100, reflection_limit=100,
            exclude_ids=[f"c{at}" for at in range(100)], max_tokens=1_000_000, explain=True,
        )
    )  # fmt: skip


def _last(world: World) -> list[interaction_pb2.RetrieveLastInteractionsRequest]:
    return again(
        interaction_pb2.RetrieveLastInteractionsRequest(
            namespace=world.once(_conversation), limit=1000, page_size=1000
        )
    )


_INTERACTION = {"labels": LABELS, "metadata": METADATA, "request_id": "r"}


def _responses(world: World) -> list[interaction_pb2.StoreResponseRequest]:
    """Return responses to a message that is named by its content."""
    namespace, said = world.fresh(), "x" * TEXT
    world.interactions.StoreInteraction(
        interaction_pb2.StoreInteractionRequest(namespace=namespace, sender="ada", content=said)
    )
    original = {"sender": "ada", "content": said}
    return [
        interaction_pb2.StoreResponseRequest(
            namespace=namespace, content=world.most_words(), original_message=original,
            labels=LABELS, metadata=METADATA, request_id=f"r{at}",
        )
        for at in range(5)
    ]  # fmt: skip


INTERACTIONS = {
    "StoreInteraction": [
        Dear(
            "many words",
            lambda w: [
                interaction_pb2.StoreInteractionRequest(
                    namespace=w.fresh(), sender="a" * 256, content=w.most_words(), **_INTERACTION
                )
                for _ in range(5)
            ],
        ),
    ],
    "StoreResponse": [
        Dear(
            "with the original",
            lambda w: _responses(w),
        ),
        Dear(
            "to what many messages may be",
            lambda w: [
                interaction_pb2.StoreResponseRequest(
                    namespace=w.once(_conversation),
                    content=w.most_words(),
                    in_response_to="m",
                    request_id=f"r{at}",
                )
                for at in range(5)
            ],
        ),
    ],
    "StoreReflection": [
        Dear(
            "on a hundred",
            lambda w: [
                interaction_pb2.StoreReflectionRequest(
                    namespace=w.once(_conversation),
                    content=w.most_words(),
                    request_id=f"q{at}",
                    interaction_ids=[f"c{3 * at}" for at in range(100)],
                )
                for at in range(5)
            ],
        ),
    ],
    "RetrieveRelevantContext": [Dear("many words", _contexts)],
    "RetrieveLastInteractions": [Dear("a page", _last)],
}


# --- facts ------------------------------------------------------------------------------------


def _saves(world: World) -> list[pb.SaveMemoryRequest]:
    source = pb.MemorySource(quote=world.text(2000), item_ids=[f"{at:03d}{'i' * 125}" for at in range(100)])
    return [
        pb.SaveMemoryRequest(
            namespace=world.memories, content=f"I like {world.text(480)}", category=2, reasoning=_REASON,
            source=source, labels=LABELS, metadata=METADATA, request_id=f"r{at}",
        )
        for at in range(10)
    ]  # fmt: skip


def _messages(world: World) -> list[memory_pb2.ChatMessage]:
    return [
        memory_pb2.ChatMessage(
            role=memory_pb2.ROLE_USER,
            parts=[memory_pb2.Part(text=" ".join(f"I like the {world.text(90)}." for _ in range(12)))],
        )
        for _ in range(200)
    ]


def _search(world: World, query: str) -> list[pb.SearchMemoriesRequest]:
    return again(
        pb.SearchMemoriesRequest(
            namespace=world.memories,
            query=query,
            limit=1000,
            include_history=True,
            explain=True,
            page_size=1000,
        )
    )


def _memory_ids(world: World, count: int) -> list[str]:
    service = pb_grpc.UserMemoryServiceStub(world.api.channel)
    listed = service.ListMemories(pb.ListMemoriesRequest(namespace=world.memories, page_size=1000)).memories
    return [memory.id for memory in listed[:count]]


def _updates(world: World) -> list[pb.UpdateMemoryRequest]:
    return [
        pb.UpdateMemoryRequest(
            namespace=world.memories, request_id=f"u{at}",
            memory=pb.UserMemory(
                id=memory_id, content=f"I like {world.text(480)}", labels=LABELS, metadata=METADATA
            ),
        )
        for at, memory_id in enumerate(_memory_ids(world, 5))
    ]  # fmt: skip


def _deletions(world: World) -> list[pb.DeleteMemoryRequest]:
    return [
        pb.DeleteMemoryRequest(
            namespace=world.memories, id=memory_id, include_history=True, request_id=memory_id[:60]
        )
        for memory_id in _memory_ids(world, 10)
    ]


MEMORIES = {
    "SaveMemory": [Dear("a long one among a thousand", _saves)],
    "SearchMemories": [
        Dear("many words", lambda w: _search(w, w.most_words())),
        Dear("one word", lambda w: _search(w, "a" * TEXT)),
    ],
    "ListMemories": [
        Dear(
            "a page",
            lambda w: again(
                pb.ListMemoriesRequest(namespace=w.memories, page_size=1000, include_history=True)
            ),
        ),
    ],
    "UpdateMemory": [Dear("a long one among a thousand", _updates)],
    "DeleteMemory": [Dear("among a thousand", _deletions)],
    "GetPreloadedMemories": [
        Dear(
            "a thousand",
            lambda w: again(
                pb.GetPreloadedMemoriesRequest(namespace=w.memories, limit=1000, max_tokens=1_000_000)
            ),
        ),
    ],
    "ExtractMemories": [
        Dear(
            "a long conversation",
            lambda w: (
                [pb.ExtractMemoriesRequest(namespace=w.fresh(), messages=_messages(w), request_id="r")] * 2
            ),
        ),
        Dear(
            "beside a thousand memories",
            lambda w: [pb.ExtractMemoriesRequest(namespace=w.memories, messages=_messages(w), dry_run=True)],
        ),
    ],
    "ConsolidateMemories": [
        Dear(
            "a thousand",
            lambda w: (
                [
                    pb.ConsolidateMemoriesRequest(
                        namespace=w.memories, limit=500, similarity_threshold=0.5, dry_run=True
                    )
                ]
                * 2
            ),
        ),
    ],
}


# --- documents --------------------------------------------------------------------------------


def _document(world: World, text: str, **split: int) -> list[knowledge_pb2.AddDocumentRequest]:
    # As many labels as ten thousand fragments may have.
    labels = dict(list(LABELS.items())[:5])
    document = knowledge_pb2.Document(text=text, labels=labels, metadata=METADATA, title="t" * 512)
    return [
        knowledge_pb2.AddDocumentRequest(
            namespace=world.fresh(), document=document, split=split, request_id="r"
        )
        for _ in range(2)
    ]


def _replacements(world: World) -> list[knowledge_pb2.AddDocumentRequest]:
    namespace = _library(world)
    document = knowledge_pb2.Document(id="book", text=world.text(MIB))
    return [
        knowledge_pb2.AddDocumentRequest(
            namespace=namespace, document=document, replace=True,
            split={"max_characters": 200, "overlap_characters": 50},
        )
        for _ in range(2)
    ]  # fmt: skip


def _library(world: World) -> str:
    """Return a new namespace with a large document."""
    namespace = world.fresh()
    world.knowledge.AddDocument(
        knowledge_pb2.AddDocumentRequest(
            namespace=namespace, document={"id": "book", "text": world.text(MIB)},
            split={"max_characters": 200, "overlap_characters": 50},
        )
    )  # fmt: skip
    return namespace


def _many_documents(world: World) -> str:
    namespace = world.fresh()
    for at in range(100):
        world.knowledge.AddDocument(
            knowledge_pb2.AddDocumentRequest(
                namespace=namespace, document={"id": f"d{at}", "text": world.text(20 * KIB)}
            )
        )
    return namespace


def _commands(world: World) -> list[knowledge_pb2.HandleMessageRequest]:
    namespace, near = world.fresh(), "xremember this remember thisx "
    # As much as fits in a document, which it would become.
    parts = [memory_pb2.Part(text=near * (65_000 // len(near))) for _ in range(15)]
    for at in range(5):
        said = memory_pb2.ChatMessage(role=memory_pb2.ROLE_ASSISTANT, parts=parts, message_id=f"m{at}")
        world.api.add(namespace, session_id="chat", chat_message=said)
    return again(
        knowledge_pb2.HandleMessageRequest(
            namespace=namespace, session_id="chat", text="remember this", max_recent_messages=100,
            commands=["remember this", *(f"remember this{' ' * at}" for at in range(1, 32))],
        ),
        2,
    )  # fmt: skip


def _no_command(world: World) -> list[knowledge_pb2.HandleMessageRequest]:
    return again(
        knowledge_pb2.HandleMessageRequest(
            namespace=world.fresh(), session_id="chat", text=("remember  thi " * 5000)[:TEXT],
            commands=[f"{at:02d}{'remember ' * 6}" for at in range(32)],
        ),
    )  # fmt: skip


def _fragments(world: World, namespace: str, **fields: object) -> list[knowledge_pb2.SearchFragmentsRequest]:
    return again(
        knowledge_pb2.SearchFragmentsRequest(
            namespace=namespace, query=world.most_words(), limit=1000, explain=True, page_size=1000, **fields
        )  # type: ignore[arg-type]
    )


KNOWLEDGE = {
    "HandleMessage": [Dear("nearly a command", _commands), Dear("a long message", _no_command, 4)],
    "AddDocument": [
        Dear("many fragments", lambda w: _document(w, w.text(MIB), max_characters=110, overlap_characters=2)),
        Dear("one word", lambda w: _document(w, "a" * MIB, max_characters=8000, overlap_characters=4000)),
        Dear("replaced", _replacements),
    ],
    "GetDocument": [
        Dear(
            "with fragments",
            lambda w: again(
                knowledge_pb2.GetDocumentRequest(
                    namespace=_library(w), id="book", include_fragments=True, page_size=1000
                )
            ),
        ),
    ],
    "ListDocuments": [
        Dear(
            "a hundred",
            lambda w: again(knowledge_pb2.ListDocumentsRequest(namespace=_many_documents(w), page_size=1000)),
        ),
    ],
    "DeleteDocument": [
        Dear(
            "many fragments",
            lambda w: [
                knowledge_pb2.DeleteDocumentRequest(namespace=_library(w), id="book", request_id="r")
                for _ in range(2)
            ],
        ),
    ],
    "SearchFragments": [
        Dear("a large document", lambda w: _fragments(w, _library(w))),
        Dear(
            "a hundred documents",
            lambda w: _fragments(w, _many_documents(w), document_ids=[f"d{at}" for at in range(100)]),
        ),
    ],
}
