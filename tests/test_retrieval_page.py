"""The examples of docs/retrieval.md get the scores and relevances that the page shows."""

from __future__ import annotations

import json
import re

import pytest
from google.protobuf import json_format

from grpc_api import Api
from memory_service.v1 import memory_pb2 as pb
from tables_of_docs import rows
from toolchain import ROOT

PAGE = (ROOT / "docs" / "retrieval.md").read_text()
EXAMPLE = PAGE[PAGE.index("## An example") :]


def test_the_explained_example_adds_up_as_printed(api: Api, namespace: str) -> None:
    items, options = (
        json.loads(block) for block in re.findall(r"^```json\n(.*?)^```$", EXAMPLE, re.MULTILINE | re.DOTALL)
    )
    for item in items:
        api.memory.Add(json_format.ParseDict({"namespace": namespace, "item": item}, pb.AddRequest()))
    request = json_format.ParseDict({"namespace": namespace, "options": options}, pb.RetrieveRequest())
    printed = [
        [cell.strip(" *") for cell in row.strip("|").split("|")]
        for row in re.findall(r"^\|.*\|$", EXAMPLE, re.MULTILINE)[2:]
    ]
    got: list[tuple[str, str, list[float]]] = []
    for result in api.memory.Retrieve(request).results:
        for c in result.explanation.contributions:
            got.append((result.item.id, c.channel, [c.raw_score, c.scale, c.weight, c.contribution]))
        got.append((result.item.id, "", [result.score]))
    assert [(item, channel) for item, channel, _ in got] == [(row[0], row[1]) for row in printed]
    for (item, channel, numbers), row in zip(got, printed, strict=True):
        expected = [float(cell) for cell in row[2:] if cell]
        assert numbers == pytest.approx(expected, abs=0.006), (item, channel)


@pytest.mark.parametrize(("text", "query", "relevance"), rows(PAGE, "Relevance"))
def test_a_result_has_the_relevance_that_the_page_shows(
    api: Api, namespace: str, text: str, query: str, relevance: str
) -> None:
    api.memory.Add(pb.AddRequest(namespace=namespace, item=pb.MemoryItem(text=text)))
    options = pb.RetrieveOptions(query_text=query)
    (result,) = api.memory.Retrieve(pb.RetrieveRequest(namespace=namespace, options=options)).results
    assert result.relevance == pytest.approx(float(relevance), abs=0.006)
