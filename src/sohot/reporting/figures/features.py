"""Features of the images of a run in the plane: colours show classes, marks show parts of the data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from .canvas import INK, PALETTE, SOFT, chart, hide_ticks, legend_below, new_figure, plain
from .projection import Plane, project

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PARTS = {
    "source": ("o", "source, trained on"),
    "test": ("x", "target, unseen"),
    "pool": ("^", "target, unlabelled"),
    "target": ("*", "target, trained on"),
}
"""Marks of the parts and what they mean, in the order of drawing: the few stars lie above all others."""
MOST_CLASSES = len(PALETTE)
"""As many classes can be told apart."""
_TITLES = {"pca": "two principal components", "tsne": "t-SNE"}
_MOST_SHAPES = 3000  # in a picture of vectors; more points become pixels


@dataclass(frozen=True)
class FeaturePoints:
    """Features of some images.

    Attributes:
        stages: Features by stage of training, each of shape (n, d).
        classes: The class of each row.
        parts: The part of the data that each row is of: "source", "target", "test" or "pool".
        names: The classes, at most `MOST_CLASSES`, in class order.
    """

    stages: Mapping[str, Tensor]
    classes: Sequence[str]
    parts: Sequence[str]
    names: Sequence[str]


@chart
def feature_figure(points: FeaturePoints, how: str = "pca") -> "Figure":
    """Show every row as a point, in a panel for each stage.

    Args:
        points: The features.
        how: "pca" or "tsne", see `project`.
    """
    figure = new_figure(4.8 * len(points.stages), 4.9)
    panels = figure.subplots(1, len(points.stages), squeeze=False)[0]
    for axes, (title, rows) in zip(panels, points.stages.items(), strict=True):
        _draw(axes, project(rows, how), points)
        axes.set_title(plain(title))
        hide_ticks(axes)
    separately = ", computed for each panel separately" if len(panels) > 1 else ""
    panels[0].set_xlabel(f"{_TITLES[how]} of the features{separately}", loc="left")
    for name, colour in zip(points.names, PALETTE, strict=False):
        panels[0].plot([], [], linestyle="", marker="s", color=colour, label=plain(name, 22))
    for part, (_, words) in PARTS.items():
        if part in points.parts:
            panels[0].plot([], [], label=words, **_mark(part, SOFT))
    legend_below(figure, panels[0])
    return figure


def _draw(axes: "Axes", plane: Plane, points: FeaturePoints) -> None:
    classes, parts = np.array(points.classes), np.array(points.parts)
    for part in PARTS:
        for name, colour in zip(points.names, PALETTE, strict=False):
            chosen = plane[(parts == part) & (classes == name)]
            axes.plot(*chosen.T, rasterized=len(plane) > _MOST_SHAPES, **_mark(part, colour))


def _mark(part: str, colour: str) -> dict[str, Any]:
    marker = PARTS[part][0]
    style = {"linestyle": "", "marker": marker, "color": colour, "markersize": 5, "markeredgewidth": 1.1}
    if marker == "*":
        return {**style, "markersize": 11, "markeredgecolor": INK, "markeredgewidth": 0.8, "zorder": 4}
    return {**style, "markerfacecolor": "none"}
