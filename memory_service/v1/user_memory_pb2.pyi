from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from memory_service.v1 import memory_pb2 as _memory_pb2
from memory_service.v1 import overseer_pb2 as _overseer_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MemoryCategory(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MEMORY_CATEGORY_UNSPECIFIED: _ClassVar[MemoryCategory]
    MEMORY_CATEGORY_IDENTITY: _ClassVar[MemoryCategory]
    MEMORY_CATEGORY_PREFERENCE: _ClassVar[MemoryCategory]
    MEMORY_CATEGORY_RELATIONSHIP: _ClassVar[MemoryCategory]
    MEMORY_CATEGORY_PROJECT: _ClassVar[MemoryCategory]
    MEMORY_CATEGORY_CONTEXT: _ClassVar[MemoryCategory]

class MemoryStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MEMORY_STATUS_UNSPECIFIED: _ClassVar[MemoryStatus]
    MEMORY_STATUS_ACTIVE: _ClassVar[MemoryStatus]
    MEMORY_STATUS_SUPERSEDED: _ClassVar[MemoryStatus]
    MEMORY_STATUS_MERGED: _ClassVar[MemoryStatus]

class MemoryOrigin(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MEMORY_ORIGIN_UNSPECIFIED: _ClassVar[MemoryOrigin]
    MEMORY_ORIGIN_SAVED: _ClassVar[MemoryOrigin]
    MEMORY_ORIGIN_EXTRACTED: _ClassVar[MemoryOrigin]
    MEMORY_ORIGIN_CONSOLIDATED: _ClassVar[MemoryOrigin]

class OnContradiction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ON_CONTRADICTION_UNSPECIFIED: _ClassVar[OnContradiction]
    ON_CONTRADICTION_SUPERSEDE: _ClassVar[OnContradiction]
    ON_CONTRADICTION_KEEP_BOTH: _ClassVar[OnContradiction]
    ON_CONTRADICTION_REFUSE: _ClassVar[OnContradiction]

class MemoryOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MEMORY_OUTCOME_UNSPECIFIED: _ClassVar[MemoryOutcome]
    MEMORY_OUTCOME_SAVED: _ClassVar[MemoryOutcome]
    MEMORY_OUTCOME_DUPLICATE: _ClassVar[MemoryOutcome]
    MEMORY_OUTCOME_SUPERSEDED: _ClassVar[MemoryOutcome]
    MEMORY_OUTCOME_CONTRADICTION: _ClassVar[MemoryOutcome]
    MEMORY_OUTCOME_RECALLED: _ClassVar[MemoryOutcome]
    MEMORY_OUTCOME_REJECTED: _ClassVar[MemoryOutcome]

class ConsolidationAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONSOLIDATION_ACTION_UNSPECIFIED: _ClassVar[ConsolidationAction]
    CONSOLIDATION_ACTION_MERGE: _ClassVar[ConsolidationAction]
    CONSOLIDATION_ACTION_SUPERSEDE: _ClassVar[ConsolidationAction]
    CONSOLIDATION_ACTION_KEEP: _ClassVar[ConsolidationAction]
MEMORY_CATEGORY_UNSPECIFIED: MemoryCategory
MEMORY_CATEGORY_IDENTITY: MemoryCategory
MEMORY_CATEGORY_PREFERENCE: MemoryCategory
MEMORY_CATEGORY_RELATIONSHIP: MemoryCategory
MEMORY_CATEGORY_PROJECT: MemoryCategory
MEMORY_CATEGORY_CONTEXT: MemoryCategory
MEMORY_STATUS_UNSPECIFIED: MemoryStatus
MEMORY_STATUS_ACTIVE: MemoryStatus
MEMORY_STATUS_SUPERSEDED: MemoryStatus
MEMORY_STATUS_MERGED: MemoryStatus
MEMORY_ORIGIN_UNSPECIFIED: MemoryOrigin
MEMORY_ORIGIN_SAVED: MemoryOrigin
MEMORY_ORIGIN_EXTRACTED: MemoryOrigin
MEMORY_ORIGIN_CONSOLIDATED: MemoryOrigin
ON_CONTRADICTION_UNSPECIFIED: OnContradiction
ON_CONTRADICTION_SUPERSEDE: OnContradiction
ON_CONTRADICTION_KEEP_BOTH: OnContradiction
ON_CONTRADICTION_REFUSE: OnContradiction
MEMORY_OUTCOME_UNSPECIFIED: MemoryOutcome
MEMORY_OUTCOME_SAVED: MemoryOutcome
MEMORY_OUTCOME_DUPLICATE: MemoryOutcome
MEMORY_OUTCOME_SUPERSEDED: MemoryOutcome
MEMORY_OUTCOME_CONTRADICTION: MemoryOutcome
MEMORY_OUTCOME_RECALLED: MemoryOutcome
MEMORY_OUTCOME_REJECTED: MemoryOutcome
CONSOLIDATION_ACTION_UNSPECIFIED: ConsolidationAction
CONSOLIDATION_ACTION_MERGE: ConsolidationAction
CONSOLIDATION_ACTION_SUPERSEDE: ConsolidationAction
CONSOLIDATION_ACTION_KEEP: ConsolidationAction

class MemorySource(_message.Message):
    __slots__ = ("origin", "session_id", "item_ids", "quote", "actor", "memory_ids", "model")
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    ITEM_IDS_FIELD_NUMBER: _ClassVar[int]
    QUOTE_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    MEMORY_IDS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    origin: MemoryOrigin
    session_id: str
    item_ids: _containers.RepeatedScalarFieldContainer[str]
    quote: str
    actor: str
    memory_ids: _containers.RepeatedScalarFieldContainer[str]
    model: str
    def __init__(self, origin: _Optional[_Union[MemoryOrigin, str]] = ..., session_id: _Optional[str] = ..., item_ids: _Optional[_Iterable[str]] = ..., quote: _Optional[str] = ..., actor: _Optional[str] = ..., memory_ids: _Optional[_Iterable[str]] = ..., model: _Optional[str] = ...) -> None: ...

class Importance(_message.Message):
    __slots__ = ("base", "boosts", "reductions", "score", "decay_factor", "current_score", "decided_by")
    BASE_FIELD_NUMBER: _ClassVar[int]
    BOOSTS_FIELD_NUMBER: _ClassVar[int]
    REDUCTIONS_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    DECAY_FACTOR_FIELD_NUMBER: _ClassVar[int]
    CURRENT_SCORE_FIELD_NUMBER: _ClassVar[int]
    DECIDED_BY_FIELD_NUMBER: _ClassVar[int]
    base: float
    boosts: _containers.RepeatedCompositeFieldContainer[ImportanceAdjustment]
    reductions: _containers.RepeatedCompositeFieldContainer[ImportanceAdjustment]
    score: float
    decay_factor: float
    current_score: float
    decided_by: _overseer_pb2.DecidedBy
    def __init__(self, base: _Optional[float] = ..., boosts: _Optional[_Iterable[_Union[ImportanceAdjustment, _Mapping]]] = ..., reductions: _Optional[_Iterable[_Union[ImportanceAdjustment, _Mapping]]] = ..., score: _Optional[float] = ..., decay_factor: _Optional[float] = ..., current_score: _Optional[float] = ..., decided_by: _Optional[_Union[_overseer_pb2.DecidedBy, str]] = ...) -> None: ...

class ImportanceAdjustment(_message.Message):
    __slots__ = ("name", "amount", "reason")
    NAME_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    name: str
    amount: float
    reason: str
    def __init__(self, name: _Optional[str] = ..., amount: _Optional[float] = ..., reason: _Optional[str] = ...) -> None: ...

class UserMemory(_message.Message):
    __slots__ = ("id", "content", "category", "reasoning", "importance", "version", "status", "valid_from_time", "valid_until_time", "superseded_by", "supersedes", "original_content", "source", "create_time", "update_time", "expire_time", "labels", "metadata", "revision", "ttl", "provenance")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    VALID_FROM_TIME_FIELD_NUMBER: _ClassVar[int]
    VALID_UNTIL_TIME_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDED_BY_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDES_FIELD_NUMBER: _ClassVar[int]
    ORIGINAL_CONTENT_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    PROVENANCE_FIELD_NUMBER: _ClassVar[int]
    id: str
    content: str
    category: MemoryCategory
    reasoning: str
    importance: Importance
    version: int
    status: MemoryStatus
    valid_from_time: _timestamp_pb2.Timestamp
    valid_until_time: _timestamp_pb2.Timestamp
    superseded_by: str
    supersedes: _containers.RepeatedScalarFieldContainer[str]
    original_content: str
    source: MemorySource
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    expire_time: _timestamp_pb2.Timestamp
    labels: _containers.ScalarMap[str, str]
    metadata: _struct_pb2.Struct
    revision: int
    ttl: _duration_pb2.Duration
    provenance: _memory_pb2.Provenance
    def __init__(self, id: _Optional[str] = ..., content: _Optional[str] = ..., category: _Optional[_Union[MemoryCategory, str]] = ..., reasoning: _Optional[str] = ..., importance: _Optional[_Union[Importance, _Mapping]] = ..., version: _Optional[int] = ..., status: _Optional[_Union[MemoryStatus, str]] = ..., valid_from_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., valid_until_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., superseded_by: _Optional[str] = ..., supersedes: _Optional[_Iterable[str]] = ..., original_content: _Optional[str] = ..., source: _Optional[_Union[MemorySource, _Mapping]] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., expire_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., labels: _Optional[_Mapping[str, str]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., revision: _Optional[int] = ..., ttl: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., provenance: _Optional[_Union[_memory_pb2.Provenance, _Mapping]] = ...) -> None: ...

class SaveMemoryRequest(_message.Message):
    __slots__ = ("namespace", "content", "category", "reasoning", "request_id", "source", "explicit_request", "on_contradiction", "valid_from_time", "ttl", "labels", "metadata", "keep_wording", "decide_by")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    EXPLICIT_REQUEST_FIELD_NUMBER: _ClassVar[int]
    ON_CONTRADICTION_FIELD_NUMBER: _ClassVar[int]
    VALID_FROM_TIME_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    KEEP_WORDING_FIELD_NUMBER: _ClassVar[int]
    DECIDE_BY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    content: str
    category: MemoryCategory
    reasoning: str
    request_id: str
    source: MemorySource
    explicit_request: bool
    on_contradiction: OnContradiction
    valid_from_time: _timestamp_pb2.Timestamp
    ttl: _duration_pb2.Duration
    labels: _containers.ScalarMap[str, str]
    metadata: _struct_pb2.Struct
    keep_wording: bool
    decide_by: _overseer_pb2.DecidedBy
    def __init__(self, namespace: _Optional[str] = ..., content: _Optional[str] = ..., category: _Optional[_Union[MemoryCategory, str]] = ..., reasoning: _Optional[str] = ..., request_id: _Optional[str] = ..., source: _Optional[_Union[MemorySource, _Mapping]] = ..., explicit_request: bool = ..., on_contradiction: _Optional[_Union[OnContradiction, str]] = ..., valid_from_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., ttl: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., labels: _Optional[_Mapping[str, str]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., keep_wording: bool = ..., decide_by: _Optional[_Union[_overseer_pb2.DecidedBy, str]] = ...) -> None: ...

class SaveMemoryResponse(_message.Message):
    __slots__ = ("outcome", "memory", "existing", "superseded", "message", "similarity", "duplicate_threshold", "decided_by", "reason", "rephrased_by", "failures", "llm_usage", "degraded", "revision")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    EXISTING_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDED_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    DECIDED_BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REPHRASED_BY_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    LLM_USAGE_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    outcome: MemoryOutcome
    memory: UserMemory
    existing: UserMemory
    superseded: _containers.RepeatedCompositeFieldContainer[UserMemory]
    message: str
    similarity: float
    duplicate_threshold: float
    decided_by: _overseer_pb2.DecidedBy
    reason: str
    rephrased_by: _overseer_pb2.DecidedBy
    failures: _containers.RepeatedCompositeFieldContainer[_overseer_pb2.DecisionFailure]
    llm_usage: _overseer_pb2.LlmUsage
    degraded: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Degradation]
    revision: int
    def __init__(self, outcome: _Optional[_Union[MemoryOutcome, str]] = ..., memory: _Optional[_Union[UserMemory, _Mapping]] = ..., existing: _Optional[_Union[UserMemory, _Mapping]] = ..., superseded: _Optional[_Iterable[_Union[UserMemory, _Mapping]]] = ..., message: _Optional[str] = ..., similarity: _Optional[float] = ..., duplicate_threshold: _Optional[float] = ..., decided_by: _Optional[_Union[_overseer_pb2.DecidedBy, str]] = ..., reason: _Optional[str] = ..., rephrased_by: _Optional[_Union[_overseer_pb2.DecidedBy, str]] = ..., failures: _Optional[_Iterable[_Union[_overseer_pb2.DecisionFailure, _Mapping]]] = ..., llm_usage: _Optional[_Union[_overseer_pb2.LlmUsage, _Mapping]] = ..., degraded: _Optional[_Iterable[_Union[_memory_pb2.Degradation, _Mapping]]] = ..., revision: _Optional[int] = ...) -> None: ...

class SearchMemoriesRequest(_message.Message):
    __slots__ = ("namespace", "query", "categories", "limit", "as_of_time", "include_history", "min_importance", "labels", "session_id", "min_score", "mode", "max_tokens", "explain", "page_size", "page_token", "min_trust", "sources")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    CATEGORIES_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    AS_OF_TIME_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_HISTORY_FIELD_NUMBER: _ClassVar[int]
    MIN_IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
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
    categories: _containers.RepeatedScalarFieldContainer[MemoryCategory]
    limit: int
    as_of_time: _timestamp_pb2.Timestamp
    include_history: bool
    min_importance: float
    labels: _containers.ScalarMap[str, str]
    session_id: str
    min_score: float
    mode: _memory_pb2.RetrieveMode
    max_tokens: int
    explain: bool
    page_size: int
    page_token: str
    min_trust: float
    sources: _containers.RepeatedScalarFieldContainer[_memory_pb2.SourceKind]
    def __init__(self, namespace: _Optional[str] = ..., query: _Optional[str] = ..., categories: _Optional[_Iterable[_Union[MemoryCategory, str]]] = ..., limit: _Optional[int] = ..., as_of_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., include_history: bool = ..., min_importance: _Optional[float] = ..., labels: _Optional[_Mapping[str, str]] = ..., session_id: _Optional[str] = ..., min_score: _Optional[float] = ..., mode: _Optional[_Union[_memory_pb2.RetrieveMode, str]] = ..., max_tokens: _Optional[int] = ..., explain: bool = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., min_trust: _Optional[float] = ..., sources: _Optional[_Iterable[_Union[_memory_pb2.SourceKind, str]]] = ...) -> None: ...

class SearchMemoriesResponse(_message.Message):
    __slots__ = ("results", "next_page_token", "degraded", "revision")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[MemoryResult]
    next_page_token: str
    degraded: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Degradation]
    revision: int
    def __init__(self, results: _Optional[_Iterable[_Union[MemoryResult, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., degraded: _Optional[_Iterable[_Union[_memory_pb2.Degradation, _Mapping]]] = ..., revision: _Optional[int] = ...) -> None: ...

class MemoryResult(_message.Message):
    __slots__ = ("memory", "score", "explanation")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    memory: UserMemory
    score: float
    explanation: _memory_pb2.Explanation
    def __init__(self, memory: _Optional[_Union[UserMemory, _Mapping]] = ..., score: _Optional[float] = ..., explanation: _Optional[_Union[_memory_pb2.Explanation, _Mapping]] = ...) -> None: ...

class ListMemoriesRequest(_message.Message):
    __slots__ = ("namespace", "page_size", "page_token", "categories", "ids", "as_of_time", "include_history", "min_importance", "labels", "session_id", "start_time", "end_time", "newest_first", "min_trust", "sources")
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
    CATEGORIES_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    AS_OF_TIME_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_HISTORY_FIELD_NUMBER: _ClassVar[int]
    MIN_IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    NEWEST_FIRST_FIELD_NUMBER: _ClassVar[int]
    MIN_TRUST_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    page_size: int
    page_token: str
    categories: _containers.RepeatedScalarFieldContainer[MemoryCategory]
    ids: _containers.RepeatedScalarFieldContainer[str]
    as_of_time: _timestamp_pb2.Timestamp
    include_history: bool
    min_importance: float
    labels: _containers.ScalarMap[str, str]
    session_id: str
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    newest_first: bool
    min_trust: float
    sources: _containers.RepeatedScalarFieldContainer[_memory_pb2.SourceKind]
    def __init__(self, namespace: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., categories: _Optional[_Iterable[_Union[MemoryCategory, str]]] = ..., ids: _Optional[_Iterable[str]] = ..., as_of_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., include_history: bool = ..., min_importance: _Optional[float] = ..., labels: _Optional[_Mapping[str, str]] = ..., session_id: _Optional[str] = ..., start_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., newest_first: bool = ..., min_trust: _Optional[float] = ..., sources: _Optional[_Iterable[_Union[_memory_pb2.SourceKind, str]]] = ...) -> None: ...

class ListMemoriesResponse(_message.Message):
    __slots__ = ("memories", "next_page_token", "revision")
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    memories: _containers.RepeatedCompositeFieldContainer[UserMemory]
    next_page_token: str
    revision: int
    def __init__(self, memories: _Optional[_Iterable[_Union[UserMemory, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., revision: _Optional[int] = ...) -> None: ...

class UpdateMemoryRequest(_message.Message):
    __slots__ = ("namespace", "memory", "update_mask", "expected_version", "request_id", "keep_wording", "decide_by")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    KEEP_WORDING_FIELD_NUMBER: _ClassVar[int]
    DECIDE_BY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    memory: UserMemory
    update_mask: _field_mask_pb2.FieldMask
    expected_version: int
    request_id: str
    keep_wording: bool
    decide_by: _overseer_pb2.DecidedBy
    def __init__(self, namespace: _Optional[str] = ..., memory: _Optional[_Union[UserMemory, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ..., expected_version: _Optional[int] = ..., request_id: _Optional[str] = ..., keep_wording: bool = ..., decide_by: _Optional[_Union[_overseer_pb2.DecidedBy, str]] = ...) -> None: ...

class UpdateMemoryResponse(_message.Message):
    __slots__ = ("outcome", "memory", "existing", "decided_by", "rephrased_by", "failures", "llm_usage", "degraded", "revision")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    EXISTING_FIELD_NUMBER: _ClassVar[int]
    DECIDED_BY_FIELD_NUMBER: _ClassVar[int]
    REPHRASED_BY_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    LLM_USAGE_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    outcome: MemoryOutcome
    memory: UserMemory
    existing: UserMemory
    decided_by: _overseer_pb2.DecidedBy
    rephrased_by: _overseer_pb2.DecidedBy
    failures: _containers.RepeatedCompositeFieldContainer[_overseer_pb2.DecisionFailure]
    llm_usage: _overseer_pb2.LlmUsage
    degraded: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Degradation]
    revision: int
    def __init__(self, outcome: _Optional[_Union[MemoryOutcome, str]] = ..., memory: _Optional[_Union[UserMemory, _Mapping]] = ..., existing: _Optional[_Union[UserMemory, _Mapping]] = ..., decided_by: _Optional[_Union[_overseer_pb2.DecidedBy, str]] = ..., rephrased_by: _Optional[_Union[_overseer_pb2.DecidedBy, str]] = ..., failures: _Optional[_Iterable[_Union[_overseer_pb2.DecisionFailure, _Mapping]]] = ..., llm_usage: _Optional[_Union[_overseer_pb2.LlmUsage, _Mapping]] = ..., degraded: _Optional[_Iterable[_Union[_memory_pb2.Degradation, _Mapping]]] = ..., revision: _Optional[int] = ...) -> None: ...

class DeleteMemoryRequest(_message.Message):
    __slots__ = ("namespace", "id", "expected_version", "include_history", "request_id", "keep_derived")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_HISTORY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    KEEP_DERIVED_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    id: str
    expected_version: int
    include_history: bool
    request_id: str
    keep_derived: bool
    def __init__(self, namespace: _Optional[str] = ..., id: _Optional[str] = ..., expected_version: _Optional[int] = ..., include_history: bool = ..., request_id: _Optional[str] = ..., keep_derived: bool = ...) -> None: ...

class DeleteMemoryResponse(_message.Message):
    __slots__ = ("removed_count", "revision", "derived_count")
    REMOVED_COUNT_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    DERIVED_COUNT_FIELD_NUMBER: _ClassVar[int]
    removed_count: int
    revision: int
    derived_count: int
    def __init__(self, removed_count: _Optional[int] = ..., revision: _Optional[int] = ..., derived_count: _Optional[int] = ...) -> None: ...

class GetPreloadedMemoriesRequest(_message.Message):
    __slots__ = ("namespace", "max_tokens", "categories", "limit", "min_importance", "as_of_time", "labels", "min_trust", "sources", "if_not_revision")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CATEGORIES_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    MIN_IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    AS_OF_TIME_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    MIN_TRUST_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    IF_NOT_REVISION_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    max_tokens: int
    categories: _containers.RepeatedScalarFieldContainer[MemoryCategory]
    limit: int
    min_importance: float
    as_of_time: _timestamp_pb2.Timestamp
    labels: _containers.ScalarMap[str, str]
    min_trust: float
    sources: _containers.RepeatedScalarFieldContainer[_memory_pb2.SourceKind]
    if_not_revision: int
    def __init__(self, namespace: _Optional[str] = ..., max_tokens: _Optional[int] = ..., categories: _Optional[_Iterable[_Union[MemoryCategory, str]]] = ..., limit: _Optional[int] = ..., min_importance: _Optional[float] = ..., as_of_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., labels: _Optional[_Mapping[str, str]] = ..., min_trust: _Optional[float] = ..., sources: _Optional[_Iterable[_Union[_memory_pb2.SourceKind, str]]] = ..., if_not_revision: _Optional[int] = ...) -> None: ...

class GetPreloadedMemoriesResponse(_message.Message):
    __slots__ = ("memories", "text", "token_count", "omitted_count", "revision", "unchanged")
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_COUNT_FIELD_NUMBER: _ClassVar[int]
    OMITTED_COUNT_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    UNCHANGED_FIELD_NUMBER: _ClassVar[int]
    memories: _containers.RepeatedCompositeFieldContainer[UserMemory]
    text: str
    token_count: int
    omitted_count: int
    revision: int
    unchanged: bool
    def __init__(self, memories: _Optional[_Iterable[_Union[UserMemory, _Mapping]]] = ..., text: _Optional[str] = ..., token_count: _Optional[int] = ..., omitted_count: _Optional[int] = ..., revision: _Optional[int] = ..., unchanged: bool = ...) -> None: ...

class ExtractMemoriesRequest(_message.Message):
    __slots__ = ("namespace", "messages", "session_id", "after_revision", "limit", "recalled_memory_ids", "categories", "dry_run", "on_contradiction", "decide_by", "actor", "labels", "request_id")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_REVISION_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    RECALLED_MEMORY_IDS_FIELD_NUMBER: _ClassVar[int]
    CATEGORIES_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    ON_CONTRADICTION_FIELD_NUMBER: _ClassVar[int]
    DECIDE_BY_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    messages: _containers.RepeatedCompositeFieldContainer[_memory_pb2.ChatMessage]
    session_id: str
    after_revision: int
    limit: int
    recalled_memory_ids: _containers.RepeatedScalarFieldContainer[str]
    categories: _containers.RepeatedScalarFieldContainer[MemoryCategory]
    dry_run: bool
    on_contradiction: OnContradiction
    decide_by: _overseer_pb2.DecidedBy
    actor: str
    labels: _containers.ScalarMap[str, str]
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[_memory_pb2.ChatMessage, _Mapping]]] = ..., session_id: _Optional[str] = ..., after_revision: _Optional[int] = ..., limit: _Optional[int] = ..., recalled_memory_ids: _Optional[_Iterable[str]] = ..., categories: _Optional[_Iterable[_Union[MemoryCategory, str]]] = ..., dry_run: bool = ..., on_contradiction: _Optional[_Union[OnContradiction, str]] = ..., decide_by: _Optional[_Union[_overseer_pb2.DecidedBy, str]] = ..., actor: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., request_id: _Optional[str] = ...) -> None: ...

class ExtractMemoriesResponse(_message.Message):
    __slots__ = ("results", "decided_by", "reason", "examined_count", "examined_revision", "more", "failures", "llm_usage", "degraded", "revision")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    DECIDED_BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    EXAMINED_COUNT_FIELD_NUMBER: _ClassVar[int]
    EXAMINED_REVISION_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    LLM_USAGE_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[ExtractedMemory]
    decided_by: _overseer_pb2.DecidedBy
    reason: str
    examined_count: int
    examined_revision: int
    more: bool
    failures: _containers.RepeatedCompositeFieldContainer[_overseer_pb2.DecisionFailure]
    llm_usage: _overseer_pb2.LlmUsage
    degraded: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Degradation]
    revision: int
    def __init__(self, results: _Optional[_Iterable[_Union[ExtractedMemory, _Mapping]]] = ..., decided_by: _Optional[_Union[_overseer_pb2.DecidedBy, str]] = ..., reason: _Optional[str] = ..., examined_count: _Optional[int] = ..., examined_revision: _Optional[int] = ..., more: bool = ..., failures: _Optional[_Iterable[_Union[_overseer_pb2.DecisionFailure, _Mapping]]] = ..., llm_usage: _Optional[_Union[_overseer_pb2.LlmUsage, _Mapping]] = ..., degraded: _Optional[_Iterable[_Union[_memory_pb2.Degradation, _Mapping]]] = ..., revision: _Optional[int] = ...) -> None: ...

class ExtractedMemory(_message.Message):
    __slots__ = ("outcome", "memory", "existing", "superseded", "similarity", "decided_by", "reason", "confidence")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    EXISTING_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDED_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    DECIDED_BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    outcome: MemoryOutcome
    memory: UserMemory
    existing: UserMemory
    superseded: _containers.RepeatedCompositeFieldContainer[UserMemory]
    similarity: float
    decided_by: _overseer_pb2.DecidedBy
    reason: str
    confidence: float
    def __init__(self, outcome: _Optional[_Union[MemoryOutcome, str]] = ..., memory: _Optional[_Union[UserMemory, _Mapping]] = ..., existing: _Optional[_Union[UserMemory, _Mapping]] = ..., superseded: _Optional[_Iterable[_Union[UserMemory, _Mapping]]] = ..., similarity: _Optional[float] = ..., decided_by: _Optional[_Union[_overseer_pb2.DecidedBy, str]] = ..., reason: _Optional[str] = ..., confidence: _Optional[float] = ...) -> None: ...

class ConsolidateMemoriesRequest(_message.Message):
    __slots__ = ("namespace", "dry_run", "categories", "memory_ids", "similarity_threshold", "limit", "decide_by", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    CATEGORIES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_IDS_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    DECIDE_BY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    dry_run: bool
    categories: _containers.RepeatedScalarFieldContainer[MemoryCategory]
    memory_ids: _containers.RepeatedScalarFieldContainer[str]
    similarity_threshold: float
    limit: int
    decide_by: _overseer_pb2.DecidedBy
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., dry_run: bool = ..., categories: _Optional[_Iterable[_Union[MemoryCategory, str]]] = ..., memory_ids: _Optional[_Iterable[str]] = ..., similarity_threshold: _Optional[float] = ..., limit: _Optional[int] = ..., decide_by: _Optional[_Union[_overseer_pb2.DecidedBy, str]] = ..., request_id: _Optional[str] = ...) -> None: ...

class ConsolidateMemoriesResponse(_message.Message):
    __slots__ = ("consolidations", "decided_by", "reason", "examined_count", "more", "failures", "llm_usage", "degraded", "revision")
    CONSOLIDATIONS_FIELD_NUMBER: _ClassVar[int]
    DECIDED_BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    EXAMINED_COUNT_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    LLM_USAGE_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    consolidations: _containers.RepeatedCompositeFieldContainer[Consolidation]
    decided_by: _overseer_pb2.DecidedBy
    reason: str
    examined_count: int
    more: bool
    failures: _containers.RepeatedCompositeFieldContainer[_overseer_pb2.DecisionFailure]
    llm_usage: _overseer_pb2.LlmUsage
    degraded: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Degradation]
    revision: int
    def __init__(self, consolidations: _Optional[_Iterable[_Union[Consolidation, _Mapping]]] = ..., decided_by: _Optional[_Union[_overseer_pb2.DecidedBy, str]] = ..., reason: _Optional[str] = ..., examined_count: _Optional[int] = ..., more: bool = ..., failures: _Optional[_Iterable[_Union[_overseer_pb2.DecisionFailure, _Mapping]]] = ..., llm_usage: _Optional[_Union[_overseer_pb2.LlmUsage, _Mapping]] = ..., degraded: _Optional[_Iterable[_Union[_memory_pb2.Degradation, _Mapping]]] = ..., revision: _Optional[int] = ...) -> None: ...

class Consolidation(_message.Message):
    __slots__ = ("action", "sources", "memory", "applied", "similarity", "decided_by", "reason")
    ACTION_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    DECIDED_BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    action: ConsolidationAction
    sources: _containers.RepeatedCompositeFieldContainer[UserMemory]
    memory: UserMemory
    applied: bool
    similarity: float
    decided_by: _overseer_pb2.DecidedBy
    reason: str
    def __init__(self, action: _Optional[_Union[ConsolidationAction, str]] = ..., sources: _Optional[_Iterable[_Union[UserMemory, _Mapping]]] = ..., memory: _Optional[_Union[UserMemory, _Mapping]] = ..., applied: bool = ..., similarity: _Optional[float] = ..., decided_by: _Optional[_Union[_overseer_pb2.DecidedBy, str]] = ..., reason: _Optional[str] = ...) -> None: ...
