"""Hostile namespaces and forged page tokens are refused; odd names are just names."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor

from grpc_api import METHODS, Api, Refusal, outcome, refusal, valid_request
from memory_service.v1 import admin_pb2, state_pb2
from memory_service.v1 import memory_pb2 as pb

REFUSALS = {
    (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD"),
    (grpc.StatusCode.RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED"),
}
HOSTILE_NAMESPACES = {
    "empty": "",
    "up": "../../etc",
    "up inside": "a/../b",
    "dots": "..",
    "absolute": "/etc",
    "trailing slash": "a/",
    "double slash": "a//b",
    "257 bytes": "x" * 257,
    "258 bytes": "李" * 86,
    "line break": "a\nb",
    "NUL": "a\0b",
    "blank": " ",
    "leading space": " a",
    "trailing space": "a ",
    "trailing wide space": "a\u3000",
    "trailing no-break space": "a\u00a0",
    "escape": "a\x1b[31m",
    "C1 control": "a\x85b",
    "delete": "a\x7f",
    "decomposed": "Zoe\u0308",
    "Angstrom sign": "\u212b",
    "decomposed Hangul": "\u1112\u1161\u11ab",
    "marks out of order": "a\u0301\u0323",
}
WITH_NAMESPACE = [m for m in METHODS if "namespace" in m.input_type.fields_by_name]


@pytest.mark.parametrize("method", WITH_NAMESPACE, ids=lambda method: method.name)
def test_hostile_namespaces_are_refused_by_every_rpc(api: Api, method: MethodDescriptor) -> None:
    for name, namespace in HOSTILE_NAMESPACES.items():
        error = refusal(partial(api.call, method), valid_request(method, namespace))
        assert (error.code, error.reason) in REFUSALS, name
        assert error.reason == "LIMIT_EXCEEDED" or error.names("namespace"), name
        assert error.metadata["field"] == "namespace", name
    listed = api.admin.ListNamespaces(admin_pb2.ListNamespacesRequest(page_size=1000)).namespaces
    assert {summary.namespace for summary in listed}.isdisjoint(HOSTILE_NAMESPACES.values())


ODD_NAMESPACES = [".", "-x", "--help", "_", ".hidden", "CON", "nul", "a:b", "user@example.org", "a/b/c"]
ODD_NAMESPACES += ["data.sqlite", "0", "A" * 256, "a" * 256, "李" * 85, "index", "a.", "a/.b"]
USER_IDS = [
    "auth0|66",
    "+4917612345",
    "kim+x@example.com",
    "李雷",
    "Zo\u00eb",
    "O'Brien, Pat",
    "DOMAIN\\kim",
    "a b",
]
ODD_NAMESPACES += USER_IDS
# Special in SQL, patterns, URLs, headers, shells or file names; or only similar to another name.
ODD_NAMESPACES += [
    "%2e%2e",
    "100%",
    "%",
    "_%",
    "a*",
    "*",
    "[a-z]",
    "a?",
    "'; DROP TABLE items; --",
    "~root",
    "$HOME",
]
ODD_NAMESPACES += [
    "C:\\",
    "\\0",
    "#",
    "{}",
    '"',
    "n\u0430mespace",
    "\uff41\uff42",
    "a\u202eb",
    "a\u200db",
    "👩\u200d👧",
]
ODD_NAMESPACES += ["I", "\u0131", "ss", "\u00df", "\U0001f600", "\uffff", "\U0010ffff", "\ue000", "a\u2028b"]


def listed(api: Api, prefix: str = "", page_size: int = 1000) -> list[str]:
    """Return the names of all namespaces with a prefix, page by page."""
    found, token = list[str](), ""
    while True:
        request = admin_pb2.ListNamespacesRequest(prefix=prefix, page_size=page_size, page_token=token)
        page = api.admin.ListNamespaces(request)
        found += [each.namespace for each in page.namespaces]
        if not (token := page.next_page_token):
            return found


def test_odd_namespaces_are_only_names(api: Api) -> None:
    for namespace in ODD_NAMESPACES:
        api.add(namespace, id="a", text=f"a heron in {namespace}")
    for namespace in ODD_NAMESPACES:
        assert [item.text for item in api.items(namespace)] == [f"a heron in {namespace}"]
        assert api.found(namespace, query_text="heron") == [f"a heron in {namespace}"]
    everything = listed(api, page_size=7)
    assert everything == sorted(everything)
    for namespace in ODD_NAMESPACES:
        assert listed(api, namespace) == [name for name in everything if name.startswith(namespace)]
    for namespace in ODD_NAMESPACES:
        api.admin.DeleteNamespace(admin_pb2.DeleteNamespaceRequest(namespace=namespace))
    assert set(everything) - set(listed(api)) == set(ODD_NAMESPACES)


def test_a_name_in_another_normal_form_is_refused_and_not_changed(api: Api) -> None:
    for namespace in ("Zo\u00eb", "caf\u00e9/\ud55c\uae00"):
        api.add(namespace, text="x")
        for form in ("NFD", "NFKD"):
            other = unicodedata.normalize(form, namespace)  # type: ignore[arg-type]
            error = refusal(api.memory.List, pb.ListRequest(namespace=other))
            assert error.reason == "INVALID_FIELD" and error.names("namespace")
            assert "NFC" in error.message
        api.admin.DeleteNamespace(admin_pb2.DeleteNamespaceRequest(namespace=namespace))


def test_a_hostile_prefix_of_namespaces_finds_none(api: Api, namespace: str) -> None:
    api.add(namespace, text="x")
    for prefix in ("%", namespace[:4] + "%", "' OR '1'='1", "*", "../"):
        request = admin_pb2.ListNamespacesRequest(prefix=prefix)
        assert outcome(partial(finds_none, api, request)) in {
            grpc.StatusCode.OK,
            grpc.StatusCode.INVALID_ARGUMENT,
        }


def finds_none(api: Api, request: admin_pb2.ListNamespacesRequest) -> None:
    assert list(api.admin.ListNamespaces(request).namespaces) == []


# Page tokens


@dataclass(frozen=True)
class Paged:
    """An RPC with pages: a request for its first page of one, and the same request with a change."""

    rpc: str
    request: Callable[[str], Any]
    altered: Callable[[str], Any]

    def token(self, api: Api, namespace: str) -> str:
        """Return a token that the server issued."""
        token: str = attrgetter(self.rpc)(api)(self.request(namespace)).next_page_token
        assert token
        return token

    def refusal(self, api: Api, request: Any, token: str) -> Refusal:
        """Return the refusal of a request with this token."""
        holder = request.options if self.rpc == "memory.Retrieve" else request
        holder.page_token = token
        return refusal(attrgetter(self.rpc)(api), request)


def options(**fields: Any) -> Callable[[str], pb.RetrieveRequest]:
    wanted = {"page_size": 1, **fields}
    return lambda ns: pb.RetrieveRequest(namespace=ns, options=pb.RetrieveOptions(**wanted))


PAGED = {
    "recent": Paged("memory.Retrieve", options(), options(labels={"a": "b"})),
    "found": Paged("memory.Retrieve", options(query_text="heron"), options(query_text="otter")),
    "items": Paged(
        "memory.List",
        lambda ns: pb.ListRequest(namespace=ns, page_size=1),
        lambda ns: pb.ListRequest(namespace=ns, page_size=1, newest_first=True),
    ),
    "keys": Paged(
        "state.ListStateKeys",
        lambda ns: state_pb2.ListStateKeysRequest(namespace=ns, page_size=1),
        lambda ns: state_pb2.ListStateKeysRequest(namespace=ns + "/b", page_size=1),
    ),
    "matches": Paged(
        "state.SearchState",
        lambda ns: state_pb2.SearchStateRequest(namespace=ns, pattern="*", page_size=1),
        lambda ns: state_pb2.SearchStateRequest(namespace=ns, pattern="k*", page_size=1),
    ),
    "namespaces": Paged(
        "admin.ListNamespaces",
        lambda ns: admin_pb2.ListNamespacesRequest(prefix=ns, page_size=1),
        lambda ns: admin_pb2.ListNamespacesRequest(prefix=ns + "/", page_size=1),
    ),
}

FORGERIES = [
    "x",
    "AAAA",
    "AAAAAAAAAAAAAAAAAAAAAAAA",
    "eyJvZmZzZXQiOiAxfQ==",
    "1",
    "🧠",
    "\0",
    "../x",
    "=" * 9000,
]


@pytest.fixture
def two_pages(api: Api, namespace: str) -> str:
    """A namespace in which every list has more than one page, and another beside it."""
    for name in (namespace, namespace + "/b"):
        api.add_texts(name, "heron a", "heron b", "heron c")
        for key in ("k1", "k2", "k3"):
            api.save(name, key, 1)
    return namespace


def assert_not_issued(error: Refusal) -> None:
    assert (error.code, error.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_PAGE_TOKEN")
    assert error.names("page_token")


@pytest.mark.parametrize("name", PAGED)
def test_a_forged_page_token_is_refused(api: Api, two_pages: str, name: str) -> None:
    paged = PAGED[name]
    token = paged.token(api, two_pages)
    middle = len(token) // 2
    other = "A" if token[middle] != "A" else "B"
    flipped = token[:middle] + other + token[middle + 1 :]
    for forgery in [*FORGERIES, flipped, token[:middle], token[:-4], token + token, token[::-1]]:
        assert_not_issued(paged.refusal(api, paged.request(two_pages), forgery))


@pytest.mark.parametrize("name", PAGED)
def test_a_page_token_of_another_request_is_refused(api: Api, two_pages: str, name: str) -> None:
    paged = PAGED[name]
    token = paged.token(api, two_pages)
    assert_not_issued(paged.refusal(api, paged.altered(two_pages), token))
    if name != "namespaces":
        assert_not_issued(paged.refusal(api, paged.request(two_pages + "/b"), token))
    for other_name, other in PAGED.items():
        if other_name != name:
            assert_not_issued(other.refusal(api, other.request(two_pages), token))


def test_a_forged_token_is_refused_where_there_is_nothing_to_page_through(api: Api, namespace: str) -> None:
    listing = pb.ListRequest(namespace=namespace, page_token="AAAA")
    newest = pb.RetrieveRequest(namespace=namespace, options=pb.RetrieveOptions(page_token="AAAA"))
    best = pb.RetrieveRequest(namespace=namespace)
    best.options.page_token, best.options.query_text = "AAAA", "x"
    for call, request in (
        (api.memory.List, listing),
        (api.memory.Retrieve, newest),
        (api.memory.Retrieve, best),
    ):
        assert refusal(call, request).reason == "INVALID_PAGE_TOKEN"
