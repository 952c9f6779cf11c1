"""Envoy's example configuration: its statements about calls match the clients and the servers."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from memory_client._calls.servers import HEADER
from toolchain import ROOT


@pytest.fixture(scope="module")
def resources() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "envoy.yaml").read_text())["static_resources"]
    return found


def test_calls_go_by_the_header_that_clients_send(resources: dict[str, Any]) -> None:
    manager = resources["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    (host,) = manager["route_config"]["virtual_hosts"]
    (route,) = host["routes"]
    assert route["route"]["hash_policy"] == [{"header": {"header_name": HEADER}}]
    assert route["route"]["cluster"] == resources["clusters"][0]["name"]
    # Calls that may not be repeated look like the others; streams never end, and have no timeout.
    assert not any("retry_policy" in part for part in (route["route"], host, manager["route_config"]))
    assert (route["route"]["timeout"], manager["stream_idle_timeout"]) == ("0s", "0s")
    assert [part["name"] for part in manager["http_filters"]] == ["envoy.filters.http.router"]


def test_the_servers_are_asked_for_their_health_and_called_by_http_2(resources: dict[str, Any]) -> None:
    (cluster,) = resources["clusters"]
    assert cluster["lb_policy"] == "RING_HASH"
    assert [check["grpc_health_check"] for check in cluster["health_checks"]] == [{}]
    (protocol,) = cluster["typed_extension_protocol_options"].values()
    assert "http2_protocol_options" in protocol["explicit_http_config"]
    assert len(cluster["load_assignment"]["endpoints"][0]["lb_endpoints"]) == 2
