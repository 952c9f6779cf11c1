"""A real server with a write policy: rejected and quarantined writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from click.testing import CliRunner

from credentials import BY_NAME, Client, connect, keys_in
from grpc_api import Api, eventually, json_value, struct
from memory_client import FailedPrecondition, MemoryClient, NotFound, QuarantineDecision
from memory_service.cli import main
from memory_service.data_model import ItemKind
from memory_service.v1 import admin_pb2 as admin
from memory_service.v1 import memory_pb2 as pb
from server_process import ServerProcess

BAD, ODD = "xyloforbidden", "xyloquestioned"
WHY_BAD, WHY_ODD = "no such words here", "to be looked at"
RULES = {
    "rules": [
        {"action": "reject", "reason": WHY_BAD, "contains": [BAD]},
        {"action": "quarantine", "reason": WHY_ODD, "contains": [ODD]},
    ]
}
ALL_KINDS = list(map(int, ItemKind))
QUARANTINED = pb.DEGRADATION_REASON_QUARANTINED
RELEASE, DELETE = admin.QUARANTINE_DECISION_RELEASE, admin.QUARANTINE_DECISION_DELETE
FACT = {"category": 2, "reasoning": "A lasting preference"}


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    path = tmp_path_factory.mktemp("rules") / "rules.json"
    path.write_text(json.dumps(RULES))
    return ["--write-policy-file", str(path)]


@pytest.fixture(scope="module", params=["hnsw", "memory"])
def client(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, rules: list[str]
) -> Iterator[Client]:
    """A server of each store with the rules."""
    where = tmp_path_factory.mktemp("data") if request.param == "hnsw" else None
    with ServerProcess(where, flags=["--store", request.param, *rules]) as process:
        client = connect(process.address)
        yield client
        client.channel.close()


@dataclass
class Space:
    """The namespace of one test."""

    client: Client
    namespace: str

    def call(self, name: str, **fields: Any) -> Any:
        return self.client.call(name, namespace=self.namespace, **fields)

    def refused(self, name: str, **fields: Any) -> Any:
        return self.client.refused(name, namespace=self.namespace, **fields)

    def add(self, text: str, **fields: Any) -> Any:
        return self.call("Add", item={"text": text, **fields})

    def everything(self) -> list[bytes]:
        """Return everything that can be read from the namespace, byte for byte."""
        listed = self.call("List", kinds=ALL_KINDS).items
        states = self.call("ListStateKeys").entries
        return [message.SerializeToString(deterministic=True) for message in (*listed, *states)]

    def held(self) -> list[Any]:
        return list(self.call("ListQuarantined").writes)

    def review(self, decision: int, held_id: str = "") -> Any:
        return self.call("ReviewQuarantined", id=held_id or self.held()[0].id, decision=decision)

    def found(self, text: str) -> list[str]:
        """Return the ids of the results of a search, of any kind, that contain the searched text."""
        options = {"query_text": text, "kinds": ALL_KINDS, "limit": -1}
        results = self.call("Retrieve", options=options).results
        return [result.item.id for result in results if text in str(result.item)]


@pytest.fixture
def space(client: Client, request: pytest.FixtureRequest) -> Space:
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)[:60]
    space = Space(client, f"{name}-{abs(hash(request.node.nodeid))}")
    space.add("hello there", id="old")
    space.call("StoreInteraction", sender="ada", content="what do herons eat?", id="said", session_id="s")
    space.call("SaveMemory", content="User likes green tea", **FACT)
    space.call("AddDocument", document={"id": "book", "text": "A book about herons."})
    space.call("SaveState", key="old", value=json_value(1))
    return space


Write = Callable[[Space, str], tuple[str, dict[str, Any], str]]


def _update_fact(space: Space, word: str) -> tuple[str, dict[str, Any], str]:
    (known,) = space.call("ListMemories").memories
    memory = {"id": known.id, "content": f"User likes {word} tea"}
    return "UpdateMemory", {"memory": memory, "update_mask": {"paths": ["content"]}}, "memories[0]"


def _label_fact(space: Space, word: str) -> tuple[str, dict[str, Any], str]:
    (memory,) = space.call("ListMemories").memories
    changed = {"id": memory.id, "labels": {"topic": word}}
    return "UpdateMemory", {"memory": changed, "update_mask": {"paths": ["labels"]}}, "memories[0]"


def _command(space: Space, word: str) -> tuple[str, dict[str, Any], str]:
    # As if stored before there was a policy: an answer whose parts are harmless on their own.
    message = {"role": "ROLE_ASSISTANT", "parts": [{"text": f"It is {word[:4]}"}]}
    space.call("Add", item={"session_id": "c", "chat_message": message})
    return (
        "HandleMessage",
        {"session_id": "c", "text": "remember this", "labels": {"topic": word}},
        "document",
    )


WRITES: dict[str, Write] = {
    "Add": lambda space, word: ("Add", {"item": {"text": f"a {word} heron"}}, "item"),
    "a label": lambda space, word: ("Add", {"item": {"text": "x", "labels": {"topic": word}}}, "item"),
    "metadata": lambda space, word: (
        "Add", {"item": {"text": "x", "metadata": struct({"deep": [{"k": word}]})}}, "item"
    ),
    "data": lambda space, word: ("Add", {"item": {"data": struct({word: 1})}}, "item"),
    "the result of a tool": lambda space, word: (
        "Add", {"item": {"tool_call_result": {"name": "web", "result": json_value({"page": [word]})}}}, "item"
    ),
    "a text file": lambda space, word: (
        "Add",
        {"item": {"chat_message": {"role": "ROLE_USER", "parts": [
            {"binary": {"mime_type": "text/plain", "content": word.encode()}}]}}},
        "item",
    ),
    "BatchAdd": lambda space, word: ("BatchAdd", {"items": [{"text": "fine"}, {"text": word}]}, "items[1]"),
    "Update": lambda space, word: ("Update", {"item": {"id": "old", "text": f"a {word} heron"}}, "item"),
    "an update of a label": lambda space, word: (
        "Update",
        {"item": {"id": "old", "labels": {"topic": word}}, "update_mask": {"paths": ["labels"]}},
        "item",
    ),
    "StoreInteraction": lambda space, word: (
        "StoreInteraction", {"sender": "ada", "content": f"a {word} heron"}, "interaction"
    ),
    "StoreResponse": lambda space, word: (
        "StoreResponse", {"in_response_to": "said", "content": f"a {word} heron"}, "interaction"
    ),
    "StoreReflection": lambda space, word: (
        "StoreReflection", {"content": f"I like {word} herons", "interaction_ids": ["said"]}, "interaction"
    ),
    "SaveMemory": lambda space, word: (
        "SaveMemory", {"content": f"User owns a {word} boat", **FACT}, "memories[0]"
    ),
    "a quote of a memory": lambda space, word: (
        "SaveMemory", {"content": "User owns a boat", "source": {"quote": word}, **FACT}, "memories[0]"
    ),
    "UpdateMemory": _update_fact,
    "a label of a memory": _label_fact,
    "ExtractMemories": lambda space, word: (
        "ExtractMemories",
        {"messages": [{"role": "ROLE_USER", "parts": [{"text": f"My name is {word.title()}."}]}]},
        "memories[0]",
    ),
    "AddDocument": lambda space, word: (
        "AddDocument", {"document": {"text": "Herons eat fish. " * 200 + word}}, "document"
    ),
    "the title of a document": lambda space, word: (
        "AddDocument", {"document": {"text": "Herons eat fish.", "title": word}}, "document"
    ),
    "a replaced document": lambda space, word: (
        "AddDocument", {"document": {"id": "book", "text": f"A {word} book"}, "replace": True}, "document"
    ),
    "HandleMessage": _command,
}  # fmt: skip


@pytest.mark.parametrize("name", WRITES)
def test_what_is_rejected_writes_nothing(space: Space, name: str) -> None:
    method, fields, field = WRITES[name](space, BAD)
    before = space.everything()
    refusal = space.refused(method, **fields)
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "WRITE_REJECTED")
    assert refusal.metadata["field"] == field
    assert refusal.message == f"{field}: {WHY_BAD}"
    assert space.everything() == before
    assert space.held() == []
    # The same write with other words is accepted: only the policy refused it.
    method, fields, _ = WRITES[name](space, "purple")
    assert QUARANTINED not in [d.reason for d in space.call(method, **fields).degraded]
    assert space.everything() != before


@pytest.mark.parametrize("name", WRITES)
def test_what_is_in_quarantine_is_read_by_nobody_until_it_is_released(space: Space, name: str) -> None:
    method, fields, _ = WRITES[name](space, ODD)
    before, revision = space.everything(), space.call("GetNamespaceStats").revision
    answer = space.call(method, **fields)
    assert [(d.reason, d.message) for d in answer.degraded if d.reason == QUARANTINED] == [
        (QUARANTINED, WHY_ODD)
    ]
    assert space.everything() == before
    assert space.found(ODD) == []
    assert space.call("GetNamespaceStats").revision == revision
    (held,) = space.held()
    assert held.reason == WHY_ODD
    assert held.expire_time.seconds - held.create_time.seconds == 30 * 24 * 3600
    assert ODD in str(held.items).lower()

    done = space.review(RELEASE)
    assert done.item_count == len(held.items)
    assert done.revision > revision
    assert space.held() == []
    after = space.everything()
    assert after != before
    ids = {item.id for item in held.items}
    listed = {item.id: item for item in space.call("List", kinds=ALL_KINDS).items}
    assert ids <= listed.keys()
    assert [listed[item.id].text for item in held.items] == [item.text for item in held.items]
    assert space.refused("ReviewQuarantined", id=held.id, decision=RELEASE).reason == "QUARANTINED_NOT_FOUND"


BATCHED: dict[str, tuple[dict[str, Any], str]] = {
    "add": ({"add": {"item": {"text": "a {word} heron"}}}, "operations[1].add.item"),
    "update": ({"update": {"item": {"id": "old", "text": "{word}"}}}, "operations[1].update.item"),
    "state": (
        {"save_state": {"key": "k", "value": {"string_value": "{word}"}}},
        "operations[1].save_state.value",
    ),
}


@pytest.mark.parametrize("word", [BAD, ODD])
@pytest.mark.parametrize("kind", BATCHED)
def test_a_batch_is_rejected_also_for_what_would_be_reviewed(space: Space, kind: str, word: str) -> None:
    operation, field = BATCHED[kind]
    named = json.loads(json.dumps(operation).replace("{word}", word))
    before = space.everything()
    refusal = space.refused("BatchWrite", operations=[{"add": {"item": {"text": "fine"}}}, named])
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "WRITE_REJECTED")
    assert refusal.metadata["field"] == field
    assert (space.everything(), space.held()) == (before, [])


def test_what_is_released_is_found_by_words_and_vector(space: Space) -> None:
    (item,) = [space.add(f"the {ODD} heron eats fish").item]
    assert item.revision == 0
    assert item.id
    space.review(RELEASE)
    for mode in ("RETRIEVE_MODE_LEXICAL", "RETRIEVE_MODE_VECTOR"):
        options = {"query_text": "which heron eats fish?", "mode": mode, "limit": 1}
        (result,) = space.call("Retrieve", options=options).results
        assert result.item.id == item.id
        assert result.item.revision > 0


def test_vectors_of_clients_are_kept_in_quarantine(client: Client, space: Space) -> None:
    own = Space(client, f"{space.namespace}-own")
    own.add(ODD, id="a", embedding={"values": [3.0, 4.0]})
    assert not own.held()[0].items[0].HasField("embedding")
    own.review(RELEASE)
    (item,) = [own.call("Get", id="a", include_embedding=True).item]
    assert list(item.embedding.values) == [3.0, 4.0]


def test_what_is_deleted_never_happens(space: Space) -> None:
    before = space.everything()
    space.add(ODD, id="new")
    done = space.review(DELETE)
    assert (done.item_count, space.held(), space.everything()) == (0, [], before)
    assert space.add("fine", id="new").item.revision > 0


def test_a_decision_is_required(space: Space) -> None:
    space.add(ODD)
    for decision in (0, 7):
        refusal = space.refused("ReviewQuarantined", id=space.held()[0].id, decision=decision)
        assert refusal.names("decision")
    assert space.refused("ReviewQuarantined", id="none", decision=DELETE).reason == "QUARANTINED_NOT_FOUND"
    assert len(space.held()) == 1


def test_a_write_that_is_no_longer_possible_stays(space: Space) -> None:
    space.add(ODD, id="taken")
    space.add("another", id="taken")
    (held,) = space.held()
    refusal = space.refused("ReviewQuarantined", id=held.id, decision=RELEASE)
    assert refusal.reason == "ITEM_ALREADY_EXISTS"
    assert space.held() == [held]
    space.review(DELETE)

    space.call("Update", item={"id": "old", "text": f"a {ODD} heron"})
    space.call("Update", item={"id": "old", "text": "an otter"})
    refusal = space.refused("ReviewQuarantined", id=space.held()[0].id, decision=RELEASE)
    assert refusal.reason == "REVISION_MISMATCH"
    assert space.call("Get", id="old").item.text == "an otter"


def test_what_cannot_be_is_refused_as_ever(space: Space) -> None:
    assert space.refused("Add", item={"id": "old", "text": ODD}).reason == "ITEM_ALREADY_EXISTS"
    assert space.refused("Update", item={"id": "none", "text": ODD}).reason == "ITEM_NOT_FOUND"
    stale = space.refused("Update", item={"id": "old", "text": ODD}, expected_revision=99)
    assert stale.reason == "REVISION_MISMATCH"
    assert space.refused("Add", item={"text": ODD, "labels": {"": "x"}}).reason == "INVALID_FIELD"
    assert space.held() == []


def test_one_request_is_kept_once_and_answered_alike_after_its_release(space: Space) -> None:
    fields = {"item": {"text": ODD}, "request_id": "r"}
    first = space.call("Add", **fields)
    assert space.call("Add", **fields) == first
    assert len(space.held()) == 1
    assert space.refused("Add", item={"text": f"other {ODD}"}, request_id="r").reason == "REQUEST_ID_REUSED"
    space.review(RELEASE)
    again = space.call("Add", **fields)
    assert (again.item.id, list(again.degraded)) == (first.item.id, [])
    assert again.item.revision == space.call("Get", id=first.item.id).item.revision
    assert space.held() == []


def test_what_would_end_is_not_ended_before_the_release(space: Space) -> None:
    (known,) = space.call("ListMemories").memories
    answer = space.call(
        "SaveMemory", content="User does not like green tea", source={"quote": ODD}, keep_wording=True, **FACT
    )
    assert [m.id for m in answer.superseded] == [known.id]
    assert space.call("ListMemories").memories == [known]
    space.review(RELEASE)
    (new,) = space.call("ListMemories").memories
    assert new.id == answer.memory.id
    assert list(new.supersedes) == [known.id]


def test_what_the_server_does_of_its_own_is_not_judged(space: Space) -> None:
    quoted = {"source": {"quote": ODD}, "keep_wording": True, **FACT}
    saved = space.call("SaveMemory", content="User lives in London", **quoted)
    space.review(RELEASE)
    # The superseded fact is written again with its end, and contains the reviewed words.
    answer = space.call("SaveMemory", content="User lives in Paris", keep_wording=True, **FACT)
    assert [memory.id for memory in answer.superseded] == [saved.memory.id]
    space.call("DeleteMemory", id=answer.memory.id)
    assert (list(answer.degraded), space.held()) == ([], [])


def test_states_have_no_quarantine(space: Space) -> None:
    before = space.everything()
    for word, why in ((BAD, WHY_BAD), (ODD, WHY_ODD)):
        for fields in (
            {"key": f"k {word}", "value": json_value(1)},
            {"key": "k", "value": json_value({"deep": [word]})},
            {"key": "k", "value": json_value(1), "description": word},
        ):
            refusal = space.refused("SaveState", **fields)
            assert (refusal.reason, refusal.metadata) == ("WRITE_REJECTED", {"field": "value"})
            assert refusal.message.endswith(why)
        people = json_value([{"athlete": f"{word} {n}"} for n in range(3)])
        asked = {"tool_name": "getKudos", "goal": "Save the list of athletes who gave me kudos for later"}
        assert space.call("EvaluateForStorage", result=people, **asked).should_save
        assert (
            space.refused("EvaluateForStorage", result=people, save=True, **asked).reason == "WRITE_REJECTED"
        )
    assert (space.everything(), space.held()) == (before, [])


def test_an_import_goes_on_without_what_is_in_quarantine(space: Space) -> None:
    items = [{"id": f"i{n}", "text": ODD if n % 2 else "fine"} for n in range(4)]
    done = space.call("Import", items=items)
    assert (done.imported_count, done.skipped_count) == (2, 0)
    assert [d.reason for d in done.degraded] == [QUARANTINED]
    assert [[item.id for item in write.items] for write in space.held()] == [["i1"], ["i3"]]
    again = space.call("Import", items=items[:3], on_duplicate="ON_DUPLICATE_SKIP")
    assert (again.imported_count, again.skipped_count) == (0, 2)
    space.review(RELEASE)
    space.call("Get", id="i1")
    states = [{"key": "k", "value": json_value(ODD)}]
    for bad in ({"items": [{"text": "fine", "id": "new"}, {"text": BAD}]}, {"states": states}):
        assert space.refused("Import", **bad).reason == "WRITE_REJECTED"
    assert space.refused("Get", id="new").reason == "ITEM_NOT_FOUND"


def test_pages_of_the_quarantine(space: Space) -> None:
    ids = [space.add(f"{ODD} {n}").item.id for n in range(5)]
    listed, token = [], ""
    for _ in range(3):
        page = space.call("ListQuarantined", page_size=2, page_token=token)
        listed += [item.id for write in page.writes for item in write.items]
        token = page.next_page_token
    assert (listed, token) == (ids, "")
    assert space.refused("ListQuarantined", page_token="forged").reason == "INVALID_PAGE_TOKEN"


def test_a_quarantine_is_full_at_its_limit(client: Client, space: Space) -> None:
    limit = client.call("GetInfo").limits["quarantined_writes_max"]
    for _ in range(limit // 500):
        space.call("Import", items=[{"text": ODD}] * 500)
    refusal = space.refused("Add", item={"text": ODD})
    assert (refusal.reason, refusal.metadata["limit_name"]) == ("LIMIT_EXCEEDED", "quarantined_writes_max")
    space.review(DELETE)
    space.add(ODD)


def test_watchers_hear_of_a_release_only(space: Space) -> None:
    stream = iter(space.client.start(BY_NAME["Watch"], pb.WatchRequest(namespace=space.namespace)))
    next(stream)
    held = space.add(ODD).item
    space.review(RELEASE)
    seen = next(stream).change
    assert (seen.item.id, seen.item.revision) == (held.id, space.call("Get", id=held.id).item.revision)


def test_an_undo_and_a_reset_forget_the_quarantine(space: Space) -> None:
    space.add(ODD)
    since = {"seconds": space.held()[0].create_time.seconds - 100}
    asked = {"any_writer": True, "since": since}
    counted = space.call("UndoWrites", dry_run=True, **asked).removed_count
    assert len(space.held()) == 1
    assert space.call("UndoWrites", **asked).removed_count == counted
    assert space.held() == []
    space.add(ODD)
    space.call("Reset")
    assert space.held() == []


# Separate servers


def test_a_quarantine_outlives_a_kill_and_an_export_has_none_of_it(tmp_path: Path, rules: list[str]) -> None:
    with ServerProcess(tmp_path / "data", flags=rules) as process:
        client = connect(process.address)
        space = Space(client, "ns")
        kept = space.add(f"{ODD} heron", session_id="s", labels={"a": "b"}).item
        space.add("fine")
        client.channel.close()
        process.kill()
    with ServerProcess(tmp_path / "data", flags=rules) as process:
        client = connect(process.address)
        space = Space(client, "ns")
        (held,) = space.held()
        assert held.items[0].id == kept.id
        export = client.start(BY_NAME["Export"], pb.ExportRequest(namespace="ns"))
        assert [record.item.text for record in export] == ["fine"]
        space.review(RELEASE)
        item = space.call("Get", id=kept.id).item
        assert (item.text, item.session_id, dict(item.labels)) == (f"{ODD} heron", "s", {"a": "b"})
        client.channel.close()


def test_who_wrote_it_stays_known_and_who_reviews_has_to_be_an_administrator(
    tmp_path: Path, rules: list[str]
) -> None:
    keys = keys_in(tmp_path)
    ada = keys.token("ada", roles=("read", "write"), trust=0.4)
    root = keys.token("root")
    with ServerProcess(tmp_path, flags=["--auth", "keys", *rules]) as process:
        client = connect(process.address, ada)
        hers, roots = Space(client, "ns"), Space(client.presenting(root), "ns")
        item = hers.add(ODD).item
        for name, fields in (
            ("ListQuarantined", {}),
            ("ReviewQuarantined", {"id": "x", "decision": RELEASE}),
        ):
            assert hers.refused(name, **fields).reason == "PERMISSION_DENIED"
        (held,) = roots.held()
        assert (held.items[0].provenance.writer, held.items[0].provenance.trust) == ("ada", 0.4)
        roots.review(RELEASE)
        known = roots.call("Get", id=item.id).item.provenance
        assert (known.writer, known.trust, known.write_time) == ("ada", 0.4, held.create_time)
        undone = roots.call("UndoWrites", writer="ada", since=held.create_time)
        assert undone.removed_count == 1
        client.channel.close()


def test_a_quarantine_expires_with_its_items(tmp_path: Path, rules: list[str]) -> None:
    with ServerProcess(tmp_path, flags=[*rules, "--sweep", "0.1"]) as process:
        client = connect(process.address)
        space = Space(client, "ns")
        space.add(ODD, ttl={"nanos": 500_000_000})
        space.call("BatchAdd", items=[{"text": ODD, "ttl": {"nanos": 500_000_000}}, {"text": "stays"}])
        eventually(lambda: len(space.held()) == 1, "what has expired leaves the quarantine")
        client.channel.close()


_POLICY = """
from memory_service.policies.base import ALLOWED, Action, Verdict, WritePolicy

class Odd(WritePolicy):
    async def judge(self, proposals):
        if any("raise" in proposal.text for proposal in proposals):
            raise RuntimeError("xylocontent")
        if any("short" in proposal.text for proposal in proposals):
            return []
        return [Verdict(Action.REJECT, "mine") if "no" in p.text else ALLOWED for p in proposals]
"""


def test_a_class_of_ones_own_decides_and_where_it_fails_nothing_gets_in(tmp_path: Path) -> None:
    (tmp_path / "my_policies.py").write_text(_POLICY)
    flags, env = ["--write-policy", "my_policies:Odd"], {"PYTHONPATH": str(tmp_path)}
    with ServerProcess(tmp_path / "data", flags=flags, env=env) as process:
        client = connect(process.address)
        space = Space(client, "ns")
        space.add("fine")
        assert space.refused("Add", item={"text": "no"}).message == "item: mine"
        for text in ("raise", "short"):
            assert space.refused("Add", item={"text": text}).reason == "INTERNAL"
        assert client.texts("ns") == ["fine"]
        assert "xylocontent" not in "".join(process.log)
        client.channel.close()


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--write-policy-file", "missing.toml"], "missing.toml cannot be read"),
        (["--write-policy", "nowhere"], "is not MODULE:CLASS"),
        (["--write-policy", "a:B", "--write-policy-file", "x.toml"], "cannot be given together"),
        (["--quarantine-days", "0"], "quarantine_days"),
    ],
)
def test_a_wrong_policy_ends_the_start(tmp_path: Path, flags: list[str], problem: str) -> None:
    with pytest.raises(RuntimeError, match=problem):
        ServerProcess(tmp_path, flags=flags).start()


def test_the_rules_are_good_for_the_server_of_the_docs(tmp_path: Path) -> None:
    docs = (Path(__file__).parents[1] / "docs" / "write-policy.md").read_text()
    (tmp_path / "rules.toml").write_text(docs.split("```toml\n")[1].split("```")[0])
    with ServerProcess(flags=["--store", "memory", "--write-policy-file", str(tmp_path / "rules.toml")]) as p:
        api = Api.connect(p.address)
        assert api.add("ns", text="fine").revision == 1
        api.channel.close()


# The command line and the clients


def test_the_command_line_lists_releases_and_deletes(tmp_path: Path, rules: list[str]) -> None:
    with ServerProcess(flags=["--store", "memory", *rules]) as process:
        environment = {"MEMORY_SERVICE_ADDRESS": process.address, "MEMORY_SERVICE_NAMESPACE": "ns"}

        def run(*arguments: str, exit_code: int = 0) -> Any:
            result = CliRunner(env=environment).invoke(main, arguments)
            assert result.exit_code == exit_code, (result.stderr, result.exception)
            return result

        added = run("add", f"first {ODD}", "--source", "web", "--trust", "0.25")
        assert f"note: {WHY_ODD} (QUARANTINED)" in added.stderr
        run("add", f"second {ODD}")
        assert "WRITE_REJECTED" in run("add", BAD, exit_code=1).stderr
        listed = run("quarantine", "list").stdout.splitlines()
        assert [WHY_ODD in line for line in listed] == [True, False, False, True, False]
        assert f"first {ODD}" in listed[1]
        assert listed[2].strip() == "by an unknown writer, web, trust 0.25"
        first, second = (
            json.loads(line)["id"] for line in run("quarantine", "list", "--json").stdout.splitlines()
        )
        assert run("quarantine", "release", first).stdout == "1 item written\n"
        assert run("quarantine", "delete", second).stdout == "deleted\n"
        assert run("quarantine", "list").stdout == ""
        assert f"first {ODD}" in run("list").stdout
        assert f"second {ODD}" not in run("list").stdout
        assert "QUARANTINED_NOT_FOUND" in run("quarantine", "delete", second, exit_code=1).stderr


def test_the_python_client_tells_of_a_policy_and_reviews(rules: list[str]) -> None:
    with (
        ServerProcess(flags=["--store", "memory", *rules]) as process,
        MemoryClient(process.address, namespace="ns") as memory,
    ):
        with pytest.raises(FailedPrecondition) as refused:
            memory.add(BAD)
        assert (refused.value.reason, refused.value.metadata["field"]) == ("WRITE_REJECTED", "item")
        item = memory.add(ODD)
        assert [(d.reason, d.message) for d in item.degraded] == [("QUARANTINED", WHY_ODD)]
        (write,) = memory.list_quarantined()
        assert (write.reason, [each.id for each in write.items]) == (WHY_ODD, [item.id])
        assert memory.review_quarantined(write.id, QuarantineDecision.RELEASE).item_count == 1
        assert memory.get(item.id).text == ODD
        with pytest.raises(NotFound):
            memory.review_quarantined(write.id, "delete")
