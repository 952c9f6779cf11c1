"""Searches fragments of documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from memory_service.data_model import ItemKind, RetrieveMode
from memory_service.domain.checks import Checks
from memory_service.domain.documents import DOCUMENT_TAG, Document, Fragment, document_of, fragment_of
from memory_service.domain.embedding import Degradation
from memory_service.domain.knowledge import fragment_bytes
from memory_service.domain.packing import MISSES_MAX, Budget
from memory_service.domain.page_tokens import PageTokens
from memory_service.domain.ranking import Shares
from memory_service.domain.retrieval import Retrieval
from memory_service.domain.retrieve_options import Page, RetrieveOptions, Selection
from memory_service.errors import InvalidArgument
from memory_service.runtime.clock import now_us
from memory_service.store import Store

_DEFAULT_LIMIT = 5
_RESULT_BYTES = 400
"""Approximate size of an explanation and a score."""


@dataclass(slots=True)
class FragmentQuery:
    """The options of a search, as in the proto."""

    query: str
    selection: Selection
    limit: int | None = None
    document_ids: Sequence[str] = ()
    min_score: float | None = None
    mode: RetrieveMode = RetrieveMode.UNSPECIFIED
    max_tokens: int | None = None
    explain: bool = False
    page_size: int = 0
    page_token: str = ""


@dataclass(slots=True)
class FragmentHit:
    """A fragment that was found, with its document."""

    fragment: Fragment
    document: Document
    score: float
    shares: Shares | None


@dataclass(slots=True)
class FragmentPage:
    """A page of hits, the best first."""

    hits: list[FragmentHit]
    revision: int
    degraded: Sequence[Degradation] = ()
    next_page_token: str = ""


@dataclass(slots=True)
class _Place:
    """Where a page begins: at a page of the retrieval, after this many of its results."""

    inner_token: str = ""
    passed: int = 0
    tokens: int = 0
    """Tokens of the previous pages."""
    missed: int = 0
    """Fragments of the previous pages that did not fit."""


class FragmentSearch:
    """Searches fragments. `document_bytes` returns the size of a document in a response without its text."""

    def __init__(
        self,
        store: Store,
        retrieval: Retrieval,
        checks: Checks,
        tokens: PageTokens,
        document_bytes: Callable[[Document], int],
    ) -> None:
        self._store = store
        self._retrieval = retrieval
        self._checks = checks
        self._tokens = tokens
        self._document_bytes = document_bytes

    async def search(self, namespace: str, query: FragmentQuery) -> FragmentPage:
        """Return a page of the fragments that match a text best, without those whose document is gone."""
        self._check(namespace, query)
        selection = query.selection
        selection.kinds = frozenset({ItemKind.FRAGMENT})
        selection.any_tag = tuple((DOCUMENT_TAG, one) for one in dict.fromkeys(query.document_ids))
        limit = _DEFAULT_LIMIT if query.limit is None else query.limit
        scope = (
            "found", namespace, query.query, limit, query.min_score, int(query.mode), query.max_tokens,
            *selection.scope(),
        )  # fmt: skip
        place = self._place(scope, query.page_token)
        options = RetrieveOptions(
            selection, limit, query.query, min_score=query.min_score, mode=query.mode, explain=query.explain,
            page_size=query.page_size, page_token=place.inner_token,
        )  # fmt: skip
        page = await self._retrieval.retrieve(namespace, options)
        hits = await self._hits(namespace, page, selection)
        taken, rest = self._cut(hits[place.passed :], place, query.max_tokens, page.next_page_token)
        token = (
            self._tokens.make(scope, [rest.inner_token, rest.passed, rest.tokens, rest.missed])
            if rest
            else ""
        )
        return FragmentPage(taken, page.revision, page.degraded, token)

    def _check(self, namespace: str, query: FragmentQuery) -> None:
        checks = self._checks
        checks.namespace(namespace)
        if not query.query:
            raise InvalidArgument("query", "is required")
        checks.text("query", query.query)
        if query.limit is not None and query.limit < -1:
            raise InvalidArgument("limit", "must be -1 (no limit), 0 or more")
        checks.size("document_ids", len(query.document_ids), "search_documents_max")
        for at, document_id in enumerate(query.document_ids):
            checks.item_id(document_id, f"document_ids[{at}]")
        self._retrieval.check_selection(query.selection)
        if query.min_score is not None and query.min_score != query.min_score:
            raise InvalidArgument("min_score", "is not a number")
        if query.max_tokens is not None and query.max_tokens <= 0:
            raise InvalidArgument("max_tokens", "must be positive")
        checks.count("page_size", query.page_size)

    def _place(self, scope: tuple[object, ...], token: str) -> _Place:
        if not token:
            return _Place()
        inner, passed, tokens, missed = self._tokens.read(scope, token)
        return _Place(str(inner), int(passed), int(tokens), int(missed))

    async def _hits(self, namespace: str, page: Page, selection: Selection) -> list[FragmentHit | None]:
        """Return the hits of a page; None for a fragment whose document is gone, was replaced, or is less
        trusted than required.
        """
        fragments = [fragment_of(item, now_us()) for item in page.items]
        wanted = dict.fromkeys(fragment.kept.document_id for fragment in fragments if fragment)
        items = await self._store.get_items(namespace, list(wanted))
        documents = {one: document_of(item, now_us()) for one, item in items.items()}
        hits: list[FragmentHit | None] = []
        for fragment, score, shares in zip_longest(fragments, page.scores, page.shares):
            document = documents.get(fragment.kept.document_id) if fragment else None
            if fragment and document and fragment.is_of(document) and selection.trusts(document.item):
                hits.append(FragmentHit(fragment, document, score, shares))
            else:
                hits.append(None)
        return hits

    def _cut(
        self, hits: Sequence[FragmentHit | None], place: _Place, max_tokens: int | None, next_inner: str
    ) -> tuple[list[FragmentHit], _Place | None]:
        """Return the hits that fit into the page and the budget, and where the next page begins."""
        taken: list[FragmentHit] = []
        budget, missed, nbytes = Budget(max_tokens, place.tokens), place.missed, 0
        # Measure each document once: many of its fragments may be found, and it may be large.
        sizes: dict[str, int] = {}
        for at, hit in enumerate(hits):
            if hit is None:
                continue
            texts = [(hit.fragment.item.position, hit.fragment.text)]
            if not budget.fits(texts):
                missed += 1
                if missed >= MISSES_MAX:
                    return taken, None
                continue
            document_id = hit.document.item.id
            if document_id not in sizes:
                sizes[document_id] = self._document_bytes(hit.document)
            nbytes += fragment_bytes(hit.fragment) + sizes[document_id] + _RESULT_BYTES
            if taken and nbytes > self._checks.limits.page_bytes_max:
                return taken, _Place(place.inner_token, place.passed + at, budget.used, missed)
            budget.take(texts)
            taken.append(hit)
        return taken, _Place(next_inner, 0, budget.used, missed) if next_inner else None
