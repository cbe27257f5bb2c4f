"""Draw the figures of docs/mathematics.md, and check what they show: `python docs/mathematics.py`."""

from pathlib import Path

import matplotlib

matplotlib.use("svg")
import torch
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from torch import Tensor

from sohot.functional import explicit_cost, gram_cost, scatter_distance

IMAGES = Path(__file__).with_name("images")
SOURCE, TARGET, FEATURES = 8, 4, 6
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "0.4"


def signed_gram(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Give the rows Z, each domain minus its mean, their Gram matrix G, and the signs A = a aᵀ of its entries."""
    rows = torch.cat([x - x.mean(0), y - y.mean(0)])
    a = torch.tensor([1 / len(x)] * len(x) + [-1 / len(y)] * len(y), dtype=rows.dtype)
    return rows, rows @ rows.T, torch.outer(a, a)


def draw_gram() -> None:
    """Draw one class: its rows, the Gram matrix in blocks, the signs, and the entries that add up to the distances."""
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(SOURCE, FEATURES, generator=generator, dtype=torch.float64)
    y = 1.2 * torch.randn(TARGET, FEATURES, generator=generator, dtype=torch.float64) + 1
    rows, gram, signs = signed_gram(x, y)
    parts = {order: signs * gram**order for order in (2, 3)}
    for order, part in parts.items():
        torch.testing.assert_close(part.sum(), scatter_distance(x, y, order, method="explicit"))
    shown = {
        "$Z$: centred rows": rows,
        "$G = Z Z^\\top$": gram,
        "$A = a\\,a^\\top$": signs,
        f"$A \\circ G^{{\\circ 2}}$, sum {parts[2].sum():.2f}": parts[2],
        f"$A \\circ G^{{\\circ 3}}$, sum {parts[3].sum():.2f}": parts[3],
    }
    widths = [matrix.shape[1] for matrix in shown.values()]
    figure, panels = plt.subplots(1, 5, figsize=(11.5, 2.9), layout="constrained", width_ratios=widths)
    for axes, (title, matrix) in zip(panels, shown.items(), strict=True):
        _draw_matrix(axes, matrix, title, square=matrix is not rows)
    panels[0].set_yticks([(SOURCE - 1) / 2, SOURCE + (TARGET - 1) / 2], ["source", "target"], rotation=90, va="center")
    _save(figure, "signed-gram")


def _draw_matrix(axes: Axes, matrix: Tensor, title: str, square: bool) -> None:
    limit = matrix.abs().quantile(0.97).item()  # so that smaller entries show, too
    axes.imshow(matrix.numpy(), cmap="RdBu_r", vmin=-limit, vmax=limit)
    axes.axhline(SOURCE - 0.5, color="black", linewidth=1)
    if square:
        axes.axvline(SOURCE - 0.5, color="black", linewidth=1)
    axes.set_title(title, fontsize=12)
    axes.set(xticks=[], yticks=[])


def draw_products() -> None:
    """Draw the way from the rows to the loss and back; only two steps touch the features."""
    figure, axes = plt.subplots(figsize=(9.5, 3.4), layout="constrained")
    places = {
        "rows": (0.0, 1.0, "$Z$: rows of all classes\n$C \\times n \\times d$"),
        "gram": (1.5, 1.0, "$G$: Gram matrices\n$C \\times n \\times n$"),
        "loss": (3.0, 0.5, "loss: a number"),
        "pairs": (1.5, 0.0, "$W = \\sum_r w_r\\, r\\, A \\circ G^{\\circ (r-1)}$\n$C \\times n \\times n$"),
        "gradient": (0.0, 0.0, "gradient: $2\\,H\\,W\\,Z$\n$C \\times n \\times d$"),
    }
    boxes = {}
    for name, (x, y, text) in places.items():
        wide = name in ("rows", "gradient")
        frame = {"boxstyle": "round,pad=0.6", "facecolor": "#eef3fb" if wide else "#fff4e6", "edgecolor": GREY}
        boxes[name] = axes.text(x, y, text, ha="center", va="center", fontsize=11, bbox=frame).get_bbox_patch()
    axes.set(xlim=(-0.6, 3.4), ylim=(-0.45, 1.45))
    axes.axis("off")
    figure.canvas.draw()  # now the boxes know how large they are
    arrows = {
        ("rows", "gram"): "product over $d$",
        ("gram", "loss"): "powers, signs, sum",
        ("gram", "pairs"): "the same powers",
        ("pairs", "gradient"): "product with $Z$",
    }
    for (one, other), text in arrows.items():
        (x0, y0, _), (x1, y1, _) = places[one], places[other]
        bold = {one, other} & {"rows", "gradient"}
        style = {"arrowstyle": "-|>", "color": BLUE if bold else GREY, "lw": 2.5 if bold else 1.3}
        ends = {"patchA": boxes[one], "patchB": boxes[other], "shrinkA": 3, "shrinkB": 3}
        axes.annotate("", (x1, y1), (x0, y0), arrowprops={**style, **ends})
        upright = x0 == x1
        axes.text(
            (x0 + x1) / 2 + (0.08 if upright else 0),
            (y0 + y1) / 2 + (0 if upright else 0.12),
            text,
            ha="left" if upright else "center",
            fontsize=9,
            color=BLUE if bold else GREY,
        )
    _save(figure, "two-products")


def draw_cost() -> None:
    """Draw the multiplications of one class by the number of features, for both ways."""
    features = [2**power for power in range(4, 14)]
    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    for order, shade in zip((2, 3, 4), ("#E69F00", ORANGE, "#8B2500"), strict=True):
        costs = [explicit_cost(20, 3, d, order) for d in features]
        axes.loglog(features, costs, "o-", color=shade, markersize=3, label=f"explicit tensors, order {order}")
    costs = [gram_cost(20, 3, d) for d in features]
    axes.loglog(features, costs, "o-", color=BLUE, linewidth=2.5, markersize=3, label="signed Gram form, any orders")
    axes.set(xlabel="features $d$", ylabel="multiplications", xticks=features[::3], xticklabels=features[::3])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(fontsize=9)
    _save(figure, "scatter-cost")


def _save(figure: plt.Figure, name: str) -> None:
    figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    matplotlib.rcParams["svg.hashsalt"] = "sohot"
    draw_gram()
    draw_products()
    draw_cost()
