"""Two classes in the plane: a source with many labels, and a rotated and shifted target with five per class.

    python examples/toy.py --out demo

Each domain has its own stream, here just an affine map of the plane, and one linear classifier serves both. They are
trained with and without alignment of the class scatters, over several random draws. The script prints the accuracy on
unseen target points and plots the first draw.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Ellipse
from torch import Tensor, nn

from sohot import ScatterAlignment

CENTRES = torch.tensor([[-1.5, 0.0], [1.5, 0.0]])
SPREAD = torch.tensor([0.5, 1.5])  # elongated perpendicular to the line between the classes
COLOURS = ("#0072B2", "#D55E00")  # distinguishable for colour-blind readers and in print
FIRST_SEED = 1000  # earlier draws were looked at while this example was written
METHODS = {"s+t": "without alignment", "so": "with alignment"}


class Points(NamedTuple):
    x: Tensor
    y: Tensor


class Draw(NamedTuple):
    source: Points
    target: Points
    test: Points


class Model(nn.Module):
    """One stream per domain, both starting as the identity, and one classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.source, self.target, self.classifier = (nn.Linear(2, 2) for _ in range(3))
        for stream in (self.source, self.target):
            nn.init.eye_(stream.weight)
            nn.init.zeros_(stream.bias)


def sample(per_class: int, degrees: float, shift: tuple[float, float], generator: torch.Generator) -> Points:
    """Sample two elongated clouds, rotated about the origin and shifted."""
    y = torch.arange(2).repeat_interleave(per_class)
    x = CENTRES[y] + SPREAD * torch.randn(2 * per_class, 2, generator=generator)
    cos, sin = torch.deg2rad(torch.tensor(degrees)).cos(), torch.deg2rad(torch.tensor(degrees)).sin()
    return Points(x @ torch.tensor([[cos, sin], [-sin, cos]]) + torch.tensor(shift), y)


def make_draw(seed: int) -> Draw:
    generator = torch.Generator().manual_seed(seed)
    source = sample(100, 0.0, (0.0, 0.0), generator)
    target, test = (sample(per_class, 75.0, (1.0, 2.0), generator) for per_class in (5, 500))
    return Draw(source, target, test)


def train(draw: Draw, align: bool, seed: int, steps: int = 400) -> Model:
    torch.manual_seed(seed)
    model = Model()
    alignment = ScatterAlignment(num_classes=2, orders=(2,), sigma1=1.0, sigma2=1.0, feature_scale="initial")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(steps):
        source, target = model.source(draw.source.x), model.target(draw.target.x)
        logits = model.classifier(torch.cat([source, target]))
        loss = nn.functional.cross_entropy(logits, torch.cat([draw.source.y, draw.target.y]))
        if align:
            loss = loss + alignment(source, draw.source.y, target, draw.target.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


@torch.no_grad()
def accuracy(model: Model, points: Points) -> float:
    return 100 * (model.classifier(model.target(points.x)).argmax(1) == points.y).double().mean().item()


def draw_ellipse(axes: Axes, x: Tensor, colour: str, dashed: bool) -> None:
    """Draw the scatter of a cloud: its covariance at two standard deviations."""
    values, vectors = torch.linalg.eigh(torch.cov(x.T))
    degrees = torch.rad2deg(torch.atan2(vectors[1, 1], vectors[0, 1])).item()
    width, height = (4 * values.clamp(min=0).sqrt()).flip(0).tolist()
    style = {"edgecolor": colour, "facecolor": "none", "linewidth": 2, "linestyle": "--" if dashed else "-"}
    axes.add_patch(Ellipse(tuple(x.mean(0).tolist()), width, height, angle=degrees, **style))


def draw_boundary(axes: Axes, classifier: nn.Linear) -> None:
    """Draw the line on which both classes are equally likely."""
    limits = axes.axis()
    normal = (classifier.weight[0] - classifier.weight[1]).detach()
    point = -normal * (classifier.bias[0] - classifier.bias[1]).detach() / normal.dot(normal)
    along = point + torch.stack([-normal[1], normal[0]])
    axes.axline(tuple(point.tolist()), tuple(along.tolist()), color="black", linewidth=1)
    axes.axis(limits)


def draw_panel(axes: Axes, title: str, draw: Draw, classifier: nn.Linear | None = None) -> None:
    for c, colour in enumerate(COLOURS):
        source, target, test = (points.x[points.y == c] for points in draw)
        axes.scatter(*source.T, s=10, color=colour, alpha=0.4, linewidths=0)
        axes.scatter(*test[:100].T, s=16, color=colour, alpha=0.4, marker="x", linewidths=0.8)
        axes.scatter(*target.T, s=90, color=colour, marker="*", edgecolors="black", linewidths=0.8, zorder=3)
        draw_ellipse(axes, source, colour, dashed=False)
        draw_ellipse(axes, test, colour, dashed=True)
    axes.autoscale_view()
    if classifier is not None:
        draw_boundary(axes, classifier)
    axes.set_title(title, fontsize=11)
    axes.set_xticks([])
    axes.set_yticks([])


@torch.no_grad()
def draw_picture(draw: Draw, models: dict[str, Model], file: Path) -> None:
    figure, panels = plt.subplots(1, 3, figsize=(12, 4.4), layout="constrained")
    draw_panel(panels[0], "the data", draw)
    for axes, (method, model) in zip(panels[1:], models.items(), strict=True):
        streams = model.source, model.target, model.target
        features = Draw(*(Points(net(points.x), points.y) for net, points in zip(streams, draw, strict=True)))
        right = accuracy(model, draw.test)
        draw_panel(axes, f"features {METHODS[method]}: {right:.0f} % right", features, model.classifier)
    figure.supxlabel(
        "dots, solid ellipses: source   ·   stars: labelled target   ·   crosses, dashed ellipses: unseen target   ·   "
        "line: classifier",
        fontsize=9,
    )
    figure.savefig(file, dpi=120)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the picture (default: demo)")
    parser.add_argument("--draws", type=int, default=10, help="number of random draws (default: 10)")
    parser.add_argument("--json", action="store_true", help="print only one JSON object on standard output")
    options = parser.parse_args()
    if options.draws < 1:
        parser.error("--draws must be at least 1")
    torch.set_num_threads(1)  # these networks are too small for more

    start = time.perf_counter()
    accuracies: dict[str, list[float]] = {method: [] for method in METHODS}
    shown: dict[str, Model] = {}
    for seed in range(FIRST_SEED, FIRST_SEED + options.draws):
        draw = make_draw(seed)
        for method in METHODS:
            model = train(draw, method == "so", seed)
            accuracies[method].append(accuracy(model, draw.test))
            shown.setdefault(method, model)
        print(f"\rdraw {seed + 1 - FIRST_SEED} of {options.draws}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    options.out.mkdir(parents=True, exist_ok=True)
    picture = options.out / "toy.png"
    draw_picture(make_draw(FIRST_SEED), shown, picture)

    summary = {
        method: {"mean": statistics.mean(values), "std": statistics.pstdev(values), "splits": values}
        for method, values in accuracies.items()
    }
    seconds = time.perf_counter() - start
    if options.json:
        print(json.dumps({"methods": summary, "seconds": seconds, "picture": str(picture)}))
        return
    print(f"Accuracy on unseen target points, {options.draws} draws:")
    for method, values in summary.items():
        print(f"  {method:<4} {METHODS[method]:<18} {values['mean']:5.1f} ± {values['std']:.1f} %")
    gains = [so - st for so, st in zip(accuracies["so"], accuracies["s+t"], strict=True)]
    better = sum(gain > 0 for gain in gains)
    print(f"  alignment gained {statistics.mean(gains):+.1f} points, in {better} of {options.draws} draws")
    print(f"Plot of the first draw: {picture}  ({seconds:.0f} s)")


if __name__ == "__main__":
    main()
