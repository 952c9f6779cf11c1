from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from memory_client._gen.memory_service.v1 import memory_pb2 as _memory_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Session(_message.Message):
    __slots__ = ("session_id", "title", "labels", "metadata", "item_count", "first_time", "last_time", "version", "update_time", "forked_from", "participants")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    ITEM_COUNT_FIELD_NUMBER: _ClassVar[int]
    FIRST_TIME_FIELD_NUMBER: _ClassVar[int]
    LAST_TIME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    FORKED_FROM_FIELD_NUMBER: _ClassVar[int]
    PARTICIPANTS_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    title: str
    labels: _containers.ScalarMap[str, str]
    metadata: _struct_pb2.Struct
    item_count: int
    first_time: _timestamp_pb2.Timestamp
    last_time: _timestamp_pb2.Timestamp
    version: int
    update_time: _timestamp_pb2.Timestamp
    forked_from: SessionOrigin
    participants: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, session_id: _Optional[str] = ..., title: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., item_count: _Optional[int] = ..., first_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., last_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., version: _Optional[int] = ..., update_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., forked_from: _Optional[_Union[SessionOrigin, _Mapping]] = ..., participants: _Optional[_Iterable[str]] = ...) -> None: ...

class SessionOrigin(_message.Message):
    __slots__ = ("session_id", "until_item_id", "revision")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    UNTIL_ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    until_item_id: str
    revision: int
    def __init__(self, session_id: _Optional[str] = ..., until_item_id: _Optional[str] = ..., revision: _Optional[int] = ...) -> None: ...

class ListSessionsRequest(_message.Message):
    __slots__ = ("namespace", "page_size", "page_token", "prefix", "labels")
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
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    page_size: int
    page_token: str
    prefix: str
    labels: _containers.ScalarMap[str, str]
    def __init__(self, namespace: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., prefix: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ListSessionsResponse(_message.Message):
    __slots__ = ("sessions", "next_page_token", "revision")
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    sessions: _containers.RepeatedCompositeFieldContainer[Session]
    next_page_token: str
    revision: int
    def __init__(self, sessions: _Optional[_Iterable[_Union[Session, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., revision: _Optional[int] = ...) -> None: ...

class GetSessionRequest(_message.Message):
    __slots__ = ("namespace", "session_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    session_id: str
    def __init__(self, namespace: _Optional[str] = ..., session_id: _Optional[str] = ...) -> None: ...

class GetSessionResponse(_message.Message):
    __slots__ = ("session", "revision")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    session: Session
    revision: int
    def __init__(self, session: _Optional[_Union[Session, _Mapping]] = ..., revision: _Optional[int] = ...) -> None: ...

class UpdateSessionRequest(_message.Message):
    __slots__ = ("namespace", "session", "update_mask", "expected_version", "allow_missing", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    ALLOW_MISSING_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    session: Session
    update_mask: _field_mask_pb2.FieldMask
    expected_version: int
    allow_missing: bool
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., session: _Optional[_Union[Session, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ..., expected_version: _Optional[int] = ..., allow_missing: bool = ..., request_id: _Optional[str] = ...) -> None: ...

class UpdateSessionResponse(_message.Message):
    __slots__ = ("session", "revision", "degraded")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    session: Session
    revision: int
    degraded: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Degradation]
    def __init__(self, session: _Optional[_Union[Session, _Mapping]] = ..., revision: _Optional[int] = ..., degraded: _Optional[_Iterable[_Union[_memory_pb2.Degradation, _Mapping]]] = ...) -> None: ...

class DeleteSessionRequest(_message.Message):
    __slots__ = ("namespace", "session_id", "request_id", "page_token", "keep_derived")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    KEEP_DERIVED_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    session_id: str
    request_id: str
    page_token: str
    keep_derived: bool
    def __init__(self, namespace: _Optional[str] = ..., session_id: _Optional[str] = ..., request_id: _Optional[str] = ..., page_token: _Optional[str] = ..., keep_derived: bool = ...) -> None: ...

class DeleteSessionResponse(_message.Message):
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

class ForkSessionRequest(_message.Message):
    __slots__ = ("namespace", "session_id", "new_session_id", "until_item_id", "until_revision", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    NEW_SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    UNTIL_ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    UNTIL_REVISION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    session_id: str
    new_session_id: str
    until_item_id: str
    until_revision: int
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., session_id: _Optional[str] = ..., new_session_id: _Optional[str] = ..., until_item_id: _Optional[str] = ..., until_revision: _Optional[int] = ..., request_id: _Optional[str] = ...) -> None: ...

class ForkSessionResponse(_message.Message):
    __slots__ = ("session", "revision", "degraded")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    session: Session
    revision: int
    degraded: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Degradation]
    def __init__(self, session: _Optional[_Union[Session, _Mapping]] = ..., revision: _Optional[int] = ..., degraded: _Optional[_Iterable[_Union[_memory_pb2.Degradation, _Mapping]]] = ...) -> None: ...
