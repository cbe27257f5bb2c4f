"""Measure the overhead of running a grid: 200 trivial cells with the driver and its store, against a plain loop.

    python benchmarks/experiment_overhead.py [--cells 200] [--workers 1]

The time to start the worker processes (each imports torch once) is printed separately.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from sohot.experiments import Store
from sohot.experiments.cell import Cell
from sohot.experiments.engines import Outcome
from sohot.experiments.engines.local import LocalEngine
from sohot.experiments.grid_run import GridWatcher, run_cells
from sohot.experiments.result import CellResult
from sohot.training import Evaluation


def work(cell: Cell) -> CellResult:
    """Return a result as large as that of an Office-31 cell."""
    confusion = [[(cell.split + row * column) % 7 for column in range(31)] for row in range(31)]
    accuracy = Evaluation(31, 15, 0.5, 0.5, (0.3, 0.7), {}, {}, confusion)
    return CellResult(accuracy, curve={"loss": [0.1] * 100})


class Clock(GridWatcher):
    """Records when the first cell finished; until then the workers were starting."""

    first: float | None = None

    def finished(self, outcome: Outcome) -> None:
        assert outcome.error is None, outcome.error
        self.first = self.first or time.perf_counter()


def make_cells(count: int) -> Iterator[Cell]:
    return (Cell("office31", "A-W", number, "so", "lite0") for number in range(count))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=200)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    cells = list(make_cells(options.cells + 1))

    began = time.perf_counter()
    for cell in cells[1:]:
        work(cell)
    loop = time.perf_counter() - began

    clock = Clock()
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder)) as store:
        store.plan(cells)
        began = time.perf_counter()
        run_cells(cells, store, LocalEngine(options.workers, "cpu"), work, watcher=clock)
        ended = time.perf_counter()
        assert len(store.records()) == len(cells)
    assert clock.first is not None
    print(f"starting {options.workers} workers and the first cell: {clock.first - began:.2f} s")
    print(f"plain loop: {1000 * loop / options.cells:.3f} ms per cell")
    print(f"overhead per cell: {1000 * (ended - clock.first - loop) / options.cells:.2f} ms")


if __name__ == "__main__":
    main()
