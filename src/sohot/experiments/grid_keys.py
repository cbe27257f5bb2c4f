"""Which settings and splits a grid may hold, and the errors for others."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from typing import Any, get_type_hints

from ..data.protocols import PROTOCOLS, draw_names
from ..methods.options import convert
from ..methods.settings import HeadSettings
from ..runs.config import RESULT_OPTIONS, RunConfig
from ..selection.search_space import parse_space
from .cell import MOST_CELLS

_OWN_KEYS = ("backbone", "method", "pool", "protocol")
"""Options of `sohot fit` and of `sohot data split` for which a grid has its own keys."""

SETTINGS = tuple(name for name in RESULT_OPTIONS if name not in _OWN_KEYS)
"""Options of `sohot fit` that affect a result; a grid does not say where and how to compute it."""


FEATURE_KEYS = (
    *("weights", "from_scratch", "tap", "image_size", "channels"),
    *("source_backbone", "source_weights", "source_tap", "source_channels"),
)
"""Options of `sohot fit` that affect frozen features."""

HEAD_KEYS = tuple(one.name for one in fields(HeadSettings) if one.name != "method")
"""Settings of training on frozen features."""


def shapes_features(name: str) -> bool:
    """Tell whether a setting is about images and features, not about training on existing features.

    >>> shapes_features("image_size"), shapes_features("target_shots"), shapes_features("lr")
    (True, True, False)
    """
    return name in FEATURE_KEYS or any(name in draw_names(protocol) for protocol in PROTOCOLS)


def check_head(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Check settings of training on frozen features; values may be text from the command line.

    >>> check_head({"lr": "0.01", "steps": 50}, "frozen")
    {'lr': 0.01, 'steps': 50}
    """
    found: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        try:
            refuse_unknown(name, HEAD_KEYS, "setting on frozen features")
            found[name] = _of_text(value)
            HeadSettings(method="so", **{name: found[name]})
        except (ValueError, TypeError) as error:
            raise ValueError(f"{where}: {error}") from None
    return found


def _of_text(value: Any) -> Any:
    """Parse command-line text as JSON; other text stays as it is, and commas make a list."""
    if not isinstance(value, str):
        return value
    if "," in value and not value.startswith("["):
        value = f"[{value}]"
    try:
        return json.loads(value)
    except ValueError:
        return value


def refuse_unknown(key: str, known: Sequence[str], what: str) -> None:
    """Refuse an unknown key and suggest the closest known one.

    Args:
        key: The key.
        known: The known keys.
        what: What it is, for the message.
    """
    if key in known:
        return
    near = get_close_matches(key, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(known)}"
    raise ValueError(f"unknown {what} {key!r}{hint}")


def check_settings(table: Mapping[str, Any], protocol: str | None, where: str) -> dict[str, Any]:
    """Check settings of cells, and convert their values to their types.

    Args:
        table: Settings by name, with `-` or `_`; values as TOML or the command line gives them.
        protocol: The protocol whose numbers are allowed too; None to allow none.
        where: The table, for messages.

    Raises:
        ValueError: A key is unknown, or a value is not of its type.

    Example:
        >>> check_settings({"sigma1": "0.1", "batch-rows": 64}, "paper", "settings")
        {'sigma1': 0.1, 'batch_rows': 64}
    """
    return {_known(key, protocol, where): _read(key.replace("-", "_"), value) for key, value in table.items()}


def check_values(table: Mapping[str, Any], protocol: str | None, where: str, *, ranges: bool = False) -> dict[str, Any]:
    """Check lists of values by setting, like `check_settings`; with `ranges` also tables of low and high."""
    found: dict[str, Any] = {}
    for key, values in table.items():
        name = _known(key, protocol, where)
        if ranges and isinstance(values, Mapping):
            for part in values:
                refuse_unknown(part, ("low", "high", "log", "int"), f"part of the range {where}.{key}:")
            parse_space({name: values})
            found[name] = dict(values)
            continue
        if not isinstance(values, (list, tuple)) or not values:
            raise ValueError(f"{where}.{key} must be a list of values such as [0.1, 1.0], got {values!r}")
        found[name] = [_read(name, value) for value in values]
    return found


def _known(key: str, protocol: str | None, where: str) -> str:
    name = key.replace("-", "_")
    numbers = [] if protocol is None else draw_names(protocol)
    if name in _OWN_KEYS:
        raise ValueError(f"{where}: {key!r} is not a setting but a key of the grid: put it above the tables")
    try:
        refuse_unknown(name, [*SETTINGS, *numbers], "setting")
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    return name


def _read(name: str, value: Any) -> Any:
    if isinstance(value, str) and value.casefold() in ("true", "false"):
        value = value.casefold() == "true"
    if name not in SETTINGS:
        return _number(name, value)
    one = next(one for one in fields(RunConfig) if one.name == name)
    read = convert(one, get_type_hints(RunConfig)[name], value)
    if isinstance(read, tuple):
        return list(read)
    return read if isinstance(read, (bool, int, float, str)) or read is None else str(read)


def _number(name: str, value: Any) -> int:
    try:
        number = value if isinstance(value, bool) else int(str(value))
    except ValueError:
        raise ValueError(f"{name} must be an integer, got {value!r}") from None
    if name in ("target_shots", "source_shots") and number < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")
    return _fitting(number, name)


def _fitting(value: int, name: str) -> int:
    """Require a number of splits or images that fits into 31 bits."""
    if abs(value) >= 2**31:
        raise ValueError(f"{name} must be below {2**31}, got {value}")
    return value


def parse_splits(value: int | str | Sequence[int]) -> tuple[int, ...]:
    """Parse the splits: a number counts from 1, `2-4` is a range, `1,4` a list.

    >>> parse_splits(3), parse_splits("2-4"), parse_splits("1,4"), parse_splits([5])
    ((1, 2, 3), (2, 3, 4), (1, 4), (5,))
    """
    wrong = f"splits must be a number such as 3, a range such as 2-4 or a list such as 1,4, got {value!r}"
    if isinstance(value, str):
        try:
            parts = [[int(end) for end in part.split("-")] for part in value.split(",") if part.strip()]
        except ValueError:
            raise ValueError(wrong) from None
        if "," not in value and len(parts) == 1 and len(parts[0]) == 1:
            return parse_splits(parts[0][0])
        if any(len(part) > 2 for part in parts):
            raise ValueError(wrong)
        _refuse_many_splits(sum(max(0, part[-1] - part[0] + 1) for part in parts))
        value = [number for part in parts for number in range(part[0], part[-1] + 1)]
    if isinstance(value, int) and not isinstance(value, bool):
        _refuse_many_splits(value)
        value = range(1, value + 1)
    if isinstance(value, (bool, float)) or not all(isinstance(one, int) and not isinstance(one, bool) for one in value):
        raise ValueError(wrong)
    for number in value:
        _fitting(number, "each of splits")
    found = tuple(dict.fromkeys(value))
    if not found:
        raise ValueError("splits must name at least one")
    return found


def _refuse_many_splits(count: int) -> None:
    if count > MOST_CELLS:
        raise ValueError(f"splits must be at most {MOST_CELLS}, got {count}")
