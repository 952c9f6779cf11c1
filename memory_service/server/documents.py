"""Conversion of documents and fragments from and to protobuf."""

from __future__ import annotations

from memory_service.domain.documents import Document, DocumentDraft, Fragment
from memory_service.domain.splitting import Split
from memory_service.server.provenance import fill_provenance
from memory_service.server.values import fill_struct, fill_time, to_dict, to_labels, to_us, ttl_us
from memory_service.v1 import knowledge_pb2 as pb


def to_document_draft(field: str, document: pb.Document) -> DocumentDraft:
    """Return the document of a request. Fields that the server sets are ignored."""
    draft = DocumentDraft(
        document.text,
        document.id,
        document.title,
        document.source,
        session_id=document.session_id,
        labels=to_labels(f"{field}.labels", document.labels),
        nbytes=document.ByteSize(),
    )
    if document.HasField("metadata"):
        draft.metadata = to_dict(f"{field}.metadata", document.metadata)
    if document.HasField("create_time"):
        draft.create_us = to_us(f"{field}.create_time", document.create_time)
    if document.HasField("expire_time"):
        draft.expire_us = to_us(f"{field}.expire_time", document.expire_time)
    if document.HasField("ttl"):
        draft.ttl_us = ttl_us(f"{field}.ttl", document.ttl)
    return draft


def to_split(options: pb.SplitOptions, default: Split) -> Split:
    """Return how to split a text."""
    return default.changed(
        options.max_characters if options.HasField("max_characters") else None,
        options.overlap_characters if options.HasField("overlap_characters") else None,
        "split",
    )


def fill_document(
    target: pb.Document, document: Document, *, with_text: bool = False, with_preview: bool = False
) -> None:
    """Set a protobuf document."""
    item, kept = document.item, document.kept
    target.id, target.session_id, target.revision = item.id, item.session_id, item.revision
    target.title, target.source, target.source_item_id = kept.title, kept.source, kept.source_item_id
    target.version, target.fragment_count = kept.version, kept.fragment_count
    target.size_bytes = len(document.text.encode())
    target.labels.update(item.labels)
    if item.metadata is not None:
        fill_struct(target.metadata, item.metadata)
    fill_time(target.create_time, item.create_us)
    fill_time(target.update_time, item.update_us)
    if item.expire_us is not None:
        fill_time(target.expire_time, item.expire_us)
    if with_text:
        target.text = document.text
    if with_preview:
        target.preview = document.preview
    fill_provenance(target.provenance, item)


def document_bytes(document: Document) -> int:
    """Return the size of a document in a response without its text."""
    message = pb.Document()
    fill_document(message, document, with_preview=True)
    return message.ByteSize()


def fill_fragment(target: pb.Fragment, fragment: Fragment) -> None:
    """Set a protobuf fragment."""
    kept = fragment.kept
    target.id, target.text = fragment.item.id, fragment.text
    target.document_id, target.document_version = kept.document_id, kept.document_version
    target.index = kept.index
    target.start_offset, target.end_offset = kept.start, kept.end
    target.start_byte, target.end_byte = kept.start_byte, kept.end_byte
    fill_time(target.create_time, fragment.item.update_us)
    fill_provenance(target.provenance, fragment.item)
