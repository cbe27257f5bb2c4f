"""The confidence of a run as a figure: reliability, and risk against coverage."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...selection.answers import Bin, RiskCoverage
from .canvas import SOFT, chart, look, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_POINTS = 400


@chart
def confidence_figure(bins: Mapping[str, Sequence[Bin]], curve: RiskCoverage) -> "Figure":
    """Show the share of right answers against their confidence, and the risk among the surest answers.

    Args:
        bins: The answers in bins of confidence, by name of the stage, such as "calibrated"; larger marks stand for more
            answers.
        curve: The risk by coverage.
    """
    figure = new_figure(8.4, 3.9)
    reliability, risk = figure.subplots(1, 2)
    reliability.plot([0, 100], [0, 100], color=SOFT, linewidth=0.9, linestyle=":")
    for place, (name, stage) in enumerate(bins.items()):
        across, up = [100 * part.confidence for part in stage], [100 * part.right for part in stage]
        style, most = look(place), max(part.rows for part in stage)
        order = 3 - place  # the first stage is the one to look at
        reliability.plot(across, up, zorder=order, **{**style, "marker": ""})
        sizes = [12 + 60 * part.rows / most for part in stage]
        reliability.scatter(across, up, sizes, label=name, zorder=order, color=style["color"], marker=style["marker"])
    reliability.set(xlabel="confidence, %", ylabel="answers right, %", xlim=(0, 103), ylim=(0, 103))
    reliability.set_title("Reliability")
    reliability.legend(loc="upper left")
    places = np.unique(np.linspace(0, len(curve.risk) - 1, _MOST_POINTS).round().astype(int))
    risk.plot(100 * curve.coverage[places], 100 * curve.risk[places], color=look(0)["color"], drawstyle="steps-post")
    risk.set(xlabel="surest answers given, %", ylabel="of them wrong, %", xlim=(0, 103))
    risk.set_ylim(bottom=0)
    risk.set_title(f"Risk and coverage, area {100 * curve.area:.1f} %")
    return figure
