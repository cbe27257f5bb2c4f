"""What `--method auto` chooses among: a short list, each candidate a method with settings of its own."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..methods.settings import FitSettings
from .config import RunConfig

AUTO = "auto"
"""The method that stands for choosing one of `CANDIDATES`."""


@dataclass(frozen=True)
class Candidate:
    """A method to try.

    Attributes:
        name: Its name in tables.
        method: The method.
        options: Options of `sohot fit` that differ from the defaults, by the name of their field.
    """

    name: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)


CANDIDATES = (
    Candidate("s+t", "s+t"),
    Candidate("gentle s+t", "s+t", {"lr": FitSettings().lr / 10}),
    Candidate("means", "means"),
    Candidate("m", "m"),
    Candidate("so", "so"),
    Candidate("ccsa", "ccsa"),
)
"""The list, the first to be preferred among equals: nothing aligned comes first, for sometimes that is right."""


def is_auto(config: RunConfig) -> bool:
    """Tell whether a configuration leaves the choice of the method to us.

    >>> is_auto(RunConfig(method="AUTO")), is_auto(RunConfig())
    (True, False)
    """
    return config.method.strip().lower() == AUTO


def candidate_configs(config: RunConfig, given: Collection[str] | None = None) -> dict[str, RunConfig]:
    """Spell the candidates out.

    Args:
        config: What all of them share.
        given: Names of the options that were given and win over the candidates' own; None for those that differ from
            the defaults.

    Returns:
        The configurations by name; of two that come out equal the first alone.

    Raises:
        ValueError: An option cannot be had with one of the candidates.

    Example:
        >>> list(candidate_configs(RunConfig(method="auto")))
        ['s+t', 'gentle s+t', 'means', 'm', 'so', 'ccsa']
        >>> list(candidate_configs(RunConfig(method="auto", lr=0.01)))
        ['s+t', 'means', 'm', 'so', 'ccsa']
    """
    kept = set(config.changed() if given is None else given)
    found: dict[str, RunConfig] = {}
    for one in CANDIDATES:
        own = {name: value for name, value in one.options.items() if name not in kept}
        resolved = _fitting(replace(config, method=one.method, **own))
        if resolved not in found.values():
            found[one.name] = resolved
    return found


def _fitting(config: RunConfig) -> RunConfig:
    """Take away what speaks of orders from a method that aligns none: it is meant for the others."""
    if not replace(config, orders=None, sigma1=RunConfig.sigma1).settings().resolved_method().aligns:
        several = isinstance(config.sigma1, tuple)
        config = replace(config, orders=None, sigma1=RunConfig.sigma1 if several else config.sigma1)
    config.settings()  # says what is wrong before there is any work
    return config
