"""The dimension and the model of a namespace's vectors."""

from __future__ import annotations

import asyncio

import pytest

from contract.builders import NOW, NS, axis_vector, build_write, scan_ids, search_hits
from memory_service.data_model import CLIENT_MODEL, OnDuplicate, Receipt
from memory_service.errors import InvalidArgument
from memory_service.records.base import ModelMismatch
from memory_service.store import Store


async def _dimension_and_model(store: Store) -> tuple[int, str]:
    info = await store.namespace(NS)
    assert info is not None
    return info.dimension, info.model


async def test_the_first_vector_sets_dimension_and_model(store: Store) -> None:
    await store.add_items(NS, [build_write("none")])
    assert await _dimension_and_model(store) == (0, "")
    await store.add_items(NS, [build_write("a", "x", [1, 0, 0], model="local:a")])
    assert await _dimension_and_model(store) == (3, "local:a")


async def test_a_vector_of_another_dimension_is_refused_with_both_numbers(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "x", [1, 0, 0])])
    with pytest.raises(InvalidArgument) as raised:
        await store.add_items(NS, [build_write("b", "x", [1, 0])])
    assert (raised.value.reason, raised.value.field) == ("DIMENSION_MISMATCH", "item.embedding")
    assert (raised.value.metadata["expected"], raised.value.metadata["actual"]) == ("3", "2")
    assert await scan_ids(store) == ["a"]


async def test_a_replacement_obeys_the_dimension(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "old", [1, 0, 0]), build_write("b", "old", [0, 1, 0])])
    with pytest.raises(InvalidArgument):
        await store.replace_item(NS, build_write("a", "new", [1, 0]))
    with pytest.raises(InvalidArgument):
        await store.add_items(NS, [build_write("a", "new", [1, 0])], on_duplicate=OnDuplicate.REPLACE)
    assert (await search_hits(store, vector=[1, 0, 0]))["a"].vector_score == pytest.approx(1)


async def test_a_query_of_another_dimension_is_refused(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "x", [1, 0, 0])])
    with pytest.raises(InvalidArgument) as raised:
        await search_hits(store, vector=[1, 0], text="x")
    assert (raised.value.reason, raised.value.field) == ("DIMENSION_MISMATCH", "query_embedding")
    assert (raised.value.metadata["expected"], raised.value.metadata["actual"]) == ("3", "2")


async def test_vectors_of_two_embedders_do_not_mix(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "x", axis_vector(0), model="local:a")])
    with pytest.raises(ModelMismatch):
        await store.add_items(NS, [build_write("b", "x", axis_vector(1), model="local:b")])
    with pytest.raises(ModelMismatch):
        await store.replace_item(NS, build_write("a", "x", axis_vector(1), model="local:b"))
    assert await scan_ids(store) == ["a"]
    assert (await search_hits(store, vector=axis_vector(0)))["a"].vector_score == pytest.approx(1)


async def test_a_mismatch_within_a_batch_keeps_it_out(store: Store) -> None:
    batch = [
        build_write("a", "x", axis_vector(0), model="local:a"),
        build_write("b", "x", axis_vector(1), model="local:b"),
    ]
    with pytest.raises(ModelMismatch):
        await store.add_items(NS, batch)
    assert await store.namespace(NS) is None


async def test_a_clients_vector_is_taken_beside_an_embedders(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "x", axis_vector(0), model="local:a")])
    await store.add_items(NS, [build_write("b", "x", axis_vector(1), model=CLIENT_MODEL)])
    assert await _dimension_and_model(store) == (4, "local:a")
    assert set(await search_hits(store, vector=axis_vector(1))) == {"a", "b"}


async def test_an_embedders_vector_does_not_mix_with_clients_own(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "x", axis_vector(0), model=CLIENT_MODEL)])
    assert await _dimension_and_model(store) == (4, CLIENT_MODEL)
    with pytest.raises(ModelMismatch):
        await store.add_items(NS, [build_write("b", "x", axis_vector(1), model="local:a")])


async def test_a_vector_of_another_model_is_refused_as_such_whatever_its_dimension(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "x", axis_vector(0), model=CLIENT_MODEL)])
    with pytest.raises(ModelMismatch):
        await store.add_items(NS, [build_write("b", "x", axis_vector(0, 3), model="local:a")])
    with pytest.raises(ModelMismatch):
        await store.replace_item(NS, build_write("a", "x", axis_vector(0, 3), model="local:a"))


async def test_items_without_vectors_fit_anywhere(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "x", axis_vector(0), model="local:a")])
    await store.add_items(NS, [build_write("b", "x")])
    await store.replace_item(NS, build_write("a", "x"))
    assert await scan_ids(store) == ["a", "b"]


async def test_dimension_and_model_outlive_the_last_vector(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "x", axis_vector(0), model="local:a")])
    await store.delete_item(NS, "a", now_us=NOW)
    assert await _dimension_and_model(store) == (4, "local:a")
    with pytest.raises(InvalidArgument):
        await store.add_items(NS, [build_write("b", "x", [1, 0])])


async def test_reset_forgets_dimension_and_model(store: Store) -> None:
    await store.add_items(NS, [build_write("a", "x", axis_vector(0), model="local:a")])
    await store.reset(NS)
    assert await _dimension_and_model(store) == (0, "")
    assert await search_hits(store, vector=[1, 0]) == {}
    await store.add_items(NS, [build_write("a", "x", [1, 0], model="local:b")])
    assert await _dimension_and_model(store) == (2, "local:b")
    assert set(await search_hits(store, vector=[1, 0])) == {"a"}


async def test_each_namespace_has_its_own_dimension(store: Store) -> None:
    await store.add_items("one", [build_write("a", "x", [1, 0], model="local:a")])
    await store.add_items("two", [build_write("a", "x", [1, 0, 0], model="local:b")])
    assert set(await search_hits(store, "one", vector=[1, 0])) == {"a"}
    assert set(await search_hits(store, "two", vector=[1, 0, 0])) == {"a"}


async def test_of_two_first_writers_only_one_sets_the_dimension(store: Store) -> None:
    outcomes = await asyncio.gather(
        *(store.add_items(NS, [build_write(f"i{n}", "x", [1.0] * n)]) for n in (2, 3, 4, 5)),
        return_exceptions=True,
    )
    winners = [n for n, outcome in zip((2, 3, 4, 5), outcomes, strict=True) if isinstance(outcome, Receipt)]
    losers = [outcome for outcome in outcomes if not isinstance(outcome, Receipt)]
    assert len(winners) == 1
    assert all(isinstance(loser, InvalidArgument) for loser in losers)
    assert (await _dimension_and_model(store))[0] == winners[0]
    assert await scan_ids(store) == [f"i{winners[0]}"]


async def test_of_two_first_writers_only_one_sets_the_model(store: Store) -> None:
    models = ("local:a", "local:b", "local:c")
    outcomes = await asyncio.gather(
        *(store.add_items(NS, [build_write(model, "x", axis_vector(0), model=model)]) for model in models),
        return_exceptions=True,
    )
    winners = [model for model, done in zip(models, outcomes, strict=True) if isinstance(done, Receipt)]
    assert len(winners) == 1
    assert sum(isinstance(outcome, ModelMismatch) for outcome in outcomes) == 2
    assert await _dimension_and_model(store) == (4, winners[0])
