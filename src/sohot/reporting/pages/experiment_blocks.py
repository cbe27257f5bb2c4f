"""The tables and plots of an experiment's report."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...data.pools import INDUCTIVE, SUPERVISED, TRANSDUCTIVE
from ...experiments.cell import Cell
from ...experiments.result import Curve, DoneCell
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
from . import plots
from .blocks import Block, Entry, Number, Plot, Points, Section, Table, Words, number
from .confusion import confusion_plot
from .words import count

if TYPE_CHECKING:
    from .experiment_page import Experiment

_MOST_LINES = 8
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
    plot = difference_plot(table)
    return [Section(f"Differences from {table.baseline}", [*blocks, plot] if plot else blocks)]


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


def split_plot(table: ResultTable) -> Plot | None:
    """Show the accuracy of every method on every split."""
    series = {
        row.label: [
            (shift, value, f"{shift}, split {split}")
            for shift in table.shifts
            for split, value in row.cells[shift].splits.items()
        ]
        for row in table.rows
    }
    series = {name: points for name, points in series.items() if points}
    if not series:
        return None
    total = sum(map(len, series.values()))
    what = f"{count(total, 'accuracy', 'accuracies')} by shift and method, one for each split."
    return Plot(plots.dots(series, "%"), "Every split", what, 420)


def difference_plot(table: ResultTable) -> Plot | None:
    """Show the differences from the baseline with their intervals."""
    averages = {row.label: row.average for row in table.differences if row.average}
    values = {
        name: (one.mean, one.low, one.high)
        for name, one in averages.items()
        if one.low is not None and one.high is not None
    }
    if not values:
        return None
    told = [f"{mean:+.2f} points, 95 % interval {low:+.2f} to {high:+.2f}" for mean, low, high in values.values()]
    figure = plots.intervals(list(values), list(values.values()), told, f"points against {table.baseline}")
    what = f"Mean difference from {table.baseline} with its 95 % interval; one that contains 0 proves no difference."
    return Plot(figure, "Differences", what, 120 + 44 * len(values))


def varied_plots(table: ResultTable) -> list[Plot]:
    """Show the average accuracy against each varied number, with one line per combination of the others."""
    found = []
    for name in table.varied:
        series: dict[str, list[tuple[float, float]]] = {}
        for row in table.rows:
            value, mean = row.values.get(name), row.average.mean
            if isinstance(value, (int, float)) and mean is not None:
                rest = [f"{other} = {row.values[other]}" for other in table.varied if other != name]
                series.setdefault(", ".join([row.method, *rest]), []).append((value, mean))
        lines = {method: _columns(sorted(points)) for method, points in series.items() if len(points) > 1}
        if lines:
            figure = plots.lines(lines, name, "accuracy %")
            figure["layout"]["yaxis"] = {"title": {"text": "accuracy %"}}
            if _wide(lines):
                figure["layout"]["xaxis"]["type"] = "log"
            for trace in figure["data"]:
                trace["mode"] = "lines+markers"
            what = f"Average accuracy against {name}, on test images: do not choose a value from this plot."
            found.append(Plot(figure, f"Accuracy against {name}", what, 380))
    return found


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float | None]]:
    return [value for value, _ in points], [mean for _, mean in points]


def _wide(lines: Mapping[str, tuple[Sequence[float], Any]]) -> bool:
    every = [value for values, _ in lines.values() for value in values]
    return min(every) > 0 and max(every) / min(every) > 30


def curve_plots(experiment: "Experiment") -> list[Plot]:
    """Show the losses of the first finished cell of each method."""
    first: dict[str, DoneCell] = {}
    for one in experiment.done:
        if one.result.curve.get("step"):
            first.setdefault(one.cell.method, one)
    drawn = []
    for part, title in {"cross_entropy": "Cross-entropy", "alignment": "Alignment"}.items():
        series = {
            f"{name} ({cell.shift}, split {cell.split})": _curve(result.curve, part)
            for name, (cell, result) in first.items()
            if _has(result.curve.get(part))
        }
        if series:
            few = dict(list(series.items())[:_MOST_LINES])
            what = f"{title} over the steps, for the first finished cell of each method."
            drawn.append(Plot(plots.lines(few, "step", part.replace("_", "-")), title, what))
    return drawn


def _has(values: Sequence[float | None] | None) -> bool:
    return bool(values) and any(value is not None for value in values or ())


def _curve(curve: Curve, part: str) -> tuple[list[float], list[float | None]]:
    return [step for step in curve["step"] if step is not None], curve[part]


def zeta_plots(experiment: "Experiment") -> list[Plot]:
    """Show the distribution of the learned class weights, by method."""
    by_method: dict[str, dict[str, list[float]]] = {}
    cells: dict[str, int] = {}
    for cell, result in experiment.done:
        name = cell.method
        for part, values in (result.zeta or {}).items():
            spelled = "ζ̄, means" if part == "means" else f"ζ, {part.replace('order', 'order ')}"
            by_method.setdefault(name, {}).setdefault(spelled, []).extend(values)
        cells[name] = cells.get(name, 0) + 1
    return [
        Plot(
            plots.histograms(series, "weight of a class"),
            f"ζ of {name}",
            f"Class weights of {cells[name]} finished cells of {name}; all start at 1.",
        )
        for name, series in by_method.items()
    ]


def mistakes_plot(experiment: "Experiment", label: str, method: str) -> Plot | None:
    """Show which classes a method confuses, summed over its finished cells of the first shift."""
    shift = next(iter(experiment.table.shifts), None)
    total: list[list[int]] | None = None
    names: list[str] = []
    for cell, result in experiment.done:
        accuracy = result.accuracy
        if (cell.shift, cell.method) != (shift, method):
            continue
        if total is None:
            total, names = [list(row) for row in accuracy.confusion], list(accuracy.per_class)
        elif list(accuracy.per_class) == names:
            pairs = zip(total, accuracy.confusion, strict=True)
            total = [[a + b for a, b in zip(*rows, strict=True)] for rows in pairs]
    if total is None:
        return None
    return confusion_plot(total, names, f"Which classes {label} confuses on {shift}, all splits together")
