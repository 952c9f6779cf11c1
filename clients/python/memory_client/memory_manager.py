"""Messages, responses and reflections, by methods that take and return plain dictionaries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from memory_client import _manager_values as values
from memory_client._arguments import checked, checked_namespace
from memory_client._calls import admin
from memory_client._calls.call import Call, Page, request_id_or_new
from memory_client._gen.memory_service.v1 import interaction_pb2 as pb
from memory_client._sync.transport import Transport
from memory_client.options import ClientOptions

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
_QUERY_BYTES = 64 * 1024
_SAID = "So far you have said:"


class MemoryManager:
    """Messages to an agent, its responses and its reflections, stored on a memory server.

        memory = MemoryManager({"namespace": "ada"})
        message = {"sender": "ada", "content": "How does AI work?", "timestamp": time.time()}
        memory.store_interaction(message)
        memory.store_response("By statistics.", message)
        print(memory.retrieve_relevant_context("artificial intelligence"))

    The methods that store never raise: they log what they cannot store as an error, with the logger
    "memory_client.memory_manager". The others raise a `MemoryServiceError` if the server refuses the call or
    cannot be reached. Safe for use from many threads. The first call opens the channel.
    """

    config: dict[str, Any]
    """The configuration, as given."""

    def __init__(self, config: dict[str, Any]) -> None:
        """Make a manager.

        Args:
            config: "address" of the server, by default "127.0.0.1:50051"; "namespace" to write and read, by
                default "default"; "api_key", "token_source", "allow_insecure_token", "tls",
                "root_certificates", "client_certificate", "client_key" and "tls_server_name", as in
                `ClientOptions`. Other keys, such as "vector_db_type", "embedding_model" and "memory_path",
                are ignored: the server decides how it stores data.

        Raises:
            InvalidArgument: Credentials would be sent unencrypted, or settings contradict each other.
        """
        self.config = config
        self._transport = Transport(
            ClientOptions(**{key: config[key] for key in _CONNECTION & config.keys()})
        )
        self._namespace = checked_namespace(config.get("namespace", "default"))

    def store_interaction(self, message: dict[str, Any]) -> None:
        """Store a message to the agent. When this returns, it is on disk and every later read sees it.

        Args:
            message: "sender"; "content", of which at most 64 KiB are stored; and "timestamp": seconds or
                milliseconds since the epoch, or ISO 8601. In place of any other, the current time is stored.
        """
        with _logged("a message"):
            content = message["content"]
            request = pb.StoreInteractionRequest(
                sender=values.sender_of(message["sender"]),
                content=values.content_of(content),
                create_time=values.time_of(message["timestamp"]),
                # create_time has microseconds; this preserves the exact number.
                metadata=values.metadata_from(values.noted(content, message["timestamp"])),
            )
            self._write("StoreInteraction", request, pb.StoreInteractionResponse)

    def store_response(self, response: str, original_message: dict[str, Any]) -> None:
        """Store a response of the agent, linked to the newest message that matches the original.

        If none does, it is linked to the first that matches and is stored later.

        Args:
            response: The text of the response, of which at most 64 KiB are stored.
            original_message: As for `store_interaction`, but all of it may be missing.
        """
        with _logged("a response"):
            request = pb.StoreResponseRequest(
                content=values.content_of(response),
                original_message=values.original_of(original_message),
                allow_missing=True,
            )
            if notes := values.noted(response):
                request.metadata.CopyFrom(values.metadata_from(notes))
            self._write("StoreResponse", request, pb.StoreResponseResponse)

    def store_reflection(self, reflection: str) -> None:
        """Store a thought of the agent about its own actions, of which at most 64 KiB are stored."""
        with _logged("a reflection"):
            request = pb.StoreReflectionRequest(content=values.content_of(reflection))
            self._write("StoreReflection", request, pb.StoreReflectionResponse)

    @checked
    def retrieve_relevant_context(self, query: str, n_results: int = 5) -> list[str]:
        """Return the texts that match a query best: messages and responses, then reflections.

        Args:
            query: Usually the new message; its first 64 KiB count. Nothing matches an empty one.
            n_results: Maximum number of messages and responses, up to 100. For every five of them there may
                be two reflections as well, which begin with "SYSTEM REFLECTION: ".
        """
        wanted = max(0, min(n_results, _LIMIT_MAX))
        words = values.cut_to(query, _QUERY_BYTES)
        if not words.strip():
            return []
        request = pb.RetrieveRelevantContextRequest(
            namespace=self._namespace,
            query=words,
            interaction_limit=wanted,
            reflection_limit=(2 * wanted + 2) // 5,
        )
        response = self._run("RetrieveRelevantContext", request, pb.RetrieveRelevantContextResponse)
        return [result.text for result in response.results]

    @checked
    def retrieve_last_interactions(self, n: int = 5) -> list[dict[str, Any]]:
        """Return the newest messages, each with the first response to it.

        Args:
            n: Maximum number of messages.

        Returns:
            Dictionaries with "id", "content", "metadata" ("source", "timestamp" as it was given, and "type"),
            and "response", which is "" if there is none. They are ordered by timestamp, latest first.
        """
        request = pb.RetrieveLastInteractionsRequest(namespace=self._namespace, limit=max(n, 0))
        method = _SERVICE + "RetrieveLastInteractions"
        call = Call(method, request, pb.RetrieveLastInteractionsResponse, _page)
        return [values.interaction_of(pair) for pair in self._transport.entries(call)]

    @checked
    def retrieve_recent_interactions(self, n: int = 10) -> list[dict[str, Any]]:
        """Return what `retrieve_last_interactions` does."""
        return self.retrieve_last_interactions(n)

    @checked
    def get_conversation_context(self, n_pairs: int = 5) -> list[str]:
        """Return the responses to the newest messages, the oldest first.

        Args:
            n_pairs: Maximum number of messages. Those without a response add nothing.
        """
        found = reversed(self.retrieve_last_interactions(n_pairs))
        return [each["response"] for each in found if each["response"]]

    @checked
    def get_hybrid_context(self, query: str, config: Mapping[str, Any] | None = None) -> list[str]:
        """Return the texts that match a query, then the last responses after "So far you have said:".

        Args:
            query: Usually the new message.
            config: In place of the manager's `config`. Its keys are "context_strategy" ("hybrid", which is
                the default, "semantic" or "conversation"), "max_semantic_results" (3),
                "max_conversation_pairs" (5), and "conversation_memory", in which "enabled" or
                "include_in_prompt" set to False omits the responses.
        """
        settings = self.config if config is None else config
        strategy = settings.get("context_strategy", "hybrid")
        context: list[str] = []
        if strategy in ("semantic", "hybrid"):
            context += self.retrieve_relevant_context(query, settings.get("max_semantic_results", 3))
        conversation = settings.get("conversation_memory", {})
        is_wanted = conversation.get("enabled", True) and conversation.get("include_in_prompt", True)
        if strategy in ("conversation", "hybrid") and is_wanted:
            said = self.get_conversation_context(settings.get("max_conversation_pairs", 5))
            context += [_SAID, *said] if said else []
        return context

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

    def _write(self, method: str, request: Any, response_type: Any) -> None:
        request.namespace = self._namespace
        request.request_id = request_id_or_new(None)
        self._run(method, request, response_type)

    def _run(self, method: str, request: Any, response_type: Any) -> Any:
        return self._transport.unary(Call(_SERVICE + method, request, response_type, lambda found: found))


@contextmanager
def _logged(what: str) -> Iterator[None]:
    """Log every error of storing in place of raising it."""
    try:
        yield
    except Exception as error:
        values.logger.error("%s was not stored: %s: %s", what, type(error).__name__, error)


def _page(response: pb.RetrieveLastInteractionsResponse) -> Page[pb.InteractionPair]:
    return Page(list(response.interactions), response.next_page_token, response)
