"""Made-up grids and records in the form of the store: numbers like real ones, drawn with a fixed seed."""

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sohot.experiments import Grid
from sohot.experiments.cell import Cell
from sohot.experiments.result import Attempt, CellResult

_CLASSES = """
back_pack bike bike_helmet bookcase bottle calculator desk_chair desk_lamp desktop_computer file_cabinet headphones
keyboard laptop_computer letter_tray mobile_phone monitor mouse mug paper_notebook pen phone printer projector
punchers ring_binder ruler scissors speaker stapler tape_dispenser trash_can
"""
OFFICE_CLASSES = _CLASSES.split()
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


def make_records(grid: Grid, classes: Sequence[str] = OFFICE_CLASSES, rows: int = 10) -> list[Attempt]:
    """A finished record for each cell of a grid; varied settings are varied one at a time."""
    changes: list[dict[str, Any]] = [{name: value} for name, values in grid.vary.items() for value in values] or [{}]
    records: dict[str, Attempt] = {}
    for method in grid.methods:
        for change in changes:
            kept = {} if method in ("s", "t", "s+t") and "target_shots" not in change else change
            for shift in grid.shifts:
                for split in grid.splits:
                    record = make_record(method, shift, split, grid=grid, change=kept, classes=classes, rows=rows)
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
    rows: int = 10,
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
    gain = _POOL_GAIN[grid.pool[0]]
    result = None if error else _result(method, shift, split, {**draw, **change}, classes, rows, micro, gain)
    return Attempt(
        key=cell.key,
        cell=cell,
        result=None if result is None else CellResult.from_json(result),
        error=error,
        versions={"sohot": "0.1.0", "torch": "2.13.0", "python": "3.11.7"},
        started="2026-01-01T10:00:00+00:00",
        finished="2026-01-01T10:01:00+00:00",
        host="here",
    )


def _result(method, shift, split, change, classes, rows, micro, gain) -> dict[str, Any]:
    shared = random.Random(f"{shift} {split}")  # splits differ alike for all methods
    own = random.Random(f"{method} {shift} {split} {change}")
    level = _LEVEL.get(shift, 0.7) + _GAIN.get(method, 0.02) + gain + shared.gauss(0, 0.015) + own.gauss(0, 0.004)
    if "target_shots" in change:
        level += 0.05 * (change["target_shots"] / 10) ** 0.5 - 0.05
    for name in ("sigma1", "sigma2"):
        if change.get(name, 0) > 0.5:
            level -= 0.05 * change[name]
    confusion = _confusion(own, level if micro is None else micro, len(classes), rows)
    right = [row[k] for k, row in enumerate(confusion)]
    shares = [one / rows for one in right]
    found = sum(right) / (rows * len(classes)) if micro is None else micro
    orders = [order for name, order in (("so", 2), ("to", 3), ("fo", 4)) if name in method.split("+")]
    steps = list(range(1, 201, 4))
    zeta = None
    if "zeta" in method:
        terms = ["means", *(f"order{order}" for order in orders)]
        zeta = {
            term: [min(1.0, max(0.0, own.betavariate(9, 2 + place))) for _ in classes]
            for place, term in enumerate(terms)
        }
    entropy = [3.4 * 0.97**step + 0.05 * own.random() for step in steps]
    alignment = [0.4 * 0.985**step + 0.01 * own.random() if orders or method == "m" else 0.0 for step in steps]
    return {
        "accuracy": {
            "rows": rows * len(classes),
            "correct": sum(right),
            "micro": found,
            "macro": sum(shares) / len(shares),
            "interval95": [max(0.0, found - 0.03), min(1.0, found + 0.03)],
            "per_class": dict(zip(classes, shares, strict=True)),
            "per_class_interval95": {
                name: [max(0.0, s - 0.2), min(1.0, s + 0.2)] for name, s in zip(classes, shares, strict=True)
            },
            "confusion": confusion,
        },
        "zeta": zeta,
        "curve": {
            "step": steps,
            "loss": [a + b for a, b in zip(entropy, alignment, strict=True)],
            "cross_entropy": entropy,
            "alignment": alignment,
        },
        "chosen": None,
        "seconds": {"features": 1.0, "select": 0.0, "train": 20.0, "test": 2.0},
        "steps": 200,
        "sizes": {"source": 620, "target": 93, "test": rows * len(classes)},
        "notes": [],
    }


def _confusion(own: random.Random, level: float, classes: int, rows: int) -> list[list[int]]:
    matrix = [[0] * classes for _ in range(classes)]
    for true in range(classes):
        for _ in range(rows):
            wrong = (true + own.choice((1, 2, classes // 2))) % classes
            matrix[true][true if own.random() < level else wrong] += 1
    return matrix


def only(records: Iterable[Attempt], **cell: Any) -> list[Attempt]:
    """The records whose cell has these values."""
    return [one for one in records if all(getattr(one.cell, name) == value for name, value in cell.items())]
