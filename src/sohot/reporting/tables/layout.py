"""A table to read: our rows and published ones, then the paired differences, all as plain strings."""

import string
from collections.abc import Iterator
from typing import Any

from ...data.pools import POOLS
from ..published import backbone_label
from ..results import show_value
from ..statistics import PairedDifference
from .formats import Document, TextTable
from .result_table import (
    DifferenceRow,
    PublishedAccuracy,
    PublishedAverage,
    ResultTable,
    ShiftAccuracy,
    TableRow,
)

MISSING = "–"


class Marks:
    """Footnotes by letter; equal footnotes share a letter."""

    def __init__(self) -> None:
        self._letters: dict[str, str] = {}

    def mark(self, words: str | None) -> str:
        """Return the mark of a footnote: a letter in parentheses after a space; nothing if there are no words."""
        if words is None:
            return ""
        return f" ({self._letters.setdefault(words, self._letter(len(self._letters)))})"

    def notes(self) -> list[str]:
        """Return the footnotes."""
        return [f"({letter}) {words}." for words, letter in self._letters.items()]

    @staticmethod
    def _letter(number: int) -> str:
        letters = string.ascii_lowercase
        return letters[number] if number < len(letters) else f"{letters[number % 26]}{number // 26}"


def lay_out(table: ResultTable) -> Document:
    """Lay out a table.

    Args:
        table: The table.

    Returns:
        The block of accuracies, the block of differences from the baseline if there are any, and the notes.
    """
    marks = Marks()
    blocks = [_accuracies(table, marks)]
    if table.differences:
        blocks.append(_differences(table))
    return Document(f"{table.title} ({table.pool}: {POOLS[table.pool]})", blocks, [*marks.notes(), *table.notes])


def _accuracies(table: ResultTable, marks: Marks) -> TextTable:
    shifts, varied = table.shifts, table.varied
    several = len(shifts) > 1
    rows = []
    for row in table.rows:
        values = [_value(row.values.get(name)) for name in varied]
        cells = [_own_cell(row.cells[shift], marks) for shift in shifts]
        average = [_own_average(row, marks)] if several else []
        rows.append([row.method, *values, backbone_label(row.backbone), *cells, *average])
    for theirs in table.published:
        cells = [_published_cell(theirs.cells.get(shift), marks) for shift in shifts]
        average = [_published_average(theirs.average, len(shifts), marks)] if several else []
        backbone = f"published, {backbone_label(theirs.backbone)}"
        rows.append([theirs.label, *([""] * len(varied)), backbone, *cells, *average])
    header = ["method", *varied, "backbone", *shifts, *(["average"] if several else [])]
    groups = [len(table.rows)] if table.published and table.rows else []
    return TextTable("", header, rows, left=2 + len(varied), groups=groups)


def _own_cell(cell: ShiftAccuracy, marks: Marks) -> str:
    return f"{_plus_minus(cell.mean, cell.std if cell.count > 1 else None)}{marks.mark(_lacks(cell))}"


def _own_average(row: TableRow, marks: Marks) -> str:
    mean = row.average.mean
    lacking = mean is not None and any(cell.count < cell.expected for cell in row.cells.values())
    words = "average over the finished splits" if lacking else None
    return MISSING if mean is None else f"{mean:.2f}{marks.mark(words)}"


def _published_cell(cell: PublishedAccuracy | None, marks: Marks) -> str:
    if cell is None:
        return MISSING
    return f"{_plus_minus(cell.mean, cell.std)}{marks.mark(_printed(cell.printed, 'splits'))}"


def _published_average(average: PublishedAverage | None, shifts: int, marks: Marks) -> str:
    if average is None:
        return MISSING
    words = f"average over {average.over} shifts only" if average.over != shifts else None
    return f"{average.mean:.2f}{marks.mark(words or _printed(average.printed, 'shifts'))}"


def _lacks(cell: ShiftAccuracy) -> str | None:
    """Say what is missing from a cell, if anything."""
    if cell.count == cell.expected:
        return None
    failed = f", {cell.failed} failed" if cell.failed else ""
    return f"{cell.count} of {cell.expected} splits{failed}"


def _printed(value: float | None, units: str) -> str | None:
    return None if value is None else f"recomputed from the published {units}; printed as {value:.2f}"


def _differences(table: ResultTable) -> TextTable:
    rows: list[list[str]] = []
    groups: list[int] = []
    for place, one in enumerate(table.differences):
        if place and one.method != table.differences[place - 1].method:
            groups.append(len(rows))
        for where, difference in _places(one, table):
            values = [_value(one.values.get(name)) for name in table.varied]
            rows.append([one.method, *values, where, *_difference_cells(difference)])
    numbers = ["difference", "95 % interval", "p (t)", "p (Wilcoxon)", "better / equal / worse"]
    title = f"Difference from {table.baseline}, in percentage points"
    return TextTable(title, ["method", *table.varied, "shift", *numbers], rows, 2 + len(table.varied), groups)


def _places(one: DifferenceRow, table: ResultTable) -> Iterator[tuple[str, PairedDifference]]:
    """Yield the available differences: each shift, then the average."""
    for shift in table.shifts:
        if (difference := one.cells[shift]) is not None:
            yield shift, difference
    if len(table.shifts) > 1 and one.average is not None:
        yield "average", one.average


def _difference_cells(one: PairedDifference) -> list[str]:
    interval = MISSING if one.low is None or one.high is None else f"{_signed(one.low)} … {_signed(one.high)}"
    return [
        _signed(one.mean),
        interval,
        _p_value(one.p_t),
        _p_value(one.p_wilcoxon),
        f"{one.wins} / {one.ties} / {one.losses}",
    ]


def _plus_minus(mean: float | None, std: float | None) -> str:
    if mean is None:
        return MISSING
    return f"{mean:.1f}" if std is None else f"{mean:.1f} ± {std:.1f}"


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _p_value(p: float | None) -> str:
    if p is None:
        return MISSING
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _value(value: Any) -> str:
    return MISSING if value is None else show_value(value)
