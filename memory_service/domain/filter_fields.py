"""The fields of filters, with their types and valid comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory_service.data_model import ItemKind, Role, SourceKind
from memory_service.domain.filter_values import Literal, Misfit
from memory_service.predicates import (
    Comparison,
    Field,
    FieldName,
    Operand,
    Operator,
    Or,
    Pattern,
    Predicate,
    Present,
)


@dataclass(frozen=True)
class Word:
    """A part of a path, or an operator, and its place."""

    text: str
    at: int


_TIMES = (FieldName.CREATE_TIME, FieldName.UPDATE_TIME, FieldName.EXPIRE_TIME)
_MAPS = (FieldName.LABELS, FieldName.METADATA, FieldName.DATA)
_JSON = (FieldName.METADATA, FieldName.DATA)
_EQUALITIES = (Operator.EQUAL, Operator.UNEQUAL, Operator.HAS)
_ROLES: dict[str, Operand] = {role.value: role.value for role in Role}
_SOURCES: dict[str, Operand] = {kind.name.lower(): kind.name.lower() for kind in SourceKind}
_NUMBERS = (FieldName.IMPORTANCE, FieldName.TRUST, FieldName.REVISION)
_WITHOUT_ORDER = (FieldName.ROLE, FieldName.KIND, FieldName.SOURCE)
_KINDS: dict[str, Operand] = {kind.name.lower(): int(kind) for kind in ItemKind}


def comparison(path: Sequence[Word], written: Word, literal: Literal) -> Predicate:
    """Return the predicate of a comparison. Raises Misfit if it makes no sense."""
    operator = Operator(written.text)
    if len(path) == 1 and path[0].text in _MAPS:
        return _has_key(FieldName(path[0].text), operator, written, literal)
    field = _field(path)
    if operator is Operator.HAS and literal.is_any:
        return Present(field)
    if literal.structure is not None:
        _check_structure(field.name, written, literal)
    operand = _operand(field.name, operator in _EQUALITIES, literal)
    if operator not in _EQUALITIES and not _has_order(field.name, operand):
        raise Misfit(written.at, f"expected = or !=: {_named(field.name, operand)} has no order")
    return Comparison(field, operator, operand)


def membership(path: Sequence[Word], at: int, literals: Sequence[Literal]) -> Predicate:
    """Return the predicate of `FIELD IN (…)`. Raises Misfit."""
    parts = tuple(comparison(path, Word(Operator.EQUAL, at), literal) for literal in literals)
    return parts[0] if len(parts) == 1 else Or(parts)


def _check_structure(name: FieldName, written: Word, literal: Literal) -> None:
    if name not in _JSON:
        raise Misfit(literal.at, "only metadata and data have lists and objects")
    if written.text not in (Operator.EQUAL, Operator.UNEQUAL):
        raise Misfit(written.at, "expected = or !=: a list or an object has no order and no members here")


def _field(path: Sequence[Word]) -> Field:
    root, *keys = path
    try:
        name = FieldName(root.text)
    except ValueError:
        raise Misfit(root.at, f"expected a field ({', '.join(FieldName)}), not {shown(root.text)}") from None
    if name not in _MAPS and keys:
        raise Misfit(keys[0].at, f"{name} has no parts")
    if name is FieldName.LABELS and len(keys) > 1:
        raise Misfit(keys[1].at, "a label has no parts; quote a key that contains dots")
    return Field(name, tuple(key.text for key in keys))


def _has_key(name: FieldName, operator: Operator, written: Word, literal: Literal) -> Present:
    """Return the predicate of `labels:KEY` or `metadata:KEY`."""
    if operator is not Operator.HAS:
        raise Misfit(written.at, f"expected {name}.KEY, or {name}:KEY")
    if literal.is_any:
        raise Misfit(literal.at, "expected a key")
    return Present(Field(name, (literal.text,)))


def _operand(name: FieldName, wildcards: bool, literal: Literal) -> Operand:
    if name in _TIMES:
        return literal.as_time_us()
    if name is FieldName.ROLE:
        return _one_of(_ROLES, "role_", literal)
    if name is FieldName.KIND:
        return _one_of({**_KINDS, "unspecified": int(ItemKind.PLAIN)}, "item_kind_", literal)
    if name is FieldName.SOURCE:
        return _one_of(_SOURCES, "source_kind_", literal)
    if name in _NUMBERS:
        return literal.as_number()
    if name in _JSON:
        return literal.as_json(wildcards=wildcards)
    return literal.as_text(wildcards=wildcards)


def _one_of(names: dict[str, Operand], prefix: str, literal: Literal) -> Operand:
    name = literal.text.lower().removeprefix(prefix)
    if name not in names:
        wanted = ", ".join(name for name in names if name != "unspecified")
        raise Misfit(literal.at, f"expected one of {wanted}, not {shown(literal.text)}")
    return names[name]


def _has_order(name: FieldName, operand: Operand) -> bool:
    if name in _WITHOUT_ORDER:
        return False
    return not (operand is None or isinstance(operand, bool | Pattern))


def _named(name: FieldName, operand: Operand) -> str:
    if operand is None:
        return "null"
    return str(operand).lower() if isinstance(operand, bool) else name


_SHOWN_CHARS_MAX = 40


def shown(text: str) -> str:
    """Return a piece of a filter as errors show it."""
    text = text if len(text) <= _SHOWN_CHARS_MAX else text[:_SHOWN_CHARS_MAX] + "..."
    return '"' + "".join(c if c.isprintable() else " " for c in text) + '"'
