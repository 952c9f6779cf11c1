"""Generates the tables of docs/limits.md from the code. `python tests/limits_page.py` updates them."""

from __future__ import annotations

import dataclasses
import importlib
from pathlib import Path

import click

from memory_service.cli.serve import serve
from memory_service.config import Config
from memory_service.limits import KIB, MIB, Limits
from memory_service.server.listening import _options
from tables_of_docs import with_rows

PAGE = Path(__file__).parents[1] / "docs" / "limits.md"

INVALID_FIELD = {
    "namespace_name_bytes_max": "namespace ([what is allowed](api.md#namespaces-and-revisions))",
    "id_bytes_max": "item id",
    "session_id_bytes_max": "session_id",
    "request_id_chars_max": "request_id; printable ASCII, no spaces",
    "name_bytes_max": "message_id, name, model, tool_call_id, tool name",
    "parts_max": "message parts",
    "labels_max": "labels of an item or query",
    "label_key_bytes_max": "label key",
    "label_value_bytes_max": "label value",
    "metadata_depth_max": "metadata levels",
    "embedding_values_max": "vector values",
    "state_key_bytes_max": "state key",
    "pattern_bytes_max": "SearchState pattern",
    "filter_bytes_max": "filter",
    "filter_terms_max": "comparisons in a filter",
    "filter_fields_max": "fields in a filter that are [loaded on first use](filters.md#cost)",
    "filter_depth_max": "nested parentheses",
    "source_uri_bytes_max": "source_uri",
}
LIMIT_EXCEEDED = {
    "text_bytes_max": "text, query_text; name, URL, type of a file",
    "data_bytes_max": "data, tool arguments, tool result, as JSON",
    "binary_bytes_max": "file content",
    "item_bytes_max": "whole item, as sent",
    "metadata_bytes_max": "metadata, as JSON",
    "batch_items_max": "items, states or operations per batch; items of a session to fork",
    "delete_items_max": "matches of a batch's `delete_where`, or files and fragments of a deleted folder; "
    "items that one call deletes as derived; `DeleteWhere` has pages",
    "context_window_items_max": "neighbours, each side",
    "state_value_bytes_max": "state value, as JSON",
    "state_encoded_bytes_max": "state value, as protobuf",
    "state_description_bytes_max": "state description",
    "session_title_bytes_max": "session title",
    "document_bytes_max": "document text",
    "document_title_bytes_max": "document title",
    "document_source_bytes_max": "document source",
    "document_fragments_max": "document fragments",
    "document_labels_bytes_max": "document labels × fragments",
    "search_documents_max": "document_ids of SearchFragments",
    "search_namespaces_max": "`namespaces` of Retrieve",
    "search_queries_max": "`queries` of Retrieve",
    "file_bytes_max": "content of a file",
    "file_path_bytes_max": "path of a file",
    "file_path_names_max": "names in a path",
    "changed_files_max": "files that one call renames, writes or edits",
    "changed_files_bytes_max": "their total size",
    "search_files_max": "limit of SearchFiles",
    "save_commands_max": "commands of HandleMessage",
    "save_command_chars_max": "one such command",
    "goal_bytes_max": "goal",
    "quote_bytes_max": "quote of a memory's source",
    "source_ids_max": "item_ids of a source; parent_ids",
    "extracted_messages_max": "messages of ExtractMemories",
    "extracted_text_bytes_max": "their total text; a session continues with `more`",
    "request_fields_max": "fields in a request (JSON list element 2, object member 7, label 6)",
    "field_bytes_max": "any text, bytes or vector field",
    "quarantined_writes_max": "[quarantined](write-policy.md#quarantine) writes of a namespace, about",
    "namespace_items_max": "items of a namespace, replaced ones included, about; 0: none",
    "namespace_bytes_max": "[bytes of a namespace](#bytes-of-a-namespace), about; 0: none",
}
OVERLOADED = {
    "waiting_calls_max": "queued unary calls",
    "held_bytes_max": "[memory held by calls](#bytes-that-calls-hold), about",
    "concurrent_streams_max": "streams (Watch, Export, Import); the last is for callers with under a quarter",
    "concurrent_backups_max": "running backups",
    "queued_writes_max": "writes awaiting commit",
    "waiting_searches_max": "queued long searches",
    "calls_per_s_max": "[calls per second](api.md#overload) of a caller, or of a namespace without callers; "
    "0: none",
}
OTHERS = {
    "page_items_max": "entries per page; larger page_size is reduced",
    "page_bytes_max": "page size, about",
    "message_bytes_max": "gRPC message; RESOURCE_EXHAUSTED without details",
    "concurrent_calls_max": "running unary calls, others queue; the last is for callers with under a quarter",
    "request_memory_hours": "how long a request_id is remembered",
}
FIELDS = {
    # Field, (least, most) as names of constants, and the effect of exceeding them.
    "`content` of a memory (characters)": (
        "deciders.base.CONTENT_CHARS_MIN",
        "deciders.base.CONTENT_CHARS_MAX",
        "",
    ),
    "`reasoning` (characters)": (
        "deciders.base.REASONING_CHARS_MIN",
        "deciders.base.REASONING_CHARS_MAX",
        "",
    ),
    "`sender` (bytes)": ("", "domain.interactions.SENDER_BYTES_MAX", ""),
    "`interaction_ids`, `exclude_ids`": ("", "domain.interactions._IDS_MAX", ""),
    "`interaction_limit`, `reflection_limit`": ("", "domain.interaction_context._LIMIT_MAX", ""),
    "`tool_name` (bytes)": ("", "domain.result_storage._TOOL_NAME_BYTES_MAX", ""),
    "`limit` of CheckRelevance": ("", "domain.overseer._LIMIT_MAX", ""),
    "`max_candidates` of CheckRelevance": ("", "domain.overseer._CANDIDATES_MAX", ""),
    "`max_recent_messages` of HandleMessage": ("", "domain.save_command._RECENT_MESSAGES_MAX", ""),
    "`limit` of ConsolidateMemories": ("", "domain.facts.consolidating._GROUPS_MAX", ""),
    "`max_characters` of a fragment": (
        "domain.splitting.CHARACTERS_MIN",
        "domain.splitting.CHARACTERS_MAX",
        "",
    ),
    "`heartbeat_interval` (seconds)": (
        "server.memory_servicer._HEARTBEAT_MIN_S",
        "server.memory_servicer._HEARTBEAT_MAX_S",
        "longer ones are reduced",
    ),
    "`facet_json` of an import (bytes)": ("", "domain.facets.FACET_BYTES_MAX", ""),
    "responses returned per message": (
        "",
        "domain.interaction_pairs._RESPONSES_MAX",
        "`response_count` has the total",
    ),
    "facts of one ExtractMemories call": (
        "",
        "domain.facts.finding.FACTS_MAX",
        "`more`, `examined_count` and `reason` say so",
    ),
    "memories compared by ConsolidateMemories": (
        "",
        "domain.facts.consolidating._EXAMINED_MAX",
        "latest only; `more` is set",
    ),
    "results that are reranked": ("", "domain.reranking.RERANKED_MAX", "others keep their order"),
    "searchable characters of an item": ("", "domain.search_text._CHARS_MAX", "not searchable"),
    "credential (characters)": ("", "server.access.access._TOKEN_CHARS_MAX", "`UNAUTHENTICATED`"),
}
CONNECTIONS = {
    "grpc.max_metadata_size": "bytes of metadata, plus 32 per pair; else the call fails",
    "grpc.http2.min_ping_interval_without_data_ms": "between client pings; else disconnected",
    "grpc.keepalive_timeout_ms": "for a ping's response; then disconnected",
}
# Other options that callers notice.
OPTIONS = {
    "--connections-max": "connections; the newest is closed",
    "--connection-calls-max": "calls of a connection, streams included; the client delays others",
    "--connection-idle-s-max": "idle connections are closed; 0: never",
    "--jwt-lifetime-s-max": "lifetime of a token, else it is rejected; 0: none",
    "--disk-free-bytes-min": "free space below which only writes that free some succeed",
    "--drain": "time for running calls at shutdown; then they are cancelled",
}


def number(value: float, *, in_bytes: bool) -> str:
    """Return a value as a row shows it; bytes also in KiB, MiB or GiB."""
    shown = f"{value:g}" if value != int(value) else str(int(value))
    for unit, name in ((1024 * MIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if in_bytes and value >= unit and value % unit == 0:
            return f"{shown} ({int(value) // unit} {name})"
    return shown


def constant(name: str) -> float:
    module, _, attribute = name.rpartition(".")
    value = getattr(importlib.import_module(f"memory_service.{module}"), attribute)
    assert isinstance(value, int | float)
    return value


def options() -> dict[str, float]:
    """Return every option of `serve` that takes a number, with its default."""
    numbers = (click.types.IntParamType, click.types.FloatParamType)
    return {
        each.opts[0]: each.default
        for each in serve.params
        if isinstance(each.type, numbers) and isinstance(each.default, int | float)
    }


def _named(texts: dict[str, str], values: dict[str, float]) -> list[str]:
    return [
        f"| `{name}` | {number(values[name], in_bytes='bytes' in name)} | {text} |"
        for name, text in texts.items()
    ]


def _fields() -> list[str]:
    rows = []
    for field, (least, most, beyond) in FIELDS.items():
        bounds = [number(constant(name), in_bytes=False) for name in (least, most) if name]
        rows.append(f"| {field} | {' to '.join(bounds)} | {beyond}".rstrip() + " |")
    return rows


def tables() -> dict[str, list[str]]:
    """Return the rows of each table, by the heading above it."""
    limits = dataclasses.asdict(Limits())
    return {
        "Invalid fields": _named(INVALID_FIELD, limits),
        "Requests that are too large": _named(LIMIT_EXCEEDED, limits),
        "Overload": _named(OVERLOADED, limits),
        "Pages, messages and calls": _named(OTHERS, limits),
        "Single fields and results": _fields(),
        "Connections and options": [
            *_named(CONNECTIONS, dict(_options(Config()))),
            *_named(OPTIONS, options()),
        ],
    }


def with_tables(page: str) -> str:
    """Return the page with table rows from the code."""
    return with_rows(page, tables())


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
