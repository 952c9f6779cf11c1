from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from memory_service.v1 import memory_pb2 as _memory_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class QuarantineDecision(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    QUARANTINE_DECISION_UNSPECIFIED: _ClassVar[QuarantineDecision]
    QUARANTINE_DECISION_RELEASE: _ClassVar[QuarantineDecision]
    QUARANTINE_DECISION_DELETE: _ClassVar[QuarantineDecision]
QUARANTINE_DECISION_UNSPECIFIED: QuarantineDecision
QUARANTINE_DECISION_RELEASE: QuarantineDecision
QUARANTINE_DECISION_DELETE: QuarantineDecision

class GetInfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetInfoResponse(_message.Message):
    __slots__ = ("version", "store", "embedder", "embedding_dimension", "llm", "start_time", "limits", "backup", "reranker", "server_name")
    class LimitsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    VERSION_FIELD_NUMBER: _ClassVar[int]
    STORE_FIELD_NUMBER: _ClassVar[int]
    EMBEDDER_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_DIMENSION_FIELD_NUMBER: _ClassVar[int]
    LLM_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    BACKUP_FIELD_NUMBER: _ClassVar[int]
    RERANKER_FIELD_NUMBER: _ClassVar[int]
    SERVER_NAME_FIELD_NUMBER: _ClassVar[int]
    version: str
    store: str
    embedder: str
    embedding_dimension: int
    llm: str
    start_time: _timestamp_pb2.Timestamp
    limits: _containers.ScalarMap[str, int]
    backup: BackupProgress
    reranker: str
    server_name: str
    def __init__(self, version: _Optional[str] = ..., store: _Optional[str] = ..., embedder: _Optional[str] = ..., embedding_dimension: _Optional[int] = ..., llm: _Optional[str] = ..., start_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., limits: _Optional[_Mapping[str, int]] = ..., backup: _Optional[_Union[BackupProgress, _Mapping]] = ..., reranker: _Optional[str] = ..., server_name: _Optional[str] = ...) -> None: ...

class BackupProgress(_message.Message):
    __slots__ = ("name", "done_bytes", "total_bytes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DONE_BYTES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    name: str
    done_bytes: int
    total_bytes: int
    def __init__(self, name: _Optional[str] = ..., done_bytes: _Optional[int] = ..., total_bytes: _Optional[int] = ...) -> None: ...

class ListNamespacesRequest(_message.Message):
    __slots__ = ("prefix", "page_size", "page_token")
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    prefix: str
    page_size: int
    page_token: str
    def __init__(self, prefix: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListNamespacesResponse(_message.Message):
    __slots__ = ("namespaces", "next_page_token")
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespaces: _containers.RepeatedCompositeFieldContainer[NamespaceSummary]
    next_page_token: str
    def __init__(self, namespaces: _Optional[_Iterable[_Union[NamespaceSummary, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class NamespaceSummary(_message.Message):
    __slots__ = ("namespace", "item_count", "revision", "create_time", "settings")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    ITEM_COUNT_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    item_count: int
    revision: int
    create_time: _timestamp_pb2.Timestamp
    settings: NamespaceSettings
    def __init__(self, namespace: _Optional[str] = ..., item_count: _Optional[int] = ..., revision: _Optional[int] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., settings: _Optional[_Union[NamespaceSettings, _Mapping]] = ...) -> None: ...

class NamespaceSettings(_message.Message):
    __slots__ = ("time_zone", "default_ttl", "version")
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_TTL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    time_zone: str
    default_ttl: _duration_pb2.Duration
    version: int
    def __init__(self, time_zone: _Optional[str] = ..., default_ttl: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., version: _Optional[int] = ...) -> None: ...

class UpdateNamespaceRequest(_message.Message):
    __slots__ = ("namespace", "time_zone", "default_ttl", "update_mask", "expected_version")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_TTL_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    time_zone: str
    default_ttl: _duration_pb2.Duration
    update_mask: _field_mask_pb2.FieldMask
    expected_version: int
    def __init__(self, namespace: _Optional[str] = ..., time_zone: _Optional[str] = ..., default_ttl: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ..., expected_version: _Optional[int] = ...) -> None: ...

class UpdateNamespaceResponse(_message.Message):
    __slots__ = ("settings",)
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    settings: NamespaceSettings
    def __init__(self, settings: _Optional[_Union[NamespaceSettings, _Mapping]] = ...) -> None: ...

class GetNamespaceStatsRequest(_message.Message):
    __slots__ = ("namespace", "include_usage")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_USAGE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    include_usage: bool
    def __init__(self, namespace: _Optional[str] = ..., include_usage: bool = ...) -> None: ...

class GetNamespaceStatsResponse(_message.Message):
    __slots__ = ("namespace", "revision", "item_count", "state_count", "embedded_count", "embedding_dimension", "embedding_model", "create_time", "index", "pending_count", "settings", "usage")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    ITEM_COUNT_FIELD_NUMBER: _ClassVar[int]
    STATE_COUNT_FIELD_NUMBER: _ClassVar[int]
    EMBEDDED_COUNT_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_DIMENSION_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_MODEL_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    PENDING_COUNT_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    revision: int
    item_count: int
    state_count: int
    embedded_count: int
    embedding_dimension: int
    embedding_model: str
    create_time: _timestamp_pb2.Timestamp
    index: IndexStats
    pending_count: int
    settings: NamespaceSettings
    usage: NamespaceUsage
    def __init__(self, namespace: _Optional[str] = ..., revision: _Optional[int] = ..., item_count: _Optional[int] = ..., state_count: _Optional[int] = ..., embedded_count: _Optional[int] = ..., embedding_dimension: _Optional[int] = ..., embedding_model: _Optional[str] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., index: _Optional[_Union[IndexStats, _Mapping]] = ..., pending_count: _Optional[int] = ..., settings: _Optional[_Union[NamespaceSettings, _Mapping]] = ..., usage: _Optional[_Union[NamespaceUsage, _Mapping]] = ...) -> None: ...

class NamespaceUsage(_message.Message):
    __slots__ = ("byte_count", "call_count", "call_count_start_time")
    BYTE_COUNT_FIELD_NUMBER: _ClassVar[int]
    CALL_COUNT_FIELD_NUMBER: _ClassVar[int]
    CALL_COUNT_START_TIME_FIELD_NUMBER: _ClassVar[int]
    byte_count: int
    call_count: int
    call_count_start_time: _timestamp_pb2.Timestamp
    def __init__(self, byte_count: _Optional[int] = ..., call_count: _Optional[int] = ..., call_count_start_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class IndexStats(_message.Message):
    __slots__ = ("loaded", "kind", "graph_count", "exact_count", "memory_bytes", "ef_search")
    LOADED_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    GRAPH_COUNT_FIELD_NUMBER: _ClassVar[int]
    EXACT_COUNT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    EF_SEARCH_FIELD_NUMBER: _ClassVar[int]
    loaded: bool
    kind: str
    graph_count: int
    exact_count: int
    memory_bytes: int
    ef_search: int
    def __init__(self, loaded: bool = ..., kind: _Optional[str] = ..., graph_count: _Optional[int] = ..., exact_count: _Optional[int] = ..., memory_bytes: _Optional[int] = ..., ef_search: _Optional[int] = ...) -> None: ...

class DeleteNamespaceRequest(_message.Message):
    __slots__ = ("namespace",)
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    def __init__(self, namespace: _Optional[str] = ...) -> None: ...

class DeleteNamespaceResponse(_message.Message):
    __slots__ = ("removed_item_count", "removed_state_count")
    REMOVED_ITEM_COUNT_FIELD_NUMBER: _ClassVar[int]
    REMOVED_STATE_COUNT_FIELD_NUMBER: _ClassVar[int]
    removed_item_count: int
    removed_state_count: int
    def __init__(self, removed_item_count: _Optional[int] = ..., removed_state_count: _Optional[int] = ...) -> None: ...

class FlushRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class FlushResponse(_message.Message):
    __slots__ = ("duration",)
    DURATION_FIELD_NUMBER: _ClassVar[int]
    duration: _duration_pb2.Duration
    def __init__(self, duration: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class BackupRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class BackupResponse(_message.Message):
    __slots__ = ("name", "size_bytes", "checksum", "namespace_count", "item_count", "duration")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_COUNT_FIELD_NUMBER: _ClassVar[int]
    ITEM_COUNT_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    name: str
    size_bytes: int
    checksum: str
    namespace_count: int
    item_count: int
    duration: _duration_pb2.Duration
    def __init__(self, name: _Optional[str] = ..., size_bytes: _Optional[int] = ..., checksum: _Optional[str] = ..., namespace_count: _Optional[int] = ..., item_count: _Optional[int] = ..., duration: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class ReembedRequest(_message.Message):
    __slots__ = ("namespace", "replace_client_vectors")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REPLACE_CLIENT_VECTORS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    replace_client_vectors: bool
    def __init__(self, namespace: _Optional[str] = ..., replace_client_vectors: bool = ...) -> None: ...

class ReembedResponse(_message.Message):
    __slots__ = ("pending_count", "embedding_model", "revision")
    PENDING_COUNT_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_MODEL_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    pending_count: int
    embedding_model: str
    revision: int
    def __init__(self, pending_count: _Optional[int] = ..., embedding_model: _Optional[str] = ..., revision: _Optional[int] = ...) -> None: ...

class UndoWritesRequest(_message.Message):
    __slots__ = ("namespace", "writer", "credential_id", "any_writer", "since", "dry_run", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    WRITER_FIELD_NUMBER: _ClassVar[int]
    CREDENTIAL_ID_FIELD_NUMBER: _ClassVar[int]
    ANY_WRITER_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    writer: str
    credential_id: str
    any_writer: bool
    since: _timestamp_pb2.Timestamp
    dry_run: bool
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., writer: _Optional[str] = ..., credential_id: _Optional[str] = ..., any_writer: bool = ..., since: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., dry_run: bool = ..., request_id: _Optional[str] = ...) -> None: ...

class UndoWritesResponse(_message.Message):
    __slots__ = ("removed_count", "restored_count", "unrestorable_count", "unrestorable_ids", "revision")
    REMOVED_COUNT_FIELD_NUMBER: _ClassVar[int]
    RESTORED_COUNT_FIELD_NUMBER: _ClassVar[int]
    UNRESTORABLE_COUNT_FIELD_NUMBER: _ClassVar[int]
    UNRESTORABLE_IDS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    removed_count: int
    restored_count: int
    unrestorable_count: int
    unrestorable_ids: _containers.RepeatedScalarFieldContainer[str]
    revision: int
    def __init__(self, removed_count: _Optional[int] = ..., restored_count: _Optional[int] = ..., unrestorable_count: _Optional[int] = ..., unrestorable_ids: _Optional[_Iterable[str]] = ..., revision: _Optional[int] = ...) -> None: ...

class ListQuarantinedRequest(_message.Message):
    __slots__ = ("namespace", "page_size", "page_token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    page_size: int
    page_token: str
    def __init__(self, namespace: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListQuarantinedResponse(_message.Message):
    __slots__ = ("writes", "next_page_token")
    WRITES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    writes: _containers.RepeatedCompositeFieldContainer[QuarantinedWrite]
    next_page_token: str
    def __init__(self, writes: _Optional[_Iterable[_Union[QuarantinedWrite, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class QuarantinedWrite(_message.Message):
    __slots__ = ("id", "reason", "create_time", "expire_time", "items")
    ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    id: str
    reason: str
    create_time: _timestamp_pb2.Timestamp
    expire_time: _timestamp_pb2.Timestamp
    items: _containers.RepeatedCompositeFieldContainer[_memory_pb2.MemoryItem]
    def __init__(self, id: _Optional[str] = ..., reason: _Optional[str] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., expire_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., items: _Optional[_Iterable[_Union[_memory_pb2.MemoryItem, _Mapping]]] = ...) -> None: ...

class ReviewQuarantinedRequest(_message.Message):
    __slots__ = ("namespace", "id", "decision")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    id: str
    decision: QuarantineDecision
    def __init__(self, namespace: _Optional[str] = ..., id: _Optional[str] = ..., decision: _Optional[_Union[QuarantineDecision, str]] = ...) -> None: ...

class ReviewQuarantinedResponse(_message.Message):
    __slots__ = ("item_count", "revision", "degraded")
    ITEM_COUNT_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    item_count: int
    revision: int
    degraded: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Degradation]
    def __init__(self, item_count: _Optional[int] = ..., revision: _Optional[int] = ..., degraded: _Optional[_Iterable[_Union[_memory_pb2.Degradation, _Mapping]]] = ...) -> None: ...
