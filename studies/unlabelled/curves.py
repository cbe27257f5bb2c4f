"""Accuracy on images never seen, against the number of unlabelled images and of labels per class, on frozen features.

    python studies/unlabelled/curves.py FOLDER --out docs/results/unlabelled-curves.csv
    python studies/unlabelled/curves.py --figure docs/images/unlabelled-curves.png docs/results/unlabelled-curves.csv

FOLDER holds the features of studies/choosing/tasks.py. Half of the target rows that are not labelled is never seen and
tests; of the other half some are the pool. Draws are those of no other study.
"""

import argparse
import csv
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
from features import halves, score
from tasks import image_tasks

from sohot import SoHoTClassifier

TASKS = {"photo-cartoon": "pacs", "cartoon-photo": "pacs", "webcam-amazon": "office31"}
DRAWS = range(310, 315)
SHOTS = (1, 3, 10)
SIZES = (0, 10, 30, 100, 300, 1000)
FIELDS = ("task", "draw", "shots", "pool", "accuracy")
COLOURS = ("#b35806", "#00674f", "#2c5f9e")

Curves = dict[str, dict[str, dict[str, list[float]]]]


def measure(folder: Path) -> Iterator[list[object]]:
    """Yield a line for each draw, number of labels and size of the pool."""
    for (name, data), shots in product(TASKS.items(), SHOTS):
        for task in image_tasks(folder, data, "lite0", DRAWS, shots):
            shift, draw = task.name.split()
            if shift != name:
                continue
            trial = halves(task, np.random.default_rng(int(draw)))
            order = np.random.default_rng([int(draw), 1]).permutation(len(trial.pool[0]))
            for size in SIZES:
                if size > len(order):
                    continue
                rows, unknown = trial.pool[0][order[:size]], np.full(size, -1)
                x, y, domain = task.joined()
                model = SoHoTClassifier(calibrate=False)
                model.fit(np.concatenate([x, rows]), np.concatenate([y, unknown]), np.concatenate([domain, unknown]))
                yield [name, draw, shots, size, f"{score(model, *trial.fresh):.3f}"]


def draw_figure(file: Path, picture: Path) -> None:
    """Draw one panel for each task, one line for each number of labels."""
    curves: Curves = {task: {} for task in TASKS}
    with open(file, newline="", encoding="utf-8") as lines:
        for line in csv.DictReader(lines):
            shots = int(line["shots"])
            curve = curves[line["task"]].setdefault(f"{shots} label{'s' if shots > 1 else ''} per class", {})
            curve.setdefault(line["pool"], []).append(float(line["accuracy"]))
    draw_curves(curves, [*map(str, SIZES)], picture)


def draw_curves(curves: Curves, ticks: Sequence[str], picture: Path) -> None:
    """Draw one panel for each task; bars are standard errors over draws.

    Args:
        curves: Accuracies by task, line and tick.
        ticks: What is along the horizontal axis, from left to right.
        picture: The file to write.
    """
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(curves), figsize=(10 * len(curves) / 3, 3.4), constrained_layout=True)
    for panel, (task, lines) in zip(panels, curves.items(), strict=True):
        for colour, (label, values) in zip(COLOURS, lines.items(), strict=False):
            places = [place for place, tick in enumerate(ticks) if tick in values]
            found = [values[ticks[place]] for place in places]
            error = [stdev(one) / len(one) ** 0.5 for one in found]
            panel.errorbar(places, [*map(fmean, found)], error, color=colour, marker="o", capsize=3, label=label)
        panel.set_xticks(range(len(ticks)), ticks, fontsize=8)
        panel.set_title(task.replace("-", " → "))
        panel.set_xlabel("unlabelled images")
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("accuracy on images never seen, %")
    handles = panels[0].get_legend_handles_labels()
    figure.legend(*handles, frameon=False, loc="outside upper center", ncols=len(handles[0]))
    figure.savefig(picture, dpi=110)


def main() -> None:
    """Measure, or draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("given", type=Path, help="FOLDER, or with --figure the measured file")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--figure", type=Path)
    given = parser.parse_args()
    if given.figure is not None:
        draw_figure(given.given, given.figure)
        return
    if given.out is None:
        parser.error("give --out or --figure")
    with open(given.out, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(FIELDS)
        for line in measure(given.given):
            writer.writerow(line)
            file.flush()


if __name__ == "__main__":
    main()
