"""What the size of the pool, its class shares and its true labels change, with layers trained, on images never seen.

    python studies/unlabelled/pools.py office31 DATA/office31 --out study-office31
    python studies/unlabelled/pools.py pacs DATA/pacs --out study-pacs

The folder is that of study.py, whose outputs of the frozen layers serve again. Half of the target images that are not
labelled is never seen and tests; of the other half some are the pool. `pools.csv` in the folder lists what was
measured, and the same command goes on where it stopped. True labels of the pool are a ceiling: no other row sees any.
"""

import argparse
import csv
import multiprocessing
import os
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rows import Row, pseudo, supervised

from sohot.data.labelled import LabelledImages
from sohot.data.pools import INDUCTIVE, POOL, SUPERVISED
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
FIELDS = ("data", "shift", "split", "pool", "images", "way", "accuracy")


@dataclass(frozen=True)
class Trial:
    """A pool, and a way to learn from it."""

    pool: str
    way: str
    row: Row


def trials(data: str) -> Iterator[Trial]:
    """List what is compared on every split."""
    head = Row(data, "frozen head", "s+t", {"trains": "head"}, INDUCTIVE)
    trained = replace(pseudo(data, "pseudo-labels"), pool=INDUCTIVE)
    for pool in (NONE, LABELLED):
        yield Trial(pool, "frozen head", head)
        yield Trial(pool, "layers trained", supervised(data, "s+t", "s+t"))
    for pool in (*map(str, SIZES), WHOLE, SKEWED, ABSENT):
        yield Trial(pool, "frozen head", head)
        yield Trial(pool, "layers trained", trained)
    for pool in (WHOLE, SKEWED, ABSENT):
        row = replace(trained, settings={**trained.settings, "prior": "estimated"})
        yield Trial(pool, "layers trained, estimated shares", row)


def true_labels(pool: LabelledImages, classes: Sequence[str]) -> list[int]:
    """Read the classes of a pool's images from the names of their folders."""
    return [classes.index(file.parent.name) for file in pool.files]


def choose(pool: LabelledImages, kind: str, labels: Sequence[int], seed: Sequence[int]) -> LabelledImages | None:
    """Take the images of a pool that a trial shows; None if it has too few, or if it shows none."""
    random, classes = np.random.default_rng([*seed, *kind.encode()]), np.array(labels)
    if kind in (NONE, LABELLED):
        return None
    if kind == WHOLE:
        return pool
    if kind == SKEWED:
        shares = random.dirichlet(np.ones(max(labels) + 1))[classes] / np.bincount(classes)[classes]
        rows = random.choice(len(pool), len(pool) // 3, replace=False, p=shares / shares.sum())
    elif kind == ABSENT:
        gone = random.permutation(max(labels) + 1)[: (max(labels) + 1) // 3]
        rows = np.flatnonzero(~np.isin(classes, gone))
    elif int(kind) > len(pool):
        return None
    else:  # smaller ones are part of the larger ones
        rows = np.random.default_rng(seed).permutation(len(pool))[: int(kind)]
    return pool.subset(np.sort(rows).tolist())


def data_of(split: Split, trial: Trial, seed: Sequence[int]) -> RunData | None:
    """Return the images of a trial; None if the pool is too small for it."""
    source, target, test, pool = (split.sides[side] for side in ("source_train", "target_train", "target_test", POOL))
    labels = true_labels(pool, split.classes)
    shown = choose(pool, trial.pool, labels, seed)
    if shown is None and trial.pool not in (NONE, LABELLED):
        return None
    if trial.pool == LABELLED:
        target = replace(
            target,
            files=(*target.files, *pool.files),
            labels=(*target.labels, *labels),
            parts=(*target.parts, *pool.parts),
            groups=(),
        )
    protocol = SUPERVISED if shown is None else INDUCTIVE
    return RunData(tuple(split.classes), source, target, test, pool=shown, protocol=protocol)


def measure(cell: Cell, *, data: str, where: Workplace, done: set[tuple[str, ...]]) -> list[list[Any]]:
    """Compute all trials of a split that are still missing."""
    warnings.simplefilter("ignore")
    split, parts, found = draw_split(cell, where), SharedParts(where.out / FEATURES), []
    for trial in trials(data):
        if (data, cell.shift, str(cell.split), trial.pool, trial.way) in done:
            continue
        images = data_of(split, trial, [cell.split, *cell.shift.encode()])
        if images is None:
            continue
        settings = trial.row.settings
        config = config_of(replace(cell, method=trial.row.method), settings, where)
        accuracy = train_and_test(config, images, TrunkStore(parts=parts)).tested().micro
        size = 0 if images.pool is None else len(images.pool)
        found.append([data, cell.shift, cell.split, trial.pool, size, trial.way, f"{100 * accuracy:.3f}"])
    return found


def main() -> None:
    """Measure what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", choices=("office31", "pacs"))
    parser.add_argument("root", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    row = Row(given.data, "frozen head", "s+t", {"trains": "head"}, INDUCTIVE, SPLITS, shifts=SHIFTS[given.data])
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
