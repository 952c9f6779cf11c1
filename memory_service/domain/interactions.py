"""Messages to an agent, its responses, and its reflections on its own work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from memory_service.data_model import (
    ChatMessage,
    Facet,
    Item,
    ItemDraft,
    ItemKind,
    Json,
    ProvenanceDraft,
    Receipt,
    RequestKey,
    Role,
    TextPart,
)
from memory_service.domain.answers import live_versions
from memory_service.domain.awaited_messages import (
    Original,
    any_waits,
    message_of,
    tags_of,
    waiting,
)
from memory_service.domain.checks import Checks
from memory_service.domain.embedding import Degradation
from memory_service.domain.interaction_items import (
    CONTENT_TAG,
    DEFAULT_AGENT,
    LINK_TAG,
    PARTY_TAG,
    digest,
    link_of,
    message_facet,
    reflection_facet,
    response_facet,
    sender_of,
    text_of,
)
from memory_service.domain.interaction_pairs import Pair, pair_of
from memory_service.domain.item_writing import Remembered
from memory_service.domain.items import Items
from memory_service.domain.page_tokens import PageTokens
from memory_service.domain.retrieval import Retrieval
from memory_service.domain.retrieve_options import Selection
from memory_service.errors import InvalidArgument, NotFound
from memory_service.ordering import Ordering
from memory_service.predicates import Field, FieldName, Predicate
from memory_service.reading import Reading
from memory_service.runtime.clock import now_us
from memory_service.runtime.yielding import Part
from memory_service.store import Store

SENDER_BYTES_MAX = 256
_DEFAULT_LIMIT = 5
_IDS_MAX = 100
_LOADED_AT_ONCE = 50
_LOOKED_AT_ONCE = 16
_NEWEST = Ordering(Field(FieldName.CREATE_TIME), descending=True)
_MESSAGES = frozenset({ItemKind.MESSAGE})


@dataclass(slots=True)
class Saying:
    """An interaction to store, as the caller sent it; None or empty where the choice is the server's."""

    content: str
    sender: str
    id: str = ""
    session_id: str = ""
    create_us: int | None = None
    ttl_us: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, Json] | None = None


@dataclass(slots=True)
class Interaction:
    """A message, response or reflection; a response with the message that it answers, if any."""

    item: Item
    original: Item | None = None


@dataclass(slots=True)
class Kept:
    """What was written."""

    interaction: Interaction
    revision: int
    degraded: Sequence[Degradation] = ()


@dataclass(slots=True)
class PairPage:
    """One page of messages, the newest first."""

    pairs: list[Pair]
    revision: int
    next_page_token: str = ""


class Interactions:
    """Stores and lists interactions. `item_bytes` returns the size of an item in a response."""

    def __init__(
        self,
        store: Store,
        items: Items,
        retrieval: Retrieval,
        checks: Checks,
        tokens: PageTokens,
        item_bytes: Callable[[Item], int],
    ) -> None:
        self._store = store
        self._items = items
        self._retrieval = retrieval
        self._checks = checks
        self._tokens = tokens
        self._item_bytes = item_bytes

    # --- keeping ------------------------------------------------------------------------------

    async def keep_message(self, namespace: str, saying: Saying, request: RequestKey | None) -> Kept:
        """Write a message. Raises AlreadyExists."""
        self._check(namespace, saying, request)
        facet = message_facet(saying.sender, saying.content)
        return await self._keep(namespace, saying, Role.USER, facet, request)

    async def keep_response(
        self,
        namespace: str,
        saying: Saying,
        request: RequestKey | None,
        *,
        in_response_to: str = "",
        original: Original | None = None,
        allow_missing: bool = False,
    ) -> Kept:
        """Write a response, linked to the message of this id, or to the newest one that matches `original`;
        with `allow_missing` also to one that does not exist yet.

        Raises NotFound if there is no such message, AlreadyExists.
        """
        self._check(namespace, saying, request)
        self._checks.item_id(in_response_to, "in_response_to", required=False)
        self._check_original(in_response_to, original)
        facet = response_facet(saying.sender)
        message = None
        if not allow_missing or not await self._was_missing(namespace, request):
            message = await self._message(
                namespace, in_response_to, original, request, allow_missing=allow_missing
            )
        if message is not None:
            facet.tags[LINK_TAG], facet.tags[PARTY_TAG] = message.id, sender_of(message)
            saying.session_id = saying.session_id or message.session_id
        elif in_response_to:
            facet.tags[LINK_TAG] = in_response_to
        elif original is not None:
            facet.tags.update(tags_of(original))
        return await self._keep(namespace, saying, Role.ASSISTANT, facet, request, original=message)

    async def keep_reflection(
        self, namespace: str, saying: Saying, interaction_ids: Sequence[str], request: RequestKey | None
    ) -> Kept:
        """Write a reflection on some interactions, which need not exist. Raises AlreadyExists."""
        self._check(namespace, saying, request)
        self.check_ids("interaction_ids", interaction_ids)
        facet = reflection_facet(saying.sender, saying.session_id, interaction_ids)
        said = ProvenanceDraft(parent_ids=tuple(interaction_ids), lenient=True) if interaction_ids else None
        return await self._keep(namespace, saying, None, facet, request, said)

    async def _keep(
        self,
        namespace: str,
        saying: Saying,
        role: Role | None,
        facet: Facet,
        request: RequestKey | None,
        provenance: ProvenanceDraft | None = None,
        original: Item | None = None,
    ) -> Kept:
        part = TextPart(saying.content)
        # Names are searched too, and the word "system" would find every response.
        name = saying.sender if role is Role.USER or saying.sender != DEFAULT_AGENT else None
        draft = ItemDraft(
            part if role is None else ChatMessage(role, [part], name=name),
            saying.id,
            saying.session_id,
            create_us=saying.create_us,
            ttl_us=saying.ttl_us,
            labels=saying.labels,
            metadata=saying.metadata,
            facet=facet,
            provenance=provenance,
        )
        seen = [] if original is None else [(original.id, original.revision)]
        added = await self._items.add(
            namespace, [draft], fields=("interaction",), request=request, remembered=Remembered(seen=seen)
        )
        interaction = Interaction(added.items[0], original)
        if added.receipt.replayed:
            interaction = await self._again(namespace, interaction.item, added.receipt)
        return Kept(interaction, added.receipt.revision, added.degraded)

    async def _again(self, namespace: str, item: Item, receipt: Receipt) -> Interaction:
        """Return an interaction as an earlier, equal request wrote it, with the message found then.

        A new search might find another message. If it has been deleted since, only its id is returned.
        """
        if not receipt.seen:
            return Interaction(item)
        (seen,) = receipt.seen
        if item.facet is not None and item.facet.tags.get(LINK_TAG) != seen[0]:
            # The interaction itself is gone: rebuild it from the request, as if it were written now.
            facet = msgspec.structs.replace(item.facet, tags={**item.facet.tags, LINK_TAG: seen[0]})
            item = msgspec.structs.replace(item, facet=facet)
        return Interaction(item, (await live_versions(self._store, namespace, [seen])).get(seen))

    def _check(self, namespace: str, saying: Saying, request: RequestKey | None) -> None:
        checks = self._checks
        checks.namespace(namespace)
        if request is not None:
            checks.request_id(request.id)
        checks.name("sender", saying.sender, SENDER_BYTES_MAX)
        self.check_text("content", saying.content)
        checks.item_id(saying.id, required=False)
        checks.free_id(saying.id, "id", now_us())
        checks.session_id(saying.session_id)
        checks.labels("labels", saying.labels)
        if saying.metadata is not None:
            checks.metadata("metadata", saying.metadata)
        if saying.ttl_us is not None and saying.ttl_us <= 0:
            raise InvalidArgument("ttl", "must be positive")

    def check_text(self, field: str, text: str) -> None:
        """Check a required text."""
        if not text:
            raise InvalidArgument(field, "is required")
        self._checks.text(field, text)

    def check_ids(self, field: str, ids: Sequence[str]) -> None:
        """Check a list of ids."""
        if len(ids) > _IDS_MAX:
            raise InvalidArgument(field, f"has more than {_IDS_MAX} entries")
        for at, item_id in enumerate(ids):
            self._checks.item_id(item_id, f"{field}[{at}]")

    def _check_original(self, in_response_to: str, original: Original | None) -> None:
        if original is None:
            return
        if in_response_to:
            raise InvalidArgument("original_message", "cannot be given together with in_response_to")
        self.check_text("original_message.content", original.content)
        self._checks.name("original_message.sender", original.sender, SENDER_BYTES_MAX, required=False)

    # --- the message of a response ------------------------------------------------------------

    async def _was_missing(self, namespace: str, request: RequestKey | None) -> bool:
        """Return whether the message did not exist when this request was applied."""
        receipt = await self._store.find_receipt(namespace, request) if request else None
        return receipt is not None and not receipt.seen

    async def _message(
        self,
        namespace: str,
        item_id: str,
        original: Original | None,
        request: RequestKey | None,
        *,
        allow_missing: bool,
    ) -> Item | None:
        """Return the message to link to; None if none is named, or if it may be missing. Raises NotFound.

        If the request was applied before, the message may be gone by now; nothing is written then.
        """
        if original is not None:
            message = await self._newest_like(namespace, original)
        elif item_id:
            message = (await self._messages(namespace, [item_id])).get(item_id)
        else:
            return None
        if (
            message is None
            and not allow_missing
            and (request is None or not await self._store.find_receipt(namespace, request))
        ):
            if item_id:
                raise NotFound.item(namespace, item_id)
            problem = f"no message in {namespace!r} matches original_message"
            raise NotFound("ITEM_NOT_FOUND", problem, namespace=namespace, id="")
        return message

    async def _messages(self, namespace: str, ids: Sequence[str]) -> dict[str, Item]:
        now = now_us()
        found = await self._store.get_items(namespace, list(dict.fromkeys(ids))) if ids else {}
        return {
            key: item
            for key, item in found.items()
            if item.kind is ItemKind.MESSAGE and not item.expired(now)
        }

    async def _newest_like(self, namespace: str, original: Original) -> Item | None:
        """Return the newest message with this content, found by its digest."""
        tags = {CONTENT_TAG: digest(original.content)}
        if original.sender:
            tags[PARTY_TAG] = original.sender
        selection = Selection(kinds=_MESSAGES, tags=tuple(tags.items()))
        if original.create_us is not None:
            selection.start_us, selection.end_us = original.create_us, original.create_us + 1
        bound: int | None = None
        reading = await self._store.read(namespace)
        while True:
            wanted = selection.to_filter(max_position=bound)
            positions = await reading.scan(wanted, _LOOKED_AT_ONCE, newest=True)
            for item in reversed(await reading.load_items(positions)):
                # Different contents may have equal digests.
                if item is not None and text_of(item) == original.content:
                    return item
            if len(positions) < _LOOKED_AT_ONCE:
                return None
            bound = positions[0] - 1

    async def with_originals(self, namespace: str, items: Sequence[Item]) -> list[Interaction]:
        """Return items with the messages that they answer, as these are now."""
        messages = await self._messages(namespace, [link for link in map(link_of, items) if link])
        awaited: dict[str, Item | None] = {}
        if late := waiting(items):
            reading = await self._store.read(namespace)
            awaited = {item.id: await message_of(reading, item) for item in late}
        return [Interaction(item, messages.get(link_of(item)) or awaited.get(item.id)) for item in items]

    # --- the newest ---------------------------------------------------------------------------

    async def last(
        self,
        namespace: str,
        selection: Selection,
        sender: str = "",
        *,
        limit: int | None = None,
        page_size: int = 0,
        page_token: str = "",
    ) -> PairPage:
        """Return a page of the newest messages of a sender, "" for any, with their responses.

        The newest by create_time; of the same time, the last stored.
        """
        self._checks.namespace(namespace)
        limit = _DEFAULT_LIMIT if limit is None else limit
        if limit < -1:
            raise InvalidArgument("limit", "must be -1 (no limit), 0 or more")
        self._checks.name("sender", sender, SENDER_BYTES_MAX, required=False)
        selection.kinds = _MESSAGES
        selection.tags = ((PARTY_TAG, sender),) if sender else ()
        self._retrieval.check_selection(selection)
        size = self._checks.page_size(page_size, self._checks.limits.page_items_max)
        scope = ("last interactions", namespace, limit, *selection.scope())
        ordered = self._retrieval.ordered
        place = ordered.place(scope, page_token, "page_token", limit)
        reading = await self._store.read(namespace)
        info = reading.info
        if info is None or limit == 0:
            return PairPage([], info.revision if info else 0)
        size = place.fitting(size)
        found = await reading.ordered(selection.to_filter(), _NEWEST, size + 1, begin=place.begin)
        positions = [position for position, _ in found]
        pairs, rest = await self._pairs(reading, positions, size, selection.predicate)
        next_place = None if rest is None else found[positions.index(rest)][1]
        return PairPage(pairs, info.revision, ordered.token(scope, place, next_place, len(pairs)))

    async def _pairs(
        self, reading: Reading, positions: Sequence[int], size: int, predicate: Predicate | None
    ) -> tuple[list[Pair], int | None]:
        """Return the pairs of a page, and the position at which the next begins."""
        pairs: list[Pair] = []
        nbytes, part = 0, Part()
        late = await any_waits(reading)
        for at in range(0, len(positions), _LOADED_AT_ONCE):
            chunk = positions[at : at + _LOADED_AT_ONCE]
            for position, message in zip(chunk, await reading.load_items(chunk), strict=True):
                if len(pairs) == size:
                    return pairs, position
                if message is None:
                    continue
                pair = await pair_of(reading, message, predicate, late=late)
                nbytes += sum(map(self._item_bytes, (message, *pair.responses)))
                if pairs and nbytes > self._checks.limits.page_bytes_max:
                    return pairs, position
                pairs.append(pair)
                await part.give_way_if_long()
        return pairs, None
