"""Conversion of retrievals: options and results."""

from __future__ import annotations

from memory_service.domain.neighbours import Window
from memory_service.domain.query_options import NO_OPTIONS, QueryOptions
from memory_service.domain.ranking import ScoreWeights
from memory_service.domain.retrieve_options import Page, RetrieveOptions
from memory_service.server.decisions import fill_explanation
from memory_service.server.items import fill_item, to_vector
from memory_service.server.requests import optional, to_mode
from memory_service.server.selections import to_trusted_selection
from memory_service.server.values import duration_us, to_us
from memory_service.v1 import memory_pb2 as pb


def to_retrieve_options(request: pb.RetrieveRequest) -> RetrieveOptions:
    """Return the options of a request. Raises InvalidArgument."""
    message = request.options
    mode = to_mode("options.mode", message.mode)
    return RetrieveOptions(
        to_trusted_selection(message, "options."),
        optional(message, "limit"),
        message.query_text,
        to_vector(message.query_embedding) if message.HasField("query_embedding") else None,
        optional(message, "min_score"),
        mode,
        message.context_window,
        message.explain,
        message.include_embedding,
        message.page_size,
        message.page_token,
        to_us("options.now", message.now) if message.HasField("now") else None,
        _weights(message.weights) if message.HasField("weights") else None,
        optional(message, "max_tokens"),
        message.rerank,
        message.record_usage,
        message.order_by,
        message.skip,
        _beyond(request, message),
    )


def _beyond(request: pb.RetrieveRequest, message: pb.RetrieveOptions) -> QueryOptions:
    """Return the options that are rarely used; one value if none is."""
    min_relevance = optional(message, "min_relevance")
    neighbour_weight = optional(message, "neighbour_weight")
    rare = (message.queries, request.namespaces, message.time_zone, message.whole_exchanges)
    given = any(rare) or message.refresh_ttl
    if not given and min_relevance is None and neighbour_weight is None:
        return NO_OPTIONS
    return QueryOptions(
        tuple(message.queries),
        tuple(request.namespaces),
        min_relevance,
        neighbour_weight,
        message.time_zone,
        message.whole_exchanges,
        message.refresh_ttl,
    )


def _weights(message: pb.ScoreWeights) -> ScoreWeights:
    default = ScoreWeights()
    return ScoreWeights(
        message.lexical if message.HasField("lexical") else default.lexical,
        message.vector if message.HasField("vector") else default.vector,
        message.recency,
        duration_us("options.weights.recency_half_life", message.recency_half_life)
        if message.HasField("recency_half_life")
        else default.recency_half_life_us,
        message.importance,
        message.usage,
    )


def fill_results(response: pb.RetrieveResponse, page: Page, options: RetrieveOptions) -> None:
    """Set the results of a response."""
    for at, item in enumerate(page.items):
        result = response.results.add()
        fill_item(result.item, item, include_embedding=options.include_embedding)
        if page.scores:
            result.score, result.relevance = page.scores[at], page.relevances[at]
        if page.namespaces:
            result.namespace = page.namespaces[at]
        if page.matched:
            result.matched_queries.extend(page.matched[at])
        if page.windows:
            _fill_window(result, page.windows[at])
        if options.explain:
            fill_explanation(result.explanation, page.shares[at] if page.shares else ())


def _fill_window(result: pb.RetrieveResult, window: Window) -> None:
    for neighbours, side in ((window.before, result.before), (window.after, result.after)):
        for neighbour in neighbours:
            fill_item(side.add(), neighbour)
