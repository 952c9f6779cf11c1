"""Words that are code elsewhere, in queries, labels and sessions, are just words here."""

from __future__ import annotations

import pytest

from grpc_api import Api
from memory_service.v1 import memory_pb2 as pb

QUERIES = [
    '"',
    '""',
    '"unclosed',
    "'",
    "') OR '1'='1",
    "'; DROP TABLE items; --",
    "AND",
    "OR NOT",
    "NEAR(",
    "NEAR(a b, 2)",
    "*",
    "a*",
    "^a",
    "-x",
    "+x",
    "text:secret",
    "{a b}: c",
    "(",
    ")",
    "a AND (b OR",
    "%",
    "_",
    "\\",
    "[a-z]+",
    "(a+)+$",
    "${jndi:ldap://x}",
    "{{7*7}}",
    "<script>alert(1)</script>",
    "\0",
    "a\0b",
    "\ud7ff\ue000",
    "🧠",
]


@pytest.mark.parametrize("query", QUERIES, ids=ascii)
def test_words_that_are_code_elsewhere_are_only_words(api: Api, namespace: str, query: str) -> None:
    api.add_texts(namespace, f"zebra {query} walrus", "nothing of the kind", "a secret text")
    for mode in (pb.RETRIEVE_MODE_HYBRID, pb.RETRIEVE_MODE_VECTOR, pb.RETRIEVE_MODE_LEXICAL):
        api.retrieve(namespace, query_text=query, mode=mode)
        found = api.found(namespace, query_text=f"zebra {query}", mode=mode)
        assert found[0] == f"zebra {query} walrus"


@pytest.mark.parametrize("query", [query for query in QUERIES if "\0" not in query], ids=ascii)
def test_filters_are_compared_and_not_parsed(api: Api, namespace: str, query: str) -> None:
    api.add_texts(namespace, "plain")
    assert api.found(namespace, session_id=query) == []
    assert api.found(namespace, labels={query: "x"}) == api.found(namespace, labels={"x": query}) == []
    api.add(namespace, text="labelled", session_id=query, labels={query: query})
    assert api.found(namespace, session_id=query) == ["labelled"]
    assert api.found(namespace, labels={query: query}) == ["labelled"]
