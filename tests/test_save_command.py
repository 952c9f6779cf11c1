"""HandleMessage: recognising the command to save, choosing the message, saving it once, giving feedback."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from embedding_provider import EmbeddingProvider
from grpc_api import Api, Connect, exactly, refusal, struct
from knowledge_api import SHORT, TEXT, Library
from memory_service.v1 import interaction_pb2, interaction_pb2_grpc, memory_pb2
from memory_service.v1 import knowledge_pb2 as pb
from server_process import ServerProcess

NOT_A_COMMAND = pb.HANDLE_MESSAGE_OUTCOME_NOT_A_COMMAND
SAVED = pb.HANDLE_MESSAGE_OUTCOME_SAVED
ALREADY_SAVED = pb.HANDLE_MESSAGE_OUTCOME_ALREADY_SAVED
NO_MESSAGE = pb.HANDLE_MESSAGE_OUTCOME_NO_MESSAGE
INVALID_STATE = pb.HANDLE_MESSAGE_OUTCOME_INVALID_STATE
SORRY = "Sorry, I encountered an error while trying to save that information."


@pytest.fixture
def library(api: Api, namespace: str) -> Library:
    return Library(api, namespace)


# Recognising the command


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("save_memory", "save_memory"),
        ("SAVE_MEMORY", "save_memory"),
        ("Save_Memory", "save_memory"),
        ("  save_memory\n", "save_memory"),
        ("Please SAVE_MEMORY now", "save_memory"),
        ("(SAVE_MEMORY)", "save_memory"),
        ("save this", "save this"),
        ("Save this!", "save this"),
        ("Could you SAVE THIS for later?", "save this"),
        ("save  this", "save this"),
        ("save\r\nthis", "save this"),
        ("remember this", "remember this"),
        ("Remember this: it matters", "remember this"),
        ("I like that. REMEMBER THIS.", "remember this"),
        ("save this and remember this", "save this"),
    ],
)
def test_commands_are_recognised_in_every_variant(library: Library, text: str, command: str) -> None:
    answer = library.handle(text)
    # A namespace without messages has nothing to save, so only the recognition is tested here.
    assert (answer.outcome, answer.command) == (NO_MESSAGE, command)
    assert answer.feedback == "No suitable message found to save."


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "please save_memory",
        "Save_Memory please",
        "save",
        "this",
        "save_this",
        "save that",
        "remember thistles",
        "unsave this",
        "SAVE_MEMORY_LATER",
        "RESAVE_MEMORY",
        "I saved this",
    ],
)
def test_other_messages_are_no_commands_and_have_no_feedback(library: Library, text: str) -> None:
    library.says("Rome was founded in 753 BC.")
    before = library.stats()
    answer = library.handle(text)
    assert answer == pb.HandleMessageResponse(outcome=NOT_A_COMMAND, revision=1)
    assert library.stats() == before


@pytest.mark.parametrize(
    ("commands", "text", "command"),
    [
        (["keep it"], "Please KEEP IT", "keep it"),
        (["keep it"], "save this", ""),
        (["/save"], "/SAVE", "/save"),
        (["/save"], "use /save", ""),
        (["Merken"], "merken", "Merken"),
        (["merke dir das", "straße merken"], "STRASSE MERKEN", "straße merken"),
        (["記住 這個"], "請記住 這個吧", "記住 這個"),
        ([" keep  it "], "keep it", " keep  it "),
    ],
)
def test_a_request_may_bring_its_own_commands(
    library: Library, commands: list[str], text: str, command: str
) -> None:
    answer = library.handle(text, commands=commands)
    assert answer.command == command
    assert answer.outcome == (NO_MESSAGE if command else NOT_A_COMMAND)


# Choosing the message


def test_the_agents_latest_message_is_saved_and_the_user_is_told(library: Library) -> None:
    library.user_says("When was Rome founded?")
    old = library.says("Some time ago.")
    chosen = library.says("Rome was founded in 753 BC.")
    command = library.user_says("remember this")
    answer = library.handle("remember this", message_id=command)
    assert (answer.outcome, answer.command) == (SAVED, "remember this")
    assert answer.feedback != ""
    assert exactly(answer.message) == exactly(library.api.get(library.namespace, chosen))
    assert answer.document.text == "Rome was founded in 753 BC."
    assert (answer.document.source_item_id, answer.document.session_id) == (chosen, "room-1")
    assert answer.document.create_time == answer.message.create_time
    assert [fragment.text for fragment in answer.fragments] == ["Rome was founded in 753 BC."]
    assert answer.revision == library.stats().revision
    assert old not in {answer.message.id, answer.document.source_item_id}


def test_what_was_saved_is_stored_as_it_was_answered(library: Library) -> None:
    library.says(TEXT)
    metadata, labels = struct({"why": "asked"}), {"topic": "otters"}
    answer = library.handle(split=SHORT, labels=labels, metadata=metadata)
    assert len(answer.fragments) == answer.document.fragment_count == 3
    stored = library.get(answer.document.id)
    assert exactly(stored.document) == exactly(answer.document)
    assert list(map(exactly, stored.fragments)) == list(map(exactly, answer.fragments))
    assert (dict(stored.document.labels), stored.document.metadata) == (labels, metadata)
    assert library.found("platform to Lisbon", limit=1, labels=labels) == [(answer.document.id, 1)]


@pytest.mark.parametrize(("count", "outcome"), [(None, SAVED), (4, NO_MESSAGE), (5, SAVED), (100, SAVED)])
def test_only_the_last_messages_are_looked_at(library: Library, count: int | None, outcome: int) -> None:
    library.says("the answer")
    for number in range(4):
        library.user_says(f"chatter {number}")
    fields = {} if count is None else {"max_recent_messages": count}
    assert library.handle(**fields).outcome == outcome


def test_a_message_before_the_last_five_is_out_of_sight(library: Library) -> None:
    library.says("the answer")
    for number in range(5):
        library.user_says(f"chatter {number}")
    assert library.handle().outcome == NO_MESSAGE


def test_other_conversations_do_not_count(library: Library) -> None:
    library.says("elsewhere", session_id="room-2")
    library.says("nowhere", session_id="")
    assert library.handle().outcome == NO_MESSAGE
    library.says("here")
    for _ in range(6):
        library.says("elsewhere again", session_id="room-2")
    assert library.handle().document.text == "here"


def test_the_message_itself_is_never_chosen(library: Library) -> None:
    answer = library.says("the answer")
    itself = library.says("save this", name="bot")
    assert library.handle(message_id=itself).message.id == answer


def test_an_agent_may_be_told_by_its_name(library: Library) -> None:
    mine = library.says("mine", name="bot")
    library.says("another agent's", name="other")
    library.user_says("a namesake in another role", name="BOT")
    assert library.handle(agent_name="bot").message.id == mine
    assert library.handle(agent_name="nobody").outcome == NO_MESSAGE
    assert library.handle().document.text == "another agent's"


def test_messages_without_a_text_are_passed_over(library: Library) -> None:
    chosen = library.says("the answer")
    library.says("  \n ")
    call = memory_pb2.Part(tool_call=memory_pb2.ToolCall(name="look_up"))
    message = memory_pb2.ChatMessage(role=memory_pb2.ROLE_ASSISTANT, parts=[call])
    library.api.add(library.namespace, session_id="room-1", chat_message=message)
    library.api.add(library.namespace, session_id="room-1", text="a plain note")
    assert library.handle().message.id == chosen


def test_all_texts_of_a_message_are_saved(library: Library) -> None:
    parts = [
        memory_pb2.Part(text="first"),
        memory_pb2.Part(binary=memory_pb2.BinaryPart(name="map.png")),
        memory_pb2.Part(text="second"),
    ]
    message = memory_pb2.ChatMessage(role=memory_pb2.ROLE_ASSISTANT, parts=parts)
    library.api.add(library.namespace, session_id="room-1", chat_message=message)
    assert library.handle().document.text == "first\nsecond"


def test_a_response_of_the_interaction_service_can_be_saved(library: Library) -> None:
    stub: Any = interaction_pb2_grpc.InteractionServiceStub(library.api.channel)
    common = {"namespace": library.namespace, "session_id": "room-1"}
    asked = stub.StoreInteraction(
        interaction_pb2.StoreInteractionRequest(sender="ada", content="What is the capital?", **common)
    )
    stub.StoreResponse(
        interaction_pb2.StoreResponseRequest(content="Lisbon.", in_response_to=asked.interaction.id, **common)
    )
    assert library.handle().document.text == "Lisbon."


def test_documents_and_fragments_of_the_conversation_are_no_messages(library: Library) -> None:
    library.says("the answer")
    for number in range(6):
        library.add(f"d{number}", session_id="room-1")
    assert library.handle().document.text == "the answer"


@pytest.mark.parametrize("said", ["SAVE_MEMORY", "save_memory", "save this"])
def test_a_command_is_not_saved_itself(library: Library, said: str) -> None:
    library.says("the answer")
    command = library.says(said)
    before = library.stats()
    answer = library.handle()
    assert (answer.outcome, answer.feedback) == (INVALID_STATE, "Invalid state for save operation.")
    assert answer.message.id == command
    assert not answer.HasField("document")
    assert library.stats() == before


# Saving once


def test_a_message_is_saved_once(library: Library) -> None:
    library.says("the answer")
    first = library.handle()
    before = library.stats()
    again = library.handle("remember this")
    assert (again.outcome, again.command) == (ALREADY_SAVED, "remember this")
    assert again.feedback not in ("", first.feedback)
    assert exactly(again.document) == exactly(first.document)
    assert list(map(exactly, again.fragments)) == list(map(exactly, first.fragments))
    assert library.stats() == before


@pytest.mark.parametrize("with_request_ids", [False, True])
def test_twenty_commands_at_once_save_one_document(library: Library, with_request_ids: bool) -> None:
    library.says(TEXT)
    requests = [
        library.message(split=SHORT, request_id=f"r-{number}" if with_request_ids else "")
        for number in range(20)
    ]
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(library.stub.HandleMessage, requests))
    assert sorted(answer.outcome for answer in answers) == [SAVED] + [ALREADY_SAVED] * 19
    assert len({exactly(answer.document) for answer in answers}) == 1
    assert len(library.list().documents) == 1
    assert len(library.fragment_items()) == 3


def test_one_request_sent_twenty_times_at_once_is_answered_alike(library: Library) -> None:
    library.says(TEXT)
    with ThreadPoolExecutor(20) as pool:
        requests = [library.message(split=SHORT, request_id="r")] * 20
        answers = {exactly(answer) for answer in pool.map(library.stub.HandleMessage, requests)}
    assert len(answers) == 1
    assert pb.HandleMessageResponse.FromString(answers.pop()).outcome == SAVED
    assert len(library.fragment_items()) == 3


def test_a_retry_is_answered_alike_when_the_agent_has_spoken_since(library: Library) -> None:
    library.says("the answer")
    first = library.handle(request_id="r")
    library.says("Done. Anything else?")
    before = library.stats()
    assert exactly(library.handle(request_id="r")) == exactly(first)
    assert library.stats() == before
    # Without the id it is a new command, for another message.
    assert library.handle().document.text == "Done. Anything else?"


def test_a_retry_of_what_found_nothing_finds_nothing(library: Library) -> None:
    first = library.handle(request_id="r")
    assert first.outcome == NO_MESSAGE
    library.says("the answer")
    assert exactly(library.handle(request_id="r")) == exactly(first)
    assert library.list().documents == []


def test_a_retry_of_what_was_saved_before_stays_so(library: Library) -> None:
    library.says("the answer")
    library.handle()
    first = library.handle(request_id="r")
    assert first.outcome == ALREADY_SAVED
    library.says("something new")
    assert exactly(library.handle(request_id="r")) == exactly(first)


def test_a_retry_does_not_bring_back_what_was_deleted(library: Library) -> None:
    library.says("the answer")
    first = library.handle(request_id="r")
    library.delete(first.document.id)
    again = library.handle(request_id="r")
    assert (again.outcome, again.revision) == (SAVED, first.revision)
    assert (again.document.id, again.document.version) == (first.document.id, 1)
    assert again.document.text == ""
    assert library.list().documents == []


def test_a_request_id_with_another_body_is_refused(library: Library) -> None:
    library.says("the answer")
    library.handle(request_id="r")
    error = refusal(library.stub.HandleMessage, library.message("remember this", request_id="r"))
    assert (error.code, error.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "REQUEST_ID_REUSED")


def test_what_was_saved_and_deleted_can_be_saved_again(library: Library) -> None:
    library.says("the answer")
    first = library.handle()
    library.delete(first.document.id)
    again = library.handle()
    assert (again.outcome, again.document.id) == (SAVED, first.document.id)
    assert again.fragments[0].id != first.fragments[0].id


def test_what_was_saved_outlives_a_crash(tmp_path: Path, connect: Connect) -> None:
    with ServerProcess(tmp_path) as server:
        library = Library(connect(server), "demo")
        library.says(TEXT)
        first = library.handle(split=SHORT, request_id="r")
        server.kill()
    with ServerProcess(tmp_path) as server:
        library = Library(connect(server), "demo")
        assert exactly(library.handle(split=SHORT, request_id="r")) == exactly(first)
        assert exactly(library.get(first.document.id).document) == exactly(first.document)
        assert library.found("platform to Lisbon", limit=1) == [(first.document.id, 1)]
        assert library.handle().outcome == ALREADY_SAVED


# Errors


def test_an_embedder_that_fails_costs_the_vectors_only(tmp_path: Path, connect: Connect) -> None:
    with EmbeddingProvider() as provider:
        flags = [*provider.flags, "--embedder-retries", "0"]
        with ServerProcess(tmp_path, flags=flags, env=provider.env) as server:
            library = Library(connect(server), "demo")
            library.says("the answer")
            provider.failing = True
            saved = library.handle(request_id="r")
            assert saved.outcome == SAVED
            assert [d.reason for d in saved.degraded] == [memory_pb2.DEGRADATION_REASON_EMBEDDING_PENDING]
            assert [document.id for document in library.list().documents] == [saved.document.id]


def test_a_message_that_is_too_long_for_a_document_is_refused(library: Library) -> None:
    parts = [memory_pb2.Part(text="x" * 65_000)] * 17
    message = memory_pb2.ChatMessage(role=memory_pb2.ROLE_ASSISTANT, parts=parts)
    library.api.add(library.namespace, session_id="room-1", chat_message=message)
    error = refusal(library.stub.HandleMessage, library.message())
    assert (error.code, error.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED")
    assert error.metadata["limit_name"] == "document_bytes_max"
    assert error.metadata["feedback"] == SORRY


def test_without_an_embedder_the_answer_says_so(connect: Connect) -> None:
    with ServerProcess(flags=["--store", "memory", "--embedder", "none"]) as server:
        library = Library(connect(server), "demo")
        library.says("the answer")
        first = library.handle(request_id="r")
        assert [d.reason for d in first.degraded] == [memory_pb2.DEGRADATION_REASON_NO_EMBEDDER]
        assert exactly(library.handle(request_id="r")) == exactly(first)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"session_id": ""}, "session_id"),
        ({"session_id": "x" * 257}, "session_id"),
        ({"text": "x" * 65_537}, "text"),
        ({"message_id": "x" * 129}, "message_id"),
        ({"message_id": "a\nb"}, "message_id"),
        ({"agent_name": "x" * 257}, "agent_name"),
        ({"commands": ["a"] * 33}, "commands"),
        ({"commands": ["save it", ""]}, "commands"),
        ({"commands": [" "]}, "commands"),
        ({"commands": ["x" * 65]}, "commands"),
        ({"max_recent_messages": 0}, "max_recent_messages"),
        ({"max_recent_messages": -1}, "max_recent_messages"),
        ({"max_recent_messages": 101}, "max_recent_messages"),
        ({"labels": {"": "x"}}, "labels"),
        ({"metadata": struct({"x": "y" * 66_000})}, "metadata"),
        ({"split": pb.SplitOptions(max_characters=99)}, "max_characters"),
        ({"split": pb.SplitOptions(max_characters=100, overlap_characters=51)}, "overlap_characters"),
        ({"request_id": "a b"}, "request_id"),
    ],
    ids=str,
)
def test_bad_input_is_refused_by_its_field(library: Library, fields: dict[str, Any], field: str) -> None:
    library.says("the answer")
    error = refusal(library.stub.HandleMessage, library.message(**{"text": "save this", **fields}))
    assert error.reason in ("INVALID_FIELD", "LIMIT_EXCEEDED")
    assert error.names(field)
    assert error.metadata["feedback"] == SORRY
    assert library.list().documents == []


def test_a_namespace_is_no_path(library: Library) -> None:
    request = pb.HandleMessageRequest(namespace="../../etc", session_id="s", text="save this")
    assert refusal(library.stub.HandleMessage, request).names("namespace")
