"""What `--method auto` chooses among: a short list, each candidate a method with settings of its own."""

from collections.abc import Collection
from dataclasses import replace

from ..selection.candidates import Candidate, distinct
from ..selection.spaces import AUTO_CANDIDATES
from .config import RunConfig

AUTO = "auto"
"""The method that stands for choosing one of `AUTO_CANDIDATES`."""


def is_auto(config: RunConfig) -> bool:
    """Tell whether a configuration leaves the choice of the method to us.

    >>> is_auto(RunConfig(method="AUTO")), is_auto(RunConfig())
    (True, False)
    """
    return config.method.strip().lower() == AUTO


def auto_candidates(config: RunConfig, given: Collection[str] | None = None) -> list[Candidate[RunConfig]]:
    """Spell the candidates out.

    Args:
        config: What all of them share.
        given: Names of the options that were given and win over the candidates' own; None for those that differ from
            the defaults.

    Returns:
        The candidates; of two whose configurations come out equal the first alone.

    Raises:
        ValueError: An option cannot be had with one of the candidates.

    Example:
        >>> [one.name for one in auto_candidates(RunConfig(method="auto"))]
        ['s+t', 'gentle s+t', 'means', 'm', 'so', 'ccsa']
        >>> [one.name for one in auto_candidates(RunConfig(method="auto", lr=0.01))]
        ['s+t', 'means', 'm', 'so', 'ccsa']
    """
    kept = set(config.changed() if given is None else given) - {"method"}
    found = []
    for name, options in AUTO_CANDIDATES.items():
        own = {key: value for key, value in options.items() if key not in kept}
        found.append(Candidate(name, options, _fitting(replace(config, **own))))
    return distinct(found)


def _fitting(config: RunConfig) -> RunConfig:
    """Take away what speaks of orders from a method that aligns none: it is meant for the others."""
    if not replace(config, orders=None, sigma1=RunConfig.sigma1).settings().resolved_method().aligns:
        several = isinstance(config.sigma1, tuple)
        config = replace(config, orders=None, sigma1=RunConfig.sigma1 if several else config.sigma1)
    config.settings()  # says what is wrong before there is any work
    return config
