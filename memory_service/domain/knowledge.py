"""Documents: stored whole, searched by their fragments."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from memory_service.data_model import Item, ItemKind, OnDuplicate, Receipt, RequestKey, Since
from memory_service.domain.answers import live_versions
from memory_service.domain.checks import Checks
from memory_service.domain.conflicts import TRIES, pause_after
from memory_service.domain.documents import (
    DOCUMENT_TAG,
    Document,
    DocumentDraft,
    Fragment,
    document_of,
    document_of_stamps,
    drafts_of,
    fragment_of,
)
from memory_service.domain.embedding import Degradation, TextEmbedding
from memory_service.domain.filter_language import FilterLanguage
from memory_service.domain.ids import new_id
from memory_service.domain.item_writing import Complete, degraded_then
from memory_service.domain.items import Items
from memory_service.domain.page_tokens import PageTokens
from memory_service.domain.provenance import provenance_again, provenance_bytes
from memory_service.domain.retrieval import Retrieval
from memory_service.domain.retrieve_options import Selection
from memory_service.domain.screening import Screening
from memory_service.domain.splitting import Piece, Split, split_text
from memory_service.errors import AlreadyExists, Conflict, InvalidArgument, NotFound
from memory_service.runtime.clock import now_us
from memory_service.store import Store

_READS = 10
_LOADED_AT_ONCE = 500
_FRAGMENTS = frozenset({ItemKind.FRAGMENT})
_FRAGMENT_BYTES = 200
"""Approximate size of a fragment in an answer, without its text."""


@dataclass(slots=True)
class WrittenDocument:
    """A document that was written. The answer to a repeated request has no fragments."""

    document: Document
    fragments: list[Fragment]
    receipt: Receipt
    degraded: Sequence[Degradation] = ()


@dataclass(slots=True)
class FoundDocument:
    """A document with a page of its fragments."""

    document: Document
    revision: int
    fragments: list[Fragment] = field(default_factory=list)
    next_page_token: str = ""


@dataclass(slots=True)
class DocumentPage:
    """A page of documents."""

    documents: list[Document]
    revision: int
    next_page_token: str = ""


class Knowledge:
    """Writes, reads and lists documents.

    `document_bytes` returns a document's size in a response without its text.
    """

    def __init__(
        self,
        store: Store,
        embedding: TextEmbedding,
        checks: Checks,
        filters: FilterLanguage,
        tokens: PageTokens,
        screening: Screening,
        document_bytes: Callable[[Document], int],
        split: Split | None = None,
    ) -> None:
        self._store = store
        self._embedding = embedding
        self._checks = checks
        self._tokens = tokens
        self._document_bytes = document_bytes
        # Size pages by what is sent, which is less than the whole text of a document.
        self.retrieval = Retrieval(store, embedding, checks, filters, tokens, self._answer_bytes)
        self._items = Items(store, embedding, self.retrieval, checks, tokens, screening)
        self.split = split or Split()
        self._turns: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    def _answer_bytes(self, item: Item) -> int:
        if document := document_of(item, 0):
            return self._document_bytes(document)
        fragment = fragment_of(item, 0)
        return fragment_bytes(fragment) if fragment else 0

    def _turn(self, namespace: str, document_id: str) -> asyncio.Lock:
        """Return the lock for changes of a document.

        It only saves work: of concurrent writers of one document, all but one would split and embed a text in
        vain. Conditional writes keep them apart, also across servers.
        """
        return self._turns.setdefault((namespace, document_id), asyncio.Lock())

    # --- writing ------------------------------------------------------------------------------

    async def add(
        self,
        namespace: str,
        draft: DocumentDraft,
        split: Split,
        *,
        replace: bool = False,
        expected_version: int | None = None,
        request: RequestKey | None = None,
    ) -> WrittenDocument:
        """Write a document with its fragments, all or none. Raises AlreadyExists, Conflict."""
        self._check(namespace, request)
        self._check_draft(draft)
        if expected_version is not None:
            self._checks.count("expected_version", expected_version)
            if not replace:
                raise InvalidArgument("expected_version", "is only valid with replace")
        async with self._turn(namespace, draft.id or new_id(now_us())):
            if request and (receipt := await self._store.find_receipt(namespace, request)):
                return await self._repeated(namespace, draft, receipt)
            pieces = await self.pieces(draft, split, "document.text", "document.labels")
            if not replace:
                return await self.write_new(namespace, draft, pieces, request)
            return await self._replace(namespace, draft, pieces, expected_version, request)

    def _check(self, namespace: str, request: RequestKey | None = None) -> None:
        self._checks.namespace(namespace)
        if request is not None:
            self._checks.request_id(request.id)

    def _check_draft(self, draft: DocumentDraft) -> None:
        checks = self._checks
        checks.item_id(draft.id, "document.id", required=False)
        if not draft.text:
            raise InvalidArgument("document.text", "is required")
        checks.size("document.text", len(draft.text.encode()), "document_bytes_max")
        checks.size("document.title", len(draft.title.encode()), "document_title_bytes_max")
        checks.size("document.source", len(draft.source.encode()), "document_source_bytes_max")

    async def pieces(self, draft: DocumentDraft, split: Split, text: str, labels: str) -> list[Piece]:
        """Return the pieces of a document, one at least. Each will have the labels of the document.

        `text` and `labels` name the fields in errors. Raises InvalidArgument and LimitExceeded.
        """
        pieces = await split_text(draft.text, split, self._checks.limits.document_fragments_max, text)
        if not pieces:
            raise InvalidArgument(text, "contains only white space")
        nbytes = sum(len(key.encode()) + len(value.encode()) for key, value in draft.labels.items())
        self._checks.size(labels, nbytes * len(pieces), "document_labels_bytes_max")
        return pieces

    async def write_new(
        self,
        namespace: str,
        draft: DocumentDraft,
        pieces: Sequence[Piece],
        request: RequestKey | None,
        complete: Complete | None = None,
    ) -> WrittenDocument:
        """Write a validated document. Raises AlreadyExists."""
        try:
            return await self._write(namespace, draft, pieces, None, request, complete=complete)
        except AlreadyExists as error:
            raise AlreadyExists.document(namespace, draft.id) from error

    async def _replace(
        self,
        namespace: str,
        draft: DocumentDraft,
        pieces: Sequence[Piece],
        expected_version: int | None,
        request: RequestKey | None,
    ) -> WrittenDocument:
        for attempt in range(TRIES):
            found = await self._store.get_items(namespace, [draft.id]) if draft.id else {}
            current = document_of(found.get(draft.id), now_us())
            version = current.kept.version if current else 0
            if current is None and draft.id in found and not found[draft.id].expired(now_us()):
                raise AlreadyExists.document(namespace, draft.id)
            if expected_version is not None and expected_version != version:
                raise Conflict.document_version(draft.id, expected_version, version)
            try:
                return await self._write(namespace, draft, pieces, current, request, replace=True)
            except Conflict as conflict:
                # It was imported, reset or expired in between.
                last = conflict
            await pause_after(attempt)
        raise last

    async def _write(
        self,
        namespace: str,
        draft: DocumentDraft,
        pieces: Sequence[Piece],
        current: Document | None,
        request: RequestKey | None,
        *,
        replace: bool = False,
        complete: Complete | None = None,
    ) -> WrittenDocument:
        """Replace the current version of a document, if there is one, in one step."""
        revision = current.item.revision if current else 0
        drafts = drafts_of(
            draft, pieces,
            document_id=draft.id or new_id(now_us()),
            version=current.kept.version + 1 if current else 1,
            expected_revision=revision if replace else None,
        )  # fmt: skip
        added = await self._items.add(
            namespace,
            drafts,
            fields=["document", *(f"document.fragments[{at}]" for at in range(len(pieces)))],
            removals=await self._fragment_ids(namespace, current.item.id) if current else (),
            on_duplicate=OnDuplicate.REPLACE if replace else OnDuplicate.FAIL,
            request=request,
            bounded=True,
            complete=complete,
        )
        if added.receipt.replayed:
            return await self._repeated(namespace, draft, added.receipt)
        document = document_of(added.items[0], 0)
        fragments = [fragment_of(item, 0) for item in added.items[1:]]
        assert document is not None
        return WrittenDocument(document, [f for f in fragments if f], added.receipt, added.degraded)

    async def _repeated(self, namespace: str, draft: DocumentDraft, receipt: Receipt) -> WrittenDocument:
        document = await self.as_told(namespace, draft, receipt)
        return WrittenDocument(document, [], receipt, degraded_then(receipt))

    async def as_told(self, namespace: str, draft: DocumentDraft, receipt: Receipt) -> Document:
        """Return the document that an earlier, equal request wrote, completed from its receipt."""
        stamp, writing = next(receipt.written())
        version = stamp.id, stamp.revision
        stored = (await live_versions(self._store, namespace, [version])).get(version)
        # The source of a deleted version is unknown.
        provenance = provenance_again(None, writing) if stored is None else stored.provenance
        return document_of_stamps(draft, receipt.items, provenance)

    async def delete(
        self,
        namespace: str,
        document_id: str,
        *,
        expected_version: int | None,
        keep_derived: bool,
        request: RequestKey | None,
    ) -> Receipt:
        """Remove a document with its fragments, and with what was made only from these.

        Raises NotFound, Conflict.
        """
        self._check(namespace, request)
        self._checks.item_id(document_id)
        if expected_version is not None:
            self._checks.count("expected_version", expected_version)
        async with self._turn(namespace, document_id):
            for attempt in range(TRIES):
                receipt = await self._store.find_receipt(namespace, request) if request else None
                if receipt is None:
                    info = await self._store.namespace(namespace)
                    unchanged = Since(info.revision if info else 0, ids=frozenset({document_id}))
                    version = await self._version_to_delete(namespace, document_id)
                    if expected_version is not None and expected_version != version:
                        raise Conflict.document_version(document_id, expected_version, version)
                    removals = [document_id, *await self._fragment_ids(namespace, document_id)]
                    try:
                        removed = await self._items.add(
                            namespace,
                            (),
                            fields=(),
                            removals=removals,
                            derived=not keep_derived,
                            request=request,
                            unchanged=unchanged,
                        )
                    except Conflict as conflict:
                        last = conflict
                        await pause_after(attempt)
                        continue
                    receipt = removed.receipt
                return receipt
            raise last

    async def _version_to_delete(self, namespace: str, document_id: str) -> int:
        """Return the version of a document, 0 if it cannot be read as one. Raises NotFound."""
        item = (await self._store.get_items(namespace, [document_id])).get(document_id)
        if item is None or item.kind is not ItemKind.DOCUMENT or item.expired(now_us()):
            raise NotFound.document(namespace, document_id)
        document = document_of(item, now_us())
        return document.kept.version if document else 0

    async def _fragment_ids(self, namespace: str, document_id: str) -> list[str]:
        """Return the ids of all existing fragments of a document.

        If an import replaced it, fragments of the version before are included; what an import says of its
        fragments need not be true.
        """
        kept = Selection(kinds=_FRAGMENTS, tags=((DOCUMENT_TAG, document_id),)).to_filter()
        reading = await self._store.read(namespace)
        positions = await reading.scan(kept, -1, newest=False)
        ids: list[str] = []
        for start in range(0, len(positions), _LOADED_AT_ONCE):
            items = await reading.load_items(positions[start : start + _LOADED_AT_ONCE])
            ids += [item.id for item in items if item is not None]
        return ids

    # --- reading ------------------------------------------------------------------------------

    async def document(self, namespace: str, document_id: str) -> Document:
        """Return a document with its text. Raises NotFound."""
        found = await self._store.get_items(namespace, [document_id])
        document = document_of(found.get(document_id), now_us())
        if document is None:
            raise NotFound.document(namespace, document_id)
        return document

    async def get(
        self, namespace: str, document_id: str, *, include_fragments: bool, page_size: int, page_token: str
    ) -> FoundDocument:
        """Return a document and, on request, a page of its fragments. Raises NotFound."""
        self._check(namespace)
        self._checks.item_id(document_id)
        size = self._checks.page_size(page_size)
        for _ in range(_READS):
            document = await self.document(namespace, document_id)
            scope = ("fragments", namespace, document_id, document.kept.fragments)
            first = int(self._tokens.read(scope, page_token)[0]) if page_token else 0
            info = await self._store.namespace(namespace)
            page = FoundDocument(document, info.revision if info else 0)
            if not include_fragments:
                return page
            wanted = document.fragment_ids(first, first + size)
            found = await self.fragments(namespace, wanted)
            if len(found) == len(wanted):
                break
            # It was replaced in between, or an import brought only some of its fragments.
        page.fragments = self._fitting(document, found, with_text=not first)
        last = page.fragments[-1].kept.index + 1 if page.fragments else first + len(wanted)
        if last < document.kept.fragment_count:
            page.next_page_token = self._tokens.make(scope, [last])
        return page

    async def fragments(self, namespace: str, ids: Sequence[str]) -> list[Fragment]:
        """Return the existing fragments with these ids, in the order of the ids."""
        items = await self._store.get_items(namespace, ids)
        found = (fragment_of(items.get(one), now_us()) for one in ids)
        return [fragment for fragment in found if fragment is not None]

    def _fitting(self, document: Document, found: list[Fragment], *, with_text: bool) -> list[Fragment]:
        """Return the fragments that fit into a page with their document, one at least."""
        nbytes = self._document_bytes(document)
        if with_text:
            nbytes += len(document.text.encode())
        for at, fragment in enumerate(found):
            nbytes += fragment_bytes(fragment)
            if at and nbytes > self._checks.limits.page_bytes_max:
                return found[:at]
        return found

    async def list_documents(
        self, namespace: str, selection: Selection, *, page_size: int, page_token: str, newest_first: bool
    ) -> DocumentPage:
        """Return a page of documents in the order in which they were added, or in reverse."""
        selection.kinds = frozenset({ItemKind.DOCUMENT})
        page = await self._items.list_items(
            namespace, selection, page_size=page_size, page_token=page_token, newest_first=newest_first,
            include_embedding=False,
        )  # fmt: skip
        documents = [document_of(item, now_us()) for item in page.items]
        return DocumentPage([d for d in documents if d], page.revision, page.next_page_token)


def fragment_bytes(fragment: Fragment) -> int:
    """Return the approximate size of a fragment in an answer."""
    kept = len(fragment.kept.document_id) + provenance_bytes(fragment.item.provenance)
    return len(fragment.text.encode()) + _FRAGMENT_BYTES + kept
