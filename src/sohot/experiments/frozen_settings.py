"""Settings of cells that train on frozen features: which of a grid's apply, and which to choose from."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..data.pools import SUPERVISED
from ..methods.settings import HeadSettings
from ..selection.candidates import Candidate, every_combination, name_options
from ..selection.spaces import feature_space
from .cell import MOST_TRIALS, relevant_settings
from .grid import Grid
from .grid_keys import FEATURE_KEYS, HEAD_KEYS


def head_settings(name: str, settings: Mapping[str, Any]) -> HeadSettings:
    """Return the settings of a fit, taken from those of a cell.

    Args:
        name: Name of the method.
        settings: Settings of the cell; those of the network that makes the features are ignored.

    Example:
        >>> head_settings("so", {"sigma1": 0.3, "image_size": 64}).sigma1
        0.3
    """
    return HeadSettings(method=name, **{key: value for key, value in settings.items() if key in HEAD_KEYS})


def frozen_combinations(
    grid: Grid, name: str, pool: str = SUPERVISED
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the numbers of the protocol and the settings for each combination of varied values.

    Of the grid's settings only those that affect features apply, not those of training on images.

    Args:
        grid: The grid.
        name: Name of the method.
        pool: What the unlabelled target images are; without any, settings for them do not apply.

    Raises:
        ValueError: A varied setting does not apply to frozen features.
    """
    features = {key: value for key, value in grid.settings.items() if key in FEATURE_KEYS}
    drawn = {key: value for key, value in grid.settings.items() if key in grid.draw_names()}
    for key in grid.vary:
        if key not in HEAD_KEYS and key not in FEATURE_KEYS and key not in grid.draw_names():
            raise ValueError(
                f"vary.{key} is about training on images; with --frozen vary one of {', '.join(HEAD_KEYS)}"
            )
    for varied in every_combination(grid.vary):
        draw = {key: value for key, value in {**drawn, **varied}.items() if key in grid.draw_names()}
        shaped = {key: value for key, value in {**features, **varied}.items() if key in FEATURE_KEYS}
        head = {key: value for key, value in {**grid.frozen, **varied}.items() if key in HEAD_KEYS}
        yield draw, {**shaped, **normal_head(name, head, pool)}


def normal_head(name: str, settings: Mapping[str, Any], pool: str = SUPERVISED) -> dict[str, Any]:
    """Return the settings that a method uses and that differ from the defaults, in normal form and order.

    Example:
        >>> normal_head("s+t", {"steps": 50, "sigma1": 1.0, "seed": 0})
        {'steps': 50}
    """
    chosen = HeadSettings(method=name, **relevant_settings(name, settings, frozen=True, pool=pool)).as_json()
    usual = HeadSettings(method=name).as_json()
    return {key: value for key, value in chosen.items() if value != usual[key]}


def frozen_space(grid: Grid, name: str, pool: str = SUPERVISED) -> dict[str, list[Any]]:
    """Return the values to choose from for a method: a list by setting."""
    space = grid.frozen_space or {key: values for key, values in feature_space(name).items() if key not in grid.vary}
    applying = relevant_settings(name, space, frozen=True, pool=pool)
    found = {key: list(values) for key, values in applying.items()}
    if (count := math.prod(len(values) for values in found.values())) > MOST_TRIALS:
        raise ValueError(f"frozen_space has {count} combinations for {name!r}; at most {MOST_TRIALS} can be tried")
    for key, values in found.items():
        for value in values:
            normal_head(name, {**grid.frozen, key: value}, pool)
    if not found:
        raise ValueError(f"frozen_space holds no setting that the method {name!r} uses: nothing to select from")
    return found


def frozen_candidates(
    name: str, settings: Mapping[str, Any], space: Mapping[str, Sequence[Any]]
) -> list[Candidate[HeadSettings]]:
    """List the candidates of a cell: every combination, its own settings first, because ties go to the first.

    Example:
        >>> found = frozen_candidates("so", {"sigma1": 0.1}, {"sigma1": [0.01, 0.1], "sigma2": [0.1]})
        >>> [one.name for one in found]
        ['sigma1=0.1, sigma2=0.1', 'sigma1=0.01, sigma2=0.1']
    """
    own = head_settings(name, settings).as_json()
    combined = sorted(every_combination(space), key=lambda one: any(own[key] != value for key, value in one.items()))
    return [Candidate(name_options(one), one, head_settings(name, {**settings, **one})) for one in combined]
