"""The tables of docs/limits.md, made from the code. `.venv/bin/python tests/limits_page.py` writes them."""

from __future__ import annotations

import dataclasses
import importlib
import re
from pathlib import Path

import click

from memory_service.cli.serve import serve
from memory_service.config import Config
from memory_service.limits import KIB, MIB, Limits
from memory_service.server.place import _options

PAGE = Path(__file__).parents[1] / "docs" / "limits.md"

INVALID_FIELD = {
    "namespace_chars_max": "namespace; characters A-Z a-z 0-9 . _ - : / @",
    "id_bytes_max": "id of an item",
    "session_id_bytes_max": "session_id",
    "request_id_chars_max": "request_id; printable ASCII without spaces",
    "name_bytes_max": "message_id, name, model, tool_call_id, tool name",
    "parts_max": "parts of a message",
    "labels_max": "labels of an item or a query",
    "label_key_bytes_max": "label key",
    "label_value_bytes_max": "label value",
    "metadata_depth_max": "levels of metadata",
    "embedding_values_max": "values of a vector",
    "state_key_bytes_max": "state key",
    "pattern_bytes_max": "SearchState pattern",
    "filter_bytes_max": "filter",
    "filter_terms_max": "comparisons in a filter",
    "filter_fields_max": "distinct fields in a filter, not counting session_id, kind, create_time, "
    "expire_time and labels compared with `=`",
    "filter_depth_max": "nested parentheses in a filter",
    "source_uri_bytes_max": "source_uri",
}
LIMIT_EXCEEDED = {
    "text_bytes_max": "text, text part, query_text; name, URL and type of a file",
    "data_bytes_max": "data, tool arguments or tool result, as JSON",
    "binary_bytes_max": "content of a file",
    "item_bytes_max": "whole item, as sent",
    "metadata_bytes_max": "metadata, as JSON",
    "batch_items_max": "items or states in a batch",
    "context_window_items_max": "neighbours of a result, each side",
    "state_value_bytes_max": "state value, as JSON",
    "state_encoded_bytes_max": "state value, as protobuf",
    "state_description_bytes_max": "state description",
    "document_bytes_max": "document text",
    "document_title_bytes_max": "document title",
    "document_source_bytes_max": "document source",
    "document_fragments_max": "fragments of a document",
    "document_labels_bytes_max": "labels of a document × its fragments",
    "search_documents_max": "document_ids of SearchFragments",
    "save_commands_max": "commands of HandleMessage",
    "save_command_chars_max": "one such command",
    "goal_bytes_max": "goal",
    "quote_bytes_max": "quote in a memory's source",
    "source_ids_max": "item_ids of a memory's source; parent_ids of an item",
    "extracted_messages_max": "messages of ExtractMemories",
    "extracted_text_bytes_max": "their text in total; of a session, the rest is left (`more`)",
    "request_fields_max": "fields set in a request; JSON list element: 2, object member: 7, label: 6",
    "field_bytes_max": "one text, bytes or vector field; most have lower limits",
    "quarantined_writes_max": "writes of a namespace in [quarantine](write-policy.md#quarantine), about",
    "namespace_items_max": "items of a namespace, about; replaced items count; 0: no limit",
    "namespace_bytes_max": "[bytes of a namespace](#bytes-of-a-namespace), about; 0: no limit",
}
OVERLOADED = {
    "waiting_calls_max": "unary calls in the queues",
    "held_bytes_max": "[memory held by calls](#bytes-that-calls-hold), about",
    "concurrent_streams_max": "Watch, Export and Import streams; a caller with a quarter leaves the last one",
    "concurrent_backups_max": "running backups",
    "queued_writes_max": "writes waiting for a commit",
    "waiting_searches_max": "long searches waiting for the search thread",
    "calls_per_s_max": "[calls per second](api.md#overload) of a caller or, without credentials, namespace; "
    "0: no limit",
}
OTHERS = {
    "page_items_max": "entries of a page; a larger page_size is reduced to this",
    "page_bytes_max": "size of a page, about; the page ends there",
    "message_bytes_max": "gRPC message; gRPC returns RESOURCE_EXHAUSTED without details",
    "concurrent_calls_max": "running unary calls, others queue; a caller with a quarter leaves the last one",
    "request_memory_hours": "hours a request_id is remembered; then the same id is a new request",
}
FIELDS = {
    # What the field is: (least, most) as names of constants, what happens beyond.
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
        "domain.interactions._RESPONSES_MAX",
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
        "the most recently written; `more` is set",
    ),
    "results that are reranked": ("", "domain.reranking.RERANKED_MAX", "the rest keep their order"),
    "searchable characters of an item": ("", "domain.search_text._CHARS_MAX", "the rest is not searchable"),
    "credential (characters)": ("", "server.access.access._TOKEN_CHARS_MAX", "`UNAUTHENTICATED`"),
}
CONNECTIONS = {
    "grpc.max_metadata_size": "bytes of a call's metadata, plus 32 per pair; gRPC refuses the call",
    "grpc.http2.min_ping_interval_without_data_ms": "time between client pings; else it is disconnected",
    "grpc.keepalive_timeout_ms": "wait for a ping's answer; then the connection is closed",
}
OPTIONS = {
    "--connections-max": "the newest connection is closed",
    "--connection-calls-max": "per connection, streams included; the client holds further calls back",
    "--connection-idle-s-max": "an idle connection is closed; 0: never",
    "--embedder-timeout": "writes go on without vectors, queries use words only",
    "--llm-timeout": "rules decide",
    "--llm-tokens-per-minute-max": "per caller; rules decide",
    "--llm-total-tokens-per-minute-max": "all callers; rules decide",
    "--llm-input-tokens-max": "per question, estimated; rules decide",
    "--reranker-timeout": "results keep the order of their scores",
    "--disk-free-bytes-min": "only writes that free space are accepted",
    "--jwt-lifetime-s-max": "the token is rejected; 0: no limit",
    "--history-days": "replaced versions are dropped; undo cannot restore them",
    "--quarantine-days": "an unreviewed write is dropped",
    "--drain": "calls still running at shutdown are cut off",
}


def number(value: float, *, in_bytes: bool) -> str:
    """A value as a row shows it; one of bytes also in KiB or MiB."""
    shown = f"{value:g}" if value != int(value) else str(int(value))
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if in_bytes and value >= unit and value % unit == 0:
            return f"{shown} ({int(value) // unit} {name})"
    return shown


def constant(name: str) -> float:
    module, _, attribute = name.rpartition(".")
    value = getattr(importlib.import_module(f"memory_service.{module}"), attribute)
    assert isinstance(value, int | float)
    return value


def options() -> dict[str, float]:
    """Every option of `serve` that takes a number, with its default."""
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
    """The rows of each table, by the heading above it."""
    limits = dataclasses.asdict(Limits())
    return {
        "Invalid fields": _named(INVALID_FIELD, limits),
        "Requests that are too large": _named(LIMIT_EXCEEDED, limits),
        "Overload": _named(OVERLOADED, limits),
        "Pages, messages and calls": _named(OTHERS, limits),
        "Single fields and results": _fields(),
        "Connections": _named(CONNECTIONS, dict(_options(Config()))),
        "Options": _named(OPTIONS, options()),
    }


def with_tables(page: str) -> str:
    """The page with the rows of its tables as the code has them."""
    for heading, rows in tables().items():
        pattern = rf"(^## {heading}\n(?:(?!## ).*\n)*?\|[-|]+\|\n)(?:\|.*\n)*"
        found = re.search(pattern, page, re.MULTILINE)
        assert found, heading
        page = page[: found.end(1)] + "\n".join(rows) + "\n" + page[found.end() :]
    return page


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
