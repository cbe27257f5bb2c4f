"""The plots of an experiment: every split, differences, what is varied, curves, class weights, mistakes."""

from collections.abc import Mapping, Sequence
from typing import Any

from . import plots
from .blocks import Plot
from .experiment_folder import Experiment
from .plots import confusion_plot
from .words import count

_MOST_LINES = 8


def split_plot(table: Mapping[str, Any]) -> Plot | None:
    """Show the accuracy of every method on every split."""
    series = {
        row["label"]: [
            (shift, value, f"{shift}, split {split}")
            for shift in table["shifts"]
            for split, value in row["cells"][shift]["splits"].items()
        ]
        for row in table["rows"]
    }
    series = {name: points for name, points in series.items() if points}
    if not series:
        return None
    total = sum(map(len, series.values()))
    what = f"{count(total, 'accuracy', 'accuracies')} by shift and method, one for each split."
    return Plot(plots.dots(series, "%"), "Every split", what, 420)


def difference_plot(table: Mapping[str, Any]) -> Plot | None:
    """Show the differences to the baseline with their intervals."""
    rows = [(row["label"], row["average"]) for row in table["differences"] if row["average"]]
    rows = [(name, one) for name, one in rows if one["low"] is not None]
    if not rows:
        return None
    values = [(one["mean"], one["low"], one["high"]) for _, one in rows]
    told = [f"{one['mean']:+.2f} points, 95 % interval {one['low']:+.2f} to {one['high']:+.2f}" for _, one in rows]
    figure = plots.intervals([name for name, _ in rows], values, told, f"points against {table['baseline']}")
    what = (
        f"Mean difference to {table['baseline']} with its 95 % interval; an interval that holds 0 shows no difference."
    )
    return Plot(figure, "Differences", what, 120 + 44 * len(rows))


def varied_plots(table: Mapping[str, Any]) -> list[Plot]:
    """Show the average accuracy against each number that is varied, other things being what they are first."""
    found = []
    for name in table["varied"]:
        series: dict[str, list[tuple[float, float]]] = {}
        for row in table["rows"]:
            value, mean = row["values"].get(name), row["average"]["mean"]
            if isinstance(value, (int, float)) and mean is not None:
                rest = [f"{other} = {row['values'][other]}" for other in table["varied"] if other != name]
                series.setdefault(", ".join([row["method"], *rest]), []).append((value, mean))
        lines = {method: _columns(sorted(points)) for method, points in series.items() if len(points) > 1}
        if lines:
            figure = plots.lines(lines, name, "accuracy %")
            figure["layout"]["yaxis"] = {"title": {"text": "accuracy %"}}
            if _wide(lines):
                figure["layout"]["xaxis"]["type"] = "log"
            for trace in figure["data"]:
                trace["mode"] = "lines+markers"
            what = f"Average accuracy against {name}; chosen on test data it would be no fair choice."
            found.append(Plot(figure, f"Accuracy against {name}", what, 380))
    return found


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float | None]]:
    return [value for value, _ in points], [mean for _, mean in points]


def _wide(lines: Mapping[str, tuple[Sequence[float], Any]]) -> bool:
    every = [value for values, _ in lines.values() for value in values]
    return min(every) > 0 and max(every) / min(every) > 30


def curve_plots(experiment: Experiment) -> list[Plot]:
    """Show the losses of one cell of each method: the first that is done."""
    first: dict[str, Mapping[str, Any]] = {}
    for record in experiment.done:
        curve = record["result"].get("curve")
        if curve and curve.get("step"):
            first.setdefault(record["cell"]["method"], record)
    drawn = []
    for part, title in {"cross_entropy": "Cross-entropy", "alignment": "Alignment"}.items():
        series = {
            f"{name} ({one['cell']['shift']}, split {one['cell']['split']})": _curve(one["result"]["curve"], part)
            for name, one in first.items()
            if _has(one["result"]["curve"].get(part))
        }
        if series:
            few = dict(list(series.items())[:_MOST_LINES])
            what = f"{title} over the steps, for the first finished cell of each method."
            drawn.append(Plot(plots.lines(few, "step", part.replace("_", "-")), title, what))
    return drawn


def _has(values: Sequence[float | None] | None) -> bool:
    return bool(values) and any(value is not None for value in values or ())


def _curve(curve: Mapping[str, Any], part: str) -> tuple[list[float], list[float | None]]:
    return curve["step"], curve[part]


def zeta_plots(experiment: Experiment) -> list[Plot]:
    """Show how the learned class weights are spread, by method."""
    by_method: dict[str, dict[str, list[float]]] = {}
    cells: dict[str, int] = {}
    for record in experiment.done:
        name = record["cell"]["method"]
        for part, values in (record["result"].get("zeta") or {}).items():
            spelled = "ζ̄, means" if part == "means" else f"ζ, {part.replace('order', 'order ')}"
            by_method.setdefault(name, {}).setdefault(spelled, []).extend(values)
        cells[name] = cells.get(name, 0) + 1
    return [
        Plot(
            plots.histograms(series, "weight of a class"),
            f"ζ of {name}",
            f"Class weights of {cells[name]} finished cells of {name}; all begin at 1.",
        )
        for name, series in by_method.items()
    ]


def mistakes_plot(experiment: Experiment, label: str, method: str) -> Plot | None:
    """Show who is taken for whom by a method, all its finished cells of the first shift together."""
    shift = next(iter(experiment.table["shifts"]), None)
    total: list[list[int]] | None = None
    names: list[str] = []
    for record in experiment.done:
        cell, accuracy = record["cell"], record["result"]["accuracy"]
        if (cell["shift"], cell["method"]) != (shift, method) or not accuracy.get("confusion"):
            continue
        if total is None:
            total, names = [list(row) for row in accuracy["confusion"]], list(accuracy["per_class"])
        elif list(accuracy["per_class"]) == names:
            pairs = zip(total, accuracy["confusion"], strict=True)
            total = [[a + b for a, b in zip(*rows, strict=True)] for rows in pairs]
    if total is None:
        return None
    return confusion_plot(total, names, f"Which class is taken for which by {label} on {shift}, all splits together")
