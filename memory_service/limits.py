"""Every limit on what a caller may send, its unit in its name. AdminService.GetInfo publishes them."""

from __future__ import annotations

from dataclasses import dataclass

from memory_service.namespaces import NAME_BYTES_MAX

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True)
class Limits:
    """The limits in force."""

    namespace_name_bytes_max: int = NAME_BYTES_MAX
    id_bytes_max: int = 128
    session_id_bytes_max: int = 256
    session_title_bytes_max: int = 512
    request_id_chars_max: int = 64
    text_bytes_max: int = 64 * KIB
    data_bytes_max: int = 256 * KIB
    binary_bytes_max: int = 1 * MIB
    item_bytes_max: int = 2 * MIB
    name_bytes_max: int = 1 * KIB
    parts_max: int = 256
    labels_max: int = 64
    label_key_bytes_max: int = 64
    label_value_bytes_max: int = 256
    metadata_bytes_max: int = 64 * KIB
    metadata_depth_max: int = 32
    """Not more: protobuf parses messages nested up to 100 deep, and a level of JSON takes three."""
    embedding_values_max: int = 4096
    batch_items_max: int = 1000
    delete_items_max: int = 10_000
    """Items that one call deletes by conditions, in one transaction. Doubled: other writes wait twice as long
    for it, some .2 s for each ten thousand.
    """
    page_items_max: int = 1000
    page_bytes_max: int = 3 * MIB
    context_window_items_max: int = 20
    state_key_bytes_max: int = 512
    state_value_bytes_max: int = 1 * MIB
    state_encoded_bytes_max: int = 3 * MIB
    state_description_bytes_max: int = 1 * KIB
    pattern_bytes_max: int = 512
    filter_bytes_max: int = 4 * KIB
    filter_terms_max: int = 64
    filter_fields_max: int = 16
    filter_depth_max: int = 16
    document_bytes_max: int = 1 * MIB
    document_title_bytes_max: int = 512
    document_source_bytes_max: int = 2 * KIB
    document_fragments_max: int = 10_000
    document_labels_bytes_max: int = 16 * MIB
    search_documents_max: int = 100
    search_namespaces_max: int = 16
    """Doubled: a joint search takes twice as long."""
    search_queries_max: int = 8
    """Doubled: a search for several texts takes twice as long."""
    file_bytes_max: int = 1 * MIB
    file_path_bytes_max: int = 512
    file_path_names_max: int = 16
    """Doubled: each file is in the lists of twice as many folders."""
    changed_files_max: int = 1000
    changed_files_bytes_max: int = 64 * MIB
    """Doubled: one call keeps twice as much in memory, and other writes wait for it twice as long."""
    search_files_max: int = 100
    save_commands_max: int = 32
    save_command_chars_max: int = 64
    goal_bytes_max: int = 16 * KIB
    quote_bytes_max: int = 2 * KIB
    source_ids_max: int = 100
    source_uri_bytes_max: int = 2 * KIB
    extracted_messages_max: int = 200
    extracted_text_bytes_max: int = 256 * KIB
    message_bytes_max: int = 16 * MIB
    request_fields_max: int = 500_000
    """Doubled: the longest request blocks the event loop twice as long: 100 ms for half a million fields."""
    field_bytes_max: int = 2 * MIB
    """Doubled: a field that its own limit will reject is parsed for twice as long, some 30 ms.

    The largest valid field has 1 MiB; a field slightly above its own limit must reach that check.
    """
    held_bytes_max: int = 384 * MIB
    """Doubled: callers can make the server use twice the memory. Two batches of 16 MiB of one caller fit."""
    concurrent_calls_max: int = 256
    waiting_calls_max: int = 512
    concurrent_streams_max: int = 256
    concurrent_backups_max: int = 1
    queued_writes_max: int = 10_000
    quarantined_writes_max: int = 1000
    waiting_searches_max: int = 64
    request_memory_hours: int = 24
    calls_per_s_max: int = 0
    """Calls per second of a caller, or of a namespace if callers are anonymous. 0: no limit."""
    namespace_items_max: int = 0
    """Items of a namespace, approximately: concurrent calls may exceed it together. 0: no limit."""
    namespace_bytes_max: int = 0
    """Bytes of items and states of a namespace, approximately: the last write may exceed it. 0: no limit."""
