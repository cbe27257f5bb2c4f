"""The tables and charts of an experiment's report."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...data.pools import INDUCTIVE, SUPERVISED, TRANSDUCTIVE
from ...experiments.cell import Cell
from ..figures import published_on
from ..figures.classes import confusion_of, weight_histograms
from ..figures.comparison import difference_figure, split_figure
from ..figures.curves import SHOTS, curve_figure, setting_figure, shots_figure
from ..published import backbone_label
from ..statistics import PairedDifference
from ..tables.result_table import (
    AverageAccuracy,
    PublishedAccuracy,
    PublishedAverage,
    ResultTable,
    ShiftAccuracy,
    TableRow,
)
from .blocks import Block, Chart, Entry, Number, Points, Section, Table, Words, number
from .confusion import confusion_chart
from .words import count

if TYPE_CHECKING:
    from .experiment_page import Experiment

_SPACE = "\N{NO-BREAK SPACE}"
_DIFFERENCE = ("points", "from", "to", "verdict", "p (t)", "p (Wilcoxon)", "splits", "won / tied / lost")


_ACCURACY = {
    SUPERVISED: "Accuracy in % on unseen target images",
    TRANSDUCTIVE: "Transductive accuracy in %, on target images that training saw without their labels",
    INDUCTIVE: "Inductive accuracy in %, on target images never seen",
}


def result_blocks(table: ResultTable) -> list[Block]:
    """Show our accuracies and published ones, with their notes."""
    shifts, varied = table.shifts, table.varied
    several = len(shifts) > 1
    rows: list[list[Entry]] = []
    for row in table.all_rows():
        ours = isinstance(row, TableRow)
        values = [_value(row.values.get(one)) for one in varied]
        entries = [_accuracy(row.cells.get(shift)) for shift in shifts]
        average = [_accuracy(row.average)] if several else []
        name, origin = (row.method, "ours") if ours else (row.label, "published")
        rows.append([name, *values, *entries, *average, origin, backbone_label(row.backbone)])
    columns = ["method", *varied, *shifts, *(["average"] if several else []), "origin", "backbone"]
    marked = frozenset(place for place, row in enumerate(table.rows) if row.method == table.baseline)
    caption = f"{_ACCURACY[table.pool]}: mean ± standard deviation over the splits"
    blocks: list[Block] = [Table(caption, columns, rows, marked)]
    return [*blocks, Points(table.notes)] if table.notes else blocks


def _value(value: Any) -> Entry:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return Number(f"{value:g}", float(value))
    return "" if value is None else str(value)


def _accuracy(cell: ShiftAccuracy | AverageAccuracy | PublishedAccuracy | PublishedAverage | None) -> Number:
    if cell is None or cell.mean is None:
        return Number("–", None)
    spread, partial = "", ""
    if not isinstance(cell, PublishedAverage) and cell.std is not None and getattr(cell, "count", 0) != 1:
        spread = f"{_SPACE}±{_SPACE}{cell.std:.1f}"  # a single split has no spread
    if isinstance(cell, (ShiftAccuracy, AverageAccuracy)) and cell.count < cell.expected:
        partial = f" ({cell.count}{_SPACE}of{_SPACE}{cell.expected})"
    return Number(f"{cell.mean:.1f}{spread}{partial}", cell.mean)


def difference_sections(table: ResultTable) -> list[Section]:
    """Show what each method gains over the baseline, and whether that is more than chance."""
    if not table.differences:
        return []
    rows: list[list[Entry]] = []
    for row in table.differences:
        parts = [*row.cells.items(), *([("average", row.average)] if len(table.shifts) > 1 else [])]
        for shift, one in parts:
            if one is not None:
                rows.append([row.label, shift, *_difference_entries(one)])
    caption = (
        f"Difference from {table.baseline} on the same splits, with its 95 % interval, and splits won, tied and lost"
    )
    blocks: list[Block] = [Table(caption, ["method", "shift", *_DIFFERENCE], rows)]
    chart = difference_chart(table)
    return [Section(f"Differences from {table.baseline}", [*blocks, chart] if chart else blocks)]


def _difference_entries(one: PairedDifference) -> list[Entry]:
    return [
        number(one.mean, 2, sign=True),
        number(one.low, 2, sign=True),
        number(one.high, 2, sign=True),
        _verdict(one),
        number(one.p_t, 3),
        number(one.p_wilcoxon, 3),
        number(one.pairs, 0),
        f"{one.wins} / {one.ties} / {one.losses}",
    ]


def no_interval(one: PairedDifference) -> str:
    """Say why a difference has no interval: there is only one split, or all differences are equal."""
    return "only one split" if one.pairs < 2 else "the same in every split"


def _verdict(one: PairedDifference) -> str:
    if one.low is None or one.high is None:
        return no_interval(one)
    if one.low <= 0 <= one.high:
        return "not distinguishable"
    return "better" if one.mean > 0 else "worse"


def choice_sections(experiment: "Experiment") -> list[Section]:
    """Show the settings chosen for each cell, if any."""
    rows: list[list[Entry]] = []
    for cell, result in experiment.done:
        if chosen := result.chosen:
            score, trials = number(100 * chosen.score), number(chosen.trials, 0)
            rows.append([*_cell_entries(cell, chosen.settings), score, trials])
    if not rows:
        return []
    columns = ["method", "shift", "split", "settings", "score %", "trials"]
    told = "Chosen for each cell by the accuracy on held-out labelled images, never by test images."
    return [Section("Chosen settings", [Words(told), Table("Chosen settings and their scores", columns, rows)])]


def _cell_entries(cell: Cell, settings: Mapping[str, Any]) -> list[Entry]:
    told = ", ".join(f"{name} = {value}" for name, value in settings.items())
    return [cell.method, cell.shift, number(cell.split, 0), told]


def failure_sections(experiment: "Experiment") -> list[Section]:
    """Show the cells that failed, and why."""
    if not experiment.failed:
        return []
    rows: list[list[Entry]] = []
    for record in experiment.failed:
        cell = record.cell
        rows.append([*_cell_entries(cell, {**cell.draw, **cell.settings}), record.error or "failed"])
    told = "These cells are left out of all tables and figures. To try them again, add --retry to the command."
    table = Table(f"{count(len(rows), 'failed cell')}", ["method", "shift", "split", "settings", "error"], rows)
    return [Section("Failed", [Words(told), table])]


def split_chart(table: ResultTable) -> Chart | None:
    """Show the accuracy of every method on every split."""
    accuracies = {
        row.label: {shift: [*row.cells[shift].splits.values()] for shift in table.shifts} for row in table.rows
    }
    accuracies = {name: by_shift for name, by_shift in accuracies.items() if any(by_shift.values())}
    if not accuracies:
        return None
    total = sum(len(values) for by_shift in accuracies.values() for values in by_shift.values())
    told = f"{count(total, 'accuracy', 'accuracies')} by shift and method, one for each split."
    return Chart(split_figure(accuracies), "Every split", told)


def difference_chart(table: ResultTable) -> Chart | None:
    """Show the differences from the baseline with their intervals."""
    averages = {row.label: row.average for row in table.differences if row.average}
    intervals = {
        name: (one.mean, one.low, one.high)
        for name, one in averages.items()
        if one.low is not None and one.high is not None
    }
    if not intervals:
        return None
    told = f"Mean difference from {table.baseline} with its 95 % interval; one that contains 0 proves no difference."
    return Chart(difference_figure(intervals, table.baseline), "Differences", told)


def setting_charts(experiment: "Experiment") -> list[Chart]:
    """Show the accuracy against each number that is varied, on each shift."""
    told = "Mean and standard deviation over the splits, on test images: do not choose a value from this chart."
    charts = []
    for shift in experiment.table.shifts:
        for name in experiment.table.varied:
            if name == SHOTS:
                figure = shots_figure(experiment.rows, shift, published_on(experiment.grid, shift))
            else:
                figure = setting_figure(experiment.rows, [name], shift)
            if figure is not None:
                charts.append(Chart(figure, f"Accuracy against {name}", told))
    return charts


def curve_chart(experiment: "Experiment") -> Chart | None:
    """Show the losses of the first shift that has any."""
    figures = (curve_figure(experiment.rows, shift) for shift in experiment.table.shifts)
    figure = next((figure for figure in figures if figure is not None), None)
    return None if figure is None else Chart(figure, "Losses", "Losses over the steps of training.")


def weight_chart(experiment: "Experiment") -> Chart | None:
    """Show the distribution of the learned class weights, by method."""
    figure = weight_histograms(experiment.rows)
    told = "Class weights of all finished cells; all start at 1. The line is the Beta distribution that fits them best."
    return None if figure is None else Chart(figure, "ζ of all classes", told)


def mistakes_chart(experiment: "Experiment", label: str) -> Chart | None:
    """Show which classes a method confuses, summed over its finished cells of the first shift."""
    shift = experiment.table.shifts[0]
    confusion = confusion_of(next(row for row in experiment.rows if row.label == label), shift)
    title = f"Which classes {label} confuses on {shift}, all splits together"
    return None if confusion is None else confusion_chart(*confusion, title)
