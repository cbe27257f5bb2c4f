"""Accuracy by class in a report: the table of classes and the confusion matrix."""

from collections.abc import Sequence

from ...training.evaluation import Evaluation
from . import plots
from .blocks import Entry, Number, Plot, Section, Table, number

MOST = 60
"""With more classes than this, only those with the most mistakes are shown."""
Confusion = Sequence[Sequence[int]]


def class_sections(accuracy: Evaluation) -> list[Section]:
    """Show the accuracy of each class, and which classes are confused."""
    names, confusion = list(accuracy.per_class), accuracy.confusion
    precision, f1 = accuracy.precision, accuracy.f1
    rows: list[list[Entry]] = []
    for place, (name, share) in enumerate(accuracy.per_class.items()):
        interval = _interval(accuracy.per_class_interval95[name])
        shares = [number(None if one is None else 100 * one) for one in (share, precision[name], f1[name])]
        rows.append([name, shares[0], interval, *shares[1:], _mistaken(confusion[place], place, names)])
    columns = ["class", "accuracy %", "95 % interval", "precision %", "F1 %", "taken for"]
    caption = "Accuracy with its interval, precision and F1 of each class, and what it is most often taken for"
    table = Table(caption, columns, rows)
    plot = confusion_plot(confusion, names, "Which classes are confused")
    return [Section("Accuracy by class", [table]), Section("Mistakes", [plot])]


def _interval(ends: tuple[float, float] | None) -> Number:
    return number(None) if ends is None else Number(f"{100 * ends[0]:.0f}–{100 * ends[1]:.0f}", ends[0])


def _mistaken(row: Sequence[int], own: int, names: Sequence[str]) -> str:
    others = [(taken, place) for place, taken in enumerate(row) if place != own and taken]
    if not others:
        return ""
    taken, place = max(others)
    return f"{names[place]} ({taken:,})"


def confusion_plot(confusion: Confusion, names: Sequence[str], title: str) -> Plot:
    """Draw a confusion matrix.

    Args:
        confusion: Images by true class (first) and predicted class.
        names: Names of the classes.
        title: Heading of the plot.
    """
    right = sum(row[place] for place, row in enumerate(confusion))
    told = f"{right:,} of {sum(map(sum, confusion)):,} images are on the diagonal"
    shown = most_mistaken(confusion, MOST)
    which = f"{len(names)} classes" if len(shown) == len(names) else f"the {MOST} most confused of {len(names)} classes"
    size, few = len(shown), len(shown) <= plots.FEW
    return Plot(
        _heat_map(confusion, names, shown),
        title,
        f"Confusion matrix of {which}: rows are true classes, columns are predictions; {told}.",
        height=max(300, min(1200, 170 + (34 if few else 20) * size)),
        least_width=0 if few else 190 + 16 * size,
        most_width=max(420, 220 + (56 if few else 26) * size),
    )


def most_mistaken(confusion: Confusion, most: int) -> list[int]:
    """Choose the classes involved in the most mistakes, in class order.

    >>> most_mistaken([[5, 0, 2], [0, 9, 0], [1, 0, 7]], 2)
    [0, 2]
    """
    places = range(len(confusion))
    mistakes = [sum(confusion[i]) + sum(row[i] for row in confusion) - 2 * confusion[i][i] for i in places]
    return sorted(sorted(places, key=lambda place: -mistakes[place])[:most])


def _heat_map(counts: Sequence[Sequence[int]], names: Sequence[str], shown: Sequence[int]) -> plots.Figure:
    """Draw some rows and columns of a confusion matrix: colours are shares of a whole row, hovering shows counts."""
    totals = [sum(counts[i]) for i in shown]
    shares = [
        [round(counts[i][j] / total, 4) if total else None for j in shown]
        for i, total in zip(shown, totals, strict=True)
    ]
    told = [
        [[plots.label(names[i]), plots.label(names[j]), counts[i][j], total] for j in shown]
        for i, total in zip(shown, totals, strict=True)
    ]
    places = list(range(len(shown)))
    few = len(shown) <= plots.FEW
    trace = {
        "type": "heatmap",
        "x": places,
        "y": places,
        "z": shares,
        "customdata": told,
        "zmin": 0,
        "zmax": 1,
        "xgap": 1,
        "ygap": 1,
        "colorscale": [[0, "@scalea"], [1, "@scaleb"]],
        "showscale": not few,
        "colorbar": {"title": {"text": "share"}, "tickformat": ".0%", "thickness": 10, "len": 0.6, "outlinewidth": 0},
        "hovertemplate": "true %{customdata[0]}<br>predicted %{customdata[1]}<br>%{customdata[2]} of %{customdata[3]}"
        " (%{z:.0%})<extra></extra>",
        **({"text": [[str(counts[i][j] or "") for j in shown] for i in shown]} if few else {}),
        **({"texttemplate": "%{text}"} if few else {}),
    }
    axis = {**plots.named_axis([names[i] for i in shown]), "showgrid": False}
    across = {**axis, "tickangle": -45 if few else -60, "title": {"text": "predicted class"}}
    up = {**axis, "tickangle": 0, "title": {"text": "true class"}, "autorange": "reversed"}
    return {"data": [trace], "layout": {"xaxis": across, "yaxis": up}}
