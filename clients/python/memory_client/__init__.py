"""The client of memory-service: what was said and what tools returned, kept and found again.

with MemoryClient(namespace="ada") as memory:
    memory.add("Ada likes tea")
    print(memory.retrieve("what does she drink?")[0].text)
"""

from __future__ import annotations

from memory_client._calls.memory import UNSET
from memory_client.aio import AsyncMemoryClient
from memory_client.client import MemoryClient
from memory_client.errors import (
    AlreadyExists,
    Conflict,
    DeadlineExceeded,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    LimitExceeded,
    MemoryServiceError,
    NotFound,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
    Unsupported,
)
from memory_client.memory_manager import MemoryManager
from memory_client.messages import (
    BinaryPart,
    ChatMessage,
    Content,
    Model,
    Part,
    Role,
    ToolCall,
    ToolCallResult,
    chat_message,
    readable_text,
    tool_call_result,
)
from memory_client.models import (
    BackupProgress,
    BackupSummary,
    Change,
    ChangeType,
    Contribution,
    Degradation,
    HealthStatus,
    ImportSummary,
    IndexStats,
    MemoryItem,
    NamespaceStats,
    NamespaceSummary,
    OnDuplicate,
    Removed,
    Result,
    Results,
    RetrieveMode,
    ServerInfo,
    StateEntry,
    Vector,
)
from memory_client.options import ClientOptions

__version__ = "0.1.0"

__all__ = [
    "UNSET",
    "AlreadyExists",
    "AsyncMemoryClient",
    "BackupProgress",
    "BackupSummary",
    "BinaryPart",
    "Change",
    "ChangeType",
    "ChatMessage",
    "ClientOptions",
    "Conflict",
    "Content",
    "Contribution",
    "DeadlineExceeded",
    "Degradation",
    "FailedPrecondition",
    "HealthStatus",
    "ImportSummary",
    "IndexStats",
    "Internal",
    "InvalidArgument",
    "LimitExceeded",
    "MemoryClient",
    "MemoryItem",
    "MemoryManager",
    "MemoryServiceError",
    "Model",
    "NamespaceStats",
    "NamespaceSummary",
    "NotFound",
    "OnDuplicate",
    "Part",
    "PermissionDenied",
    "Removed",
    "Result",
    "Results",
    "RetrieveMode",
    "Role",
    "ServerInfo",
    "StateEntry",
    "ToolCall",
    "ToolCallResult",
    "Unauthenticated",
    "Unavailable",
    "Unsupported",
    "Vector",
    "chat_message",
    "readable_text",
    "tool_call_result",
]
