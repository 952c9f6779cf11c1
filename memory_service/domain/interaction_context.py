"""Finds the interactions that an agent should have in its context."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from memory_service.data_model import Item, ItemKind, NamespaceInfo, RetrieveMode, Vector
from memory_service.domain.checks import Checks
from memory_service.domain.embedding import Degradation, TextEmbedding
from memory_service.domain.interaction_items import PARTY_TAG, SESSION_TAG, text_of
from memory_service.domain.interactions import SENDER_BYTES_MAX, Interaction, Interactions
from memory_service.domain.packing import Budget
from memory_service.domain.ranking import Shares
from memory_service.domain.retrieval import Retrieval
from memory_service.domain.retrieve_options import RetrieveOptions, Selection
from memory_service.errors import FailedPrecondition, InvalidArgument
from memory_service.store import Store

REFLECTION_MARK = "SYSTEM REFLECTION: "
_INTERACTIONS_DEFAULT = 5
_REFLECTIONS_DEFAULT = 2
_LIMIT_MAX = 100
_SAID = frozenset({ItemKind.MESSAGE, ItemKind.RESPONSE})
_THOUGHT = frozenset({ItemKind.REFLECTION})


@dataclass(slots=True)
class ContextOptions:
    """The options of the request; the selection contains session, labels and times."""

    query: str
    selection: Selection
    interaction_limit: int | None = None
    reflection_limit: int | None = None
    sender: str = ""
    exclude_ids: Sequence[str] = ()
    min_score: float | None = None
    mode: RetrieveMode = RetrieveMode.UNSPECIFIED
    max_tokens: int | None = None
    explain: bool = False


@dataclass(slots=True)
class Fitting:
    """A matching interaction, its text for a prompt, and an explanation of its score if requested."""

    interaction: Interaction
    text: str
    score: float
    shares: Shares


@dataclass(slots=True)
class Context:
    """The matches: messages and responses, then reflections, each the best first."""

    results: list[Fitting] = field(default_factory=list)
    token_count: int = 0
    revision: int = 0
    degraded: list[Degradation] = field(default_factory=list)


@dataclass(slots=True)
class _Search:
    """One of the two searches."""

    selection: Selection
    limit: int


class InteractionContext:
    """Finds what matters for the next message. `item_bytes` is the size of an item in an answer."""

    def __init__(
        self,
        store: Store,
        embedding: TextEmbedding,
        retrieval: Retrieval,
        interactions: Interactions,
        checks: Checks,
        item_bytes: Callable[[Item], int],
    ) -> None:
        self._store = store
        self._embedding = embedding
        self._retrieval = retrieval
        self._interactions = interactions
        self._checks = checks
        self._item_bytes = item_bytes

    async def relevant(self, namespace: str, options: ContextOptions) -> Context:
        """Return the best matching messages and responses, then the best matching reflections."""
        self._check(namespace, options)
        context = Context()
        base = await self._prepared(namespace, options, context)
        excluded = frozenset(options.exclude_ids)
        lists = [
            await self._found(namespace, search, base, excluded, context) for search in _searches(options)
        ]
        self._pack(context, lists, options.max_tokens)
        if not context.revision and (info := await self._store.namespace(namespace)):
            context.revision = info.revision
        return context

    def _check(self, namespace: str, options: ContextOptions) -> None:
        checks = self._checks
        checks.namespace(namespace)
        self._interactions.check_text("query", options.query)
        for name in ("interaction_limit", "reflection_limit"):
            limit = getattr(options, name)
            if limit is not None and not 0 <= limit <= _LIMIT_MAX:
                raise InvalidArgument(name, f"must be 0 to {_LIMIT_MAX}")
        checks.name("sender", options.sender, SENDER_BYTES_MAX, required=False)
        self._interactions.check_ids("exclude_ids", options.exclude_ids)
        self._retrieval.check_selection(options.selection)
        if options.min_score is not None and options.min_score != options.min_score:
            raise InvalidArgument("min_score", "is not a number")
        if options.max_tokens is not None and options.max_tokens <= 0:
            raise InvalidArgument("max_tokens", "must be positive")

    async def _prepared(self, namespace: str, options: ContextOptions, context: Context) -> RetrieveOptions:
        """Return the options that both searches share; the query is embedded once for both."""
        base = RetrieveOptions(
            options.selection,
            query_text=options.query,
            min_score=options.min_score,
            mode=options.mode,
            explain=options.explain,
        )
        if options.mode is RetrieveMode.LEXICAL:
            return base
        info = await self._store.namespace(namespace)
        if self._embedding.obstacle(info) is not None:
            return base  # Each search reports it itself.
        base.query_embedding, trouble = await self._embed(info, options)
        if trouble is not None:
            base.mode = RetrieveMode.LEXICAL
            context.degraded.append(trouble)
        return base

    async def _embed(
        self, info: NamespaceInfo | None, options: ContextOptions
    ) -> tuple[Vector | None, Degradation | None]:
        vector, trouble = await self._embedding.query(info, options.query)
        if trouble is not None and options.mode is RetrieveMode.VECTOR:
            raise FailedPrecondition.embedder_required(f"mode VECTOR needs a vector, but {trouble.message}")
        return vector, trouble

    async def _found(
        self,
        namespace: str,
        search: _Search,
        base: RetrieveOptions,
        excluded: frozenset[str],
        context: Context,
    ) -> list[Fitting]:
        """Return the best hits of a search that are not excluded."""
        if not search.limit:
            return []
        # This many more suffice even if all excluded ones are among the best.
        ask = search.limit + len(excluded)
        options = msgspec.structs.replace(base, selection=search.selection, limit=ask)
        found: list[Fitting] = []
        while True:
            page = await self._retrieval.retrieve(namespace, options)
            context.revision = context.revision or page.revision
            told = {each.reason for each in context.degraded}
            context.degraded += [each for each in page.degraded if each.reason not in told]
            kept = [at for at, item in enumerate(page.items) if item.id not in excluded]
            interactions = await self._interactions.with_originals(namespace, [page.items[at] for at in kept])
            for said in interactions:
                if said.original is not None and not base.selection.trusts(said.original):
                    said.original = None
            found += [
                Fitting(
                    said, _prompt_text(said.item), page.scores[at], page.shares[at] if page.shares else ()
                )
                for at, said in zip(kept, interactions, strict=True)
            ]
            options.page_token = page.next_page_token
            if len(found) >= search.limit or not page.next_page_token:
                return found[: search.limit]

    def _pack(self, context: Context, lists: Sequence[Sequence[Fitting]], max_tokens: int | None) -> None:
        """Keep what fits, taking turns between the lists, from their tops down."""
        room = self._checks.limits.page_bytes_max
        places = sorted(
            ((at + 1) / len(found), number, at)
            for number, found in enumerate(lists)
            for at in range(len(found))
        )
        budget = Budget(max_tokens)
        taken: list[list[Fitting]] = [[] for _ in lists]
        for _, number, at in places:
            fitting = lists[number][at]
            texts = [(fitting.interaction.item.position, fitting.text)]
            nbytes = self._nbytes(fitting)
            if nbytes <= room and budget.fits(texts):
                budget.take(texts)
                room -= nbytes
                taken[number].append(fitting)
        context.token_count = budget.used
        for found in taken:
            context.results += found

    def _nbytes(self, fitting: Fitting) -> int:
        said = [fitting.interaction.item]
        if fitting.interaction.original is not None:
            said.append(fitting.interaction.original)
        # The text for a prompt is sent besides the items it is made of.
        return sum(map(self._item_bytes, said)) + len(fitting.text.encode())


def _searches(options: ContextOptions) -> list[_Search]:
    asked = options.selection
    said = msgspec.structs.replace(asked, kinds=_SAID)
    if options.sender:
        said.tags = ((PARTY_TAG, options.sender),)
    thought = msgspec.structs.replace(asked, kinds=_THOUGHT)
    if asked.session_id:
        # Those of this session, and those of none.
        thought.session_id = ""
        thought.any_tag = ((SESSION_TAG, asked.session_id), (SESSION_TAG, ""))
    limits = options.interaction_limit, options.reflection_limit
    defaults = _INTERACTIONS_DEFAULT, _REFLECTIONS_DEFAULT
    return [
        _Search(selection, default if limit is None else limit)
        for selection, limit, default in zip((said, thought), limits, defaults, strict=True)
    ]


def _prompt_text(item: Item) -> str:
    text = text_of(item)
    return REFLECTION_MARK + text if item.kind is ItemKind.REFLECTION else text
