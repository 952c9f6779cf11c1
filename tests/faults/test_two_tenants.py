"""Two tenants of one server: each has what it would have alone, whatever the other one does meanwhile.

Both do random things with the same ids, keys, facts and ids of requests. Each has an oracle, plain dicts,
with only its own writes. One of them also has a control: a server that gets only this tenant's writes, and
has to answer the same, with the same scores.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from credentials import BY_NAME, Client, connect, keys_in, pattern_of
from faults.scale import SOAK, hypothesis_seed, rounds
from grpc_api import SMALL_GRAPHS, Refusal, decode, is_map, json_value, struct
from memory_service.v1 import memory_pb2 as pb
from memory_service.v1 import user_memory_pb2
from server_process import ServerProcess

CONTROLLED = "auth0|李雷"
NAMES = (CONTROLLED, "auth0|李*")
"""Without its escape, the second one's grant would match the first."""
IDS = ("one", "two", "three", "four")
KEYS = ("a", "b", "\u00e9")
SESSIONS = ("", "s0", "s1")
COLORS = ("red", "blue")
WORDS = ("heron", "river", "fish", "boat", "cold", "deep", "swims", "eats")
# No two of them are alike, or contradict each other: each is saved once.
FACTS = (
    "User likes green tea",
    "User works at the harbour",
    "User has a sister called Mia",
    "User drives an old red car",
    "User speaks Portuguese",
)
# Enough of them for a graph.
MANY = 80
CREATED = {"seconds": 1_600_000_000}
TOLERANCE = 1e-5
ALL_MODES = (pb.RETRIEVE_MODE_VECTOR, pb.RETRIEVE_MODE_LEXICAL, pb.RETRIEVE_MODE_HYBRID)
MADE_UP = {("UserMemory", "id"), ("Provenance", "credential_id")}

tenants = st.sampled_from(NAMES)
ids = st.sampled_from(IDS)
keys = st.sampled_from(KEYS)
facts = st.sampled_from(FACTS)
sessions = st.sampled_from(SESSIONS)
colors = st.sampled_from(COLORS)
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
streams = st.integers(0, 99)
requests = st.sampled_from(["", "r0"])
# How many revisions or versions a writer is behind; None: it does not compare.
staleness = st.sampled_from([None, None, 0, 1])

Answer = Any
"""A response, or a Refusal."""


def ask(client: Client, rpc: str, **fields: Any) -> Answer:
    """What an RPC answers, or how it refuses."""
    try:
        return client.call(rpc, **fields)
    except grpc.RpcError as error:
        return decode(error)


def reason(answer: Answer) -> str:
    """Why a call was refused, or that it was not."""
    return answer.reason if isinstance(answer, Refusal) else "OK"


def comparable(answer: Answer) -> object:
    """An answer without what differs between two servers with the same history: times and made-up names."""
    if isinstance(answer, Refusal):
        return answer.code, answer.reason, answer.message, answer.metadata
    told = type(answer)()
    told.CopyFrom(answer)
    _strip(told)
    return told.SerializeToString(deterministic=True)


def _strip(message: Message) -> None:
    for at, value in message.ListFields():
        inner = at.message_type
        made_up = (message.DESCRIPTOR.name, at.name) in MADE_UP
        # The last bits of a similarity depend on how many vectors are compared together.
        if made_up or at.name in ("similarity", "index") or (inner and inner.name == "Timestamp"):
            message.ClearField(at.name)
        elif inner is not None and not is_map(at):
            for each in value if at.is_repeated else (value,):
                _strip(each)


@dataclass
class StoredItem:
    """An item as its tenant wrote it."""

    text: str
    session: str
    color: str
    amount: int
    revision: int = 0

    def message(self, item_id: str) -> pb.MemoryItem:
        return pb.MemoryItem(
            id=item_id, text=self.text, session_id=self.session, labels={"color": self.color},
            metadata=struct({"amount": self.amount}), create_time=CREATED,
        )  # fmt: skip

    def shown(self, item_id: str) -> tuple[object, ...]:
        return item_id, self.text, self.session, self.color, self.amount


def shown(item: pb.MemoryItem) -> tuple[object, ...]:
    """What of an item its writer knows."""
    amount = item.metadata.fields["amount"].number_value
    return item.id, item.text, item.session_id, item.labels["color"], amount


@dataclass
class Oracle:
    """What a tenant's namespace holds, as far as its own writes tell."""

    items: dict[str, StoredItem] = field(default_factory=dict)
    states: dict[str, tuple[int, float]] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    requests: dict[str, tuple[object, ...]] = field(default_factory=dict)
    version_floor: int = 0
    """Of all keys that were removed: a new one begins above it."""

    def drop_state(self, key: str) -> None:
        self.version_floor = max(self.version_floor, self.states.pop(key)[0])

    def reset(self) -> None:
        for key in list(self.states):
            self.drop_state(key)
        self.items, self.facts = {}, {}


@dataclass
class Tenant:
    """A client with a key for one namespace, and the data that belongs there."""

    namespace: str
    client: Client
    control: Client | None
    oracle: Oracle = field(default_factory=Oracle)
    twins: dict[str, str] = field(default_factory=dict)
    """The ids that the control has made, by those of the server."""

    def call(self, rpc: str, **fields: Any) -> Answer:
        """Make a call, of the control too, and return the server's answer. Both have to be the same."""
        answer = ask(self.client, rpc, namespace=self.namespace, **fields)
        if self.control is not None:
            if rpc == "DeleteMemory":
                fields["id"] = self.twins.get(fields["id"], fields["id"])
            expected = ask(self.control, rpc, namespace=self.namespace, **fields)
            assert comparable(answer) == comparable(expected), (rpc, answer, expected)
            if isinstance(answer, user_memory_pb2.SaveMemoryResponse) and answer.HasField("memory"):
                self.twins[answer.memory.id] = expected.memory.id
        return answer

    def check_search(self, modes: Sequence[int], **wanted: Any) -> None:
        """Search by vectors and compare with the oracle; then in other ways, and compare with the control."""
        fitting = {
            item.shown(item_id)
            for item_id, item in self.oracle.items.items()
            if wanted.get("session_id") in (None, "", item.session)
            and wanted.get("labels", {}).get("color") in (None, item.color)
        }
        # The best few come out of the graph, where there is one.
        for limit in (-1, 5):
            by_vector = self.found(self.client, mode=pb.RETRIEVE_MODE_VECTOR, limit=limit, **wanted)
            found = {shown(result.item) for result in by_vector}
            assert found == fitting if limit == -1 else found <= fitting
        for mode in modes if self.control is not None else ():
            both = [
                {result.item.id: result.score for result in self.found(each, mode=mode, limit=-1, **wanted)}
                for each in (self.client, self.control)
            ]
            assert both[0] == pytest.approx(both[1], abs=TOLERANCE), mode

    def found(self, client: Client, **options: Any) -> list[Any]:
        """The results of a search."""
        return list(client.call("Retrieve", namespace=self.namespace, options=options).results)

    def check(self) -> None:
        """All that can be read is what the tenant wrote itself."""
        oracle = self.oracle
        expected = [item.shown(item_id) for item_id, item in oracle.items.items()]
        assert [shown(item) for item in self.call("List", page_size=1000).items] == expected
        newest = self.call("Retrieve", options={"limit": 3}).results
        assert [shown(result.item) for result in newest] == expected[-3:]
        chosen = 'session_id = "s1" AND labels.color = "red" AND metadata.amount > 4'
        assert [shown(item) for item in self.call("List", filter=chosen, page_size=1000).items] == [
            item.shown(item_id)
            for item_id, item in oracle.items.items()
            if item.session == "s1" and item.color == "red" and item.amount > 4
        ]
        states = self.call("SearchState", pattern="*").entries
        assert {each.key: (each.version, each.value.number_value) for each in states} == oracle.states
        memories = self.call("ListMemories").memories
        assert {each.content: each.id for each in memories} == oracle.facts
        if self.control is not None:
            # Counts, revision, dimension.
            self.call("GetNamespaceStats")

    def check_history(self) -> None:
        """A watch returns the same changes from the server and the control."""
        stats = self.call("GetNamespaceStats")
        if self.control is not None and not isinstance(stats, Refusal):
            both = [self._changes(client, stats.revision) for client in (self.client, self.control)]
            assert both[0] == both[1]

    def _changes(self, client: Client, until: int) -> list[object]:
        made_up = {*self.twins, *self.twins.values()}
        request = pb.WatchRequest(namespace=self.namespace, after_revision=0)
        watch = client.start(BY_NAME["Watch"], request)
        told: list[object] = []
        for event in watch:
            change = event.change
            if event.HasField("change"):
                known = change.item_id not in made_up
                told.append(comparable(change) if known else (change.type, change.revision))
            if event.revision >= until:
                break
        watch.cancel()
        return told


class TwoTenants(RuleBasedStateMachine):
    """Each rule is one write of one of them; then both look at all they have."""

    def __init__(self, shared: dict[str, Client], control: Client) -> None:
        super().__init__()
        self.tenants = {
            name: Tenant(name, client, control if name == CONTROLLED else None)
            for name, client in shared.items()
        }

    @initialize(
        counts=st.fixed_dictionaries(dict.fromkeys(NAMES, st.sampled_from([6, 0, MANY]))), stream=streams
    )
    def begin(self, counts: dict[str, int], stream: int) -> None:
        """Begin with nothing, with some items, or with enough for a graph."""
        for name, count in counts.items():
            self.tenants[name].call("DeleteNamespace")
            if count:
                self.fill(name, count, stream)

    def fill(self, name: str, count: int, stream: int) -> None:
        """Add many items at once, of lengths that are each tenant's own."""
        tenant, stored = self.tenants[name], {}
        chance = random.Random(f"{name}/{stream}")
        words_max = chance.choice([3, 8, 30])
        for number in range(count):
            text = " ".join(chance.choices(WORDS, k=chance.randint(1, words_max)))
            session, color = chance.choice(SESSIONS), chance.choice(COLORS)
            stored[f"many-{number}"] = StoredItem(f"{text} {name}{number}", session, color, number % 10)
        items = [item.message(item_id) for item_id, item in stored.items()]
        written = tenant.call("BatchAdd", items=items).items
        for item, message in zip(stored.values(), written, strict=True):
            item.revision = message.revision
        tenant.oracle.items |= stored

    @rule(
        name=tenants, item_id=ids, text=texts, session=sessions, color=colors, amount=st.integers(0, 9),
        request_id=requests,
    )  # fmt: skip
    def add(
        self, name: str, item_id: str, text: str, session: str, color: str, amount: int, request_id: str
    ) -> None:
        """Add an item, perhaps one that is there, perhaps under the id of a request."""
        tenant, item = self.tenants[name], StoredItem(text, session, color, amount)
        oracle, body = tenant.oracle, item.shown(item_id)
        answer = tenant.call("Add", item=item.message(item_id), request_id=request_id)
        if request_id in oracle.requests:
            reused = oracle.requests[request_id] != body
            assert reason(answer) == ("REQUEST_ID_REUSED" if reused else "OK")
        elif item_id in oracle.items:
            assert reason(answer) == "ITEM_ALREADY_EXISTS"
        else:
            assert reason(answer) == "OK"
            item.revision = answer.revision
            oracle.items[item_id] = item
            if request_id:
                oracle.requests[request_id] = body

    @rule(name=tenants, item_id=ids, text=texts, behind=staleness)
    def update(self, name: str, item_id: str, text: str, behind: int | None) -> None:
        """Change the text of an item, perhaps only at a revision."""
        tenant = self.tenants[name]
        known = tenant.oracle.items.get(item_id)
        compared = {} if known is None or behind is None else {"expected_revision": known.revision - behind}
        answer = tenant.call("Update", item={"id": item_id, "text": text}, **compared)
        if known is None:
            assert reason(answer) == "ITEM_NOT_FOUND"
        elif compared and behind:
            assert reason(answer) == "REVISION_MISMATCH"
        else:
            assert reason(answer) == "OK"
            known.text, known.revision = text, answer.item.revision

    @rule(name=tenants, item_id=ids)
    def delete(self, name: str, item_id: str) -> None:
        """Delete an item."""
        tenant = self.tenants[name]
        known = tenant.oracle.items.pop(item_id, None)
        assert reason(tenant.call("Delete", id=item_id)) == ("OK" if known else "ITEM_NOT_FOUND")

    @rule(name=tenants, key=keys, value=st.integers(0, 9), behind=staleness)
    def save_state(self, name: str, key: str, value: int, behind: int | None) -> None:
        """Save a value, perhaps only at a version."""
        tenant = self.tenants[name]
        oracle = tenant.oracle
        current = oracle.states[key][0] if key in oracle.states else 0
        expected = max(current - (behind or 0), 0)
        compared = {} if behind is None else {"expected_version": expected}
        answer = tenant.call("SaveState", key=key, value=json_value(value), **compared)
        if compared and expected != current:
            assert reason(answer) == "VERSION_MISMATCH"
            assert answer.metadata["current_version"] == str(current)
        else:
            assert reason(answer) == "OK"
            version = (current or oracle.version_floor) + 1
            assert answer.entry.version == version
            oracle.states[key] = version, value

    @rule(name=tenants, key=keys)
    def delete_state(self, name: str, key: str) -> None:
        """Delete a value."""
        tenant = self.tenants[name]
        known = key in tenant.oracle.states
        assert reason(tenant.call("DeleteState", key=key)) == ("OK" if known else "STATE_NOT_FOUND")
        if known:
            tenant.oracle.drop_state(key)

    @rule(name=tenants, fact=facts)
    def remember(self, name: str, fact: str) -> None:
        """Save a fact, which the other one may know."""
        tenant = self.tenants[name]
        answer = tenant.call(
            "SaveMemory", content=fact, category=5, reasoning="A lasting preference", keep_wording=True
        )
        assert reason(answer) == "OK"
        if fact in tenant.oracle.facts:
            assert answer.outcome == user_memory_pb2.MEMORY_OUTCOME_DUPLICATE
        else:
            assert answer.outcome == user_memory_pb2.MEMORY_OUTCOME_SAVED
            tenant.oracle.facts[fact] = answer.memory.id

    @rule(name=tenants, fact=facts)
    def forget(self, name: str, fact: str) -> None:
        """Forget a fact; by the other one's id where only that one knows it."""
        tenant = self.tenants[name]
        other = next(each for each in self.tenants.values() if each is not tenant)
        memory_id = tenant.oracle.facts.pop(fact, None)
        if memory_id is not None:
            assert reason(tenant.call("DeleteMemory", id=memory_id)) == "OK"
        elif fact in other.oracle.facts:
            answer = tenant.call("DeleteMemory", id=other.oracle.facts[fact])
            assert reason(answer) == "MEMORY_NOT_FOUND"

    @rule(name=tenants, text=texts, session=sessions, color=st.sampled_from([None, *COLORS]))
    def search(self, name: str, text: str, session: str, color: str | None) -> None:
        """Search among some of the items."""
        labels = {} if color is None else {"color": color}
        self.tenants[name].check_search(ALL_MODES, query_text=text, session_id=session, labels=labels)

    @rule(name=tenants, chance=st.integers(0, 3))
    def reset(self, name: str, chance: int) -> None:
        """Remove everything, seldom enough for others to grow."""
        if chance == 0:
            self.tenants[name].call("Reset")
            self.tenants[name].oracle.reset()

    @rule()
    def watch(self) -> None:
        """Check a watch of all changes so far."""
        self.tenants[CONTROLLED].check_history()

    @invariant()
    def each_has_its_own(self) -> None:
        """What each of them can read, and how it is scored, is its own."""
        for tenant in self.tenants.values():
            tenant.check()
            tenant.check_search([pb.RETRIEVE_MODE_HYBRID], query_text="a heron swims in the river")


# The store in memory is not for several tenants.
@pytest.fixture(scope="module", params=["hnsw", "memory"] if SOAK else ["hnsw"])
def clients(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[dict[str, Client], Client]]:
    """Two tenants of one server, and one of them alone on another."""
    flags = ["--auth", "keys", "--store", request.param]
    folder, lonely = (tmp_path_factory.mktemp(name) for name in ("shared", "lonely"))
    tokens = {name: _token(folder, name) for name in NAMES}
    alone = _token(lonely, CONTROLLED)
    with (
        ServerProcess(folder, flags=flags, env=SMALL_GRAPHS) as server,
        ServerProcess(lonely, flags=flags, env=SMALL_GRAPHS) as other,
    ):
        client, control = connect(server.address), connect(other.address, alone)
        yield {name: client.presenting(token) for name, token in tokens.items()}, control
        client.channel.close()
        control.channel.close()


def _token(folder: Path, name: str) -> str:
    return keys_in(folder).token(name, [pattern_of(name)])


def test_each_tenant_has_what_it_would_have_alone(clients: tuple[dict[str, Client], Client]) -> None:
    run_state_machine_as_test(
        seed(hypothesis_seed("two tenants"))(lambda: TwoTenants(*clients)),
        settings=settings(
            max_examples=rounds(8, 300),
            stateful_step_count=20,
            deadline=None,
            database=None,
            print_blob=False,
            suppress_health_check=list(HealthCheck),
            # No search for a shorter example, which would take minutes.
            phases=[Phase.generate],
        ),
    )
