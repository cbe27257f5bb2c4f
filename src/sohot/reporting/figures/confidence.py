"""The confidence of a run as a figure: reliability, and risk against coverage."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...selection.answers import Bin, RiskCoverage
from .canvas import look, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def confidence_figure(bins: Mapping[str, Sequence[Bin]], curve: RiskCoverage) -> "Figure":
    """Show the share of right answers against their confidence, and the risk among the surest answers.

    Args:
        bins: The answers in bins of confidence, by name of the stage, such as "calibrated".
        curve: The risk by coverage.
    """
    figure = new_figure(8.4, 3.9)
    reliability, risk = figure.subplots(1, 2)
    reliability.plot([0, 100], [0, 100], color="#7F7F7F", linewidth=0.9, linestyle=":")
    for place, (name, of) in enumerate(bins.items()):
        across, up = [100 * one.confidence for one in of], [100 * one.right for one in of]
        reliability.plot(across, up, linewidth=1.4, markersize=4.5, label=name, zorder=3 - place, **look(place))
    reliability.set(xlabel="confidence, %", ylabel="answers right, %", xlim=(0, 102), ylim=(0, 102))
    reliability.set_title("Reliability", fontsize=10)
    reliability.legend(loc="upper left", fontsize=8, frameon=False)
    shares, risks = 100 * curve.coverage, 100 * curve.risk
    risk.plot(shares, risks, linewidth=1.4, color=look(0)["color"], drawstyle="steps-post")
    risk.set(xlabel="surest answers given, %", ylabel="of them wrong, %", xlim=(0, 102))
    risk.set_ylim(bottom=0)
    risk.set_title(f"Risk and coverage, area {100 * curve.area:.1f} %", fontsize=10)
    for axes in (reliability, risk):
        tidy(axes)
    return figure
