"""Does it pay to label the images that `sohot suggest` names, rather than images at random?

    python studies/unlabelled/suggest.py FOLDER --out docs/results/suggest-proof.md
    python studies/unlabelled/suggest.py FOLDER --out suggest-development.md --development

FOLDER holds frozen features, see studies/choosing/tasks.py. A task has one or three labelled target images per class;
the other target images are halved at random. Each way names some of the first half, their labels are added, the
classifier (`SoHoTClassifier`: a logistic regression on both domains) is fitted again and tested on the second half,
which nobody has seen. Settings were chosen on the draws of `--development`; the draws of the proof are others.
The proof takes about a quarter of an hour on one free core.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tasks run side by side

import csv
import multiprocessing
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from scipy import stats
from sklearn.cluster import KMeans

sys.path.insert(0, str(Path(__file__).parents[1] / "choosing"))
from tasks import DEVELOPMENT, command_line, image_tasks

from sohot import SoHoTClassifier
from sohot.selection.suggestions import doubt, suggest

SHIFTS = ("amazon-webcam", "webcam-amazon", "amazon-dslr", "photo-cartoon", "cartoon-photo")
"""Every domain is the target once."""
SHOTS = (3, 1)
MOST_SOURCE = 8
"""Source images per class: few, so that thousands of fits take minutes."""
RANDOM_DRAWS = 2
"""Random choices whose mean every other way is compared with, for less noise."""
RANDOM, LEAST_SURE, OURS = "random", "least confidence", "doubt² (sohot suggest)"


@dataclass(frozen=True)
class Pool:
    """What a way may look at: features and calibrated probabilities of unlabelled rows, and labelled target rows."""

    features: np.ndarray
    shares: np.ndarray
    labelled: np.ndarray
    seed: int

    def directions(self, rows: np.ndarray) -> np.ndarray:
        """Return unit vectors from the middle of the pool."""
        moved = rows - self.features.mean(axis=0)
        return moved / np.linalg.norm(moved, axis=1, keepdims=True)


Way = Callable[[Pool, int], list[int]]


def at_random(pool: Pool, count: int, draw: int = 0) -> list[int]:
    """Choose any rows."""
    return np.random.default_rng([pool.seed, draw]).permutation(len(pool.features))[:count].tolist()


def surest_last(score: Callable[[np.ndarray], np.ndarray], pool: Pool, count: int) -> list[int]:
    """Choose the rows of the highest scores, however alike they are."""
    return np.argsort(-score(pool.shares), kind="stable")[:count].tolist()


def ours(power: float, pool: Pool, count: int) -> list[int]:
    """Choose by k-means weighted by a power of doubt: with 2, as `sohot suggest` does; with 0, k-means alone."""
    return [one.row for one in suggest(pool.features, pool.shares, count, pool.seed, power=power)]


def entropy(shares: np.ndarray) -> np.ndarray:
    """Return the entropy of each row."""
    return -(shares * np.log(np.maximum(shares, 1e-12))).sum(axis=1)


def clue(pool: Pool, count: int) -> list[int]:
    """Choose as CLUE does (Prabhu et al., 2021): k-means weighted by entropy."""
    rows = pool.directions(pool.features)
    means = KMeans(count, n_init=3, random_state=pool.seed).fit(rows, sample_weight=entropy(pool.shares) + 1e-6)
    own = [np.flatnonzero(means.labels_ == cluster) for cluster in range(count)]
    distances = means.transform(rows)
    return [int(rows_of[distances[rows_of, cluster].argmin()]) for cluster, rows_of in enumerate(own)]


def k_center(pool: Pool, count: int) -> list[int]:
    """Choose greedily the row farthest from all labelled ones, its distance weighed by doubt."""
    rows, labelled, weights = pool.directions(pool.features), pool.directions(pool.labelled), doubt(pool.shares)
    nearest, found = (rows @ labelled.T).max(axis=1), []
    for _ in range(count):
        gain = np.sqrt(np.maximum(0, 2 - 2 * nearest)) * weights
        gain[found] = -1
        found.append(int(gain.argmax()))
        nearest = np.maximum(nearest, rows @ rows[found[-1]])
    return found


def badge(pool: Pool, count: int) -> list[int]:
    """Choose as BADGE does (Ash et al., 2020): k-means++ on the gradients of the last layer."""
    rows, random = pool.directions(pool.features), np.random.default_rng(pool.seed)
    errors = pool.shares - np.eye(pool.shares.shape[1])[pool.shares.argmax(axis=1)]
    squares = np.square(errors).sum(axis=1)
    found, nearest = [int(squares.argmax())], np.full(len(rows), np.inf)
    while len(found) < count:
        last = found[-1]
        products = (errors @ errors[last]) * (rows @ rows[last])
        nearest = np.minimum(nearest, np.maximum(0, squares + squares[last] - 2 * products))
        nearest[found] = 0
        found.append(int(random.choice(len(rows), p=nearest / nearest.sum())))
    return found


def variance(pool: Pool, count: int, noise: float = 0.1) -> list[int]:
    """Choose greedily what reduces the variance of a linear model most where the classifier doubts (Cohn, 1996)."""
    rows, labelled = pool.directions(pool.features), pool.directions(pool.labelled)
    spread = rows @ np.linalg.inv(np.eye(rows.shape[1]) + labelled.T @ labelled / noise)
    there = spread @ ((rows * doubt(pool.shares)[:, None]).T @ rows)
    found: list[int] = []
    for _ in range(count):
        gain = (there * spread).sum(axis=1) / ((spread * rows).sum(axis=1) + noise)
        gain[found] = -1
        found.append(row := int(gain.argmax()))
        share = spread @ rows[row] / (spread[row] @ rows[row] + noise)
        spread, there = spread - np.outer(share, spread[row]), there - np.outer(share, there[row])
    return found


PROOF: dict[str, Way] = {
    **{f"{RANDOM} {draw}": partial(at_random, draw=draw) for draw in range(RANDOM_DRAWS)},
    LEAST_SURE: partial(surest_last, lambda shares: -shares.max(axis=1)),
    OURS: partial(ours, 2),
}
CANDIDATES: dict[str, Way] = {
    **PROOF,
    "smallest margin": partial(surest_last, doubt),
    "entropy": partial(surest_last, entropy),
    "k-means alone": partial(ours, 0),
    "doubt": partial(ours, 1),
    "doubt³": partial(ours, 3),
    "doubt⁴": partial(ours, 4),
    "entropy-weighted k-means (CLUE)": clue,
    "k-center × doubt": k_center,
    "BADGE": badge,
    "variance reduction": variance,
}


@dataclass(frozen=True)
class Split:
    """Labelled rows of both domains, and the two halves of the other target rows."""

    shift: str
    draw: int
    shots: int
    source: tuple[np.ndarray, np.ndarray]
    target: tuple[np.ndarray, np.ndarray]
    pool: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]

    def fit(self, chosen: list[int], *, calibrate: bool = False) -> SoHoTClassifier:
        """Fit the classifier, with the labels of some rows of the pool."""
        x, y = (np.concatenate([own, more[chosen]]) for own, more in zip(self.target, self.pool, strict=True))
        return SoHoTClassifier(calibrate=calibrate).fit(*self.source, X_target=x, y_target=y)

    def accuracy(self, model: SoHoTClassifier) -> float:
        """Return the share of the unseen half that is classified correctly, in per cent."""
        return 100 * float(np.mean(model.predict(self.test[0]) == self.test[1]))


def splits(folder: Path, draws: range) -> Iterator[Split]:
    """Draw splits of every shift."""
    for data in ("office31", "pacs"):
        for task in image_tasks(folder, data, "lite0", draws):
            shift, draw = task.name.split()
            if shift not in SHIFTS:
                continue
            random = np.random.default_rng([int(draw), *shift.encode(), 1])
            order = random.permutation(len(task.test[1]))
            halves = [tuple(part[rows] for part in task.test) for rows in np.array_split(order, 2)]
            for shots in SHOTS:
                source, target = some_of(random, task.source, MOST_SOURCE), some_of(random, task.target, shots)
                yield Split(shift, int(draw), shots, source, target, halves[0], halves[1])


def some_of(
    random: np.random.Generator, rows: tuple[np.ndarray, np.ndarray], count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw so many rows of each class."""
    kept = np.concatenate([random.permutation(np.flatnonzero(rows[1] == c))[:count] for c in np.unique(rows[1])])
    return rows[0][kept], rows[1][kept]


def compute(split: Split, *, ways: str) -> list[dict[str, object]]:
    """Try every way on one split."""
    torch.set_num_threads(1)
    first = split.fit([], calibrate=True)
    shares = first.predict_proba(split.pool[0]).astype(np.float64)
    pool = Pool(split.pool[0], shares, split.target[0], split.draw)
    about = {"shift": split.shift, "draw": split.draw, "shots": split.shots}
    rows: list[dict[str, object]] = []
    for kind, count in (("20", 20), ("one per class", shares.shape[1])):
        rows.append({**about, "labels": kind, "way": "none", "accuracy": split.accuracy(first)})
        for name, way in (CANDIDATES if ways == "candidates" else PROOF).items():
            chosen = way(pool, count)
            assert len(set(chosen)) == count, name
            classes = len(set(split.pool[1][chosen].tolist()))
            found = {"accuracy": split.accuracy(split.fit(chosen)), "classes": classes}
            rows.append({**about, "labels": kind, "way": name.rstrip("01 "), **found})
    print(f"{split.shift} {split.draw}, {split.shots} shots", file=sys.stderr, flush=True)
    return rows


GROUPS = {"Office-31, three shifts": "amazon webcam", "photo → cartoon": "photo-", "cartoon → photo": "cartoon-"}


def by_draw(rows: list[dict[str, object]], way: str, group: str, shots: int, labels: str) -> np.ndarray:
    """Return the accuracy of a way in each draw, its mean over the shifts of a group."""
    found: dict[int, list[float]] = {}
    for row in rows:
        inside = any(str(row["shift"]).startswith(name) for name in GROUPS[group].split())
        if inside and (row["way"], row["shots"], row["labels"]) == (way, shots, labels):
            found.setdefault(int(str(row["draw"])), []).append(float(str(row["accuracy"])))
    return np.asarray([np.mean(found[draw]) for draw in sorted(found)])


def interval(differences: np.ndarray) -> str:
    """Write the mean of paired differences with its 95 % interval over draws."""
    mean, count = differences.mean(), len(differences)
    half = stats.t.ppf(0.975, count - 1) * differences.std(ddof=1) / count**0.5
    return f"{mean:+.2f} [{mean - half:+.2f}, {mean + half:+.2f}]"


def tabulate(rows: list[dict[str, object]]) -> str:
    """Write a table for each number of shots and of labels."""
    ways = [way for way in dict.fromkeys(str(row["way"]) for row in rows) if way not in ("none", RANDOM)]
    lines: list[str] = []
    for shots in SHOTS:
        for labels in ("20", "one per class"):
            columns = {group: partial(by_draw, rows, group=group, shots=shots, labels=labels) for group in GROUPS}
            lines += ["", f"{shots} labelled per class, {labels} more:", "", f"| | {' | '.join(GROUPS)} |"]
            lines.append("| --- |" + " --- |" * len(GROUPS))
            for name in ("none", RANDOM):
                cells = [f"{column(name).mean():.2f}" for column in columns.values()]
                lines.append(f"| {'no more labels' if name == 'none' else name} | {' | '.join(cells)} |")
            for name in ways:
                cells = [interval(column(name) - column(RANDOM)) for column in columns.values()]
                lines.append(f"| {name} − {RANDOM} | {' | '.join(cells)} |")
            if OURS in ways and LEAST_SURE in ways:
                cells = [interval(column(OURS) - column(LEAST_SURE)) for column in columns.values()]
                lines.append(f"| {OURS} − {LEAST_SURE} | {' | '.join(cells)} |")
    return "\n".join(lines).lstrip() + "\n"


def main() -> None:
    """Compute all splits side by side, and write the tables and a CSV file of all numbers."""
    parser = command_line(__doc__)
    parser.add_argument("--draws", type=int, default=10, help="draws of every shift")
    parser.add_argument("--development", action="store_true", help="compare all candidates, on draws of their own")
    options = parser.parse_args()
    first, ways = (DEVELOPMENT, "candidates") if options.development else (0, "proof")
    with ProcessPoolExecutor(options.processes, multiprocessing.get_context("spawn")) as pool:
        tasks = splits(options.folder, range(first, first + options.draws))
        rows = [row for found in pool.map(partial(compute, ways=ways), tasks) for row in found]
    options.out.write_text(tabulate(rows), encoding="utf-8")
    with options.out.with_suffix(".csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["shift", "draw", "shots", "labels", "way", "accuracy", "classes"])
        writer.writeheader()
        writer.writerows(rows)
    print(options.out.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
