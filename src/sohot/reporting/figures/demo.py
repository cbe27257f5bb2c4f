"""The demo's pictures: samples of both domains, class scatters before and after, the learned class weights."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ...experiments.digit_splits import NUM_CLASSES, SHOTS, DigitSplit
from ...experiments.digit_training import normalise
from ...experiments.grid import BASELINE
from ...losses.alignment import ScatterAlignment
from ...networks.two_streams import TwoStreams
from ...training.training_run import FitResult
from .canvas import chart, hide_ticks, new_figure, save_figure
from .classes import class_weight_figure, term_name
from .projection import project

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# As distinct as ten colours can be, for colour-blind readers and in print too; each class also shows its digit.
COLOURS = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#B8A800", "#0072B2", "#D55E00", "#CC79A7", "#7F7F7F", "#6A3D9A")


def draw_pictures(
    folder: Path, data: DigitSplit, untrained: TwoStreams, trained: Mapping[str, FitResult]
) -> list[Path]:
    """Draw all pictures that the trained methods allow.

    Args:
        folder: Where the PNG files go; it must exist.
        data: The split that the networks were trained on.
        untrained: The network as all of them started.
        trained: What `fit` returned, by method.

    Returns:
        The files: always samples.png and scatters.png, and zeta.png if a method learned class weights.
    """
    figures = {"samples": sample_figure(data), "scatters": scatter_figure(data, untrained, trained)}
    learned = {name: result for name, result in trained.items() if result.objective.method.class_weights == "learned"}
    if learned:
        figures["zeta"] = weight_figure(learned)
    return [file for name, figure in figures.items() for file in save_figure(figure, folder, name, formats=("png",))]


@chart
def sample_figure(data: DigitSplit) -> "Figure":
    """Show digits of both domains, including all labelled ones of the target."""
    figure = new_figure(8.0, 5.4)
    domains = {
        "source: printed, many labels": (data.source, data.source_labels),
        f"target: handwritten, only these {len(data.target)} labels": (data.target, data.target_labels),
    }
    for axes, (title, domain) in zip(figure.subplots(len(domains), 1), domains.items(), strict=True):
        axes.imshow(_mosaic(*domain, rows=SHOTS).numpy(), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        axes.set_title(title, fontsize=11)
        axes.set_axis_off()
    return figure


@chart
def scatter_figure(data: DigitSplit, untrained: TwoStreams, trained: Mapping[str, FitResult]) -> "Figure":
    """Show the classes in the plane of two principal axes: before training, and after it without and with alignment."""
    panels = {"before training": untrained}
    if BASELINE in trained:
        panels[f"after training, no alignment ({BASELINE})"] = _network(trained[BASELINE])
    aligned = [name for name, result in trained.items() if result.objective.method.aligns]
    chosen = "so" if "so" in aligned else next(iter(aligned), None)
    if chosen is not None:
        panels[f"after training, aligned ({chosen})"] = _network(trained[chosen])
    figure = new_figure(4.2 * len(panels), 4.7)
    for axes, (title, model) in zip(figure.subplots(1, len(panels), squeeze=False).flat, panels.items(), strict=True):
        _draw_scatters(axes, model, data)
        axes.set_title(title, fontsize=11)
    figure.supxlabel(
        "features projected onto two principal axes; ellipses show one standard deviation · "
        "solid: source (printed) · dashed: target (handwritten, not trained on) · stars: the labelled target digits",
        fontsize=9,
    )
    return figure


def weight_figure(learned: Mapping[str, FitResult]) -> "Figure":
    """Show how strongly each class is aligned."""
    methods = {}
    for name, result in learned.items():
        alignment = result.objective.alignment
        assert isinstance(alignment, ScatterAlignment)  # class weights are part of it
        orders = zip(alignment.orders, alignment.zeta.tolist(), strict=True)
        terms = {"means": alignment.zeta_bar.tolist()} | {f"order{order}": values for order, values in orders}
        methods[name] = {term_name(term): values for term, values in terms.items()}
    return class_weight_figure(methods, [str(digit) for digit in range(NUM_CLASSES)])


def _draw_scatters(axes: "Axes", model: TwoStreams, data: DigitSplit) -> None:
    parts = [_features(model, images) for images in (data.source, data.test, data.target)]
    points = torch.from_numpy(project(torch.cat(parts)))
    source, test, shots = torch.split(points, [len(part) for part in parts])
    for c, colour in enumerate(COLOURS):
        _draw_class(axes, source[data.source_labels == c], colour, str(c), dashed=False)
        _draw_class(axes, test[data.test_labels == c], colour, str(c), dashed=True)
        _draw_stars(axes, shots[data.target_labels == c], colour)
    axes.autoscale_view()
    hide_ticks(axes)


def _draw_class(axes: "Axes", points: Tensor, colour: str, name: str, *, dashed: bool) -> None:
    """Draw the rows of a class, its covariance at one standard deviation, and its name on the mean."""
    marker = "x" if dashed else "o"
    axes.plot(*points.T.numpy(), linestyle="", marker=marker, markersize=2, color=colour, alpha=0.25)
    _draw_ellipse(axes, points, colour, dashed)
    _draw_name(axes, points, colour, name, dashed)


def _draw_stars(axes: "Axes", points: Tensor, colour: str) -> None:
    """Mark target rows that were trained on, above all others."""
    x, y = points.T.numpy()
    axes.scatter(x, y, 70, color=colour, marker="*", edgecolors="black", linewidths=0.6, zorder=5)


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


@torch.inference_mode()
def _features(model: TwoStreams, images: Tensor) -> Tensor:
    """Return the features that are aligned; one stream serves both domains."""
    model.eval()
    features: Tensor = model(None, normalise(images)).target_features
    return features


def _network(result: FitResult) -> TwoStreams:
    assert isinstance(result.model, TwoStreams)  # the demo trains nothing else
    return result.model


def _mosaic(images: Tensor, labels: Tensor, rows: int) -> Tensor:
    """Lay out the first images of each class in a column, with white lines between."""
    framed = torch.nn.functional.pad(images.squeeze(1), (0, 1, 0, 1), value=1.0)
    columns = [torch.cat(list(framed[labels == c][:rows])) for c in range(NUM_CLASSES)]
    return torch.cat(columns, dim=1)[:-1, :-1]
