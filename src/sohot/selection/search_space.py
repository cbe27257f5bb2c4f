"""Search spaces: lists of choices and ranges of numbers."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .candidates import every_combination

_KEYS = ("low", "high", "log", "int")


@dataclass(frozen=True)
class Choices:
    """Unordered values, kept as JSON because Optuna takes no lists and does not distinguish 1 from True.

    Attributes:
        texts: The values, as JSON.
    """

    texts: tuple[str, ...]

    def decode(self, text: str) -> Any:
        """Decode a text to its value."""
        return json.loads(text)

    def including(self, name: str, value: Any) -> "Choices":
        """Return these choices with the value to try first in front."""
        text = _as_json(name, value)
        first = next((one for one in self.texts if _equal(json.loads(one), json.loads(text))), text)
        return replace(self, texts=(first, *(text for text in self.texts if text != first)))

    def first(self) -> str:
        """Return the choice to try first."""
        return self.texts[0]

    def all(self) -> list[str] | None:
        """List the choices."""
        return list(self.texts)

    def distribution(self) -> Any:
        """Describe the choices to Optuna."""
        from optuna.distributions import CategoricalDistribution

        return CategoricalDistribution(self.texts)


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included.

    Attributes:
        low: The smallest.
        high: The largest.
        log: Whether to sample evenly over the logarithm.
        whole: Whether to use whole numbers only.
        start: The number to try first; None for the middle.
    """

    low: float
    high: float
    log: bool = False
    whole: bool = False
    start: float | None = None

    def decode(self, value: Any) -> Any:
        """Return the number itself."""
        return value

    def including(self, name: str, value: Any) -> "Range":
        """Return this range with the value to try first, which must lie in it."""
        fits = isinstance(value, (int, float)) and not isinstance(value, bool) and self.low <= value <= self.high
        if not fits or (self.whole and value != int(value)):
            raise ValueError(
                f"{name}: the default {value!r} must lie in the search range, {self.low:g} to {self.high:g}"
                f"{', and be a whole number' if self.whole else ''}"
            )
        return replace(self, start=int(value) if self.whole else float(value))

    def first(self) -> float:
        """Return the number to try first."""
        if self.start is not None:
            return self.start
        middle = math.sqrt(self.low * self.high) if self.log else (self.low + self.high) / 2
        return round(middle) if self.whole else middle

    def all(self) -> list[int] | None:
        """List the numbers; None if they cannot be listed."""
        return list(range(int(self.low), int(self.high) + 1)) if self.whole else None

    def distribution(self) -> Any:
        """Describe the range to Optuna."""
        from optuna.distributions import FloatDistribution, IntDistribution

        if self.whole:
            return IntDistribution(int(self.low), int(self.high), log=self.log)
        return FloatDistribution(self.low, self.high, log=self.log)


Space = dict[str, Choices | Range]


def parse_space(table: Mapping[str, Any], default: Mapping[str, Any] | None = None) -> Space:
    """Parse a search space.

    Args:
        table: For each setting a list of choices, or a range `{"low": 0.01, "high": 1.0, "log": true, "int": false}`.
        default: The setting to try first. A choice missing from its list is added. A missing name defaults to the first
            choice or the middle of the range.

    Raises:
        ValueError: There is nothing to choose from; the message names the setting.
        TypeError: A part has the wrong type.

    Example:
        >>> space = parse_space({"orders": [[2], [2, 3, 4]], "sigma1": {"low": 0.01, "high": 1, "log": True}})
        >>> space["orders"]
        Choices(texts=('[2]', '[2, 3, 4]'))
        >>> parse_space({"sigma1": {"low": 1, "high": 0.1}})
        Traceback (most recent call last):
        ...
        ValueError: sigma1: low must be below high, got 1 and 0.1
    """
    if not isinstance(table, Mapping):
        raise TypeError(f"the search space must be a table that maps names to choices or ranges, got {table!r}")
    if not table:
        raise ValueError("the search space is empty: name at least one setting with its choices or its range")
    default = default or {}
    space: Space = {}
    for name, content in table.items():
        read = _read(name, content)
        space[name] = read.including(name, default[name]) if name in default else read
    return space


def combinations(space: Space, limit: int) -> list[dict[str, Any]] | None:
    """List all settings of a space, the default first; None if there are more than `limit` or they cannot be listed.

    >>> combinations(parse_space({"a": [1, 2], "b": [True]}), limit=2)
    [{'a': '1', 'b': 'true'}, {'a': '2', 'b': 'true'}]
    """
    total = 1
    for one in space.values():
        if isinstance(one, Range) and (not one.whole or one.high - one.low >= limit):
            return None
        total *= len(one.all() or [])
        if total > limit:
            return None
    every = every_combination({name: one.all() or [] for name, one in space.items()})
    first = {name: one.first() for name, one in space.items()}
    return [first, *(one for one in every if one != first)]


def _read(name: str, content: Any) -> Choices | Range:
    if isinstance(content, (Choices, Range)):
        return content
    if isinstance(content, Mapping):
        return _read_range(name, content)
    if isinstance(content, str) or not hasattr(content, "__iter__"):
        raise TypeError(
            f"{name}: give a list of choices or a range such as {{low = 0.01, high = 1.0}}, got {content!r}"
        )
    texts = [_as_json(name, value) for value in content]
    if not texts:
        raise ValueError(f"{name}: the list of choices is empty")
    for text in texts:
        if texts.count(text) > 1:
            raise ValueError(f"{name}: the choices list {text} twice")
    return Choices(tuple(texts))


def _read_range(name: str, content: Mapping[str, Any]) -> Range:
    unknown = [key for key in content if key not in _KEYS]
    if unknown:
        raise ValueError(f"{name}: a range has low, high, log and int, not {unknown[0]!r}")
    for key in ("low", "high"):
        value = content.get(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise ValueError(f"{name}: {key} must be a number, got {value!r}")
    for key in ("log", "int"):
        if not isinstance(content.get(key, False), bool):
            raise TypeError(f"{name}: {key} must be true or false, got {content[key]!r}")
    low, high, log, whole = content["low"], content["high"], content.get("log", False), content.get("int", False)
    if not low < high:
        raise ValueError(f"{name}: low must be below high, got {low} and {high}")
    if log and low <= 0:
        raise ValueError(f"{name}: low must be above 0 for log = true, got {low}")
    if whole and not (low == int(low) and high == int(high)):
        raise ValueError(f"{name}: low and high must be whole numbers for int = true, got {low} and {high}")
    return Range(float(low), float(high), log, whole)


def _as_json(name: str, value: Any) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except (ValueError, TypeError):
        raise ValueError(f"{name}: JSON cannot hold the choice {value!r}") from None


def _equal(one: Any, other: Any) -> bool:
    """Compare values as people do: 1 equals 1.0 but not true."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)
