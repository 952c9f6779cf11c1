from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from memory_service.v1 import memory_pb2 as _memory_pb2
from memory_service.v1 import state_pb2 as _state_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DecidedBy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DECIDED_BY_UNSPECIFIED: _ClassVar[DecidedBy]
    DECIDED_BY_LLM: _ClassVar[DecidedBy]
    DECIDED_BY_RULES: _ClassVar[DecidedBy]

class DecisionFailureReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DECISION_FAILURE_REASON_UNSPECIFIED: _ClassVar[DecisionFailureReason]
    DECISION_FAILURE_REASON_LLM_UNAVAILABLE: _ClassVar[DecisionFailureReason]
    DECISION_FAILURE_REASON_LLM_TIMEOUT: _ClassVar[DecisionFailureReason]
    DECISION_FAILURE_REASON_LLM_INVALID_ANSWER: _ClassVar[DecisionFailureReason]
    DECISION_FAILURE_REASON_LLM_PAUSED: _ClassVar[DecisionFailureReason]
    DECISION_FAILURE_REASON_LLM_BUDGET_EXCEEDED: _ClassVar[DecisionFailureReason]
    DECISION_FAILURE_REASON_UNKNOWN_KEY: _ClassVar[DecisionFailureReason]
    DECISION_FAILURE_REASON_INVALID_VALUE: _ClassVar[DecisionFailureReason]
    DECISION_FAILURE_REASON_KEY_EXISTS: _ClassVar[DecisionFailureReason]
    DECISION_FAILURE_REASON_CHANGED_MEANWHILE: _ClassVar[DecisionFailureReason]

class KeyVerdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    KEY_VERDICT_UNSPECIFIED: _ClassVar[KeyVerdict]
    KEY_VERDICT_RELEVANT: _ClassVar[KeyVerdict]
    KEY_VERDICT_NOT_RELEVANT: _ClassVar[KeyVerdict]
    KEY_VERDICT_OMITTED: _ClassVar[KeyVerdict]
DECIDED_BY_UNSPECIFIED: DecidedBy
DECIDED_BY_LLM: DecidedBy
DECIDED_BY_RULES: DecidedBy
DECISION_FAILURE_REASON_UNSPECIFIED: DecisionFailureReason
DECISION_FAILURE_REASON_LLM_UNAVAILABLE: DecisionFailureReason
DECISION_FAILURE_REASON_LLM_TIMEOUT: DecisionFailureReason
DECISION_FAILURE_REASON_LLM_INVALID_ANSWER: DecisionFailureReason
DECISION_FAILURE_REASON_LLM_PAUSED: DecisionFailureReason
DECISION_FAILURE_REASON_LLM_BUDGET_EXCEEDED: DecisionFailureReason
DECISION_FAILURE_REASON_UNKNOWN_KEY: DecisionFailureReason
DECISION_FAILURE_REASON_INVALID_VALUE: DecisionFailureReason
DECISION_FAILURE_REASON_KEY_EXISTS: DecisionFailureReason
DECISION_FAILURE_REASON_CHANGED_MEANWHILE: DecisionFailureReason
KEY_VERDICT_UNSPECIFIED: KeyVerdict
KEY_VERDICT_RELEVANT: KeyVerdict
KEY_VERDICT_NOT_RELEVANT: KeyVerdict
KEY_VERDICT_OMITTED: KeyVerdict

class DecisionFailure(_message.Message):
    __slots__ = ("reason", "message", "key")
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    reason: DecisionFailureReason
    message: str
    key: str
    def __init__(self, reason: _Optional[_Union[DecisionFailureReason, str]] = ..., message: _Optional[str] = ..., key: _Optional[str] = ...) -> None: ...

class LlmUsage(_message.Message):
    __slots__ = ("model", "call_count", "cached_count", "input_tokens", "output_tokens")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    CALL_COUNT_FIELD_NUMBER: _ClassVar[int]
    CACHED_COUNT_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    model: str
    call_count: int
    cached_count: int
    input_tokens: int
    output_tokens: int
    def __init__(self, model: _Optional[str] = ..., call_count: _Optional[int] = ..., cached_count: _Optional[int] = ..., input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ...) -> None: ...

class KeyDecision(_message.Message):
    __slots__ = ("key", "verdict", "decided_by", "reason", "score", "explanation")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    DECIDED_BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    key: str
    verdict: KeyVerdict
    decided_by: DecidedBy
    reason: str
    score: float
    explanation: _memory_pb2.Explanation
    def __init__(self, key: _Optional[str] = ..., verdict: _Optional[_Union[KeyVerdict, str]] = ..., decided_by: _Optional[_Union[DecidedBy, str]] = ..., reason: _Optional[str] = ..., score: _Optional[float] = ..., explanation: _Optional[_Union[_memory_pb2.Explanation, _Mapping]] = ...) -> None: ...

class CheckRelevanceRequest(_message.Message):
    __slots__ = ("namespace", "goal", "limit", "max_tokens", "pattern", "max_candidates", "omit_values", "decide_by", "explain")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    GOAL_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    MAX_CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    OMIT_VALUES_FIELD_NUMBER: _ClassVar[int]
    DECIDE_BY_FIELD_NUMBER: _ClassVar[int]
    EXPLAIN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    goal: str
    limit: int
    max_tokens: int
    pattern: str
    max_candidates: int
    omit_values: bool
    decide_by: DecidedBy
    explain: bool
    def __init__(self, namespace: _Optional[str] = ..., goal: _Optional[str] = ..., limit: _Optional[int] = ..., max_tokens: _Optional[int] = ..., pattern: _Optional[str] = ..., max_candidates: _Optional[int] = ..., omit_values: bool = ..., decide_by: _Optional[_Union[DecidedBy, str]] = ..., explain: bool = ...) -> None: ...

class CheckRelevanceResponse(_message.Message):
    __slots__ = ("entries", "decided_by", "reason", "decisions", "failures", "context_text", "token_count", "key_count", "llm_usage", "degraded", "revision")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    DECIDED_BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_TEXT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_COUNT_FIELD_NUMBER: _ClassVar[int]
    KEY_COUNT_FIELD_NUMBER: _ClassVar[int]
    LLM_USAGE_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[_state_pb2.StateEntry]
    decided_by: DecidedBy
    reason: str
    decisions: _containers.RepeatedCompositeFieldContainer[KeyDecision]
    failures: _containers.RepeatedCompositeFieldContainer[DecisionFailure]
    context_text: str
    token_count: int
    key_count: int
    llm_usage: LlmUsage
    degraded: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Degradation]
    revision: int
    def __init__(self, entries: _Optional[_Iterable[_Union[_state_pb2.StateEntry, _Mapping]]] = ..., decided_by: _Optional[_Union[DecidedBy, str]] = ..., reason: _Optional[str] = ..., decisions: _Optional[_Iterable[_Union[KeyDecision, _Mapping]]] = ..., failures: _Optional[_Iterable[_Union[DecisionFailure, _Mapping]]] = ..., context_text: _Optional[str] = ..., token_count: _Optional[int] = ..., key_count: _Optional[int] = ..., llm_usage: _Optional[_Union[LlmUsage, _Mapping]] = ..., degraded: _Optional[_Iterable[_Union[_memory_pb2.Degradation, _Mapping]]] = ..., revision: _Optional[int] = ...) -> None: ...

class EvaluateForStorageRequest(_message.Message):
    __slots__ = ("namespace", "tool_name", "result", "goal", "save", "arguments", "is_error", "key", "overwrite", "ttl", "decide_by", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TOOL_NAME_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    GOAL_FIELD_NUMBER: _ClassVar[int]
    SAVE_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    IS_ERROR_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    OVERWRITE_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    DECIDE_BY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    tool_name: str
    result: _struct_pb2.Value
    goal: str
    save: bool
    arguments: _struct_pb2.Struct
    is_error: bool
    key: str
    overwrite: bool
    ttl: _duration_pb2.Duration
    decide_by: DecidedBy
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., tool_name: _Optional[str] = ..., result: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., goal: _Optional[str] = ..., save: bool = ..., arguments: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., is_error: bool = ..., key: _Optional[str] = ..., overwrite: bool = ..., ttl: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., decide_by: _Optional[_Union[DecidedBy, str]] = ..., request_id: _Optional[str] = ...) -> None: ...

class EvaluateForStorageResponse(_message.Message):
    __slots__ = ("should_save", "key", "reason", "decided_by", "saved", "entry", "skipped", "description", "existing_version", "failures", "llm_usage", "degraded", "revision")
    SHOULD_SAVE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DECIDED_BY_FIELD_NUMBER: _ClassVar[int]
    SAVED_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    EXISTING_VERSION_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    LLM_USAGE_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    should_save: bool
    key: str
    reason: str
    decided_by: DecidedBy
    saved: bool
    entry: _state_pb2.StateEntry
    skipped: bool
    description: str
    existing_version: int
    failures: _containers.RepeatedCompositeFieldContainer[DecisionFailure]
    llm_usage: LlmUsage
    degraded: _containers.RepeatedCompositeFieldContainer[_memory_pb2.Degradation]
    revision: int
    def __init__(self, should_save: bool = ..., key: _Optional[str] = ..., reason: _Optional[str] = ..., decided_by: _Optional[_Union[DecidedBy, str]] = ..., saved: bool = ..., entry: _Optional[_Union[_state_pb2.StateEntry, _Mapping]] = ..., skipped: bool = ..., description: _Optional[str] = ..., existing_version: _Optional[int] = ..., failures: _Optional[_Iterable[_Union[DecisionFailure, _Mapping]]] = ..., llm_usage: _Optional[_Union[LlmUsage, _Mapping]] = ..., degraded: _Optional[_Iterable[_Union[_memory_pb2.Degradation, _Mapping]]] = ..., revision: _Optional[int] = ...) -> None: ...
