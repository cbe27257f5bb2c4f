"""Runs a grid: claims its cells, passes them to an engine, and stores the results."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from socket import gethostname
from typing import NamedTuple

from ..data.datasets import open_dataset
from ..data.labelled import Progress
from .cell import TRIALS, Cell
from .cell_training import Workplace
from .cell_trunks import prepare
from .engines import Engine, Outcome, Work
from .frozen import FrozenEngine
from .grid import Grid, write_grid
from .grid_cells import cells
from .result import Attempt, done_cells
from .run_cell import run_cell
from .store import Store

GRID = "grid.toml"
_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class GridPlan:
    """A grid on a data set, ready to run.

    Attributes:
        grid: The grid, with all shifts named.
        cells: Its cells.
        where: The folders of images and results, and the device.
    """

    grid: Grid
    cells: list[Cell]
    where: Workplace


class GridWatcher:
    """Receives reports while a grid runs; this one ignores them."""

    progress: Progress | None = None

    def begin(self, total: int, done: int, failed: int) -> None:
        """Receive how many cells there are, and how many were done or failed before."""

    def started(self, cell: Cell) -> None:
        """Receive a cell whose computation starts now."""

    def finished(self, outcome: Outcome) -> None:
        """Receive the outcome of a cell."""

    def waiting(self, count: int, hosts: Sequence[str]) -> None:
        """Receive how many cells other processes compute while none are left for us, and on which other machines."""


@dataclass
class GridRun:
    """Outcome of running a grid.

    Attributes:
        total: Number of cells.
        computed: How many were computed now.
        kept: How many were done before.
        failed: Cells that failed, now or before, and why; also those whose workers were killed now.
        records: The latest attempt at each cell of the grid.
    """

    total: int
    computed: int = 0
    kept: int = 0
    failed: list[tuple[Cell, str]] = field(default_factory=list)
    records: list[Attempt] = field(default_factory=list)


def plan_grid(
    grid: Grid,
    root: Path,
    out: Path,
    *,
    device: str = "auto",
    select: str = "none",
    trials: int = TRIALS,
    frozen: bool = False,
    workers: int | None = None,
) -> GridPlan:
    """Open the data set and list the cells; nothing is written.

    Args:
        grid: The grid.
        root: The folder of the data set.
        out: The folder of the experiment.
        device: "auto", "cpu", "cuda" or "mps".
        select: How settings are chosen: "none", "cv" or "validation".
        trials: How many to try when selecting.
        frozen: Whether heads are trained on frozen features.
        workers: Threads that read images; None for one per core.
    """
    dataset = open_dataset(grid.dataset, root, **grid.data)
    found = cells(grid, dataset, select=select, trials=trials, frozen=frozen)
    grid = grid.changed(shifts=tuple(dict.fromkeys(cell.shift for cell in found)))
    return GridPlan(grid, found, Workplace(root.absolute(), out.absolute(), grid.data, device, workers))


def run_grid(plan: GridPlan, engine: Engine, *, retry: bool = False, watcher: GridWatcher | None = None) -> GridRun:
    """Compute the cells of a grid that are not done yet.

    If killed at any moment and started again, it continues: finished cells are kept. Several processes may work on
    one folder at once.

    Args:
        plan: The result of `plan_grid`.
        engine: Computes the cells.
        retry: Try failed cells again, and take over the cells of processes on other machines, which may be dead.
        watcher: Receives the progress.

    Raises:
        OSError: The results cannot be written, for example because the disk is full.
    """
    watcher = watcher or GridWatcher()
    with Store(plan.where.out) as store:
        store.plan(plan.cells, retry=retry)
        write_grid(plan.grid, plan.where.out / GRID)
        known = store.settled(plan.cells)
        states = [known.get(cell.key) for cell in plan.cells]
        pending = [cell for cell, state in zip(plan.cells, states, strict=True) if state is None]
        kept = states.count("done")
        watcher.begin(len(plan.cells), kept, states.count("failed"))
        if any(cell.frozen for cell in pending):
            engine = FrozenEngine(plan.where, watcher.progress)
        first = partial(prepare, pending, plan.where, watcher.progress)
        ended = run_cells(pending, store, engine, partial(run_cell, where=plan.where), watcher, first)
        records = store.records(plan.cells)
    done = {one.key for one in records if one.result is not None}  # by us or others
    failed = {one.key: (one.cell, str(one.error)) for one in records if one.result is None}
    failed |= {one.cell.key: (one.cell, str(one.error)) for one in ended.killed if one.cell.key not in done}
    return GridRun(len(plan.cells), ended.computed, kept, list(failed.values()), records)


def time_left(pending: Sequence[Cell], records: Sequence[Attempt], workers: int) -> float | None:
    """Return how many seconds cells take if they take as long as the finished ones did; None before one is finished.

    Args:
        pending: The cells.
        records: Attempts at cells of the same grid.
        workers: Cells that are computed in parallel.
    """
    done = [sum(result.seconds.values()) for _, result in done_cells(records)]
    return sum(done) / len(done) * len(pending) / workers if done else None


class CellsRun(NamedTuple):
    """Outcome of `run_cells`.

    Attributes:
        computed: How many cells were computed here, successfully or not.
        killed: Outcomes of those whose workers were killed from outside. They are not stored, just as nothing is
            stored when the whole command is killed: whoever comes next tries the cells again.
    """

    computed: int
    killed: list[Outcome]


def run_cells(
    pending: Sequence[Cell],
    store: Store,
    engine: Engine,
    work: Work,
    watcher: GridWatcher | None = None,
    prepare: Callable[[], object] | None = None,
) -> CellsRun:
    """Compute cells, except those of other processes; return when all are done or have failed.

    `prepare` is called before the first cell, if any is ours to compute.
    """
    watcher = watcher or GridWatcher()
    computed, killed = 0, dict[str, Outcome]()
    first = [] if prepare is None else [prepare]

    def claimed(cells: Sequence[Cell]) -> Iterator[Cell]:
        for cell in cells:
            if store.claim(cell):
                while first:
                    first.pop()()
                watcher.started(cell)
                yield cell

    left = list(pending)
    while left:
        holders = store.claimed_by_others()
        free = [cell for cell in left if cell.key not in holders]
        if not free:
            elsewhere = {holders[cell.key].host for cell in left} - {gethostname()}
            watcher.waiting(len(left), sorted(elsewhere))
            time.sleep(_POLL_SECONDS)
        with closing(engine.run(claimed(free), work)) as outcomes:  # type: ignore[type-var] # all are generators
            for outcome in outcomes:
                if outcome.killed:
                    killed[outcome.cell.key] = outcome
                    store.release(outcome.cell)
                else:
                    _keep(store, outcome)
                watcher.finished(outcome)
                computed += 1
        settled = store.settled(left)
        left = [cell for cell in left if cell.key not in settled and cell.key not in killed]
    return CellsRun(computed, list(killed.values()))


def _keep(store: Store, outcome: Outcome) -> None:
    if outcome.result is None:
        store.fail(outcome.cell, outcome.error or "it failed without a reason")
        return
    try:
        store.finish(outcome.cell, outcome.result)
    except ValueError as error:
        store.fail(outcome.cell, f"its result cannot be stored: {error}")
