"""The table of an experiment, from which all its formats are made."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from ...experiments.result import Attempt
from ..published import AVERAGE, PublishedRow, published
from ..results import ResultRow, baseline_of, collect, shifts_of
from ..statistics import PairedDifference, overall_difference, paired_difference, split_averages, summarise
from .notes import write_notes

if TYPE_CHECKING:
    from ...experiments.grid import Grid


@dataclass(frozen=True)
class ShiftAccuracy:
    """A method on one shift, in per cent; None if no split is done.

    Attributes:
        mean: Mean over the splits.
        std: Population standard deviation over them.
        sample_std: Sample standard deviation over them.
        count: Splits that are done.
        expected: Splits that the grid asks for.
        failed: Splits that failed.
        splits: The accuracy of each split, by its number.
    """

    mean: float | None
    std: float | None
    sample_std: float | None
    count: int
    expected: int
    failed: int
    splits: dict[str, float]


@dataclass(frozen=True)
class AverageAccuracy:
    """A method over all shifts, in per cent; `std` and `count` cover the splits that have every shift."""

    mean: float | None
    std: float | None
    count: int
    expected: int
    failed: int


@dataclass(frozen=True)
class PublishedAccuracy:
    """A published number for one shift; `printed` is set if the printed number differs from its own splits."""

    mean: float
    std: float | None
    printed: float | None
    splits: dict[str, float]


@dataclass(frozen=True)
class PublishedAverage:
    """A published average, and the number of shifts it is over."""

    mean: float
    printed: float | None
    over: int | None


@dataclass(frozen=True)
class _OwnRow:
    """One of our methods with one combination of varied settings."""

    method: str
    label: str
    backbone: str
    values: dict[str, Any]


@dataclass(frozen=True)
class TableRow(_OwnRow):
    """Our results of one method; `cells` by shift."""

    cells: dict[str, ShiftAccuracy]
    average: AverageAccuracy


@dataclass(frozen=True)
class PublishedTableRow:
    """Published results of one method; `cells` by shift, for the shifts that are shown."""

    method: str
    label: str
    backbone: str
    protocol: str
    values: dict[str, Any]
    cells: dict[str, PublishedAccuracy]
    average: PublishedAverage | None


@dataclass(frozen=True)
class DifferenceRow(_OwnRow):
    """A method minus the baseline: by shift (over splits), on average (shifts averaged first), over all pairs."""

    cells: dict[str, PairedDifference | None]
    average: PairedDifference | None
    pairs: PairedDifference


@dataclass(frozen=True)
class ResultTable:
    """The table of an experiment, accuracies in per cent.

    Attributes:
        name: Name of the grid.
        title: Its title.
        dataset: Name of the data set.
        protocol: Name of the protocol.
        pool: What the unlabelled target images are: "supervised" (there are none), "transductive" or "inductive".
        backbone: Name of the network.
        accuracy: "micro" or "macro".
        baseline: The method that others are compared with.
        shifts: The shifts, one column each.
        splits: Numbers of the splits.
        varied: Names of the varied settings.
        rows: Our results.
        published: Published results.
        differences: Differences from the baseline.
        notes: Sentences to print below.
    """

    name: str
    title: str
    dataset: str
    protocol: str
    pool: str
    backbone: str
    accuracy: str
    baseline: str
    shifts: list[str]
    splits: list[int]
    varied: list[str]
    rows: list[TableRow]
    published: list[PublishedTableRow]
    differences: list[DifferenceRow]
    notes: list[str] = field(default_factory=list)

    def all_rows(self) -> list[TableRow | PublishedTableRow]:
        """List our rows, then the published ones."""
        return [*self.rows, *self.published]

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain numbers, texts, lists and dicts."""
        return asdict(self)


def result_table(records: Iterable[Attempt], grid: "Grid", accuracy: str = "micro") -> ResultTable:
    """Summarise the records of a grid.

    Args:
        records: Records as the store returns them.
        grid: The grid that they belong to, with one value of `pool`: see `Grid.by_pool`.
        accuracy: "micro", the share of all test images (the paper), or "macro", the mean over the classes.

    Returns:
        The table, with the notes to print below it.

    Raises:
        ValueError: The grid has several values of `pool`, whose results are not comparable.
    """
    records = list(records)
    rows = collect(records, grid)
    grid = replace(grid.by_pool()[0], shifts=shifts_of(records, grid))
    table = ResultTable(
        name=grid.name,
        title=grid.title or grid.name,
        dataset=grid.dataset,
        protocol=grid.protocol,
        pool=grid.pool[0],
        backbone=grid.backbone,
        accuracy=accuracy,
        baseline=grid.baseline,
        shifts=list(grid.shifts),
        splits=list(grid.splits),
        varied=list(grid.vary),
        rows=[_row(row, grid, accuracy) for row in rows],
        published=_published_rows(grid),
        differences=[one for row in rows if (one := _differences(row, rows, grid, accuracy)) is not None],
    )
    return replace(table, notes=write_notes(table, rows, grid))


def _row(row: ResultRow, grid: "Grid", accuracy: str) -> TableRow:
    values = row.accuracies(accuracy)
    cells = {shift: _cell(row, shift, grid, accuracy) for shift in grid.shifts}
    means = [cell.mean for cell in cells.values()]
    by_split = summarise(list(split_averages(values, grid.shifts).values()))
    known = [mean for mean in means if mean is not None]
    average = AverageAccuracy(
        mean=fmean(known) if known and len(known) == len(means) else None,
        std=None if by_split is None else by_split.std,
        count=0 if by_split is None else by_split.count,
        expected=len(grid.splits),
        failed=sum(cell.failed for cell in cells.values()),
    )
    return TableRow(row.method, row.label, row.backbone, _plain_values(row), cells, average)


def _cell(row: ResultRow, shift: str, grid: "Grid", accuracy: str) -> ShiftAccuracy:
    summary = row.over_splits(shift, accuracy)
    splits = {split: value for (of, split), value in sorted(row.accuracies(accuracy).items()) if of == shift}
    return ShiftAccuracy(
        mean=None if summary is None else summary.mean,
        std=None if summary is None else summary.std,
        sample_std=None if summary is None else summary.sample_std,
        count=len(splits),
        expected=len(grid.splits),
        failed=sum(of == shift for of, _ in row.failed),
        splits={str(split): value for split, value in splits.items()},
    )


def _differences(row: ResultRow, rows: Sequence[ResultRow], grid: "Grid", accuracy: str) -> DifferenceRow | None:
    """Compare a row with its baseline; None for the baseline itself or if there is none."""
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
    return DifferenceRow(row.method, row.label, row.backbone, _plain_values(row), by_shift, average, pairs)


def _plain_values(row: ResultRow) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in row.values.items()}


def _published_rows(grid: "Grid") -> list[PublishedTableRow]:
    """Group published accuracies by method, for the shifts of the grid."""
    by_method: dict[tuple[str, ...], list[PublishedRow]] = {}
    for one in published(grid.published) if grid.published else []:
        if not one.gain:
            by_method.setdefault((one.method, one.label, one.backbone, one.protocol), []).append(one)
    rows = []
    for (method, label, backbone, protocol), numbers in by_method.items():
        cells = {
            one.shift: PublishedAccuracy(
                one.value, one.std, one.printed, {str(split): value for split, value in enumerate(one.splits, 1)}
            )
            for one in numbers
            if one.shift in grid.shifts
        }
        if cells:
            average = _published_average(numbers, grid.shifts)
            rows.append(PublishedTableRow(method, label, backbone, protocol, {}, cells, average))
    return rows


def _published_average(numbers: Sequence[PublishedRow], shifts: Sequence[str]) -> PublishedAverage | None:
    """Return the published average if all its shifts are shown, else the mean of the shifts if each has a number."""
    of_shift = {one.shift: one.value for one in numbers if one.shift != AVERAGE}
    whole = next((one for one in numbers if one.shift == AVERAGE), None)
    shown = [of_shift[shift] for shift in shifts if shift in of_shift]
    if whole is not None and len(shown) == len(of_shift):
        return PublishedAverage(whole.value, whole.printed, whole.over)
    return PublishedAverage(fmean(shown), None, len(shown)) if len(shown) == len(shifts) else None
