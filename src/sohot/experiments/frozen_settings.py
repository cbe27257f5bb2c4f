"""Settings of cells that train on frozen features: which of a grid's apply, and what is chosen from."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from ..methods.registry import method
from ..methods.settings import HeadSettings
from .grid import Grid
from .grid_keys import FEATURE_KEYS, HEAD_KEYS

SIGMAS1, SIGMAS2 = [0.01, 0.1, 1.0], [0.1, 1.0]
SHARES: list[float | None] = [None, 0.5]
RATES = [1e-3, 3e-3]
ALIGNED_SPACE: dict[str, list[Any]] = {"sigma1": SIGMAS1, "sigma2": SIGMAS2, "target_weight": SHARES}
PLAIN_SPACE: dict[str, list[Any]] = {
    "head_decay": [1e-3, 5e-3, 2e-2],
    "lr": RATES,
    "target_weight": SHARES,
}


def usual_space(name: str) -> dict[str, list[Any]]:
    """Give what `--select` chooses from by default: twelve settings for each method that learns from both domains.

    >>> usual_space("ccsa")["lr"], usual_space("lp-ft")["head_first"]
    ([0.001, 0.003], [0.25, None, 0.75])
    """
    chosen = method(name)
    if chosen.search:
        return {**{name: list(values) for name, values in chosen.search.items()}, "lr": RATES, "target_weight": SHARES}
    return ALIGNED_SPACE if chosen.aligns else PLAIN_SPACE


def head_settings(name: str, settings: Mapping[str, Any]) -> HeadSettings:
    """Give the settings of a fit, of those of a cell.

    Args:
        name: Name of the method.
        settings: Settings of the cell; those of the network that gives the features are left aside.

    Example:
        >>> head_settings("so", {"sigma1": 0.3, "image_size": 64}).sigma1
        0.3
    """
    return HeadSettings(method=name, **{key: value for key, value in settings.items() if key in HEAD_KEYS})


def frozen_combinations(grid: Grid, name: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Give the numbers of the protocol and the settings for each combination of what is varied.

    Of the grid's settings those apply that shape features; how images are trained on does not.

    Raises:
        ValueError: Something is varied that frozen features do not know.
    """
    features = {key: value for key, value in grid.settings.items() if key in FEATURE_KEYS}
    drawn = {key: value for key, value in grid.settings.items() if key in grid.draw_names()}
    for key in grid.vary:
        if key not in HEAD_KEYS and key not in FEATURE_KEYS and key not in grid.draw_names():
            raise ValueError(
                f"vary.{key} is about training on images; with --frozen vary one of {', '.join(HEAD_KEYS)}"
            )
    for values in product(*grid.vary.values()):
        varied = dict(zip(grid.vary, values, strict=True))
        draw = {key: value for key, value in {**drawn, **varied}.items() if key in grid.draw_names()}
        shaped = {key: value for key, value in {**features, **varied}.items() if key in FEATURE_KEYS}
        head = {key: value for key, value in {**grid.frozen, **varied}.items() if key in HEAD_KEYS}
        yield draw, {**shaped, **normal_head(name, head)}


def normal_head(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Give the settings that a method looks at and that differ from the defaults, in one form and order.

    Example:
        >>> normal_head("s+t", {"steps": 50, "sigma1": 1.0, "seed": 0})
        {'steps': 50}
    """
    kept = {key: value for key, value in settings.items() if key not in method(name).ignored(on_features=True)}
    chosen, usual = HeadSettings(method=name, **kept).as_json(), HeadSettings(method=name).as_json()
    return {key: value for key, value in chosen.items() if value != usual[key]}


def frozen_space(grid: Grid, name: str) -> dict[str, list[Any]]:
    """Give what settings are chosen from for a method: a list of values by setting."""
    space = grid.frozen_space or {key: values for key, values in usual_space(name).items() if key not in grid.vary}
    found = {key: list(values) for key, values in space.items() if key not in method(name).ignored(on_features=True)}
    for key, values in found.items():
        for value in values:
            normal_head(name, {**grid.frozen, key: value})
    if not found:
        raise ValueError(f"frozen_space holds nothing that the method {name!r} looks at: nothing to select from")
    return found


def candidates(name: str, settings: Mapping[str, Any], space: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """List what is tried for a cell: every combination, that of the cell's own settings first, for ties go to it.

    Example:
        >>> candidates("so", {"sigma1": 0.1}, {"sigma1": [0.01, 0.1], "sigma2": [0.1]})
        [{'sigma1': 0.1, 'sigma2': 0.1}, {'sigma1': 0.01, 'sigma2': 0.1}]
    """
    own = head_settings(name, settings).as_json()
    combined = [dict(zip(space, values, strict=True)) for values in product(*space.values())]
    return sorted(combined, key=lambda one: any(own[key] != value for key, value in one.items()))
