"""Options that suit training with unlabelled images, for those that were not given."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from .._reading import read_json
from .auto import is_auto
from .config import RunConfig
from .split_file import POOL

POOL_DEFAULTS: dict[str, Any] = {"method": "s+t", "lr": 0.01, "steps": 240, "batch_rows": 128, "pool_rows": 64}
"""Pseudo-labels need a higher rate and more steps than three labels per class do; with them, aligning the domains as
well adds nothing clear (docs/results/unlabelled.md). Batches are small: two cores shall finish in a quarter of an
hour."""


def has_pool(config: RunConfig) -> bool:
    """Tell whether a run gets unlabelled images: from folders, from what --shots leaves over, or from a split."""
    if config.unlabelled is not None:
        return True
    try:
        return config.split is not None and bool(read_json(config.split)["sides"][POOL]["files"])
    except (OSError, ValueError, KeyError, TypeError):  # reported where the split is read
        return False


def with_pool_defaults(config: RunConfig, given: Collection[str] | None = None) -> RunConfig:
    """Fill in what suits unlabelled images for options not given; a run without any is returned unchanged.

    `--method auto` stands for the usual method here: what is chosen is whether the unlabelled images count.

    Args:
        config: The configuration.
        given: Names of the options that were given and take precedence; None for those that differ from the defaults.

    Example:
        >>> found = with_pool_defaults(RunConfig(shots=3, unlabelled="rest", lr=0.02))
        >>> found.method, found.lr, found.steps
        ('s+t', 0.02, 240)
        >>> with_pool_defaults(RunConfig(shots=3)).steps is None
        True
    """
    if not has_pool(config) or config.trains == "head" or not config.pool_weight:
        return config
    kept = set(config.changed() if given is None else given)
    if is_auto(config):
        kept -= {"method"}
    if config.epochs is not None:
        kept |= {"steps"}
    return replace(config, **{name: value for name, value in POOL_DEFAULTS.items() if name not in kept})
