from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from memory_service.v1 import memory_pb2 as _memory_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class InteractionKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INTERACTION_KIND_UNSPECIFIED: _ClassVar[InteractionKind]
    INTERACTION_KIND_MESSAGE: _ClassVar[InteractionKind]
    INTERACTION_KIND_RESPONSE: _ClassVar[InteractionKind]
    INTERACTION_KIND_REFLECTION: _ClassVar[InteractionKind]
INTERACTION_KIND_UNSPECIFIED: InteractionKind
INTERACTION_KIND_MESSAGE: InteractionKind
INTERACTION_KIND_RESPONSE: InteractionKind
INTERACTION_KIND_REFLECTION: InteractionKind

class Interaction(_message.Message):
    __slots__ = ("id", "kind", "content", "sender", "session_id", "in_response_to", "original_message", "interaction_ids", "create_time", "update_time", "expire_time", "labels", "metadata", "revision", "provenance")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    IN_RESPONSE_TO_FIELD_NUMBER: _ClassVar[int]
    ORIGINAL_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    INTERACTION_IDS_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    PROVENANCE_FIELD_NUMBER: _ClassVar[int]
    id: str
    kind: InteractionKind
    content: str
    sender: str
    session_id: str
    in_response_to: str
    original_message: OriginalMessage
    interaction_ids: _containers.RepeatedScalarFieldContainer[str]
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    expire_time: _timestamp_pb2.Timestamp
    labels: _containers.ScalarMap[str, str]
    metadata: _struct_pb2.Struct
    revision: int
    provenance: _memory_pb2.Provenance
    def __init__(self, id: _Optional[str] = ..., kind: _Optional[_Union[InteractionKind, str]] = ..., content: _Optional[str] = ..., sender: _Optional[str] = ..., session_id: _Optional[str] = ..., in_response_to: _Optional[str] = ..., original_message: _Optional[_Union[OriginalMessage, _Mapping]] = ..., interaction_ids: _Optional[_Iterable[str]] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., expire_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., labels: _Optional[_Mapping[str, str]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., revision: _Optional[int] = ..., provenance: _Optional[_Union[_memory_pb2.Provenance, _Mapping]] = ...) -> None: ...

class OriginalMessage(_message.Message):
    __slots__ = ("sender", "content", "create_time", "provenance")
    SENDER_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    PROVENANCE_FIELD_NUMBER: _ClassVar[int]
    sender: str
    content: str
    create_time: _timestamp_pb2.Timestamp
    provenance: _memory_pb2.Provenance
    def __init__(self, sender: _Optional[str] = ..., content: _Optional[str] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., provenance: _Optional[_Union[_memory_pb2.Provenance, _Mapping]] = ...) -> None: ...

class StoreInteractionRequest(_message.Message):
    __slots__ = ("namespace", "sender", "content", "create_time", "session_id", "id", "labels", "metadata", "ttl", "request_id")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    sender: str
    content: str
    create_time: _timestamp_pb2.Timestamp
    session_id: str
    id: str
    labels: _containers.ScalarMap[str, str]
    metadata: _struct_pb2.Struct
    ttl: _duration_pb2.Duration
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., sender: _Optional[str] = ..., content: _Optional[str] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., session_id: _Optional[str] = ..., id: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., ttl: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class StoreInteractionResponse(_message.Message):
    __slots__ = ("interaction", "revision", "degraded")
    INTERACTION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    interaction: Interaction
    revision: int
    degraded: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Degradation]
    def __init__(self, interaction: _Optional[_Union[Interaction, _Mapping]] = ..., revision: _Optional[int] = ..., degraded: _Optional[_Iterable[_Union[_memory_pb2.Degradation, _Mapping]]] = ...) -> None: ...

class StoreResponseRequest(_message.Message):
    __slots__ = ("namespace", "content", "in_response_to", "original_message", "sender", "create_time", "session_id", "id", "labels", "metadata", "ttl", "request_id", "allow_missing")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    IN_RESPONSE_TO_FIELD_NUMBER: _ClassVar[int]
    ORIGINAL_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ALLOW_MISSING_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    content: str
    in_response_to: str
    original_message: OriginalMessage
    sender: str
    create_time: _timestamp_pb2.Timestamp
    session_id: str
    id: str
    labels: _containers.ScalarMap[str, str]
    metadata: _struct_pb2.Struct
    ttl: _duration_pb2.Duration
    request_id: str
    allow_missing: bool
    def __init__(self, namespace: _Optional[str] = ..., content: _Optional[str] = ..., in_response_to: _Optional[str] = ..., original_message: _Optional[_Union[OriginalMessage, _Mapping]] = ..., sender: _Optional[str] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., session_id: _Optional[str] = ..., id: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., ttl: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., request_id: _Optional[str] = ..., allow_missing: bool = ...) -> None: ...

class StoreResponseResponse(_message.Message):
    __slots__ = ("interaction", "revision", "degraded")
    INTERACTION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    interaction: Interaction
    revision: int
    degraded: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Degradation]
    def __init__(self, interaction: _Optional[_Union[Interaction, _Mapping]] = ..., revision: _Optional[int] = ..., degraded: _Optional[_Iterable[_Union[_memory_pb2.Degradation, _Mapping]]] = ...) -> None: ...

class StoreReflectionRequest(_message.Message):
    __slots__ = ("namespace", "content", "interaction_ids", "sender", "create_time", "session_id", "id", "labels", "metadata", "ttl", "request_id")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    INTERACTION_IDS_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    content: str
    interaction_ids: _containers.RepeatedScalarFieldContainer[str]
    sender: str
    create_time: _timestamp_pb2.Timestamp
    session_id: str
    id: str
    labels: _containers.ScalarMap[str, str]
    metadata: _struct_pb2.Struct
    ttl: _duration_pb2.Duration
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., content: _Optional[str] = ..., interaction_ids: _Optional[_Iterable[str]] = ..., sender: _Optional[str] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., session_id: _Optional[str] = ..., id: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., ttl: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class StoreReflectionResponse(_message.Message):
    __slots__ = ("interaction", "revision", "degraded")
    INTERACTION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    interaction: Interaction
    revision: int
    degraded: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Degradation]
    def __init__(self, interaction: _Optional[_Union[Interaction, _Mapping]] = ..., revision: _Optional[int] = ..., degraded: _Optional[_Iterable[_Union[_memory_pb2.Degradation, _Mapping]]] = ...) -> None: ...

class RetrieveRelevantContextRequest(_message.Message):
    __slots__ = ("namespace", "query", "interaction_limit", "reflection_limit", "session_id", "sender", "exclude_ids", "labels", "start_time", "end_time", "min_score", "mode", "max_tokens", "explain", "min_trust", "sources")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    INTERACTION_LIMIT_FIELD_NUMBER: _ClassVar[int]
    REFLECTION_LIMIT_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    EXCLUDE_IDS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    MIN_SCORE_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    EXPLAIN_FIELD_NUMBER: _ClassVar[int]
    MIN_TRUST_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    query: str
    interaction_limit: int
    reflection_limit: int
    session_id: str
    sender: str
    exclude_ids: _containers.RepeatedScalarFieldContainer[str]
    labels: _containers.ScalarMap[str, str]
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    min_score: float
    mode: _memory_pb2.RetrieveMode
    max_tokens: int
    explain: bool
    min_trust: float
    sources: _containers.RepeatedScalarFieldContainer[_memory_pb2.SourceKind]
    def __init__(self, namespace: _Optional[str] = ..., query: _Optional[str] = ..., interaction_limit: _Optional[int] = ..., reflection_limit: _Optional[int] = ..., session_id: _Optional[str] = ..., sender: _Optional[str] = ..., exclude_ids: _Optional[_Iterable[str]] = ..., labels: _Optional[_Mapping[str, str]] = ..., start_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., min_score: _Optional[float] = ..., mode: _Optional[_Union[_memory_pb2.RetrieveMode, str]] = ..., max_tokens: _Optional[int] = ..., explain: bool = ..., min_trust: _Optional[float] = ..., sources: _Optional[_Iterable[_Union[_memory_pb2.SourceKind, str]]] = ...) -> None: ...

class RetrieveRelevantContextResponse(_message.Message):
    __slots__ = ("results", "token_count", "degraded", "revision")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_COUNT_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[ContextResult]
    token_count: int
    degraded: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Degradation]
    revision: int
    def __init__(self, results: _Optional[_Iterable[_Union[ContextResult, _Mapping]]] = ..., token_count: _Optional[int] = ..., degraded: _Optional[_Iterable[_Union[_memory_pb2.Degradation, _Mapping]]] = ..., revision: _Optional[int] = ...) -> None: ...

class ContextResult(_message.Message):
    __slots__ = ("interaction", "text", "score", "explanation")
    INTERACTION_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    interaction: Interaction
    text: str
    score: float
    explanation: _memory_pb2.Explanation
    def __init__(self, interaction: _Optional[_Union[Interaction, _Mapping]] = ..., text: _Optional[str] = ..., score: _Optional[float] = ..., explanation: _Optional[_Union[_memory_pb2.Explanation, _Mapping]] = ...) -> None: ...

class RetrieveLastInteractionsRequest(_message.Message):
    __slots__ = ("namespace", "limit", "session_id", "sender", "labels", "start_time", "end_time", "page_size", "page_token", "min_trust", "sources")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    MIN_TRUST_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    limit: int
    session_id: str
    sender: str
    labels: _containers.ScalarMap[str, str]
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    page_size: int
    page_token: str
    min_trust: float
    sources: _containers.RepeatedScalarFieldContainer[_memory_pb2.SourceKind]
    def __init__(self, namespace: _Optional[str] = ..., limit: _Optional[int] = ..., session_id: _Optional[str] = ..., sender: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., start_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., min_trust: _Optional[float] = ..., sources: _Optional[_Iterable[_Union[_memory_pb2.SourceKind, str]]] = ...) -> None: ...

class RetrieveLastInteractionsResponse(_message.Message):
    __slots__ = ("interactions", "next_page_token", "revision")
    INTERACTIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    interactions: _containers.RepeatedCompositeFieldContainer[InteractionPair]
    next_page_token: str
    revision: int
    def __init__(self, interactions: _Optional[_Iterable[_Union[InteractionPair, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., revision: _Optional[int] = ...) -> None: ...

class InteractionPair(_message.Message):
    __slots__ = ("message", "responses", "response_count")
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RESPONSES_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_COUNT_FIELD_NUMBER: _ClassVar[int]
    message: Interaction
    responses: _containers.RepeatedCompositeFieldContainer[Interaction]
    response_count: int
    def __init__(self, message: _Optional[_Union[Interaction, _Mapping]] = ..., responses: _Optional[_Iterable[_Union[Interaction, _Mapping]]] = ..., response_count: _Optional[int] = ...) -> None: ...
