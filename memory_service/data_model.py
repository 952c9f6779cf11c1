"""The data model: records and requests as plain values without I/O.

Times are integers: microseconds since the Unix epoch, in names that end in `_us`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memory_service.predicates import Predicate

Vector = NDArray[np.float32]
"""A vector of shape (dimension,), as the writer sent it (not normalised)."""

Json = Any
"""A JSON value: None, bool, int, float, str, list or dict with string keys."""

TIME_US_MAX = 253_402_300_799_999_999
"""The last microsecond of the year 9999, the end of what timestamps hold."""
CLIENT_MODEL = "client"
"""The embedding model of vectors that clients supply."""

PREVIEW_CHARS = 100
"""Length of a state value's preview, in characters."""


class Role(enum.StrEnum):
    """The speaker of a chat message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


# `gc=False` keeps items and their parts from the garbage collector; they are never part of a cycle. Tens of
# thousands are in memory, and a collection over all of them stops the server for 20 ms.


class TextPart(msgspec.Struct, tag="text"):
    """A piece of plain text."""

    text: str


class DataPart(msgspec.Struct, tag="data", gc=False):
    """A piece of structured data."""

    data: dict[str, Json]


class BinaryPart(msgspec.Struct, tag="binary", omit_defaults=True, gc=False):
    """A file, or a reference to one; a negative content_length means that it is not loaded."""

    mime_type: str = ""
    content: bytes = b""
    name: str | None = None
    url: str | None = None
    content_length: int | None = None


class ToolCallPart(msgspec.Struct, tag="tool_call", omit_defaults=True, gc=False):
    """A request to call a tool; arguments are None if none were given."""

    tool_call_id: str = ""
    name: str = ""
    arguments: dict[str, Json] | None = None


class ToolCallResult(msgspec.Struct, tag="tool_call_result", omit_defaults=True, gc=False):
    """The result of a tool call; result is UNSET if there was none, and None for JSON null."""

    tool_call_id: str = ""
    name: str = ""
    result: Json | msgspec.UnsetType = msgspec.UNSET
    is_error: bool = False


Part = TextPart | DataPart | BinaryPart | ToolCallPart | ToolCallResult


class ChatMessage(msgspec.Struct, tag="chat_message", omit_defaults=True, gc=False):
    """A message of a user, an assistant or another role; model is (provider, id)."""

    role: Role
    parts: list[Part] = []
    message_id: str = ""
    name: str | None = None
    model: tuple[str, str] | None = None
    create_us: int | None = None


Content = ChatMessage | ToolCallResult | TextPart | DataPart
"""The content of an item."""


class ItemKind(enum.IntEnum):
    """The service that an item belongs to, and its kind there; the numbers equal the proto's."""

    PLAIN = 0
    MESSAGE = 1
    RESPONSE = 2
    REFLECTION = 3
    USER_MEMORY = 4
    DOCUMENT = 5
    FRAGMENT = 6
    SESSION = 7
    FILE = 8
    FILE_FRAGMENT = 9


KIND_NUMBERS = max(ItemKind) + 1
"""The numbers of kinds are below this."""


ANSWERED_TAG = "in_response_to"
"""The tag of a response that has the id of the message that it answers."""

CONVERSATION_KINDS = frozenset({ItemKind.PLAIN, ItemKind.MESSAGE, ItemKind.RESPONSE, ItemKind.REFLECTION})
"""The kinds that reads return by default; the others have their own services."""


class Facet(msgspec.Struct, gc=False):
    """Data that a service stores with one of its items.

    Like labels, `tags` find the item, but callers cannot set or see them.
    """

    kind: ItemKind
    tags: dict[str, str] = {}
    attributes: dict[str, Json] = {}


class SourceKind(enum.IntEnum):
    """Where the content of an item comes from; the numbers are stored and equal the proto's."""

    UNSPECIFIED = 0
    USER = 1
    AGENT = 2
    TOOL = 3
    WEB = 4
    DOCUMENT = 5
    DERIVED = 6
    IMPORT = 7


class Provenance(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Who wrote a version of an item or a state, from which sources, and its trust, 0 to 1.

    `source` UNSPECIFIED: derived from the content (`implied_source`). `write_us` is kept only if it differs
    from the time of the version: for imports that keep original times. `copy_of` is the revision (of a state
    the version) that an undo restored a copy of.
    """

    writer: str = ""
    credential_id: str = ""
    source: SourceKind = SourceKind.UNSPECIFIED
    source_uri: str = ""
    parent_ids: tuple[str, ...] = ()
    model: str = ""
    trust: float = 1.0
    write_us: int | None = None
    copy_of: int = 0


UNATTRIBUTED = Provenance()
"""Provenance of an anonymous write without any claims. It is stored as None."""


class ProvenanceDraft(msgspec.Struct, frozen=True):
    """A writer's claims about the provenance of an item. `trust` can only lower it.

    `lenient`: missing parents are dropped, not rejected. `imported`: the item comes from a record of an
    export, and `claimed` is its provenance there, if any.
    """

    source: SourceKind = SourceKind.UNSPECIFIED
    source_uri: str = ""
    parent_ids: tuple[str, ...] = ()
    model: str = ""
    trust: float | None = None
    lenient: bool = False
    imported: bool = False
    claimed: Provenance | None = None


UNSET_IMPORTANCE = 0.5
"""The effective importance of an item that has none."""

LabelKey = str | tuple[str]
"""The key of a label, or of a tag as a tuple."""


class Item(msgspec.Struct, gc=False):
    """A stored item.

    `revision` is the namespace's revision of the item's last write, `position` that of its first, which
    orders the namespace. The store sets both. `embedding` is None if it was not requested; `embedded` says
    whether there is one.
    """

    id: str
    session_id: str
    content: Content
    create_us: int
    update_us: int
    expire_us: int | None = None
    labels: dict[str, str] = {}
    metadata: dict[str, Json] | None = None
    embedding: Vector | None = None
    embedded: bool = False
    facet: Facet | None = None
    importance: float | None = None
    """0 to 1; None: not set."""
    provenance: Provenance | None = None
    """Provenance of this version; None: UNATTRIBUTED."""
    ttl_us: int | None = None
    """How long a refresh lets it live; None: as long as from this version to its expiry."""
    index: str | None = None
    """The text to search in place of the content; None: the content, empty: searches do not find the item."""
    revision: int = 0
    position: int = 0
    wire: bytes | None = None
    """The item in wire format, cached by the API for the life of this object."""
    framed: bytes | None = None
    """The same, framed as part of a response, up to its score."""

    @property
    def kind(self) -> ItemKind:
        """The kind of the item."""
        return self.facet.kind if self.facet else ItemKind.PLAIN

    @property
    def trust(self) -> float:
        """The trust of this version, 0 to 1."""
        return self.provenance.trust if self.provenance else UNATTRIBUTED.trust

    @property
    def source(self) -> SourceKind:
        """Where the content comes from."""
        said = self.provenance.source if self.provenance else SourceKind.UNSPECIFIED
        return said or implied_source(self.kind, self.content)

    def expired(self, now_us: int) -> bool:
        """Whether the item has expired."""
        return self.expire_us is not None and self.expire_us <= now_us

    def living_on(self, now_us: int) -> Item:
        """Return the item with its time to live counted from now: at most to the end of the year 9999."""
        if self.expire_us is None or self.expired(now_us):
            return self
        ttl_us = self.expire_us - self.update_us if self.ttl_us is None else self.ttl_us
        expire_us = max(self.expire_us, min(now_us + ttl_us, TIME_US_MAX))
        return msgspec.structs.replace(self, ttl_us=ttl_us, expire_us=expire_us, wire=None, framed=None)


def parents_of(item: Item) -> tuple[str, ...]:
    """Return the ids of the items that an item was made from."""
    parents = (item.provenance or UNATTRIBUTED).parent_ids
    if item.facet is not None and item.facet.kind is ItemKind.RESPONSE:
        answered = item.facet.tags.get(ANSWERED_TAG, "")
        return (*parents, answered) if answered and answered not in parents else parents
    return parents


def index_labels(labels: dict[str, str], facet: Facet | None) -> dict[LabelKey, str]:
    """Return the labels and tags of an item in one dictionary, as they are indexed."""
    indexed: dict[LabelKey, str] = {key: value for key, value in labels.items()}  # noqa: C416 - other type
    if facet:
        indexed.update({(key,): value for key, value in facet.tags.items()})
    return indexed


def implied_source(kind: ItemKind, content: Content) -> SourceKind:
    """Return the source of a content whose writer claims nothing about it."""
    if isinstance(content, ChatMessage):
        return source_of(int(kind), "chat_message", content.role)
    return source_of(int(kind), "tool_call_result" if isinstance(content, ToolCallResult) else "", None)


def source_of(kind: int, content_type: str, role: str | None) -> SourceKind:
    """Return the implied source by kind, tag of the content, and role of the message."""
    if kind in _SOURCES_OF_KINDS:
        return _SOURCES_OF_KINDS[kind]
    if content_type == "chat_message":
        return _SOURCES_OF_ROLES.get(role, SourceKind.UNSPECIFIED)
    return SourceKind.TOOL if content_type == "tool_call_result" else SourceKind.UNSPECIFIED


_SOURCES_OF_KINDS: dict[int, SourceKind] = {
    ItemKind.REFLECTION: SourceKind.DERIVED,
    ItemKind.DOCUMENT: SourceKind.DOCUMENT,
    ItemKind.FRAGMENT: SourceKind.DOCUMENT,
}
_SOURCES_OF_ROLES: dict[str | None, SourceKind] = {
    Role.USER: SourceKind.USER,
    Role.ASSISTANT: SourceKind.AGENT,
    Role.TOOL: SourceKind.TOOL,
}


@dataclass(slots=True)
class StateEntry:
    """One named value. `value_json` is the value as compact JSON."""

    key: str
    value_json: bytes
    version: int
    create_us: int
    update_us: int
    expire_us: int | None
    size_bytes: int
    description: str
    revision: int
    provenance: Provenance | None = None
    """Provenance of this version; None: UNATTRIBUTED."""

    def expired(self, now_us: int) -> bool:
        """Whether the state has expired."""
        return self.expire_us is not None and self.expire_us <= now_us

    @property
    def preview(self) -> str:
        """The beginning of the value as JSON."""
        # Decode no more bytes than the preview can need: a value may have a million.
        text = self.value_json[: 4 * (PREVIEW_CHARS + 1)].decode(errors="ignore")
        return text if len(text) <= PREVIEW_CHARS else text[:PREVIEW_CHARS] + "..."


class Contribution(msgspec.Struct, frozen=True):
    """One channel's part of a score: raw_score / scale * weight; `counted` if it differs from raw_score."""

    channel: str
    raw_score: float
    weight: float
    scale: float
    counted: float | None = None

    @property
    def value(self) -> float:
        """The contribution to the score."""
        return (self.raw_score if self.counted is None else self.counted) / self.scale * self.weight


class ChangeType(enum.IntEnum):
    """Type of a change; the numbers are stored and equal the proto's."""

    ITEM_ADDED = 1
    ITEM_UPDATED = 2
    ITEM_DELETED = 3
    ITEM_EXPIRED = 4
    RESET = 5
    STATE_SAVED = 6
    STATE_DELETED = 7
    STATE_EXPIRED = 8
    STATE_CLEARED = 9


@dataclass(slots=True, frozen=True)
class Change:
    """One change of a namespace; `subject` is an item's id, a state's key, or empty."""

    type: ChangeType
    revision: int
    subject: str


class NamespaceSettings(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Settings of a namespace. `version` counts their changes; 0: there was none."""

    time_zone: str = ""
    default_ttl_us: int | None = None
    version: int = 0


NO_SETTINGS = NamespaceSettings()


@dataclass(slots=True, frozen=True)
class NamespaceInfo:
    """Statistics of a namespace. `uid` is never reused.

    model "": no item has a vector or waits for one. dimension 0 with a model: the first vector will set it.
    `pending_count` items wait for their vectors. `vector_epoch` counts how often the vectors were dropped for
    those of another model.
    """

    name: str
    uid: int
    revision: int
    item_count: int
    state_count: int
    embedded_count: int
    dimension: int
    model: str
    create_us: int
    pending_count: int = 0
    vector_epoch: int = 0
    settings: NamespaceSettings = NO_SETTINGS


@dataclass(slots=True, frozen=True)
class IndexInfo:
    """How the vectors of a namespace are currently searched; kind is "exact", "hnsw" or ""."""

    loaded: bool = False
    kind: str = ""
    graph_count: int = 0
    exact_count: int = 0
    memory_bytes: int = 0
    ef_search: int = 0


class ItemFilter(msgspec.Struct, frozen=True):
    """Conditions on items, all of which must hold. Items expired at now_us never match."""

    now_us: int
    session_id: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    start_us: int | None = None
    end_us: int | None = None
    min_position: int = 0
    max_position: int | None = None
    kinds: frozenset[ItemKind] | None = None
    """Kinds to match; None: any."""
    tags: tuple[tuple[str, str], ...] = ()
    predicate: Predicate | None = None
    any_tag: tuple[tuple[str, str], ...] = ()
    """Tags of which an item must have one at least; empty: any item."""

    @property
    def selects(self) -> bool:
        """Whether there are conditions other than expiry and kinds."""
        return bool(
            self.session_id
            or self.labels
            or self.tags
            or self.any_tag
            or self.start_us is not None
            or self.end_us is not None
            or self.min_position
            or self.max_position is not None
            or self.predicate is not None
        )


class SearchQuery(msgspec.Struct, frozen=True):
    """A search by vector, text, or both.

    `candidates` is the most results per channel; with both channels, `nearest` is that of the vector if it is
    above 0. With `described` the hits also have the columns that describe the items. `neighbour_weight`
    is the factor of the weights of neighbours' words.
    """

    filter: ItemFilter
    candidates: int
    vector: Vector | None = None
    text: str | None = None
    nearest: int = 0
    described: bool = False
    neighbour_weight: float = 1.0


class Hits(msgspec.Struct):
    """Search results by column: entry i of each list belongs to the same item.

    Vector scores are cosine similarities, None for an item without a vector; lexical scores are BM25 over an
    item and its neighbours, 0.0 if no word matches; `word_shares` is the share of the text's words that these
    have, 0 to 1, rare words counting more and those of neighbours less; `named` says whether the text has a
    word of the speaker's name. A column is None if the query did not use its channel. `create_us`,
    `importances` and `use_counts` are None unless the query requests them: `importances` has UNSET_IMPORTANCE
    for an item without one, `use_counts` how often an item was used.
    """

    positions: list[int] = []
    vector_scores: Sequence[float | None] | None = None
    lexical_scores: Sequence[float] | None = None
    named: Sequence[bool] | None = None
    create_us: Sequence[int] | None = None
    importances: Sequence[float] | None = None
    use_counts: Sequence[int] | None = None
    word_shares: Sequence[float] | None = None


class SessionCounts(msgspec.Struct, frozen=True):
    """What the items of a session say about it: how many there are, and the times of the first and the last.

    `last_position` is that of the last one, or of the session's own item if it has no others; then the times
    are those of that item.
    """

    session_id: str
    item_count: int
    first_us: int
    last_us: int
    last_position: int

    @property
    def place(self) -> tuple[int, int]:
        """Its place in the order of sessions."""
        return self.last_us, self.last_position


class SessionQuery(msgspec.Struct, frozen=True):
    """Conditions on sessions, all of which must hold. Items expired at now_us do not count.

    `labels` are those of the session's own item. `before` is a place in the order; None: its end.
    """

    now_us: int
    limit: int
    before: tuple[int, int] | None = None
    prefix: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    session_id: str = ""


class Around(msgspec.Struct, frozen=True):
    """The positions of an item's neighbours in its session, before and after it, ascending."""

    before: list[int] = []
    after: list[int] = []


@dataclass(slots=True, frozen=True)
class RequestKey:
    """A request id from a client, and a digest of the request body.

    `complete` is called with the receipt before it is stored, within the write's transaction, and adds what
    the response needs beyond it. It may be called in another thread, and again if the write is retried.
    """

    id: str
    digest: bytes
    complete: Callable[[Receipt], None] | None = field(default=None, compare=False, repr=False)


@dataclass(slots=True, frozen=True)
class Since:
    """A precondition: items of these kinds and these ids have not changed since a revision.

    The kind of a removed item is unknown: with `removals` it counts for every kind, without for none, except
    by its id.
    """

    revision: int
    kinds: frozenset[ItemKind] = frozenset()
    ids: frozenset[str] = frozenset()
    removals: bool = True


@dataclass(slots=True)
class ItemWrite:
    """An item to be written, with what the indexes need.

    `search_text` is the text for word search, `speaker` its speaker, if any. `item.embedding` is the vector,
    and `model` its origin: an embedder's name or CLIENT_MODEL. Without a vector, `model` names the embedder
    that may embed the text later, if any, and `dimension` the size of its vectors, 0 if unknown. With
    `keep_vector` a replaced item keeps its vector. With `expected_revision` the write succeeds only if the
    item with this id has that revision; 0: only if there is none. With `keep_create_us` an item that replaces
    another one gets its create_us. With `default_ttl` an added item expires as the namespace's settings say.
    `new_id`: the server made the id at random, so no item has it. With `parents_exist` the write succeeds
    only if the items that its provenance names as parents exist.
    """

    item: Item
    search_text: str
    model: str = ""
    keep_vector: bool = False
    expected_revision: int | None = None
    speaker: str = ""
    dimension: int = 0
    keep_create_us: bool = False
    new_id: bool = False
    default_ttl: bool = False
    parents_exist: bool = False


@dataclass(slots=True, frozen=True)
class HeldWrite:
    """A quarantined write, which no read returns. `body` is the encoded write.

    `writer` and `credential_id` identify its caller. `request` is the request id, if any.
    """

    id: str
    reason: str
    body: bytes
    held_us: int
    expire_us: int
    writer: str = ""
    credential_id: str = ""
    request: RequestKey | None = None

    def by(self, by: WritesBy) -> bool:
        """Whether the write matches a filter by writer."""
        return by.has(Provenance(self.writer, self.credential_id), self.held_us)


@dataclass(slots=True)
class VectorFill:
    """A late vector for an item, made from its text at `revision`; None: it gets none."""

    position: int
    revision: int
    vector: Vector | None


class ItemStamp(msgspec.Struct, array_like=True):
    """The store's part of an item, enough to repeat the response of a repeated request."""

    id: str
    revision: int
    position: int
    create_us: int
    update_us: int
    expire_us: int | None


class StateStamp(msgspec.Struct, array_like=True):
    """The store's part of a saved state, likewise."""

    version: int
    revision: int
    create_us: int
    update_us: int
    expire_us: int | None
    size_bytes: int = 0
    """0 in receipts of earlier releases."""


class Answer(msgspec.Struct, array_like=True):
    """The encoded response to a request, and `bare`: the same without contents.

    `whole` is kept only as long as everything in it exists: items by their ids, states by their keys. It is
    emptied when any of them is erased.
    """

    whole: bytes
    bare: bytes
    items: list[str] = []
    states: list[str] = []


class Receipt(msgspec.Struct, array_like=True):
    """The outcome of a write. A replayed receipt is that of the first request with this id.

    It is stored with the request and holds no contents: a repeated request brings its own, and the rest of
    the response is read by `seen`, versions of items, or is in `answer`.
    """

    revision: int
    items: list[ItemStamp] = []
    removed_count: int = 0
    removed_state_count: int = 0
    version: int = 0
    create_us: int = 0
    update_us: int = 0
    expire_us: int | None = None
    description: str = ""
    skipped_count: int = 0
    skipped_state_count: int = 0
    replayed: bool = False
    restored_count: int = 0
    unrestorable_count: int = 0
    writers: list[tuple[int, str, str, float]] = []
    """Writers of the items, by name and credential, with their trust; each applies from an index on."""
    degraded: list[tuple[int, str]] = []
    seen: list[tuple[str, int]] = []
    """Versions of other items in the response: id and revision."""
    note: list[Json] = []
    """Anything else that a service needs to repeat its response."""
    answer: Answer | None = None
    counts: list[int] = []
    """How many items or states each operation wrote or removed."""
    states: list[StateStamp] = []
    """Stamps of the saved states."""
    derived_counts: list[int] = []
    """How many items each operation removed as derived; empty: none."""
    missing_parents: list[str] = []
    """Parents that the request names and that did not exist, where it may name such."""

    @property
    def derived_count(self) -> int:
        """How many items were removed as derived from others."""
        return sum(self.derived_counts)

    def add(self, item: Item) -> None:
        """Add an item that was written."""
        stamp = ItemStamp(
            item.id, item.revision, item.position, item.create_us, item.update_us, item.expire_us
        )
        known = item.provenance or UNATTRIBUTED
        writer = known.writer, known.credential_id, known.trust
        before = self.writers[-1][1:] if self.writers else _NOBODY
        if writer != before:
            self.writers.append((len(self.items), *writer))
        self.items.append(stamp)

    def written(self) -> Iterator[tuple[ItemStamp, Provenance]]:
        """Yield the stamp of each item, and its provenance with writer and trust."""
        waiting = list(reversed(self.writers))
        known = UNATTRIBUTED
        for at, stamp in enumerate(self.items):
            if waiting and waiting[-1][0] == at:
                _, name, credential_id, trust = waiting.pop()
                known = Provenance(name, credential_id, trust=trust)
            yield stamp, known


_NOBODY = UNATTRIBUTED.writer, UNATTRIBUTED.credential_id, UNATTRIBUTED.trust


@dataclass(slots=True)
class StateWrite:
    """A state to be saved; description None keeps the current one."""

    key: str
    value_json: bytes
    now_us: int
    description: str | None = None
    expire_us: int | None = None
    expected_version: int | None = None
    nbytes: int = 0
    """Size of the value as the caller sent it."""
    provenance: Provenance | None = None


class WritesBy(msgspec.Struct, frozen=True):
    """The writes since a time by a name, a credential, or both together; None: any."""

    since_us: int
    writer: str | None = None
    credential_id: str | None = None

    def has(self, provenance: Provenance | None, update_us: int) -> bool:
        """Whether this matches a version written at that time with this provenance."""
        known = provenance or UNATTRIBUTED
        written_us = update_us if known.write_us is None else known.write_us
        return (
            min(written_us, update_us) >= self.since_us
            and self.writer in (None, known.writer)
            and self.credential_id in (None, known.credential_id)
        )


@dataclass(slots=True)
class UndoStep:
    """The result of one step of an undo, or of its dry run.

    `following` is where to continue, None at the end.

    `unrestorable` are the ids of items, or keys of states, whose previous version is missing. They stay as
    they are, or remain deleted.
    """

    removed_count: int = 0
    restored_count: int = 0
    unrestorable: list[str] = field(default_factory=list)
    following: int | str | None = None


class OnDuplicate(enum.Enum):
    """How to treat an item or a state that already exists."""

    FAIL = 1
    SKIP = 2
    REPLACE = 3


@dataclass(slots=True)
class ItemDraft:
    """An item as requested by a caller; None leaves a choice to the server."""

    content: Content | None
    id: str = ""
    session_id: str = ""
    create_us: int | None = None
    expire_us: int | None = None
    ttl_us: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, Json] | None = None
    embedding: Vector | None = None
    model: str = CLIENT_MODEL
    """The model of `embedding`."""
    nbytes: int = 0
    """Size of the item as the caller sent it."""
    facet: Facet | None = None
    importance: float | None = None
    index: str | None = None
    """As in Item."""
    keep_vector: bool = False
    expected_revision: int | None = None
    """As in ItemWrite."""
    provenance: ProvenanceDraft | None = None
    """The writer's claims; None: none."""
    own: bool = False
    """Whether the server itself changes part of an item, so that the writer claims nothing."""


class DegradationReason(enum.IntEnum):
    """A part of a request that could not be done; the numbers equal the proto's."""

    NO_EMBEDDER = 1
    EMBEDDER_UNAVAILABLE = 2
    FOREIGN_VECTORS = 3
    EMBEDDING_PENDING = 6
    NO_RERANKER = 7
    RERANKER_UNAVAILABLE = 8
    QUARANTINED = 9


class RetrieveMode(enum.IntEnum):
    """How a query was answered; the numbers equal the proto's."""

    UNSPECIFIED = 0
    HYBRID = 1
    VECTOR = 2
    LEXICAL = 3
