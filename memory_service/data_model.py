"""The nouns: what is kept and what is asked for. Plain values without I/O.

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
"""A vector of shape (dimension,), as the writer gave it (not normalised)."""

Json = Any
"""A JSON value: None, bool, int, float, str, list or dict with string keys."""

CLIENT_MODEL = "client"
"""The embedding model of vectors that clients bring themselves."""

PREVIEW_CHARS = 100
"""Characters of a state's value that are its preview."""


class Role(enum.StrEnum):
    """Who speaks in a chat message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


# The garbage collector does not look at items, nor at what they are made of (`gc=False`): they are no part of
# a cycle. Tens of thousands are kept in memory, and a look at all, for which everything waits, takes 20 ms.


class TextPart(msgspec.Struct, tag="text"):
    """A piece of plain text."""

    text: str


class DataPart(msgspec.Struct, tag="data", gc=False):
    """A piece of structured data."""

    data: dict[str, Json]


class BinaryPart(msgspec.Struct, tag="binary", omit_defaults=True, gc=False):
    """A file, or a reference to one; a negative content_length says that it is not loaded."""

    mime_type: str = ""
    content: bytes = b""
    name: str | None = None
    url: str | None = None
    content_length: int | None = None


class ToolCallPart(msgspec.Struct, tag="tool_call", omit_defaults=True, gc=False):
    """A request to call a tool; arguments are None when none were given."""

    tool_call_id: str = ""
    name: str = ""
    arguments: dict[str, Json] | None = None


class ToolCallResult(msgspec.Struct, tag="tool_call_result", omit_defaults=True, gc=False):
    """What a tool returned; result is UNSET when none was given, and None for JSON null."""

    tool_call_id: str = ""
    name: str = ""
    result: Json | msgspec.UnsetType = msgspec.UNSET
    is_error: bool = False


Part = TextPart | DataPart | BinaryPart | ToolCallPart | ToolCallResult


class ChatMessage(msgspec.Struct, tag="chat_message", omit_defaults=True, gc=False):
    """What somebody said; model is (provider, id)."""

    role: Role
    parts: list[Part] = []
    message_id: str = ""
    name: str | None = None
    model: tuple[str, str] | None = None
    create_us: int | None = None


Content = ChatMessage | ToolCallResult | TextPart | DataPart
"""What an item holds."""


class ItemKind(enum.IntEnum):
    """Which service an item is of, and what it is there; the numbers equal the proto's."""

    PLAIN = 0
    MESSAGE = 1
    RESPONSE = 2
    REFLECTION = 3
    USER_MEMORY = 4
    DOCUMENT = 5
    FRAGMENT = 6


CONVERSATION_KINDS = frozenset({ItemKind.PLAIN, ItemKind.MESSAGE, ItemKind.RESPONSE, ItemKind.REFLECTION})
"""What is read where no kind is asked for: the rest has services of its own."""


class Facet(msgspec.Struct, gc=False):
    """What a service keeps with an item of its own.

    By `tags` it finds the item: they are like labels, but callers neither give nor see them.
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
    """Who wrote a version of an item, or of a state, out of what, and how far it is trusted, 0 to 1.

    `source` UNSPECIFIED: what its content tells (`implied_source`). `write_us` is kept only where it is not
    the time of the version itself: of an import that keeps what it brings. `copy_of` is the revision, of a
    state the version, of which an undo brought back a copy.
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
"""Of what nobody with a name wrote and nothing was said of. It is kept as None."""


class ProvenanceDraft(msgspec.Struct, frozen=True):
    """What a writer says of the provenance of an item. `trust` can only lower.

    `lenient`: parents that there are not are left out, in place of being refused. `imported`: it stands in
    a record of an export, with `claimed` as it was there, if anything was.
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
"""What counts for an item that has no importance."""

LabelKey = str | tuple[str]
"""A label's key, or in a tuple a tag's."""


class Item(msgspec.Struct, gc=False):
    """One thing remembered.

    `revision` is the namespace's revision of the last write of the item, `position` that of its
    first: the order of a namespace. Both are given by the store. `embedding` is None where it was
    not asked for; `embedded` tells whether there is one.
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
    """0 to 1; None: it was not given."""
    provenance: Provenance | None = None
    """Of this version; None: UNATTRIBUTED."""
    revision: int = 0
    position: int = 0
    wire: bytes | None = None
    """The item as the API sends it, kept by the API for the life of this object."""
    framed: bytes | None = None
    """The same as a part of a response, up to its score."""

    @property
    def kind(self) -> ItemKind:
        """What the item is."""
        return self.facet.kind if self.facet else ItemKind.PLAIN

    @property
    def trust(self) -> float:
        """How far this version is trusted, 0 to 1."""
        return self.provenance.trust if self.provenance else UNATTRIBUTED.trust

    @property
    def source(self) -> SourceKind:
        """Where the content comes from."""
        said = self.provenance.source if self.provenance else SourceKind.UNSPECIFIED
        return said or implied_source(self.kind, self.content)

    def expired(self, now_us: int) -> bool:
        """Whether the item has ceased to exist."""
        return self.expire_us is not None and self.expire_us <= now_us


def index_labels(labels: dict[str, str], facet: Facet | None) -> dict[LabelKey, str]:
    """Return the labels and tags of an item as they are indexed, side by side."""
    indexed: dict[LabelKey, str] = {key: value for key, value in labels.items()}  # noqa: C416 - other type
    if facet:
        indexed.update({(key,): value for key, value in facet.tags.items()})
    return indexed


def implied_source(kind: ItemKind, content: Content) -> SourceKind:
    """Return where a content comes from of which its writer says nothing."""
    if isinstance(content, ChatMessage):
        return source_of(int(kind), "chat_message", content.role)
    return source_of(int(kind), "tool_call_result" if isinstance(content, ToolCallResult) else "", None)


def source_of(kind: int, content_type: str, role: str | None) -> SourceKind:
    """The same, of the parts that tell it: a kind, the tag of a content, and the role of a message."""
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
    """Of this version; None: UNATTRIBUTED."""

    def expired(self, now_us: int) -> bool:
        """Whether the value has ceased to exist."""
        return self.expire_us is not None and self.expire_us <= now_us

    @property
    def preview(self) -> str:
        """The beginning of the value as JSON."""
        # No more than as many bytes as so many characters and one have: a value may have a million.
        text = self.value_json[: 4 * (PREVIEW_CHARS + 1)].decode(errors="ignore")
        return text if len(text) <= PREVIEW_CHARS else text[:PREVIEW_CHARS] + "..."


class Contribution(msgspec.Struct, frozen=True):
    """The share of one channel: raw_score / scale * weight; `counted` where that is not raw_score."""

    channel: str
    raw_score: float
    weight: float
    scale: float
    counted: float | None = None

    @property
    def value(self) -> float:
        """What it adds to the score."""
        return (self.raw_score if self.counted is None else self.counted) / self.scale * self.weight


class ChangeType(enum.IntEnum):
    """What happened; the numbers are stored and equal the proto's."""

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
    """One change of a namespace; `subject` is the item's id, the state's key, or empty."""

    type: ChangeType
    revision: int
    subject: str


@dataclass(slots=True, frozen=True)
class NamespaceInfo:
    """What a namespace holds. `uid` is never reused.

    model "": it has had no vector and waits for none. dimension 0 with a model: that of the first vector
    that it waits for. `pending_count` items wait for their vectors. `vector_epoch` is how often its
    vectors were given up for those of another model.
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


@dataclass(slots=True, frozen=True)
class IndexInfo:
    """How the vectors of a namespace are searched at present; kind is "exact", "hnsw" or ""."""

    loaded: bool = False
    kind: str = ""
    graph_count: int = 0
    exact_count: int = 0
    memory_bytes: int = 0
    ef_search: int = 0


class ItemFilter(msgspec.Struct, frozen=True):
    """Which items are wanted: those for which all of it holds. Items expired at now_us never match."""

    now_us: int
    session_id: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    start_us: int | None = None
    end_us: int | None = None
    min_position: int = 0
    max_position: int | None = None
    kinds: frozenset[ItemKind] | None = None
    """The kinds that are wanted; None: any."""
    tags: tuple[tuple[str, str], ...] = ()
    predicate: Predicate | None = None

    @property
    def selects(self) -> bool:
        """Whether anything but expiry and kinds is asked for."""
        return bool(
            self.session_id
            or self.labels
            or self.tags
            or self.start_us is not None
            or self.end_us is not None
            or self.min_position
            or self.max_position is not None
            or self.predicate is not None
        )


class SearchQuery(msgspec.Struct, frozen=True):
    """What to search for: a vector, a text, or both; `candidates` is the most wanted of each, but with
    both `nearest` of the vector, where it is above 0.

    With `described` the hits also have the columns that tell of the items themselves.
    """

    filter: ItemFilter
    candidates: int
    vector: Vector | None = None
    text: str | None = None
    nearest: int = 0
    described: bool = False


class Hits(msgspec.Struct):
    """Items found, by column: entry i of each list is of one item.

    Vector scores are cosine similarities, None for an item without a vector; lexical scores are
    BM25 over an item and its neighbours, 0.0 where no word matches; `named` tells whether the text
    has a word of the name of the one who speaks. A column is None when its channel was not asked.
    The last three are None unless the query asks for them: `importances` has UNSET_IMPORTANCE for an
    item without one, `use_counts` how often an item was used.
    """

    positions: list[int] = []
    vector_scores: Sequence[float | None] | None = None
    lexical_scores: Sequence[float] | None = None
    named: Sequence[bool] | None = None
    create_us: Sequence[int] | None = None
    importances: Sequence[float] | None = None
    use_counts: Sequence[int] | None = None


class Around(msgspec.Struct, frozen=True):
    """The positions of what stands right before and right after an item in its session, ascending."""

    before: list[int] = []
    after: list[int] = []


@dataclass(slots=True, frozen=True)
class RequestKey:
    """A client's id of a request, and a digest of its body.

    `complete` is called with the receipt before that is kept, within the transaction of the write, and puts
    in what else the answer is made of. It may be called in another thread, and again if a write is repeated.
    """

    id: str
    digest: bytes
    complete: Callable[[Receipt], None] | None = field(default=None, compare=False, repr=False)


@dataclass(slots=True, frozen=True)
class Since:
    """What must not have changed since a revision of a namespace: items of these kinds, and of these ids.

    Of an item that is gone nobody knows which kind it had: with `removals` it counts for every kind, without
    for none, and by its id alone.
    """

    revision: int
    kinds: frozenset[ItemKind] = frozenset()
    ids: frozenset[str] = frozenset()
    removals: bool = True


@dataclass(slots=True)
class ItemWrite:
    """An item to be written, with what the indexes need.

    `search_text` is what words are searched in, `speaker` who said it, if anybody. `item.embedding`
    is the vector, and `model` says where it comes from: an embedder's name or CLIENT_MODEL. Where there is no
    vector, `model` names the embedder by which the text may be embedded later, if any, and `dimension` what
    its vectors have, 0 where that is not known. With
    `keep_vector` a replaced item keeps the vector it has. With `expected_revision` it is written only
    if that is the revision of the item that has its id; 0: only if there is none. `new_id`: its id was made
    for it, at random, and no item has it.
    """

    item: Item
    search_text: str
    model: str = ""
    keep_vector: bool = False
    expected_revision: int | None = None
    speaker: str = ""
    dimension: int = 0
    new_id: bool = False


@dataclass(slots=True, frozen=True)
class HeldWrite:
    """A write that waits for a review, outside of all that is read. `body` is what it writes, encoded.

    `writer` and `credential_id` are of who made it. `request` is the id that it came with, if any.
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
        """Whether it is one of the writes of somebody."""
        return by.has(Provenance(self.writer, self.credential_id), self.held_us)


@dataclass(slots=True)
class VectorFill:
    """The vector of an item that waited for it, made of its text at `revision`; None: it gets none."""

    position: int
    revision: int
    vector: Vector | None


class ItemStamp(msgspec.Struct, array_like=True):
    """What the store gave an item, enough to answer a repeated request alike."""

    id: str
    revision: int
    position: int
    create_us: int
    update_us: int
    expire_us: int | None


class Answer(msgspec.Struct, array_like=True):
    """What a request was answered, encoded as it was sent, and `bare`: the same without anybody's contents.

    `whole` is kept as long as all that it tells of: items by their ids, states by their keys. It is empty
    where something of it was erased since.
    """

    whole: bytes
    bare: bytes
    items: list[str] = []
    states: list[str] = []


class Receipt(msgspec.Struct, array_like=True):
    """What a write did. A replayed one tells what the first request of this id did.

    It is kept with the request, so it holds no contents: the repeated request has its own, and what else an
    answer tells of is found by `seen`, versions of items, or is in `answer`.
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
    """Who wrote the items, by name and credential, and how far that is trusted; each from an item on."""
    degraded: list[tuple[int, str]] = []
    seen: list[tuple[str, int]] = []
    """Versions of other items that the answer tells of: id and revision."""
    note: list[Json] = []
    """What else a service needs in order to answer alike."""
    answer: Answer | None = None

    def add(self, item: Item) -> None:
        """Note an item that was written."""
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
        """Return for each item its stamp, and of its provenance who wrote it and how far that is trusted."""
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
    """A state value to be saved; description None keeps the present one."""

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
    """The writes since a time of somebody: of a name, of a credential, of both together; None: of any."""

    since_us: int
    writer: str | None = None
    credential_id: str | None = None

    def has(self, provenance: Provenance | None, update_us: int) -> bool:
        """Whether a version that was written then, with this provenance, is one of them."""
        known = provenance or UNATTRIBUTED
        written_us = update_us if known.write_us is None else known.write_us
        return (
            min(written_us, update_us) >= self.since_us
            and self.writer in (None, known.writer)
            and self.credential_id in (None, known.credential_id)
        )


@dataclass(slots=True)
class UndoStep:
    """What a step of an undo did, or would do. `following` is where to go on, None: there is no more.

    `unrestorable` are the ids of items, or keys of states, that stay, or are gone, for want of the version
    before.
    """

    removed_count: int = 0
    restored_count: int = 0
    unrestorable: list[str] = field(default_factory=list)
    following: int | str | None = None


class OnDuplicate(enum.Enum):
    """What becomes of an item, or a state, that exists already."""

    FAIL = 1
    SKIP = 2
    REPLACE = 3


@dataclass(slots=True)
class ItemDraft:
    """An item as a caller asks for it; None where the caller left a choice to the server."""

    content: Content | None
    id: str = ""
    session_id: str = ""
    create_us: int | None = None
    expire_us: int | None = None
    ttl_us: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, Json] | None = None
    embedding: Vector | None = None
    nbytes: int = 0
    """Size of the item as the caller sent it."""
    facet: Facet | None = None
    importance: float | None = None
    keep_vector: bool = False
    expected_revision: int | None = None
    """As in ItemWrite."""
    provenance: ProvenanceDraft | None = None
    """What the writer says of it; None: nothing."""
    own: bool = False
    """Whether it is the server that changes something of an item, and the writer says nothing in it."""


class DegradationReason(enum.IntEnum):
    """What could not be done; the numbers equal the proto's."""

    NO_EMBEDDER = 1
    EMBEDDER_UNAVAILABLE = 2
    FOREIGN_VECTORS = 3
    EMBEDDING_PENDING = 6
    NO_RERANKER = 7
    RERANKER_UNAVAILABLE = 8
    QUARANTINED = 9


class RetrieveMode(enum.IntEnum):
    """By what a query is answered; the numbers equal the proto's."""

    UNSPECIFIED = 0
    HYBRID = 1
    VECTOR = 2
    LEXICAL = 3
