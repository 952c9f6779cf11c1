from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from memory_client._gen.memory_service.v1 import memory_pb2 as _memory_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class HandleMessageOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HANDLE_MESSAGE_OUTCOME_UNSPECIFIED: _ClassVar[HandleMessageOutcome]
    HANDLE_MESSAGE_OUTCOME_NOT_A_COMMAND: _ClassVar[HandleMessageOutcome]
    HANDLE_MESSAGE_OUTCOME_SAVED: _ClassVar[HandleMessageOutcome]
    HANDLE_MESSAGE_OUTCOME_ALREADY_SAVED: _ClassVar[HandleMessageOutcome]
    HANDLE_MESSAGE_OUTCOME_NO_MESSAGE: _ClassVar[HandleMessageOutcome]
    HANDLE_MESSAGE_OUTCOME_INVALID_STATE: _ClassVar[HandleMessageOutcome]
HANDLE_MESSAGE_OUTCOME_UNSPECIFIED: HandleMessageOutcome
HANDLE_MESSAGE_OUTCOME_NOT_A_COMMAND: HandleMessageOutcome
HANDLE_MESSAGE_OUTCOME_SAVED: HandleMessageOutcome
HANDLE_MESSAGE_OUTCOME_ALREADY_SAVED: HandleMessageOutcome
HANDLE_MESSAGE_OUTCOME_NO_MESSAGE: HandleMessageOutcome
HANDLE_MESSAGE_OUTCOME_INVALID_STATE: HandleMessageOutcome

class Document(_message.Message):
    __slots__ = ("id", "text", "title", "source", "source_item_id", "session_id", "labels", "metadata", "create_time", "update_time", "expire_time", "ttl", "version", "fragment_count", "size_bytes", "preview", "revision", "provenance")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    FRAGMENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    PREVIEW_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    PROVENANCE_FIELD_NUMBER: _ClassVar[int]
    id: str
    text: str
    title: str
    source: str
    source_item_id: str
    session_id: str
    labels: _containers.ScalarMap[str, str]
    metadata: _struct_pb2.Struct
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    expire_time: _timestamp_pb2.Timestamp
    ttl: _duration_pb2.Duration
    version: int
    fragment_count: int
    size_bytes: int
    preview: str
    revision: int
    provenance: _memory_pb2.Provenance
    def __init__(self, id: _Optional[str] = ..., text: _Optional[str] = ..., title: _Optional[str] = ..., source: _Optional[str] = ..., source_item_id: _Optional[str] = ..., session_id: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., expire_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., ttl: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., version: _Optional[int] = ..., fragment_count: _Optional[int] = ..., size_bytes: _Optional[int] = ..., preview: _Optional[str] = ..., revision: _Optional[int] = ..., provenance: _Optional[_Union[_memory_pb2.Provenance, _Mapping]] = ...) -> None: ...

class Fragment(_message.Message):
    __slots__ = ("id", "document_id", "document_version", "index", "text", "start_offset", "end_offset", "start_byte", "end_byte", "create_time", "provenance")
    ID_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_ID_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_VERSION_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    START_BYTE_FIELD_NUMBER: _ClassVar[int]
    END_BYTE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    PROVENANCE_FIELD_NUMBER: _ClassVar[int]
    id: str
    document_id: str
    document_version: int
    index: int
    text: str
    start_offset: int
    end_offset: int
    start_byte: int
    end_byte: int
    create_time: _timestamp_pb2.Timestamp
    provenance: _memory_pb2.Provenance
    def __init__(self, id: _Optional[str] = ..., document_id: _Optional[str] = ..., document_version: _Optional[int] = ..., index: _Optional[int] = ..., text: _Optional[str] = ..., start_offset: _Optional[int] = ..., end_offset: _Optional[int] = ..., start_byte: _Optional[int] = ..., end_byte: _Optional[int] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., provenance: _Optional[_Union[_memory_pb2.Provenance, _Mapping]] = ...) -> None: ...

class SplitOptions(_message.Message):
    __slots__ = ("max_characters", "overlap_characters")
    MAX_CHARACTERS_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_CHARACTERS_FIELD_NUMBER: _ClassVar[int]
    max_characters: int
    overlap_characters: int
    def __init__(self, max_characters: _Optional[int] = ..., overlap_characters: _Optional[int] = ...) -> None: ...

class HandleMessageRequest(_message.Message):
    __slots__ = ("namespace", "session_id", "text", "message_id", "agent_name", "commands", "max_recent_messages", "labels", "metadata", "split", "request_id")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_NAME_FIELD_NUMBER: _ClassVar[int]
    COMMANDS_FIELD_NUMBER: _ClassVar[int]
    MAX_RECENT_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    SPLIT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    session_id: str
    text: str
    message_id: str
    agent_name: str
    commands: _containers.RepeatedScalarFieldContainer[str]
    max_recent_messages: int
    labels: _containers.ScalarMap[str, str]
    metadata: _struct_pb2.Struct
    split: SplitOptions
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., session_id: _Optional[str] = ..., text: _Optional[str] = ..., message_id: _Optional[str] = ..., agent_name: _Optional[str] = ..., commands: _Optional[_Iterable[str]] = ..., max_recent_messages: _Optional[int] = ..., labels: _Optional[_Mapping[str, str]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., split: _Optional[_Union[SplitOptions, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class HandleMessageResponse(_message.Message):
    __slots__ = ("outcome", "feedback", "command", "message", "document", "fragments", "revision", "degraded")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    FEEDBACK_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    FRAGMENTS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    outcome: HandleMessageOutcome
    feedback: str
    command: str
    message: _memory_pb2.MemoryItem
    document: Document
    fragments: _containers.RepeatedCompositeFieldContainer[Fragment]
    revision: int
    degraded: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Degradation]
    def __init__(self, outcome: _Optional[_Union[HandleMessageOutcome, str]] = ..., feedback: _Optional[str] = ..., command: _Optional[str] = ..., message: _Optional[_Union[_memory_pb2.MemoryItem, _Mapping]] = ..., document: _Optional[_Union[Document, _Mapping]] = ..., fragments: _Optional[_Iterable[_Union[Fragment, _Mapping]]] = ..., revision: _Optional[int] = ..., degraded: _Optional[_Iterable[_Union[_memory_pb2.Degradation, _Mapping]]] = ...) -> None: ...

class AddDocumentRequest(_message.Message):
    __slots__ = ("namespace", "document", "split", "replace", "expected_version", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    SPLIT_FIELD_NUMBER: _ClassVar[int]
    REPLACE_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    document: Document
    split: SplitOptions
    replace: bool
    expected_version: int
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., document: _Optional[_Union[Document, _Mapping]] = ..., split: _Optional[_Union[SplitOptions, _Mapping]] = ..., replace: bool = ..., expected_version: _Optional[int] = ..., request_id: _Optional[str] = ...) -> None: ...

class AddDocumentResponse(_message.Message):
    __slots__ = ("document", "revision", "degraded")
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    document: Document
    revision: int
    degraded: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Degradation]
    def __init__(self, document: _Optional[_Union[Document, _Mapping]] = ..., revision: _Optional[int] = ..., degraded: _Optional[_Iterable[_Union[_memory_pb2.Degradation, _Mapping]]] = ...) -> None: ...

class GetDocumentRequest(_message.Message):
    __slots__ = ("namespace", "id", "include_fragments", "page_size", "page_token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_FRAGMENTS_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    id: str
    include_fragments: bool
    page_size: int
    page_token: str
    def __init__(self, namespace: _Optional[str] = ..., id: _Optional[str] = ..., include_fragments: bool = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class GetDocumentResponse(_message.Message):
    __slots__ = ("document", "fragments", "next_page_token", "revision")
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    FRAGMENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    document: Document
    fragments: _containers.RepeatedCompositeFieldContainer[Fragment]
    next_page_token: str
    revision: int
    def __init__(self, document: _Optional[_Union[Document, _Mapping]] = ..., fragments: _Optional[_Iterable[_Union[Fragment, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., revision: _Optional[int] = ...) -> None: ...

class ListDocumentsRequest(_message.Message):
    __slots__ = ("namespace", "page_size", "page_token", "session_id", "labels", "start_time", "end_time", "newest_first", "min_trust", "sources")
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
    NEWEST_FIRST_FIELD_NUMBER: _ClassVar[int]
    MIN_TRUST_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    page_size: int
    page_token: str
    session_id: str
    labels: _containers.ScalarMap[str, str]
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    newest_first: bool
    min_trust: float
    sources: _containers.RepeatedScalarFieldContainer[_memory_pb2.SourceKind]
    def __init__(self, namespace: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., session_id: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., start_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., newest_first: bool = ..., min_trust: _Optional[float] = ..., sources: _Optional[_Iterable[_Union[_memory_pb2.SourceKind, str]]] = ...) -> None: ...

class ListDocumentsResponse(_message.Message):
    __slots__ = ("documents", "next_page_token", "revision")
    DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    documents: _containers.RepeatedCompositeFieldContainer[Document]
    next_page_token: str
    revision: int
    def __init__(self, documents: _Optional[_Iterable[_Union[Document, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., revision: _Optional[int] = ...) -> None: ...

class DeleteDocumentRequest(_message.Message):
    __slots__ = ("namespace", "id", "expected_version", "request_id", "keep_derived")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    KEEP_DERIVED_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    id: str
    expected_version: int
    request_id: str
    keep_derived: bool
    def __init__(self, namespace: _Optional[str] = ..., id: _Optional[str] = ..., expected_version: _Optional[int] = ..., request_id: _Optional[str] = ..., keep_derived: bool = ...) -> None: ...

class DeleteDocumentResponse(_message.Message):
    __slots__ = ("removed_fragment_count", "revision", "derived_count")
    REMOVED_FRAGMENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    DERIVED_COUNT_FIELD_NUMBER: _ClassVar[int]
    removed_fragment_count: int
    revision: int
    derived_count: int
    def __init__(self, removed_fragment_count: _Optional[int] = ..., revision: _Optional[int] = ..., derived_count: _Optional[int] = ...) -> None: ...

class SearchFragmentsRequest(_message.Message):
    __slots__ = ("namespace", "query", "limit", "document_ids", "session_id", "labels", "start_time", "end_time", "min_score", "mode", "max_tokens", "explain", "page_size", "page_token", "min_trust", "sources")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_IDS_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    MIN_SCORE_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    EXPLAIN_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    MIN_TRUST_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    query: str
    limit: int
    document_ids: _containers.RepeatedScalarFieldContainer[str]
    session_id: str
    labels: _containers.ScalarMap[str, str]
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    min_score: float
    mode: _memory_pb2.RetrieveMode
    max_tokens: int
    explain: bool
    page_size: int
    page_token: str
    min_trust: float
    sources: _containers.RepeatedScalarFieldContainer[_memory_pb2.SourceKind]
    def __init__(self, namespace: _Optional[str] = ..., query: _Optional[str] = ..., limit: _Optional[int] = ..., document_ids: _Optional[_Iterable[str]] = ..., session_id: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., start_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., min_score: _Optional[float] = ..., mode: _Optional[_Union[_memory_pb2.RetrieveMode, str]] = ..., max_tokens: _Optional[int] = ..., explain: bool = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., min_trust: _Optional[float] = ..., sources: _Optional[_Iterable[_Union[_memory_pb2.SourceKind, str]]] = ...) -> None: ...

class SearchFragmentsResponse(_message.Message):
    __slots__ = ("results", "next_page_token", "degraded", "revision")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[FragmentResult]
    next_page_token: str
    degraded: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Degradation]
    revision: int
    def __init__(self, results: _Optional[_Iterable[_Union[FragmentResult, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., degraded: _Optional[_Iterable[_Union[_memory_pb2.Degradation, _Mapping]]] = ..., revision: _Optional[int] = ...) -> None: ...

class FragmentResult(_message.Message):
    __slots__ = ("fragment", "document", "score", "explanation")
    FRAGMENT_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    fragment: Fragment
    document: Document
    score: float
    explanation: _memory_pb2.Explanation
    def __init__(self, fragment: _Optional[_Union[Fragment, _Mapping]] = ..., document: _Optional[_Union[Document, _Mapping]] = ..., score: _Optional[float] = ..., explanation: _Optional[_Union[_memory_pb2.Explanation, _Mapping]] = ...) -> None: ...
