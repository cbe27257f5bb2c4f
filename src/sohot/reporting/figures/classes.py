"""Figures by class: the learned weights ζ and ζ̄ with their Beta fits, like the paper's, and the confusion matrix."""

import math
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..results import ResultRow
from .canvas import HATCHES, OKABE_ITO, new_figure, plain, shorten, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_EDGE = 1e-3  # share of the range that keeps values away from 0 and 1, where a Beta density may be infinite
_FEWEST = 5
_MOST_WITH_TITLES = 60  # classes; with more, names are unreadable and numbers replace them


class BetaFit(NamedTuple):
    """A Beta distribution on 0 … `scale`."""

    a: float
    b: float
    scale: float

    @property
    def mean(self) -> float:
        """Its mean."""
        return self.scale * self.a / (self.a + self.b)


def weight_histograms(rows: Iterable[ResultRow]) -> "Figure | None":
    """Show the class weights of a method over all its classes and splits: the means first, then each order.

    Args:
        rows: Rows of an experiment; each that learned weights gets a row of panels.

    Returns:
        The figure; None if none learned weights.
    """
    learned = {row.label: found for row in rows if (found := class_weights(row))}
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
            axes.set_title(f"{term} ({plain(label)})", fontsize=10)
            axes.set_xlabel("weight", fontsize=9)
        line[0].set_ylabel("density", fontsize=9)
    return figure


def class_weights(row: ResultRow) -> dict[str, list[float]]:
    """Collect the weights of all shifts and splits by what they weight; empty if the method learns none."""
    found: dict[str, list[float]] = {}
    for place in sorted(row.done):
        for term, values in (row.done[place].result.zeta or {}).items():
            name = r"$\bar{\zeta}$, means" if term == "means" else rf"$\zeta$, {term.replace('order', 'order ')}"
            found.setdefault(name, []).extend(values)
    return found


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
        color=OKABE_ITO[place % len(OKABE_ITO)],
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
        axes.plot(x * fit.scale, density, color="black", linewidth=1.4, label=f"Beta({fit.a:.2g}, {fit.b:.2g})")
        top = max(top, min(float(density.max()), 1.5 * top))  # a density may be unbounded at 0 and 1
    axes.set_ylim(0, 1.35 * top)
    axes.set_xlim(low, high + 0.02 * (high - low))
    axes.axvline(1, color="black", linewidth=0.8, linestyle=":")
    axes.legend(loc="upper left", fontsize=7.5, facecolor="white", framealpha=0.9, edgecolor="none")
    tidy(axes, grid=False)


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


def confusion_figure(confusion: Sequence[Sequence[int]], names: Sequence[str], title: str = "") -> "Figure":
    """Draw a confusion matrix.

    Args:
        confusion: Rows by true class (first) and predicted class.
        names: The names of the classes.
        title: The line above.

    Returns:
        The figure, sized by the number of classes; cells that do not round to 0 per cent show their number.
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
