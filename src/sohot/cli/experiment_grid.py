"""Which grid `sohot experiment` is about: one of those that are built in, or a file, changed as the command says."""

from collections.abc import Sequence
from typing import Any

from ..experiments.grid import COMPLEXITY, Grid, builtin_names, parse_splits, read_grid
from ..experiments.grid_keys import shapes_features
from .output import print_json, print_text


def list_experiments(json: bool) -> None:
    """Print the names and titles of the built-in experiments."""
    titles = {name: read_grid(name).title for name in builtin_names()}
    titles[COMPLEXITY] = "What the kernel form saves, measured and by formula; needs no data"
    if json:
        print_json({"experiments": titles})
        return
    for name, title in titles.items():
        print_text(f"{name:<20}{title}")


def change_grid(
    name: str,
    backbone: str | None,
    shifts: str | None,
    splits: str | None,
    methods: str | None,
    baseline: str | None,
    settings: Sequence[str],
    frozen: bool = False,
) -> Grid:
    """Read a grid and change it as the command line says."""
    fixed: dict[str, Any] = {}
    head: dict[str, Any] = {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--set must read KEY=VALUE, got {text!r}")
        of_head = frozen and not shapes_features(key.strip().replace("-", "_"))
        (head if of_head else fixed)[key.strip()] = value.strip()
    return read_grid(name).changed(
        fixed,
        head,
        backbone=backbone,
        shifts=_words(shifts),
        splits=None if splits is None else parse_splits(splits),
        methods=_words(methods),
        baseline=baseline,
    )


def _words(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(part.strip() for part in text.split(",") if part.strip())
