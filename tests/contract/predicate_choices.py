"""Random items and random predicates over them, from so few values that they often match."""

from __future__ import annotations

from random import Random
from typing import Any

from contract.builders import NOW, build_write
from memory_service.data_model import (
    ChatMessage,
    DataPart,
    Facet,
    ItemKind,
    ItemWrite,
    Provenance,
    Role,
    SourceKind,
    TextPart,
    ToolCallResult,
)
from memory_service.predicates import (
    And,
    Comparison,
    Field,
    FieldName,
    Not,
    Operator,
    Or,
    Pattern,
    Predicate,
    Present,
    Structure,
    canonical,
)

IDS = [f"i{n}" for n in range(24)]
TEXTS = ["", "a", "ab", "b", "aba", "*", "\u00e9", "\uffff", "\U0001f600", "a\x00"]
NUMBERS: list[float] = [0, -0.0, 1, 1.5, -2, 1e300, 2**53]
# Two that are equal as floats, and none in the past.
TIMES = [NOW + 1, NOW + 2, NOW + 3, 2**57 + 1, 2**57 + 2]
IMPORTANCES = [None, 0.0, 0.5, 1.0]
PROVENANCES = [
    None,
    Provenance("ada", "key-1", trust=0.5),
    Provenance("a", trust=0.0),
    Provenance("", "", SourceKind.WEB, "https://example.com/", ("p",), "m", 0.25, NOW, 3),
    Provenance("mallory", "key-2", SourceKind.IMPORT),
]
KINDS = [None, ItemKind.MESSAGE, ItemKind.REFLECTION, ItemKind.DOCUMENT]
PATHS = [("x",), ("x",), ("x", "z"), ("y.y",), ("x", "z", "a"), ("none",)]
_EQUALITIES = [Operator.EQUAL, Operator.UNEQUAL, Operator.HAS]
_TEXT_FIELDS = [
    Field(FieldName.ID),
    Field(FieldName.SESSION),
    Field(FieldName.NAME),
    Field(FieldName.LABELS, ("k",)),
    Field(FieldName.LABELS, ("l",)),
    Field(FieldName.WRITER),
    Field(FieldName.CREDENTIAL),
]
_NUMBERS = [Field(FieldName.IMPORTANCE), Field(FieldName.TRUST), Field(FieldName.REVISION)]
_TIME_FIELDS = [Field(FieldName.CREATE_TIME), Field(FieldName.UPDATE_TIME), Field(FieldName.EXPIRE_TIME)]


def _scalar(choose: Random) -> Any:
    return choose.choice([choose.choice(TEXTS), choose.choice(NUMBERS), True, False, None])


def _value(choose: Random, depth: int = 0) -> Any:
    """Return a JSON value; objects and lists in half of the cases."""
    kind = choose.random()
    if kind < 0.5 or depth > 2:
        return _scalar(choose)
    if kind < 0.75:
        return [_value(choose, depth + 2) for _ in range(choose.randrange(4))]
    return {key: _value(choose, depth + 1) for key in ("z", "a", "") if choose.random() < 0.6}


def _data(choose: Random) -> DataPart:
    return DataPart({key: _value(choose) for key in ("x", "y.y") if choose.random() < 0.8})


def random_write(choose: Random, item_id: str) -> ItemWrite:
    """Return a write of an item that is found by the word kiwi."""
    spoken = ChatMessage(
        choose.choice([*Role]), [TextPart("kiwi")], name=choose.choice([None, *TEXTS[:4], "long"])
    )
    kind = choose.choice(KINDS)
    metadata = {key: _value(choose) for key in ("x", "y.y") if choose.random() < 0.8}
    return build_write(
        item_id,
        "kiwi",
        [1.0, choose.random()],
        content=choose.choice([TextPart("kiwi"), ToolCallResult(), spoken, spoken, _data(choose)]),
        session_id=choose.choice(TEXTS),
        labels={key: choose.choice(TEXTS[:5]) for key in ("k", "l") if choose.random() < 0.7},
        metadata=choose.choice([None, metadata, metadata, metadata]),
        create_us=choose.choice(TIMES),
        update_us=choose.choice(TIMES),
        expire_us=choose.choice([None, *TIMES]),
        facet=None if kind is None else Facet(kind),
        importance=choose.choice(IMPORTANCES),
        provenance=choose.choice(PROVENANCES),
    )


def _leaf(choose: Random) -> Predicate:
    kind = choose.random()
    if kind < 0.1:
        name = choose.choice([FieldName.ROLE, FieldName.KIND, FieldName.SOURCE])
        fields = [*_TEXT_FIELDS, *_TIME_FIELDS, *_NUMBERS, Field(name), _metadata(choose)]
        return Present(choose.choice(fields))
    operator, exact = choose.choice([*Operator]), choose.choice(_EQUALITIES)
    if kind < 0.15:
        return Comparison(_metadata(choose), choose.choice(_EQUALITIES[:2]), _structure(choose))
    if kind < 0.3:
        return Comparison(_metadata(choose), operator, choose.choice([*TEXTS, *NUMBERS]))
    if kind < 0.5:
        return Comparison(
            _metadata(choose),
            exact,
            choose.choice([True, False, None, _pattern(choose), choose.choice(TEXTS)]),
        )
    if kind < 0.6:
        return Comparison(choose.choice(_TIME_FIELDS), operator, choose.choice(TIMES))
    if kind < 0.75:
        return Comparison(
            choose.choice(_TEXT_FIELDS), operator, choose.choice([*TEXTS, *IDS[:3], "ada", "key-2"])
        )
    if kind < 0.85:
        return Comparison(choose.choice(_TEXT_FIELDS), exact, _pattern(choose))
    if kind < 0.88:
        return Comparison(choose.choice(_NUMBERS), operator, choose.choice([-1.0, 0.0, 0.5, 0.7, 1.0, 20.0]))
    if kind < 0.9:
        sources = [source.name.lower() for source in SourceKind]
        return Comparison(Field(FieldName.SOURCE), exact, choose.choice(sources))
    if kind < 0.93:
        return Comparison(Field(FieldName.ROLE), exact, choose.choice([*Role]).value)
    return Comparison(Field(FieldName.KIND), exact, choose.choice([0, 1, 2, 5]))


def _metadata(choose: Random) -> Field:
    return Field(choose.choice([FieldName.METADATA, FieldName.DATA]), choose.choice(PATHS))


def _structure(choose: Random) -> Structure:
    simple: list[Any] = [[], {}, [""], ["a"], [1], {"a": None}, {"z": 0, "a": "b"}]
    return Structure(canonical(choose.choice([*simple, [_scalar(choose)], {"a": _scalar(choose)}])))


def _pattern(choose: Random) -> Pattern:
    before = choose.random() < 0.5
    return Pattern(choose.choice(TEXTS), before, not before or choose.random() < 0.5)


def random_predicate(choose: Random, depth: int = 0) -> Predicate:
    """Return a predicate of a few comparisons."""
    kind = choose.random()
    if depth > 2 or kind < 0.4:
        return _leaf(choose)
    if kind < 0.5:
        return Not(random_predicate(choose, depth + 1))
    parts = tuple(random_predicate(choose, depth + 1) for _ in range(choose.randrange(1, 4)))
    return And(parts) if kind < 0.75 else Or(parts)
