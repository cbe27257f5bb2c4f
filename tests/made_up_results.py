"""Folders to report on, made up without training: an experiment with chosen records, and a run with odd names."""

import json
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save

from sohot._files import to_csv
from sohot.data.protocols.split import sealed
from sohot.experiments import Grid, Store
from sohot.experiments.cell import Cell
from sohot.experiments.grid import write_grid
from sohot.experiments.result import CellResult
from sohot.runs import Prediction, RunConfig, fit_run, write_predictions
from sohot.runs.run_outputs import OUTPUTS
from sohot.training import Evaluation, evaluate
from sohot.training.logs import read_csv_log

EVIL_CLASS = "<img src=x onerror=alert(1)>"
EVIL_FILE = '"><script>alert(1)</script>.png'  # the slash makes it a file in a folder, shown as one name
EVIL_ERROR = "</script><script>alert(2)</script> <!-- {{ 7 * 7 }} & done"
CLASSES = ("bike", "mug", EVIL_CLASS)


def accuracy(right: int, of: int, seed: int | str = 0, classes: Sequence[str] = CLASSES) -> Evaluation:
    """Give the evaluation of made-up answers, of which `right` are."""
    choose = random.Random(seed)
    labels = [choose.randrange(len(classes)) for _ in range(of)]
    answers = [label if row < right else (label + 1) % len(classes) for row, label in enumerate(labels)]
    return evaluate(torch.eye(len(classes))[answers], torch.tensor(labels), classes)


def result(right: int, method: str, seed: int | str = 0, of: int = 200, classes: Sequence[str] = CLASSES) -> CellResult:
    """Give the result of a cell, with `of` test images."""
    steps = list(range(1, 21))
    falling = [3 / step for step in steps]
    choose = random.Random(seed)
    zeta = {name: [1 - choose.random() / 5 for _ in classes] for name in ("means", "order2")}
    return CellResult(
        accuracy=accuracy(right, of, seed, classes),
        zeta=zeta if "zeta" in method else None,
        curve={
            "step": steps,
            "loss": falling,
            "cross_entropy": [0.8 * value for value in falling],
            "alignment": [None if method == "s+t" else 0.2 * value for value in falling],
        },
        chosen=None,
        seconds={"features": 1.0, "select": 0.0, "train": 4.5, "test": 2.0},
        steps=20,
        sizes={"source": 60, "target": 9, "test": of},
        notes=[],
    )


def make_run(root: Path, **options: Any) -> Path:
    """Train a tiny model on made-up images, with names that would be HTML; the images lie beside the run."""
    from PIL import Image

    noise = np.random.default_rng(0)
    for domain, images, lighter in (("source", 6, 0), ("target", 8, 40)):
        for place, name in enumerate(CLASSES):
            for number in range(images):
                evil = (domain, name) == ("target", EVIL_CLASS)
                file = root / domain / name / (f"{number}{EVIL_FILE}" if evil else f"{number}.png")
                file.parent.mkdir(parents=True, exist_ok=True)
                pixels = noise.normal(0, 45, (16, 18, 3)) + 90 * np.eye(3)[place] + lighter
                Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(file)
    given = {
        "source": root / "source",
        "target": root / "target",
        "shots": 2,
        "backbone": "small-cnn",
        "image_size": 16,
        "method": "so+zeta",
        "steps": 6,
        "device": "cpu",
        "loggers": "none",
        "seed": 1,
        "out": root / "run",
    }
    fit_run(RunConfig.from_values({**given, **options}))
    return root / "run"


def add_pool(run: Path, folder: Path, protocol: str = "inductive") -> Path:
    """Add to a finished run what a run with unlabelled images stores; its test images serve as these."""
    outputs, split = load_file(run / OUTPUTS), json.loads((run / "split.json").read_text())
    images = split["sides"]["target_test"]["files"]
    for name in images:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(split["folders"]["target_test"]) / name, folder / name)
    split["sides"]["target_pool"] = {"files": images, "labels": []}
    folders = {**split.pop("folders"), "target_pool": str(folder)}
    split.pop("fingerprint")
    (run / "split.json").write_text(json.dumps({**sealed(split), "folders": folders}))
    outputs |= {f"pool.{name}": outputs[f"test.{name}"].clone() for name in ("rows", "before", "after")}
    (run / OUTPUTS).write_bytes(save(outputs, {"format": "1"}))
    report = json.loads((run / "report.json").read_text())
    classes = report["data"]["classes"]
    shares, places = outputs["logits"].softmax(1).topk(2)
    found = [
        Prediction(Path(name), tuple(classes[place] for place in row), tuple(values))
        for name, row, values in zip(images, places.tolist(), shares.tolist(), strict=True)
    ]
    write_predictions(run / "pool.csv", found, top=2)
    report["data"]["pool"] = {"folder": str(folder), "images": len(images)}
    prior = dict(zip(classes, [0.5, 0.3, 0.2], strict=True))
    told = "the pool was kept: 5 of 6 held-out target images are right with it, 4 without"
    report |= {"protocol": protocol, "pool": {"kept": True, "sentence": told, "prior": prior, "collapse": None}}
    (run / "report.json").write_text(json.dumps(report))
    columns = ("mask_rate", "pool_confidence", "pseudo_labels", "information", "pool_largest", "pool_changed")
    log = [row | dict.fromkeys(columns, 0.5) for row in read_csv_log(run / "log.csv")]
    (run / "log.csv").write_text(to_csv([list(log[0]), *(list(row.values()) for row in log)]))
    return run


GAINS = {"s+t": 0, "so": 6, "so+zeta": 1}


def make_experiment(
    folder: Path, *, splits: int = 4, skip: frozenset[tuple[str, str, int]] = frozenset(), **grid: Any
) -> Path:
    """Write the folder of an experiment in which `so` is better by 3 points and `so+zeta` hardly differs.

    Args:
        folder: The folder to make.
        splits: Number of splits.
        skip: (method, shift, split) of cells that are not there yet.
        grid: Other parts of the grid.
    """
    folder.mkdir(parents=True)
    parts = {"shifts": ("A-W", "W-A"), "methods": ("s+t", "so", "so+zeta"), "title": "A made-up experiment", **grid}
    declared = Grid("made-up", dataset="office31", splits=tuple(range(1, splits + 1)), **parts)
    write_grid(declared, folder / "grid.toml")
    choose = random.Random(3)
    with Store(folder) as store:
        cells = []
        for shift in declared.shifts:
            for split in declared.splits:
                level = 150 + choose.randrange(-8, 9) - 20 * (shift == "W-A")
                for method in declared.methods:
                    if (method, shift, split) in skip:
                        continue
                    cells.append(Cell("office31", shift, split, method, declared.backbone))
                    store.plan(cells)
                    if (method, split) == ("so+zeta", 2):
                        store.fail(cells[-1], EVIL_ERROR)
                    else:
                        right = level + GAINS.get(method, 0) + choose.randrange(-2, 3)
                        store.finish(cells[-1], result(right, method, split))
    return folder
