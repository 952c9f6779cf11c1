"""Tenants of one server: nothing that one of them sends shows, changes or reorders anything of another's.

The requests come from the descriptors: what is added to the API is tried here without being named.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message

from credentials import BY_NAME, Client, connect, keys_in
from grpc_api import METHODS, decode, json_value, path, valid_request
from memory_service.caller import Role
from memory_service.server.access.permissions import PERMISSIONS, Reach
from memory_service.v1 import memory_pb2
from server_process import ServerProcess

CANARY = "xylocanary"
"""A word in everything that the attacked tenant writes, and in nothing that others send."""
REACHING = [m for m in METHODS if PERMISSIONS[path(m)].reach is Reach.NAMESPACE]
READING = [m for m in REACHING if PERMISSIONS[path(m)].roles == {Role.READ} and m.name != "Watch"]
CHANGING = [m for m in REACHING if PERMISSIONS[path(m)].roles != {Role.READ}]


@dataclass(frozen=True)
class Tenant:
    """Somebody with a key for one namespace."""

    client: Client
    namespace: str

    def call(self, name: str, **fields: Any) -> Any:
        """Calls an RPC on the tenant's namespace."""
        return self.client.call(name, namespace=self.namespace, **fields)

    def fill(self, word: str) -> None:
        """Write something of each kind, the same ids for every tenant."""
        texts = ("the heron eats fish", "a fish swims", "the river is cold", "herons fly over the river")
        for number, text in enumerate(texts):
            session = f"s-{self.namespace}"
            item = memory_pb2.MemoryItem(id=f"item-{number}", text=f"{text} {word}", session_id=session)
            self.call("Add", item=item, request_id=f"request-{self.namespace}-{number}")
        for number in range(2):
            self.call("SaveState", key=f"key-{number}", value=json_value(word), description=f"of {word}")
        for number, content in enumerate((f"User likes {word} tea", f"User lives in {word}ville")):
            fact = {"content": content, "category": 2, "reasoning": "A lasting preference"}
            self.call("SaveMemory", **fact, request_id=f"fact-{self.namespace}-{number}")
        for number in range(2):
            self.call("StoreInteraction", sender=word, content=f"hello {word}", id=f"said-{number}")
        self.call("StoreReflection", content=f"thinking of {word}", interaction_ids=["said-0"])
        for number in range(2):
            text = f"A long book about {word}. It has a heron and a fish. " * 40
            self.call("AddDocument", document={"id": f"book-{number}", "text": text, "title": word})


@dataclass(frozen=True)
class Tenants:
    """Two tenants of one server."""

    attacker: Tenant
    attacked: Tenant


@pytest.fixture(scope="module")
def tenants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenants]:
    """A server with an embedder, and two who have filled their namespaces."""
    folder: Path = tmp_path_factory.mktemp("tenants")
    keys = keys_in(folder)
    tokens = [keys.token(name, [name]) for name in ("eve", "ada")]
    with ServerProcess(folder, flags=["--auth", "keys"]) as server:
        client = connect(server.address)
        eve, ada = (Tenant(client.presenting(t), n) for t, n in zip(tokens, ("eve", "ada"), strict=True))
        eve.fill("oaktree")
        ada.fill(CANARY)
        yield Tenants(eve, ada)
        client.channel.close()


def questions(method: MethodDescriptor, namespace: str) -> list[Any]:
    """Requests that read: as they are for every RPC, and with each text they can ask for."""
    found: list[Any] = [valid_request(method, namespace)]
    for text in ("heron fish", "river", CANARY):
        request: Any = valid_request(method, namespace)
        fields = method.input_type.fields_by_name
        if "query" in fields:
            request.query = text
        elif "options" in fields:
            request.options.query_text = text
            request.options.explain = True
        elif "goal" in fields:
            request.goal = text
        else:
            continue
        if "explain" in fields:
            request.explain = True
        found.append(request)
    return found


def everything(tenant: Tenant) -> dict[str, list[bytes | str]]:
    """All that each reading RPC answers, with results, scores and explanations, byte for byte."""
    found: dict[str, list[bytes | str]] = {}
    for method in READING:
        for request in questions(method, tenant.namespace):
            found.setdefault(method.name, []).extend(answers(tenant.client, method, request))
    return found


def answers(client: Client, method: MethodDescriptor, request: Any) -> list[bytes | str]:
    """All responses to a request, or its refusal."""
    try:
        answer = client.start(method, iter([request]) if method.client_streaming else request)
        responses = list(answer) if method.server_streaming else [answer]
    except grpc.RpcError as error:
        return [str(decode(error))]
    return [response.SerializeToString(deterministic=True) for response in responses]


def text_fields(message: Descriptor, seen: tuple[str, ...] = ()) -> Iterator[tuple[FieldDescriptor, ...]]:
    """The ways to every field of text in a message, lists too; not those of Google's types and of maps."""
    for field in message.fields:
        inner = field.message_type
        if field.type == FieldDescriptor.TYPE_STRING and field.name != "namespace":
            yield (field,)
        elif (
            inner is not None
            and inner.full_name not in seen
            and not inner.full_name.startswith("google.")
            and not inner.GetOptions().map_entry
        ):
            for way in text_fields(inner, (*seen, inner.full_name)):
                yield (field, *way)


def put(message: Any, way: tuple[FieldDescriptor, ...], value: str) -> None:
    """Set a field of text, making what leads to it."""
    *leading, last = way
    for field in leading:
        inner = getattr(message, field.name)
        if field.is_repeated:
            message = inner[0] if len(inner) else inner.add()
        else:
            message = inner
    if last.is_repeated:
        getattr(message, last.name).append(value)
    else:
        setattr(message, last.name, value)


def page_tokens(tenant: Tenant) -> list[str]:
    """A token of every RPC that gives some."""
    found: list[str] = []
    for method in REACHING:
        if "next_page_token" not in method.output_type.fields_by_name:
            continue
        request: Any = questions(method, tenant.namespace)[-1]
        holder = request.options if "options" in method.input_type.fields_by_name else request
        holder.page_size = 1
        for name in ("query", "query_text"):
            if name in holder.DESCRIPTOR.fields_by_name:
                setattr(holder, name, "heron fish")
        if "include_fragments" in method.input_type.fields_by_name:
            request.include_fragments = True
            request.id = "book-0"
        if "limit" in holder.DESCRIPTOR.fields_by_name:
            holder.limit = 2
        if token := tenant.client.call(method, request).next_page_token:
            found.append(token)
    assert len(found) >= 8
    return found


def names_of(tenant: Tenant) -> list[str]:
    """Ids of things and of requests of a tenant, which another would have to guess."""
    memories = [memory.id for memory in tenant.call("ListMemories").memories]
    reflection = tenant.call("List", kinds=[memory_pb2.ITEM_KIND_REFLECTION]).items[0].id
    given = ["s-ada", "request-ada-0", "fact-ada-0", memories[0], reflection]
    assert len(memories) == 2
    return given


def shape(found: list[bytes | str], value: str) -> list[str]:
    """An answer as far as it may not depend on whether a value is somebody else's: its code and its size."""
    return [each.replace(value, "?") if isinstance(each, str) else "answered" for each in found]


def test_nothing_of_one_tenant_shows_in_the_answers_to_another(tenants: Tenants) -> None:
    eve, ada = tenants.attacker, tenants.attacked
    names, tokens = names_of(ada), page_tokens(ada)
    # The first look loads what later ones find loaded, which the stats tell.
    everything(ada)
    before = everything(ada)
    calls = 0
    for method in REACHING:
        for way in text_fields(method.input_type):
            for value in tokens if way[-1].name == "page_token" else names:
                # As long, of the same form, and nobody's.
                guess = value[:-2] + ("ab" if value[-2:] != "ab" else "ba")
                answered = []
                for each in (value, guess):
                    request: Message = valid_request(method, eve.namespace)
                    put(request, way, each)
                    found = answers(eve.client, method, request) if method.name != "Watch" else []
                    for answer in found:
                        raw = answer if isinstance(answer, bytes) else answer.encode()
                        assert CANARY.encode() not in raw, (method.name, way[-1].name, each)
                    answered.append(shape(found, each))
                    calls += 1
                assert answered[0] == answered[1], (method.name, way[-1].name, value)
    assert calls > 1000
    assert everything(ada) == before


def test_what_one_tenant_writes_changes_no_result_or_score_of_another(tenants: Tenants) -> None:
    eve, ada = tenants.attacker, tenants.attacked
    before = everything(ada)
    assert [name for name, found in before.items() if CANARY in str(found)]
    # Common words become rare ones and rare ones common, for whoever counts them over all tenants.
    items = [memory_pb2.MemoryItem(text=f"heron fish river {number}") for number in range(300)]
    eve.call("BatchAdd", items=items)
    assert everything(ada) == before
    for method in CHANGING:
        answers(eve.client, method, valid_request(method, eve.namespace))
        assert everything(ada) == before, method.name


def test_a_watch_tells_of_its_own_namespace_only(tenants: Tenants) -> None:
    eve, ada = tenants.attacker, tenants.attacked
    watch = eve.client.start(BY_NAME["Watch"], memory_pb2.WatchRequest(namespace=eve.namespace))
    next(watch)
    for number in range(20):
        ada.call("Add", item=memory_pb2.MemoryItem(text=f"{CANARY} {number}"))
    eve.call("Add", item=memory_pb2.MemoryItem(text="mine"))
    seen = []
    for event in watch:
        seen.append(event)
        if event.HasField("change"):
            break
    watch.cancel()
    assert seen[-1].change.item.text == "mine"
    assert CANARY not in str(seen)


def test_a_request_id_is_each_tenants_own(tenants: Tenants) -> None:
    eve, ada = tenants.attacker, tenants.attacked
    theirs = ada.call("Add", item=memory_pb2.MemoryItem(text=f"same {CANARY}"), request_id="the-same")
    mine = eve.call("Add", item=memory_pb2.MemoryItem(text="same"), request_id="the-same")
    assert mine.item.id != theirs.item.id and mine.item.text == "same"
    again = ada.call("Add", item=memory_pb2.MemoryItem(text=f"same {CANARY}"), request_id="the-same")
    assert again.item.id == theirs.item.id


def test_a_page_token_of_another_is_no_page_token(tenants: Tenants) -> None:
    eve, ada = tenants.attacker, tenants.attacked
    for token in page_tokens(ada):
        assert (
            eve.client.refused("List", namespace=eve.namespace, page_token=token).reason
            == "INVALID_PAGE_TOKEN"
        )
