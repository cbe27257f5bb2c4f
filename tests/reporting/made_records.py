"""Made-up grids and records in the form of the store: numbers like real ones, drawn with a fixed seed."""

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from made_up_results import result

from sohot.experiments import Grid
from sohot.experiments.cell import Cell
from sohot.experiments.result import Attempt

OFFICE_CLASSES = [f"class {number}" for number in range(31)]
SHIFTS = ("A-W", "A-D", "W-A", "W-D", "D-A", "D-W")
METHODS = ("s+t", "m", "so", "so+zeta")
_LEVEL = {"A-W": 0.82, "A-D": 0.85, "W-A": 0.65, "W-D": 0.95, "D-A": 0.66, "D-W": 0.94}
_POOL_GAIN = {"supervised": 0.0, "transductive": 0.04, "inductive": 0.02}
_GAIN = {"s": -0.15, "t": -0.05, "s+t": 0.0, "m": 0.003, "so": 0.012, "so+zeta": 0.016}


def make_grid(**changes: Any) -> Grid:
    """The grid of Table 1, on two splits."""
    options = {
        "name": "office-alexnet",
        "title": "Office-31",
        "dataset": "office31",
        "protocol": "paper",
        "backbone": "lite0",
        "shifts": SHIFTS,
        "splits": (1, 2, 3),
        "methods": METHODS,
        "settings": {},
        "vary": {},
        "figures": ("zeta", "curves", "confusion"),
        "published": "office-alexnet",
    }
    return Grid(**{**options, **changes})


def make_records(grid: Grid, classes: Sequence[str] = OFFICE_CLASSES) -> list[Attempt]:
    """A finished record for each cell of a grid; varied settings are varied one at a time."""
    changes: list[dict[str, Any]] = [{name: value} for name, values in grid.vary.items() for value in values] or [{}]
    records: dict[str, Attempt] = {}
    for method in grid.methods:
        for change in changes:
            kept = {} if method in ("s", "t", "s+t") and "target_shots" not in change else change
            for shift in grid.shifts:
                for split in grid.splits:
                    record = make_record(method, shift, split, grid=grid, change=kept, classes=classes)
                    records[record.key] = record
    return list(records.values())


def make_record(
    method: str = "so",
    shift: str = "A-W",
    split: int = 1,
    *,
    grid: Grid | None = None,
    change: Mapping[str, Any] | None = None,
    classes: Sequence[str] = OFFICE_CLASSES,
    micro: float | None = None,
    error: str | None = None,
) -> Attempt:
    """One record; with `error` a failed one."""
    grid, change = grid or make_grid(), dict(change or {})
    draw = {name: change.pop(name) for name in ("target_shots",) if name in change}
    cell = Cell(
        dataset=grid.dataset,
        shift=shift,
        split=split,
        method=method,
        backbone=grid.backbone,
        protocol=grid.protocol,
        draw=draw,
        settings={**grid.settings, **change},
        data="made up",
        pool=grid.pool[0],
    )
    level = _level(method, shift, split, {**draw, **change}) + _POOL_GAIN[grid.pool[0]] if micro is None else micro
    of = 10 * len(classes)
    return Attempt(
        key=cell.key,
        cell=cell,
        result=None if error else result(round(min(level, 1) * of), method, cell.key, of, classes),
        error=error,
        versions={"sohot": "0.1.0", "torch": "2.13.0", "python": "3.11.7"},
        started="2026-01-01T10:00:00+00:00",
        finished="2026-01-01T10:01:00+00:00",
        host="here",
    )


def _level(method: str, shift: str, split: int, change: Mapping[str, Any]) -> float:
    shared = random.Random(f"{shift} {split}")  # splits differ alike for all methods
    own = random.Random(f"{method} {shift} {split} {change}")
    return _LEVEL.get(shift, 0.7) + _GAIN.get(method, 0.02) + shared.gauss(0, 0.015) + own.gauss(0, 0.004)


def only(records: Iterable[Attempt], **cell: Any) -> list[Attempt]:
    """The records whose cell has these values."""
    return [one for one in records if all(getattr(one.cell, name) == value for name, value in cell.items())]
