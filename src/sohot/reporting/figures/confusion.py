"""Who is taken for whom: the confusion matrix in per cent of each true class."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..results import ResultRow
from .canvas import new_figure, plain, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_WITH_TITLES = 60  # classes; above it names cannot be read and numbers stand for them


def confusion_of(row: ResultRow, shift: str) -> tuple[list[list[int]], list[str]] | None:
    """Add up the confusion matrices of all splits of a shift.

    Returns:
        Test images by true and predicted class, and the names of the classes; None if nothing is done.
    """
    accuracies = [record["result"]["accuracy"] for (of, _), record in sorted(row.done.items()) if of == shift]
    if not accuracies:
        return None
    names = list(accuracies[0]["per_class"])
    alike = [one["confusion"] for one in accuracies if list(one["per_class"]) == names]
    return np.sum(alike, axis=0).tolist(), names


def confusion_figure(confusion: Sequence[Sequence[int]], names: Sequence[str], title: str = "") -> "Figure":
    """Draw a confusion matrix.

    Args:
        confusion: Rows by true class (first) and predicted class.
        names: The names of the classes.
        title: A line above.

    Returns:
        The figure, its size by the number of classes; cells that are not 0 per cent when rounded bear their number.
    """
    counts = np.asarray(confusion, dtype=float)
    totals = counts.sum(1, keepdims=True)
    shares: NDArray[np.float64] = 100 * np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
    classes = len(names)
    side = min(9.0, max(2.2, 0.27 * classes))
    figure = new_figure(side + 3.2, side + 1.9)
    axes = figure.subplots()
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=100, interpolation="nearest")
    step = 1 if classes <= _MOST_WITH_TITLES else -(-classes // 20)
    shown = range(0, classes, step)
    labels = [plain(shorten(names[k])) if classes <= _MOST_WITH_TITLES else str(k + 1) for k in shown]
    size = 9 if classes <= 12 else 7
    axes.set_xticks(shown, labels, rotation=90, fontsize=size)
    axes.set_yticks(shown, labels, fontsize=size)
    axes.set_xlabel("predicted")
    axes.set_ylabel("true")
    axes.set_title(plain(title), fontsize=10)
    if classes <= 40:
        _write_shares(axes, shares, 10 if classes <= 12 else 5.5)
    bar = figure.colorbar(image, ax=axes, fraction=0.04, pad=0.02)
    bar.set_label("per cent of the true class", fontsize=8)
    bar.ax.tick_params(labelsize=8)
    return figure


def _write_shares(axes: "Axes", shares: NDArray[np.float64], size: float) -> None:
    for row, column in np.argwhere(shares >= 0.5).tolist():
        share = shares[row, column]
        colour = "white" if share > 55 else "black"
        axes.text(column, row, f"{share:.0f}", ha="center", va="center", fontsize=size, color=colour)
