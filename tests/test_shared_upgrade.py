"""Servers of two releases on one database: together where the format is one, refused where it is newer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shared_servers import SharedServers, needs_postgres

pytestmark = needs_postgres


def test_servers_that_start_at_once_make_the_tables_once(tmp_path: Path) -> None:
    with SharedServers(tmp_path, "--embedder", "none") as servers, ThreadPoolExecutor(3) as pool:
        processes = [servers.process() for _ in range(3)]
        for started in [pool.submit(process.start) for process in processes]:
            started.result(120)
        first, second, third = map(servers.connect, processes)
        first.add("birds", id="a", text="a heron")
        second.add("birds", id="b", text="an egret")
        assert [item.id for item in third.items("birds")] == ["a", "b"]
        assert servers.rows("SELECT value FROM $.settings WHERE name = 'format'") == [(b"1",)]


def test_an_older_server_does_not_start_on_a_newer_format_and_one_that_runs_goes_on(tmp_path: Path) -> None:
    with SharedServers(tmp_path, "--embedder", "none") as servers:
        running = servers.start()
        running.add("birds", text="a heron")
        servers.rows("UPDATE $.settings SET value = '2' WHERE name = 'format' RETURNING 1")
        with pytest.raises(RuntimeError, match="the tables have format 2; this release reads up to format 1"):
            servers.start()
        running.add("birds", text="an egret")
        assert len(running.items("birds")) == 2
