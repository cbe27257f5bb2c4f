"""The table of an experiment as plain data, and the sentences below it: what all other forms of it are made from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from ...data.names import enumerate_words
from ..published import AVERAGE, PublishedRow, backbone_label, published, published_source, stable_ranges
from ..results import Record, ResultRow, baseline_of, collect, shifts_of, show_value
from ..statistics import overall_difference, paired_difference, split_averages, summarise

if TYPE_CHECKING:
    from ...experiments.grid import Grid

MOST_ERRORS = 5
_ACCURACY = {"micro": "share of all test images", "macro": "mean over the classes of the share of their test images"}
_SELECTION = {
    "none": "settings were fixed before this run, in the grid",
    "cv": "settings were chosen by few-shot cross-validation on training images",
    "validation": "settings were chosen on the protocol's validation images",
}


def write_notes(table: Mapping[str, Any], rows: Sequence[ResultRow], grid: "Grid") -> list[str]:
    """Write the notes that hold for a whole table.

    Args:
        table: The table so far.
        rows: The rows it was made from.
        grid: The grid.

    Returns:
        One sentence or a few for each note.
    """
    return [
        _numbers(table),
        _selection(rows),
        *_frozen(rows),
        *_failures(rows),
        *(_note_differences(table) if table["differences"] else []),
        *(_published(table, rows, grid) if grid.published else []),
    ]


def _numbers(table: Mapping[str, Any]) -> str:
    count = len(table["splits"])
    splits = "1 split" if count == 1 else f"{count} splits"
    spread = "" if count == 1 else ", ± standard deviation over them (population formula)"
    average = ", average = mean of the shifts" if len(table["shifts"]) > 1 else ""
    return (
        f"Accuracy on the target in per cent ({_ACCURACY[table['accuracy']]}), protocol {table['protocol']!r}: "
        f"mean of {splits}{spread}{average}."
    )


def _selection(rows: Sequence[ResultRow]) -> str:
    rules = sorted({record["cell"].get("select", "none") for row in rows for record in row.done.values()} or {"none"})
    said = [_SELECTION.get(rule, f"settings were selected by {rule!r}") for rule in rules]
    return f"Selection: {'; in part '.join(said)}. Test images select nothing."


def _frozen(rows: Sequence[ResultRow]) -> list[str]:
    frozen = {bool(record["cell"].get("frozen")) for row in rows for record in row.done.values()}
    if True not in frozen:
        return []
    return [f"Networks stay as they are{', in part' if False in frozen else ''}: heads are trained on frozen features."]


def _failures(rows: Sequence[ResultRow]) -> list[str]:
    errors = [
        f"{row.label}, {shift}, split {split} ({error})"
        for row in rows
        for (shift, split), error in sorted(row.failed.items())
    ]
    return [f"Failed: {enumerate_words(errors, MOST_ERRORS)}."] if errors else []


def _note_differences(table: Mapping[str, Any]) -> list[str]:
    average = "For the average over shifts the units are the splits, the shifts averaged first. "
    return [
        "Differences are paired: a split trains on the same images with both methods. "
        f"{average if len(table['shifts']) > 1 else ''}Interval and p by Student's t, beside it p by Wilcoxon's signed "
        "ranks (exact); none is corrected for the number of comparisons."
    ]


def _published(table: Mapping[str, Any], rows: Sequence[ResultRow], grid: "Grid") -> list[str]:
    assert grid.published is not None
    notes = [f"Published: {published_source(grid.published)}."]
    theirs = sorted({row["backbone"] for row in table["published"]} - {"own"})
    ours = sorted({row.backbone for row in rows})
    if theirs and set(theirs) != set(ours):
        both = [" and ".join(map(backbone_label, names)) for names in (theirs, ours)]
        notes.append(f"Published rows are by {both[0]}, ours by {both[1]}: different backbones, not comparable.")
    protocols = sorted({row["protocol"] for row in table["published"]} - {grid.protocol})
    if protocols:
        notes.append(f"Published rows follow the protocol {' and '.join(protocols)}: not comparable with ours.")
    for one in published(grid.published):
        if one.gain and one.varied is not None and one.shift in grid.shifts:
            at = f"{one.varied[0]} = {show_value(one.varied[1])}"
            notes.append(
                f"Published gain of {one.label} over S+T ({backbone_label(one.backbone)}), {at}: +{one.value}."
            )
    for name, (low, high) in stable_ranges(grid.published).items():
        notes.append(f"Published: stable for {name} from {low:g} to {high:g}, on features that are not scaled.")
    return notes


if TYPE_CHECKING:
    from ...experiments.grid import Grid


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
