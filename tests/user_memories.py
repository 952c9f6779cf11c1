"""Saving and reading facts about a user in tests."""

from __future__ import annotations

from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from grpc_api import Api
from memory_service.v1 import memory_pb2
from memory_service.v1 import user_memory_pb2 as pb
from memory_service.v1 import user_memory_pb2_grpc as pb_grpc

IDENTITY, PREFERENCE, RELATIONSHIP, PROJECT, CONTEXT = (
    pb.MEMORY_CATEGORY_IDENTITY,
    pb.MEMORY_CATEGORY_PREFERENCE,
    pb.MEMORY_CATEGORY_RELATIONSHIP,
    pb.MEMORY_CATEGORY_PROJECT,
    pb.MEMORY_CATEGORY_CONTEXT,
)
SAVED, DUPLICATE, SUPERSEDED, CONTRADICTION, RECALLED, REJECTED = (
    pb.MEMORY_OUTCOME_SAVED,
    pb.MEMORY_OUTCOME_DUPLICATE,
    pb.MEMORY_OUTCOME_SUPERSEDED,
    pb.MEMORY_OUTCOME_CONTRADICTION,
    pb.MEMORY_OUTCOME_RECALLED,
    pb.MEMORY_OUTCOME_REJECTED,
)
REASONING = "It will matter in later conversations"


def at(seconds: int) -> Timestamp:
    """Return a time from seconds since the Unix epoch."""
    return Timestamp(seconds=seconds)


def message(text: str, role: int = memory_pb2.ROLE_USER, message_id: str = "") -> memory_pb2.ChatMessage:
    """Return a chat message with a text."""
    return memory_pb2.ChatMessage(role=role, parts=[memory_pb2.Part(text=text)], message_id=message_id)


class User:
    """The memories of one user, in one namespace of a server."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api = api
        self.namespace = namespace
        self.service = pb_grpc.UserMemoryServiceStub(api.channel)

    def save(self, content: str, category: int = PREFERENCE, **fields: Any) -> pb.SaveMemoryResponse:
        """Call SaveMemory."""
        request = pb.SaveMemoryRequest(
            **{"namespace": self.namespace, "reasoning": REASONING, **fields},
            content=content,
            category=category,
        )
        return self.service.SaveMemory(request)

    def update(self, memory_id: str, **fields: Any) -> pb.UpdateMemoryResponse:
        """Call UpdateMemory; fields that are not the request's are the memory's."""
        ours = {f.name for f in pb.UpdateMemoryRequest.DESCRIPTOR.fields}
        memory = pb.UserMemory(id=memory_id, **{k: v for k, v in fields.items() if k not in ours})
        rest = {k: v for k, v in fields.items() if k in ours}
        return self.service.UpdateMemory(
            pb.UpdateMemoryRequest(namespace=self.namespace, memory=memory, **rest)
        )

    def delete(self, memory_id: str, **fields: Any) -> pb.DeleteMemoryResponse:
        """Call DeleteMemory."""
        return self.service.DeleteMemory(
            pb.DeleteMemoryRequest(namespace=self.namespace, id=memory_id, **fields)
        )

    def memories(self, **fields: Any) -> list[pb.UserMemory]:
        """Return the first page of ListMemories."""
        return list(
            self.service.ListMemories(pb.ListMemoriesRequest(namespace=self.namespace, **fields)).memories
        )

    def contents(self, **fields: Any) -> list[str]:
        """Return the contents of the first page of ListMemories."""
        return [memory.content for memory in self.memories(**fields)]

    def search(self, query: str, **fields: Any) -> pb.SearchMemoriesResponse:
        """Call SearchMemories."""
        return self.service.SearchMemories(
            pb.SearchMemoriesRequest(namespace=self.namespace, query=query, **fields)
        )

    def found(self, query: str, **fields: Any) -> list[str]:
        """Return the contents of the results of SearchMemories."""
        return [result.memory.content for result in self.search(query, **fields).results]

    def preloaded(self, **fields: Any) -> pb.GetPreloadedMemoriesResponse:
        """Call GetPreloadedMemories."""
        return self.service.GetPreloadedMemories(
            pb.GetPreloadedMemoriesRequest(namespace=self.namespace, **fields)
        )

    def extract(self, *said: str | memory_pb2.ChatMessage, **fields: Any) -> pb.ExtractMemoriesResponse:
        """Call ExtractMemories; texts become messages of the user."""
        messages = [message(text) if isinstance(text, str) else text for text in said]
        return self.service.ExtractMemories(
            pb.ExtractMemoriesRequest(namespace=self.namespace, messages=messages, **fields)
        )

    def consolidate(self, **fields: Any) -> pb.ConsolidateMemoriesResponse:
        """Call ConsolidateMemories."""
        return self.service.ConsolidateMemories(
            pb.ConsolidateMemoriesRequest(namespace=self.namespace, **fields)
        )


def outcomes(response: pb.ExtractMemoriesResponse) -> list[tuple[str, int]]:
    """Return the facts found in a conversation, and the outcome of each."""
    return [(result.memory.content, result.outcome) for result in response.results]


def adjustments(memory: pb.UserMemory) -> list[tuple[str, float]]:
    """Return the boosts and reductions of a memory's importance."""
    found = [*memory.importance.boosts, *memory.importance.reductions]
    return [(adjustment.name, adjustment.amount) for adjustment in found]


def chain(user: User) -> list[pb.UserMemory]:
    """Save three memories, each of which supersedes the one before."""
    for city in ("London", "Paris", "Rome"):
        user.save(f"I live in {city}", IDENTITY)
    return user.memories(include_history=True)


def similar(user: User, *contents: str, category: int = PREFERENCE) -> list[pb.UserMemory]:
    """Save memories that are all kept, even contradictory ones."""
    return [
        user.save(c, category, on_contradiction=pb.ON_CONTRADICTION_KEEP_BOTH, keep_wording=True).memory
        for c in contents
    ]
