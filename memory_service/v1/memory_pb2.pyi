from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from memory_service.v1 import state_pb2 as _state_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ItemKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ITEM_KIND_UNSPECIFIED: _ClassVar[ItemKind]
    ITEM_KIND_MESSAGE: _ClassVar[ItemKind]
    ITEM_KIND_RESPONSE: _ClassVar[ItemKind]
    ITEM_KIND_REFLECTION: _ClassVar[ItemKind]
    ITEM_KIND_USER_MEMORY: _ClassVar[ItemKind]
    ITEM_KIND_DOCUMENT: _ClassVar[ItemKind]
    ITEM_KIND_FRAGMENT: _ClassVar[ItemKind]
    ITEM_KIND_SESSION: _ClassVar[ItemKind]
    ITEM_KIND_FILE: _ClassVar[ItemKind]
    ITEM_KIND_FILE_FRAGMENT: _ClassVar[ItemKind]

class SourceKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SOURCE_KIND_UNSPECIFIED: _ClassVar[SourceKind]
    SOURCE_KIND_USER: _ClassVar[SourceKind]
    SOURCE_KIND_AGENT: _ClassVar[SourceKind]
    SOURCE_KIND_TOOL: _ClassVar[SourceKind]
    SOURCE_KIND_WEB: _ClassVar[SourceKind]
    SOURCE_KIND_DOCUMENT: _ClassVar[SourceKind]
    SOURCE_KIND_DERIVED: _ClassVar[SourceKind]
    SOURCE_KIND_IMPORT: _ClassVar[SourceKind]

class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROLE_UNSPECIFIED: _ClassVar[Role]
    ROLE_SYSTEM: _ClassVar[Role]
    ROLE_USER: _ClassVar[Role]
    ROLE_ASSISTANT: _ClassVar[Role]
    ROLE_TOOL: _ClassVar[Role]

class OnDuplicate(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ON_DUPLICATE_UNSPECIFIED: _ClassVar[OnDuplicate]
    ON_DUPLICATE_FAIL: _ClassVar[OnDuplicate]
    ON_DUPLICATE_SKIP: _ClassVar[OnDuplicate]
    ON_DUPLICATE_REPLACE: _ClassVar[OnDuplicate]

class RetrieveMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RETRIEVE_MODE_UNSPECIFIED: _ClassVar[RetrieveMode]
    RETRIEVE_MODE_HYBRID: _ClassVar[RetrieveMode]
    RETRIEVE_MODE_VECTOR: _ClassVar[RetrieveMode]
    RETRIEVE_MODE_LEXICAL: _ClassVar[RetrieveMode]

class DegradationReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DEGRADATION_REASON_UNSPECIFIED: _ClassVar[DegradationReason]
    DEGRADATION_REASON_NO_EMBEDDER: _ClassVar[DegradationReason]
    DEGRADATION_REASON_EMBEDDER_UNAVAILABLE: _ClassVar[DegradationReason]
    DEGRADATION_REASON_FOREIGN_VECTORS: _ClassVar[DegradationReason]
    DEGRADATION_REASON_NO_LLM: _ClassVar[DegradationReason]
    DEGRADATION_REASON_LLM_UNAVAILABLE: _ClassVar[DegradationReason]
    DEGRADATION_REASON_EMBEDDING_PENDING: _ClassVar[DegradationReason]
    DEGRADATION_REASON_NO_RERANKER: _ClassVar[DegradationReason]
    DEGRADATION_REASON_RERANKER_UNAVAILABLE: _ClassVar[DegradationReason]
    DEGRADATION_REASON_QUARANTINED: _ClassVar[DegradationReason]

class ChangeType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHANGE_TYPE_UNSPECIFIED: _ClassVar[ChangeType]
    CHANGE_TYPE_ITEM_ADDED: _ClassVar[ChangeType]
    CHANGE_TYPE_ITEM_UPDATED: _ClassVar[ChangeType]
    CHANGE_TYPE_ITEM_DELETED: _ClassVar[ChangeType]
    CHANGE_TYPE_ITEM_EXPIRED: _ClassVar[ChangeType]
    CHANGE_TYPE_RESET: _ClassVar[ChangeType]
    CHANGE_TYPE_STATE_SAVED: _ClassVar[ChangeType]
    CHANGE_TYPE_STATE_DELETED: _ClassVar[ChangeType]
    CHANGE_TYPE_STATE_EXPIRED: _ClassVar[ChangeType]
    CHANGE_TYPE_STATE_CLEARED: _ClassVar[ChangeType]
ITEM_KIND_UNSPECIFIED: ItemKind
ITEM_KIND_MESSAGE: ItemKind
ITEM_KIND_RESPONSE: ItemKind
ITEM_KIND_REFLECTION: ItemKind
ITEM_KIND_USER_MEMORY: ItemKind
ITEM_KIND_DOCUMENT: ItemKind
ITEM_KIND_FRAGMENT: ItemKind
ITEM_KIND_SESSION: ItemKind
ITEM_KIND_FILE: ItemKind
ITEM_KIND_FILE_FRAGMENT: ItemKind
SOURCE_KIND_UNSPECIFIED: SourceKind
SOURCE_KIND_USER: SourceKind
SOURCE_KIND_AGENT: SourceKind
SOURCE_KIND_TOOL: SourceKind
SOURCE_KIND_WEB: SourceKind
SOURCE_KIND_DOCUMENT: SourceKind
SOURCE_KIND_DERIVED: SourceKind
SOURCE_KIND_IMPORT: SourceKind
ROLE_UNSPECIFIED: Role
ROLE_SYSTEM: Role
ROLE_USER: Role
ROLE_ASSISTANT: Role
ROLE_TOOL: Role
ON_DUPLICATE_UNSPECIFIED: OnDuplicate
ON_DUPLICATE_FAIL: OnDuplicate
ON_DUPLICATE_SKIP: OnDuplicate
ON_DUPLICATE_REPLACE: OnDuplicate
RETRIEVE_MODE_UNSPECIFIED: RetrieveMode
RETRIEVE_MODE_HYBRID: RetrieveMode
RETRIEVE_MODE_VECTOR: RetrieveMode
RETRIEVE_MODE_LEXICAL: RetrieveMode
DEGRADATION_REASON_UNSPECIFIED: DegradationReason
DEGRADATION_REASON_NO_EMBEDDER: DegradationReason
DEGRADATION_REASON_EMBEDDER_UNAVAILABLE: DegradationReason
DEGRADATION_REASON_FOREIGN_VECTORS: DegradationReason
DEGRADATION_REASON_NO_LLM: DegradationReason
DEGRADATION_REASON_LLM_UNAVAILABLE: DegradationReason
DEGRADATION_REASON_EMBEDDING_PENDING: DegradationReason
DEGRADATION_REASON_NO_RERANKER: DegradationReason
DEGRADATION_REASON_RERANKER_UNAVAILABLE: DegradationReason
DEGRADATION_REASON_QUARANTINED: DegradationReason
CHANGE_TYPE_UNSPECIFIED: ChangeType
CHANGE_TYPE_ITEM_ADDED: ChangeType
CHANGE_TYPE_ITEM_UPDATED: ChangeType
CHANGE_TYPE_ITEM_DELETED: ChangeType
CHANGE_TYPE_ITEM_EXPIRED: ChangeType
CHANGE_TYPE_RESET: ChangeType
CHANGE_TYPE_STATE_SAVED: ChangeType
CHANGE_TYPE_STATE_DELETED: ChangeType
CHANGE_TYPE_STATE_EXPIRED: ChangeType
CHANGE_TYPE_STATE_CLEARED: ChangeType

class MemoryItem(_message.Message):
    __slots__ = ("id", "session_id", "chat_message", "tool_call_result", "text", "data", "create_time", "update_time", "expire_time", "labels", "metadata", "embedding", "revision", "ttl", "kind", "facet_json", "importance", "provenance", "index")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CHAT_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_RESULT_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    FACET_JSON_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    PROVENANCE_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    id: str
    session_id: str
    chat_message: ChatMessage
    tool_call_result: ToolCallResult
    text: str
    data: _struct_pb2.Struct
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    expire_time: _timestamp_pb2.Timestamp
    labels: _containers.ScalarMap[str, str]
    metadata: _struct_pb2.Struct
    embedding: Embedding
    revision: int
    ttl: _duration_pb2.Duration
    kind: ItemKind
    facet_json: str
    importance: float
    provenance: Provenance
    index: str
    def __init__(self, id: _Optional[str] = ..., session_id: _Optional[str] = ..., chat_message: _Optional[_Union[ChatMessage, _Mapping]] = ..., tool_call_result: _Optional[_Union[ToolCallResult, _Mapping]] = ..., text: _Optional[str] = ..., data: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., expire_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., labels: _Optional[_Mapping[str, str]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., embedding: _Optional[_Union[Embedding, _Mapping]] = ..., revision: _Optional[int] = ..., ttl: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., kind: _Optional[_Union[ItemKind, str]] = ..., facet_json: _Optional[str] = ..., importance: _Optional[float] = ..., provenance: _Optional[_Union[Provenance, _Mapping]] = ..., index: _Optional[str] = ...) -> None: ...

class Provenance(_message.Message):
    __slots__ = ("writer", "credential_id", "source", "source_uri", "parent_ids", "model", "trust", "write_time")
    WRITER_FIELD_NUMBER: _ClassVar[int]
    CREDENTIAL_ID_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_URI_FIELD_NUMBER: _ClassVar[int]
    PARENT_IDS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TRUST_FIELD_NUMBER: _ClassVar[int]
    WRITE_TIME_FIELD_NUMBER: _ClassVar[int]
    writer: str
    credential_id: str
    source: SourceKind
    source_uri: str
    parent_ids: _containers.RepeatedScalarFieldContainer[str]
    model: str
    trust: float
    write_time: _timestamp_pb2.Timestamp
    def __init__(self, writer: _Optional[str] = ..., credential_id: _Optional[str] = ..., source: _Optional[_Union[SourceKind, str]] = ..., source_uri: _Optional[str] = ..., parent_ids: _Optional[_Iterable[str]] = ..., model: _Optional[str] = ..., trust: _Optional[float] = ..., write_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Embedding(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, values: _Optional[_Iterable[float]] = ...) -> None: ...

class ChatMessage(_message.Message):
    __slots__ = ("message_id", "role", "name", "model", "parts", "create_time")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    role: Role
    name: str
    model: Model
    parts: _containers.RepeatedCompositeFieldContainer[Part]
    create_time: _timestamp_pb2.Timestamp
    def __init__(self, message_id: _Optional[str] = ..., role: _Optional[_Union[Role, str]] = ..., name: _Optional[str] = ..., model: _Optional[_Union[Model, _Mapping]] = ..., parts: _Optional[_Iterable[_Union[Part, _Mapping]]] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Model(_message.Message):
    __slots__ = ("provider", "id")
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    provider: str
    id: str
    def __init__(self, provider: _Optional[str] = ..., id: _Optional[str] = ...) -> None: ...

class Part(_message.Message):
    __slots__ = ("text", "data", "binary", "tool_call", "tool_call_result")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    BINARY_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_RESULT_FIELD_NUMBER: _ClassVar[int]
    text: str
    data: _struct_pb2.Struct
    binary: BinaryPart
    tool_call: ToolCall
    tool_call_result: ToolCallResult
    def __init__(self, text: _Optional[str] = ..., data: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., binary: _Optional[_Union[BinaryPart, _Mapping]] = ..., tool_call: _Optional[_Union[ToolCall, _Mapping]] = ..., tool_call_result: _Optional[_Union[ToolCallResult, _Mapping]] = ...) -> None: ...

class BinaryPart(_message.Message):
    __slots__ = ("name", "url", "mime_type", "content", "content_length")
    NAME_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    MIME_TYPE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    CONTENT_LENGTH_FIELD_NUMBER: _ClassVar[int]
    name: str
    url: str
    mime_type: str
    content: bytes
    content_length: int
    def __init__(self, name: _Optional[str] = ..., url: _Optional[str] = ..., mime_type: _Optional[str] = ..., content: _Optional[bytes] = ..., content_length: _Optional[int] = ...) -> None: ...

class ToolCall(_message.Message):
    __slots__ = ("tool_call_id", "name", "arguments")
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    tool_call_id: str
    name: str
    arguments: _struct_pb2.Struct
    def __init__(self, tool_call_id: _Optional[str] = ..., name: _Optional[str] = ..., arguments: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class ToolCallResult(_message.Message):
    __slots__ = ("tool_call_id", "name", "result", "is_error")
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    IS_ERROR_FIELD_NUMBER: _ClassVar[int]
    tool_call_id: str
    name: str
    result: _struct_pb2.Value
    is_error: bool
    def __init__(self, tool_call_id: _Optional[str] = ..., name: _Optional[str] = ..., result: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., is_error: bool = ...) -> None: ...

class AddRequest(_message.Message):
    __slots__ = ("namespace", "item", "request_id", "on_duplicate")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ON_DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    item: MemoryItem
    request_id: str
    on_duplicate: OnDuplicate
    def __init__(self, namespace: _Optional[str] = ..., item: _Optional[_Union[MemoryItem, _Mapping]] = ..., request_id: _Optional[str] = ..., on_duplicate: _Optional[_Union[OnDuplicate, str]] = ...) -> None: ...

class AddResponse(_message.Message):
    __slots__ = ("item", "revision", "degraded", "skipped")
    ITEM_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_FIELD_NUMBER: _ClassVar[int]
    item: MemoryItem
    revision: int
    degraded: _containers.RepeatedCompositeFieldContainer[Degradation]
    skipped: bool
    def __init__(self, item: _Optional[_Union[MemoryItem, _Mapping]] = ..., revision: _Optional[int] = ..., degraded: _Optional[_Iterable[_Union[Degradation, _Mapping]]] = ..., skipped: bool = ...) -> None: ...

class BatchAddRequest(_message.Message):
    __slots__ = ("namespace", "items", "request_id", "on_duplicate")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ON_DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    items: _containers.RepeatedCompositeFieldContainer[MemoryItem]
    request_id: str
    on_duplicate: OnDuplicate
    def __init__(self, namespace: _Optional[str] = ..., items: _Optional[_Iterable[_Union[MemoryItem, _Mapping]]] = ..., request_id: _Optional[str] = ..., on_duplicate: _Optional[_Union[OnDuplicate, str]] = ...) -> None: ...

class BatchAddResponse(_message.Message):
    __slots__ = ("items", "revision", "degraded", "skipped_count")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_COUNT_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[MemoryItem]
    revision: int
    degraded: _containers.RepeatedCompositeFieldContainer[Degradation]
    skipped_count: int
    def __init__(self, items: _Optional[_Iterable[_Union[MemoryItem, _Mapping]]] = ..., revision: _Optional[int] = ..., degraded: _Optional[_Iterable[_Union[Degradation, _Mapping]]] = ..., skipped_count: _Optional[int] = ...) -> None: ...

class ImportRequest(_message.Message):
    __slots__ = ("namespace", "items", "states", "on_duplicate")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    ON_DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    items: _containers.RepeatedCompositeFieldContainer[MemoryItem]
    states: _containers.RepeatedCompositeFieldContainer[_state_pb2.StateEntry]
    on_duplicate: OnDuplicate
    def __init__(self, namespace: _Optional[str] = ..., items: _Optional[_Iterable[_Union[MemoryItem, _Mapping]]] = ..., states: _Optional[_Iterable[_Union[_state_pb2.StateEntry, _Mapping]]] = ..., on_duplicate: _Optional[_Union[OnDuplicate, str]] = ...) -> None: ...

class ImportResponse(_message.Message):
    __slots__ = ("imported_count", "skipped_count", "imported_state_count", "skipped_state_count", "revision", "degraded")
    IMPORTED_COUNT_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_COUNT_FIELD_NUMBER: _ClassVar[int]
    IMPORTED_STATE_COUNT_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_STATE_COUNT_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    imported_count: int
    skipped_count: int
    imported_state_count: int
    skipped_state_count: int
    revision: int
    degraded: _containers.RepeatedCompositeFieldContainer[Degradation]
    def __init__(self, imported_count: _Optional[int] = ..., skipped_count: _Optional[int] = ..., imported_state_count: _Optional[int] = ..., skipped_state_count: _Optional[int] = ..., revision: _Optional[int] = ..., degraded: _Optional[_Iterable[_Union[Degradation, _Mapping]]] = ...) -> None: ...

class RetrieveOptions(_message.Message):
    __slots__ = ("limit", "query_text", "query_embedding", "session_id", "filter", "labels", "start_time", "end_time", "min_score", "mode", "context_window", "explain", "include_embedding", "page_size", "page_token", "kinds", "now", "weights", "max_tokens", "rerank", "record_usage", "min_trust", "sources", "order_by", "skip", "queries", "min_relevance", "neighbour_weight", "whole_exchanges", "time_zone")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    QUERY_TEXT_FIELD_NUMBER: _ClassVar[int]
    QUERY_EMBEDDING_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    MIN_SCORE_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_WINDOW_FIELD_NUMBER: _ClassVar[int]
    EXPLAIN_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_EMBEDDING_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    NOW_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    RERANK_FIELD_NUMBER: _ClassVar[int]
    RECORD_USAGE_FIELD_NUMBER: _ClassVar[int]
    MIN_TRUST_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    ORDER_BY_FIELD_NUMBER: _ClassVar[int]
    SKIP_FIELD_NUMBER: _ClassVar[int]
    QUERIES_FIELD_NUMBER: _ClassVar[int]
    MIN_RELEVANCE_FIELD_NUMBER: _ClassVar[int]
    NEIGHBOUR_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    WHOLE_EXCHANGES_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    limit: int
    query_text: str
    query_embedding: Embedding
    session_id: str
    filter: str
    labels: _containers.ScalarMap[str, str]
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    min_score: float
    mode: RetrieveMode
    context_window: int
    explain: bool
    include_embedding: bool
    page_size: int
    page_token: str
    kinds: _containers.RepeatedScalarFieldContainer[ItemKind]
    now: _timestamp_pb2.Timestamp
    weights: ScoreWeights
    max_tokens: int
    rerank: bool
    record_usage: bool
    min_trust: float
    sources: _containers.RepeatedScalarFieldContainer[SourceKind]
    order_by: str
    skip: int
    queries: _containers.RepeatedScalarFieldContainer[str]
    min_relevance: float
    neighbour_weight: float
    whole_exchanges: bool
    time_zone: str
    def __init__(self, limit: _Optional[int] = ..., query_text: _Optional[str] = ..., query_embedding: _Optional[_Union[Embedding, _Mapping]] = ..., session_id: _Optional[str] = ..., filter: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., start_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., min_score: _Optional[float] = ..., mode: _Optional[_Union[RetrieveMode, str]] = ..., context_window: _Optional[int] = ..., explain: bool = ..., include_embedding: bool = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., kinds: _Optional[_Iterable[_Union[ItemKind, str]]] = ..., now: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., weights: _Optional[_Union[ScoreWeights, _Mapping]] = ..., max_tokens: _Optional[int] = ..., rerank: bool = ..., record_usage: bool = ..., min_trust: _Optional[float] = ..., sources: _Optional[_Iterable[_Union[SourceKind, str]]] = ..., order_by: _Optional[str] = ..., skip: _Optional[int] = ..., queries: _Optional[_Iterable[str]] = ..., min_relevance: _Optional[float] = ..., neighbour_weight: _Optional[float] = ..., whole_exchanges: bool = ..., time_zone: _Optional[str] = ...) -> None: ...

class ScoreWeights(_message.Message):
    __slots__ = ("lexical", "vector", "recency", "recency_half_life", "importance", "usage")
    LEXICAL_FIELD_NUMBER: _ClassVar[int]
    VECTOR_FIELD_NUMBER: _ClassVar[int]
    RECENCY_FIELD_NUMBER: _ClassVar[int]
    RECENCY_HALF_LIFE_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    lexical: float
    vector: float
    recency: float
    recency_half_life: _duration_pb2.Duration
    importance: float
    usage: float
    def __init__(self, lexical: _Optional[float] = ..., vector: _Optional[float] = ..., recency: _Optional[float] = ..., recency_half_life: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., importance: _Optional[float] = ..., usage: _Optional[float] = ...) -> None: ...

class RetrieveRequest(_message.Message):
    __slots__ = ("namespace", "options", "namespaces")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    options: RetrieveOptions
    namespaces: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, namespace: _Optional[str] = ..., options: _Optional[_Union[RetrieveOptions, _Mapping]] = ..., namespaces: _Optional[_Iterable[str]] = ...) -> None: ...

class RetrieveResponse(_message.Message):
    __slots__ = ("results", "next_page_token", "degraded", "revision", "token_count")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    TOKEN_COUNT_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[RetrieveResult]
    next_page_token: str
    degraded: _containers.RepeatedCompositeFieldContainer[Degradation]
    revision: int
    token_count: int
    def __init__(self, results: _Optional[_Iterable[_Union[RetrieveResult, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., degraded: _Optional[_Iterable[_Union[Degradation, _Mapping]]] = ..., revision: _Optional[int] = ..., token_count: _Optional[int] = ...) -> None: ...

class RetrieveResult(_message.Message):
    __slots__ = ("item", "score", "explanation", "before", "after", "namespace", "relevance", "matched_queries")
    ITEM_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RELEVANCE_FIELD_NUMBER: _ClassVar[int]
    MATCHED_QUERIES_FIELD_NUMBER: _ClassVar[int]
    item: MemoryItem
    score: float
    explanation: Explanation
    before: _containers.RepeatedCompositeFieldContainer[MemoryItem]
    after: _containers.RepeatedCompositeFieldContainer[MemoryItem]
    namespace: str
    relevance: float
    matched_queries: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, item: _Optional[_Union[MemoryItem, _Mapping]] = ..., score: _Optional[float] = ..., explanation: _Optional[_Union[Explanation, _Mapping]] = ..., before: _Optional[_Iterable[_Union[MemoryItem, _Mapping]]] = ..., after: _Optional[_Iterable[_Union[MemoryItem, _Mapping]]] = ..., namespace: _Optional[str] = ..., relevance: _Optional[float] = ..., matched_queries: _Optional[_Iterable[int]] = ...) -> None: ...

class Explanation(_message.Message):
    __slots__ = ("contributions",)
    CONTRIBUTIONS_FIELD_NUMBER: _ClassVar[int]
    contributions: _containers.RepeatedCompositeFieldContainer[Contribution]
    def __init__(self, contributions: _Optional[_Iterable[_Union[Contribution, _Mapping]]] = ...) -> None: ...

class Contribution(_message.Message):
    __slots__ = ("channel", "raw_score", "weight", "scale", "contribution")
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    RAW_SCORE_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    CONTRIBUTION_FIELD_NUMBER: _ClassVar[int]
    channel: str
    raw_score: float
    weight: float
    scale: float
    contribution: float
    def __init__(self, channel: _Optional[str] = ..., raw_score: _Optional[float] = ..., weight: _Optional[float] = ..., scale: _Optional[float] = ..., contribution: _Optional[float] = ...) -> None: ...

class Degradation(_message.Message):
    __slots__ = ("reason", "message")
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    reason: DegradationReason
    message: str
    def __init__(self, reason: _Optional[_Union[DegradationReason, str]] = ..., message: _Optional[str] = ...) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("namespace", "id", "include_embedding", "revision")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_EMBEDDING_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    id: str
    include_embedding: bool
    revision: int
    def __init__(self, namespace: _Optional[str] = ..., id: _Optional[str] = ..., include_embedding: bool = ..., revision: _Optional[int] = ...) -> None: ...

class GetResponse(_message.Message):
    __slots__ = ("item",)
    ITEM_FIELD_NUMBER: _ClassVar[int]
    item: MemoryItem
    def __init__(self, item: _Optional[_Union[MemoryItem, _Mapping]] = ...) -> None: ...

class ItemVersion(_message.Message):
    __slots__ = ("revision", "kind", "time", "writer", "credential_id", "item")
    REVISION_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    WRITER_FIELD_NUMBER: _ClassVar[int]
    CREDENTIAL_ID_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    revision: int
    kind: _state_pb2.VersionKind
    time: _timestamp_pb2.Timestamp
    writer: str
    credential_id: str
    item: MemoryItem
    def __init__(self, revision: _Optional[int] = ..., kind: _Optional[_Union[_state_pb2.VersionKind, str]] = ..., time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., writer: _Optional[str] = ..., credential_id: _Optional[str] = ..., item: _Optional[_Union[MemoryItem, _Mapping]] = ...) -> None: ...

class ListItemVersionsRequest(_message.Message):
    __slots__ = ("namespace", "id", "page_size", "page_token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    id: str
    page_size: int
    page_token: str
    def __init__(self, namespace: _Optional[str] = ..., id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListItemVersionsResponse(_message.Message):
    __slots__ = ("versions", "next_page_token")
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    versions: _containers.RepeatedCompositeFieldContainer[ItemVersion]
    next_page_token: str
    def __init__(self, versions: _Optional[_Iterable[_Union[ItemVersion, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class RedactVersionRequest(_message.Message):
    __slots__ = ("namespace", "id", "revision")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    id: str
    revision: int
    def __init__(self, namespace: _Optional[str] = ..., id: _Optional[str] = ..., revision: _Optional[int] = ...) -> None: ...

class RedactVersionResponse(_message.Message):
    __slots__ = ("revision",)
    REVISION_FIELD_NUMBER: _ClassVar[int]
    revision: int
    def __init__(self, revision: _Optional[int] = ...) -> None: ...

class ListRequest(_message.Message):
    __slots__ = ("namespace", "page_size", "page_token", "session_id", "labels", "start_time", "end_time", "filter", "newest_first", "include_embedding", "kinds", "min_trust", "sources", "order_by", "skip")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    NEWEST_FIRST_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_EMBEDDING_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    MIN_TRUST_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    ORDER_BY_FIELD_NUMBER: _ClassVar[int]
    SKIP_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    page_size: int
    page_token: str
    session_id: str
    labels: _containers.ScalarMap[str, str]
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    filter: str
    newest_first: bool
    include_embedding: bool
    kinds: _containers.RepeatedScalarFieldContainer[ItemKind]
    min_trust: float
    sources: _containers.RepeatedScalarFieldContainer[SourceKind]
    order_by: str
    skip: int
    def __init__(self, namespace: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., session_id: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., start_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., filter: _Optional[str] = ..., newest_first: bool = ..., include_embedding: bool = ..., kinds: _Optional[_Iterable[_Union[ItemKind, str]]] = ..., min_trust: _Optional[float] = ..., sources: _Optional[_Iterable[_Union[SourceKind, str]]] = ..., order_by: _Optional[str] = ..., skip: _Optional[int] = ...) -> None: ...

class ListResponse(_message.Message):
    __slots__ = ("items", "next_page_token", "revision")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[MemoryItem]
    next_page_token: str
    revision: int
    def __init__(self, items: _Optional[_Iterable[_Union[MemoryItem, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., revision: _Optional[int] = ...) -> None: ...

class ListLabelValuesRequest(_message.Message):
    __slots__ = ("namespace", "key", "prefix", "page_size", "page_token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    prefix: str
    page_size: int
    page_token: str
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., prefix: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListLabelValuesResponse(_message.Message):
    __slots__ = ("values", "next_page_token", "revision")
    VALUES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedCompositeFieldContainer[LabelValue]
    next_page_token: str
    revision: int
    def __init__(self, values: _Optional[_Iterable[_Union[LabelValue, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., revision: _Optional[int] = ...) -> None: ...

class LabelValue(_message.Message):
    __slots__ = ("value", "count")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    value: str
    count: int
    def __init__(self, value: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...

class UpdateRequest(_message.Message):
    __slots__ = ("namespace", "item", "update_mask", "expected_revision", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    item: MemoryItem
    update_mask: _field_mask_pb2.FieldMask
    expected_revision: int
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., item: _Optional[_Union[MemoryItem, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ..., expected_revision: _Optional[int] = ..., request_id: _Optional[str] = ...) -> None: ...

class UpdateResponse(_message.Message):
    __slots__ = ("item", "revision", "degraded")
    ITEM_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    item: MemoryItem
    revision: int
    degraded: _containers.RepeatedCompositeFieldContainer[Degradation]
    def __init__(self, item: _Optional[_Union[MemoryItem, _Mapping]] = ..., revision: _Optional[int] = ..., degraded: _Optional[_Iterable[_Union[Degradation, _Mapping]]] = ...) -> None: ...

class DeleteRequest(_message.Message):
    __slots__ = ("namespace", "id", "expected_revision", "request_id", "keep_derived")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    KEEP_DERIVED_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    id: str
    expected_revision: int
    request_id: str
    keep_derived: bool
    def __init__(self, namespace: _Optional[str] = ..., id: _Optional[str] = ..., expected_revision: _Optional[int] = ..., request_id: _Optional[str] = ..., keep_derived: bool = ...) -> None: ...

class DeleteResponse(_message.Message):
    __slots__ = ("revision", "derived_count")
    REVISION_FIELD_NUMBER: _ClassVar[int]
    DERIVED_COUNT_FIELD_NUMBER: _ClassVar[int]
    revision: int
    derived_count: int
    def __init__(self, revision: _Optional[int] = ..., derived_count: _Optional[int] = ...) -> None: ...

class DeleteWhereRequest(_message.Message):
    __slots__ = ("namespace", "session_id", "labels", "kinds", "filter", "start_time", "end_time", "dry_run", "page_token", "request_id", "keep_derived")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    KEEP_DERIVED_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    session_id: str
    labels: _containers.ScalarMap[str, str]
    kinds: _containers.RepeatedScalarFieldContainer[ItemKind]
    filter: str
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    dry_run: bool
    page_token: str
    request_id: str
    keep_derived: bool
    def __init__(self, namespace: _Optional[str] = ..., session_id: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., kinds: _Optional[_Iterable[_Union[ItemKind, str]]] = ..., filter: _Optional[str] = ..., start_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., dry_run: bool = ..., page_token: _Optional[str] = ..., request_id: _Optional[str] = ..., keep_derived: bool = ...) -> None: ...

class DeleteWhereResponse(_message.Message):
    __slots__ = ("deleted_count", "revision", "next_page_token", "derived_count")
    DELETED_COUNT_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    DERIVED_COUNT_FIELD_NUMBER: _ClassVar[int]
    deleted_count: int
    revision: int
    next_page_token: str
    derived_count: int
    def __init__(self, deleted_count: _Optional[int] = ..., revision: _Optional[int] = ..., next_page_token: _Optional[str] = ..., derived_count: _Optional[int] = ...) -> None: ...

class BatchWriteRequest(_message.Message):
    __slots__ = ("namespace", "operations", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    operations: _containers.RepeatedCompositeFieldContainer[WriteOperation]
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., operations: _Optional[_Iterable[_Union[WriteOperation, _Mapping]]] = ..., request_id: _Optional[str] = ...) -> None: ...

class WriteOperation(_message.Message):
    __slots__ = ("add", "update", "delete", "delete_where", "save_state", "delete_state", "write_file", "edit_file", "rename_file", "delete_file")
    ADD_FIELD_NUMBER: _ClassVar[int]
    UPDATE_FIELD_NUMBER: _ClassVar[int]
    DELETE_FIELD_NUMBER: _ClassVar[int]
    DELETE_WHERE_FIELD_NUMBER: _ClassVar[int]
    SAVE_STATE_FIELD_NUMBER: _ClassVar[int]
    DELETE_STATE_FIELD_NUMBER: _ClassVar[int]
    WRITE_FILE_FIELD_NUMBER: _ClassVar[int]
    EDIT_FILE_FIELD_NUMBER: _ClassVar[int]
    RENAME_FILE_FIELD_NUMBER: _ClassVar[int]
    DELETE_FILE_FIELD_NUMBER: _ClassVar[int]
    add: AddOperation
    update: UpdateOperation
    delete: DeleteOperation
    delete_where: DeleteWhereOperation
    save_state: SaveStateOperation
    delete_state: DeleteStateOperation
    write_file: WriteFileOperation
    edit_file: EditFileOperation
    rename_file: RenameFileOperation
    delete_file: DeleteFileOperation
    def __init__(self, add: _Optional[_Union[AddOperation, _Mapping]] = ..., update: _Optional[_Union[UpdateOperation, _Mapping]] = ..., delete: _Optional[_Union[DeleteOperation, _Mapping]] = ..., delete_where: _Optional[_Union[DeleteWhereOperation, _Mapping]] = ..., save_state: _Optional[_Union[SaveStateOperation, _Mapping]] = ..., delete_state: _Optional[_Union[DeleteStateOperation, _Mapping]] = ..., write_file: _Optional[_Union[WriteFileOperation, _Mapping]] = ..., edit_file: _Optional[_Union[EditFileOperation, _Mapping]] = ..., rename_file: _Optional[_Union[RenameFileOperation, _Mapping]] = ..., delete_file: _Optional[_Union[DeleteFileOperation, _Mapping]] = ...) -> None: ...

class AddOperation(_message.Message):
    __slots__ = ("item", "on_duplicate")
    ITEM_FIELD_NUMBER: _ClassVar[int]
    ON_DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    item: MemoryItem
    on_duplicate: OnDuplicate
    def __init__(self, item: _Optional[_Union[MemoryItem, _Mapping]] = ..., on_duplicate: _Optional[_Union[OnDuplicate, str]] = ...) -> None: ...

class UpdateOperation(_message.Message):
    __slots__ = ("item", "update_mask", "expected_revision")
    ITEM_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    item: MemoryItem
    update_mask: _field_mask_pb2.FieldMask
    expected_revision: int
    def __init__(self, item: _Optional[_Union[MemoryItem, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ..., expected_revision: _Optional[int] = ...) -> None: ...

class DeleteOperation(_message.Message):
    __slots__ = ("id", "expected_revision", "allow_missing", "keep_derived")
    ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    ALLOW_MISSING_FIELD_NUMBER: _ClassVar[int]
    KEEP_DERIVED_FIELD_NUMBER: _ClassVar[int]
    id: str
    expected_revision: int
    allow_missing: bool
    keep_derived: bool
    def __init__(self, id: _Optional[str] = ..., expected_revision: _Optional[int] = ..., allow_missing: bool = ..., keep_derived: bool = ...) -> None: ...

class DeleteWhereOperation(_message.Message):
    __slots__ = ("session_id", "labels", "kinds", "filter", "start_time", "end_time", "keep_derived")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    KEEP_DERIVED_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    labels: _containers.ScalarMap[str, str]
    kinds: _containers.RepeatedScalarFieldContainer[ItemKind]
    filter: str
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    keep_derived: bool
    def __init__(self, session_id: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., kinds: _Optional[_Iterable[_Union[ItemKind, str]]] = ..., filter: _Optional[str] = ..., start_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., keep_derived: bool = ...) -> None: ...

class SaveStateOperation(_message.Message):
    __slots__ = ("key", "value", "expected_version", "ttl", "description")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: _struct_pb2.Value
    expected_version: int
    ttl: _duration_pb2.Duration
    description: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., expected_version: _Optional[int] = ..., ttl: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., description: _Optional[str] = ...) -> None: ...

class DeleteStateOperation(_message.Message):
    __slots__ = ("key", "expected_version", "allow_missing")
    KEY_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    ALLOW_MISSING_FIELD_NUMBER: _ClassVar[int]
    key: str
    expected_version: int
    allow_missing: bool
    def __init__(self, key: _Optional[str] = ..., expected_version: _Optional[int] = ..., allow_missing: bool = ...) -> None: ...

class WriteFileOperation(_message.Message):
    __slots__ = ("path", "content", "expected_version", "expected_sha256")
    PATH_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_SHA256_FIELD_NUMBER: _ClassVar[int]
    path: str
    content: str
    expected_version: int
    expected_sha256: str
    def __init__(self, path: _Optional[str] = ..., content: _Optional[str] = ..., expected_version: _Optional[int] = ..., expected_sha256: _Optional[str] = ...) -> None: ...

class EditFileOperation(_message.Message):
    __slots__ = ("path", "replace", "insert", "append", "expected_version", "expected_sha256")
    PATH_FIELD_NUMBER: _ClassVar[int]
    REPLACE_FIELD_NUMBER: _ClassVar[int]
    INSERT_FIELD_NUMBER: _ClassVar[int]
    APPEND_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_SHA256_FIELD_NUMBER: _ClassVar[int]
    path: str
    replace: ReplaceText
    insert: InsertText
    append: AppendText
    expected_version: int
    expected_sha256: str
    def __init__(self, path: _Optional[str] = ..., replace: _Optional[_Union[ReplaceText, _Mapping]] = ..., insert: _Optional[_Union[InsertText, _Mapping]] = ..., append: _Optional[_Union[AppendText, _Mapping]] = ..., expected_version: _Optional[int] = ..., expected_sha256: _Optional[str] = ...) -> None: ...

class RenameFileOperation(_message.Message):
    __slots__ = ("path", "new_path", "expected_version")
    PATH_FIELD_NUMBER: _ClassVar[int]
    NEW_PATH_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    path: str
    new_path: str
    expected_version: int
    def __init__(self, path: _Optional[str] = ..., new_path: _Optional[str] = ..., expected_version: _Optional[int] = ...) -> None: ...

class DeleteFileOperation(_message.Message):
    __slots__ = ("path", "recursive", "expected_version")
    PATH_FIELD_NUMBER: _ClassVar[int]
    RECURSIVE_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    path: str
    recursive: bool
    expected_version: int
    def __init__(self, path: _Optional[str] = ..., recursive: bool = ..., expected_version: _Optional[int] = ...) -> None: ...

class BatchWriteResponse(_message.Message):
    __slots__ = ("results", "revision", "degraded")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[WriteResult]
    revision: int
    degraded: _containers.RepeatedCompositeFieldContainer[Degradation]
    def __init__(self, results: _Optional[_Iterable[_Union[WriteResult, _Mapping]]] = ..., revision: _Optional[int] = ..., degraded: _Optional[_Iterable[_Union[Degradation, _Mapping]]] = ...) -> None: ...

class WriteResult(_message.Message):
    __slots__ = ("id", "revision", "version", "create_time", "update_time", "expire_time", "skipped", "deleted_count", "derived_count", "renamed_count")
    ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_FIELD_NUMBER: _ClassVar[int]
    DELETED_COUNT_FIELD_NUMBER: _ClassVar[int]
    DERIVED_COUNT_FIELD_NUMBER: _ClassVar[int]
    RENAMED_COUNT_FIELD_NUMBER: _ClassVar[int]
    id: str
    revision: int
    version: int
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    expire_time: _timestamp_pb2.Timestamp
    skipped: bool
    deleted_count: int
    derived_count: int
    renamed_count: int
    def __init__(self, id: _Optional[str] = ..., revision: _Optional[int] = ..., version: _Optional[int] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., expire_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., skipped: bool = ..., deleted_count: _Optional[int] = ..., derived_count: _Optional[int] = ..., renamed_count: _Optional[int] = ...) -> None: ...

class ResetRequest(_message.Message):
    __slots__ = ("namespace", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class ResetResponse(_message.Message):
    __slots__ = ("removed_count", "removed_state_count", "revision")
    REMOVED_COUNT_FIELD_NUMBER: _ClassVar[int]
    REMOVED_STATE_COUNT_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    removed_count: int
    removed_state_count: int
    revision: int
    def __init__(self, removed_count: _Optional[int] = ..., removed_state_count: _Optional[int] = ..., revision: _Optional[int] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("namespace", "after_revision", "heartbeat_interval")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    AFTER_REVISION_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    after_revision: int
    heartbeat_interval: _duration_pb2.Duration
    def __init__(self, namespace: _Optional[str] = ..., after_revision: _Optional[int] = ..., heartbeat_interval: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class WatchResponse(_message.Message):
    __slots__ = ("change", "revision")
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    change: Change
    revision: int
    def __init__(self, change: _Optional[_Union[Change, _Mapping]] = ..., revision: _Optional[int] = ...) -> None: ...

class Change(_message.Message):
    __slots__ = ("type", "revision", "item_id", "item", "state_key", "state")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    STATE_KEY_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    type: ChangeType
    revision: int
    item_id: str
    item: MemoryItem
    state_key: str
    state: _state_pb2.StateEntry
    def __init__(self, type: _Optional[_Union[ChangeType, str]] = ..., revision: _Optional[int] = ..., item_id: _Optional[str] = ..., item: _Optional[_Union[MemoryItem, _Mapping]] = ..., state_key: _Optional[str] = ..., state: _Optional[_Union[_state_pb2.StateEntry, _Mapping]] = ...) -> None: ...

class ExportRequest(_message.Message):
    __slots__ = ("namespace", "after_revision", "include_embedding")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    AFTER_REVISION_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_EMBEDDING_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    after_revision: int
    include_embedding: bool
    def __init__(self, namespace: _Optional[str] = ..., after_revision: _Optional[int] = ..., include_embedding: bool = ...) -> None: ...

class ExportResponse(_message.Message):
    __slots__ = ("item", "state", "revision")
    ITEM_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    item: MemoryItem
    state: _state_pb2.StateEntry
    revision: int
    def __init__(self, item: _Optional[_Union[MemoryItem, _Mapping]] = ..., state: _Optional[_Union[_state_pb2.StateEntry, _Mapping]] = ..., revision: _Optional[int] = ...) -> None: ...

class ReplaceText(_message.Message):
    __slots__ = ("old_text", "new_text")
    OLD_TEXT_FIELD_NUMBER: _ClassVar[int]
    NEW_TEXT_FIELD_NUMBER: _ClassVar[int]
    old_text: str
    new_text: str
    def __init__(self, old_text: _Optional[str] = ..., new_text: _Optional[str] = ...) -> None: ...

class InsertText(_message.Message):
    __slots__ = ("after_line", "text")
    AFTER_LINE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    after_line: int
    text: str
    def __init__(self, after_line: _Optional[int] = ..., text: _Optional[str] = ...) -> None: ...

class AppendText(_message.Message):
    __slots__ = ("text",)
    TEXT_FIELD_NUMBER: _ClassVar[int]
    text: str
    def __init__(self, text: _Optional[str] = ...) -> None: ...
