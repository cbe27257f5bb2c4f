"""How training went: cross-entropy and alignment by step, a line for each method."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..collecting import ResultRow
from .canvas import look, new_figure, plain, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PARTS = {"cross_entropy": "cross-entropy", "alignment": "alignment loss"}
_POINTS = 200
_MOST_LINES = 8


def curve_figure(rows: Sequence[ResultRow], shift: str) -> "Figure | None":
    """Show the losses of one shift by step: the mean over the splits, and between the lowest and the highest a band.

    Args:
        rows: Rows of an experiment; the first eight are drawn.
        shift: The shift to show.

    Returns:
        The figure; None if no record has a curve.
    """
    with_curves = [row for row in rows if _curves(row, shift, "cross_entropy")][:_MOST_LINES]
    if not with_curves:
        return None
    parts = [part for part in _PARTS if any(_moves(row, shift, part) for row in with_curves)]
    figure = new_figure(1.8 + 4.2 * len(parts), 3.7)
    for axes, part in zip(figure.subplots(1, len(parts), squeeze=False)[0], parts, strict=True):
        for place, row in enumerate(with_curves):
            if _moves(row, shift, part):
                _draw(axes, _curves(row, shift, part), plain(row.label), place)
        axes.set_ylabel(_PARTS[part])
        axes.set_xlabel("step")
        if axes.dataLim.y1 > 10 * axes.dataLim.y0 > 0:  # labels of less than a decade are hard to read
            axes.set_yscale("log")
        tidy(axes)
        if part == parts[0]:
            legend = axes.get_legend_handles_labels()
    axes.legend(*legend, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8, frameon=False)
    figure.suptitle(f"{plain(shift)}; mean of the splits, band from the lowest to the highest", fontsize=10)
    return figure


def _curves(row: ResultRow, shift: str, part: str) -> list[tuple[list[float], list[float]]]:
    """Give steps and values of each split."""
    found = []
    for (of, _), record in sorted(row.done.items()):
        curve = record["result"].get("curve") or {}
        points = list(zip(curve.get("step", ()), curve.get(part, ()), strict=False)) if of == shift else []
        known = [(step, value) for step, value in points if value is not None]  # None stands for infinity
        if known:
            found.append(([step for step, _ in known], [value for _, value in known]))
    return found


def _moves(row: ResultRow, shift: str, part: str) -> bool:
    """Tell whether a part of the loss is there at all: without alignment it is 0 throughout."""
    return any(any(values) for _, values in _curves(row, shift, part))


def _draw(axes: "Axes", curves: list[tuple[list[float], list[float]]], label: str, place: int) -> None:
    style = look(place)
    first, last = max(steps[0] for steps, _ in curves), min(steps[-1] for steps, _ in curves)
    steps = np.linspace(first, last, _POINTS)  # splits may have been logged at other steps
    values: NDArray[np.float64] = np.stack([np.interp(steps, at, seen) for at, seen in curves])
    axes.plot(steps, values.mean(0), label=label, linewidth=1.4, markersize=4, markevery=(place * 4, 40), **style)
    if len(curves) > 1:
        axes.fill_between(steps, values.min(0), values.max(0), color=style["color"], alpha=0.15, linewidth=0)
