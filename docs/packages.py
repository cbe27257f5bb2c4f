"""Draw docs/images/packages.svg: the packages of sohot, and who imports whom: `python docs/packages.py`."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt

import sohot

SOURCE = Path(sohot.__file__).parent
PICTURE = Path(__file__).with_name("images") / "packages.svg"
ABOUT = {
    "functional": "the mathematics, GPU kernels",
    "methods": "methods and options, one record each",
    "selection": "folds, candidates, choice",
    "losses": "losses as modules",
    "data": "images, data sets, protocols",
    "networks": "backbones, two streams",
    "training": "the fit loop, checkpoints",
    "heads": "classifiers on features",
    "runs": "folders ↔ model",
    "experiments": "grids, engines, store",
    "reporting": "tables, figures, pages",
    "app": "a local page: label, train again",
    "cli": "parses, calls, prints",
    "api": "fit and load from Python",
}
PLACES = {
    "api": (1, 10),
    "cli": (1, 9),
    "app": (1, 8),
    "reporting": (1, 7),
    "experiments": (1, 6),
    "runs": (1, 5),
    "networks": (0, 3.5),
    "data": (0, 2.5),
    "heads": (1.75, 4.3),
    "training": (2.3, 3.4),
    "losses": (2.3, 2.5),
    "selection": (0.5, 1.6),
    "methods": (1, 0.8),
    "functional": (1, 0),
}


def package_imports() -> dict[str, set[str]]:
    """Give the packages that each package imports."""
    found: dict[str, set[str]] = {name: set() for name in ABOUT}
    for name, others in found.items():
        for file in (SOURCE / name).rglob("*.py"):
            depth = len(file.relative_to(SOURCE).parts)
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and node.level == depth and node.module:
                    others.update({node.module.split(".")[0]} & ABOUT.keys())
    return found


def direct(imports: dict[str, set[str]]) -> dict[str, set[str]]:
    """Leave out an import that a path through other packages implies."""
    below: dict[str, set[str]] = {}
    for name in TopologicalSorter(imports).static_order():
        below[name] = imports[name].union(*(below[other] for other in imports[name]))
    return {
        name: {one for one in others if not any(one in below[other] for other in others - {one})}
        for name, others in imports.items()
    }


def draw() -> None:
    """Write the picture."""
    figure, axes = plt.subplots(figsize=(8, 10.4))
    frame = {"boxstyle": "round,pad=0.5", "facecolor": "#eef3fb", "edgecolor": "#4063a0"}
    boxes = {}
    for name, (x, y) in PLACES.items():
        text = axes.text(x, y, f"$\\bf{{{name}}}$\n{ABOUT[name]}", ha="center", va="center", fontsize=10, bbox=frame)
        boxes[name] = text.get_bbox_patch()
    axes.set(xlim=(-0.7, 3.0), ylim=(-0.4, 10.4))
    axes.axis("off")
    figure.canvas.draw()  # now the boxes know how large they are
    for name, others in direct(package_imports()).items():
        for other in sorted(others):
            arrow = {"arrowstyle": "-|>", "color": "0.4", "lw": 1.3, "patchA": boxes[name], "patchB": boxes[other]}
            axes.annotate("", PLACES[other], PLACES[name], arrowprops={**arrow, "shrinkA": 2, "shrinkB": 2})
    figure.savefig(PICTURE, bbox_inches="tight", metadata={"Date": None})


if __name__ == "__main__":
    matplotlib.rcParams["svg.hashsalt"] = "sohot"
    draw()
