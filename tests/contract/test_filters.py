"""Predicates: at any selectivity, while others write, after a restart, and with many fields."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import numpy as np
import pytest

from contract.builders import (
    NOW,
    NS,
    PLENTY,
    SECOND,
    Recall,
    build_write,
    random_vectors,
    recall,
    scan_ids,
    search_hits,
    word_scores,
)
from contract.cases import StoreCase
from contract.conftest import Reopen
from contract.predicate_oracle import holds
from faults.scale import SOAK, drawn
from memory_service.data_model import (
    ChatMessage,
    Facet,
    Item,
    ItemFilter,
    ItemKind,
    ItemWrite,
    Provenance,
    Role,
    TextPart,
    Vector,
)
from memory_service.predicates import And, Comparison, Field, FieldName, Not, Operator, Or, Present
from memory_service.store import Store

SHARES = (2, 10, 100, 1000, 10_000)
COUNT = 10_000


def metadata(key: str, operator: str, operand: Any) -> Comparison:
    """A comparison of a value of metadata."""
    return Comparison(Field(FieldName.METADATA, (key,)), Operator(operator), operand)


def label(key: str, operator: str, operand: str) -> Comparison:
    """A comparison of a label."""
    return Comparison(Field(FieldName.LABELS, (key,)), Operator(operator), operand)


def one_in(share: int) -> Comparison:
    """What one item in so many of `large` is."""
    return metadata(f"of {share}", "=", 1 % share)


async def _fill(store: Store) -> dict[str, Vector]:
    """Write many items, over which there is a graph where a store has graphs; return their vectors."""
    vectors, rng = random_vectors(COUNT, 8), np.random.default_rng(5)
    words = rng.integers(0, 300, (COUNT, 6))
    for start in range(0, COUNT, 1000):
        writes = [
            build_write(
                f"i{n}",
                " ".join(f"word{word}" for word in words[n]),
                vectors[n],
                metadata={f"of {share}": n % share for share in SHARES},
                provenance=Provenance(trust=n * 7919 % COUNT / COUNT),
            )
            for n in range(start, start + 1000)
        ]
        await store.add_items(NS, writes)
    await store.flush()
    return {f"i{n}": vector for n, vector in enumerate(vectors)}


async def test_filters_find_the_best_at_any_selectivity(store: Store) -> None:
    live = await _fill(store)
    queries = random_vectors(10, 8, stream=9)
    for share in SHARES:
        matching = {name: vector for name, vector in live.items() if int(name[1:]) % share == 1 % share}
        wanted = one_in(share)
        assert len(matching) == COUNT // share
        assert (await recall(store, matching, queries, 10, predicate=wanted)).is_as_promised, share
        await _expect_best_words(store, matching, wanted)
        await _expect_best_of_both(store, matching, queries[0], wanted)
        in_order = list(matching)
        for newest, expected in ((False, in_order[:10]), (True, in_order[-10:])):
            positions = await (await store.read(NS)).scan(
                ItemFilter(NOW, predicate=wanted), 10, newest=newest
            )
            items = await (await store.read(NS)).load_items(positions)
            assert [item and item.id for item in items] == expected, share
    for share in (10, 1000):
        least = 1 - 1 / share
        trusted = {
            name: vector for name, vector in live.items() if int(name[1:]) * 7919 % COUNT / COUNT >= least
        }
        wanted = Comparison(Field(FieldName.TRUST), Operator.GREATER_EQUAL, least)
        assert len(trusted) == COUNT // share
        assert (await recall(store, trusted, queries, 10, predicate=wanted)).is_as_promised, share
    await _expect_the_far(store, live, queries[0])


async def _expect_the_far(store: Store, live: dict[str, Vector], query: Vector) -> None:
    """What matches is what a graph comes to last: the nearest of all are left out."""
    by_distance = sorted(live, key=lambda name: -float(live[name] @ query / np.linalg.norm(live[name])))
    far = by_distance[-400:]
    for name in far:
        write = build_write(name, metadata={"far": True})
        write.keep_vector = True
        await store.replace_item(NS, write)
    matching = {name: live[name] for name in far}
    assert (await recall(store, matching, [query], 10, predicate=metadata("far", "=", True))).is_as_promised
    both = And((metadata("far", "=", True), label("none", "=", "x")))
    assert await recall(store, {}, [query], 10, predicate=both) == Recall(0, 0)


async def _expect_best_words(store: Store, matching: dict[str, Vector], wanted: Comparison) -> None:
    found = total = 0
    for n in range(5):
        text = f"word{n} word{100 + n} word{200 + n}"
        exact = {name: s for name, s in (await word_scores(store, text)).items() if name in matching}
        hits = await search_hits(store, text=text, candidates=10, predicate=wanted)
        assert set(hits) <= set(exact)
        worst = sorted(exact.values(), reverse=True)[:10][-1] if exact else 0
        found += sum(exact[name] >= worst - 1e-9 for name in hits)
        total += min(10, len(exact))
    assert Recall(found, total).is_as_promised


async def _expect_best_of_both(
    store: Store, matching: dict[str, Vector], query: Vector, wanted: Comparison
) -> None:
    text = "word7 word107"
    both = await search_hits(store, text=text, vector=query, candidates=10, predicate=wanted)
    by_words = await search_hits(store, text=text, candidates=10, predicate=wanted)
    by_vector = await search_hits(store, vector=query, candidates=10, predicate=wanted)
    assert set(both) <= set(matching)
    assert set(by_vector) <= set(both)
    least = min((hit.lexical_score or 0 for hit in by_words.values()), default=0)
    assert len([hit for hit in both.values() if (hit.lexical_score or 0) >= least]) >= len(by_words)
    assert all(hit.vector_score is not None for hit in both.values())


@pytest.mark.parametrize(
    "bounds", [{}, {"session_id": "a"}, {"start_us": NOW + 2}, {"end_us": NOW + 2}], ids=str
)
async def test_what_a_predicate_demands_goes_together_with_the_rest_of_a_filter(
    store: Store, case: StoreCase, bounds: dict[str, Any]
) -> None:
    items = [
        build_write(
            f"{session}{n}{value}{kind}",
            "kiwi",
            session_id=session,
            create_us=NOW + n,
            labels={"k": value},
            facet=Facet(ItemKind(kind)) if kind else None,
        ).item
        for session in ("", "a", "b")
        for n in range(1, 4)
        for value in ("v", "w")
        for kind in (0, 1)
    ]
    await store.add_items(NS, [ItemWrite(item, "kiwi") for item in items])
    time, session = Field(FieldName.CREATE_TIME), Field(FieldName.SESSION)
    demands = [
        *(Comparison(time, operator, NOW + 2) for operator in Operator),
        *(Comparison(session, Operator.EQUAL, value) for value in ("a", "b", "", "none")),
        *(Comparison(Field(FieldName.KIND), operator, 1) for operator in (Operator.EQUAL, Operator.HAS)),
        *(label("k", operator, "v") for operator in ("=", ":", "!=")),
    ]
    kinds = frozenset({ItemKind.PLAIN})
    choices = [
        (wanted, fields)
        for one, other in itertools.product(demands, demands)
        for wanted in (And((one, other)), And((one, Not(other))), Or((one, other)))
        for fields in (bounds, {**bounds, "kinds": kinds})
    ]
    if not SOAK and case.name != "hnsw":
        # All stores evaluate predicates with the same code: one store runs all choices, the others some.
        choices = drawn(f"demands {case.name} {bounds}").sample(choices, 150)
    for wanted, fields in choices:
        whole = ItemFilter(NOW, predicate=wanted, **fields)
        expected = [item.id for item in items if _matches(item, whole)]
        assert await scan_ids(store, predicate=wanted, **fields) == expected, whole


def _matches(item: Item, wanted: ItemFilter) -> bool:
    return (
        (not wanted.session_id or item.session_id == wanted.session_id)
        and (wanted.start_us is None or item.create_us >= wanted.start_us)
        and (wanted.end_us is None or item.create_us < wanted.end_us)
        and (wanted.kinds is None or item.kind in wanted.kinds)
        and holds(wanted.predicate, item)
    )


# --- one revision -----------------------------------------------------------------------------


async def test_a_filter_sees_one_revision_while_others_write(store: Store) -> None:
    # Label and metadata of an item change together: whoever sees one of them without the other mixes
    # two revisions. Each look asks for a path that was never asked for, which takes a while to read.
    paths = [f"p{n}" for n in range(30)]

    def build(n: int, turn: int) -> Any:
        return build_write(
            f"i{n}", "", [1.0, n], labels={"turn": str(turn)}, metadata=dict.fromkeys(paths, turn)
        )

    await store.add_items(NS, [build(n, 0) for n in range(200)])
    stopped = False

    async def write() -> None:
        turn = 0
        while not stopped:
            turn = (turn + 1) % 3
            await asyncio.gather(*(store.replace_item(NS, build(n, turn)) for n in range(0, 200, 20)))

    async def look(path: str) -> None:
        for turn in range(3):
            other = Not(label("turn", "=", str(turn)))
            mixed = And((metadata(path, "=", turn), other))
            assert await scan_ids(store, predicate=mixed) == []
            assert await search_hits(store, vector=[1.0, 0.0], predicate=mixed) == {}

    writer = asyncio.ensure_future(write())
    try:
        for start in range(0, len(paths), 3):
            await asyncio.gather(*(look(path) for path in paths[start : start + 3]))
    finally:
        stopped = True
        await writer


async def test_a_write_is_found_by_its_fields_at_once(store: Store) -> None:
    for n in range(60):
        await store.add_items(NS, [build_write(f"i{n}", "kiwi", metadata={"n": n, f"k{n}": "v"})])
        assert await scan_ids(store, predicate=metadata("n", "=", n)) == [f"i{n}"]
        assert await scan_ids(store, predicate=metadata(f"k{n}", "=", "v")) == [f"i{n}"]
        await store.replace_item(NS, build_write(f"i{n}", "plum", metadata={"n": -1}))
        assert await scan_ids(store, predicate=metadata("n", "=", n)) == []
        assert set(
            await search_hits(store, text="plum", candidates=PLENTY, predicate=metadata("n", "<", 0))
        ) == {f"i{m}" for m in range(n + 1)}


async def test_a_namespace_that_begins_again_forgets_what_its_fields_were(store: Store) -> None:
    wanted = metadata("n", "=", 1)
    assert await scan_ids(store, predicate=wanted) == []
    await store.add_items(NS, [build_write("a", metadata={"n": 1})])
    assert await scan_ids(store, predicate=wanted) == ["a"]
    await store.reset(NS)
    assert await scan_ids(store, predicate=wanted) == []
    await store.add_items(NS, [build_write("b", metadata={"n": 1}), build_write("c")])
    assert await scan_ids(store, predicate=wanted) == ["b"]
    await store.delete_namespace(NS)
    assert await scan_ids(store, predicate=wanted) == []


async def test_many_searches_at_once_by_more_fields_than_are_kept(store: Store) -> None:
    names = [f"f{n}" for n in range(60)]
    await store.add_items(
        NS, [build_write(f"i{n}", "kiwi", metadata=dict.fromkeys(names, n % 7)) for n in range(70)]
    )

    async def ask(at: int) -> None:
        some = [names[(at + n) % len(names)] for n in range(0, 60, 5)]
        wanted = And(tuple(metadata(name, "=", at % 7) for name in some))
        found = await search_hits(store, text="kiwi", candidates=PLENTY, predicate=wanted)
        assert set(found) == {f"i{n}" for n in range(70) if n % 7 == at % 7}

    await asyncio.gather(*(ask(at) for at in range(40)))


async def test_a_search_that_is_cancelled_leaves_the_others_their_fields(store: Store) -> None:
    await store.add_items(NS, [build_write(f"i{n}", "kiwi", metadata={"n": n}) for n in range(300)])
    wanted = metadata("n", ">=", 290)
    searches = [asyncio.ensure_future(scan_ids(store, predicate=wanted)) for _ in range(6)]
    await asyncio.sleep(0)
    searches[0].cancel()
    searches[3].cancel()
    found = await asyncio.gather(*searches, return_exceptions=True)
    kept = [each for at, each in enumerate(found) if at not in (0, 3)]
    assert kept == [[f"i{n}" for n in range(290, 300)]] * 4


# --- what each field holds ----------------------------------------------------------------------


async def test_fields_are_the_same_after_a_restart(durable_store: Store, reopen: Reopen) -> None:
    message = ChatMessage(Role.TOOL, [TextPart("kiwi")], name="Ada \U0001f600")
    await durable_store.add_items(
        NS,
        [
            build_write(
                "a",
                "kiwi",
                content=message,
                labels={"k": "v"},
                metadata={"deep": {"er": [1, "two", None]}, "yes": True},
                update_us=NOW + 7,
                session_id="s",
                expire_us=NOW + SECOND,
            ),
            build_write("b", "kiwi"),
        ],
    )
    fields = {
        Field(FieldName.ID): "a",
        Field(FieldName.ROLE): "tool",
        Field(FieldName.NAME): "Ada \U0001f600",
        Field(FieldName.SESSION): "s",
        Field(FieldName.UPDATE_TIME): NOW + 7,
        Field(FieldName.EXPIRE_TIME): NOW + SECOND,
        Field(FieldName.LABELS, ("k",)): "v",
        Field(FieldName.METADATA, ("yes",)): True,
    }
    inside = Field(FieldName.METADATA, ("deep", "er"))

    async def expect(store: Store) -> None:
        for field, value in fields.items():
            assert await scan_ids(store, predicate=Comparison(field, Operator.EQUAL, value)) == ["a"], field
        for member in (1, "two", None):
            assert await scan_ids(store, predicate=Comparison(inside, Operator.HAS, member)) == ["a"]
        assert await scan_ids(store, predicate=Not(Present(inside))) == ["b"]

    await expect(durable_store)
    await expect(await reopen())


async def test_columns_of_fields_count_as_memory_and_are_not_kept_for_ever(durable_store: Store) -> None:
    store = durable_store
    await store.add_items(
        NS,
        [build_write(f"i{n}", metadata={f"f{m}": f"{m} {n}" for m in range(40)}) for n in range(300)],
    )
    before = (await store.index_info(NS)).memory_bytes
    sizes = []
    for m in range(40):
        assert len(await scan_ids(store, predicate=metadata(f"f{m}", "=", f"{m} 7"))) == 1
        sizes.append((await store.index_info(NS)).memory_bytes)
    if before and sizes[0]:
        assert sizes[0] > before
        assert max(sizes) - before < 20 * (sizes[0] - before)
