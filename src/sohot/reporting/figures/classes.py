"""Charts by class: learned weights ζ and ζ̄, with Beta fits like the paper's, shares of classes, confusion."""

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..results import ResultRow
from .canvas import HATCHES, INK, MARKERS, PALETTE, chart, legend_below, name_axis, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 60
"""With more classes than this, only those with the most mistakes are in a confusion matrix."""
_MOST_WITH_NUMBERS = 40
_LIGHTEST, _DARKEST = 0.06, 0.65  # so that every cell is seen, and numbers are readable on all
_EDGE = 1e-3  # share of the range that keeps values away from 0 and 1, where a Beta density may be infinite
_FEWEST = 5
_MOST_METHODS = 8


class BetaFit(NamedTuple):
    """A Beta distribution on 0 … `scale`."""

    a: float
    b: float
    scale: float

    @property
    def mean(self) -> float:
        """Its mean."""
        return self.scale * self.a / (self.a + self.b)


@chart
def weight_histograms(rows: Iterable[ResultRow]) -> "Figure | None":
    """Show the class weights of a method over all its classes and splits: the means first, then each order.

    Args:
        rows: Rows of an experiment; the first eight that learned weights get a row of panels each.

    Returns:
        The figure; None if none learned weights.
    """
    learned = {row.label: weights for row in rows if (weights := class_weights(row))}
    learned = dict(list(learned.items())[:_MOST_METHODS])
    if not learned:
        return None
    columns = max(map(len, learned.values()))
    low, high = shown_range([value for terms in learned.values() for values in terms.values() for value in values])
    figure = new_figure(max(4.2, 3.1 * columns), 0.5 + 2.6 * len(learned))
    panels = figure.subplots(len(learned), columns, squeeze=False)
    for line, (label, terms) in zip(panels, learned.items(), strict=True):
        for place, axes in enumerate(line):
            if place >= len(terms):
                axes.set_axis_off()
                continue
            term, values = list(terms.items())[place]
            _draw(axes, values, place, low, high)
            axes.set_title(f"{term} ({plain(label)})")
            axes.set_xlabel("weight")
        line[0].set_ylabel("density")
    return figure


def class_weights(row: ResultRow) -> dict[str, list[float]]:
    """Collect the weights of all shifts and splits by what they weight; empty if the method learns none."""
    weights: dict[str, list[float]] = {}
    for place in sorted(row.done):
        for term, values in (row.done[place].result.zeta or {}).items():
            weights.setdefault(term_name(term), []).extend(values)
    return weights


def term_name(term: str) -> str:
    """Name what learned weights weight. Those of the means are ζ̄, whose bar matplotlib cannot write.

    >>> term_name("means"), term_name("order2")
    ('ζ, means', 'ζ, order 2')
    """
    return f"ζ, {term.replace('order', 'order ')}"


def shown_range(values: Sequence[float]) -> tuple[float, float]:
    """Return the range of weights to show in all panels: from 0, or narrower if all weights stayed near 1.

    >>> shown_range([0.2, 0.9]), shown_range([0.99, 0.996]), shown_range([1.0, 1.0]), shown_range([0.5, 1.5])
    ((0.0, 1.0), (0.98, 1.0), (0.0, 1.0), (0.0, 1.5))
    """
    high, least = max(1.0, *values), min(values)
    if least < high / 2 or least == high:
        return 0.0, high
    step = 10.0 ** math.floor(math.log10(high - least))
    return math.floor((least - step / 2) / step) * step, high


def fit_beta(values: Sequence[float]) -> BetaFit | None:
    """Fit a Beta distribution by maximum likelihood.

    Weights start at 1 and are bounded only below, by 0, while a Beta distribution is defined on 0 … 1. So the values
    are divided by the larger of 1 and their maximum, and kept a thousandth of the range away from both ends.

    Args:
        values: The weights, at least 0.

    Returns:
        The fit; None for fewer than five values, and for values that hardly differ.

    Example:
        >>> fit = fit_beta(np.random.default_rng(0).beta(8, 2, 4000).tolist())
        >>> round(fit.a), round(fit.b), fit.scale
        (8, 2, 1.0)
    """
    scale = max(1.0, *values) if len(values) else 1.0
    shares = np.clip(np.asarray(values, dtype=float) / scale, _EDGE, 1 - _EDGE)
    if len(shares) < _FEWEST or np.ptp(shares) < 1e-6:
        return None
    from scipy.stats import beta  # type: ignore[import-untyped]

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # from the search; its result is checked below
            a, b, *_ = beta.fit(shares, floc=0, fscale=1)
    except (RuntimeError, ValueError):  # includes SciPy's FitError: no fit was found
        return None
    return BetaFit(float(a), float(b), scale) if math.isfinite(a) and math.isfinite(b) else None


def _draw(axes: "Axes", values: Sequence[float], place: int, low: float, high: float) -> None:
    from scipy.stats import beta

    bins = np.linspace(low, high, 21)
    counts, _ = np.histogram(values, bins)
    heights = counts / (len(values) * np.diff(bins))
    axes.bar(
        bins[:-1],
        heights,
        np.diff(bins),
        align="edge",
        color=PALETTE[place % len(PALETTE)],
        alpha=0.55,
        edgecolor="white",
        hatch=HATCHES[place % len(HATCHES)],
        label=f"{len(values)} weights, mean {np.mean(values):.3g}",
    )
    top = float(heights.max())
    fit = fit_beta(values)
    if fit is not None:
        x = np.linspace(max(low / fit.scale, _EDGE), min(high / fit.scale, 1) - _EDGE, 400)
        density = beta.pdf(x, fit.a, fit.b) / fit.scale
        axes.plot(x * fit.scale, density, color=INK, label=f"Beta({fit.a:.2g}, {fit.b:.2g})")
        top = max(top, min(float(density.max()), 1.5 * top))  # a density may be unbounded at 0 and 1
    axes.set_ylim(0, 1.35 * top)
    axes.set_xlim(low, high + 0.02 * (high - low))
    axes.axvline(1, color=INK, linewidth=0.8, linestyle=":")
    axes.legend(loc="upper left", fontsize=7.5)
    axes.grid(visible=False)


def confusion_of(row: ResultRow, shift: str) -> tuple[list[list[int]], list[str]] | None:
    """Sum the confusion matrices of all splits of a shift.

    Returns:
        Test images by true and predicted class, and the names of the classes; None if nothing is done.
    """
    accuracies = [row.done[place].result.accuracy for place in sorted(row.done) if place[0] == shift]
    if not accuracies:
        return None
    names = list(accuracies[0].per_class)
    alike = [one.confusion for one in accuracies if list(one.per_class) == names]
    return np.sum(alike, axis=0).tolist(), names


@chart
def confusion_figure(confusion: Sequence[Sequence[int]], names: Sequence[str], title: str = "") -> "Figure":
    """Draw a confusion matrix: the darker a cell, the larger its share of the images of its true class.

    Args:
        confusion: Images by true class (first) and predicted class.
        names: The names of the classes.
        title: The line above.

    Returns:
        The figure, sized by the number of classes, at most the `MOST` with the most mistakes. Cells that do not round
        to 0 per cent show their number if there is room.
    """
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    counts = np.asarray(confusion, dtype=float)
    totals = counts.sum(1, keepdims=True)
    shares = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
    shown = most_mistaken(confusion, MOST)
    shares, classes = shares[np.ix_(shown, shown)], len(shown)
    side = max(1.8, (0.42 if classes <= 12 else 0.27) * classes)
    figure = new_figure(side + 2.2, side + 1.6)
    axes = figure.subplots()
    cells = np.argwhere(shares > 0)
    squares = [Rectangle((column - 0.47, row - 0.47), 0.94, 0.94) for row, column in cells.tolist()]
    depth = _LIGHTEST + (_DARKEST - _LIGHTEST) * shares[tuple(cells.T)]
    axes.add_collection(PatchCollection(squares, facecolor=[(PALETTE[0], alpha) for alpha in depth], linewidth=0))
    if classes <= _MOST_WITH_NUMBERS:
        for row, column in np.argwhere(shares >= 0.005).tolist():
            number = f"{100 * shares[row, column]:.0f}"
            axes.text(column, row, number, ha="center", va="center", fontsize=9 if classes <= 12 else 7)
    short = [plain(names[place], 22) for place in shown]
    name_axis(axes, short)
    name_axis(axes, short, up=True)
    axes.set(xlim=(-0.5, classes - 0.5), ylim=(classes - 0.5, -0.5), aspect="equal")
    axes.set(xlabel="predicted", ylabel="true", title=plain(title))
    axes.spines[["top", "right"]].set_visible(True)
    axes.grid(visible=False)
    return figure


def most_mistaken(confusion: Sequence[Sequence[int]], most: int) -> list[int]:
    """Choose the classes involved in the most mistakes, in class order.

    >>> most_mistaken([[5, 0, 2], [0, 9, 0], [1, 0, 7]], 2)
    [0, 2]
    """
    places = range(len(confusion))
    mistakes = [sum(confusion[i]) + sum(row[i] for row in confusion) - 2 * confusion[i][i] for i in places]
    return sorted(sorted(places, key=lambda place: -mistakes[place])[:most])


@chart
def class_weight_figure(methods: Mapping[str, Mapping[str, Sequence[float]]], names: Sequence[str]) -> "Figure":
    """Show ζ and ζ̄ of every class, all 1 at the start.

    Args:
        methods: For each method, in a panel of its own: the weights of the classes by what they weight.
        names: The names of the classes.
    """
    figure = _wide_figure(names, 2.6 * len(methods))
    for axes, (method, terms) in zip(
        figure.subplots(len(methods), 1, squeeze=False).flat, methods.items(), strict=True
    ):
        for place, (term, values) in enumerate(terms.items()):
            style = {"marker": MARKERS[place % len(MARKERS)], "color": PALETTE[place % len(PALETTE)]}
            axes.plot(range(len(values)), values, linestyle="", label=term, **style)
        axes.axhline(1, color=INK, linewidth=0.8, linestyle=":")
        axes.set(ylabel="weight", title=plain(method))
        name_axis(axes, names)
    legend_below(figure, max(figure.axes, key=lambda axes: len(axes.lines)))
    return figure


@chart
def share_figure(series: Mapping[str, Sequence[float]], names: Sequence[str]) -> "Figure":
    """Show shares of the classes in per cent, as bars side by side for each series."""
    figure = _wide_figure(names, 2.8)
    axes = figure.subplots()
    width = 0.8 / len(series)
    for place, (name, values) in enumerate(series.items()):
        left = np.arange(len(names)) + (place - (len(series) - 1) / 2) * width
        colour, hatch = PALETTE[place % len(PALETTE)], HATCHES[place % len(HATCHES)]
        axes.bar(left, values, width, label=name, color=colour, hatch=hatch, edgecolor="white")
    axes.set_ylabel("per cent")
    name_axis(axes, names)
    if len(series) > 1:
        legend_below(figure, axes)
    return figure


def _wide_figure(names: Sequence[str], height: float) -> "Figure":
    return new_figure(max(4.8, 0.8 + 0.2 * len(names)), height + 0.6)
