"""InteractionService: messages, the responses to them, reflections, and retrieving them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from embedding_provider import EmbeddingProvider
from grpc_api import Api, Connect, eventually, exactly, refusal, struct
from memory_service.v1 import interaction_pb2 as pb
from memory_service.v1 import interaction_pb2_grpc, memory_pb2
from server_process import ServerProcess

MESSAGE = pb.INTERACTION_KIND_MESSAGE
RESPONSE = pb.INTERACTION_KIND_RESPONSE
REFLECTION = pb.INTERACTION_KIND_REFLECTION
NOT_FOUND = grpc.StatusCode.NOT_FOUND


class Talk:
    """A short form of the service for one namespace."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.stub: Any = interaction_pb2_grpc.InteractionServiceStub(api.channel)
        self.namespace = namespace

    def say(self, content: str, sender: str = "ada", **fields: Any) -> pb.Interaction:
        request = pb.StoreInteractionRequest(
            namespace=self.namespace, sender=sender, content=content, **fields
        )
        return self.stub.StoreInteraction(request).interaction

    def answer(self, content: str, in_response_to: str = "", **fields: Any) -> pb.Interaction:
        request = pb.StoreResponseRequest(
            namespace=self.namespace, content=content, in_response_to=in_response_to, **fields
        )
        return self.stub.StoreResponse(request).interaction

    def reflect(self, content: str, **fields: Any) -> pb.Interaction:
        request = pb.StoreReflectionRequest(namespace=self.namespace, content=content, **fields)
        return self.stub.StoreReflection(request).interaction

    def last(self, **fields: Any) -> pb.RetrieveLastInteractionsResponse:
        request = pb.RetrieveLastInteractionsRequest(namespace=self.namespace, **fields)
        return self.stub.RetrieveLastInteractions(request)

    def said(self, **fields: Any) -> list[str]:
        """Return the contents of the newest messages."""
        return [pair.message.content for pair in self.last(**fields).interactions]

    def context(self, query: str, **fields: Any) -> pb.RetrieveRelevantContextResponse:
        request = pb.RetrieveRelevantContextRequest(namespace=self.namespace, query=query, **fields)
        return self.stub.RetrieveRelevantContext(request)

    def texts(self, query: str, **fields: Any) -> list[str]:
        """Return the texts of the relevant context."""
        return [result.text for result in self.context(query, **fields).results]


@pytest.fixture
def talk(api: Api, namespace: str) -> Talk:
    return Talk(api, namespace)


# Storing


def test_a_message_comes_back_as_it_was_said(talk: Talk) -> None:
    when = Timestamp(seconds=1650123456, nanos=123456000)
    stored = talk.say(
        "How does AI work?",
        create_time=when,
        session_id="s1",
        id="m1",
        labels={"channel": "web"},
        metadata=struct({"mood": "curious"}),
        ttl=Duration(seconds=3600),
    )
    assert (stored.id, stored.kind, stored.sender, stored.session_id) == ("m1", MESSAGE, "ada", "s1")
    assert (stored.content, stored.create_time) == ("How does AI work?", when)
    assert dict(stored.labels) == {"channel": "web"}
    assert stored.metadata == struct({"mood": "curious"})
    assert stored.expire_time.seconds - stored.update_time.seconds == 3600
    assert stored.revision == 1
    (pair,) = talk.last().interactions
    assert exactly(pair.message) == exactly(stored)
    assert (list(pair.responses), pair.response_count) == ([], 0)


def test_a_response_is_linked_by_id_and_takes_the_session_of_its_message(talk: Talk) -> None:
    message = talk.say("How does AI work?", session_id="s1")
    response = talk.answer("By statistics.", message.id, sender="robo")
    assert (response.kind, response.sender, response.session_id) == (RESPONSE, "robo", "s1")
    assert response.in_response_to == message.id
    assert response.original_message.content == "How does AI work?"
    assert response.original_message.sender == "ada"
    assert response.original_message.create_time == message.create_time
    assert talk.answer("Elsewhere.", message.id, session_id="s2").session_id == "s2"
    (pair,) = talk.last().interactions
    assert [each.content for each in pair.responses] == ["By statistics.", "Elsewhere."]
    assert not pair.responses[0].HasField("original_message")


def test_a_response_is_linked_to_the_newest_message_that_says_the_same(talk: Talk) -> None:
    first = talk.say("hello", create_time=Timestamp(seconds=100))
    talk.say("hello there")
    newest = talk.say("hello", create_time=Timestamp(seconds=200))
    other = talk.say("hello", sender="bob", create_time=Timestamp(seconds=100))

    def linked(**original: Any) -> str:
        return talk.answer("hi", original_message=pb.OriginalMessage(**original)).in_response_to

    assert linked(content="hello") == other.id
    assert linked(content="hello", sender="ada") == newest.id
    assert linked(content="hello", sender="ada", create_time=Timestamp(seconds=100)) == first.id
    assert linked(content="hello", create_time=Timestamp(seconds=100)) == other.id


@pytest.mark.parametrize(
    "original",
    [
        {"content": "hell"},
        {"content": "Hello"},
        {"content": "hello", "sender": "bob"},
        {"content": "hello", "create_time": Timestamp(seconds=100, nanos=1000)},
        {"content": "it thinks"},
        {"content": "it answers"},
    ],
    ids=str,
)
def test_a_response_to_what_nobody_said_is_refused(talk: Talk, original: dict[str, Any]) -> None:
    message = talk.say("hello", create_time=Timestamp(seconds=100))
    talk.answer("it answers", message.id)
    talk.reflect("it thinks")
    request = pb.StoreResponseRequest(
        namespace=talk.namespace, content="hi", original_message=pb.OriginalMessage(**original)
    )
    refused = refusal(talk.stub.StoreResponse, request)
    assert (refused.code, refused.reason) == (NOT_FOUND, "ITEM_NOT_FOUND")
    assert talk.last().interactions[0].response_count == 1


def test_a_response_to_what_is_no_message_is_refused(api: Api, talk: Talk) -> None:
    message = talk.say("hello")
    ids = [
        "nothing",
        talk.answer("hi", message.id).id,
        talk.reflect("hm").id,
        api.add(talk.namespace, text="hello").id,
    ]
    for item_id in ids:
        request = pb.StoreResponseRequest(namespace=talk.namespace, content="hi", in_response_to=item_id)
        refused = refusal(talk.stub.StoreResponse, request)
        assert (refused.reason, refused.metadata["id"]) == ("ITEM_NOT_FOUND", item_id)


def test_a_response_to_nothing_is_kept_and_found(talk: Talk) -> None:
    response = talk.answer("Good morning to everybody")
    assert (response.in_response_to, response.sender) == ("", "system")
    assert not response.HasField("original_message")
    assert talk.texts("good morning") == ["Good morning to everybody"]
    assert talk.said() == []


def test_a_reflection_tells_what_it_is_about(talk: Talk) -> None:
    stored = talk.reflect("Too technical", interaction_ids=["m1", "gone"], session_id="s1")
    assert (stored.kind, stored.sender, stored.session_id) == (REFLECTION, "system", "s1")
    assert list(stored.interaction_ids) == ["m1", "gone"]
    (found,) = talk.context("technical").results
    assert exactly(found.interaction) == exactly(stored)


def test_interactions_are_items_that_are_got_and_deleted_by_their_ids(api: Api, talk: Talk) -> None:
    message = talk.say("hello")
    response = talk.answer("hi", message.id)
    assert api.get(talk.namespace, message.id).kind == memory_pb2.ITEM_KIND_MESSAGE
    assert api.get(talk.namespace, response.id).chat_message.role == memory_pb2.ROLE_ASSISTANT
    api.memory.Delete(memory_pb2.DeleteRequest(namespace=talk.namespace, id=response.id))
    (pair,) = talk.last().interactions
    assert (list(pair.responses), pair.response_count) == ([], 0)


def test_the_message_of_a_response_may_be_deleted(api: Api, talk: Talk) -> None:
    message = talk.say("what is the colour of herons?")
    talk.answer("herons are grey", message.id)
    removal = memory_pb2.DeleteRequest(namespace=talk.namespace, id=message.id, keep_derived=True)
    api.memory.Delete(removal)
    (found,) = talk.context("herons").results
    assert found.interaction.in_response_to == message.id
    assert not found.interaction.HasField("original_message")
    assert talk.said() == []


def test_a_changed_message_is_shown_as_it_is_now(api: Api, talk: Talk) -> None:
    message = talk.say("herons")
    talk.answer("they are grey", message.id)
    changed = memory_pb2.MemoryItem(
        id=message.id,
        chat_message=memory_pb2.ChatMessage(
            role=memory_pb2.ROLE_USER, parts=[memory_pb2.Part(text="otters")]
        ),
    )
    api.memory.Update(memory_pb2.UpdateRequest(namespace=talk.namespace, item=changed))
    (pair,) = talk.last(sender="ada").interactions
    assert (pair.message.content, pair.message.sender, pair.response_count) == ("otters", "ada", 1)
    (found,) = talk.context("grey", interaction_limit=1).results
    assert found.interaction.original_message.content == "otters"
    request = pb.StoreResponseRequest(
        namespace=talk.namespace, content="x", original_message=pb.OriginalMessage(content="herons")
    )
    assert refusal(talk.stub.StoreResponse, request).reason == "ITEM_NOT_FOUND"
    linked = talk.answer("x", original_message=pb.OriginalMessage(content="otters", sender="ada"))
    assert linked.in_response_to == message.id


def test_a_reflection_that_was_moved_is_of_its_new_session(api: Api, talk: Talk) -> None:
    reflection = talk.reflect("I think of herons")
    moved = memory_pb2.MemoryItem(id=reflection.id, session_id="s2")
    api.memory.Update(memory_pb2.UpdateRequest(namespace=talk.namespace, item=moved))
    assert talk.texts("herons", session_id="s1") == []
    assert talk.texts("herons", session_id="s2") == ["SYSTEM REFLECTION: I think of herons"]


def test_what_expires_is_gone_with_its_link(talk: Talk) -> None:
    message = talk.say("hello", ttl=Duration(nanos=200_000_000))
    talk.answer("hi there", message.id)
    eventually(lambda: talk.said() == [], "the message expires")
    (found,) = talk.context("hi").results
    assert not found.interaction.HasField("original_message")
    request = pb.StoreResponseRequest(namespace=talk.namespace, content="x", in_response_to=message.id)
    assert refusal(talk.stub.StoreResponse, request).reason == "ITEM_NOT_FOUND"


# The newest messages


def test_the_newest_messages_come_first_with_the_first_responses_and_their_number(talk: Talk) -> None:
    shuffled = (3, 0, 6, 1, 5, 2, 4)
    said = {n: talk.say(f"m{n}", create_time=Timestamp(seconds=1000 + n)) for n in shuffled}
    messages = [said[n] for n in range(7)]
    for n in range(23):
        talk.answer(f"r{n}", messages[6].id)
    talk.answer("late", messages[2].id)
    assert talk.said() == ["m6", "m5", "m4", "m3", "m2"]
    pairs = talk.last().interactions
    assert [each.content for each in pairs[0].responses] == [f"r{n}" for n in range(20)]
    assert [pair.response_count for pair in pairs] == [23, 0, 0, 0, 1]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"limit": 0}, ""),
        ({"limit": -1}, "543210"),
        ({"limit": 2}, "54"),
        ({"session_id": "odd"}, "531"),
        ({"session_id": "none"}, ""),
        ({"sender": "ada"}, "210"),
        ({"sender": "ad"}, ""),
        ({"sender": "bob", "session_id": "even"}, "4"),
        ({"labels": {"n": "3"}}, "3"),
        ({"labels": {"n": "3", "all": "yes"}}, "3"),
        ({"labels": {"n": "4", "all": "no"}}, ""),
        ({"start_time": Timestamp(seconds=104)}, "54"),
        ({"end_time": Timestamp(seconds=102)}, "10"),
        ({"start_time": Timestamp(seconds=101), "end_time": Timestamp(seconds=104), "limit": 2}, "32"),
    ],
    ids=str,
)
def test_the_newest_are_filtered(talk: Talk, fields: dict[str, Any], expected: str) -> None:
    for n in range(6):
        message = talk.say(
            str(n),
            sender="ada" if n < 3 else "bob",
            session_id="odd" if n % 2 else "even",
            labels={"n": str(n), "all": "yes"},
            create_time=Timestamp(seconds=100 + n),
        )
        talk.answer(f"to {n}", message.id)
    pairs = talk.last(**{"limit": -1, **fields}).interactions
    assert "".join(pair.message.content for pair in pairs) == expected
    assert [pair.responses[0].content for pair in pairs] == [f"to {n}" for n in expected]


def test_of_messages_of_the_same_time_the_last_stored_is_the_newest(talk: Talk) -> None:
    for text, seconds in (("a", 100), ("b", 200), ("c", 100), ("d", 200), ("e", 50)):
        talk.say(text, create_time=Timestamp(seconds=seconds))
    found = [pair.message.content for page in pages(talk, page_size=2) for pair in page.interactions]
    assert found == ["d", "b", "c", "a", "e"]


def pages(talk: Talk, **fields: Any) -> Iterator[pb.RetrieveLastInteractionsResponse]:
    token = ""
    while True:
        page = talk.last(page_token=token, **fields)
        yield page
        token = page.next_page_token
        if not token:
            return


def test_pages_add_up_to_the_whole(talk: Talk) -> None:
    for n in range(12):
        talk.say(str(n))
        talk.reflect(f"reflection {n}")
    for limit, page_size in itertools.product([-1, 1, 7, 12, 20], [0, 1, 5, 7]):
        paged = list(pages(talk, limit=limit, page_size=page_size))
        contents = [pair.message.content for page in paged for pair in page.interactions]
        assert contents == [str(n) for n in reversed(range(12))][: 12 if limit < 0 else limit], page_size
        assert all(len(page.interactions) <= (page_size or 1000) for page in paged)
        assert all(page.interactions for page in paged)


def test_a_page_does_not_move_when_messages_come_in(talk: Talk) -> None:
    for n in range(4):
        talk.say(str(n))
    first = talk.last(limit=4, page_size=2)
    talk.say("new")
    second = talk.last(limit=4, page_size=2, page_token=first.next_page_token)
    assert [pair.message.content for pair in second.interactions] == ["1", "0"]


def test_a_page_holds_no_more_than_a_client_takes(talk: Talk) -> None:
    long = "x" * 64_000
    for n in range(3):
        message = talk.say(f"{n}")
        for _ in range(20):
            talk.answer(long, message.id)
    paged = list(pages(talk))
    assert len(paged) > 1
    assert [pair.message.content for page in paged for pair in page.interactions] == ["2", "1", "0"]


def test_a_page_token_is_good_for_its_request_alone(talk: Talk) -> None:
    for n in range(4):
        talk.say(str(n))
    token = talk.last(page_size=2).next_page_token
    for fields in ({"sender": "ada"}, {"limit": 3}, {"session_id": "s"}):
        request = pb.RetrieveLastInteractionsRequest(
            namespace=talk.namespace, page_size=2, page_token=token, **fields
        )
        assert refusal(talk.stub.RetrieveLastInteractions, request).reason == "INVALID_PAGE_TOKEN"


def test_plain_items_and_reflections_do_not_hide_the_newest_messages(api: Api, talk: Talk) -> None:
    message = talk.say("the one message")
    talk.answer("the one response", message.id)
    api.add_texts(talk.namespace, *(f"text {n}" for n in range(500)))
    talk.reflect("hm")
    (pair,) = talk.last(limit=1).interactions
    assert pair.message.content == "the one message"
    assert [each.content for each in pair.responses] == ["the one response"]


def test_a_namespace_that_was_never_written_to_has_no_interactions(talk: Talk) -> None:
    assert talk.last() == pb.RetrieveLastInteractionsResponse()
    assert list(talk.context("anything").results) == []


# Relevant context


def test_five_interactions_and_two_reflections_come_unless_more_are_asked_for(talk: Talk) -> None:
    for n in range(8):
        talk.say(f"heron number {n}")
        talk.reflect(f"a thought about heron {n}")
    results = talk.context("heron").results
    assert [result.interaction.kind for result in results] == [MESSAGE] * 5 + [REFLECTION] * 2
    assert [r.text.startswith("SYSTEM REFLECTION: a thought") for r in results] == [False] * 5 + [True] * 2
    for part in (results[:5], results[5:]):
        scores = [result.score for result in part]
        assert scores == sorted(scores, reverse=True)
    counts = [(0, 0), (3, 0), (0, 3), (8, 8), (100, 100)]
    for said, thought in counts:
        found = talk.context("heron", interaction_limit=said, reflection_limit=thought)
        kinds = [result.interaction.kind for result in found.results]
        assert kinds == [MESSAGE] * min(said, 8) + [REFLECTION] * min(thought, 8)
        assert found.revision == 16


def test_what_fits_best_comes_first_and_responses_tell_what_they_answer(talk: Talk) -> None:
    talk.say("the train to Lisbon leaves from platform four")
    message = talk.say("what do otters do when they sleep?", sender="bob")
    talk.answer("otters hold hands in their sleep so they do not drift apart", message.id)
    best = talk.context("sleeping otters holding hands", interaction_limit=2).results
    assert {result.interaction.kind for result in best} == {MESSAGE, RESPONSE}
    response = next(r.interaction for r in best if r.interaction.kind == RESPONSE)
    assert response.original_message.content == "what do otters do when they sleep?"
    assert response.original_message.sender == "bob"


def test_plain_items_are_no_context(api: Api, talk: Talk) -> None:
    api.add(talk.namespace, text="heron")
    talk.say("a heron said something")
    assert talk.texts("heron") == ["a heron said something"]


def test_a_sender_is_found_with_the_responses_to_it(talk: Talk) -> None:
    for sender in ("ada", "bob"):
        message = talk.say(f"{sender} asks about herons", sender=sender)
        talk.answer(f"herons, {sender}, are grey", message.id)
    talk.answer("herons for everybody")
    talk.reflect("herons again")
    assert sorted(talk.texts("herons", sender="bob")) == [
        "SYSTEM REFLECTION: herons again",
        "bob asks about herons",
        "herons, bob, are grey",
    ]
    assert talk.texts("herons", sender="eve") == ["SYSTEM REFLECTION: herons again"]


def test_a_session_keeps_its_own_reflections_and_those_of_none(talk: Talk) -> None:
    for session in ("s1", "s2", ""):
        talk.say(f"heron in {session}", session_id=session)
    # Those of the other session match better, and there are more of them than the limit.
    for _ in range(40):
        talk.reflect("heron", session_id="s2")
    talk.reflect("heron thought of s1 and some more words", session_id="s1")
    talk.reflect("heron thought of no session and even more words than that")
    assert talk.texts("heron", session_id="s1") == [
        "heron in s1",
        "SYSTEM REFLECTION: heron thought of s1 and some more words",
        "SYSTEM REFLECTION: heron thought of no session and even more words than that",
    ]


def test_what_is_excluded_makes_room_for_the_next(talk: Talk) -> None:
    said = [talk.say(f"heron {n}") for n in range(8)]
    thought = [talk.reflect(f"heron {n}") for n in range(4)]
    ids = [each.id for each in said[:3] + thought[:2]]
    found = talk.context("heron", exclude_ids=ids).results
    assert {r.interaction.id for r in found} == {each.id for each in said[3:] + thought[2:]}


def test_labels_and_times_filter_all_kinds(talk: Talk) -> None:
    for n in range(4):
        common: dict[str, Any] = {
            "labels": {"n": str(n % 2)},
            "create_time": Timestamp(seconds=100 + n),
        }
        message = talk.say(f"heron {n}", **common)
        talk.answer(f"response heron {n}", message.id, **common)
        talk.reflect(f"reflection heron {n}", **common)
    found = talk.context(
        "heron", labels={"n": "1"}, start_time=Timestamp(seconds=102), reflection_limit=10
    ).results
    assert {r.interaction.content for r in found} == {"heron 3", "response heron 3", "reflection heron 3"}
    assert talk.texts("heron", end_time=Timestamp(seconds=100)) == []


def test_scores_are_bounded_and_explained(talk: Talk) -> None:
    talk.say("a heron waits beside the river")
    talk.say("the quarterly revenue grew")
    talk.reflect("herons wait")
    explained = talk.context("heron", explain=True).results
    for result in explained:
        parts = sum(each.contribution for each in result.explanation.contributions)
        assert parts == pytest.approx(result.score)
    assert not talk.context("heron").results[0].HasField("explanation")
    best = explained[0].score
    assert talk.texts("heron", min_score=best, reflection_limit=0) == ["a heron waits beside the river"]
    assert talk.texts("heron", min_score=best + 1) == []


@pytest.mark.parametrize("mode", [memory_pb2.RETRIEVE_MODE_LEXICAL, memory_pb2.RETRIEVE_MODE_VECTOR])
def test_a_mode_holds_for_both_searches(talk: Talk, mode: int) -> None:
    talk.say("a wading bird catches fish")
    talk.reflect("a wading bird catches fish")
    lexical = mode == memory_pb2.RETRIEVE_MODE_LEXICAL
    found = talk.context("heron hunting in the water", mode=mode).results
    assert len(found) == (0 if lexical else 2)
    assert len(talk.context("fish", mode=mode).results) == 2


def test_the_texts_take_no_more_than_the_tokens_there_are(talk: Talk) -> None:
    for n in range(10):
        talk.say("heron " * (n + 1))
        talk.reflect("heron " * (n + 1))
    whole = talk.context("heron", interaction_limit=10, reflection_limit=4)
    assert whole.token_count > 100
    for most in (1, 10, 40, 100, whole.token_count):
        found = talk.context("heron", interaction_limit=10, reflection_limit=4, max_tokens=most)
        assert found.token_count <= most
        kept, every = [r.text for r in found.results], [r.text for r in whole.results]
        assert kept == [text for text in every if text in kept]
        # None of the omitted texts would still fit.
        left = most - found.token_count
        assert all(-(-len(text) // 4) > left for text in every if text not in kept)
    assert found.token_count == whole.token_count
    assert len(found.results) == len(whole.results) == 14


def test_what_does_not_fit_makes_room_for_what_does(talk: Talk) -> None:
    talk.say("heron " * 200)
    talk.say("a heron waits")
    talk.reflect("a heron is a bird")
    assert talk.texts("heron")[0].startswith("heron heron")
    assert talk.texts("heron", max_tokens=20) == ["a heron waits", "SYSTEM REFLECTION: a heron is a bird"]


def test_an_answer_holds_no_more_than_a_client_takes(talk: Talk) -> None:
    long = "heron " + "x" * 64_000
    message = talk.say(long)
    for _ in range(45):
        talk.answer(long, message.id)
    results = talk.context("heron", interaction_limit=100).results
    assert 10 < len(results) < 46


# Without an embedder


def test_without_an_embedder_words_find_and_the_answer_says_so(connect: Connect, namespace: str) -> None:
    with ServerProcess(flags=["--store", "memory", "--embedder", "none"]) as server:
        talk = Talk(connect(server), namespace)
        stored = talk.stub.StoreInteraction(
            pb.StoreInteractionRequest(namespace=namespace, sender="ada", content="a heron waits")
        )
        no_embedder = [memory_pb2.DEGRADATION_REASON_NO_EMBEDDER]
        assert [each.reason for each in stored.degraded] == no_embedder
        talk.reflect("patience of the heron")
        found = talk.context("heron")
        assert [r.text for r in found.results] == [
            "a heron waits",
            "SYSTEM REFLECTION: patience of the heron",
        ]
        assert [each.reason for each in found.degraded] == no_embedder
        request = pb.RetrieveRelevantContextRequest(
            namespace=namespace, query="heron", mode=memory_pb2.RETRIEVE_MODE_VECTOR
        )
        assert refusal(talk.stub.RetrieveRelevantContext, request).reason == "EMBEDDER_REQUIRED"


def test_an_embedder_that_fails_costs_the_vectors_only(connect: Connect, namespace: str) -> None:
    flags = ["--store", "memory", *EmbeddingProvider.flags]
    with EmbeddingProvider() as provider, ServerProcess(flags=flags, env=provider.env) as server:
        talk = Talk(connect(server), namespace)
        talk.say("a heron waits")
        talk.reflect("patience of the heron")
        provider.failing = True
        found = talk.context("heron")
        assert len(found.results) == 2
        assert [d.reason for d in found.degraded] == [memory_pb2.DEGRADATION_REASON_EMBEDDER_UNAVAILABLE]
        assert [d.reason for d in talk.context("heron", mode=memory_pb2.RETRIEVE_MODE_LEXICAL).degraded] == []
        request = pb.RetrieveRelevantContextRequest(
            namespace=namespace, query="heron", mode=memory_pb2.RETRIEVE_MODE_VECTOR
        )
        assert refusal(talk.stub.RetrieveRelevantContext, request).reason == "EMBEDDER_REQUIRED"
        # A message that cannot be embedded now is still written, like any item.
        stored = talk.stub.StoreInteraction(store(namespace=namespace, content="an otter"))
        assert [d.reason for d in stored.degraded] == [memory_pb2.DEGRADATION_REASON_EMBEDDING_PENDING]
        assert talk.said() == ["an otter", "a heron waits"]


# Retries


def test_a_repeated_request_is_applied_once_and_answered_alike(talk: Talk) -> None:
    original = pb.OriginalMessage(content="hello")
    requests = [
        (
            talk.stub.StoreInteraction,
            pb.StoreInteractionRequest(
                namespace=talk.namespace, sender="ada", content="hello", request_id="1"
            ),
        ),
        (
            talk.stub.StoreResponse,
            pb.StoreResponseRequest(
                namespace=talk.namespace, content="hi", original_message=original, request_id="2"
            ),
        ),
        (
            talk.stub.StoreReflection,
            pb.StoreReflectionRequest(
                namespace=talk.namespace, content="hm", interaction_ids=["a"], request_id="3"
            ),
        ),
    ]
    for call, request in requests:
        first = call(request)
        # A newer message with the same text must not become the one that is linked.
        talk.say("hello")
        assert exactly(call(request)) == exactly(first)
        request.content += "!"
        assert refusal(call, request).reason == "REQUEST_ID_REUSED"
    assert len(talk.said(limit=-1)) == 4
    assert len(talk.context("hi hm", reflection_limit=9).results) == 5 + 1


def test_a_repeated_response_is_answered_although_its_message_is_gone(api: Api, talk: Talk) -> None:
    message = talk.say("hello")
    for number, fields in enumerate(
        (
            {"in_response_to": message.id},
            {"original_message": pb.OriginalMessage(content="hello")},
        )
    ):
        request = pb.StoreResponseRequest(
            namespace=talk.namespace, content="hi", request_id=f"r{number}", **fields
        )
        talk.stub.StoreResponse(request)
    delete = memory_pb2.DeleteRequest(namespace=talk.namespace, id=message.id, keep_derived=True)
    api.memory.Delete(delete)
    again = talk.stub.StoreResponse(request)
    assert again.interaction.in_response_to == message.id
    assert not again.interaction.HasField("original_message")
    api.memory.Delete(memory_pb2.DeleteRequest(namespace=talk.namespace, id=again.interaction.id))
    assert talk.stub.StoreResponse(request).interaction.id == again.interaction.id


def test_a_repeated_message_tells_nothing_of_what_has_taken_its_place(api: Api, talk: Talk) -> None:
    """A caller with write access only may repeat its own write."""
    request = pb.StoreInteractionRequest(
        namespace=talk.namespace, id="x", sender="ada", content="hello", request_id="r"
    )
    talk.stub.StoreInteraction(request)
    api.memory.Delete(memory_pb2.DeleteRequest(namespace=talk.namespace, id="x"))
    talk.reflect("hm", id="x", sender="secret", session_id="secret", interaction_ids=["secret"])
    again = talk.stub.StoreInteraction(request).interaction
    assert (again.id, again.kind, again.sender) == ("x", pb.INTERACTION_KIND_MESSAGE, "ada")
    assert "secret" not in str(again)


def test_equal_requests_at_once_write_one_response(talk: Talk) -> None:
    message = talk.say("hello")
    request = pb.StoreResponseRequest(
        namespace=talk.namespace, content="hi", in_response_to=message.id, request_id="once"
    )
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: talk.stub.StoreResponse(request), range(16)))
    assert {exactly(answer) for answer in answers} == {exactly(answers[0])}
    assert talk.last().interactions[0].response_count == 1


# Durability


def conversation(talk: Talk) -> None:
    for n in range(3):
        message = talk.say(f"heron question {n}", sender=f"u{n % 2}", session_id="s")
        talk.answer(f"heron answer {n}", message.id)
        talk.answer(f"heron more {n}", original_message=pb.OriginalMessage(content=f"heron question {n}"))
    talk.reflect("heron thought", interaction_ids=["x"], sender="robo")


def test_interactions_outlive_a_crash(connect: Connect, namespace: str, tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server:
        talk = Talk(connect(server), namespace)
        conversation(talk)
        before = (exactly(talk.last()), exactly(talk.context("heron", sender="u1")))
        token = talk.last(page_size=1).next_page_token
        server.kill()
    with ServerProcess(tmp_path) as server:
        talk = Talk(connect(server), namespace)
        assert (exactly(talk.last()), exactly(talk.context("heron", sender="u1"))) == before
        assert talk.last(page_size=1, page_token=token).interactions[0].message.content == "heron question 1"
        again = talk.answer("late", original_message=pb.OriginalMessage(content="heron question 0"))
        assert again.original_message.sender == "u0"


def test_an_export_takes_the_links_along(api: Api, talk: Talk) -> None:
    conversation(talk)
    # The changed message is exported last, after the responses to it.
    first = talk.last(limit=-1).interactions[-1].message
    api.memory.Update(
        memory_pb2.UpdateRequest(
            namespace=talk.namespace, item=memory_pb2.MemoryItem(id=first.id, labels={"seen": "yes"})
        )
    )
    items = [
        response.item for response in api.memory.Export(memory_pb2.ExportRequest(namespace=talk.namespace))
    ]
    copy = Talk(api, f"{talk.namespace}/copy")
    api.memory.Import(iter([memory_pb2.ImportRequest(namespace=copy.namespace, items=items)]))

    def told(of: Talk) -> dict[str, list[str]]:
        return {
            pair.message.content: [each.content for each in pair.responses]
            for pair in of.last(limit=-1).interactions
        }

    assert told(copy) == told(talk)
    assert sorted(copy.texts("heron", sender="u1", interaction_limit=9)) == sorted(
        talk.texts("heron", sender="u1", interaction_limit=9)
    )
    (reflection,) = copy.context("heron", interaction_limit=0).results
    assert (reflection.interaction.sender, list(reflection.interaction.interaction_ids)) == ("robo", ["x"])
    linked = copy.answer("late", original_message=pb.OriginalMessage(content="heron question 2"))
    assert linked.in_response_to == talk.last(limit=1).interactions[0].message.id


def test_imported_interactions_need_not_say_who_spoke(api: Api, talk: Talk) -> None:
    kinds = [memory_pb2.ITEM_KIND_MESSAGE, memory_pb2.ITEM_KIND_RESPONSE, memory_pb2.ITEM_KIND_REFLECTION]
    facets = ["", '{"attributes": {"interaction_ids": ["m"], "of_a_later_version": 7}}']
    items = [
        memory_pb2.MemoryItem(text="heron", kind=kind, facet_json=facet) for kind in kinds for facet in facets
    ]
    api.memory.Import(iter([memory_pb2.ImportRequest(namespace=talk.namespace, items=items)]))
    found = talk.context("heron", interaction_limit=10, reflection_limit=10).results
    assert len(found) == 6
    assert all(result.interaction.sender for result in found)
    assert sorted(list(result.interaction.interaction_ids) for result in found)[-1] == ["m"]
    assert talk.said() == ["heron"] * 2


# Bad input


def store(**fields: Any) -> pb.StoreInteractionRequest:
    return pb.StoreInteractionRequest(**{"namespace": "n", "sender": "ada", "content": "x", **fields})


def respond(**fields: Any) -> pb.StoreResponseRequest:
    return pb.StoreResponseRequest(**{"namespace": "n", "content": "x", **fields})


def reflect(**fields: Any) -> pb.StoreReflectionRequest:
    return pb.StoreReflectionRequest(**{"namespace": "n", "content": "x", **fields})


def relevant(**fields: Any) -> pb.RetrieveRelevantContextRequest:
    return pb.RetrieveRelevantContextRequest(**{"namespace": "n", "query": "x", **fields})


def newest(**fields: Any) -> pb.RetrieveLastInteractionsRequest:
    return pb.RetrieveLastInteractionsRequest(**{"namespace": "n", **fields})


BAD: list[tuple[str, Any]] = [
    *(("namespace", make(namespace="../../etc")) for make in (store, respond, reflect, relevant, newest)),
    ("namespace", newest(namespace="")),
    *(("content", make(content="")) for make in (store, respond, reflect)),
    *(("id", make(id="a\nb")) for make in (store, respond, reflect)),
    *(("session_id", make(session_id="s" * 257)) for make in (store, respond, reflect, relevant, newest)),
    *(("labels", make(labels={"": "x"})) for make in (store, respond, reflect, relevant, newest)),
    *(("ttl", make(ttl=Duration(seconds=-1))) for make in (store, respond, reflect)),
    *(("create_time", make(create_time=Timestamp(nanos=-1))) for make in (store, respond, reflect)),
    *(("request_id", make(request_id="r" * 65)) for make in (store, respond, reflect)),
    *(("sender", make(sender="s" * 257)) for make in (store, respond, reflect, relevant, newest)),
    *(("start_time", make(start_time=Timestamp(nanos=-1))) for make in (relevant, newest)),
    *(
        ("end_time", make(start_time=Timestamp(seconds=2), end_time=Timestamp(seconds=1)))
        for make in (relevant, newest)
    ),
    ("sender", store(sender="")),
    ("sender", store(sender="a\x00b")),
    ("metadata", store(metadata=struct({"x": float("nan")}))),
    ("in_response_to", respond(in_response_to="i" * 129)),
    ("original_message", respond(in_response_to="m", original_message=pb.OriginalMessage(content="x"))),
    ("original_message.content", respond(original_message=pb.OriginalMessage(sender="ada"))),
    ("original_message.sender", respond(original_message=pb.OriginalMessage(content="x", sender="\n"))),
    (
        "original_message.create_time",
        respond(original_message=pb.OriginalMessage(content="x", create_time=Timestamp(nanos=-1))),
    ),
    ("interaction_ids", reflect(interaction_ids=["i"] * 101)),
    ("interaction_ids[1]", reflect(interaction_ids=["i", ""])),
    ("query", relevant(query="")),
    ("interaction_limit", relevant(interaction_limit=-1)),
    ("interaction_limit", relevant(interaction_limit=101)),
    ("reflection_limit", relevant(reflection_limit=-1)),
    ("reflection_limit", relevant(reflection_limit=101)),
    ("exclude_ids", relevant(exclude_ids=["i"] * 101)),
    ("exclude_ids[0]", relevant(exclude_ids=["i" * 129])),
    ("min_score", relevant(min_score=float("nan"))),
    ("mode", relevant(mode=99)),
    ("max_tokens", relevant(max_tokens=0)),
    ("max_tokens", relevant(max_tokens=-1)),
    ("limit", newest(limit=-2)),
    ("page_size", newest(page_size=-1)),
    ("page_token", newest(page_token="forged")),
]


@pytest.mark.parametrize(("field", "wrong"), BAD, ids=[f"{type(r).__name__}-{field}" for field, r in BAD])
def test_bad_input_is_refused_by_the_name_of_its_field(talk: Talk, field: str, wrong: Any) -> None:
    request = type(wrong).FromString(wrong.SerializeToString())
    if request.namespace == "n":
        request.namespace = talk.namespace
    refused = refusal(rpc_of(talk, request), request)
    assert refused.code == grpc.StatusCode.INVALID_ARGUMENT, refused
    assert refused.fields == (field,)
    assert talk.last() == pb.RetrieveLastInteractionsResponse()


def rpc_of(talk: Talk, request: Message) -> Any:
    return getattr(talk.stub, type(request).__name__.removesuffix("Request"))


LONG = "x" * 65_537


@pytest.mark.parametrize(
    ("field", "limit", "wrong"),
    [
        ("content", 65_536, store(content=LONG)),
        ("content", 65_536, respond(content=LONG)),
        ("content", 65_536, reflect(content=LONG)),
        ("original_message.content", 65_536, respond(original_message=pb.OriginalMessage(content=LONG))),
        ("query", 65_536, relevant(query=LONG)),
        ("metadata", 65_536, store(metadata=struct({"x": "y" * 70_000}))),
    ],
    ids=["message", "response", "reflection", "original", "query", "metadata"],
)
def test_what_is_too_long_is_refused_with_the_limit(talk: Talk, field: str, limit: int, wrong: Any) -> None:
    wrong.namespace = talk.namespace
    refused = refusal(rpc_of(talk, wrong), wrong)
    assert (refused.code, refused.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED")
    assert (refused.metadata["field"], refused.metadata["limit"]) == (field, str(limit))
    assert talk.last() == pb.RetrieveLastInteractionsResponse()


def test_the_longest_content_is_kept_whole(talk: Talk) -> None:
    message = talk.say("y" * 65_536, sender="s" * 256, id="i" * 128)
    linked = talk.answer("x" * 65_536, original_message=pb.OriginalMessage(content="y" * 65_536))
    assert linked.in_response_to == message.id
    assert len(linked.original_message.content) == 65_536


def test_an_id_that_is_taken_is_refused(talk: Talk) -> None:
    talk.say("x", id="taken")
    calls = [(talk.stub.StoreInteraction, store), (talk.stub.StoreResponse, respond)]
    for call, make in [*calls, (talk.stub.StoreReflection, reflect)]:
        refused = refusal(call, make(namespace=talk.namespace, id="taken"))
        assert refused.reason == "ITEM_ALREADY_EXISTS"
