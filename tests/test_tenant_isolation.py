"""Tenants of one server: no request of one reveals, changes or reorders another's data.

The requests are derived from the descriptors, so additions to the API are covered automatically. Random
operations of two tenants are in `faults/test_two_tenants.py`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

import grpc
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message

from credentials import BY_NAME, Client, connect, keys_in, pattern_of
from grpc_api import METHODS, SMALL_GRAPHS, decode, exactly, is_map, json_value, path, struct, valid_request
from memory_service.domain.filter_language import FilterLanguage
from memory_service.errors import InvalidArgument
from memory_service.limits import Limits
from memory_service.predicates import FieldName
from memory_service.runtime.caller import Role
from memory_service.server.methods import SERVED, Reach
from memory_service.v1 import memory_pb2
from memory_service.views.long_searches import LONG_POSTINGS
from server_process import ServerProcess

NAMES = ("auth0|李*", "auth0|李雷")
"""The attacker and the attacked. Without its escape, the attacker's grant would match both."""
CANARY = "xylocanary"
"""A word in everything that the attacked tenant writes, and in nothing that others send."""
_ROLES = {m: SERVED[path(m)].roles for m in METHODS if SERVED[path(m)].reach is Reach.NAMESPACE}
READING = [method for method, roles in _ROLES.items() if roles == {Role.READ}]
CHANGING = sorted(
    (method for method, roles in _ROLES.items() if roles != {Role.READ}),
    # Calls that empty a namespace come last, so that the others find something.
    key=lambda method: Role.FORGET in _ROLES[method],
)
REACHING = READING + CHANGING
FILTERS = FilterLanguage(Limits())

_SYLLABLES = [consonant + vowel for consonant in "bdfg" for vowel in "aeiu"]
WORDS = [f"{one}{other}k" for one in _SYLLABLES for other in _SYLLABLES]
WORDS_OF_AN_ITEM = 170
# Enough for a search for all the words to run in the thread of long searches.
WORDY_ITEMS = LONG_POSTINGS // WORDS_OF_AN_ITEM + 1

VARIANTS: dict[str, dict[str, Any]] = {
    "graph": {"env": SMALL_GRAPHS},
    "memory": {"flags": ["--store", "memory"]},
}


@dataclass(frozen=True)
class Tenant:
    """A caller with a key for one namespace."""

    client: Client
    namespace: str
    key_id: str

    @property
    def own(self) -> str:
        """A name that the tenant gives to sessions, speakers, labels and keys of metadata."""
        return f"session-of-{self.namespace}-0"

    def request_id(self, kind: str, number: int) -> str:
        """A request id of the tenant: printable ASCII, which the namespace need not be."""
        return f"{kind}-of-{quote(self.namespace)}-{number}"

    def call(self, name: str, **fields: Any) -> Any:
        """Call an RPC on the tenant's namespace."""
        return self.client.call(name, namespace=self.namespace, **fields)

    def fill(self, word: str) -> None:
        """Write something of each kind, with the same ids for every tenant."""
        texts = ("the heron eats fish", "a fish swims", "the river is cold", "herons fly over the river")
        named: dict[str, Any] = {"labels": {self.own: self.own}, "metadata": struct({self.own: self.own})}
        for number, text in enumerate(texts):
            content = f"{text} {word}"
            item = memory_pb2.MemoryItem(id=f"item-{number}", text=content, session_id=self.own, **named)
            self.call("Add", item=item, request_id=self.request_id("request", number))
        parts = [memory_pb2.Part(text=f"said by {word}")]
        message = memory_pb2.ChatMessage(role=memory_pb2.ROLE_USER, name=self.own, parts=parts)
        self.call("Add", item=memory_pb2.MemoryItem(id="spoken", chat_message=message))
        self.call("BatchAdd", items=list(wordy_items(word)))
        for number in range(2):
            self.call("SaveState", key=f"key-{number}", value=json_value(word), description=f"of {word}")
        for number, content in enumerate((f"User likes {word} tea", f"User lives in {word}ville")):
            fact = {"content": content, "category": 2, "reasoning": "A lasting preference"}
            self.call("SaveMemory", **fact, request_id=self.request_id("fact-no", number))
        for number in range(2):
            self.call("StoreInteraction", sender=word, content=f"hello {word}", id=f"said-{number}")
        self.call("StoreReflection", content=f"thinking of {word}", interaction_ids=["said-0"])
        for number in range(2):
            text = f"A long book about {word}. It has a heron and a fish. " * 40
            self.call("AddDocument", document={"id": f"book-{number}", "text": text, "title": word})
            self.call("WriteFile", path=f"/file-{number}" if number else "/file", content=text)
        self.call(
            "UpdateSession", session={"session_id": self.own, "title": word, "labels": {self.own: word}}
        )


def wordy_items(word: str) -> Iterator[memory_pb2.MemoryItem]:
    """Yield enough items for a graph, with enough words for a long search."""
    for number in range(WORDY_ITEMS):
        words = random.Random(f"{word}/{number}").sample(WORDS, WORDS_OF_AN_ITEM)
        yield memory_pb2.MemoryItem(id=f"wordy-{number}", text=f"{word} {' '.join(words)}")


@dataclass(frozen=True)
class Tenants:
    """Two tenants of one server."""

    attacker: Tenant
    attacked: Tenant


@pytest.fixture(scope="module", params=VARIANTS)
def tenants(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenants]:
    """A server with an embedder, and two tenants that have filled their namespaces."""
    folder: Path = tmp_path_factory.mktemp("tenants")
    keys = keys_in(folder)
    made = {name: keys.make(f"writer-of-{name}-0", [pattern_of(name)]) for name in NAMES}
    operator = keys.token("operator")
    settings = VARIANTS[request.param]
    flags = ["--auth", "keys", *settings.get("flags", ())]
    with ServerProcess(folder, flags=flags, env=settings.get("env")) as server:
        client = connect(server.address)
        eve, ada = (Tenant(client.presenting(token), name, key.id) for name, (key, token) in made.items())
        eve.fill("oaktree")
        ada.fill(CANARY)
        # Graphs are complete then, so that results do not depend on their progress.
        client.presenting(operator).call("Flush")
        for tenant in (eve, ada):
            # The first search loads what later ones find loaded, and the stats show it.
            everything(tenant)
            searched = tenant.call("GetNamespaceStats").index.kind
            assert searched == ("hnsw" if request.param == "graph" else "exact")
        yield Tenants(eve, ada)
        client.channel.close()


def questions(method: MethodDescriptor, tenant: Tenant) -> list[Any]:
    """Return read requests: the valid one, one for each text it can search for, and one with a filter."""
    found: list[Any] = [valid_request(method, tenant.namespace)]
    fields = method.input_type.fields_by_name
    for text in (" ".join(WORDS), "heron fish", "river", CANARY):
        request: Any = valid_request(method, tenant.namespace)
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
    filtered: Any = valid_request(method, tenant.namespace)
    holder = filtered.options if "options" in fields else filtered
    if "filter" in holder.DESCRIPTOR.fields_by_name:
        holder.filter = " OR ".join(text for text in filters(tenant.own) if not text.startswith("NOT "))
        found.insert(1, filtered)
    return found


def everything(tenant: Tenant) -> dict[str, list[bytes | str]]:
    """Return all responses of each reading RPC, with results, scores and explanations, byte for byte."""
    found: dict[str, list[bytes | str]] = {}
    for method in READING:
        for request in questions(method, tenant):
            told = (each if isinstance(each, str) else exactly(each) for each in answers(tenant, request))
            found.setdefault(method.name, []).extend(told)
    return found


def answers(tenant: Tenant, request: Any) -> list[Any]:
    """Return all responses to a request, or the text of its refusal; of a watch only the first."""
    method = METHOD_OF[request.DESCRIPTOR.full_name]
    try:
        answer = tenant.client.start(method, iter([request]) if method.client_streaming else request)
        if not method.server_streaming:
            return [answer]
        return list(islice(answer, 1) if method.name == "Watch" else answer)
    except grpc.RpcError as error:
        return [str(decode(error))]


METHOD_OF = {method.input_type.full_name: method for method in METHODS}

Way = tuple[FieldDescriptor, ...]


def ways_to_text(message: Descriptor, seen: tuple[str, ...] = ()) -> Iterator[Way]:
    """Yield the path to every text in a message: also in lists, maps, JSON and field masks."""
    for field in message.fields:
        inner = field.message_type
        if field.type == FieldDescriptor.TYPE_STRING and field.name != "namespace":
            yield (field,)
        elif inner is None:
            continue
        elif is_map(field) and inner.fields_by_name["value"].message_type is None:
            yield (field,)
        else:
            inner = inner.fields_by_name["value"].message_type if is_map(field) else inner
            if inner.full_name not in seen:
                for way in ways_to_text(inner, (*seen, inner.full_name)):
                    yield (field, *way)


def put(message: Any, way: Way, text: str) -> None:
    """Set a text and create what leads to it; in a map it is both the key and the value."""
    *leading, last = way
    for field in leading:
        inner = getattr(message, field.name)
        if is_map(field):
            inner = inner[text]
        elif field.is_repeated:
            inner = inner[0] if len(inner) else inner.add()
        message = inner
    if is_map(last):
        getattr(message, last.name)[text] = text
    elif last.is_repeated:
        getattr(message, last.name).append(text)
    else:
        setattr(message, last.name, text)


def filters(name: str) -> Iterator[str]:
    """Yield comparisons of a name, and their negations, with every field that can be compared with texts."""
    for field in FieldName:
        keyed = field in (FieldName.LABELS, FieldName.METADATA)
        comparison = f'{field}."{name}" = "{name}"' if keyed else f'{field} = "{name}"'
        try:
            FILTERS.parse("filter", comparison)
        except InvalidArgument:  # of another type
            continue
        yield comparison
        yield f"NOT {comparison}"


def page_tokens(tenant: Tenant) -> list[str]:
    """Return a token of every RPC that returns page tokens."""
    found: list[str] = []
    for method in REACHING:
        if "next_page_token" not in method.output_type.fields_by_name:
            continue
        if method.name in ("ListItemVersions", "ListStateVersions", "ListFileVersions"):
            continue  # The tenant has nothing with two versions, so there is no second page.
        request: Any = questions(method, tenant)[-1]
        holder = request.options if "options" in method.input_type.fields_by_name else request
        if "page_size" not in holder.DESCRIPTOR.fields_by_name:
            continue  # DeleteWhere, which has pages of ten thousand items.
        holder.page_size = 1
        if method.name == "ListSessions":
            holder.ClearField("prefix")
            holder.ClearField("labels")
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
    """Return names of things and of requests of a tenant, which another would have to guess."""
    memories = [memory.id for memory in tenant.call("ListMemories").memories]
    assert len(memories) == 2
    reflection = tenant.call("List", kinds=[memory_pb2.ITEM_KIND_REFLECTION]).items[0].id
    given = [tenant.request_id(kind, 0) for kind in ("request", "fact-no")]
    return [tenant.own, *given, f"writer-of-{tenant.namespace}-0", tenant.key_id, memories[0], reflection]


def attempts(way: Way, names: list[str], tokens: list[str]) -> Iterator[list[str]]:
    """Yield lists of values for a field: another tenant's, and one of the same length that nothing has.

    The responses to a list must all be alike.
    """
    values = tokens if way[-1].name == "page_token" else names
    for _, alike in groupby(sorted(values, key=len), key=len):
        group = list(alike)
        group.append(group[0][:-2] + ("ab" if group[0][-2:] != "ab" else "ba"))
        if way[-1].name == "filter":
            yield from map(list, zip(*map(filters, group), strict=True))
        else:
            yield group


def shape(found: list[Any], way: Way, value: str) -> list[Any]:
    """Return the part of a response that must not depend on whether another tenant has the value.

    That is its code and its size, or the whole response if the value is compared with stored data.
    """
    if way[-1].name != "filter":
        return [each.replace(value, "?") if isinstance(each, str) else "answered" for each in found]
    for each in found:
        assert not isinstance(each, str), each
        # It is signed together with the filter.
        if "next_page_token" in each.DESCRIPTOR.fields_by_name:
            each.ClearField("next_page_token")
    return [exactly(each) for each in found]


def test_every_filter_finds_the_tenants_own(tenants: Tenants) -> None:
    """This shows that the tests below find nothing because the names are another tenant's."""
    eve = tenants.attacker
    compared, found = set(), set()
    for name in names_of(eve):
        for text in filters(name):
            field = text.removeprefix("NOT ").split(" ")[0].split(".")[0]
            compared.add(field)
            if not text.startswith("NOT ") and eve.call("List", filter=text).items:
                found.add(field)
    assert found == compared >= {"id", "session_id", "name", "labels", "metadata", "writer"}


def test_tenants_who_search_at_the_same_time_find_what_they_do_alone(tenants: Tenants) -> None:
    both = (tenants.attacker, tenants.attacked)
    alone = [everything(tenant) for tenant in both]
    with ThreadPoolExecutor(2) as pool:
        for _ in range(3):
            assert list(pool.map(everything, both)) == alone


def test_nothing_of_one_tenant_shows_in_the_answers_to_another(tenants: Tenants) -> None:
    eve, ada = tenants.attacker, tenants.attacked
    names, tokens = names_of(ada), page_tokens(ada)
    before = everything(ada)
    calls = 0
    for method in REACHING:
        for way in ways_to_text(method.input_type):
            if method.name == "BatchWrite" and way[-1].name == "filter":
                continue  # Alone it deletes everything of the tenant's own; DeleteWhere has the same filter.
            if way[-1].name == "old_text":
                continue  # It is compared with the tenant's own file, which other attempts change.
            for values in attempts(way, names, tokens):
                shapes = []
                for value in values:
                    request: Message = valid_request(method, eve.namespace)
                    put(request, way, value)
                    found = answers(eve, request)
                    for answer in found:
                        raw = answer.encode() if isinstance(answer, str) else answer.SerializeToString()
                        assert CANARY.encode() not in raw, (method.name, way[-1].name, value)
                    shapes.append(shape(found, way, value))
                    calls += 1
                assert shapes == [shapes[-1]] * len(values), (method.name, way[-1].name, values)
    assert calls > 2000
    assert everything(ada) == before


def test_what_one_tenant_does_changes_no_result_or_score_of_another(tenants: Tenants) -> None:
    eve, ada = tenants.attacker, tenants.attacked
    before = everything(ada)
    assert [name for name, found in before.items() if CANARY in str(found)]
    # Common words become rare and rare ones common, for an index that counts them over all tenants.
    items = [memory_pb2.MemoryItem(text=f"heron fish river {WORDS[0]} {number}") for number in range(300)]
    eve.call("BatchAdd", items=items)
    assert everything(ada) == before
    for method in CHANGING:
        answers(eve, valid_request(method, eve.namespace))
        assert everything(ada) == before, method.name


def test_a_joint_search_reaches_no_namespace_of_another(tenants: Tenants) -> None:
    eve, ada = tenants.attacker, tenants.attacked
    # Other tests delete what she has.
    eve.client.call("Add", namespace=eve.namespace, item={"text": "a heron of my own"})
    before = everything(ada)
    asked = {"query_text": f"heron {CANARY}", "record_usage": True}
    for namespace in (eve.namespace, "", ada.namespace):
        answers_ = {
            str(eve.client.refused("Retrieve", namespace=namespace, namespaces=others, options=asked))
            for stranger in (ada.namespace, "nobody")
            for others in ([stranger], [eve.namespace, stranger], [stranger, eve.namespace])
        }
        assert len(answers_) == 1 and "PERMISSION_DENIED" in answers_.pop()
    own = eve.client.call(
        "Retrieve", namespace="", namespaces=[eve.namespace], options={"query_text": "heron"}
    )
    assert {result.namespace for result in own.results} == {eve.namespace}
    assert everything(ada) == before


@pytest.mark.parametrize("after_revision", [None, 0], ids=["from now", "from the beginning"])
def test_a_watch_tells_of_its_own_namespace_only(tenants: Tenants, after_revision: int | None) -> None:
    eve, ada = tenants.attacker, tenants.attacked
    request = memory_pb2.WatchRequest(namespace=eve.namespace, after_revision=after_revision)
    watch = eve.client.start(BY_NAME["Watch"], request)
    next(watch)
    for number in range(20):
        theirs = ada.call("Add", item=memory_pb2.MemoryItem(text=f"{CANARY} {number}")).item
        ada.call("SaveState", key="watched", value=json_value(f"{CANARY} {number}"))
        ada.call("StoreInteraction", sender=CANARY, content=f"hello {number}")
        ada.call("Delete", id=theirs.id)
    ada.call("DeleteState", key="watched")
    seen = []
    # An event that should not be sent would arrive before the second.
    for text in ("mine", "mine, too"):
        mine = eve.call("Add", item=memory_pb2.MemoryItem(text=text))
        for event in watch:
            if event.HasField("change"):
                seen.append(event.change)
                if event.change.item_id == mine.item.id:
                    break
    watch.cancel()
    revisions = [change.revision for change in seen]
    assert revisions == sorted(set(revisions)) and revisions[-1] == mine.revision
    assert after_revision is not None or [change.item.text for change in seen] == ["mine", "mine, too"]
    assert CANARY not in str(seen)
    assert "watched" not in {change.state_key for change in seen}


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
