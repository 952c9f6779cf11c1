"""A cross-encoder that is small enough for tests to generate, in the files of a real one.

An ONNX graph and a tokenizer: it counts tokens of the text that the query also has, and returns log-odds.
fastembed and onnxruntime load and run it like any other.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

MODEL = "tiny/cross-encoder"
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
_OPSET = 13
_FLOAT, _INT64 = 1, 7  # TensorProto.DataType
_ATTRIBUTE_INT = 2  # AttributeProto.AttributeType


def log_odds(shared: int) -> float:
    """Return the model's score for a text with this many pairs of equal tokens."""
    return 2.0 * shared - 3.0


def write_cross_encoder(
    folder: Path, words: Sequence[str], *, tokens_max: int = 64, offset: float = -3.0
) -> None:
    """Write the model with these words as its vocabulary; it truncates its input to `tokens_max`.

    `offset` is the log-odds of a text without common tokens; with NaN every result is NaN.
    """
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {word: number for number, word in enumerate((*_SPECIAL, *words))}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"pad_token_id": 0}))
    settings = {"model_max_length": tokens_max, "pad_token": "[PAD]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    (folder / "special_tokens_map.json").write_text(json.dumps(special))
    (folder / "model.onnx").write_bytes(_model(offset))


def _model(offset: float) -> bytes:
    """Return the graph: it counts pairs of equal tokens, one in the query and one in the text."""
    ids, mask, side = "input_ids", "attention_mask", "token_type_ids"
    nodes = [
        _node("Greater", [ids, "last_special"], "is_word_bool"),
        _node("Cast", ["is_word_bool"], "is_word", to=_FLOAT),
        _node("Cast", [mask], "there", to=_FLOAT),
        _node("Cast", [side], "in_text", to=_FLOAT),
        _node("Sub", ["one", "in_text"], "in_query"),
        _node("Mul", ["is_word", "there"], "counts"),
        _node("Mul", ["counts", "in_query"], "of_query"),
        _node("Mul", ["counts", "in_text"], "of_text"),
        _node("Unsqueeze", [ids, "axis_2"], "down"),
        _node("Unsqueeze", [ids, "axis_1"], "across"),
        _node("Equal", ["down", "across"], "same_bool"),
        _node("Cast", ["same_bool"], "same", to=_FLOAT),
        _node("Unsqueeze", ["of_query", "axis_2"], "query_down"),
        _node("Unsqueeze", ["of_text", "axis_1"], "text_across"),
        _node("Mul", ["query_down", "text_across"], "pairs"),
        _node("Mul", ["pairs", "same"], "shared_pairs"),
        _node("ReduceSum", ["shared_pairs", "both_axes"], "shared", keepdims=0),
        _node("Mul", ["shared", "slope"], "sloped"),
        _node("Add", ["sloped", "offset"], "log_odds"),
        _node("Unsqueeze", ["log_odds", "axis_1"], "logits"),
    ]
    constants = {
        "last_special": np.array([len(_SPECIAL) - 1], np.int64),
        "one": np.array([1], np.float32),
        "axis_1": np.array([1], np.int64),
        "axis_2": np.array([2], np.int64),
        "both_axes": np.array([1, 2], np.int64),
        "slope": np.array([2], np.float32),
        "offset": np.array([offset], np.float32),
    }
    graph = b"".join(
        (
            *(_field(1, node) for node in nodes),
            _field(2, b"tiny"),
            *(_field(5, _tensor(name, values)) for name, values in constants.items()),
            *(_field(11, _value_info(name, _INT64, ("batch", "length"))) for name in (ids, mask, side)),
            _field(12, _value_info("logits", _FLOAT, ("batch", "score"))),
        )
    )
    return _field(1, 8) + _field(7, graph) + _field(8, _field(1, b"") + _field(2, _OPSET))


# The messages of onnx.proto, by their field numbers


def _node(kind: str, inputs: Sequence[str], output: str, **attributes: int) -> bytes:
    parts = [_field(1, name.encode()) for name in inputs]
    parts += [_field(2, output.encode()), _field(4, kind.encode())]
    for name, value in attributes.items():
        parts.append(_field(5, _field(1, name.encode()) + _field(3, value) + _field(20, _ATTRIBUTE_INT)))
    return b"".join(parts)


def _tensor(name: str, values: np.ndarray[Any, Any]) -> bytes:
    kind = _INT64 if values.dtype == np.int64 else _FLOAT
    return _field(1, len(values)) + _field(2, kind) + _field(8, name.encode()) + _field(9, values.tobytes())


def _value_info(name: str, kind: int, axes: Sequence[str]) -> bytes:
    shape = b"".join(_field(1, _field(2, axis.encode())) for axis in axes)
    return _field(1, name.encode()) + _field(2, _field(1, _field(1, kind) + _field(2, shape)))


def _field(number: int, value: bytes | int) -> bytes:
    """Return a field of a protobuf message: bytes with their length, or a varint."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    if value < 128:
        return bytes([value])
    return bytes([value & 127 | 128]) + _varint(value >> 7)
