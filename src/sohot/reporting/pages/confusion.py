"""Accuracy by class in a report: the table of classes and the confusion matrix."""

from collections.abc import Sequence
from pathlib import Path

from ...training.evaluation import Evaluation
from ..figures.canvas import save_figure
from ..figures.classes import MOST, confusion_figure
from .blocks import Chart, Entry, Number, Section, Table, number

Confusion = Sequence[Sequence[int]]


def class_sections(accuracy: Evaluation, figures: Path | None = None) -> list[Section]:
    """Show the accuracy of each class, and which are confused; the matrix also as files in `figures`."""
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
    chart = confusion_chart(confusion, names, "Which classes are confused")
    if figures is not None:
        save_figure(chart.figure, figures, "confusion")
    return [Section("Accuracy by class", [table]), Section("Mistakes", [chart])]


def _interval(ends: tuple[float, float] | None) -> Number:
    return number(None) if ends is None else Number(f"{100 * ends[0]:.0f}–{100 * ends[1]:.0f}", ends[0])


def _mistaken(row: Sequence[int], own: int, names: Sequence[str]) -> str:
    others = [(taken, place) for place, taken in enumerate(row) if place != own and taken]
    if not others:
        return ""
    taken, place = max(others)
    return f"{names[place]} ({taken:,})"


def confusion_chart(confusion: Confusion, names: Sequence[str], title: str) -> Chart:
    """Draw a confusion matrix, under a title."""
    right = sum(row[place] for place, row in enumerate(confusion))
    which = f"{len(names)} classes" if len(names) <= MOST else f"the {MOST} most confused of {len(names)} classes"
    told = f"Confusion matrix of {which}, in per cent of the images of each true class; {right:,} of "
    told += f"{sum(map(sum, confusion)):,} images are on the diagonal."
    return Chart(confusion_figure(confusion, names), title, told)
