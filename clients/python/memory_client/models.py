"""What the server keeps and answers, as small frozen values. All times are aware datetimes in UTC."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

from memory_client.messages import ChatMessage, Content, ToolCallResult, readable_text


class Array(Protocol):
    """An array of numbers of one dimension, such as numpy's or torch's."""

    def tolist(self) -> Any:
        """Return the numbers as a list."""


Vector: TypeAlias = Sequence[float] | Array
"""An embedding to send: 1 to 4096 finite numbers."""


class ItemKind(StrEnum):
    """Which service an item is of, and what it is there."""

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
    UNSPECIFIED = "unspecified"
    """A kind that this client does not know."""


class OnDuplicate(StrEnum):
    """What becomes of an imported record whose id or key exists already."""

    FAIL = "fail"
    """The import ends with `AlreadyExists`; batches before this one are written."""
    SKIP = "skip"
    """The stored record stays as it is."""
    REPLACE = "replace"
    """The imported record takes the place of the stored one."""


class RetrieveMode(StrEnum):
    """By what a query is answered."""

    HYBRID = "hybrid"
    """Words and vectors together."""
    VECTOR = "vector"
    """Cosine similarity of vectors."""
    LEXICAL = "lexical"
    """Words alone (BM25)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreWeights:
    """What a score is made of. The weights are relative: each is finite and 0 or more, and one above 0."""

    lexical: float | None = None
    """Of words. None: 0.75."""
    vector: float | None = None
    """Of the vectors' similarity. None: 0.25."""
    recency: float = 0.0
    """Of an item's age, counted from `now`: 1 for one of now, one half after a half-life."""
    recency_half_life: timedelta | float | None = None
    """A timedelta or seconds, positive. None: 7 days."""
    importance: float = 0.0
    """Of the items' importance."""
    usage: float = 0.0
    """Of how often an item was used: with n uses, n / (n + 3). `record_usage` counts them."""


class ChangeType(StrEnum):
    """What happened to a namespace."""

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
    """Such as "NO_EMBEDDER", for programs."""
    message: str
    """For humans."""


class SourceKind(StrEnum):
    """Where the content of an item comes from."""

    UNSPECIFIED = "unspecified"
    """Not said, and the content does not tell; or a kind that this client does not know."""
    USER = "user"
    """A human said it. Implied by the role "user"."""
    AGENT = "agent"
    """An agent, or its model, said it. Implied by the role "assistant"."""
    TOOL = "tool"
    """A tool returned it. Implied by the role "tool" and by a `ToolCallResult`."""
    WEB = "web"
    """It was read on the web."""
    DOCUMENT = "document"
    """It stands in a document. Implied for documents and their fragments."""
    DERIVED = "derived"
    """It was made of other items."""
    IMPORT = "import"
    """It was imported by somebody who does not administer the server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Who wrote a version of an item, out of what, and how far it is trusted.

    A writer may say `source`, `source_uri`, `parent_ids`, `model`, and a `trust` that only lowers. The rest
    is set by the server, and kept by `import_items` where the caller administers it.
    """

    source: SourceKind | str = SourceKind.UNSPECIFIED
    """"unspecified" when added: what the content tells."""
    source_uri: str = ""
    """Where the content was found, such as the address of a page, at most 2 KiB. Empty: not said."""
    parent_ids: Sequence[str] = ()
    """Items of the same namespace that it was made of, at most 100."""
    model: str = ""
    """What made it out of its parents, such as "openai:gpt-5". Empty: none, or not said."""
    trust: float | None = None
    """0 to 1. None when added: it is not lowered. From the server it is never None."""
    writer: str = ""
    """The name of the credential that it was written with. Empty: it had none."""
    credential_id: str = ""
    """The credential. Empty: there was none."""
    write_time: datetime | None = None
    """When the version was written, by the server's clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryItem:
    """One thing remembered. Of an item to be added only `content` is required."""

    content: Content | None
    """What is remembered. None only where a newer server sends what this client does not know."""
    id: str = ""
    """Names the item inside its namespace, 1 to 128 bytes. Empty when added: the server makes one."""
    session_id: str = ""
    """The conversation that the item belongs to. Empty: none."""
    create_time: datetime | None = None
    """When it happened. None when added: now."""
    update_time: datetime | None = None
    """When the item was last written. Set by the server."""
    expire_time: datetime | None = None
    """When the item ceases to exist. None: never."""
    ttl: timedelta | None = None
    """Another way to give `expire_time`, from now. Only in items to be added."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """For exact matching, as in {"topic": "travel"}; at most 64."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """JSON values kept with the item, at most 16 KiB."""
    embedding: Vector | None = None
    """The content's vector. From the server: a tuple of floats, and only where it was asked for."""
    importance: float | None = None
    """0 to 1, for searches that weigh it. None: not said, which counts as 0.5."""
    provenance: Provenance | None = None
    """Who wrote it, out of what, and how far it is trusted. None from the server: nobody with a name wrote it
    and nothing was said, so that it is trusted."""
    revision: int = 0
    """Revision of the namespace at which the item was last written. Set by the server."""
    kind: ItemKind = ItemKind.PLAIN
    """Which service the item is of. Set by the server, and kept by `import_items`."""
    facet_json: str = ""
    """What the service of its kind keeps with it, as a JSON object: from `export`, for `import_items`."""
    degraded: tuple[Degradation, ...] = field(default=(), compare=False)
    """What the server could not do when this client wrote the item, such as embedding its text."""

    @property
    def text(self) -> str:
        """The content as readable text."""
        return readable_text(self.content)

    @property
    def speaker(self) -> str:
        """Name or else role of the one who spoke, name of the tool; empty for text and data."""
        if isinstance(self.content, ChatMessage):
            return self.content.name or str(self.content.role)
        if isinstance(self.content, ToolCallResult):
            return self.content.name or "tool"
        return ""


@dataclass(frozen=True, slots=True)
class Contribution:
    """The share of one channel in a score."""

    channel: str
    """ "vector", "lexical", "recency", "importance", "usage", "reranker", or a boost: "speaker", "time" or
    "phrase" for what the query names or quotes."""
    raw_score: float
    """Cosine similarity, BM25, 0 to 1 for recency, importance and usage, the reranker's own, or of a boost
    the score without boosts."""
    weight: float
    """What the scaled score is multiplied by."""
    scale: float
    """What the raw score is divided by."""
    contribution: float
    """The share: raw_score / scale * weight."""


@dataclass(frozen=True, slots=True)
class Result:
    """One item found."""

    item: MemoryItem
    score: float
    """Higher is better; 0 without a query. Its range depends on the `RetrieveMode`."""
    explanation: tuple[Contribution, ...] = ()
    """Shares that add up to the score. Empty unless `explain` asked for it."""
    before: tuple[MemoryItem, ...] = ()
    """The items of its session right before it, in their order. Empty unless `context_window` asked."""
    after: tuple[MemoryItem, ...] = ()
    """The items of its session right after it, in their order."""

    @property
    def text(self) -> str:
        """The item's content as readable text."""
        return self.item.text


class Results(list[Result]):
    """Results of a retrieval: a list, and what is known about the whole of it."""

    degraded: tuple[Degradation, ...]
    """What the server could not do for this answer. Empty: nothing."""
    revision: int
    """Revision of the namespace that the answer reflects."""
    token_count: int
    """How many tokens the texts take, neighbours included, estimated. 0 unless `max_tokens` was given."""

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
    """One state key with its value and what is known about it."""

    key: str
    """Names the entry, 1 to 512 bytes."""
    value: Any = None
    """Any JSON value. None: null, or left out (in lists of keys and after a save)."""
    version: int = 0
    """Counts the writes of the key, from 1."""
    description: str = ""
    """What the value is for, in the writer's words."""
    size_bytes: int = 0
    """Size of the value as compact JSON."""
    preview: str = ""
    """Beginning of the value as JSON, in lists that ask for it."""
    create_time: datetime | None = None
    """When the key was created."""
    update_time: datetime | None = None
    """When this version was written."""
    expire_time: datetime | None = None
    """When the entry ceases to exist. None: never."""
    revision: int = 0
    """Revision of the namespace at which this version was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of a namespace."""

    type: ChangeType
    revision: int
    """Revision of the change."""
    item_id: str = ""
    """Empty: the change is not one of an item."""
    item: MemoryItem | None = None
    """The item as this change left it. None: a later change, which follows, replaced or removed it."""
    state_key: str = ""
    """Empty: the change is not one of a state."""
    state: StateEntry | None = None
    """The entry as this change left it. None: as for `item`."""


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
    """What a reset or a clearing removed."""

    item_count: int = 0
    state_count: int = 0
    revision: int = 0
    """Revision of the namespace afterwards. 0: the namespace is gone."""


@dataclass(frozen=True, slots=True)
class BackupProgress:
    """How far a backup is."""

    name: str
    done_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """What a server is."""

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
    """The backup that is under way. None: none is, or the caller may not make one."""
    reranker: str
    """As "provider:model", or "none"."""
    server_name: str
    """Of the server that answered, of several over the same records. Empty: it is of an earlier release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceSummary:
    """A namespace in a list."""

    namespace: str
    item_count: int
    revision: int
    create_time: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStats:
    """The index of a namespace, in memory only while it is in use."""

    loaded: bool
    kind: str
    """ "exact" or "hnsw"; empty: not loaded."""
    graph_count: int
    exact_count: int
    memory_bytes: int
    ef_search: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceStats:
    """What a namespace holds."""

    namespace: str
    revision: int
    item_count: int
    state_count: int
    embedded_count: int
    embedding_dimension: int
    """0: no vectors yet."""
    embedding_model: str
    """Embedder's name, or "client" for vectors of the clients' own."""
    create_time: datetime | None
    index: IndexStats
    pending_count: int
    """Items that wait to be embedded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reembedding:
    """A namespace's move to the server's embedder, which goes on in the background."""

    pending_count: int
    """Items that wait to be embedded. 0: there was nothing to do."""
    embedding_model: str
    """What the namespace is of now."""
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoneWrites:
    """What was taken back of what somebody wrote, or would be."""

    removed_count: int
    """Items and states that were removed."""
    restored_count: int
    """Items and states that got back the version before."""
    unrestorable_count: int
    """What cannot be undone, such as deletions."""
    unrestorable_ids: tuple[str, ...]
    """Ids of the items, and keys of the states, of which that is so; at most 100."""
    revision: int


class QuarantineDecision(StrEnum):
    """What becomes of a write in quarantine."""

    RELEASE = "release"
    """It takes place."""
    DELETE = "delete"
    """It is forgotten, for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantinedWrite:
    """A write that the server's write policy put aside. What was one call is one write."""

    id: str
    reason: str
    """What the policy says."""
    create_time: datetime | None
    """When it came."""
    expire_time: datetime | None
    """From then on it is removed without a review."""
    items: tuple[MemoryItem, ...]
    """The items as they would be written, with their provenance and without embeddings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedWrite:
    """What became of a write that was in quarantine."""

    item_count: int
    """Items that were written; 0 where it was deleted."""
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
