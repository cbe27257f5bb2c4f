"""Class scatters in the plane as ellipses, with the name of the class on its mean."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_class(axes: "Axes", points: Tensor, colour: str, name: str, *, dashed: bool) -> None:
    """Draw the rows of a class, its covariance at one standard deviation, and its name on the mean.

    Args:
        axes: Where to.
        points: Shape (n, 2). A class of one row has no ellipse, one without rows is not drawn.
        colour: Its colour.
        name: Something short.
        dashed: Draw a dashed line and crosses in place of a solid one and circles.
    """
    if not len(points):
        return
    marker = "x" if dashed else "o"
    axes.plot(*points.T.numpy(), linestyle="", marker=marker, markersize=2, color=colour, alpha=0.25)
    if len(points) > 1:
        _draw_ellipse(axes, points, colour, dashed)
    _draw_name(axes, points, colour, name, dashed)


def hide_ticks(axes: "Axes") -> None:
    """Leave out numbers that say nothing: those of directions found in the data."""
    axes.set_xticks([])
    axes.set_yticks([])


def _draw_ellipse(axes: "Axes", points: Tensor, colour: str, dashed: bool) -> None:
    from matplotlib.patches import Ellipse

    values, vectors = torch.linalg.eigh(torch.cov(points.T))
    degrees = torch.rad2deg(torch.atan2(vectors[1, 1], vectors[0, 1])).item()
    height, width = (2 * values.clamp(min=0).sqrt()).tolist()
    ellipse = Ellipse((float(points[:, 0].mean()), float(points[:, 1].mean())), width, height, angle=degrees)
    ellipse.set(edgecolor=colour, facecolor="none", linewidth=1.8, linestyle="--" if dashed else "-", zorder=3)
    axes.add_patch(ellipse)


def _draw_name(axes: "Axes", points: Tensor, colour: str, name: str, dashed: bool) -> None:
    """Write the name on the mean, with a white halo."""
    from matplotlib.patheffects import withStroke

    x, y = points.mean(0).tolist()
    axes.text(
        x,
        y,
        name,
        color=colour,
        fontsize=9.5,
        fontweight="bold",
        fontstyle="italic" if dashed else "normal",
        ha="center",
        va="center",
        path_effects=[withStroke(linewidth=1.6, foreground="white")],
        zorder=4,
    )
