"""Responses that are stored as sent, for repeated requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from memory_service.data_model import Answer, Receipt, RequestKey
from memory_service.domain.answers import Answering, Repeated
from memory_service.server.values import fill_time
from memory_service.v1 import memory_pb2, overseer_pb2, state_pb2, user_memory_pb2

R = TypeVar("R")
M = TypeVar("M", bound=Message)
_MEMORY = user_memory_pb2.UserMemory.DESCRIPTOR.full_name
_STATE = state_pb2.StateEntry.DESCRIPTOR.full_name
_DECISION = overseer_pb2.EvaluateForStorageResponse.DESCRIPTOR.full_name
_FAILURE = overseer_pb2.DecisionFailure.DESCRIPTOR.full_name
# The server's own texts, which quote no content.
_OWN_WORDS = frozenset({memory_pb2.Degradation.DESCRIPTOR.full_name})
# Text fields that hold names rather than content.
_NAMES = frozenset(
    (
        "id", "key", "superseded_by", "supersedes", "item_ids", "memory_ids", "parent_ids", "writer",
        "credential_id", "model",
    )
)  # fmt: skip


async def answered(
    key: RequestKey | None,
    call: Callable[[Answering[R] | None], Awaitable[R]],
    fill: Callable[[R], M],
    response_type: type[M],
) -> M | bytes:
    """Return the response to a request, encoded if it is stored: every repetition gets the same bytes.

    `call` carries out the request, and `fill` makes the response from its result.
    """
    if key is None:
        return fill(await call(None))
    request = Answering[R](key, lambda result: answer_of(fill(result)))
    try:
        result = await call(request)
    except Repeated as repeated:
        return _again(repeated.receipt, response_type)
    return request.answer.whole if request.answer is not None else fill(result)


def answer_of(response: Message) -> Answer:
    """Return a response as it is stored, with the ids of what it contains."""
    items: set[str] = set()
    states: set[str] = set()
    _note_subjects(response, items, states)
    bare = type(response)()
    bare.CopyFrom(response)
    _take_contents(bare)
    return Answer(_encoded(response), _encoded(bare), sorted(items), sorted(states))


def _encoded(message: Message) -> bytes:
    return message.SerializeToString(deterministic=True)


def _note_subjects(message: Any, items: set[str], states: set[str]) -> None:
    """Note the items and states that a response contains or was derived from."""
    kind = message.DESCRIPTOR.full_name
    if kind == _MEMORY:
        # A fact that is not stored names the messages that it was found in.
        items.update([message.id] if message.id else (*message.source.item_ids, *message.source.memory_ids))
    elif kind == _STATE:
        states.add(message.key)
    elif kind == _DECISION and message.decided_by == overseer_pb2.DECIDED_BY_LLM and message.existing_version:
        # The model saw the current value of the key.
        states.add(message.key)
    for field, value in message.ListFields():
        if field.message_type is None or _is_map(field):
            continue
        for inner in value if field.is_repeated else (value,):
            _note_subjects(inner, items, states)


def _take_contents(message: Any) -> None:
    """Clear every text and value in a response that a caller wrote, or that may quote one."""
    for field, value in message.ListFields():
        if field.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES):
            # The key of a failure may be arbitrary text from a model.
            if field.name not in _NAMES or message.DESCRIPTOR.full_name == _FAILURE:
                message.ClearField(field.name)
        elif field.message_type is None or field.message_type.full_name in _OWN_WORDS:
            continue
        elif _is_map(field) or field.message_type.file.name == "google/protobuf/struct.proto":
            message.ClearField(field.name)
        else:
            for inner in value if field.is_repeated else (value,):
                _take_contents(inner)


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _again(receipt: Receipt, response_type: type[Message]) -> bytes:
    """Return the response to a request, as far as it is still stored."""
    if receipt.answer is not None:
        return receipt.answer.whole or receipt.answer.bare
    # Earlier releases stored no responses: return what was written.
    response: Any = response_type(revision=receipt.revision)
    fields = response.DESCRIPTOR.fields_by_name
    if receipt.items and "memory" in fields and "outcome" in fields:
        stamp = receipt.items[0]
        response.outcome = user_memory_pb2.MEMORY_OUTCOME_SAVED
        response.memory.id, response.memory.revision = stamp.id, stamp.revision
        fill_time(response.memory.create_time, stamp.create_us)
        fill_time(response.memory.update_time, stamp.update_us)
    if receipt.version and "saved" in fields:
        response.should_save = response.saved = True
        response.entry.version, response.entry.revision = receipt.version, receipt.revision
        fill_time(response.entry.create_time, receipt.create_us)
        fill_time(response.entry.update_time, receipt.update_us)
    return _encoded(response)
