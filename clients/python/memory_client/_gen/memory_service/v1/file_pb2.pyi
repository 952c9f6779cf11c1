from google.protobuf import timestamp_pb2 as _timestamp_pb2
from memory_client._gen.memory_service.v1 import memory_pb2 as _memory_pb2
from memory_client._gen.memory_service.v1 import state_pb2 as _state_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ReadFileRequest(_message.Message):
    __slots__ = ("namespace", "path", "start_line", "end_line", "version", "max_characters")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    START_LINE_FIELD_NUMBER: _ClassVar[int]
    END_LINE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    MAX_CHARACTERS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    path: str
    start_line: int
    end_line: int
    version: int
    max_characters: int
    def __init__(self, namespace: _Optional[str] = ..., path: _Optional[str] = ..., start_line: _Optional[int] = ..., end_line: _Optional[int] = ..., version: _Optional[int] = ..., max_characters: _Optional[int] = ...) -> None: ...

class ReadFileResponse(_message.Message):
    __slots__ = ("content", "version", "sha256", "line_count", "size_bytes", "start_line", "end_line", "truncated", "create_time", "update_time", "revision", "provenance")
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    LINE_COUNT_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    START_LINE_FIELD_NUMBER: _ClassVar[int]
    END_LINE_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    PROVENANCE_FIELD_NUMBER: _ClassVar[int]
    content: str
    version: int
    sha256: str
    line_count: int
    size_bytes: int
    start_line: int
    end_line: int
    truncated: bool
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    revision: int
    provenance: _memory_pb2.Provenance
    def __init__(self, content: _Optional[str] = ..., version: _Optional[int] = ..., sha256: _Optional[str] = ..., line_count: _Optional[int] = ..., size_bytes: _Optional[int] = ..., start_line: _Optional[int] = ..., end_line: _Optional[int] = ..., truncated: bool = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., revision: _Optional[int] = ..., provenance: _Optional[_Union[_memory_pb2.Provenance, _Mapping]] = ...) -> None: ...

class WriteFileRequest(_message.Message):
    __slots__ = ("namespace", "path", "content", "expected_version", "expected_sha256", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_SHA256_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    path: str
    content: str
    expected_version: int
    expected_sha256: str
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., path: _Optional[str] = ..., content: _Optional[str] = ..., expected_version: _Optional[int] = ..., expected_sha256: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class WriteFileResponse(_message.Message):
    __slots__ = ("version", "sha256", "line_count", "size_bytes", "created", "revision", "degraded")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    LINE_COUNT_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    version: int
    sha256: str
    line_count: int
    size_bytes: int
    created: bool
    revision: int
    degraded: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Degradation]
    def __init__(self, version: _Optional[int] = ..., sha256: _Optional[str] = ..., line_count: _Optional[int] = ..., size_bytes: _Optional[int] = ..., created: bool = ..., revision: _Optional[int] = ..., degraded: _Optional[_Iterable[_Union[_memory_pb2.Degradation, _Mapping]]] = ...) -> None: ...

class EditFileRequest(_message.Message):
    __slots__ = ("namespace", "path", "replace", "insert", "append", "expected_version", "expected_sha256", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    REPLACE_FIELD_NUMBER: _ClassVar[int]
    INSERT_FIELD_NUMBER: _ClassVar[int]
    APPEND_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_SHA256_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    path: str
    replace: _memory_pb2.ReplaceText
    insert: _memory_pb2.InsertText
    append: _memory_pb2.AppendText
    expected_version: int
    expected_sha256: str
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., path: _Optional[str] = ..., replace: _Optional[_Union[_memory_pb2.ReplaceText, _Mapping]] = ..., insert: _Optional[_Union[_memory_pb2.InsertText, _Mapping]] = ..., append: _Optional[_Union[_memory_pb2.AppendText, _Mapping]] = ..., expected_version: _Optional[int] = ..., expected_sha256: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class EditFileResponse(_message.Message):
    __slots__ = ("version", "sha256", "line_count", "size_bytes", "start_line", "revision", "degraded")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    LINE_COUNT_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    START_LINE_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    version: int
    sha256: str
    line_count: int
    size_bytes: int
    start_line: int
    revision: int
    degraded: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Degradation]
    def __init__(self, version: _Optional[int] = ..., sha256: _Optional[str] = ..., line_count: _Optional[int] = ..., size_bytes: _Optional[int] = ..., start_line: _Optional[int] = ..., revision: _Optional[int] = ..., degraded: _Optional[_Iterable[_Union[_memory_pb2.Degradation, _Mapping]]] = ...) -> None: ...

class RenameFileRequest(_message.Message):
    __slots__ = ("namespace", "path", "new_path", "expected_version", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    NEW_PATH_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    path: str
    new_path: str
    expected_version: int
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., path: _Optional[str] = ..., new_path: _Optional[str] = ..., expected_version: _Optional[int] = ..., request_id: _Optional[str] = ...) -> None: ...

class RenameFileResponse(_message.Message):
    __slots__ = ("renamed_count", "version", "revision")
    RENAMED_COUNT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    renamed_count: int
    version: int
    revision: int
    def __init__(self, renamed_count: _Optional[int] = ..., version: _Optional[int] = ..., revision: _Optional[int] = ...) -> None: ...

class DeleteFileRequest(_message.Message):
    __slots__ = ("namespace", "path", "recursive", "expected_version", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    RECURSIVE_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    path: str
    recursive: bool
    expected_version: int
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., path: _Optional[str] = ..., recursive: bool = ..., expected_version: _Optional[int] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteFileResponse(_message.Message):
    __slots__ = ("deleted_count", "revision")
    DELETED_COUNT_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    deleted_count: int
    revision: int
    def __init__(self, deleted_count: _Optional[int] = ..., revision: _Optional[int] = ...) -> None: ...

class ListFilesRequest(_message.Message):
    __slots__ = ("namespace", "path", "depth", "page_size", "page_token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    path: str
    depth: int
    page_size: int
    page_token: str
    def __init__(self, namespace: _Optional[str] = ..., path: _Optional[str] = ..., depth: _Optional[int] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListFilesResponse(_message.Message):
    __slots__ = ("entries", "next_page_token", "revision")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[FileEntry]
    next_page_token: str
    revision: int
    def __init__(self, entries: _Optional[_Iterable[_Union[FileEntry, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., revision: _Optional[int] = ...) -> None: ...

class FileEntry(_message.Message):
    __slots__ = ("path", "is_folder", "size_bytes", "file_count", "version", "create_time", "update_time")
    PATH_FIELD_NUMBER: _ClassVar[int]
    IS_FOLDER_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    FILE_COUNT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    path: str
    is_folder: bool
    size_bytes: int
    file_count: int
    version: int
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    def __init__(self, path: _Optional[str] = ..., is_folder: bool = ..., size_bytes: _Optional[int] = ..., file_count: _Optional[int] = ..., version: _Optional[int] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class SearchFilesRequest(_message.Message):
    __slots__ = ("namespace", "query", "path", "limit", "max_characters")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    MAX_CHARACTERS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    query: str
    path: str
    limit: int
    max_characters: int
    def __init__(self, namespace: _Optional[str] = ..., query: _Optional[str] = ..., path: _Optional[str] = ..., limit: _Optional[int] = ..., max_characters: _Optional[int] = ...) -> None: ...

class SearchFilesResponse(_message.Message):
    __slots__ = ("results", "degraded", "revision")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[FileSearchResult]
    degraded: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Degradation]
    revision: int
    def __init__(self, results: _Optional[_Iterable[_Union[FileSearchResult, _Mapping]]] = ..., degraded: _Optional[_Iterable[_Union[_memory_pb2.Degradation, _Mapping]]] = ..., revision: _Optional[int] = ...) -> None: ...

class FileSearchResult(_message.Message):
    __slots__ = ("path", "start_line", "end_line", "text", "score", "version")
    PATH_FIELD_NUMBER: _ClassVar[int]
    START_LINE_FIELD_NUMBER: _ClassVar[int]
    END_LINE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    path: str
    start_line: int
    end_line: int
    text: str
    score: float
    version: int
    def __init__(self, path: _Optional[str] = ..., start_line: _Optional[int] = ..., end_line: _Optional[int] = ..., text: _Optional[str] = ..., score: _Optional[float] = ..., version: _Optional[int] = ...) -> None: ...

class ListFileVersionsRequest(_message.Message):
    __slots__ = ("namespace", "path", "page_size", "page_token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    path: str
    page_size: int
    page_token: str
    def __init__(self, namespace: _Optional[str] = ..., path: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListFileVersionsResponse(_message.Message):
    __slots__ = ("versions", "next_page_token")
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    versions: _containers.RepeatedCompositeFieldContainer[FileVersion]
    next_page_token: str
    def __init__(self, versions: _Optional[_Iterable[_Union[FileVersion, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class FileVersion(_message.Message):
    __slots__ = ("version", "kind", "time", "writer", "credential_id", "path", "size_bytes")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    WRITER_FIELD_NUMBER: _ClassVar[int]
    CREDENTIAL_ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    version: int
    kind: _state_pb2.VersionKind
    time: _timestamp_pb2.Timestamp
    writer: str
    credential_id: str
    path: str
    size_bytes: int
    def __init__(self, version: _Optional[int] = ..., kind: _Optional[_Union[_state_pb2.VersionKind, str]] = ..., time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., writer: _Optional[str] = ..., credential_id: _Optional[str] = ..., path: _Optional[str] = ..., size_bytes: _Optional[int] = ...) -> None: ...

class RedactFileVersionRequest(_message.Message):
    __slots__ = ("namespace", "path", "version")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    path: str
    version: int
    def __init__(self, namespace: _Optional[str] = ..., path: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class RedactFileVersionResponse(_message.Message):
    __slots__ = ("revision",)
    REVISION_FIELD_NUMBER: _ClassVar[int]
    revision: int
    def __init__(self, revision: _Optional[int] = ...) -> None: ...
