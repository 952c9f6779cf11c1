"""Servers of two releases on one database: together if the format is the same, refused if it is newer."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared_servers import SharedServers, needs_postgres

pytestmark = needs_postgres


def test_an_older_server_does_not_start_on_a_newer_format_and_one_that_runs_goes_on(tmp_path: Path) -> None:
    with SharedServers(tmp_path, "--embedder", "none") as servers:
        running = servers.start()
        running.add("birds", text="a heron")
        servers.rows("UPDATE $.settings SET value = '2' WHERE name = 'format' RETURNING 1")
        with pytest.raises(
            RuntimeError, match="the tables have format 2, but this release reads up to format 1"
        ):
            servers.start()
        running.add("birds", text="an egret")
        assert len(running.items("birds")) == 2
