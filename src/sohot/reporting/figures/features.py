"""Features of both domains in the plane, with images as points or classes as ellipses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ...functional.checks import check_label_range, check_labels, check_pair
from .canvas import (
    MARKERS,
    OKABE_ITO,
    draw_class,
    draw_stars,
    hide_ticks,
    legend_beside,
    new_figure,
    plain,
    save_figure,
    shorten,
)
from .projection import project

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_CLASSES = 10  # that colours and markers can tell apart
_MOST_POINTS = 1500  # of each domain; t-SNE of more takes minutes
_TITLES = {"pca": "two principal components", "tsne": "t-SNE"}


@dataclass(frozen=True)
class DomainFeatures:
    """Features of source and target rows with their classes.

    Attributes:
        source: Shape (n, d).
        source_labels: Shape (n,).
        target: Shape (m, d).
        target_labels: Shape (m,).
        classes: The names of the classes.
        trained: Which target rows train, shape (m,) of booleans: they are marked; None for none.
    """

    source: Tensor
    source_labels: Tensor
    target: Tensor
    target_labels: Tensor
    classes: Sequence[str]
    trained: Tensor | None = None

    def __post_init__(self) -> None:
        check_pair(self.source, self.target, ("source", "target"))
        for labels, rows, name in (
            (self.source_labels, self.source, "source"),
            (self.target_labels, self.target, "target"),
        ):
            check_labels(labels, rows, (f"{name}_labels", name))
            check_label_range(labels, len(self.classes), f"{name}_labels")
        if self.trained is not None and self.trained.shape != self.target_labels.shape:
            raise ValueError("trained must have one entry for each row of target")

    @property
    def shots(self) -> Tensor:
        """Which target rows train."""
        return torch.zeros(len(self.target), dtype=torch.bool) if self.trained is None else self.trained.cpu().bool()


def write_feature_figures(stages: Mapping[str, DomainFeatures], folder: Path) -> list[Path]:
    """Draw features of both domains, for example before and after training.

    Args:
        stages: Features by stage, such as {"before training": …, "after training (so)": …}.
        folder: Where the files go; created if missing.

    Returns:
        pca, tsne and scatters, each as .png and .svg.
    """
    figures = {
        "pca": point_figure(stages, "pca"),
        "tsne": point_figure(stages, "tsne"),
        "scatters": ellipse_figure(stages),
    }
    return [file for name, figure in figures.items() for file in save_figure(figure, folder, name)]


def point_figure(stages: Mapping[str, DomainFeatures], how: str = "pca", seed: int = 0) -> "Figure":
    """Show every row as a point, once by domain and once by class.

    Args:
        stages: Features by stage; each has a column.
        how: "pca" or "tsne", see `project`.
        seed: Seed of t-SNE.

    Returns:
        The figure: domains above, classes below (at most ten in colour, those with the most rows; the others in grey).
    """
    stages, shown = _prepare(stages)
    figure = new_figure(4.0 * len(stages) + 1.6, 7.6)
    panels = figure.subplots(2, len(stages), squeeze=False)
    for column, (title, stage) in enumerate(stages.items()):
        stage = _thin(stage)
        points = torch.from_numpy(project(torch.cat([stage.source, stage.target]), how, seed))
        source, target = points[: len(stage.source)], points[len(stage.source) :]
        _by_domain(panels[0, column], source, target, stage.shots)
        _by_class(panels[1, column], source, target, stage, shown)
        panels[0, column].set_title(plain(title), fontsize=10)
    for line in panels:
        legend_beside(line[-1])
        for axes in line:
            hide_ticks(axes)
    figure.supxlabel(f"{_TITLES[how]} of the features, computed for each column separately", fontsize=9)
    return figure


def ellipse_figure(stages: Mapping[str, DomainFeatures]) -> "Figure":
    """Show the scatter of each class as an ellipse of one standard deviation: source solid, target dashed.

    Args:
        stages: Features by stage; each has a column.

    Returns:
        The figure, with at most ten classes, those with the most rows.
    """
    stages, shown = _prepare(stages)
    figure = new_figure(4.2 * len(stages) + 1.2, 4.5)
    panels = figure.subplots(1, len(stages), squeeze=False)[0]
    for axes, (title, stage) in zip(panels, stages.items(), strict=True):
        chosen = [torch.isin(labels, torch.tensor(shown)) for labels in (stage.source_labels, stage.target_labels)]
        source, target = stage.source[chosen[0]], stage.target[chosen[1]]
        points = torch.from_numpy(project(torch.cat([source, target])))
        domains = (
            (points[: len(source)], stage.source_labels[chosen[0]]),
            (points[len(source) :], stage.target_labels[chosen[1]]),
        )
        shots = stage.shots[chosen[1]]
        for place, (plane, labels) in enumerate(domains):
            for number, c in enumerate(shown):
                draw_class(axes, plane[labels == c], _colour(number), str(number + 1), dashed=place == 1)
                if place == 1:
                    draw_stars(axes, plane[(labels == c) & shots], _colour(number))
        axes.autoscale_view()
        axes.set_title(plain(title), fontsize=10)
        hide_ticks(axes)
    _class_legend(panels[-1], next(iter(stages.values())), shown)
    figure.supxlabel(
        "features projected onto two principal axes · solid: source · dashed: target · one standard deviation"
        + (" · stars: target, trained on" if any(stage.shots.any() for stage in stages.values()) else ""),
        fontsize=9,
    )
    return figure


def _by_domain(axes: "Axes", source: Tensor, target: Tensor, shots: Tensor) -> None:
    unseen = "target, unseen" if shots.any() else "target"
    for points, label, style in (
        (source, "source", (OKABE_ITO[0], "o")),
        (target[~shots], unseen, (OKABE_ITO[1], "x")),
    ):
        axes.plot(
            *points.T.numpy(), linestyle="", color=style[0], marker=style[1], markersize=3.5, alpha=0.6, label=label
        )
    draw_stars(axes, target[shots], OKABE_ITO[1], "target, trained on")


def _by_class(axes: "Axes", source: Tensor, target: Tensor, stage: DomainFeatures, shown: Sequence[int]) -> None:
    shots = stage.shots
    domains = ((source, stage.source_labels, False), (target[~shots], stage.target_labels[~shots], True))
    for points, labels, filled in domains:
        rest = points[~torch.isin(labels, torch.tensor(shown))]
        axes.plot(*rest.T.numpy(), linestyle="", marker=".", markersize=2, color="#CCCCCC", zorder=1)
        for number, c in enumerate(shown):
            axes.plot(
                *points[labels == c].T.numpy(),
                linestyle="",
                color=_colour(number),
                marker=MARKERS[number % len(MARKERS)],
                markersize=4.5,
                markerfacecolor=_colour(number) if filled else "none",
                markeredgewidth=0.7,
                alpha=0.8,
                label=plain(shorten(stage.classes[c])) if filled else None,
            )
    for number, c in enumerate(shown):
        draw_stars(axes, target[shots & (stage.target_labels == c)], _colour(number))
    stars = " · stars: target, trained on" if shots.any() else ""
    axes.set_xlabel(f"hollow: source · filled: target{stars}", fontsize=8)


def _class_legend(axes: "Axes", stage: DomainFeatures, shown: Sequence[int]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=_colour(number), label=f"{number + 1} {plain(shorten(stage.classes[c]))}")
        for number, c in enumerate(shown)
    ]
    axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8, frameon=False)


def _prepare(stages: Mapping[str, DomainFeatures]) -> tuple[dict[str, DomainFeatures], list[int]]:
    """Move features to the CPU and choose the classes to show: those with the most target rows, in class order."""
    if not stages:
        raise ValueError("stages is empty: pass the features of at least one stage of training")
    ready = {title: _on_cpu(stage) for title, stage in stages.items()}
    first = next(iter(ready.values()))
    if any(list(stage.classes) != list(first.classes) for stage in ready.values()):
        raise ValueError("stages must all have the same classes")
    source, target = (
        labels.bincount(minlength=len(first.classes)) for labels in (first.source_labels, first.target_labels)
    )
    most = torch.argsort(target, descending=True, stable=True).tolist()
    shown = sorted([c for c in most if source[c] and target[c]][:_MOST_CLASSES])
    if not shown:
        raise ValueError("stages must have a class with rows in both domains")
    return ready, shown


def _on_cpu(stage: DomainFeatures) -> DomainFeatures:
    features, labels = (stage.source, stage.target), (stage.source_labels, stage.target_labels)
    source, target = (one.detach().cpu().float() for one in features)
    source_labels, target_labels = (one.cpu().long() for one in labels)
    return DomainFeatures(source, source_labels, target, target_labels, stage.classes, stage.shots)


def _thin(stage: DomainFeatures) -> DomainFeatures:
    """Keep evenly spaced rows if there are too many to project."""
    source, target = (
        torch.linspace(0, count - 1, min(count, _MOST_POINTS)).round().long()
        for count in (len(stage.source), len(stage.target))
    )
    return DomainFeatures(
        *(stage.source[source], stage.source_labels[source], stage.target[target], stage.target_labels[target]),
        stage.classes,
        stage.shots[target],
    )


def _colour(number: int) -> str:
    return (*OKABE_ITO, "#B8A800", "#6A3D9A")[number % 10]
