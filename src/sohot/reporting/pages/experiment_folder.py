"""The folder of an experiment, read: its grid, its records, their table and its figures; also of one under way."""

import math
from dataclasses import dataclass
from pathlib import Path

from ...experiments.cell import relevant_settings
from ...experiments.grid import Grid, read_grid
from ...experiments.result import Attempt, DoneCell, done_cells
from ...experiments.store import Store
from ..tables.result_table import ResultTable, result_table

RESULTS, GRID, FIGURES = "results.sqlite", "grid.toml", "figures"


@dataclass(frozen=True)
class Experiment:
    """What an experiment's folder holds.

    Attributes:
        folder: The folder.
        grid: What was asked for.
        records: The latest attempt at each cell.
        table: The table of the records.
        figures: Picture files.
    """

    folder: Path
    grid: Grid
    records: list[Attempt]
    table: ResultTable
    figures: list[Path]

    @property
    def done(self) -> list[DoneCell]:
        """The cells that are done."""
        return done_cells(self.records)

    @property
    def failed(self) -> list[Attempt]:
        """The records of cells that failed."""
        return [record for record in self.records if record.result is None]

    def progress(self) -> tuple[int, int, int]:
        """Count the cells that are done, that failed, and all that the grid asks for."""
        each = len(self.table.shifts) * len(self.grid.splits)
        wanted = 0
        frozen = any(record.cell.frozen for record in self.records)
        given = self.grid.frozen if frozen else self.grid.settings
        for method in self.grid.methods:
            looked_at = relevant_settings(method, {**given, **self.grid.vary}, frozen=frozen)
            wanted += each * math.prod(len(values) for name, values in self.grid.vary.items() if name in looked_at)
        return len(self.done), len(self.failed), wanted


def load_experiment(folder: Path) -> Experiment:
    """Read an experiment, finished or not.

    Raises:
        FileNotFoundError: The folder has no grid.
        ValueError: A file in it is damaged.
    """
    if not (folder / GRID).is_file():
        raise FileNotFoundError(f"{folder} is not the folder of an experiment: it has no {GRID}")
    records: list[Attempt] = []
    if (folder / RESULTS).is_file():
        with Store(folder / RESULTS) as store:
            records = store.records()
    grid = read_grid(folder / GRID)
    figures = folder / FIGURES
    files = sorted(figures.glob("*.png")) if figures.is_dir() else []
    return Experiment(folder, grid, records, result_table(records, grid), files)
