"""Values that servers store and return, as frozen dataclasses. All times are aware datetimes in UTC."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol, TypeAlias, runtime_checkable

from memory_client.messages import ChatMessage, Content, ToolCallResult, readable_text


@runtime_checkable
class Array(Protocol):
    """An array of numbers of one dimension, such as numpy's or torch's."""

    def tolist(self) -> Any:
        """Return the numbers as a list."""


Vector: TypeAlias = Sequence[float] | Array
"""An embedding to send: 1 to 4096 finite numbers."""


class ItemKind(StrEnum):
    """The service that an item belongs to, and its kind there."""

    PLAIN = "plain"
    """Added by `add`, `batch_add` or `import_items`."""
    MESSAGE = "message"
    """A message to an agent, by `store_interaction`."""
    RESPONSE = "response"
    """A response of an agent, by `store_response`."""
    REFLECTION = "reflection"
    """A reflection of an agent, by `store_reflection`."""
    USER_MEMORY = "user_memory"
    """A fact about a user."""
    DOCUMENT = "document"
    """A document. Its fragments are searched, not the document itself."""
    FRAGMENT = "fragment"
    """A fragment of a document."""
    SESSION = "session"
    """Title, labels and metadata of a session, by `update_session`."""
    FILE = "file"
    """A file. Its fragments are searched, not the file itself."""
    FILE_FRAGMENT = "file_fragment"
    """A fragment of a file."""
    UNSPECIFIED = "unspecified"
    """A kind that this client does not know."""


class OnDuplicate(StrEnum):
    """What to do with an item whose id exists already, and in imports with a state whose key exists."""

    FAIL = "fail"
    """Fail, with `AlreadyExists` for an item and `Conflict` for a state. Of an import, earlier batches stay
    written."""
    SKIP = "skip"
    """Keep what is stored."""
    REPLACE = "replace"
    """Replace what is stored. An item keeps its place in the order, and its create_time unless one is
    given."""


class RetrieveMode(StrEnum):
    """How a query is matched."""

    HYBRID = "hybrid"
    """Words and vectors together."""
    VECTOR = "vector"
    """Cosine similarity of vectors."""
    LEXICAL = "lexical"
    """Words alone (BM25)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreWeights:
    """Weights of the parts of a score: relative, finite and not negative, at least one positive."""

    lexical: float | None = None
    """Weight of words. None: 0.75."""
    vector: float | None = None
    """Weight of vector similarity. None: 0.25."""
    recency: float = 0.0
    """Weight of recency, which is 1 for an item of the time `now`, 0.5 for one a half-life older."""
    recency_half_life: timedelta | float | None = None
    """A timedelta or seconds, positive. None: 7 days."""
    importance: float = 0.0
    """Weight of importance."""
    usage: float = 0.0
    """Weight of usage, which is n / (n + 3) after n uses. `record_usage` counts them."""


class ChangeType(StrEnum):
    """The type of a change to a namespace."""

    ITEM_ADDED = "item_added"
    ITEM_UPDATED = "item_updated"
    ITEM_DELETED = "item_deleted"
    ITEM_EXPIRED = "item_expired"
    RESET = "reset"
    STATE_SAVED = "state_saved"
    STATE_DELETED = "state_deleted"
    STATE_EXPIRED = "state_expired"
    STATE_CLEARED = "state_cleared"
    UNSPECIFIED = "unspecified"
    """A kind of change that this client does not know."""


class HealthStatus(StrEnum):
    """Whether a server takes calls."""

    UNKNOWN = "unknown"
    SERVING = "serving"
    NOT_SERVING = "not_serving"
    SERVICE_UNKNOWN = "service_unknown"


@dataclass(frozen=True, slots=True)
class Degradation:
    """Something that the server could not do for an answer."""

    reason: str
    """For programs, such as "NO_EMBEDDER"."""
    message: str
    """For humans."""


class SourceKind(StrEnum):
    """Where the content of an item comes from."""

    UNSPECIFIED = "unspecified"
    """Neither given nor implied by the content; or a kind that this client does not know."""
    USER = "user"
    """A human said it. Implied by the role "user"."""
    AGENT = "agent"
    """An agent, or its model, said it. Implied by the role "assistant"."""
    TOOL = "tool"
    """A tool returned it. Implied by the role "tool" and by a `ToolCallResult`."""
    WEB = "web"
    """It was read on the web."""
    DOCUMENT = "document"
    """It is from a document. Implied for documents and their fragments."""
    DERIVED = "derived"
    """It was derived from other items."""
    IMPORT = "import"
    """It was imported by a caller who is not an administrator of the server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The writer, the sources and the trust of a version of an item.

    A writer may set `source`, `source_uri`, `parent_ids`, `model`, and `trust`, but only to lower it. The
    server sets the rest, and keeps it in imports by its administrators.
    """

    source: SourceKind | str = SourceKind.UNSPECIFIED
    """In an item to be added, "unspecified": derived from the content."""
    source_uri: str = ""
    """Where the content was found, such as the URL of a page, at most 2 KiB. Empty: unknown."""
    parent_ids: Sequence[str] = ()
    """Items of the same namespace that it was derived from, at most 100."""
    model: str = ""
    """The model that derived it from its parents, such as "openai:gpt-5". Empty: none, or unknown."""
    trust: float | None = None
    """0 to 1. In an item to be added, None: not lowered. Never None from the server."""
    writer: str = ""
    """Name of the credential that it was written with. Empty: none."""
    credential_id: str = ""
    """Id of that credential. Empty: none."""
    write_time: datetime | None = None
    """When the version was written, by the server's clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryItem:
    """One thing remembered. An item to be added needs only `content`."""

    content: Content | None
    """The content. None only if a newer server sends a kind that this client does not know."""
    id: str = ""
    """Unique in its namespace, 1 to 128 bytes. In an item to be added, empty: the server makes one."""
    session_id: str = ""
    """The conversation that the item belongs to. Empty: none."""
    create_time: datetime | None = None
    """When it happened. In an item to be added, None: now."""
    update_time: datetime | None = None
    """When the item was last written. Set by the server."""
    expire_time: datetime | None = None
    """When the item expires. None: never."""
    ttl: timedelta | None = None
    """Time until the item expires, in place of `expire_time`. Only in items to be added."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """For exact matching, as in {"topic": "travel"}; at most 64."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """JSON values stored with the item, at most 64 KiB, 32 levels deep."""
    embedding: Vector | None = None
    """The content's vector. From the server: a tuple of floats, and only if requested."""
    importance: float | None = None
    """0 to 1, for searches that weigh it. None: counts as 0.5."""
    index: str | None = None
    """The text that searches see in place of the content. Empty: they do not find the item. None: the
    content."""
    provenance: Provenance | None = None
    """Its writer, sources and trust. None from the server: written without a credential and without any
    provenance, and so fully trusted."""
    revision: int = 0
    """Revision of the namespace at which the item was last written. Set by the server."""
    kind: ItemKind = ItemKind.PLAIN
    """The service that the item belongs to. Set by the server, and kept by `import_items`."""
    facet_json: str = ""
    """Data of the item's service, as a JSON object, which `export` passes to `import_items`."""
    degraded: tuple[Degradation, ...] = field(default=(), compare=False)
    """What the server could not do when this client wrote the item, such as embedding its text."""

    @property
    def text(self) -> str:
        """The content as readable text."""
        return readable_text(self.content)

    @property
    def speaker(self) -> str:
        """The name or else the role of a message's author, or a tool's name; empty for text and data."""
        if isinstance(self.content, ChatMessage):
            return self.content.name or str(self.content.role)
        if isinstance(self.content, ToolCallResult):
            return self.content.name or "tool"
        return ""


@dataclass(frozen=True, slots=True)
class Contribution:
    """The share of one channel in a score."""

    channel: str
    """ "vector", "lexical", "recency", "importance", "usage", "reranker", or a boost for what the query names
    or quotes: "speaker", "time" or "phrase"."""
    raw_score: float
    """Cosine similarity, BM25, the reranker's score, or 0 to 1 for recency, importance and usage. For a
    boost: the score without boosts."""
    weight: float
    """The factor of the scaled score."""
    scale: float
    """The divisor of the raw score."""
    contribution: float
    """The share: raw_score / scale * weight."""


@dataclass(frozen=True, slots=True)
class Result:
    """One item found."""

    item: MemoryItem
    score: float
    """Higher is better; 0 without a query. Its range depends on the `RetrieveMode`."""
    explanation: tuple[Contribution, ...] = ()
    """Shares that add up to the score. Empty without `explain`."""
    before: tuple[MemoryItem, ...] = ()
    """The items right before it in its session, in order. Empty without `context_window`."""
    after: tuple[MemoryItem, ...] = ()
    """The items right after it in its session, in order."""
    relevance: float = 0.0
    """How much it has in common with the query, 0 to 1: words and meaning, not whether it answers. 0 without
    a query."""
    namespace: str = ""
    """The namespace of the item. Empty without `namespaces`."""
    matched_queries: tuple[int, ...] = ()
    """The indexes of the `queries` that found it."""

    @property
    def text(self) -> str:
        """The item's content as readable text."""
        return self.item.text


class Results(list[Result]):
    """The results of a retrieval: a list with facts about the whole answer."""

    degraded: tuple[Degradation, ...]
    """What the server could not do for this answer. Empty: it did everything."""
    revision: int
    """Revision of the namespace that the answer reflects."""
    token_count: int
    """Estimated tokens of the texts, neighbours included. 0 without `max_tokens`."""

    def __init__(
        self,
        results: Iterable[Result] = (),
        *,
        degraded: tuple[Degradation, ...] = (),
        revision: int = 0,
        token_count: int = 0,
    ) -> None:
        super().__init__(results)
        self.degraded = degraded
        self.revision = revision
        self.token_count = token_count


@dataclass(frozen=True, slots=True, kw_only=True)
class StateEntry:
    """A state key, its value and facts about them."""

    key: str
    """The entry's key, 1 to 512 bytes."""
    value: Any = None
    """Any JSON value. None: null, or omitted (in lists of keys and after a save)."""
    version: int = 0
    """Number of writes of the key, from 1."""
    description: str = ""
    """Purpose of the value, in the writer's words."""
    size_bytes: int = 0
    """Size of the value as compact JSON."""
    preview: str = ""
    """Beginning of the value as JSON, in lists that ask for it."""
    create_time: datetime | None = None
    """When the key was created."""
    update_time: datetime | None = None
    """When this version was written."""
    expire_time: datetime | None = None
    """When the entry expires. None: never."""
    revision: int = 0
    """Revision of the namespace at which this version was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change to a namespace."""

    type: ChangeType
    revision: int
    """Revision of the change."""
    item_id: str = ""
    """Empty: no item changed."""
    item: MemoryItem | None = None
    """The item after this change. None: a later change, which follows, replaced or removed it."""
    state_key: str = ""
    """Empty: no state changed."""
    state: StateEntry | None = None
    """The entry after this change. None: as for `item`."""


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """What an import wrote."""

    imported_count: int = 0
    skipped_count: int = 0
    imported_state_count: int = 0
    skipped_state_count: int = 0
    revision: int = 0
    """Revision of the namespace after the last batch."""
    degraded: tuple[Degradation, ...] = ()
    """What the server could not do, such as embedding the texts."""


@dataclass(frozen=True, slots=True)
class Removed:
    """What a call removed."""

    item_count: int = 0
    state_count: int = 0
    revision: int = 0
    """Revision of the namespace afterwards. 0: it no longer exists."""


@dataclass(frozen=True, slots=True)
class BackupProgress:
    """Progress of a backup."""

    name: str
    done_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """Description of a server."""

    version: str
    store: str
    """ "hnsw", "memory" or "postgres"."""
    embedder: str
    """As "provider:model", or "none"."""
    embedding_dimension: int
    """0: no embedder."""
    llm: str
    """As "provider:model", or "none"."""
    start_time: datetime | None
    limits: Mapping[str, int]
    """Limits in force; the unit is part of the name."""
    backup: BackupProgress | None
    """The running backup. None: there is none, or the caller may not make backups."""
    reranker: str
    """As "provider:model", or "none"."""
    server_name: str
    """Name of the server that answered, of several over the same records. Empty: an earlier release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceSettings:
    """Settings of a namespace."""

    time_zone: str
    """IANA name of the time zone of its users. Empty: UTC."""
    default_ttl: timedelta | None
    """Time until items of conversations expire that are added without an expiry. None: never."""
    version: int
    """Number of changes of the settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceSummary:
    """A namespace in a list."""

    namespace: str
    item_count: int
    revision: int
    create_time: datetime | None
    settings: NamespaceSettings | None = None
    """None: none was ever made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStats:
    """Index of a namespace, which is in memory only while in use."""

    loaded: bool
    kind: str
    """ "exact" or "hnsw"; empty: not loaded."""
    graph_count: int
    exact_count: int
    memory_bytes: int
    ef_search: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceUsage:
    """How much a namespace is used."""

    byte_count: int
    """Bytes of items and states, without vectors, indexes and history."""
    call_count: int
    """Calls to this server that named the namespace, including this one."""
    call_count_start_time: datetime | None
    """When the server began to count them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceStats:
    """Contents of a namespace."""

    namespace: str
    revision: int
    item_count: int
    state_count: int
    embedded_count: int
    embedding_dimension: int
    """0: no vectors yet."""
    embedding_model: str
    """The embedder's name, or "client" for vectors that clients provided."""
    create_time: datetime | None
    index: IndexStats
    pending_count: int
    """Items waiting to be embedded."""
    settings: NamespaceSettings | None = None
    """None: none was ever made."""
    usage: NamespaceUsage | None = None
    """None: not asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reembedding:
    """A namespace's move to the server's embedder, which continues in the background."""

    pending_count: int
    """Items waiting to be embedded. 0: there was nothing to do."""
    embedding_model: str
    """The namespace's embedder from now on."""
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoneWrites:
    """The result of undoing a writer's writes, or of a dry run."""

    removed_count: int
    """Items and states that were removed."""
    restored_count: int
    """Items and states that got back their previous version."""
    unrestorable_count: int
    """Changes that cannot be undone, such as deletions."""
    unrestorable_ids: tuple[str, ...]
    """Ids of their items and keys of their states, at most 100."""
    revision: int


class QuarantineDecision(StrEnum):
    """The decision on a write in quarantine."""

    RELEASE = "release"
    """Apply it."""
    DELETE = "delete"
    """Delete it for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantinedWrite:
    """A write that the server's write policy put into quarantine: all items of one call."""

    id: str
    reason: str
    """The policy's reason."""
    create_time: datetime | None
    """When it was received."""
    expire_time: datetime | None
    """When it is removed without a review."""
    items: tuple[MemoryItem, ...]
    """The items as they would be written, with their provenance and without embeddings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedWrite:
    """The result of a review."""

    item_count: int
    """Items that were written; 0 if the write was deleted."""
    revision: int
    degraded: tuple[Degradation, ...] = ()
    """What the server could not do, such as embedding the texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupSummary:
    """What a backup wrote."""

    name: str
    size_bytes: int
    checksum: str
    namespace_count: int
    item_count: int
    duration: timedelta
