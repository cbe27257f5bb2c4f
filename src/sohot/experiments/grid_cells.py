"""The cells of a grid on a data set."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from ..data.datasets.dataset import DataSet
from ..data.pools import INDUCTIVE, SUPERVISED, TRANSDUCTIVE
from ..data.protocols.paper import paper_numbers
from ..functional.plain_checks import check_choice
from ..methods.registry import method
from ..methods.settings import FitSettings
from ..networks.names import files_of
from ..networks.registry import find_builder
from ..runs.config import RunConfig
from ..selection.spaces import image_space
from .cell import MOST_CELLS, MOST_TRIALS, SELECTIONS, TRIALS, Cell, relevant_settings
from .frozen_settings import frozen_combinations, frozen_space
from .grid import Grid
from .grid_keys import SETTINGS


def cells(
    grid: Grid, dataset: DataSet, *, select: str = "none", trials: int = TRIALS, frozen: bool = False
) -> list[Cell]:
    """List the cells of a grid, those of the first split first; cells that coincide are listed once.

    Args:
        grid: The grid.
        dataset: The opened data set.
        select: How settings are chosen: "none", "cv" or "validation".
        trials: How many settings to try when selecting.
        frozen: Whether heads are trained on frozen features.

    Raises:
        ValueError: A shift, a split, a network or a setting is not available; the message names it.
    """
    check_choice(select, SELECTIONS, "select")
    if not 1 <= trials <= MOST_TRIALS:
        raise ValueError(f"trials must be between 1 and {MOST_TRIALS}, got {trials}")
    _require_pool(grid)
    find_builder(grid.backbone)
    shifts = {dataset.parse_shift(shift)[0]: "" for shift in grid.shifts or dataset.shifts or (None,)}
    _refuse_many(grid, len(shifts))
    shifts = {shift: data_fingerprint(dataset, shift) for shift in shifts}
    if grid.protocol == "paper":
        _check_splits(grid, paper_numbers(dataset).splits)
    for tables in grid.shift_settings.values():
        for shift in tables:
            if dataset.parse_shift(shift)[0] != shift:  # it would never be looked up
                raise ValueError(f"settings of the shift {shift!r}: spell it {dataset.parse_shift(shift)[0]!r}")
    found: dict[str, Cell] = {}
    for split, (shift, data), pool, name in product(grid.splits, shifts.items(), grid.pool, grid.methods):
        for draw, settings in (
            frozen_combinations(grid, name, pool) if frozen else _combinations(grid, name, shift, pool)
        ):
            cell = Cell(
                dataset.name,
                shift,
                split,
                name,
                RunConfig(backbone=grid.backbone).stored()["backbone"],
                grid.protocol,
                draw,
                settings,
                frozen,
                select,
                {} if select == "none" else _search(grid, name, settings, trials, frozen, pool),
                data,
                weights_fingerprint(grid.backbone, settings),
                pool,
            )
            found.setdefault(cell.key, cell)
    return list(found.values())


def _require_pool(grid: Grid) -> None:
    for name in grid.methods:
        if SUPERVISED in grid.pool and method(name).needs_pool:
            raise ValueError(
                f"the method {name!r} learns from unlabelled target images, and with pool {SUPERVISED!r} there are "
                f"none: use --pool {TRANSDUCTIVE} or {INDUCTIVE}"
            )


def _search(grid: Grid, name: str, settings: Mapping[str, Any], trials: int, frozen: bool, pool: str) -> dict[str, Any]:
    """Return the settings to choose from. On frozen features fits are cheap: every combination is tried."""
    if frozen:
        return {"space": frozen_space(grid, name, pool)}
    return {"space": _space(grid, name, settings, pool), "trials": trials}


def _refuse_many(grid: Grid, shifts: int) -> None:
    varied = math.prod(len(values) for values in grid.vary.values())
    pools = {"pools": len(grid.pool)} if len(grid.pool) > 1 else {}
    counts = {"splits": len(grid.splits), "shifts": shifts, **pools, "methods": len(grid.methods)}
    counts["combinations of settings"] = varied
    if (count := math.prod(counts.values())) > MOST_CELLS:
        raise ValueError(
            f"the grid has {count} cells ({', '.join(counts)}: {' × '.join(map(str, counts.values()))}); "
            f"at most {MOST_CELLS} are possible: divide it"
        )


def _check_splits(grid: Grid, most: int) -> None:
    for number in grid.splits:
        if not 1 <= number <= most:
            raise ValueError(f"splits: the paper's protocol has splits 1 to {most} for {grid.dataset}, got {number}")


def _combinations(grid: Grid, name: str, shift: str, pool: str) -> Iterator[tuple[dict[str, int], dict[str, Any]]]:
    """Yield the numbers of the protocol and the settings for each combination of varied values."""
    for values in product(*grid.vary.values()):
        varied = dict(zip(grid.vary, values, strict=True))
        own = {**grid.method_settings.get(name, {}), **grid.shift_settings.get(name, {}).get(shift, {})}
        merged = {**grid.settings, **own, **varied}
        draw = {key: value for key, value in merged.items() if key not in SETTINGS}
        yield draw, normal_settings(name, {key: value for key, value in merged.items() if key in SETTINGS}, pool)


def normal_settings(name: str, settings: Mapping[str, Any], pool: str = SUPERVISED) -> dict[str, Any]:
    """Return the settings that a method uses and that differ from the defaults, in normal form and order.

    Args:
        name: Name of the method.
        settings: Options of `sohot fit`.
        pool: What the unlabelled target images are.

    Raises:
        ValueError: The method cannot be trained with them.

    Example:
        >>> normal_settings("s+t", {"steps": 100, "sigma1": 1.0, "lr": 0.01})
        {'lr': 0.01}
    """
    config = RunConfig.from_values({**relevant_settings(name, settings, pool=pool), "method": name})
    config.settings()  # checks that they fit together
    changed = {key: value for key, value in config.changed().items() if key in SETTINGS}
    if changed.get("steps") == FitSettings().steps:
        del changed["steps"]
    return changed


def _space(grid: Grid, name: str, settings: Mapping[str, Any], pool: str) -> dict[str, Any]:
    usual = {key: values for key, values in image_space(name, settings).items() if key not in grid.vary}
    space = relevant_settings(name, grid.space or usual, pool=pool)
    if not space:
        raise ValueError(f"space holds no setting that the method {name!r} uses: nothing to select from")
    for key, values in space.items():
        ends = [values[end] for end in ("low", "high") if end in values] if isinstance(values, Mapping) else values
        if "orders" not in space:  # σ1 by order would have to fit every choice of orders
            for value in ends:
                normal_settings(name, {**settings, key: value}, pool)
    return dict(space)


def data_fingerprint(dataset: DataSet, shift: str) -> str:
    """Fingerprint the images of a shift by names, sizes and classes, independent of their folder."""
    digest = hashlib.sha256()
    for domain, images in zip(("source", "target"), dataset.pair(shift, leave_out=True), strict=True):
        for row, file in enumerate(images.files):
            group = images.groups[row] if images.groups else ""
            line = [domain, images.name(row), file.stat().st_size, images.classes[images.labels[row]], group]
            digest.update(json.dumps(line).encode())
    return digest.hexdigest()[:32]


def weights_fingerprint(backbone: str, settings: Mapping[str, Any]) -> str:
    """Fingerprint the files that a network is made of, except sohot's own; "" if there are none."""
    used = [file for name in (backbone, settings.get("source_backbone")) if name for file in files_of(name)]
    used += [Path(settings[name]) for name in ("weights", "source_weights") if settings.get(name)]
    for file in used:
        if not file.is_file():
            raise FileNotFoundError(f"{file}: there is no such file")
    digests = [_digest(file, file.stat().st_mtime_ns) for file in used]
    return hashlib.sha256("".join(digests).encode()).hexdigest()[:32] if digests else ""


@cache
def _digest(file: Path, _changed: int) -> str:
    digest = hashlib.sha256()
    with open(file, "rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
