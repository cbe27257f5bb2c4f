"""Compare ways to learn from unlabelled images, on splits that serve development alone.

    python studies/unlabelled/images.py DATA --out docs/results/unlabelled-development.csv
    python studies/unlabelled/images.py --table docs/results/unlabelled-development.csv

DATA holds the folders office31 and pacs. Per class 20 source images and 3 target images are labelled; of the other
target images a random half is the pool, and the other half is never seen. Nothing here may be reported as a result:
defaults were picked by looking at these numbers. On a GPU with 16 cores it takes about seven minutes.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # runs go side by side

import argparse
import csv
import multiprocessing
import random
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import mean
from typing import Any

import torch

from sohot.runs.config import RunConfig
from sohot.runs.run_data import RunData, gather
from sohot.runs.train_and_test import train_and_test
from sohot.runs.trunk_store import TrunkStore

STEPS = {"lr": 0.01, "steps": 300}
PSEUDO, BOTH = {**STEPS, "pool_loss": "pseudo"}, {**STEPS, "pool_loss": "pseudo+im"}
WAYS: dict[str, dict[str, Any]] = {
    "frozen head": {"trains": "head"},
    "pseudo-labels": {**PSEUDO, "method": "s+t"},
    "pseudo-labels + information": {**BOTH, "method": "s+t"},
    "pseudo-labels + information + m": {**BOTH, "method": "m"},
    "pseudo-labels + information + so": {**BOTH, "method": "so"},
    "pseudo-labels + information + means": {**BOTH, "method": "means"},
    "pseudo-labels + m": {**PSEUDO, "method": "m"},
    "pseudo-labels + information + so, no bank": {**BOTH, "method": "so", "bank": False},
    "m over the pool": {**STEPS, "method": "m", "pool_loss": "none"},
    "pseudo-labels + so": {**PSEUDO, "method": "so"},
}
TASKS = [
    *((shift, seed) for seed in range(100, 104) for shift in ("photo-cartoon", "cartoon-photo")),
    *((shift, seed) for seed in (100, 101) for shift in ("amazon-webcam", "webcam-amazon", "dslr-amazon")),
]


def folder_of(data: Path, domain: str) -> Path:
    """Return the folder of a domain's class folders."""
    return data / "pacs" / domain if domain in ("photo", "cartoon") else data / "office31" / domain / "images"


def accuracies(task: tuple[str, int], data: Path, device: str) -> list[dict[str, Any]]:
    """Train every way on one task; return its accuracy on the pool and on images never seen, in percent."""
    torch.set_num_threads(1)
    shift, seed = task
    source, target = (folder_of(data, domain) for domain in shift.split("-"))
    config = RunConfig(
        source=source, target=target, shots=3, source_shots=20, seed=seed, keep="layers", device=device, read_threads=1
    )
    found, store = gather(config), TrunkStore()
    assert found.test is not None
    rows = list(range(len(found.test)))
    random.Random(seed).shuffle(rows)
    pool = sorted(rows[: len(rows) // 2])
    images = replace(found, pool=found.test.subset(pool).without_labels())
    return [
        {"shift": shift, "split": seed, "way": way, **_tested(replace(config, **options), images, store, pool)}
        for way, options in WAYS.items()
    ]


def _tested(config: RunConfig, images: RunData, store: TrunkStore, pool: list[int]) -> dict[str, Any]:
    """Return accuracies; and the share of pseudo-labels kept at step 121, and of the largest class at step 286."""
    assert images.test is not None
    done = train_and_test(replace(config, loggers=("none",)), images, store)
    logits, steps = done.logits, {int(record["step"]): record for record in done.result.history}
    assert logits is not None
    right = (logits.argmax(1) == torch.tensor(images.test.labels)).double()
    seen = torch.zeros(len(right), dtype=torch.bool)
    seen[pool] = True
    return {
        "pool": 100 * right[seen].mean().item(),
        "fresh": 100 * right[~seen].mean().item(),
        "kept_121": steps.get(121, {}).get("mask_rate"),
        "largest_286": steps.get(286, {}).get("pool_largest"),
    }


def table(rows: list[dict[str, str]]) -> Iterator[str]:
    """Yield a table of means: accuracy on the pool / on images never seen."""
    shifts, ways = dict.fromkeys(row["shift"] for row in rows), dict.fromkeys(row["way"] for row in rows)
    yield "| | " + " | ".join(shifts) + " |"
    yield "| --- |" + " --- |" * len(shifts)
    for way in ways:
        cells = []
        for shift in shifts:
            own = [row for row in rows if (row["shift"], row["way"]) == (shift, way)]
            cells.append(" / ".join(f"{mean(float(row[side]) for row in own):.1f}" for side in ("pool", "fresh")))
        yield f"| {way} | " + " | ".join(cells) + " |"


def main() -> None:
    """Run the study, or print the table of one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--processes", type=int, default=14)
    given = parser.parse_args()
    if given.table is not None:
        with open(given.table, newline="", encoding="utf-8") as file:
            print(*table(list(csv.DictReader(file))), sep="\n")
        return
    if given.data is None or given.out is None:
        parser.error("give DATA and --out, or --table")
    with ProcessPoolExecutor(given.processes, multiprocessing.get_context("spawn")) as workers:
        done = workers.map(partial(accuracies, data=given.data, device=given.device), TASKS)
        rows = list(chain.from_iterable(done))
    with open(given.out, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
