"""Methods against each other: the accuracy on every split, and differences from the baseline with their intervals."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .canvas import INK, chart, legend_below, look, name_axis, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@chart
def split_figure(accuracies: Mapping[str, Mapping[str, Sequence[float]]]) -> "Figure":
    """Show the accuracy of every method on every split, as points side by side.

    Args:
        accuracies: In per cent, by method and by shift; all methods have the same shifts.
    """
    shifts = list(next(iter(accuracies.values())))
    figure = new_figure(max(4.8, min(10.0, 0.8 + 0.25 * len(shifts) * len(accuracies))), 4.2)
    axes = figure.subplots()
    for place, (method, by_shift) in enumerate(accuracies.items()):
        left = 0.8 * (place + 0.5) / len(accuracies) - 0.4
        points = [(number + left, value) for number, shift in enumerate(shifts) for value in by_shift[shift]]
        style = {**look(place), "linestyle": "", "alpha": 0.85}
        axes.plot([x for x, _ in points], [y for _, y in points], label=plain(method), **style)
    name_axis(axes, shifts)
    axes.grid(visible=False, axis="x")
    axes.set_ylabel("accuracy, per cent")
    legend_below(figure, axes)
    return figure


@chart
def difference_figure(intervals: Mapping[str, tuple[float, float, float]], baseline: str) -> "Figure":
    """Show differences from the baseline in points by method: the mean, and where its interval begins and ends."""
    figure = new_figure(4.8, 0.9 + 0.36 * len(intervals))
    axes = figure.subplots()
    for place, (mean, low, high) in enumerate(intervals.values()):
        axes.errorbar(mean, place, xerr=[[mean - low], [high - mean]], capsize=3, **look(0))
        axes.annotate(
            f"{mean:+.1f}".replace("-", "−"), (mean, place), (0, 5), textcoords="offset points", ha="center", fontsize=8
        )
    axes.axvline(0, color=INK, linewidth=0.8, linestyle=":")
    name_axis(axes, list(intervals), up=True)
    axes.set_ylim(len(intervals) - 0.5, -0.7)
    axes.set_xlabel(f"points against {plain(baseline)}")
    return figure
