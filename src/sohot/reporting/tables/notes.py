"""The notes below the table of an experiment: how its numbers were obtained and what they can be compared with."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...data.names import enumerate_words
from ...data.pools import INDUCTIVE, TRANSDUCTIVE
from ...runs.description import accuracy_name
from ..published import backbone_label, published, published_source, stable_ranges
from ..results import ResultRow, show_value

if TYPE_CHECKING:
    from ...experiments.grid import Grid
    from .result_table import ResultTable

MOST_ERRORS = 5
_ACCURACY = {"micro": "share of all test images", "macro": "share of test images per class, averaged over the classes"}
_SELECTION = {
    "none": "settings were fixed before this run, in the grid",
    "cv": "settings were chosen by few-shot cross-validation on training images",
    "validation": "settings were chosen on the protocol's validation images",
}


_POOL = {
    TRANSDUCTIVE: "Training sees the images that test, without their labels: on new images the accuracy may be lower.",
    INDUCTIVE: "Training sees half of the other target images without labels; the other half tests and is never seen.",
}


def write_notes(table: "ResultTable", rows: Sequence[ResultRow], grid: "Grid") -> list[str]:
    """Write the notes that apply to a whole table.

    Args:
        table: The table so far.
        rows: The rows it was made from.
        grid: The grid.

    Returns:
        The notes, each of one sentence or a few.
    """
    return [
        _numbers(table),
        *([_POOL[table.pool]] if table.pool in _POOL else []),
        _selection(rows, table.pool),
        *_frozen(rows),
        *_failures(rows),
        *(_note_differences(table) if table.differences else []),
        *(_published(table, rows, grid) if grid.published else []),
    ]


def _numbers(table: "ResultTable") -> str:
    count = len(table.splits)
    splits = "1 split" if count == 1 else f"{count} splits"
    spread = "" if count == 1 else ", ± population standard deviation over them"
    average = ", average = mean of the shifts" if len(table.shifts) > 1 else ""
    name = accuracy_name(table.pool).capitalize()
    return (
        f"{name} on the target in per cent ({_ACCURACY[table.accuracy]}), protocol {table.protocol!r}: "
        f"mean of {splits}{spread}{average}."
    )


def _selection(rows: Sequence[ResultRow], pool: str) -> str:
    rules = sorted({one.cell.select for row in rows for one in row.done.values()} or {"none"})
    said = [_SELECTION.get(rule, f"settings were selected by {rule!r}") for rule in rules]
    tests = "Labels of test images" if pool == TRANSDUCTIVE else "Test images"
    return f"Selection: {'; elsewhere '.join(said)}. {tests} choose nothing."


def _frozen(rows: Sequence[ResultRow]) -> list[str]:
    frozen = {one.cell.frozen for row in rows for one in row.done.values()}
    if True not in frozen:
        return []
    which = "In some cells only" if False in frozen else "Only"
    return [f"{which} heads are trained, on frozen features; the network does not change."]


def _failures(rows: Sequence[ResultRow]) -> list[str]:
    errors = [
        f"{row.label}, {shift}, split {split} ({error})"
        for row in rows
        for (shift, split), error in sorted(row.failed.items())
    ]
    return [f"Failed: {enumerate_words(errors, MOST_ERRORS)}."] if errors else []


def _note_differences(table: "ResultTable") -> list[str]:
    average = "For the average, shifts are averaged first and the splits are compared. "
    return [
        "Differences are paired: in each split both methods train on the same images. "
        f"{average if len(table.shifts) > 1 else ''}The interval and p (t) are by Student's t, p (Wilcoxon) by the "
        "exact signed-rank test; neither is corrected for the number of comparisons."
    ]


def _published(table: "ResultTable", rows: Sequence[ResultRow], grid: "Grid") -> list[str]:
    assert grid.published is not None
    notes = [f"Published: {published_source(grid.published)}."]
    theirs = sorted({row.backbone for row in table.published} - {"own"})
    ours = sorted({row.backbone for row in rows})
    if theirs and set(theirs) != set(ours):
        both = [" and ".join(map(backbone_label, names)) for names in (theirs, ours)]
        notes.append(f"Published rows use {both[0]}, ours {both[1]}: different backbones, not comparable.")
    protocols = sorted({row.protocol for row in table.published} - {grid.protocol})
    if protocols:
        notes.append(f"Published rows follow the protocol {' and '.join(protocols)}: not comparable with ours.")
    for one in published(grid.published):
        if one.gain and one.varied is not None and one.shift in grid.shifts:
            at = f"{one.varied[0]} = {show_value(one.varied[1])}"
            notes.append(
                f"Published gain of {one.label} over S+T ({backbone_label(one.backbone)}), {at}: +{one.value}."
            )
    for name, (low, high) in stable_ranges(grid.published).items():
        notes.append(f"Published: stable for {name} from {low:g} to {high:g}, on unscaled features.")
    return notes
