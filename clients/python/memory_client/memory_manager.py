"""Messages, responses and reflections, by six methods that take and return plain dictionaries."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from google.protobuf.timestamp_pb2 import Timestamp

from memory_client._calls import admin
from memory_client._calls.call import Call, Page, request_id_or_new
from memory_client._gen.memory_service.v1 import interaction_pb2 as pb
from memory_client._sync.transport import Transport
from memory_client.errors import NotFound
from memory_client.options import ClientOptions
from memory_client.values import struct_from, struct_to

_SERVICE = "/memory_service.v1.InteractionService/"
_CONNECTION = frozenset(
    {
        "address",
        "api_key",
        "token_source",
        "allow_insecure_token",
        "tls",
        "root_certificates",
        "client_certificate",
        "client_key",
        "tls_server_name",
    }
)
"""Keys of a configuration that are passed on unchanged."""
_LIMIT_MAX = 100
_QUOTE_CHARS = 1000


class MemoryManager:
    """Messages to an agent, its responses and its reflections, stored on a memory server.

        memory = MemoryManager({"namespace": "ada"})
        message = {"sender": "ada", "content": "How does AI work?", "timestamp": time.time()}
        memory.store_interaction(message)
        memory.store_response("By statistics.", message)
        print(memory.retrieve_relevant_context("artificial intelligence"))

    Every method raises a `MemoryServiceError` if the server refuses the call or cannot be reached. Safe for
    use from many threads. The first call opens the channel.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        """Make a manager.

        Args:
            config: "address" of the server, by default "127.0.0.1:50051"; "namespace" to write and read, by
                default "default"; "api_key", "token_source", "allow_insecure_token", "tls",
                "root_certificates", "client_certificate", "client_key" and "tls_server_name", as in
                `ClientOptions`. Other keys, such as "vector_db_type", "embedding_model" and "memory_path",
                are ignored: the server decides how it stores data.

        Raises:
            ValueError: Credentials would be sent unencrypted, or settings contradict each other.
        """
        self._transport = Transport(
            ClientOptions(**{key: config[key] for key in _CONNECTION & config.keys()})
        )
        self._namespace: str = config.get("namespace", "default")

    def store_interaction(self, message: dict[str, Any]) -> None:
        """Store a message to the agent. When this returns, it is on disk and every later read sees it.

        Args:
            message: "sender" and "content", both texts and not empty, and "timestamp" in seconds since the
                epoch.

        Raises:
            KeyError: One of the three is missing.
            TypeError: The timestamp is not a number.
        """
        request = pb.StoreInteractionRequest(
            namespace=self._namespace,
            sender=message["sender"],
            content=message["content"],
            create_time=_time_from(message["timestamp"]),
            # create_time has microseconds; this preserves the exact number.
            metadata=struct_from({"timestamp": message["timestamp"]}, "message"),
            request_id=request_id_or_new(None),
        )
        self._run("StoreInteraction", request, pb.StoreInteractionResponse)

    def store_response(self, response: str, original_message: dict[str, Any]) -> None:
        """Store a response of the agent, linked to the newest message that matches the original.

        If no message matches, the response is stored without a link.

        Args:
            response: The text of the response.
            original_message: As for `store_interaction`, but "sender" and "timestamp" may be missing.
        """
        for original in _originals(original_message):
            try:
                self._store_response(pb.StoreResponseRequest(content=response, original_message=original))
                return
            except NotFound:
                continue
        unlinked = {
            "in_response_to": str(original_message.get("content", ""))[:_QUOTE_CHARS],
            "original_sender": str(original_message.get("sender", "unknown")),
            "original_timestamp": original_message.get("timestamp", 0),
        }
        metadata = struct_from(unlinked, "original_message")
        self._store_response(pb.StoreResponseRequest(content=response, metadata=metadata))

    def _store_response(self, request: pb.StoreResponseRequest) -> None:
        request.namespace = self._namespace
        request.request_id = request_id_or_new(None)
        self._run("StoreResponse", request, pb.StoreResponseResponse)

    def store_reflection(self, reflection: str) -> None:
        """Store a thought of the agent about its own actions."""
        request = pb.StoreReflectionRequest(
            namespace=self._namespace, content=reflection, request_id=request_id_or_new(None)
        )
        self._run("StoreReflection", request, pb.StoreReflectionResponse)

    def retrieve_relevant_context(self, query: str, n_results: int = 5) -> list[str]:
        """Return the texts that match a query best: messages and responses, then reflections.

        Args:
            query: Usually the new message.
            n_results: Maximum number of messages and responses, up to 100. For every five of them there may
                be two reflections as well, which begin with "SYSTEM REFLECTION: ".
        """
        wanted = max(0, min(n_results, _LIMIT_MAX))
        request = pb.RetrieveRelevantContextRequest(
            namespace=self._namespace,
            query=query,
            interaction_limit=wanted,
            reflection_limit=(2 * wanted + 2) // 5,
        )
        response = self._run("RetrieveRelevantContext", request, pb.RetrieveRelevantContextResponse)
        return [result.text for result in response.results]

    def retrieve_last_interactions(self, n: int = 5) -> list[dict[str, Any]]:
        """Return the newest messages, each with the first response to it.

        Args:
            n: Maximum number of messages.

        Returns:
            Dictionaries with "id", "content", "metadata" ("source", "timestamp" in seconds since the epoch,
            and "type"), and "response", which is "" if there is none yet. They are the n messages stored
            last, ordered by timestamp, latest first.
        """
        request = pb.RetrieveLastInteractionsRequest(namespace=self._namespace, limit=max(n, 0))
        call = Call(
            _SERVICE + "RetrieveLastInteractions", request, pb.RetrieveLastInteractionsResponse, _page
        )
        found = list(self._transport.entries(call))
        return sorted(found, key=lambda each: float(each["metadata"]["timestamp"]), reverse=True)

    def save_state(self) -> None:
        """Make the server's next start faster. Stored data is on disk without it."""
        self._transport.unary(admin.flush(), None)

    def close(self) -> None:
        """Close the channel."""
        self._transport.close()

    def __enter__(self) -> Self:
        """Return the manager itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the manager."""
        self.close()

    def __repr__(self) -> str:
        """Show address and namespace."""
        return f"MemoryManager({self._transport.options.address!r}, namespace={self._namespace!r})"

    def _run(self, method: str, request: Any, response_type: Any) -> Any:
        return self._transport.unary(Call(_SERVICE + method, request, response_type, lambda found: found))


def _originals(message: Mapping[str, Any]) -> list[pb.OriginalMessage]:
    """Return the ways to find a message: by all known fields, then without its time."""
    if not message.get("content"):
        return []
    loose = pb.OriginalMessage(content=message["content"], sender=message.get("sender", ""))
    if not message.get("timestamp"):
        return [loose]
    exact = pb.OriginalMessage(create_time=_time_from(message["timestamp"]))
    exact.MergeFrom(loose)
    return [exact, loose]


def _time_from(seconds: float) -> Timestamp:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError(f"timestamp must be a number of seconds, not {type(seconds).__name__}")
    timestamp = Timestamp()
    timestamp.FromMicroseconds(round(seconds * 1_000_000))
    return timestamp


def _page(response: pb.RetrieveLastInteractionsResponse) -> Page[dict[str, Any]]:
    return Page([_dictionary(pair) for pair in response.interactions], response.next_page_token, response)


def _dictionary(pair: pb.InteractionPair) -> dict[str, Any]:
    message = pair.message
    return {
        "id": message.id,
        "content": message.content,
        "metadata": {
            "source": message.sender,
            "timestamp": _seconds_of(message),
            "type": "user_message",
        },
        "response": pair.responses[0].content if pair.responses else "",
    }


def _seconds_of(message: pb.Interaction) -> float:
    """Return a message's time: the number stored with it, if that is the same time."""
    micros = message.create_time.ToMicroseconds()
    stored = struct_to(message.metadata).get("timestamp")
    if isinstance(stored, (int, float)) and round(stored * 1_000_000) == micros:
        return stored
    return micros / 1_000_000
