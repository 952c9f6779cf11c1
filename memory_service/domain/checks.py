"""Checks of requests. Each raises InvalidArgument or LimitExceeded, which name the field."""

from __future__ import annotations

import re

import msgspec
import numpy as np

from memory_service.data_model import (
    UNATTRIBUTED,
    BinaryPart,
    ChatMessage,
    Content,
    DataPart,
    Facet,
    ItemDraft,
    ItemKind,
    Json,
    Part,
    ProvenanceDraft,
    TextPart,
    ToolCallPart,
    ToolCallResult,
    Vector,
)
from memory_service.domain.ids import keeper_of, session_item_id
from memory_service.domain.json_walk import depth
from memory_service.errors import InvalidArgument, LimitExceeded
from memory_service.limits import Limits
from memory_service.namespaces import fault_of_name

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_REQUEST_ID = re.compile(r"[\x21-\x7e]+")
_BACKUP_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Checks:
    """Checks of requests, with the limits in force."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits

    def namespace(self, value: str, field: str = "namespace") -> None:
        """Check the name of a namespace: never a path."""
        if not value:
            raise InvalidArgument(field, "is required")
        bytes_max = self.limits.namespace_name_bytes_max
        if 4 * len(value) > bytes_max and len(value.encode()) > bytes_max:
            raise InvalidArgument(field, f"has more than {bytes_max} bytes")
        if fault := fault_of_name(value):
            raise InvalidArgument(field, fault)

    def request_id(self, value: str) -> None:
        """Check a request id: short and printable."""
        if len(value) > self.limits.request_id_chars_max:
            raise InvalidArgument(
                "request_id", f"has more than {self.limits.request_id_chars_max} characters"
            )
        if value and not _REQUEST_ID.fullmatch(value):
            raise InvalidArgument("request_id", "may contain only printable ASCII characters except spaces")

    def name(self, field: str, value: str, bytes_max: int, *, required: bool = True) -> None:
        """Check an id or key: text without control characters."""
        if required and not value:
            raise InvalidArgument(field, "is required")
        if len(value.encode()) > bytes_max:
            raise InvalidArgument(field, f"has more than {bytes_max} bytes")
        if _CONTROL.search(value):
            raise InvalidArgument(field, "may not contain control characters")

    def item_id(self, value: str, field: str = "id", *, required: bool = True) -> None:
        """Check the id of an item."""
        self.name(field, value, self.limits.id_bytes_max, required=required)

    def session_id(self, value: str, field: str = "session_id") -> None:
        """Check the id of a session."""
        if len(value.encode()) > self.limits.session_id_bytes_max:
            raise InvalidArgument(field, f"has more than {self.limits.session_id_bytes_max} bytes")
        _no_nul(field, value)

    def description(self, field: str, value: str) -> None:
        """Check the description of a state."""
        self.size(field, len(value.encode()), "state_description_bytes_max")
        _no_nul(field, value)

    def state_key(self, value: str, field: str = "key") -> None:
        """Check the key of a state."""
        self.name(field, value, self.limits.state_key_bytes_max)

    def backup_name(self, value: str) -> None:
        """Check the name of a backup: a plain file name."""
        if not _BACKUP_NAME.fullmatch(value):
            raise InvalidArgument("name", "must be 1 to 64 of the characters A-Z a-z 0-9 . _ -")

    def count(self, field: str, value: int) -> None:
        """Check that a number is not negative."""
        if value < 0:
            raise InvalidArgument(field, "must not be negative")

    def page_size(self, value: int, default: int = 100) -> int:
        """Return the size of a requested page."""
        self.count("page_size", value)
        return min(value or default, self.limits.page_items_max)

    def size(self, field: str, actual: int, limit_name: str) -> None:
        """Check a size against the limit of this name."""
        limit = getattr(self.limits, limit_name)
        if actual > limit:
            raise LimitExceeded(field, limit_name, limit, actual)

    def text(self, field: str, value: str) -> None:
        """Check the size of a text."""
        self.size(field, len(value.encode()), "text_bytes_max")

    def encoded(self, field: str, value: Json, limit_name: str = "data_bytes_max") -> bytes:
        """Return a JSON value in compact form. NaN and infinities are rejected."""
        return self._encoded(field, value, limit_name)[0]

    def _encoded(self, field: str, value: Json, limit_name: str) -> tuple[bytes, int]:
        """Return a JSON value in compact form, and its depth."""
        encoded = msgspec.json.encode(value)
        # The size first: it is much quicker to find out.
        self.size(field, len(encoded), limit_name)
        return encoded, _depth(field, value)

    def metadata(self, field: str, value: dict[str, Json]) -> None:
        """Check metadata: small, and not deeply nested."""
        _, depth = self._encoded(field, value, "metadata_bytes_max")
        if depth > self.limits.metadata_depth_max:
            raise InvalidArgument(field, f"is more than {self.limits.metadata_depth_max} levels deep")

    def labels(self, field: str, labels: dict[str, str]) -> None:
        """Check labels of an item or of a filter."""
        if len(labels) > self.limits.labels_max:
            raise InvalidArgument(field, f"has more than {self.limits.labels_max} entries")
        for key, value in labels.items():
            if not 0 < len(key.encode()) <= self.limits.label_key_bytes_max:
                raise InvalidArgument(field, f"a key must have 1 to {self.limits.label_key_bytes_max} bytes")
            if len(value.encode()) > self.limits.label_value_bytes_max:
                raise InvalidArgument(
                    field, f"a value has more than {self.limits.label_value_bytes_max} bytes"
                )
            _no_nul(field, key + value)

    def vector(self, field: str, vector: Vector) -> None:
        """Check a vector: finite, and not all zeros."""
        square = float(np.vdot(vector, vector))
        if 1e-30 < square < 1e30 and len(vector) <= self.limits.embedding_values_max:
            return  # NaN and infinities would show in the sum.
        if not len(vector):
            raise InvalidArgument(field, "has no values")
        if len(vector) > self.limits.embedding_values_max:
            raise InvalidArgument(field, f"has more than {self.limits.embedding_values_max} values")
        if not np.isfinite(vector).all():
            raise InvalidArgument(field, "contains a value that is not finite")
        if not vector.any():
            raise InvalidArgument(field, "is all zeros, which has no direction")

    def draft(self, field: str, draft: ItemDraft, now_us: int) -> None:
        """Check a new item."""
        self.item_id(draft.id, f"{field}.id", required=False)
        self.session_id(draft.session_id, f"{field}.session_id")
        if draft.content is None:
            raise InvalidArgument(f"{field}.content", "is required")
        if draft.facet is not None and draft.facet.kind is ItemKind.DOCUMENT:
            self.document_text(field, draft.content)
        elif draft.facet is not None and draft.facet.kind is ItemKind.FILE:
            self.file_text(field, draft.content)
        else:
            self.content(field, draft.content)
        self.size(field, draft.nbytes, "item_bytes_max")
        if draft.labels:
            self.labels(f"{field}.labels", draft.labels)
        if draft.metadata is not None:
            self.metadata(f"{field}.metadata", draft.metadata)
        if draft.embedding is not None:
            self.vector(f"{field}.embedding", draft.embedding)
        if draft.index is not None:
            self.text(f"{field}.index", draft.index)
            if draft.embedding is not None and not draft.index:
                raise InvalidArgument(f"{field}.embedding", "cannot be given together with an empty index")
        if draft.importance is not None and not 0 <= draft.importance <= 1:
            raise InvalidArgument(f"{field}.importance", "must be a number from 0 to 1")
        if draft.provenance is not None:
            self.provenance(f"{field}.provenance", draft.provenance)
        self.expiry(field, draft.expire_us, draft.ttl_us, now_us)

    def new_draft(self, field: str, draft: ItemDraft, now_us: int) -> None:
        """Check an item to add: as `draft`, and that its id is not one that the server keeps."""
        self.draft(field, draft, now_us)
        if draft.id:
            self.free_id(draft.id, f"{field}.id", now_us, draft.facet)
        of_session = draft.facet is not None and draft.facet.kind is ItemKind.SESSION
        if of_session and draft.id != session_item_id(draft.session_id):
            raise InvalidArgument(f"{field}.id", "is not that of the item of its session")

    def free_id(self, value: str, field: str, now_us: int, facet: Facet | None = None) -> None:
        """Reject an id that the server derives from another one, unless the item is of that kind."""
        keeper = keeper_of(value, now_us)
        if keeper is not None and (facet is None or facet.kind is not keeper):
            name = keeper.name.lower().replace("_", " ")
            raise InvalidArgument(field, f"has a form that the server keeps for a {name}")

    def provenance(self, field: str, said: ProvenanceDraft) -> None:
        """Check the claims of a writer or an export about an item's source."""
        limits, claimed = self.limits, said.claimed or UNATTRIBUTED
        for name, value, bytes_max in (
            ("source_uri", said.source_uri or claimed.source_uri, limits.source_uri_bytes_max),
            ("model", said.model or claimed.model, limits.name_bytes_max),
            ("writer", claimed.writer, limits.name_bytes_max),
            ("credential_id", claimed.credential_id, limits.name_bytes_max),
        ):
            self.name(f"{field}.{name}", value, bytes_max, required=False)
        parents = said.parent_ids or claimed.parent_ids
        if not said.lenient:
            self.size(f"{field}.parent_ids", len(parents), "source_ids_max")
        for at, parent in enumerate(parents):
            self.item_id(parent, f"{field}.parent_ids[{at}]")
        trust = claimed.trust if said.trust is None else said.trust
        if not 0 <= trust <= 1:
            raise InvalidArgument(f"{field}.trust", "must be a number from 0 to 1")

    def document_text(self, field: str, content: Content) -> None:
        """Check the text of a document, which may be longer than that of other items."""
        if not isinstance(content, TextPart) or not content.text:
            raise InvalidArgument(f"{field}.text", "is required")
        self.size(f"{field}.text", len(content.text.encode()), "document_bytes_max")

    def file_text(self, field: str, content: Content) -> None:
        """Check the text of a file, which may be empty."""
        if not isinstance(content, TextPart):
            raise InvalidArgument(f"{field}.text", "is required")
        self.size(f"{field}.text", len(content.text.encode()), "file_bytes_max")

    def expiry(self, field: str, expire_us: int | None, ttl_us: int | None, now_us: int) -> None:
        """Check an expiry time or time to live."""
        if ttl_us is not None:
            if ttl_us <= 0:
                raise InvalidArgument(f"{field}.ttl", "must be positive")
            if expire_us is not None:
                raise InvalidArgument(f"{field}.ttl", "cannot be given together with expire_time")
        if expire_us is not None and expire_us <= now_us:
            raise InvalidArgument(f"{field}.expire_time", "must be in the future")

    def content(self, field: str, content: Content) -> None:
        """Check the content of an item."""
        if isinstance(content, ChatMessage):
            self._message(f"{field}.chat_message", content)
            return
        if isinstance(content, TextPart) and not content.text:
            raise InvalidArgument(f"{field}.text", "is empty")
        self._piece(field, content)

    def _message(self, field: str, message: ChatMessage) -> None:
        self.name(f"{field}.message_id", message.message_id, self.limits.name_bytes_max, required=False)
        self.name(f"{field}.name", message.name or "", self.limits.name_bytes_max, required=False)
        for name, text in zip(("provider", "id"), message.model or (), strict=False):
            self.name(f"{field}.model.{name}", text, self.limits.name_bytes_max, required=False)
        if len(message.parts) > self.limits.parts_max:
            raise InvalidArgument(f"{field}.parts", f"has more than {self.limits.parts_max} entries")
        for at, part in enumerate(message.parts):
            self._piece(f"{field}.parts[{at}]", part)

    def _piece(self, field: str, part: Part) -> None:
        """Check a part, or a content of the same kind."""
        match part:
            case TextPart():
                self.text(f"{field}.text", part.text)
            case DataPart():
                self.encoded(f"{field}.data", part.data)
            case BinaryPart():
                self.size(f"{field}.binary.content", len(part.content), "binary_bytes_max")
                for name, value in (
                    ("mime_type", part.mime_type),
                    ("name", part.name or ""),
                    ("url", part.url or ""),
                ):
                    self.text(f"{field}.binary.{name}", value)
            case ToolCallPart():
                self._tool_names(f"{field}.tool_call", part.tool_call_id, part.name)
                self.encoded(f"{field}.tool_call.arguments", part.arguments)
            case ToolCallResult():
                self._tool_names(f"{field}.tool_call_result", part.tool_call_id, part.name)
                result = None if part.result is msgspec.UNSET else part.result
                self.encoded(f"{field}.tool_call_result.result", result)

    def _tool_names(self, field: str, tool_call_id: str, name: str) -> None:
        self.name(f"{field}.tool_call_id", tool_call_id, self.limits.name_bytes_max, required=False)
        self.name(f"{field}.name", name, self.limits.name_bytes_max, required=False)


def _no_nul(field: str, value: str) -> None:
    """Reject U+0000: names are stored in text columns, and not every database accepts it there."""
    if "\0" in value:
        raise InvalidArgument(field, "may not contain U+0000")


def _depth(field: str, value: Json) -> int:
    """Return the depth of a value. Raises InvalidArgument if a number is not finite."""
    levels = depth(value)
    if levels < 0:
        raise InvalidArgument(field, "contains a number that is not finite")
    return levels
