"""What all figures share: a canvas without a display, colours all readers can tell apart, reproducible bytes."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..._files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
"""Colours that colour-blind readers can tell apart (Okabe and Ito), with grey for yellow, which fades on white."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "p", "<")
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)), (0, (3, 3)))
HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo", "--")

DOTS_PER_INCH = 200
_SETTINGS = {
    "svg.hashsalt": "sohot",  # otherwise the names of shapes in the file change with each run
    "svg.fonttype": "path",  # letters look the same everywhere
}


def new_figure(width: float, height: float) -> "Figure":
    """Create a figure with its own canvas: it needs no display and leaves pyplot's state alone.

    Args:
        width: In inches.
        height: In inches.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DOTS_PER_INCH, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: "Figure", folder: Path, name: str, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Write `folder/name.png` and `.svg`, each atomically; the same figure gives the same bytes.

    Args:
        figure: The figure.
        folder: The folder; created if missing.
        name: The file name without its suffix.
        formats: "png", "svg" or both.

    Returns:
        The files.
    """
    import matplotlib

    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for form in formats:
        metadata = {"Software": None} if form == "png" else {"Date": None, "Creator": None}
        content = io.BytesIO()
        with matplotlib.rc_context(_SETTINGS):
            figure.savefig(content, format=form, metadata=metadata, bbox_inches="tight", pad_inches=0.08)
        files.append(folder / f"{name}.{form}")
        write_atomically(files[-1], content.getvalue())
    return files


def look(place: int) -> dict[str, Any]:
    """Return colour, marker and line style of the series at a place; series also differ without colour."""
    return {
        "color": OKABE_ITO[place % len(OKABE_ITO)],
        "marker": MARKERS[place % len(MARKERS)],
        "linestyle": LINES[place % len(LINES)],
    }


def plain(text: str) -> str:
    r"""Escape a name for matplotlib: a dollar sign starts no formula, and unprintable characters are dropped.

    >>> plain("$5 mug")
    '\\$5 mug'
    """
    return "".join(sign for sign in " ".join(text.split()) if sign.isprintable()).replace("$", r"\$")


def shorten(text: str, most: int = 18) -> str:
    """Cut a long name.

    >>> shorten("a very long name of a class", 10)
    'a very lo…'
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


def legend_beside(axes: "Axes") -> None:
    """Put the legend to the right of the axes, where it covers nothing."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8, frameon=False)


def legend_below(axes: "Axes") -> None:
    """Put the legend below the axes, where it covers nothing."""
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=3, fontsize=8, frameon=False)


def tidy(axes: "Axes", *, grid: bool = True) -> None:
    """Remove the top and right sides of the frame, and draw light grid lines behind the data."""
    axes.spines[["top", "right"]].set_visible(False)
    if grid:
        axes.grid(True, color="#DDDDDD", linewidth=0.6)
        axes.set_axisbelow(True)


def draw_class(axes: "Axes", points: Tensor, colour: str, name: str, *, dashed: bool) -> None:
    """Draw the rows of a class, its covariance at one standard deviation, and its name on the mean.

    Args:
        axes: Where to draw.
        points: Shape (n, 2). A class of one row has no ellipse; a class without rows is not drawn.
        colour: Its colour.
        name: Something short.
        dashed: Draw a dashed line and crosses instead of a solid line and circles.
    """
    if not len(points):
        return
    marker = "x" if dashed else "o"
    axes.plot(*points.T.numpy(), linestyle="", marker=marker, markersize=2, color=colour, alpha=0.25)
    if len(points) > 1:
        _draw_ellipse(axes, points, colour, dashed)
    _draw_name(axes, points, colour, name, dashed)


def draw_stars(axes: "Axes", points: Tensor, colour: str, label: str | None = None) -> None:
    """Mark target rows that were trained on, above all others."""
    if len(points):
        x, y = points.T.numpy()
        axes.scatter(x, y, 70, colour, marker="*", edgecolors="black", linewidths=0.6, zorder=5, label=label)


def hide_ticks(axes: "Axes") -> None:
    """Hide the ticks: positions along directions found in the data mean nothing."""
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
