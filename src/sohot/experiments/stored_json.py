"""Reading JSON from a file that may be damaged: strict parsing, and records checked against their annotations."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints


def parse_json(content: bytes) -> Any:
    """Parse JSON; unlike `json.loads`, refuse NaN and infinities.

    Raises:
        ValueError: It is not JSON.
    """

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    return json.loads(content, parse_constant=refuse)


def check_fields(record: Any) -> None:
    """Require the fields of a dataclass object to have the annotated types, down to the items of lists and tables.

    Raises:
        ValueError: One has another type; the message names it.

    Example:
        >>> from sohot.experiments.cell import Cell
        >>> check_fields(Cell("office31", "A-W", "first", "so", "lite0"))
        Traceback (most recent call last):
        ...
        ValueError: split is 'first', not int
    """
    of: Any = type(record)
    for name, kind in _hints(of).items():
        _check(getattr(record, name), kind, name)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {one.name: hints[one.name] for one in fields(kind)}


def _check(value: Any, kind: Any, name: str) -> None:
    origin, parts, optional = _taken_apart(kind)
    if origin is Any or (optional and value is None):
        return
    if not _fits(value, origin):
        raise ValueError(f"{name} is {_shown(value)}, not {origin.__name__}")
    if is_dataclass(value):
        check_fields(value)
    elif isinstance(value, Mapping):
        for key, one in value.items():
            _check(one, parts[1], f"{name}.{key}")
    elif isinstance(value, list):
        for one in value:
            _check(one, parts[0], name)
    elif isinstance(value, tuple):
        if len(value) != len(parts):
            raise ValueError(f"{name} has {len(value)} items, not {len(parts)}")
        for one, part in zip(value, parts, strict=True):
            _check(one, part, name)


@cache
def _taken_apart(kind: Any) -> tuple[Any, tuple[Any, ...], bool]:
    """Return an annotation without its parts, the parts, and whether None is allowed."""
    parts = get_args(kind)
    optional = get_origin(kind) in (Union, UnionType)
    if optional:
        (kind,) = (part for part in parts if part is not NoneType)
        parts = get_args(kind)
    return get_origin(kind) or kind, parts, optional


_LARGEST = 2**63


def _fits(value: Any, kind: type) -> bool:
    if kind in (int, float):
        ours = int if kind is int else (int, float)
        return isinstance(value, ours) and not isinstance(value, bool) and -_LARGEST < value < _LARGEST
    return isinstance(value, kind)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
