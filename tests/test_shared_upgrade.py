"""Servers of two releases on one database: together if the format is the same, refused if it is newer."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_service.records.postgres.schema import FORMAT
from shared_servers import SharedServers, needs_postgres

pytestmark = needs_postgres


def test_an_older_server_does_not_start_on_a_newer_format_and_one_that_runs_goes_on(tmp_path: Path) -> None:
    with SharedServers(tmp_path, "--embedder", "none") as servers:
        running = servers.start()
        running.add("birds", text="a heron")
        servers.rows(f"UPDATE $.settings SET value = '{FORMAT + 1}' WHERE name = 'format' RETURNING 1")
        refusal = f"the tables have format {FORMAT + 1}, but this release reads up to format {FORMAT}"
        with pytest.raises(RuntimeError, match=refusal):
            servers.start()
        running.add("birds", text="an egret")
        assert len(running.items("birds")) == 2
