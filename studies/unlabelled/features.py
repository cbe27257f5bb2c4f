"""What unlabelled target rows gain on frozen features, and what bad ones cost.

    python studies/unlabelled/features.py FOLDER --out docs/results/unlabelled-features.csv

FOLDER holds the features of studies/choosing/tasks.py. The target rows that are not labelled are halved at random,
without a look at their labels: the *pool* trains without labels, and accuracy on it is transductive; the *fresh* half
is never seen, and accuracy on it is inductive. Every number is paired with the same classifier without the pool. The
draws have no part in any other study; settings were found on draws from 200 on.
"""

import argparse
import csv
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from scipy.stats import t as student

from sohot import SoHoTClassifier, SoHoTClassifierCV

sys.path.insert(0, str(Path(__file__).parents[1] / "choosing"))
from tasks import Task, image_tasks, read_domains

PROOF = 300
"""The first draw that is reported."""
MOST_BAD_ROWS = 400
SHIFTS = {"office31": 6, "pacs": 2}
ONE_PER_TARGET = {"office31": (1, 2, 5), "pacs": (0, 1)}
"""One shift into each target (amazon-webcam, dslr-amazon, webcam-dslr; both of PACS), for what takes long."""
GOOD = "the target's own"
BAD = ("skewed", "ten rows", "a third absent", "a third unknown", "third domain", "other images", "noise")
FIELDS = (
    *("data", "task", "pool", "estimator", "rows", "kept"),
    *("pool_without", "pool_with", "fresh_without", "fresh_with", "reason"),
)


@dataclass(frozen=True)
class Trial:
    """A task with a pool; a row of the pool whose class the task does not know, or nobody knows, has the class −1."""

    task: Task
    pool: tuple[np.ndarray, np.ndarray]
    fresh: tuple[np.ndarray, np.ndarray]


def halves(task: Task, random: np.random.Generator) -> Trial:
    """Halve the rows that are not labelled: some are the pool, the others are never seen."""
    x, y = task.test
    order = random.permutation(len(y))
    pool, fresh = np.sort(order[: len(y) // 2]), np.sort(order[len(y) // 2 :])
    return Trial(task, (x[pool], y[pool]), (x[fresh], y[fresh]))


def _unknown(trial: Trial, random: np.random.Generator) -> Trial:
    """Leave a third of the classes out of the task; their rows stay in the pool."""
    kept = np.sort(random.permutation(trial.task.classes)[: -(trial.task.classes // 3)])
    number = np.full(trial.task.classes, -1)
    number[kept] = np.arange(len(kept))

    def known(rows: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        return rows[0][number[rows[1]] >= 0], number[rows[1]][number[rows[1]] >= 0]

    task = replace(trial.task, source=known(trial.task.source), target=known(trial.task.target))
    return Trial(task, (trial.pool[0], number[trial.pool[1]]), known(trial.fresh))


def skewed_rows(labels: np.ndarray, classes: int, random: np.random.Generator) -> np.ndarray:
    """Draw a third of the rows, so that every mixture of classes is equally likely."""
    shares = random.dirichlet(np.ones(classes))[labels] / np.bincount(labels, minlength=classes)[labels]
    return random.choice(len(labels), len(labels) // 3, replace=False, p=shares / shares.sum())


def rows_of_some_classes(labels: np.ndarray, classes: int, random: np.random.Generator) -> np.ndarray:
    """Return the rows of two thirds of the classes."""
    return np.flatnonzero(~np.isin(labels, random.permutation(classes)[: classes // 3]))


def make_trial(folder: Path, task: Task, pool: str) -> Trial:
    """Give a task the pool of some name."""
    random = np.random.default_rng([3, *f"{task.name} {pool}".encode()])
    trial = halves(task, np.random.default_rng([2, *task.name.encode()]))
    if pool == GOOD:
        return trial
    x, y = trial.pool
    chosen = random.permutation(len(y))[:MOST_BAD_ROWS]
    x, y = x[chosen], y[chosen]
    if pool == "skewed":
        rows = skewed_rows(y, task.classes, random)
        return replace(trial, pool=(x[rows], y[rows]))
    if pool == "ten rows":
        return replace(trial, pool=(x[:10], y[:10]))
    if pool == "a third absent":
        rows = rows_of_some_classes(y, task.classes, random)
        return replace(trial, pool=(x[rows], y[rows]))
    if pool == "a third unknown":
        return _unknown(replace(trial, pool=(x, y)), random)
    if pool == "noise":
        few = task.target[0]
        rows = random.normal(size=(300, few.shape[1])) * few.std(0) + few.mean(0)
    else:
        rows = _other_rows(folder, task, pool)
        rows = rows[random.permutation(len(rows))[:MOST_BAD_ROWS]]
    return replace(trial, pool=(rows, np.full(len(rows), -1)))


def _other_rows(folder: Path, task: Task, pool: str) -> np.ndarray:
    """Rows of a third domain (for PACS, of the source), or of another data set."""
    data, backbone = task.data.split(", ")
    domains = read_domains(folder, backbone)
    if pool == "other images":
        return domains["pacs"]["photo"][0] if data == "office31" else domains["office31"]["webcam"][0]
    named = task.name.split()[0].split("-")
    third = [rows for name, (rows, *_) in domains[data].items() if name not in named]
    return third[0] if third else domains[data][named[0]][0]


def measure(folder: Path, data: str, draw: int, number: int, pool: str, estimator: str) -> list[object]:
    """Fit with the pool and without it, and compare."""
    torch.set_num_threads(1)
    task = list(image_tasks(folder, data, "lite0", range(draw, draw + 1)))[number]
    trial = make_trial(folder, task, pool)
    x, y, domain = trial.task.joined()
    bare = SoHoTClassifier(calibrate=False) if estimator != "SoHoTClassifierCV" else SoHoTClassifierCV()
    bare.fit(x, y, domain)
    model = {"always": SoHoTClassifier(calibrate=False)}.get(
        estimator, bare if "CV" in estimator else SoHoTClassifier()
    )
    before = [score(bare, *rows) for rows in (trial.pool, trial.fresh)]
    rows, unknown = trial.pool[0], np.full(len(trial.pool[0]), -1)
    model.fit(np.concatenate([x, rows]), np.concatenate([y, unknown]), np.concatenate([domain, unknown]))
    after = [score(model, *rows) for rows in (trial.pool, trial.fresh)]
    numbers = (f"{before[0]:.4f}", f"{after[0]:.4f}", f"{before[1]:.4f}", f"{after[1]:.4f}")
    kept = int("the unlabelled rows count" in model.reason_)
    return [task.data, task.name, pool, estimator, len(rows), kept, *numbers, model.reason_]


def score(model: SoHoTClassifier, x: np.ndarray, y: np.ndarray) -> float:
    """Return the accuracy in % on rows whose class is known; NaN if there are none."""
    known = y >= 0
    return float("nan") if not known.any() else 100 * model.score(x[known], y[known])


def jobs(draws: int) -> Iterator[tuple[str, int, int, str, str]]:
    """List data, draw, number of the shift, pool and estimator; what is quick and matters most first."""
    for draw in range(PROOF, PROOF + 2 * draws):
        for data, shifts in SHIFTS.items():
            if data == "pacs" or draw < PROOF + draws:
                yield from ((data, draw, number, GOOD, "SoHoTClassifier") for number in range(shifts))
    for estimator in ("SoHoTClassifier", "always"):
        for data, numbers in ONE_PER_TARGET.items():
            yield from ((data, PROOF, number, pool, estimator) for number in numbers for pool in BAD)
    for draw in range(PROOF, PROOF + draws):
        for data, numbers in ONE_PER_TARGET.items():
            if data == "pacs" or draw == PROOF:
                yield from ((data, draw, number, GOOD, "SoHoTClassifierCV") for number in numbers)


def interval(gains: np.ndarray) -> str:
    """Return the mean with its 95 % interval; of fewer than six tasks, with the lowest and the highest gain."""
    if len(gains) < 6:
        return f"{gains.mean():+.2f} ({gains.min():+.2f} to {gains.max():+.2f})"
    half = student.ppf(0.975, len(gains) - 1) * gains.std(ddof=1) / len(gains) ** 0.5
    return f"{gains.mean():+.2f} [{gains.mean() - half:+.2f}, {gains.mean() + half:+.2f}]"


def tables(file: Path) -> str:
    """Write the tables as Markdown."""
    with file.open(encoding="utf-8") as stream:
        found = list(csv.DictReader(stream))
    parts = [
        "| | tasks | pool, without | gain (transductive) | fresh, without | gain (inductive) |",
        "| --- " * 6 + "|",
    ]
    for data in SHIFTS:
        for estimator in ("SoHoTClassifier", "SoHoTClassifierCV"):
            if not (rows := _chosen(found, data, GOOD, estimator)):
                continue
            cells = [
                f"{_numbers(rows, f'{side}_without').mean():.2f} | {_gain(rows, side)}" for side in ("pool", "fresh")
            ]
            parts.append(f"| {data}, `{estimator}` | {len(rows)} | {' | '.join(cells)} |")
    parts += ["", "| pool | data | tasks | counts in | gain, fresh | if it always counted |", "| --- " * 6 + "|"]
    for pool in BAD:
        for data in SHIFTS:
            rows, always = (_chosen(found, data, pool, estimator) for estimator in ("SoHoTClassifier", "always"))
            kept = sum(int(row["kept"]) for row in rows)
            gains = " | ".join(_gain(part, "fresh") for part in (rows, always))
            parts.append(f"| {pool} | {data} | {len(rows)} | {kept} | {gains} |")
    return "\n".join(parts)


def _chosen(found: list[dict[str, str]], data: str, pool: str, estimator: str) -> list[dict[str, str]]:
    return [
        row for row in found if row["data"].startswith(data) and (row["pool"], row["estimator"]) == (pool, estimator)
    ]


def _numbers(rows: list[dict[str, str]], name: str) -> np.ndarray:
    return np.asarray([float(row[name]) for row in rows])


def _gain(rows: list[dict[str, str]], side: str) -> str:
    return interval(_numbers(rows, f"{side}_with") - _numbers(rows, f"{side}_without")) if rows else ""


def main() -> None:
    """Run the study, or go on with it: finished lines of the CSV file are kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="features, see studies/choosing/tasks.py")
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write; finished lines in it are kept")
    parser.add_argument("--draws", type=int, default=2, help="draws of each shift of Office-31; PACS has twice as many")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="trials side by side")
    asked = parser.parse_args()
    done: set[tuple[str, ...]] = set()
    if asked.out.exists():
        with asked.out.open(encoding="utf-8") as stream:
            done = {(r["data"], r["task"], r["pool"], r["estimator"]) for r in csv.DictReader(stream)}
    with asked.out.open("a", encoding="utf-8", newline="") as stream, ProcessPoolExecutor(asked.processes) as workers:
        writer = csv.writer(stream)
        if not done:
            writer.writerow(FIELDS)
        tasks = {data: image_tasks(asked.folder, data, "lite0", range(PROOF, PROOF + 1)) for data in SHIFTS}
        names = {data: [task.name.split()[0] for task in of_data] for data, of_data in tasks.items()}
        coming = [
            workers.submit(measure, asked.folder, *job)
            for job in jobs(asked.draws)
            if (f"{job[0]}, lite0", f"{names[job[0]][job[2]]} {job[1]}", *job[3:]) not in done
        ]
        for number, one in enumerate(as_completed(coming), 1):
            writer.writerow(one.result())
            stream.flush()
            print(f"{number} of {len(coming)}", file=sys.stderr)
    print(tables(asked.out))


if __name__ == "__main__":
    main()
