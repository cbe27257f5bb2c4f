"""Measure the cells of a grid: seconds by phase, and cells per second with one and with several processes.

    python benchmarks/gpu_cells.py [--device cuda] [--cells 160] [--workers usual,1] [--phases 6] [--profile]

It writes a data set of the size of Office-31 whose files hold no pictures, and puts random outputs of the frozen layers
into the grid's folder, so that it needs no data. The network is EfficientNet-Lite0, with its weights if they are
installed; the grid is that of `studies/office31/choose-*.toml`.
"""

import argparse
import cProfile
import pstats
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from inspect import isgeneratorfunction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from sohot._files import write_json
from sohot.experiments import run_cell as cell_module
from sohot.experiments.cell import Cell
from sohot.experiments.cell_training import Workplace
from sohot.experiments.cell_trunks import needed_features
from sohot.experiments.engines import Outcome
from sohot.experiments.engines.local import LocalEngine
from sohot.experiments.grid import Grid
from sohot.experiments.grid_run import GridPlan, GridWatcher, plan_grid, run_grid
from sohot.experiments.store import Store
from sohot.networks.trunk_cache import cache_trunk
from sohot.runs import train_and_test
from sohot.runs.shared_parts import SharedParts
from sohot.runs.trunk_folder import image_texts, join_images
from sohot.training import training_run

CLASSES = 31
IMAGES = {"amazon": 2817, "dslr": 498, "webcam": 795}
METHODS = ("s+t", "l2-sp", "lp-ft", "means", "m", "so", "variance", "ccsa", "dsne", "dage", "supcon")
PHASES = {
    "draw the split": (cell_module, "draw_split"),
    "build the network": (SharedParts, "network"),
    "batches": (train_and_test, "make_batches"),
    "trunk outputs to the device": (train_and_test, "training_inputs"),
    "classifier on frozen features": (train_and_test, "frozen_start"),
    "set up the trainer": (training_run, "Trainer"),
    "steps": (training_run.Loop, "do"),
    "test": (train_and_test, "target_logits"),
    "rest": (cell_module, "run_cell"),
}


def write_data(root: Path) -> None:
    """Write files that have the names and sizes, but not the content, of pictures."""
    size = 0
    for domain, count in IMAGES.items():
        for number in range(count):
            folder = root / domain / f"class{number % CLASSES:02d}"
            folder.mkdir(parents=True, exist_ok=True)
            size += 1
            (folder / f"{number:04d}.jpg").write_bytes(b" " * size)  # different sizes: no two are copies


def make_plan(root: Path, out: Path, options: argparse.Namespace) -> GridPlan:
    settings = {"steps": options.steps, "batch_rows": 248, "precision": options.precision}
    grid = Grid(
        "speed",
        dataset="office31",
        protocol="paper-folds",
        backbone="lite0",
        splits=(1, 2, 3),
        methods=options.methods,
        settings=settings if torch.cuda.is_available() else {**settings, "precision": "32-true"},
        vary={"lr": [0.0003, 0.001, 0.002, 0.003, 0.005, 0.01]},
    )
    return plan_grid(grid, root, out, device=options.device)


def put_outputs(cells: list[Cell], where: Workplace) -> None:
    """Put made-up outputs of the frozen layers, each class around its own mean, where the grid looks for them."""
    generator = torch.Generator().manual_seed(0)
    for folder, lists in needed_features(cells, where):
        with torch.no_grad():
            shape = folder.trunk(torch.zeros(1, 3, folder.spec.size, folder.spec.size)).shape[1:]
        means = torch.randn(CLASSES, *shape, generator=generator)
        for part, images in enumerate(join_images(lists)):
            names = list(image_texts(images))
            classes = torch.tensor([int(Path(name.split()[1]).parent.name[-2:]) for name in names])
            outputs = 0.5 * means[classes] + torch.randn(len(names), *shape, generator=generator)
            file, key = folder.folder / f"{part}.safetensors", f"made-up {part}"
            cache_trunk(torch.nn.Identity(), [outputs], len(names), file=file, key=key)
            write_json(file.with_suffix(".json"), {"key": key, "images": names})


class Clock:
    """Adds up the seconds spent in each phase, without those of phases inside it."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._inner: list[float] = []

    def timed(self, phase: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def whole(*given: Any, **named: Any) -> Any:
            with self.phase(phase):
                return call(*given, **named)

        def turns(*given: Any, **named: Any) -> Any:
            with self.phase(phase):
                return (yield from call(*given, **named))

        return turns if isgeneratorfunction(call) else whole

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        _wait()
        began = time.perf_counter()
        self._inner.append(0.0)
        try:
            yield
        finally:
            _wait()
            whole = time.perf_counter() - began
            self.seconds[name] += whole - self._inner.pop()
            if self._inner:
                self._inner[-1] += whole

    @contextmanager
    def watching(self) -> Iterator[None]:
        with ExitStack() as stack:
            for phase, (owner, name) in PHASES.items():
                stack.enter_context(patch.object(owner, name, self.timed(phase, getattr(owner, name))))
            yield


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def measure_phases(plan: GridPlan, count: int, profile: bool) -> None:
    """Run cells of one split in this process; print the mean seconds of each phase, without the first cell."""
    alike = [cell for cell in plan.cells if (cell.shift, cell.split) == (plan.cells[0].shift, plan.cells[0].split)]
    chosen, clock, profiler = alike[:: max(len(alike) // (count + 1), 1)][: count + 1], Clock(), cProfile.Profile()
    cell_module.run_cell(chosen[0], plan.where)
    with clock.watching(), ExitStack() as stack:
        if profile:
            stack.enter_context(profiler)
        results = [cell_module.run_cell(cell, plan.where) for cell in chosen[1:]]
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "results.sqlite") as store:
        store.plan(chosen)
        began = time.perf_counter()
        for cell, result in zip(chosen[1:], results, strict=True):
            store.claim(cell)
            store.finish(cell, result)
        clock.seconds["store"] = time.perf_counter() - began
    print(f"\nms per cell of one split, one after the other, mean of {len(results)}:")
    for phase in (*PHASES, "store"):
        print(f"{1000 * clock.seconds[phase] / len(results):9.1f}  {phase}")
    print(f"{1000 * sum(clock.seconds.values()) / len(results):9.1f}  in all", flush=True)
    if profile:
        pstats.Stats(profiler, stream=sys.stdout).sort_stats("cumulative").print_stats(70)


class Rate(GridWatcher):
    """Tells how many cells have finished, and how many each second once every process has finished one."""

    def __init__(self, processes: int) -> None:
        self.processes, self.began, self.times, self.failed = processes, time.perf_counter(), list[float](), 0

    def finished(self, outcome: Outcome) -> None:
        self.failed += outcome.error is not None  # made-up outputs let some learning rates diverge
        self.times.append(time.perf_counter() - self.began)
        if len(self.times) % 40 == 0:
            self.show()

    def show(self) -> None:
        times = self.times
        warm = min(self.processes, len(times) - 2)
        rate = (len(times) - 1 - warm) / (times[-1] - times[warm])
        print(
            f"{self.processes:3d} processes: {len(times)} cells in {times[-1]:6.1f} s, the first after "
            f"{times[0]:5.1f} s, then {rate:6.2f} cells/s: 1188 cells in {times[0] + 1188 / rate:5.0f} s "
            f"({self.failed} diverged)",
            flush=True,
        )


def measure_engine(plan: GridPlan, count: int, workers: int | None) -> None:
    """Run the first cells of a grid in processes."""
    plan.results.unlink(missing_ok=True)
    engine = LocalEngine(workers, plan.where.device, None)
    watcher = Rate(engine.workers)
    run_grid(GridPlan(plan.grid, plan.cells[:count], plan.where), engine, watcher=watcher)
    watcher.show()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--cells", type=int, default=160)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--phases", type=int, default=6, help="cells to time by phase; 0 for none")
    parser.add_argument("--workers", default="usual", help="numbers of processes to compare; usual: the default")
    parser.add_argument("--methods", type=lambda text: tuple(text.split(",")), default=METHODS)
    parser.add_argument("--precision", default="bf16-mixed")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root, out = Path(folder) / "data", Path(folder) / "out"
        began = time.perf_counter()
        write_data(root)
        plan = make_plan(root, out, options)
        put_outputs(plan.cells, plan.where)
        print(f"{len(plan.cells)} cells, made up in {time.perf_counter() - began:.1f} s", flush=True)
        if options.phases:
            measure_phases(plan, options.phases, options.profile)
        for number in filter(None, options.workers.split(",")):
            measure_engine(plan, options.cells, None if number == "usual" else int(number))


if __name__ == "__main__":
    main()
