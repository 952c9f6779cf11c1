"""The largest and nastiest texts that are allowed: calls end soon, and another tenant hardly notices."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from faults.scale import rounds
from grpc_api import Api, Connect
from memory_service.v1 import (
    knowledge_pb2,
    knowledge_pb2_grpc,
    memory_pb2,
    overseer_pb2,
    overseer_pb2_grpc,
)
from memory_service.v1 import user_memory_pb2 as pb
from server_process import ServerProcess
from user_memories import User, message

ENDS_WITHIN_S = 30.0
OTHERS_WAIT_S = 0.2
ALONE_ADDS = 200


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that no other test uses."""
    with ServerProcess(tmp_path_factory.mktemp("data")) as process:
        yield process


class Neighbour:
    """Another tenant, which adds items one by one."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._namespace = uuid.uuid4().hex
        self.alone_s = self._p99([self._add() for _ in range(ALONE_ADDS)])

    def _add(self) -> float:
        began = time.perf_counter()
        self._api.add(self._namespace, text=f"Ada likes tea {uuid.uuid4().hex}")
        return time.perf_counter() - began

    @staticmethod
    def _p99(times: list[float]) -> float:
        return sorted(times)[int((len(times) - 1) * 0.99)]

    def waits_beside(self, call: Callable[[], Any]) -> float:
        """Return its p99 during a call, which must end before long."""
        ended, times = threading.Event(), list[float]()

        def add_until_it_ends() -> None:
            while not ended.is_set():
                times.append(self._add())

        adding = threading.Thread(target=add_until_it_ends)
        adding.start()
        try:
            call()
        finally:
            ended.set()
            adding.join()
        return self._p99(times)


def hardly_notices(neighbour: Neighbour, call: Callable[[], Any]) -> None:
    assert neighbour.waits_beside(call) <= max(10 * neighbour.alone_s, OTHERS_WAIT_S)


@pytest.fixture(scope="module")
def neighbour(server: ServerProcess) -> Neighbour:
    return Neighbour(Api.connect(server.address))


@pytest.fixture
def user(server: ServerProcess, connect: Connect, namespace: str) -> User:
    return User(connect(server), namespace)


def filled(sentence: Callable[[int], str], nbytes: int, begin: int = 0) -> list[str]:
    """Return as many sentences as fit into this many bytes."""
    found: list[str] = []
    while nbytes >= 0:
        found.append(sentence(begin + len(found)))
        nbytes -= len(found[-1].encode())
    return found[:-1]


def messages(sentence: Callable[[int], str]) -> list[memory_pb2.ChatMessage]:
    """Messages of 1100 bytes, in a soak as many as a call takes."""
    said, count = [], 0
    for _ in range(rounds(80, 200)):
        sentences = filled(sentence, 1100, count)
        count += len(sentences)
        said.append(message("".join(sentences)))
    return said


SENTENCES: dict[str, Callable[[int], str]] = {
    "many short facts": lambda at: f"I like {at:05d}. ",
    "facts that contradict each other": lambda at: f"I live in {at:05d}. ",
    "long facts": lambda at: f"I like the {at:05d} and " + "a b " * 110 + ". ",
    "no facts, nearly": lambda at: "(I " * 160 + ". ",
    "quotations that do not end": lambda at: "I like ‘" + "‘" * 340 + ". ",
    "white space": lambda at: "I like\t" + " " * 480 + ". ",
}


# A machine that stalls exceeds its time.
@pytest.mark.flaky(reruns=1)
@pytest.mark.parametrize("name", SENTENCES)
def test_facts_in_a_long_conversation(user: User, neighbour: Neighbour, name: str) -> None:
    request = pb.ExtractMemoriesRequest(namespace=user.namespace, messages=messages(SENTENCES[name]))

    def extract() -> None:
        for _ in range(2):
            user.service.ExtractMemories(request, timeout=ENDS_WITHIN_S)

    hardly_notices(neighbour, extract)


def test_as_many_facts_are_taken_as_one_call_may_save_and_the_rest_is_told(user: User) -> None:
    said = ["".join(filled(lambda at: f"I like the number {at:03d}. ", 2400, 100 * n)) for n in range(4)]
    facts = [text.count(".") for text in said]
    response = user.extract(*said)
    assert len(response.results) == sum(facts[: response.examined_count]) <= 200
    assert sum(facts[: response.examined_count + 1]) > 200
    assert "200 facts" in response.reason
    alone = user.extract("".join(said))
    assert (len(alone.results), alone.examined_count) == (200, 1)
    assert "200 facts" in alone.reason


def test_a_session_with_more_facts_than_a_call_takes_is_gone_through_in_several(user: User) -> None:
    texts = ["".join(filled(lambda at: f"I like the boat {at:03d}. ", 2400, 110 * n)) for n in range(4)]
    for text in texts:
        user.api.add(user.namespace, session_id="chat", chat_message=message(text))
    after, found, more = 0, 0, True
    while more:
        response = user.extract(session_id="chat", after_revision=after, dry_run=True)
        assert response.examined_revision > after
        after, more = response.examined_revision, response.more
        found += len(response.results)
    assert found == sum(text.count(".") for text in texts)


def test_a_session_of_long_messages_is_gone_through_in_several(user: User, neighbour: Neighbour) -> None:
    for at in range(8):
        user.api.add(
            user.namespace, session_id="chat", chat_message=message(("(I " * 160 + ". ") * 130 + str(at))
        )
    request = pb.ExtractMemoriesRequest(namespace=user.namespace, session_id="chat")

    def extract() -> None:
        response = user.service.ExtractMemories(request, timeout=ENDS_WITHIN_S)
        assert response.more and 0 < response.examined_count < 8

    hardly_notices(neighbour, extract)


def test_long_memories_are_consolidated(user: User, neighbour: Neighbour) -> None:
    for begin in (0, 1000):
        user.extract(*messages(lambda at, begin=begin: SENTENCES["long facts"](begin + at)))
    request = pb.ConsolidateMemoriesRequest(namespace=user.namespace, limit=500)
    hardly_notices(neighbour, lambda: user.service.ConsolidateMemories(request, timeout=ENDS_WITHIN_S))


@pytest.mark.parametrize(
    "unit", ["‘", "„", "a-", "½", "user's a ", "user has a ", "I a, ", "and I ", "a' ", "\n", "my wife is "]
)
def test_a_memory_of_nasty_words_is_saved(user: User, neighbour: Neighbour, unit: str) -> None:
    def save() -> None:
        for at in range(rounds(4, 10)):
            content = f"I like {at} {unit * 500}"[:499] + "."
            user.save(content, source=pb.MemorySource(quote=(unit * 2048)[:600]))

    hardly_notices(neighbour, save)


def test_a_message_full_of_nearly_a_command_is_handled(user: User, neighbour: Neighbour) -> None:
    near = "xremember this remember thisx "
    parts = [memory_pb2.Part(text=near * (65_000 // len(near))) for _ in range(15)]
    said = memory_pb2.ChatMessage(role=memory_pb2.ROLE_ASSISTANT, parts=parts)
    user.api.add(user.namespace, session_id="chat", chat_message=said)
    request = knowledge_pb2.HandleMessageRequest(
        namespace=user.namespace, session_id="chat", text="remember  this",
        commands=["remember this", *(f"remember this{' ' * at}" for at in range(1, 32))],
    )  # fmt: skip
    knowledge = knowledge_pb2_grpc.KnowledgeServiceStub(user.api.channel)
    hardly_notices(neighbour, lambda: knowledge.HandleMessage(request, timeout=ENDS_WITHIN_S))


@pytest.mark.parametrize(
    "text", ["字" * 349_000, "a" * (1 << 20), "\u200d" * 349_000], ids=["字", "a", "zwj"]
)
def test_a_document_of_one_word_is_added(user: User, neighbour: Neighbour, text: str) -> None:
    knowledge = knowledge_pb2_grpc.KnowledgeServiceStub(user.api.channel)
    request = knowledge_pb2.AddDocumentRequest(namespace=user.namespace, document={"text": text})
    request.split.max_characters, request.split.overlap_characters = 8000, 4000
    hardly_notices(neighbour, lambda: knowledge.AddDocument(request, timeout=ENDS_WITHIN_S))


def test_a_result_with_long_names_is_decided_on(user: User, neighbour: Neighbour) -> None:
    overseer = overseer_pb2_grpc.OverseerServiceStub(user.api.channel)
    request = overseer_pb2.EvaluateForStorageRequest(
        namespace=user.namespace, tool_name="fetch", goal="remember x " * 1400,
    )  # fmt: skip
    request.result.list_value.extend([{"aB" * 12_000 + str(at): 1} for at in range(20)])
    hardly_notices(neighbour, lambda: overseer.EvaluateForStorage(request, timeout=ENDS_WITHIN_S))


def test_a_goal_of_many_words_is_looked_for_in_many_states(user: User, neighbour: Neighbour) -> None:
    overseer = overseer_pb2_grpc.OverseerServiceStub(user.api.channel)
    for at in range(300):
        value = " ".join(f"w{word * 7 % 2700}x" for word in range(at, at + 290))
        user.api.save(user.namespace, f"key_{at}", value)
    goal = " ".join(f"w{word}x" for word in range(2700))[:16_000]
    request = overseer_pb2.CheckRelevanceRequest(namespace=user.namespace, goal=goal, max_candidates=200)
    hardly_notices(neighbour, lambda: overseer.CheckRelevance(request, timeout=ENDS_WITHIN_S))
