"""Curves: values by step, and accuracy against a setting that a grid varies."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...experiments.grid import BASELINE
from ..published import PublishedRow, backbone_label
from ..results import ResultRow, baseline_of, show_value
from ..statistics import PairedDifference, paired_difference, summarise
from .canvas import INK, chart, legend_below, look, new_figure, plain, plain_log

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PARTS = {"cross_entropy": "cross-entropy", "alignment": "alignment loss"}
_POINTS = 100
_MOST_LINES = 8
_MOST_MARKS = 30


@chart
def lines_figure(series: Mapping[str, tuple[Sequence[float], Sequence[float]]], y: str, x: str = "step") -> "Figure":
    """Draw curves by name, told apart by colour and dashes; what they are drawn against and their values."""
    figure = new_figure(4.8, 3.2)
    axes = figure.subplots()
    for place, (name, (across, up)) in enumerate(series.items()):
        style = look(place)
        if len(across) > _MOST_MARKS:
            style["marker"] = ""
        axes.plot(across, up, label=plain(name), **style)
    axes.set(xlabel=x, ylabel=y)
    axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))
    if len(series) > 1:
        legend_below(figure, axes)
    return figure


@chart
def curve_figure(rows: Sequence[ResultRow], shift: str) -> "Figure | None":
    """Show the losses of one shift by step: the mean over the splits, and a band from the lowest to the highest.

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
    figure = new_figure(0.6 + 4.2 * len(parts), 3.9)
    panels = figure.subplots(1, len(parts), squeeze=False)[0]
    for axes, part in zip(panels, parts, strict=True):
        for place, row in enumerate(with_curves):
            if _moves(row, shift, part):
                _draw(axes, _curves(row, shift, part), plain(row.label), place)
        axes.set_ylabel(_PARTS[part])
        axes.set_xlabel("step")
        if axes.dataLim.y1 > 10 * axes.dataLim.y0 > 0:  # below a decade, logarithmic labels are hard to read
            plain_log(axes, y=True)
    legend_below(figure, panels[0])
    figure.suptitle(f"{plain(shift)}; mean of the splits, band from the lowest to the highest", fontsize=10)
    return figure


def _curves(row: ResultRow, shift: str, part: str) -> list[tuple[list[float], list[float]]]:
    """Return steps and values of each split."""
    found = []
    for place in sorted(row.done):
        curve = row.done[place].result.curve
        points = zip(curve.get("step", ()), curve.get(part, ()), strict=False) if place[0] == shift else ()
        known = [(step, value) for step, value in points if step is not None and value is not None]
        if known:
            found.append(([step for step, _ in known], [value for _, value in known]))
    return found


def _moves(row: ResultRow, shift: str, part: str) -> bool:
    """Check whether a part of the loss is used: without alignment it is 0 throughout."""
    return any(any(values) for _, values in _curves(row, shift, part))


def _draw(axes: "Axes", curves: list[tuple[list[float], list[float]]], label: str, place: int) -> None:
    style = look(place)
    first, last = max(steps[0] for steps, _ in curves), min(steps[-1] for steps, _ in curves)
    steps = np.linspace(first, last, _POINTS)  # splits may have been logged at different steps
    values: NDArray[np.float64] = np.stack([np.interp(steps, at, seen) for at, seen in curves])
    axes.plot(steps, values.mean(0), label=label, markersize=4, markevery=(2 * place, 20), **style)
    if len(curves) > 1:
        axes.fill_between(steps, values.min(0), values.max(0), color=style["color"], alpha=0.15, linewidth=0)


SHOTS = "target_shots"
SIGMAS = ("sigma1", "sigma2")
_AXES = {
    SHOTS: "labelled target images per class, N*",
    "sigma1": "σ₁, weight of the scatters",
    "sigma2": "σ₂, weight of the means",
}
_MOST_SERIES = 8
_FAR_APART = 8


@chart
def shots_figure(rows: Sequence[ResultRow], shift: str, published: Sequence[PublishedRow] = ()) -> "Figure | None":
    """Show accuracy against the number of labelled target images per class, and the gain over `s+t` below.

    Args:
        rows: Rows of an experiment that varies `target_shots`.
        shift: The shift to show.
        published: Published numbers; gains over `s+t` of the same methods are drawn hollow.

    Returns:
        The figure; None if no method has two numbers of images.
    """
    lines = _lines(rows, SHOTS, shift)
    if not lines:
        return None
    gains = {label: line for label, line in lines.items() if _has_baseline(line, rows, shift)}
    figure = new_figure(5.2, 6.4 if gains else 3.6)
    panels = figure.subplots(2 if gains else 1, 1, sharex=True, squeeze=False)[:, 0]
    for place, (label, line) in enumerate(lines.items()):
        _draw_line(panels[0], line, SHOTS, shift, label, place)
    panels[0].set_ylabel("accuracy, per cent")
    panels[0].set_title(f"{plain(shift)}; mean and standard deviation over splits")
    if gains:
        _draw_gains(panels[1], lines, gains, rows, shift, published)
    panels[-1].set_xlabel(_AXES[SHOTS])
    panels[-1].set_xticks(sorted({row.values[SHOTS] for line in lines.values() for row in line}))
    for axes in panels:
        axes.legend()
    return figure


@chart
def setting_figure(rows: Sequence[ResultRow], names: Sequence[str], shift: str) -> "Figure | None":
    """Show accuracy against settings, a panel for each, with `s+t` as a line where it does not use them.

    If several are varied, each panel has a line for each value of the others.

    Args:
        rows: Rows of an experiment.
        names: The settings, such as "sigma1".
        shift: The shift to show.

    Returns:
        The figure; None if no method has two values of any.
    """
    panels = {name: lines for name in names if (lines := _lines(rows, name, shift))}
    if not panels:
        return None
    figure = new_figure(0.6 + 4.4 * len(panels), 4.6)
    all_axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axes, (name, lines) in zip(all_axes, panels.items(), strict=True):
        for place, (label, line) in enumerate(lines.items()):
            _draw_line(axes, line, name, shift, label, place)
        _draw_baseline(axes, [row for row in rows if row.values.get(name) is None], shift)
        axes.set_xlabel(_AXES.get(name, name))
        _across(axes, sorted({row.values[name] for line in lines.values() for row in line}))
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2)
    all_axes[0].set_ylabel("accuracy, per cent")
    figure.suptitle(plain(shift), fontsize=10)
    return figure


def _lines(rows: Sequence[ResultRow], name: str, shift: str) -> dict[str, list[ResultRow]]:
    """Group rows that differ only in one setting; keep the groups with at least two values of it."""
    groups: dict[tuple[Any, ...], list[ResultRow]] = {}
    for row in rows:
        value = row.values.get(name)
        if isinstance(value, (int, float)) and row.over_splits(shift) is not None:
            key = (row.method, row.backbone, *((other, at) for other, at in row.values.items() if other != name))
            groups.setdefault(key, []).append(row)
    several = len({key[1] for key in groups}) > 1
    found = {}
    for (method, backbone, *others), group in groups.items():
        if len(group) > 1:
            words = [method, *([backbone_label(backbone)] if several else [])]
            words += [f"{_symbol(other)} = {show_value(at)}" for other, at in others if at is not None]
            found[", ".join(words)] = sorted(group, key=lambda row: float(row.values[name]))
    return dict(list(found.items())[:_MOST_SERIES])


def _draw_line(axes: "Axes", line: Sequence[ResultRow], name: str, shift: str, label: str, place: int) -> None:
    summaries = [summary for row in line if (summary := row.over_splits(shift)) is not None]
    spread = None if all(one.count == 1 for one in summaries) else [one.std for one in summaries]
    x = [row.values[name] for row in line]
    means = [one.mean for one in summaries]
    axes.errorbar(x, means, spread, label=label, capsize=2.5, **look(place))


def _draw_gains(
    axes: "Axes",
    lines: dict[str, list[ResultRow]],
    gains: dict[str, list[ResultRow]],
    rows: Sequence[ResultRow],
    shift: str,
    published: Sequence[PublishedRow],
) -> None:
    """Draw differences from `s+t`, split by split, with their 95 % intervals."""
    axes.axhline(0, color=INK, linewidth=0.8, linestyle=":")
    for label, line in gains.items():
        style = look(list(lines).index(label))
        points = [(row.values[SHOTS], _gain(row, rows, shift)) for row in line]
        known = [(x, gain) for x, gain in points if gain is not None]
        means = [gain.mean for _, gain in known]
        halves = [0.0 if gain.high is None else gain.high - gain.mean for _, gain in known]
        axes.errorbar([x for x, _ in known], means, halves, label=label, capsize=2.5, **style)
        theirs = [one for one in published if one.gain and one.method == line[0].method and one.varied is not None]
        if theirs:
            axes.plot(
                [one.varied[1] for one in theirs if one.varied is not None],
                [one.value for one in theirs],
                linestyle="",
                marker="D",
                markersize=7,
                markerfacecolor="none",
                markeredgecolor=INK,
                label=f"{theirs[0].label}, published ({backbone_label(theirs[0].backbone)})",
            )
    axes.set_ylabel(f"gain over {BASELINE}, percentage points")
    axes.set_title("split by split, with the 95 % interval of the mean")


def _gain(row: ResultRow, rows: Sequence[ResultRow], shift: str) -> PairedDifference | None:
    other = baseline_of(row, rows)
    if other is None:
        return None
    ours, theirs = (
        {split: value for (of, split), value in one.accuracies().items() if of == shift} for one in (row, other)
    )
    return paired_difference(ours, theirs)


def _has_baseline(line: Sequence[ResultRow], rows: Sequence[ResultRow], shift: str) -> bool:
    return line[0].method != BASELINE and any(_gain(row, rows, shift) is not None for row in line)


def _draw_baseline(axes: "Axes", rows: Sequence[ResultRow], shift: str) -> None:
    for row in rows:
        values = [value for (of, _), value in sorted(row.accuracies().items()) if of == shift]
        summary = summarise(values)
        if row.method == BASELINE and summary is not None:
            axes.axhline(summary.mean, color=INK, linewidth=1.2, linestyle=(0, (2, 2)), label=BASELINE)
            if summary.count > 1:
                axes.axhspan(summary.mean - summary.std, summary.mean + summary.std, color=INK, alpha=0.07, linewidth=0)


def _across(axes: "Axes", values: Sequence[float]) -> None:
    """Make the axis of values that lie far apart logarithmic; 0 is placed left of the smallest other value."""
    positive = [value for value in values if value > 0]
    if not positive or max(positive) < _FAR_APART * min(positive):
        return
    plain_log(axes, x=positive)
    if values[0] <= 0:
        axes.set_xscale("symlog", linthresh=positive[0])
        axes.set_xlim(-0.3 * positive[0], 1.6 * positive[-1])
        axes.set_xticks(values, [f"{value:g}" for value in values])


def _symbol(name: str) -> str:
    return {"sigma1": "σ₁", "sigma2": "σ₂"}.get(name, name)
