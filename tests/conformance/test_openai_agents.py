"""The session for the OpenAI Agents SDK, by the SDK's tests of its session in SQLite."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_client import InvalidArgument
from memory_client.openai_agents import MemorySession
from repositories import checkout, run_suite

EXCEPTIONS = {
    "test_sqlite_session_close_closes_worker_thread_connections": "connections of SQLite",
    "test_sqlite_session_closed_rejects_empty_add_items": "SQLite's error after close()",
    "test_sqlite_session_pop_item_skips_corrupt_most_recent": "writes to the database",
    "test_sqlite_session_pop_item_returns_none_after_dropping_only_corrupt_rows": "writes to the database",
    "test_sqlite_session_get_items_limit_skips_corrupt_newest_rows": "writes to the database",
    "test_sqlite_session_get_items_session_settings_limit_skips_corrupt_rows": "writes to the database",
    "test_sqlite_session_file_lock_is_shared_across_instances": "locks of SQLite",
    "test_sqlite_session_failed_add_items_releases_write_lock": "locks of SQLite",
    "test_sqlite_session_failed_clear_session_rolls_back": "transactions of SQLite",
    "test_sqlite_session_failed_pop_item_releases_write_lock": "locks of SQLite",
    "test_sqlite_session_rollback_failure_evicts_connection": "connections of SQLite",
    "test_sqlite_session_close_retries_quarantined_connection": "connections of SQLite",
    "test_sqlite_session_post_commit_cancellation_propagates_after_known_outcome": "connections of SQLite",
    "test_deferred_compaction_persists_across_tool_turns": "fails with the SDK's session, too",
}


def test_the_sdks_tests_pass(address: str, tmp_path: Path) -> None:
    root = checkout("OPENAI_AGENTS")
    folder = root / "tests" / "memory"
    files = [*sorted(folder.glob("test_session*.py")), folder / "test_openai_responses_compaction_session.py"]
    env = {"CONFORMANCE_SERVER": address, "PYTHONSAFEPATH": "1"}  # Its tests have a folder "mcp".
    outcomes = run_suite(files, "swap_openai_agents", tmp_path, env=env, path=[root])
    failed = {name.rpartition("::")[2].partition("[")[0] for name, how in outcomes.items() if how == "failed"}
    assert failed <= EXCEPTIONS.keys()
    assert list(outcomes.values()).count("passed") >= 140


async def test_a_session_can_be_made_from_an_address(address: str, namespace: str) -> None:
    items = [{"role": "user", "content": "I like tea"}]
    for number in (1, 2):
        async with MemorySession("trip", address, namespace=namespace) as session:
            await session.add_items(items)
            assert await session.get_items() == items * number
    async with MemorySession("trip", address, namespace=f"{namespace}/other") as session:
        assert await session.get_items() == []
    with pytest.raises(InvalidArgument, match="client"):
        MemorySession("trip", 5)
