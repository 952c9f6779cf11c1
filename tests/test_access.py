"""Access control: every RPC that reflection lists, with every insufficient credential."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import jwt
import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from google.protobuf.descriptor import Descriptor, MethodDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from credentials import BY_NAME, ROLES, Client, Issuer, KeyMaker, connect, jwt_flags, keys_in
from grpc_api import METHODS, eventually, json_value, outcome, path, valid_request
from memory_service.cli import main
from memory_service.credentials.grants import BadGrant
from memory_service.runtime.caller import Role
from memory_service.server.methods import SERVED, Audit, Reach
from memory_service.v1 import memory_pb2
from server_process import ServerProcess

IDS = [f"{method.containing_service.name}.{method.name}" for method in METHODS]
NAMESPACED = [method for method in METHODS if "namespace" in method.input_type.fields_by_name]
every_rpc = pytest.mark.parametrize("method", METHODS, ids=IDS)


@dataclass(frozen=True)
class Guarded:
    """A server that requires keys or JWTs, and the issuers of both."""

    server: ServerProcess
    keys: KeyMaker
    issuer: Issuer
    client: Client
    """A client without credentials."""
    root: Client
    """A client with all permissions."""
    good_key: str
    expired_key: str
    revoked_key: str
    mine_key: str
    """A token for MINE alone."""

    def holding(self, namespaces: Sequence[str] = ("*",), roles: Sequence[str] = ROLES) -> Client:
        """Return a client with a token for these namespaces and roles."""
        return self.client.presenting(self.issuer.token(namespaces=list(namespaces), roles=list(roles)))


NEAR_MINE = ("min", "mine2", "MINE", "theirs ", "../theirs", "mine\0", "*", "\uff4dine", "m\u0131ne", "mine*")
NEAR_MINE += ("auth0|667", "auth0|6", "auth0|", "李", "李雷2", "Zoe\u0308", "st*rs", "st*r*", "st\\*r")
MINE = ("mine", "mine/*", "their", "theirs/*", "auth0|66", "李雷", "Zo\u00eb", "st\\*r")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """One server for the whole file."""
    folder = tmp_path_factory.mktemp("guarded")
    keys, issuer = keys_in(folder), Issuer()
    (folder / "jwks.json").write_text(issuer.key_set())
    good, expired, revoked, mine = keys.token(), keys.expired(), keys.revoked(), keys.token("me", MINE)
    flags = ["--auth", "keys,jwt", "--embedder", "none", *jwt_flags(str(folder / "jwks.json"))]
    with ServerProcess(folder, flags=flags) as server:
        client = connect(server.address)
        yield Guarded(server, keys, issuer, client, client.presenting(good), good, expired, revoked, mine)
        client.channel.close()


@pytest.fixture(scope="module")
def filled(guarded: Guarded) -> str:
    """A namespace that has everything `valid_request` refers to."""
    fill(guarded.root, "theirs")
    return "theirs"


def fill(client: Client, namespace: str) -> None:
    """Write one thing of each kind."""
    client.call(
        "Add", namespace=namespace, item=memory_pb2.MemoryItem(id="old", text="a heron", session_id="s")
    )
    client.call("SaveState", namespace=namespace, key="old", value=json_value(1))
    client.call(
        "SaveMemory",
        namespace=namespace,
        content="User likes tea",
        category=2,
        reasoning="A lasting preference",
    )
    client.call("StoreInteraction", namespace=namespace, sender="ada", content="hello")
    client.call("AddDocument", namespace=namespace, document={"id": "book", "text": "A long book."})
    client.call("Add", namespace=namespace, item={"session_id": "s", "text": "said"})
    client.call("WriteFile", namespace=namespace, path="/file", content="A short file.")


def tampered(token: str) -> str:
    """Return the same token with one character of its secret changed."""
    return token[:-2] + ("A" if token[-2] != "A" else "B") + token[-1]


def unsigned(guarded: Guarded) -> str:
    """Return a token whose header declares that it has no signature."""
    _, payload, _ = guarded.issuer.token(headers={"kid": "EdDSA"}).split(".")
    none = base64.urlsafe_b64encode(json.dumps({"alg": "none", "kid": "EdDSA"}).encode()).decode().rstrip("=")
    return f"{none}.{payload}."


def signed_with_public_key(guarded: Guarded) -> str:
    """Return a token signed by HMAC with a public key as its secret."""
    public = guarded.issuer.private["RS256"].public_key()
    secret = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    payload = guarded.issuer.token("RS256").split(".")[1]
    header = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"RS256","typ":"JWT"}').decode().rstrip("=")
    hmac = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
    signature = hmac.sign(f"{header}.{payload}".encode(), secret)
    return f"{header}.{payload}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


BAD: dict[str, Callable[[Guarded], str]] = {
    "none": lambda g: "",
    "garbage": lambda g: "garbage",
    "garbage with dots": lambda g: "a.b.c",
    "nested garbage": lambda g: base64.urlsafe_b64encode(b"[" * 3000).decode() + ".e30.",
    "key of another shape": lambda g: "mem_1_2",
    "wrong secret": lambda g: tampered(g.good_key),
    "unknown id": lambda g: "mem_" + "0" * 16 + g.good_key[20:],
    "expired key": lambda g: g.expired_key,
    "revoked key": lambda g: g.revoked_key,
    "expired JWT": lambda g: g.issuer.token(exp=int(time.time()) - 61),
    "JWT that begins later": lambda g: g.issuer.token(nbf=int(time.time()) + 90),
    "JWT without exp": lambda g: g.issuer.token(exp=None),
    "wrong issuer": lambda g: g.issuer.token(iss="https://other.example"),
    "no issuer": lambda g: g.issuer.token(iss=None),
    "wrong audience": lambda g: g.issuer.token(aud="another-service"),
    "no audience": lambda g: g.issuer.token(aud=None),
    "no subject": lambda g: g.issuer.token(sub=None),
    "empty subject": lambda g: g.issuer.token(sub=""),
    "alg none": unsigned,
    "HS256 with the public key": signed_with_public_key,
    "another algorithm of the same key": lambda g: g.issuer.token("RS256", algorithm="RS512"),
    "missing kid": lambda g: g.issuer.token(headers={}),
    "unknown kid": lambda g: g.issuer.token(headers={"kid": "nobody's"}),
    "kid of another key": lambda g: g.issuer.token(headers={"kid": "ES256"}),
    "signed by somebody else": lambda g: Issuer().token(),
    "key brought along": lambda g: (other := Issuer()).token(
        headers={"kid": "mine", "jwk": other.public("EdDSA")}
    ),
    "no namespaces": lambda g: g.issuer.token(namespaces=None),
    "empty namespaces": lambda g: g.issuer.token(namespaces=[]),
    "namespaces as a text": lambda g: g.issuer.token(namespaces="*"),
    "a pattern in the middle": lambda g: g.issuer.token(namespaces=["a*b"]),
    "no roles": lambda g: g.issuer.token(roles=None),
    "unknown role": lambda g: g.issuer.token(roles=["read", "root"]),
    "roles as a map": lambda g: g.issuer.token(roles={"admin": True}),
    "trust above 1": lambda g: g.issuer.token(trust=1.5),
    "trust that is no number": lambda g: g.issuer.token(trust="1"),
}


def served(client: Client) -> set[str]:
    """Return the paths of all methods of this server's services that reflection lists."""
    stub = reflection_pb2_grpc.ServerReflectionStub(client.channel)

    def ask(**question: Any) -> Any:
        request = reflection_pb2.ServerReflectionRequest(**question)
        return next(stub.ServerReflectionInfo(iter([request]), metadata=client.metadata))

    found = set()
    for service in ask(list_services="").list_services_response.service:
        if not service.name.startswith("memory_service."):
            continue
        files = ask(file_containing_symbol=service.name).file_descriptor_response.file_descriptor_proto
        for raw in files:
            file = FileDescriptorProto.FromString(raw)
            for each in file.service:
                found |= {f"/{file.package}.{each.name}/{method.name}" for method in each.method}
    return found


def test_the_table_of_methods_has_every_one_that_is_served_and_no_other(guarded: Guarded) -> None:
    assert set(SERVED) == served(guarded.root) == {path(method) for method in METHODS}


@every_rpc
def test_what_the_audit_log_has_of_a_method_goes_with_the_roles_that_it_needs(
    method: MethodDescriptor,
) -> None:
    known = SERVED[path(method)]
    roles = known.roles - {Role.READ}
    if known.audit is Audit.READ:
        assert roles <= {Role.ADMIN}
    elif known.audit is Audit.AHEAD:
        # Or some of its requests need a role that may delete.
        assert roles & {Role.FORGET, Role.ADMIN} or known.added is not None
    else:
        assert Role.WRITE in roles


def namespace_fields(message: Descriptor, before: str = "", seen: tuple[str, ...] = ()) -> set[str]:
    """Return the paths of all fields of a request, at any depth, that could name a namespace."""
    found = {f"{before}{field.name}" for field in message.fields if "namespace" in field.name}
    for field in message.fields:
        inner = field.message_type
        if inner is not None and inner.full_name not in seen and not inner.full_name.startswith("google."):
            found |= namespace_fields(inner, f"{before}{field.name}.", (*seen, inner.full_name))
    return found


@every_rpc
def test_the_table_looks_at_every_field_that_names_a_namespace(method: MethodDescriptor) -> None:
    looked_at = {"namespace"} if SERVED[path(method)].reach is Reach.NAMESPACE else set()
    if SERVED[path(method)].others is not None:
        looked_at.add("namespaces")
    assert namespace_fields(method.input_type) == looked_at


def test_health_needs_no_credential_and_reflection_does(guarded: Guarded) -> None:
    health = health_pb2_grpc.HealthStub(guarded.client.channel)
    assert health.Check(health_pb2.HealthCheckRequest()).status == health_pb2.HealthCheckResponse.SERVING
    with pytest.raises(grpc.RpcError) as caught:
        served(guarded.client)
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert served(guarded.holding(["x"], ["read"]))


# One of each way in which a credential can be invalid; the method plays no part in other refusals.
KINDS = (
    *("none", "garbage", "wrong secret", "unknown id", "expired key", "revoked key", "expired JWT"),
    *("wrong issuer", "wrong audience", "alg none", "HS256 with the public key", "missing kid", "no roles"),
)


@pytest.mark.parametrize("how", BAD)
def test_no_rpc_takes_a_bad_credential(guarded: Guarded, filled: str, how: str) -> None:
    client = guarded.client.presenting(BAD[how](guarded))
    answers = set()
    for method in METHODS if how in KINDS else METHODS[::10]:
        # Once for something that exists, and once for something that does not or is no request at all.
        other = b"\xff\xff" if how == "none" else valid_request(method, "nothing")
        for request in (valid_request(method, filled), other):
            answers.add(str(client.refused(method, request)))
    assert len(answers) == 1, "what exists cannot be told from what does not"
    assert "reason='UNAUTHENTICATED'" in answers.pop()


@pytest.mark.parametrize(
    "metadata",
    [
        (("authorization", ""),),
        (("authorization", "Bearer"),),
        (("authorization", "Bearer "),),
        (("authorization", "Basic {token}"),),
        (("authorization", "{token}"),),
        (("authorization", "Bearer {token}"), ("authorization", "Bearer {token}")),
        (("authorization", "Bearer {token},Bearer {token}"),),
        (("authorization-bin", b"Bearer {token}"),),
        (("x-api-key", "{token}"),),
        (("authorization", "Bearer " + "x" * 7900),),
    ],
    ids=str,
)
def test_a_credential_comes_in_one_form_only(guarded: Guarded, metadata: Any) -> None:
    token = guarded.good_key
    client = guarded.client
    filled_in = tuple(
        (
            key,
            value.replace(b"{token}", token.encode())
            if isinstance(value, bytes)
            else value.replace("{token}", token),
        )
        for key, value in metadata
    )
    assert Client(client.channel, filled_in).refused("GetInfo").reason == "UNAUTHENTICATED"
    assert Client(client.channel, (("authorization", f"bearer {token}"),)).call("GetInfo").version


@every_rpc
def test_every_missing_role_refuses_an_rpc_and_nothing_else_is_needed(
    guarded: Guarded, method: MethodDescriptor
) -> None:
    needed = {role.value for role in SERVED[path(method)].roles}
    for role in sorted(needed):
        client = guarded.holding(roles=[each for each in ROLES if each != role])
        refusals = {
            client.refused(method, request).reason
            for request in (valid_request(method, "roles"), valid_request(method, "nothing"), b"\xff\xff")
        }
        assert refusals == {"PERMISSION_DENIED"}, role
    fill(guarded.root, "roles")
    exact = guarded.holding(roles=sorted(needed) or ["forget"])
    # The request may fail for other reasons; all that matters is that access was granted.
    answered = outcome(lambda: exact.call(method, valid_request(method, "roles")))
    assert answered.name in ("OK", "NOT_FOUND", "FAILED_PRECONDITION")
    guarded.root.call("Reset", namespace="roles")


@pytest.mark.parametrize("kind", ["key", "token"])
@pytest.mark.parametrize("method", NAMESPACED, ids=lambda method: method.name)
def test_a_namespace_of_others_is_refused_whether_it_exists_or_not(
    guarded: Guarded, filled: str, method: MethodDescriptor, kind: str
) -> None:
    client = guarded.holding(MINE) if kind == "token" else guarded.client.presenting(guarded.mine_key)
    answers = {
        str(client.refused(method, valid_request(method, namespace)))
        for namespace in (filled, "nothing", "", *(NEAR_MINE if kind == "key" else ()))
    }
    assert len(answers) == 1, "what exists cannot be told from what does not"
    assert "reason='PERMISSION_DENIED'" in answers.pop()


def test_names_and_prefixes_are_all_that_a_credential_is_good_for(guarded: Guarded) -> None:
    client = guarded.holding(["one", "team/*"])
    for namespace in ("one", "team/a", "team/a/b"):
        client.call("Add", namespace=namespace, item=memory_pb2.MemoryItem(text="x"))
        assert client.texts(namespace) == ["x"]
    for namespace in ("one/a", "on", "team", "teams/a"):
        assert client.refused("List", namespace=namespace).reason == "PERMISSION_DENIED", namespace


def test_each_namespace_of_a_joint_search_is_held_to_the_credential(guarded: Guarded) -> None:
    client = guarded.holding(["one", "team/*"])
    guarded.root.call("Add", namespace="secret", item=memory_pb2.MemoryItem(text="a heron"))
    for namespace in ("one", "team/a"):
        client.call("Add", namespace=namespace, item=memory_pb2.MemoryItem(text="a heron"))
    query = {"query_text": "heron"}
    for namespace, others in (("one", ["team/a"]), ("", ["team/a", "one"])):
        found = client.call("Retrieve", namespace=namespace, namespaces=others, options=query)
        assert sorted(result.namespace for result in found.results) == ["one", "team/a"]
    refused = [
        client.refused("Retrieve", namespace=namespace, namespaces=others, options=query)
        for other in ("secret", "nothing", "")
        for namespace, others in (
            ("one", [other]), ("one", ["team/a", other]), ("one", [other, "one"]), ("", [other]),
            (other or "secret", ["one"]),
        )
    ]  # fmt: skip
    assert {str(error) for error in refused} == {str(refused[0])}
    assert refused[0].reason == "PERMISSION_DENIED"


def test_names_of_any_alphabet_can_be_granted(guarded: Guarded) -> None:
    exact = [
        "auth0|66",
        "+4917612345",
        "kim+x@example.com",
        "李雷",
        "O'Brien, Pat",
        r"DOMAIN\\kim",
        r"st\*r",
        r"end\*",
    ]
    client = guarded.holding([*exact, "tenant 7|*", r"a\\*", r"b\**"])
    allowed = [
        "auth0|66",
        "+4917612345",
        "kim+x@example.com",
        "李雷",
        "O'Brien, Pat",
        "DOMAIN\\kim",
        "st*r",
        "end*",
    ]
    allowed += ["tenant 7|李", "a\\", "a\\*", "a\\b", "b*", "b*c"]
    for namespace in allowed:
        client.call("Add", namespace=namespace, item=memory_pb2.MemoryItem(text="x"))
        assert client.texts(namespace) == ["x"], namespace
    assert {each.namespace for each in client.call("ListNamespaces").namespaces} == set(allowed)
    others = [
        "auth0|6",
        "auth0|667",
        "李雷2",
        "end",
        "end*a",
        "endless",
        "star",
        "st\\*r",
        "DOMAIN\\\\kim",
        "tenant 7",
        "ab",
        "bc",
    ]
    for namespace in others:
        assert client.refused("List", namespace=namespace).reason == "PERMISSION_DENIED", namespace


@pytest.mark.parametrize(
    "pattern", ["", "a*b", "**", "a\\", r"a\b", "a\n", "a\0*", "Zoe\u0308", "x" * 257, "李" * 86]
)
def test_a_pattern_that_is_none_cannot_be_granted(guarded: Guarded, pattern: str) -> None:
    with pytest.raises(BadGrant):
        guarded.keys.make("ada", [pattern])
    assert guarded.holding([pattern]).refused("List", namespace="a").reason == "UNAUTHENTICATED"


def test_counting_uses_is_writing(guarded: Guarded, filled: str) -> None:
    reader = guarded.holding(roles=["read"])
    counting = {"query_text": "heron", "record_usage": True}
    assert reader.call("Retrieve", namespace=filled, options={"query_text": "heron"}).results
    assert reader.refused("Retrieve", namespace=filled, options=counting).reason == "PERMISSION_DENIED"
    both = guarded.holding(roles=["read", "write"])
    assert both.call("Retrieve", namespace=filled, options=counting).results


def test_counting_what_a_deletion_would_delete_is_reading(guarded: Guarded, filled: str) -> None:
    forgetter, both = guarded.holding(roles=["forget"]), guarded.holding(roles=["read", "forget"])
    for condition in ({"filter": 'metadata.pw = "x"'}, {"labels": {"k": "v"}}, {"session_id": "s"}):
        asked = {"namespace": filled, **condition}
        refused = forgetter.refused("DeleteWhere", **asked, dry_run=True)
        assert (refused.reason, refused.code.name) == ("PERMISSION_DENIED", "PERMISSION_DENIED")
        both.call("DeleteWhere", **asked, dry_run=True)
    forgetter.call("DeleteWhere", namespace=filled, session_id="of nobody")


def test_letting_items_live_on_is_writing(guarded: Guarded, filled: str) -> None:
    reader, both = guarded.holding(roles=["read"]), guarded.holding(roles=["read", "write"])
    there = both.call("Add", namespace=filled, item={"text": "x"}).item.id
    asked = {"namespace": filled, "id": there, "refresh_ttl": True}
    assert reader.refused("Get", **asked).reason == "PERMISSION_DENIED"
    assert both.call("Get", **asked).item.id == there
    options = {"refresh_ttl": True}
    refused = reader.refused("Retrieve", namespace=filled, options=options)
    assert refused.reason == "PERMISSION_DENIED"
    assert both.call("Retrieve", namespace=filled, options=options).results


def test_naming_parents_is_reading(guarded: Guarded, filled: str) -> None:
    writer, both = guarded.holding(roles=["write"]), guarded.holding(roles=["read", "write"])
    plain = {"text": "x"}
    there = both.call("Add", namespace=filled, item=plain).item.id
    for parent in (there, "nowhere"):
        item = {**plain, "provenance": {"parent_ids": [parent]}}
        assert writer.refused("Add", namespace=filled, item=item).reason == "PERMISSION_DENIED"
        items = [plain, item]
        assert writer.refused("BatchAdd", namespace=filled, items=items).reason == "PERMISSION_DENIED"
    assert writer.call("Add", namespace=filled, item=plain).item.id
    child = {**plain, "provenance": {"parent_ids": [there]}}
    assert both.call("Add", namespace=filled, item=child).item.provenance.parent_ids == [there]


def test_naming_interactions_is_reading(guarded: Guarded, filled: str) -> None:
    """They become parents: the response shows which of them exist, and their trust."""
    writer, both = guarded.holding(roles=["write"]), guarded.holding(roles=["read", "write"])
    there = both.call("Add", namespace=filled, item={"text": "x"}).item.id
    for about in (there, "nowhere"):
        thought = {"namespace": filled, "content": "hm", "interaction_ids": [about]}
        assert writer.refused("StoreReflection", **thought).reason == "PERMISSION_DENIED"
    assert writer.call("StoreReflection", namespace=filled, content="hm").interaction.id
    thought = {"namespace": filled, "content": "hm", "interaction_ids": [there]}
    assert both.call("StoreReflection", **thought).interaction.provenance.parent_ids == [there]


def test_methods_on_the_whole_server_need_a_credential_for_all_of_it(guarded: Guarded) -> None:
    whole = [method for method in METHODS if SERVED[path(method)].reach is Reach.SERVER]
    assert {method.name for method in whole} == {"Flush", "Backup"}
    client = guarded.holding(["theirs", "a*"])
    for method in whole:
        assert client.refused(method).reason == "PERMISSION_DENIED"


def test_each_message_of_an_import_is_held_to_the_namespaces(guarded: Guarded) -> None:
    client = guarded.holding(["mine"], ["write"])
    item = memory_pb2.MemoryItem(text="x")

    def upload(*namespaces: str) -> Any:
        messages = [memory_pb2.ImportRequest(namespace=name, items=[item]) for name in namespaces]
        return client.start(BY_NAME["Import"], iter(messages))

    assert upload("mine", "", "mine").imported_count == 3
    for namespaces in (("theirs",), ("mine", "theirs"), ("mine", "", "theirs"), ("", "mine")):
        with pytest.raises(grpc.RpcError) as caught:
            upload(*namespaces)
        assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED, namespaces
    assert guarded.root.refused("GetNamespaceStats", namespace="nothing").reason == "NAMESPACE_NOT_FOUND"


def test_calls_that_are_denied_are_not_counted(guarded: Guarded) -> None:
    mine = guarded.client.presenting(guarded.mine_key)
    guarded.root.call("Add", namespace="counted", item={"text": "x"})
    for _ in range(3):
        assert mine.refused("List", namespace="counted").code is grpc.StatusCode.PERMISSION_DENIED
        assert guarded.client.refused("List", namespace="counted").code is grpc.StatusCode.UNAUTHENTICATED
    stats = guarded.root.call("GetNamespaceStats", namespace="counted", include_usage=True)
    assert stats.usage.call_count == 2


def test_each_message_of_an_import_is_held_to_what_it_names(guarded: Guarded, filled: str) -> None:
    """A parent in the second message reveals as much as one in the first."""
    writer, both = guarded.holding(roles=["write"]), guarded.holding(roles=["read", "write"])
    keys = [guarded.keys.token("ada", roles=roles) for roles in (["write"], ["read", "write"])]
    of_keys = [guarded.client.presenting(key) for key in keys]
    for client in of_keys:
        known = lambda client=client: outcome(lambda: client.call("GetInfo")).name == "OK"
        eventually(known, "the key is known")
    there = both.call("Add", namespace=filled, item={"text": "x"}).item.id
    plain = memory_pb2.MemoryItem(text="imported")
    child = memory_pb2.MemoryItem(text="child")
    child.provenance.parent_ids.append(there)

    def upload(client: Client, *messages: tuple[str, list[memory_pb2.MemoryItem]]) -> Any:
        requests = [memory_pb2.ImportRequest(namespace=name, items=items) for name, items in messages]
        return client.start(BY_NAME["Import"], iter(requests))

    for client in (writer, of_keys[0]):
        for second in ("", filled):
            for later in ([child], [plain, child]):
                for before in ([(filled, [plain])], [(filled, []), ("", [plain])]):
                    with pytest.raises(grpc.RpcError) as caught:
                        upload(client, *before, (second, later))
                    assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED, (second, later)
        assert upload(client, (filled, [plain]), ("", [plain])).imported_count == 2
    for client in (both, of_keys[1]):
        assert upload(client, (filled, [plain]), ("", [child])).imported_count == 2


def test_only_the_callers_namespaces_are_listed_page_by_page(guarded: Guarded) -> None:
    names = ["ls/a", "ls/a/1", "ls/a/2", "ls/b", "ls/c", "lsx"]
    for name in names:
        guarded.root.call("Add", namespace=name, item=memory_pb2.MemoryItem(text="x"))

    def listed(client: Client, prefix: str = "ls", size: int = 1) -> list[str]:
        found, token = [], ""
        while True:
            page = client.call("ListNamespaces", prefix=prefix, page_size=size, page_token=token)
            found += [each.namespace for each in page.namespaces]
            token = page.next_page_token
            if not token:
                return found

    def holding(*namespaces: str) -> Client:
        return guarded.holding(namespaces, ["read"])

    assert listed(guarded.root) == names
    assert listed(holding("ls/c", "ls/a/*", "ls/a*", "missing", "ls/a")) == [
        "ls/a",
        "ls/a/1",
        "ls/a/2",
        "ls/c",
    ]
    assert listed(holding("l*"), "ls/", 2) == names[:-1]
    assert listed(holding("ls/b"), "") == ["ls/b"]
    assert listed(holding("ls/b"), "ls/c") == []
    assert listed(holding("other")) == []
    token = guarded.root.call("ListNamespaces", prefix="ls", page_size=1).next_page_token
    assert (
        holding("ls/*").refused("ListNamespaces", prefix="ls", page_token=token).reason
        == "INVALID_PAGE_TOKEN"
    )


def test_a_server_without_authentication_takes_all_and_ignores_tokens(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, flags=["--embedder", "none"]) as server:
        client = connect(server.address, "garbage")
        for method in METHODS:
            answered = outcome(lambda method=method: client.call(method, valid_request(method, "any")))  # type: ignore[misc]
            assert answered.name not in ("UNAUTHENTICATED", "PERMISSION_DENIED")
        client.channel.close()


def flags_that_cannot_be(folder: Path) -> dict[str, tuple[list[str], str]]:
    """Contradictory settings and the server's error message."""
    keys, empty = folder / "keys.json", folder / "empty.json"
    keys_in(folder).make()
    (folder / "api-keys.json").replace(keys)
    for name in ("empty.json", "empty.json.pepper", "keys.json.pepper"):
        (folder / name).touch(0o600)
    empty.write_text('{"format": 1, "keys": []}')
    jwks = folder / "jwks.json"
    jwks.write_text(Issuer().key_set())
    symmetric = folder / "symmetric.json"
    symmetric.write_text('{"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "a", "alg": "HS256"}]}')
    jwt_all = jwt_flags(str(jwks))
    return {
        "unknown method": (["--auth", "passwords"], "passwords"),
        "none and another": (["--auth", "none,keys"], "none"),
        "nothing": (["--auth", ""], "auth"),
        "twice": (["--auth", "keys,keys"], "duplicates"),
        "keys without a file": (["--auth", "keys"], "api_keys"),
        "certificates that nobody shows": (["--auth", "mtls"], "tls_client_ca"),
        "empty pepper": (["--auth", "keys", "--api-keys", str(keys)], "pepper"),
        "empty pepper and no key": (["--auth", "keys", "--api-keys", str(empty)], "pepper"),
        "a file for nothing": (["--api-keys", str(keys)], "api_keys"),
        "an issuer for nothing": (["--jwt-issuer", "x"], "jwt_issuer"),
        "a longest life of nothing": (["--jwt-lifetime-s-max", "60"], "jwt_lifetime_s_max"),
        "a life below nothing": (
            ["--auth", "jwt", *jwt_all, "--jwt-lifetime-s-max", "-1"],
            "jwt_lifetime_s_max",
        ),
        "no issuer": (["--auth", "jwt", *jwt_all[:2], *jwt_all[4:]], "jwt_issuer"),
        "no audience": (["--auth", "jwt", *jwt_all[:4]], "jwt_audience"),
        "no key set": (["--auth", "jwt", *jwt_all[2:]], "jwt_keys"),
        "key set that is not there": (["--auth", "jwt", *jwt_flags(str(folder / "no"))], "jwt_keys"),
        "key set of secrets": (["--auth", "jwt", *jwt_flags(str(symmetric))], "jwt_keys"),
        "key set over http": (["--auth", "jwt", *jwt_flags("http://issuer.example/keys")], "https"),
        "http that looks local": (["--auth", "jwt", *jwt_flags("http://localhost.example/keys")], "https"),
        "HMAC": (["--auth", "jwt", *jwt_all, "--jwt-algorithms", "EdDSA,HS256"], "jwt_algorithms"),
        "algorithm none": (["--auth", "jwt", *jwt_all, "--jwt-algorithms", "none"], "jwt_algorithms"),
        "no algorithm": (["--auth", "jwt", *jwt_all, "--jwt-algorithms", ""], "jwt_algorithms"),
    }


def test_settings_that_contradict_each_other_end_the_start(tmp_path: Path) -> None:
    for how, (flags, said) in flags_that_cannot_be(tmp_path).items():
        command = [
            "serve",
            "--address",
            "127.0.0.1:0",
            "--embedder",
            "none",
            "--data-dir",
            str(tmp_path / "data"),
        ]
        ended = CliRunner().invoke(main, [*command, *flags])
        assert ended.exit_code == 1, (how, ended.output)
        assert said in ended.output, how
