from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class VersionKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VERSION_KIND_UNSPECIFIED: _ClassVar[VersionKind]
    VERSION_KIND_CURRENT: _ClassVar[VersionKind]
    VERSION_KIND_REPLACED: _ClassVar[VersionKind]
    VERSION_KIND_REDACTED: _ClassVar[VersionKind]
    VERSION_KIND_DELETED: _ClassVar[VersionKind]
    VERSION_KIND_EXPIRED: _ClassVar[VersionKind]
VERSION_KIND_UNSPECIFIED: VersionKind
VERSION_KIND_CURRENT: VersionKind
VERSION_KIND_REPLACED: VersionKind
VERSION_KIND_REDACTED: VersionKind
VERSION_KIND_DELETED: VersionKind
VERSION_KIND_EXPIRED: VersionKind

class StateEntry(_message.Message):
    __slots__ = ("key", "version", "update_time", "size_bytes", "value", "description", "expire_time", "create_time", "preview", "revision")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    PREVIEW_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    key: str
    version: int
    update_time: _timestamp_pb2.Timestamp
    size_bytes: int
    value: _struct_pb2.Value
    description: str
    expire_time: _timestamp_pb2.Timestamp
    create_time: _timestamp_pb2.Timestamp
    preview: str
    revision: int
    def __init__(self, key: _Optional[str] = ..., version: _Optional[int] = ..., update_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., size_bytes: _Optional[int] = ..., value: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., description: _Optional[str] = ..., expire_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., preview: _Optional[str] = ..., revision: _Optional[int] = ...) -> None: ...

class SaveStateRequest(_message.Message):
    __slots__ = ("namespace", "key", "value", "expected_version", "ttl", "description", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    value: _struct_pb2.Value
    expected_version: int
    ttl: _duration_pb2.Duration
    description: str
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., value: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., expected_version: _Optional[int] = ..., ttl: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., description: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class SaveStateResponse(_message.Message):
    __slots__ = ("entry", "revision")
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    entry: StateEntry
    revision: int
    def __init__(self, entry: _Optional[_Union[StateEntry, _Mapping]] = ..., revision: _Optional[int] = ...) -> None: ...

class LoadStateRequest(_message.Message):
    __slots__ = ("namespace", "key", "revision")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    revision: int
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., revision: _Optional[int] = ...) -> None: ...

class LoadStateResponse(_message.Message):
    __slots__ = ("entry",)
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    entry: StateEntry
    def __init__(self, entry: _Optional[_Union[StateEntry, _Mapping]] = ...) -> None: ...

class ListStateKeysRequest(_message.Message):
    __slots__ = ("namespace", "include_preview", "page_size", "page_token", "prefix")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_PREVIEW_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    include_preview: bool
    page_size: int
    page_token: str
    prefix: str
    def __init__(self, namespace: _Optional[str] = ..., include_preview: bool = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., prefix: _Optional[str] = ...) -> None: ...

class ListStateKeysResponse(_message.Message):
    __slots__ = ("entries", "next_page_token")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[StateEntry]
    next_page_token: str
    def __init__(self, entries: _Optional[_Iterable[_Union[StateEntry, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class SearchStateRequest(_message.Message):
    __slots__ = ("namespace", "pattern", "page_size", "page_token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    pattern: str
    page_size: int
    page_token: str
    def __init__(self, namespace: _Optional[str] = ..., pattern: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class SearchStateResponse(_message.Message):
    __slots__ = ("entries", "next_page_token")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[StateEntry]
    next_page_token: str
    def __init__(self, entries: _Optional[_Iterable[_Union[StateEntry, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class DeleteStateRequest(_message.Message):
    __slots__ = ("namespace", "key", "expected_version", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    expected_version: int
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., expected_version: _Optional[int] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteStateResponse(_message.Message):
    __slots__ = ("revision",)
    REVISION_FIELD_NUMBER: _ClassVar[int]
    revision: int
    def __init__(self, revision: _Optional[int] = ...) -> None: ...

class StateVersion(_message.Message):
    __slots__ = ("revision", "version", "kind", "time", "writer", "credential_id", "entry")
    REVISION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    WRITER_FIELD_NUMBER: _ClassVar[int]
    CREDENTIAL_ID_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    revision: int
    version: int
    kind: VersionKind
    time: _timestamp_pb2.Timestamp
    writer: str
    credential_id: str
    entry: StateEntry
    def __init__(self, revision: _Optional[int] = ..., version: _Optional[int] = ..., kind: _Optional[_Union[VersionKind, str]] = ..., time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., writer: _Optional[str] = ..., credential_id: _Optional[str] = ..., entry: _Optional[_Union[StateEntry, _Mapping]] = ...) -> None: ...

class ListStateVersionsRequest(_message.Message):
    __slots__ = ("namespace", "key", "page_size", "page_token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    page_size: int
    page_token: str
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListStateVersionsResponse(_message.Message):
    __slots__ = ("versions", "next_page_token")
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    versions: _containers.RepeatedCompositeFieldContainer[StateVersion]
    next_page_token: str
    def __init__(self, versions: _Optional[_Iterable[_Union[StateVersion, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class RedactStateVersionRequest(_message.Message):
    __slots__ = ("namespace", "key", "revision")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    revision: int
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., revision: _Optional[int] = ...) -> None: ...

class RedactStateVersionResponse(_message.Message):
    __slots__ = ("revision",)
    REVISION_FIELD_NUMBER: _ClassVar[int]
    revision: int
    def __init__(self, revision: _Optional[int] = ...) -> None: ...

class RenameStateRequest(_message.Message):
    __slots__ = ("namespace", "key", "new_key", "expected_version", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    NEW_KEY_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    new_key: str
    expected_version: int
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., new_key: _Optional[str] = ..., expected_version: _Optional[int] = ..., request_id: _Optional[str] = ...) -> None: ...

class RenameStateResponse(_message.Message):
    __slots__ = ("entry", "revision")
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    entry: StateEntry
    revision: int
    def __init__(self, entry: _Optional[_Union[StateEntry, _Mapping]] = ..., revision: _Optional[int] = ...) -> None: ...

class ClearStateRequest(_message.Message):
    __slots__ = ("namespace", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class ClearStateResponse(_message.Message):
    __slots__ = ("removed_count", "revision")
    REMOVED_COUNT_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    removed_count: int
    revision: int
    def __init__(self, removed_count: _Optional[int] = ..., revision: _Optional[int] = ...) -> None: ...
