"""Conversion of JSON values to protobuf's bytes and back agrees with protobuf's own classes."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import ListValue, Struct, Value

from memory_service.errors import InvalidArgument
from memory_service.server.values import fill_struct, fill_value, to_dict, to_json

VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 0.5, -2.25, 2**53 - 1, 1e300, "", "a", "é\0\U0001f600", "x" * 200, [], {},
    [None], {"": None}, {"a": {"b": [1, [2, {"c": "d"}]]}}, [[], [[]], {}],
]  # fmt: skip


def drawn(random_: random.Random, depth: int) -> Any:
    kind = random_.randrange(8 if depth else 6)
    if kind == 6:
        return [drawn(random_, depth - 1) for _ in range(random_.randrange(5))]
    if kind == 7:
        return {f"k{n}": drawn(random_, depth - 1) for n in range(random_.randrange(5))}
    return random_.choice(VALUES[:14])


@pytest.mark.parametrize("value", [*VALUES, *(drawn(random.Random(seed), 5) for seed in range(50))], ids=repr)
def test_a_value_is_encoded_as_protobuf_encodes_it_and_comes_back(value: Any) -> None:
    by_protobuf = ParseDict(value, Value())
    ours = Value()
    fill_value(ours, value)
    assert ours == by_protobuf
    assert to_json("f", by_protobuf) == value
    assert MessageToDict(ours) == MessageToDict(by_protobuf)
    struct = Struct()
    fill_struct(struct, {"key": value})
    assert to_dict("f", struct) == {"key": value}


def test_whole_numbers_come_back_as_such_and_others_as_they_were() -> None:
    found = [to_json("f", Value(number_value=n)) for n in (3.0, 0.0, 2.0**53, 1.5)]
    assert [type(number) for number in found] == [int, int, float, float]
    negative = to_json("f", Value(number_value=-0.0))
    assert isinstance(negative, float)
    assert math.copysign(1, negative) == -1
    assert math.isnan(float(str(to_json("f", Value(number_value=math.nan)))))
    assert to_json("f", Value(number_value=math.inf)) == math.inf


@pytest.mark.parametrize(
    "value",
    [
        Value(),
        Value(list_value=ListValue(values=[Value()])),
        Value(struct_value=Struct(fields={"a": Value()})),
    ],
)
def test_a_value_of_no_kind_is_refused_by_name_of_its_field(value: Value) -> None:
    with pytest.raises(InvalidArgument, match="item.data"):
        to_json("item.data", value)


def test_fields_that_nobody_knows_are_passed_over() -> None:
    unknown = b"\x38\x05" + b"\x41" + b"x" * 8 + b"\x4a\x03abc" + b"\x55" + b"1234"
    value = Value.FromString(unknown + Value(string_value="a").SerializeToString() + unknown)
    assert to_json("f", value) == "a"
