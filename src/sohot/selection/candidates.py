"""Candidates: the settings to choose from, without duplicates, in the order that breaks ties."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Generic, TypeVar

from ..methods.registry import method as find_method
from ..methods.settings import HeadSettings

Settings = TypeVar("Settings")


@dataclass(frozen=True)
class Candidate(Generic[Settings]):
    """One candidate.

    Attributes:
        name: Its name in tables.
        options: The options that distinguish it.
        settings: All settings it is trained with.
    """

    name: str
    options: Mapping[str, Any]
    settings: Settings


def every_combination(values: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """List every combination of the option values; the last option changes fastest.

    >>> every_combination({"sigma1": [0.1, 1.0], "sigma2": [0.1]})
    [{'sigma1': 0.1, 'sigma2': 0.1}, {'sigma1': 1.0, 'sigma2': 0.1}]
    """
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


def relevant(method: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Drop the options that a method ignores when it trains on features.

    >>> relevant("s+t", {"method": "s+t", "sigma1": 0.1})
    {'method': 's+t'}
    """
    ignored = find_method(method).ignored(on_features=True)
    return {key: value for key, value in options.items() if key not in ignored}


def name_options(options: Mapping[str, Any]) -> str:
    """Name a candidate by its options.

    >>> name_options({"method": "so", "sigma1": 0.1}), name_options({})
    ('method=so, sigma1=0.1', 'the base')
    """
    return ", ".join(f"{name}={value}" for name, value in options.items()) or "the base"


def distinct(candidates: Iterable[Candidate[Settings]]) -> list[Candidate[Settings]]:
    """Keep the first of all candidates with equal settings.

    >>> [one.name for one in distinct([Candidate("a", {}, 1), Candidate("b", {}, 2), Candidate("c", {}, 1)])]
    ['a', 'b']
    """
    found: list[Candidate[Settings]] = []
    for candidate in candidates:
        if not any(candidate.settings == one.settings for one in found):
            found.append(candidate)
    return found


def simplicity(settings: HeadSettings) -> tuple[float, ...]:
    """Return the key that breaks ties: no alignment first, then baselines, whole domains, fewer orders, …."""
    method = settings.resolved_method()
    return (
        method.aligns,
        not (method.aligns or method.is_plain),
        method.aligns and method.scope == "class",
        len(method.orders),
        method.class_weights is not None,
        settings.streams == "separate",
        settings.hidden or 0,
        settings.estimator != "plugin",
        (sum(settings.sigmas()) + settings.sigma2) if method.aligns else 0,
    )
