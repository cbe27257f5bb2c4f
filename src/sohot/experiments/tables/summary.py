"""The table of an experiment as plain data: what all other forms of it are made from."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from ..collecting import Record, ResultRow, baseline_of, collect, shifts_of
from ..published import AVERAGE, PublishedRow, published
from ..statistics import overall_difference, paired_difference, split_averages, summarise
from .notes import write_notes

if TYPE_CHECKING:
    from ..grid import Grid


def table_json(records: Iterable[Record], grid: "Grid", accuracy: str = "micro") -> dict[str, Any]:
    """Sum up the records of a grid.

    Args:
        records: Records as the store gives them.
        grid: The grid that they belong to.
        accuracy: "micro", the share of all test images (the paper), or "macro", the mean over the classes.

    Returns:
        Plain data for JSON, accuracies in per cent:
        `rows` (ours) and `published`, each with `method`, `label`, `backbone`, `values` of what is varied, `cells` by
        shift (`mean`, `std`, `count`, `expected`, `failed`, `splits`) and the `average` over the shifts;
        `differences` to the `baseline`, for each row by shift (over splits), as `average` (over splits, the shifts
        averaged first) and over all `pairs` of shift and split; and `notes`, sentences to print below.
    """
    records = list(records)
    grid = replace(grid, shifts=shifts_of(records, grid))
    rows = collect(records, grid)
    found: dict[str, Any] = {
        "name": grid.name,
        "title": grid.title or grid.name,
        "dataset": grid.dataset,
        "protocol": grid.protocol,
        "backbone": grid.backbone,
        "accuracy": accuracy,
        "baseline": grid.baseline,
        "shifts": list(grid.shifts),
        "splits": list(grid.splits),
        "varied": list(grid.vary),
        "rows": [_row(row, grid, accuracy) for row in rows],
        "published": _published_rows(grid),
        "differences": [one for row in rows if (one := _differences(row, rows, grid, accuracy)) is not None],
    }
    return {**found, "notes": write_notes(found, rows, grid)}


def _row(row: ResultRow, grid: "Grid", accuracy: str) -> dict[str, Any]:
    values = row.accuracies(accuracy)
    cells = {shift: _cell(row, shift, grid, accuracy) for shift in grid.shifts}
    means = [cell["mean"] for cell in cells.values()]
    by_split = summarise(list(split_averages(values, grid.shifts).values()))
    average = {
        "mean": None if None in means or not means else fmean(means),
        "std": None if by_split is None else by_split.std,
        "count": 0 if by_split is None else by_split.count,
        "expected": len(grid.splits),
        "failed": sum(cell["failed"] for cell in cells.values()),
    }
    return {**_names(row), "cells": cells, "average": average}


def _cell(row: ResultRow, shift: str, grid: "Grid", accuracy: str) -> dict[str, Any]:
    summary = row.over_splits(shift, accuracy)
    splits = {split: value for (of, split), value in sorted(row.accuracies(accuracy).items()) if of == shift}
    return {
        "mean": None if summary is None else summary.mean,
        "std": None if summary is None else summary.std,
        "sample_std": None if summary is None else summary.sample_std,
        "count": len(splits),
        "expected": len(grid.splits),
        "failed": sum(of == shift for of, _ in row.failed),
        "splits": {str(split): value for split, value in splits.items()},
    }


def _differences(row: ResultRow, rows: Sequence[ResultRow], grid: "Grid", accuracy: str) -> dict[str, Any] | None:
    """Compare a row with its baseline; None for the baseline itself and where there is none."""
    other = baseline_of(row, rows, grid.baseline) if row.method != grid.baseline else None
    if other is None:
        return None
    ours, theirs = row.accuracies(accuracy), other.accuracies(accuracy)
    by_shift = {}
    for shift in grid.shifts:
        of_shift = [{split: v for (of, split), v in values.items() if of == shift} for values in (ours, theirs)]
        by_shift[shift] = paired_difference(*of_shift)
    average, pairs = overall_difference(ours, theirs, grid.shifts), paired_difference(ours, theirs)
    if pairs is None:
        return None
    return {
        **_names(row),
        "cells": {shift: None if one is None else one.as_json() for shift, one in by_shift.items()},
        "average": None if average is None else average.as_json(),
        "pairs": pairs.as_json(),
    }


def _names(row: ResultRow) -> dict[str, Any]:
    values = {name: list(value) if isinstance(value, tuple) else value for name, value in row.values.items()}
    return {"method": row.method, "label": row.label, "backbone": row.backbone, "values": values}


def _published_rows(grid: "Grid") -> list[dict[str, Any]]:
    """Group published accuracies by method, for the shifts of the grid."""
    by_method: dict[tuple[str, ...], list[PublishedRow]] = {}
    for one in published(grid.published) if grid.published else []:
        if not one.gain:
            by_method.setdefault((one.method, one.label, one.backbone, one.protocol), []).append(one)
    rows = []
    for (method, label, backbone, protocol), numbers in by_method.items():
        cells = {
            one.shift: {
                "mean": one.value,
                "std": one.std,
                "printed": one.printed,
                "splits": {str(split): value for split, value in enumerate(one.splits, 1)},
            }
            for one in numbers
            if one.shift in grid.shifts
        }
        if cells:
            names = {"method": method, "label": label, "backbone": backbone, "protocol": protocol, "values": {}}
            rows.append({**names, "cells": cells, "average": _published_average(numbers, grid.shifts)})
    return rows


def _published_average(numbers: Sequence[PublishedRow], shifts: Sequence[str]) -> dict[str, Any] | None:
    """Give the average over the shifts that are shown; as printed (over fewer shifts, too) if that is what it is."""
    of_shift = {one.shift: one.value for one in numbers if one.shift != AVERAGE}
    whole = next((one for one in numbers if one.shift == AVERAGE), None)
    shown = [of_shift[shift] for shift in shifts if shift in of_shift]
    if whole is not None and len(shown) == len(of_shift):
        return {"mean": whole.value, "printed": whole.printed, "over": whole.over}
    return {"mean": fmean(shown), "printed": None, "over": len(shown)} if len(shown) == len(shifts) else None
