"""MemoryManager of the Python client: methods with dictionaries as parameters and results."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from grpc_api import Api
from memory_client import InvalidArgument, MemoryManager, Unavailable
from memory_service.v1 import admin_pb2, interaction_pb2, interaction_pb2_grpc, memory_pb2
from server_process import ServerProcess

# As its first users wrote it, except for its import and the address of the test's server.
EXAMPLE = """
import time

from memory_client import MemoryManager

memory_config = {
    "vector_db_type": "chroma",
    "embedding_model": "sentence-transformers/all-MiniLM-L6-v2",
    "memory_path": "./data/memory",
    "address": ADDRESS,
}
memory = MemoryManager(memory_config)

# Store a user message
user_message = {
    "sender": "user123",
    "content": "How does artificial intelligence work?",
    "timestamp": time.time()
}
memory.store_interaction(user_message)

# Store system response
system_response = "Artificial intelligence works by using algorithms and statistical models to perform \
tasks without explicit instructions, relying instead on patterns and inference."
memory.store_response(system_response, user_message)

# Retrieve interactions for reflection
recent_interactions = memory.retrieve_last_interactions(10)
for interaction in recent_interactions:
    print(f"User: {interaction['content']}")
    print(f"System: {interaction['response']}")
    print("---")

# Generate and store a reflection
reflection = "I notice that my explanations about AI tend to be technical. I should consider adding more \
examples and analogies."
memory.store_reflection(reflection)

# Save state to disk
memory.save_state()
"""


def message_of(content: str, sender: str = "ada", timestamp: float | None = None) -> dict[str, Any]:
    """Return a message as callers build it."""
    return {
        "sender": sender,
        "content": content,
        "timestamp": time.time() if timestamp is None else timestamp,
    }


@pytest.fixture
def memory(any_server: ServerProcess, namespace: str) -> Iterator[MemoryManager]:
    with MemoryManager({"address": any_server.address, "namespace": namespace}) as manager:
        yield manager


def test_the_example_of_its_first_users_runs_as_it_was_written(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server:
        code = f"ADDRESS = {server.address!r}\n{EXAMPLE}"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        server.kill()
    assert done.stdout.splitlines() == [
        "User: How does artificial intelligence work?",
        "System: Artificial intelligence works by using algorithms and statistical models to perform tasks"
        " without explicit instructions, relying instead on patterns and inference.",
        "---",
    ]
    # The next process finds it, with the reflection.
    with ServerProcess(tmp_path) as server, MemoryManager({"address": server.address}) as memory:
        context = memory.retrieve_relevant_context("explanations about artificial intelligence")
        assert len(context) == 3
        assert context[-1].startswith("SYSTEM REFLECTION: I notice that my explanations about AI")
        assert memory.retrieve_last_interactions()[0]["metadata"]["source"] == "user123"


def test_an_interaction_has_the_keys_that_were_promised(memory: MemoryManager) -> None:
    message = message_of("How does AI work?", "user_id", 1650123456)
    memory.store_interaction(message)
    memory.store_response("By statistics.", message)
    memory.store_response("And by data.", message)
    (found,) = memory.retrieve_last_interactions()
    assert found.pop("id")
    assert found == {
        "content": "How does AI work?",
        "metadata": {"source": "user_id", "timestamp": 1650123456, "type": "user_message"},
        "response": "By statistics.",
    }


def test_the_newest_come_first_each_with_its_own_response(memory: MemoryManager) -> None:
    messages = [message_of(f"question {n}") for n in range(7)]
    for message in messages:
        memory.store_interaction(message)
    for message in messages[:5]:
        memory.store_response(f"answer to {message['content']}", message)
    memory.store_reflection("a reflection is no interaction")
    found = memory.retrieve_last_interactions()
    assert [(each["content"], each["response"]) for each in found] == [
        ("question 6", ""),
        ("question 5", ""),
        ("question 4", "answer to question 4"),
        ("question 3", "answer to question 3"),
        ("question 2", "answer to question 2"),
    ]
    assert [each["metadata"]["timestamp"] for each in found] == [
        message["timestamp"] for message in reversed(messages[2:])
    ]
    counts = {n: len(memory.retrieve_last_interactions(n)) for n in (-1, 0, 1, 7, 100)}
    assert counts == {-1: 0, 0: 0, 1: 1, 7: 7, 100: 7}


def test_interactions_are_in_the_order_of_their_timestamps(memory: MemoryManager) -> None:
    for timestamp in (300.5, 100, 200.25):
        memory.store_interaction(message_of(str(timestamp), timestamp=timestamp))
    found = memory.retrieve_last_interactions()
    assert [each["metadata"]["timestamp"] for each in found] == [300.5, 200.25, 100]


def test_more_are_returned_than_one_response_of_the_server_holds(memory: MemoryManager) -> None:
    long = "x" * 60_000
    for n in range(60):
        memory.store_interaction(message_of(f"{n} {long}"))
    assert len(memory.retrieve_last_interactions(60)) == 60


def test_equal_messages_are_told_apart_by_sender_and_time(memory: MemoryManager) -> None:
    messages = [message_of("hi", "ada", 100), message_of("hi", "bob", 100), message_of("hi", "ada", 200)]
    for message in messages:
        memory.store_interaction(message)
    for number, message in enumerate(messages):
        memory.store_response(f"response {number}", message)
    found = memory.retrieve_last_interactions()
    told = {(each["metadata"]["source"], each["metadata"]["timestamp"]): each["response"] for each in found}
    assert told == {("ada", 100): "response 0", ("bob", 100): "response 1", ("ada", 200): "response 2"}


@pytest.mark.parametrize(
    "original",
    [{"content": "hi", "sender": "ada"}, {"content": "hi"}, {"content": "hi", "timestamp": "5"}],
    ids=str,
)
def test_a_response_finds_its_message_by_what_is_known_of_it(
    memory: MemoryManager, original: dict[str, Any]
) -> None:
    memory.store_interaction(message_of("hi", timestamp=5))
    memory.store_response("hello", original)
    assert memory.retrieve_last_interactions()[0]["response"] == "hello"


def test_a_response_may_be_stored_before_its_message(memory: MemoryManager) -> None:
    memory.store_interaction(message_of("hi", timestamp=100))
    message = message_of("hi", timestamp=200)
    memory.store_response("hello again", message)
    memory.store_interaction(message)
    found = memory.retrieve_last_interactions()
    assert [each["response"] for each in found] == ["hello again", ""]


@pytest.mark.parametrize(
    "original",
    [{}, message_of("never stored"), message_of("hi", "bob"), message_of("y" * 60_000)],
    ids=["nothing", "unknown", "other sender", "long"],
)
def test_a_response_to_an_unknown_message_is_kept(memory: MemoryManager, original: dict[str, Any]) -> None:
    memory.store_interaction(message_of("hi"))
    memory.store_response("a heron on its own", original)
    assert memory.retrieve_last_interactions()[0]["response"] == ""
    assert "a heron on its own" in memory.retrieve_relevant_context("heron")


def test_context_has_five_interactions_to_two_marked_reflections(memory: MemoryManager) -> None:
    for n in range(12):
        memory.store_interaction(message_of(f"heron {n}"))
        memory.store_reflection(f"thought of a heron {n}")

    def counts(*args: int) -> tuple[int, int]:
        texts = memory.retrieve_relevant_context("heron", *args)
        marked = [text.startswith("SYSTEM REFLECTION: thought") for text in texts]
        assert marked == sorted(marked)
        return marked.count(False), marked.count(True)

    assert counts() == (5, 2)
    assert {n: counts(n) for n in (-1, 0, 1, 2, 10, 1000)} == {
        -1: (0, 0),
        0: (0, 0),
        1: (1, 0),
        2: (2, 1),
        10: (10, 4),
        1000: (12, 12),
    }


def test_context_puts_what_fits_best_first(memory: MemoryManager) -> None:
    message = message_of("what do otters do when they sleep?")
    for text in ("the train to Lisbon leaves from platform four", "revenue grew by nine percent"):
        memory.store_interaction(message_of(text))
    memory.store_interaction(message)
    memory.store_response("otters hold hands in their sleep", message)
    found = memory.retrieve_relevant_context("sleeping otters", n_results=2)
    assert sorted(found) == ["otters hold hands in their sleep", "what do otters do when they sleep?"]


@pytest.mark.parametrize("missing", ["sender", "content", "timestamp"])
def test_a_message_that_lacks_something_is_logged(
    memory: MemoryManager, missing: str, caplog: pytest.LogCaptureFixture
) -> None:
    message = message_of("hi")
    del message[missing]
    memory.store_interaction(message)
    assert memory.retrieve_last_interactions() == []
    assert f"a message was not stored: KeyError: '{missing}'" in caplog.text


@pytest.mark.parametrize(
    ("timestamp", "seconds"),
    [
        ("2026-01-31T12:30:15.123456+00:00", 1769862615.123456),
        ("2026-01-31T13:30:15+01:00", 1769862615),
        ("2026-01-31T12:30:15", datetime(2026, 1, 31, 12, 30, 15).timestamp()),
        ("2026-01-31", datetime(2026, 1, 31).timestamp()),
        (1769862615123, 1769862615.123),
        (1769862615123456.0, 1769862615.123456),
        ("1769862615.5", 1769862615.5),
        (0, 0),
        (-1.5, -1.5),
    ],
    ids=str,
)
def test_timestamps_come_back_as_they_were_given(
    api: Api, memory: MemoryManager, namespace: str, timestamp: Any, seconds: float
) -> None:
    message = message_of("hi", timestamp=timestamp)
    memory.store_interaction(message)
    memory.store_response("hello", message)
    (found,) = memory.retrieve_last_interactions()
    assert (found["metadata"]["timestamp"], found["response"]) == (timestamp, "hello")
    assert api.items(namespace)[0].create_time.ToMicroseconds() == round(seconds * 1_000_000)


@pytest.mark.parametrize("timestamp", ["now", None, True, math.nan, math.inf, 1e30, []], ids=str)
def test_a_message_without_a_time_gets_the_current_one(
    memory: MemoryManager, timestamp: Any, caplog: pytest.LogCaptureFixture
) -> None:
    message = {"sender": "ada", "content": "hi", "timestamp": timestamp}
    memory.store_interaction(message)
    memory.store_response("hello", message)
    (found,) = memory.retrieve_last_interactions()
    assert (found["content"], found["response"]) == ("hi", "hello")
    assert "is not a time" in caplog.text


@pytest.mark.parametrize(
    "content",
    ["", "  ", "x" * 70_000, "\N{SNOWMAN}" * 30_000, "caf\ud800", "nul\0nul"],
    ids=["empty", "blank", "long", "long in bytes", "surrogate", "nul"],
)
def test_every_text_is_stored(memory: MemoryManager, content: str) -> None:
    message = message_of(content)
    memory.store_interaction(message)
    memory.store_response(content, message)
    memory.store_reflection(content)
    (found,) = memory.retrieve_last_interactions()
    whole = content.replace("\ud800", "?")
    for text in (found["content"], found["response"]):
        assert text == whole.encode()[: 64 * 1024].decode(errors="ignore")


@pytest.mark.parametrize("sender", ["", "s" * 300, "a\nb", 5, None, "caf\ud800"], ids=repr)
def test_every_sender_is_stored(memory: MemoryManager, sender: Any) -> None:
    message = message_of("hi", sender=sender)
    memory.store_interaction(message)
    memory.store_response("hello", message)
    assert [each["response"] for each in memory.retrieve_last_interactions()] == ["hello"]


@pytest.mark.parametrize("text", [None, 5, b"x", ["x"]], ids=str)
def test_what_is_no_text_is_logged(
    memory: MemoryManager, text: Any, caplog: pytest.LogCaptureFixture
) -> None:
    memory.store_interaction({"sender": "ada", "content": text, "timestamp": 1})
    memory.store_response(text, message_of("hi"))
    memory.store_response("hello", text)
    memory.store_reflection(text)
    assert [record.levelname for record in caplog.records].count("ERROR") == 4
    assert memory.retrieve_last_interactions() == []


def test_an_unusual_query_raises_nothing(memory: MemoryManager) -> None:
    memory.store_interaction(message_of("a heron"))
    assert memory.retrieve_relevant_context("") == []
    assert memory.retrieve_relevant_context("heron " * 20_000) == ["a heron"]
    assert memory.retrieve_relevant_context("heron \ud800") == ["a heron"]


def test_an_invalid_argument_of_a_read_is_named(memory: MemoryManager) -> None:
    with pytest.raises(InvalidArgument, match="query: "):
        memory.retrieve_relevant_context(5)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="n: "):
        memory.retrieve_last_interactions("5")  # type: ignore[arg-type]


def test_the_context_of_a_conversation_has_its_last_responses(memory: MemoryManager) -> None:
    for number in range(4):
        message = message_of(f"question {number}", timestamp=1000 + number)
        memory.store_interaction(message)
        if number != 2:
            memory.store_response(f"answer {number}", message)
    assert memory.get_conversation_context() == ["answer 0", "answer 1", "answer 3"]
    assert memory.get_conversation_context(n_pairs=2) == ["answer 3"]
    recent = memory.retrieve_recent_interactions()
    assert recent == memory.retrieve_last_interactions(10)
    assert [each["content"] for each in recent] == [f"question {number}" for number in (3, 2, 1, 0)]


def test_a_hybrid_context_has_what_matches_then_what_was_said(memory: MemoryManager) -> None:
    message = message_of("what do herons eat?")
    assert memory.get_hybrid_context("herons", {}) == []
    memory.store_interaction(message)
    memory.store_response("Fish.", message)
    matching, said = ["what do herons eat?"], ["So far you have said:", "Fish."]
    one = {"max_semantic_results": 1}
    assert memory.get_hybrid_context("herons", one) == matching + said
    assert memory.get_hybrid_context("herons", {**one, "context_strategy": "semantic"}) == matching
    assert memory.get_hybrid_context("herons", {**one, "context_strategy": "conversation"}) == said
    off = {**one, "conversation_memory": {"enabled": False}}
    assert memory.get_hybrid_context("herons", off) == matching
    assert memory.get_hybrid_context("herons", {**one, "max_conversation_pairs": 0}) == matching


def test_the_configuration_is_kept_and_used(any_server: ServerProcess, namespace: str) -> None:
    config = {"address": any_server.address, "namespace": namespace, "context_strategy": "conversation"}
    with MemoryManager(config) as memory:
        assert memory.config is config
        message = message_of("what do herons eat?")
        memory.store_interaction(message)
        memory.store_response("Fish.", message)
        assert memory.get_hybrid_context("herons") == ["So far you have said:", "Fish."]


def test_without_a_server_what_is_not_stored_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with MemoryManager({"address": "127.0.0.1:1"}) as memory:
        memory.store_interaction(message_of("hi"))
        memory.store_response("hello", message_of("hi"))
        memory.store_reflection("hm")
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "a message was not stored",
        "a response was not stored",
        "a reflection was not stored",
    ]


def test_without_a_server_it_says_so() -> None:
    with MemoryManager({"address": "127.0.0.1:1"}) as memory:
        for call in (memory.retrieve_last_interactions, memory.save_state):
            with pytest.raises(Unavailable):
                call()


def test_namespaces_are_apart(any_server: ServerProcess, namespace: str) -> None:
    managers = [
        MemoryManager({"address": any_server.address, "namespace": f"{namespace}/{n}"}) for n in range(2)
    ]
    managers[0].store_interaction(message_of("hi"))
    managers[0].store_reflection("hi")
    assert managers[1].retrieve_last_interactions() == []
    assert managers[1].retrieve_relevant_context("hi") == []
    for manager in managers:
        manager.close()


def test_other_clients_see_what_it_keeps(api: Api, memory: MemoryManager, namespace: str) -> None:
    message = message_of("hi", timestamp=1650123456.125)
    memory.store_interaction(message)
    memory.store_response("hello", message)
    memory.save_state()
    stub: Any = interaction_pb2_grpc.InteractionServiceStub(api.channel)
    request = interaction_pb2.RetrieveLastInteractionsRequest(namespace=namespace)
    found = stub.RetrieveLastInteractions(request).interactions
    stats = api.admin.ListNamespaces(admin_pb2.ListNamespacesRequest(prefix=namespace)).namespaces
    assert [entry.item_count for entry in stats] == [2]
    assert found[0].message.create_time.ToMicroseconds() == 1650123456125000
    assert found[0].responses[0].in_response_to == found[0].message.id
    kinds = [memory_pb2.ITEM_KIND_MESSAGE, memory_pb2.ITEM_KIND_RESPONSE]
    assert [item.kind for item in api.items(namespace)] == kinds
