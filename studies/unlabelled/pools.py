"""What the size of the pool, its class shares and its true labels change, with layers trained, on images never seen.

    python studies/unlabelled/pools.py office31 DATA/office31 --out study-office31
    python studies/unlabelled/pools.py pacs DATA/pacs --out study-pacs
    python studies/unlabelled/pools.py tables docs/results/unlabelled-pools.csv --out docs/images

The folder is that of study.py, whose outputs of the frozen layers serve again. Half of the target images that are not
labelled is never seen and tests; of the other half some are the pool. `pools.csv` in the folder lists what was
measured, and the same command goes on where it stopped. True labels of the pool are a ceiling: no other row sees any.
The last command prints tables of such lists, and draws the figure.
"""

import argparse
import csv
import multiprocessing
import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from curves import draw_curves
from features import rows_of_some_classes, skewed_rows
from rows import Row, pseudo, supervised

from sohot.data.labelled import LabelledImages
from sohot.data.pools import INDUCTIVE, POOL
from sohot.data.protocols.split import Split
from sohot.experiments.cell import Cell
from sohot.experiments.cell_training import FEATURES, Workplace, config_of, draw_split
from sohot.experiments.grid_run import plan_grid
from sohot.runs.run_data import RunData
from sohot.runs.shared_parts import SharedParts
from sohot.runs.train_and_test import train_and_test
from sohot.runs.trunk_store import TrunkStore

SHIFTS = {"office31": ("A-W", "W-A"), "pacs": ("photo-cartoon", "cartoon-photo")}
SPLITS = (1, 2, 3, 4, 5)
SIZES = (10, 30, 100, 300, 1000)
WHOLE, SKEWED, ABSENT, NONE, LABELLED = "whole", "skewed", "a third absent", "none", "true labels"
HEAD_ROW, TRAINED = "frozen head", "layers trained"
HEAD = {"trains": "head"}
FIELDS = ("data", "shift", "split", "pool", "images", "way", "accuracy")


class Trial(NamedTuple):
    """A pool, and a way to learn from it."""

    pool: str
    way: str
    settings: Mapping[str, Any]


def trials(data: str) -> Iterator[Trial]:
    """List what is compared on every split."""
    labels, pseudo_labels = supervised(data, "s+t", "s+t").settings, pseudo(data, "pseudo-labels").settings
    for pool in (NONE, LABELLED, *map(str, SIZES), WHOLE, SKEWED, ABSENT):
        yield Trial(pool, HEAD_ROW, HEAD)
        yield Trial(pool, TRAINED, labels if pool in (NONE, LABELLED) else pseudo_labels)
    for pool in (WHOLE, SKEWED, ABSENT):
        yield Trial(pool, f"{TRAINED}, estimated shares", {**pseudo_labels, "prior": "estimated"})


def true_labels(pool: LabelledImages, classes: Sequence[str]) -> tuple[int, ...]:
    """Read the classes of a pool's images from the names of their folders."""
    return tuple(classes.index(file.parent.name) for file in pool.files)


def choose(pool: LabelledImages, kind: str, classes: Sequence[str], seed: Sequence[int]) -> LabelledImages:
    """Take the images of a pool that a trial shows."""
    random, labels = np.random.default_rng([*seed, *kind.encode()]), np.array(true_labels(pool, classes))
    if kind == WHOLE:
        return pool
    if kind == SKEWED:
        rows = skewed_rows(labels, len(classes), random)
    elif kind == ABSENT:
        rows = rows_of_some_classes(labels, len(classes), random)
    else:  # smaller ones are part of the larger ones
        rows = np.random.default_rng(seed).permutation(len(pool))[: int(kind)]
    return pool.subset(np.sort(rows).tolist())


def data_of(split: Split, pool: str, seed: Sequence[int]) -> RunData:
    """Return the images of a trial."""
    sides, classes = split.sides, tuple(split.classes)
    source, target, test = sides["source_train"], sides["target_train"], sides["target_test"]
    if pool == LABELLED:
        more = sides[POOL]
        target = replace(
            target,
            files=(*target.files, *more.files),
            labels=(*target.labels, *true_labels(more, classes)),
            parts=(*target.parts, *more.parts),
            groups=(),
        )
    if pool in (NONE, LABELLED):
        return RunData(classes, source, target, test)
    return RunData(classes, source, target, test, pool=choose(sides[POOL], pool, classes, seed), protocol=INDUCTIVE)


def measure(cell: Cell, *, data: str, where: Workplace, done: set[tuple[str, ...]]) -> list[list[Any]]:
    """Compute all trials of a split that are still missing."""
    warnings.simplefilter("ignore")
    split, parts, found = draw_split(cell, where), SharedParts(where.out / FEATURES), []
    for trial in trials(data):
        if (data, cell.shift, str(cell.split), trial.pool, trial.way) in done:
            continue
        if trial.pool.isdigit() and int(trial.pool) > len(split.sides[POOL]):
            continue
        images = data_of(split, trial.pool, [cell.split, *cell.shift.encode()])
        config = config_of(cell, trial.settings, where)
        accuracy = train_and_test(config, images, TrunkStore(parts=parts)).tested().micro
        size = 0 if images.pool is None else len(images.pool)
        found.append([data, cell.shift, cell.split, trial.pool, size, trial.way, f"{100 * accuracy:.3f}"])
    return found


def read(file: Path) -> dict[tuple[str, str, str], list[float]]:
    """Read accuracies by pool, way and shift."""
    found: dict[tuple[str, str, str], list[float]] = {}
    with open(file, newline="", encoding="utf-8") as lines:
        for line in csv.DictReader(lines):
            found.setdefault((line["pool"], line["way"], line["shift"]), []).append(float(line["accuracy"]))
    return found


def table(found: Mapping[tuple[str, str, str], Sequence[float]]) -> Iterator[str]:
    """Yield a table: mean accuracies by pool and way."""
    shifts = [shift for of_data in SHIFTS.values() for shift in of_data]
    yield "| pool | " + " | ".join(f"{shift} ({len(found[NONE, HEAD_ROW, shift])} splits)" for shift in shifts) + " |"
    yield "| --- |" + " ---: |" * len(shifts)
    for pool, way in dict.fromkeys((pool, way) for pool, way, _ in found):
        means = [found.get((pool, way, shift)) for shift in shifts]
        yield f"| {pool}, {way} | " + " | ".join("–" if one is None else f"{fmean(one):.1f}" for one in means) + " |"


def draw_figure(found: Mapping[tuple[str, str, str], list[float]], picture: Path) -> None:
    """Draw accuracy against the size of the pool."""
    names = {"0": NONE, **{str(size): str(size) for size in SIZES}, "all": WHOLE}
    ways = {"frozen features": HEAD_ROW, "layers trained": TRAINED}
    curves = {
        shift: {
            label: {tick: found[pool, way, shift] for tick, pool in names.items() if (pool, way, shift) in found}
            for label, way in ways.items()
        }
        for of_data in SHIFTS.values()
        for shift in of_data
    }
    draw_curves(curves, [*names], picture)


def main() -> None:
    """Measure what is missing, or show what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", choices=("office31", "pacs", "tables"))
    parser.add_argument("root", type=Path, help="images, or for tables the list")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    if given.data == "tables":
        found = read(given.root)
        print(*table(found), sep="\n")
        draw_figure(found, given.out / "unlabelled-pools.png")
        return
    row = Row(given.data, HEAD_ROW, "s+t", HEAD, INDUCTIVE, SPLITS, shifts=SHIFTS[given.data])
    planned = plan_grid(row.grid(), given.root, given.out, device=given.device)
    file, done = given.out / "pools.csv", set[tuple[str, ...]]()
    if file.exists():
        with open(file, newline="", encoding="utf-8") as lines:
            done = {(one["data"], one["shift"], one["split"], one["pool"], one["way"]) for one in csv.DictReader(lines)}
    began, work = time.perf_counter(), partial(measure, data=given.data, where=planned.where, done=done)
    with (
        open(file, "a", newline="", encoding="utf-8") as stream,
        ProcessPoolExecutor(given.workers, multiprocessing.get_context("spawn")) as workers,
    ):
        writer = csv.writer(stream, lineterminator="\n")
        if not done:
            writer.writerow(FIELDS)
        for ended in as_completed([workers.submit(work, cell) for cell in planned.cells]):
            writer.writerows(ended.result())
            stream.flush()
            print(f"{time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
