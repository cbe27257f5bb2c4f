"""Helpers of the experiments' tests: quick work that leaves a trace, an engine without processes, tiny images."""

import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from command_line import write_images

from sohot._process import describe_error
from sohot.experiments import Grid
from sohot.experiments.cell import Cell
from sohot.experiments.engines import Outcome, Work
from sohot.experiments.result import CellResult
from sohot.training import Evaluation


def make_cells(count: int, **settings: Any) -> list[Cell]:
    return [Cell("office31", "A-W", number, "so", "lite0", settings=settings) for number in range(1, count + 1)]


def note(folder: Path, line: str) -> None:
    """Add a line to a file that several processes write."""
    handle = os.open(folder / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, f"{line}\n".encode())
    os.close(handle)


def notes(folder: Path) -> list[str]:
    file = folder / "log"
    return file.read_text().splitlines() if file.exists() else []


def result_of(steps: int = 1, micro: float = 0.5, **parts: Any) -> CellResult:
    """A small result of a cell."""
    accuracy = Evaluation(2, 1, micro, 0.5, (0.1, 0.9), {"mug": 0.5}, {"mug": (0.1, 0.9)}, [[1, 1]])
    return CellResult(accuracy, steps=steps, **parts)


def act(cell: Cell, folder: Path | None = None) -> CellResult | dict[str, Any]:
    """Do what the cell's settings say: fail, crash, die, sleep, or tell about this process."""
    if folder is not None:
        note(folder, f"{cell.split} {os.getpid()}")
    how, _, value = str(cell.settings.get("act", "")).partition(":")
    if how == "fail":
        raise ValueError(f"cell {cell.split} fails on purpose")
    if how == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "die once" and not Path(value).exists():
        Path(value).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "crash":
        os._exit(3)
    if how == "sleep":
        time.sleep(float(value))
    if how == "full once" and not Path(value).exists():
        import torch

        Path(value).touch()
        raise torch.OutOfMemoryError("no memory")
    if how == "nan":
        return result_of(micro=float("nan"))
    if how == "look":
        import torch

        gpu, since = os.environ.get("CUDA_VISIBLE_DEVICES"), time.monotonic()
        while folder is not None and len(notes(folder)) < 2 and time.monotonic() < since + 60:
            time.sleep(0.05)  # two cells look at the same time, so two processes do
        return {
            "pid": os.getpid(),
            "omp": os.environ["OMP_NUM_THREADS"],
            "threads": torch.get_num_threads(),
            "gpu": gpu,
        }
    return result_of(steps=cell.split)


def acting(folder: Path) -> Work:
    return partial(act, folder=folder)


class InlineEngine:
    """Computes one cell after the other in this process."""

    def run(self, cells: Iterator[Cell], work: Work) -> Iterator[Outcome]:
        for cell in cells:
            try:
                yield Outcome(cell, work(cell), None, 0.0)
            except Exception as error:
                yield Outcome(cell, None, describe_error(error), 0.0)


def write_domains(root: Path) -> Path:
    """Write a data set of two domains with three classes each."""
    write_images(root / "photos", 6, 0, seed=0)
    write_images(root / "sketches", 6, 40, seed=1)
    return root


def small_grid(**changes: Any) -> Grid:
    settings = {"image_size": 16, "steps": 3, "target_shots": 2, "source_shots": 4}
    values = {
        "dataset": "domains",
        "protocol": "k-shot",
        "backbone": "small-cnn",
        "shifts": ("photos-sketches",),
        "splits": (1, 2),
        "methods": ("s+t", "so+zeta"),
        "settings": settings,
    }
    return Grid("small", **{**values, **changes})
