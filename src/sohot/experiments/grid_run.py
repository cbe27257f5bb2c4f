"""Runs a grid: claims its cells, passes them to an engine, and stores the results."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
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
from .result import Attempt
from .run_cell import run_cell
from .store import Store

RESULTS, GRID = "results.sqlite", "grid.toml"
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

    @property
    def results(self) -> Path:
        """The results file."""
        return self.where.out / RESULTS


class GridWatcher:
    """Receives reports while a grid runs; this one ignores them."""

    progress: Progress | None = None

    def begin(self, total: int, done: int, failed: int) -> None:
        """Receive how many cells there are, and how many were done or failed before."""

    def started(self, cell: Cell) -> None:
        """Receive a cell whose computation starts now."""

    def finished(self, outcome: Outcome) -> None:
        """Receive the outcome of a cell."""

    def waiting(self, count: int) -> None:
        """Receive the number of cells that other runners compute while none are left for us."""


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


def run_grid(
    plan: GridPlan, engine: Engine, *, retry_failed: bool = False, watcher: GridWatcher | None = None
) -> GridRun:
    """Compute the cells of a grid that are not done yet.

    If killed at any moment and started again, it continues: finished cells are kept. Several processes may work on
    one folder at once.

    Args:
        plan: The result of `plan_grid`.
        engine: Computes the cells.
        retry_failed: Retry cells that failed before.
        watcher: Receives the progress.

    Raises:
        StoreError: The results cannot be written, for example because the disk is full.
    """
    watcher = watcher or GridWatcher()
    out = plan.where.out
    out.mkdir(parents=True, exist_ok=True)
    with Store(plan.results) as store:
        store.plan(plan.cells)
        write_grid(plan.grid, out / GRID)
        known = store.settled(retry=retry_failed)
        settled = [known.get(cell.key) for cell in plan.cells]
        pending = [cell for cell, ended in zip(plan.cells, settled, strict=True) if ended is None]
        kept = settled.count("done")
        watcher.begin(len(plan.cells), kept, settled.count("failed"))
        if any(cell.frozen for cell in pending):
            engine = FrozenEngine(plan.where, watcher.progress)
        first = partial(prepare, pending, plan.where, watcher.progress)
        ended = run_cells(pending, store, engine, partial(run_cell, where=plan.where), retry_failed, watcher, first)
        keys = {cell.key for cell in plan.cells}
        records = [one for one in store.records(every=True) if one.key in keys]
    done = {one.key for one in records if one.result is not None}  # by us or others
    failed = {one.key: (one.cell, str(one.error)) for one in records if one.result is None}
    failed |= {one.cell.key: (one.cell, str(one.error)) for one in ended.killed if one.cell.key not in done}
    return GridRun(len(plan.cells), ended.computed, kept, list(failed.values()), records)


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
    retry_failed: bool = False,
    watcher: GridWatcher | None = None,
    prepare: Callable[[], object] | None = None,
) -> CellsRun:
    """Compute cells, except those of other runners; return when all are done or have failed.

    What has to be done before the first cell, `prepare`, is done when the engine asks for it: its processes may start
    meanwhile.
    """
    watcher = watcher or GridWatcher()
    computed, killed = 0, dict[str, Outcome]()
    first = [] if prepare is None else [prepare]

    def claimed(cells: Sequence[Cell]) -> Iterator[Cell]:
        while first:
            first.pop()()
        for cell in cells:
            if store.claim(cell, retry=retry_failed):
                watcher.started(cell)
                yield cell

    left = list(pending)
    while left:
        held = store.claimed_by_others()
        free = [cell for cell in left if cell.key not in held]
        if not free:
            watcher.waiting(len(left))
            time.sleep(_POLL_SECONDS)
        with closing(engine.run(_Counted(claimed(free), len(free)), work)) as outcomes:  # type: ignore[type-var] # all are generators
            for outcome in outcomes:
                if outcome.killed:
                    killed[outcome.cell.key] = outcome
                    store.release(outcome.cell)
                else:
                    _keep(store, outcome)
                watcher.finished(outcome)
                computed += 1
        settled = store.settled(retry=retry_failed)
        left = [cell for cell in left if cell.key not in settled and cell.key not in killed]
    return CellsRun(computed, list(killed.values()))


class _Counted:
    """An iterator that says how many cells it will give at most, see `operator.length_hint`."""

    def __init__(self, cells: Iterator[Cell], most: int) -> None:
        self._cells, self._most = cells, most

    def __iter__(self) -> Iterator[Cell]:
        return self

    def __next__(self) -> Cell:
        return next(self._cells)

    def __length_hint__(self) -> int:
        return self._most


def _keep(store: Store, outcome: Outcome) -> None:
    if outcome.result is None:
        store.fail(outcome.cell, outcome.error or "it failed without a reason")
        return
    try:
        store.finish(outcome.cell, outcome.result)
    except ValueError as error:
        store.fail(outcome.cell, f"its result cannot be stored: {error}")
