"""The tasks on which choosing is studied: features of a source and of a few labelled target rows, and rows to test on.

Development and proof never share a task. The rule was found on development tasks: handwritten digits of the development
half; Office-31 with one of three shots held out as the test, so that no test image is looked at; and PACS with draws of
their own. The others prove it. Features come from files that these commands write:

    sohot features office31 --dataset office31 --out FOLDER/office31-lite0.npz
    sohot features pacs/photo --out FOLDER/photo-lite0.npz
    sohot features pacs/cartoon --out FOLDER/cartoon-lite0.npz

and the same with `--backbone studies/office31/resnet50_v1.py:resnet50_v1 --weights FILE` into files `-resnet50.npz`.
Digits are their 256 pixels and need no file.
"""

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from sohot.experiments.digit_splits import draw_split

SHOTS = 3
SOURCE_SHOTS = {"amazon": 20, "webcam": 8, "dslr": 8, "photo": 20, "cartoon": 20}
"""Labelled source images per class; for Office-31 the usual numbers."""
DEVELOPMENT = 100
"""Draws from this number on are for development."""


@dataclass(frozen=True)
class Task:
    """Rows and classes of the source, of the labelled target rows, and of the test; `files` names the images."""

    data: str
    name: str
    source: tuple[np.ndarray, np.ndarray]
    target: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]
    files: dict[str, list[str]] | None = None

    @property
    def classes(self) -> int:
        """Number of classes."""
        return int(self.source[1].max()) + 1

    def joined(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return X, y and sample_domain as `SoHoTClassifier.fit` takes them."""
        domains = np.repeat([1, -1], [len(self.source[1]), len(self.target[1])])
        return *(np.concatenate(pair) for pair in zip(self.source, self.target, strict=True)), domains


@cache
def read_domains(folder: Path, backbone: str) -> dict[str, dict[str, tuple[np.ndarray, np.ndarray, list[str]]]]:
    """Read features, classes and file names by data set and domain."""
    found: dict[str, dict[str, tuple[np.ndarray, np.ndarray, list[str]]]] = {}
    for data, names in (("office31", ("office31",)), ("pacs", ("photo", "cartoon"))):
        for name in names:
            table = np.load(folder / f"{name}-{backbone}.npz", allow_pickle=False)
            for place, domain in enumerate(table["domain_names"].tolist()):
                rows = np.flatnonzero(table["domains"] == place)
                own = table["features"][rows].astype(np.float64), table["labels"][rows], table["files"][rows].tolist()
                found.setdefault(data, {})[domain] = own
    return found


def _draw(random: np.random.Generator, labels: np.ndarray, count: int) -> np.ndarray:
    rows = [random.permutation(np.flatnonzero(labels == c))[:count] for c in np.unique(labels)]
    return np.sort(np.concatenate(rows))


def image_tasks(folder: Path, data: str, backbone: str, draws: range, shots: int = SHOTS) -> Iterator[Task]:
    """Draw tasks for every ordered pair of domains of a data set."""
    domains = read_domains(folder, backbone)[data]
    for draw in draws:
        for source, (xs, ys, source_files) in domains.items():
            for target, (xt, yt, target_files) in domains.items():
                if source == target:
                    continue
                random = np.random.default_rng([draw, *f"{source} {target}".encode()])
                a, b = _draw(random, ys, SOURCE_SHOTS[source]), _draw(random, yt, shots)
                rest = np.setdiff1d(np.arange(len(yt)), b)
                files = {
                    "source_train": [source_files[row] for row in a],
                    "target_train": [target_files[row] for row in b],
                    "target_test": [target_files[row] for row in rest],
                }
                parts = (xs[a], ys[a]), (xt[b], yt[b]), (xt[rest], yt[rest])
                yield Task(f"{data}, {backbone}", f"{source}-{target} {draw}", *parts, files)


def shot_tasks(folder: Path, backbone: str, draws: range) -> Iterator[Task]:
    """Hold out each labelled target image once as the test: nothing else of the target is looked at."""
    for task in image_tasks(folder, "office31", backbone, draws):
        x, y = task.target
        for number in range(SHOTS):
            held = np.zeros(len(y), dtype=bool)
            for c in np.unique(y):
                held[np.flatnonzero(y == c)[number]] = True
            yield Task(task.data, f"{task.name}.{number}", task.source, (x[~held], y[~held]), (x[held], y[held]))


def digit_tasks(splits: range, half: str) -> Iterator[Task]:
    """Draw tasks from printed to handwritten digits."""
    for number in splits:
        split = draw_split(number, half=half)
        images = (split.source, split.target, split.test)
        labels = (split.source_labels, split.target_labels, split.test_labels)
        rows = [(x.flatten(1).double().numpy(), y.numpy()) for x, y in zip(images, labels, strict=True)]
        yield Task("digits", f"digits {number}", *rows)


def development_tasks(folder: Path) -> list[Task]:
    """Return the tasks on which the rule was found."""
    pacs = image_tasks(folder, "pacs", "lite0", range(DEVELOPMENT, DEVELOPMENT + 12))
    office = shot_tasks(folder, "lite0", range(DEVELOPMENT, DEVELOPMENT + 2))
    return [*pacs, *office, *digit_tasks(range(10), "development")]


def command_line(description: str | None) -> argparse.ArgumentParser:
    """Return the command line that all parts of the study share."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="features, see tasks.py")
    parser.add_argument("--out", type=Path, required=True, help="Markdown file to write")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="tasks side by side")
    return parser


def proof_tasks(folder: Path) -> list[Task]:
    """Return the tasks on which it is proven."""
    found: list[Task] = []
    for backbone in ("lite0", "resnet50"):
        if (folder / f"office31-{backbone}.npz").exists():
            found += image_tasks(folder, "office31", backbone, range(5))
            found += image_tasks(folder, "pacs", backbone, range(10))
    return [*found, *digit_tasks(range(10), "demo")]
