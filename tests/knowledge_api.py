"""A short form of KnowledgeService for one namespace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grpc_api import Api
from memory_service.v1 import admin_pb2, knowledge_pb2_grpc, memory_pb2
from memory_service.v1 import knowledge_pb2 as pb

PARAGRAPHS = (
    "Otters sleep holding hands so that they do not drift apart.",
    "The train to Lisbon leaves from platform four at noon.",
    "Rye bread needs a sourdough that was fed the evening before.",
)
TEXT = "\n\n".join(
    paragraph + " Nothing else is said about it here, neither now nor later." for paragraph in PARAGRAPHS
)
"""A text that `SHORT` splits into one fragment for each of PARAGRAPHS."""
SHORT = pb.SplitOptions(max_characters=140, overlap_characters=0)


class Library:
    """The service for one namespace."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api = api
        self.namespace = namespace
        self.stub: Any = knowledge_pb2_grpc.KnowledgeServiceStub(api.channel)

    def request(self, document_id: str = "", text: str = TEXT, **fields: Any) -> pb.AddDocumentRequest:
        """Return a request to add a document, from fields of the request and of the document."""
        own = set(pb.AddDocumentRequest.DESCRIPTOR.fields_by_name)
        outer = {name: fields.pop(name) for name in list(fields) if name in own}
        document = pb.Document(id=document_id, text=text, **fields)
        return pb.AddDocumentRequest(
            **{"namespace": self.namespace, "document": document, "split": SHORT, **outer}
        )

    def add(self, document_id: str = "", text: str = TEXT, **fields: Any) -> pb.Document:
        """Add a document."""
        return self.stub.AddDocument(self.request(document_id, text, **fields)).document

    def get(self, document_id: str, **fields: Any) -> pb.GetDocumentResponse:
        """Get a document; by default with the first page of its fragments."""
        fields.setdefault("include_fragments", True)
        request = pb.GetDocumentRequest(namespace=self.namespace, id=document_id, **fields)
        return self.stub.GetDocument(request)

    def stats(self) -> admin_pb2.GetNamespaceStatsResponse:
        """Return the statistics of the namespace, without the kind of index: a read may change it."""
        stats = self.api.stats(self.namespace)
        stats.ClearField("index")
        return stats

    def pages(self, document_id: str, **fields: Any) -> Iterator[pb.GetDocumentResponse]:
        """Return all pages of a document's fragments."""
        token = ""
        while True:
            page = self.get(document_id, page_token=token, **fields)
            yield page
            token = page.next_page_token
            if not token:
                return

    def list(self, **fields: Any) -> pb.ListDocumentsResponse:
        """Return a page of documents."""
        return self.stub.ListDocuments(pb.ListDocumentsRequest(namespace=self.namespace, **fields))

    def ids(self, **fields: Any) -> list[str]:
        """Return the ids of a page of documents."""
        return [document.id for document in self.list(**fields).documents]

    def delete(self, document_id: str, **fields: Any) -> pb.DeleteDocumentResponse:
        """Delete a document."""
        request = pb.DeleteDocumentRequest(namespace=self.namespace, id=document_id, **fields)
        return self.stub.DeleteDocument(request)

    def search(self, query: str, **fields: Any) -> pb.SearchFragmentsResponse:
        """Return the best fragments for a text."""
        request = pb.SearchFragmentsRequest(namespace=self.namespace, query=query, **fields)
        return self.stub.SearchFragments(request)

    def found(self, query: str, **fields: Any) -> list[tuple[str, int]]:
        """Return documents and indexes of the best fragments."""
        results = self.search(query, **fields).results
        return [(result.fragment.document_id, result.fragment.index) for result in results]

    def fragment_items(self) -> list[memory_pb2.MemoryItem]:
        """Return every stored fragment of any document."""
        answer = self.api.retrieve(self.namespace, kinds=[memory_pb2.ITEM_KIND_FRAGMENT], limit=-1)
        return [result.item for result in answer.results]

    def says(self, text: str, *, role: int = memory_pb2.ROLE_ASSISTANT, **fields: Any) -> str:
        """Add a message, by default to the conversation "room-1"; return its id."""
        name = fields.pop("name", None)
        message = memory_pb2.ChatMessage(role=role, name=name, parts=[memory_pb2.Part(text=text)])  # type: ignore[arg-type]
        fields.setdefault("session_id", "room-1")
        return self.api.add(self.namespace, chat_message=message, **fields).id

    def user_says(self, text: str, **fields: Any) -> str:
        """Add a message of the user."""
        return self.says(text, role=memory_pb2.ROLE_USER, **fields)

    def handle(self, text: str = "save this", **fields: Any) -> pb.HandleMessageResponse:
        """Pass on a message that may be a command."""
        return self.stub.HandleMessage(self.message(text, **fields))

    def message(self, text: str = "save this", **fields: Any) -> pb.HandleMessageRequest:
        """Return a request of HandleMessage."""
        fields.setdefault("session_id", "room-1")
        return pb.HandleMessageRequest(namespace=self.namespace, text=text, **fields)
