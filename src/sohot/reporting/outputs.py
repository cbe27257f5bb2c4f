"""The outputs of an experiment: tables, figures and the report."""

from collections.abc import Sequence
from pathlib import Path

from ..data.labelled import Progress
from ..experiments.grid import Grid
from ..experiments.result import Attempt
from .tables import write_tables


def write_outputs(records: Sequence[Attempt], grid: Grid, out: Path, progress: Progress | None = None) -> list[Path]:
    """Write tables, figures and the report of an experiment into its folder, once at least one cell is done.

    Args:
        records: The latest attempt at each cell.
        grid: The grid.
        out: The folder.
        progress: Called with the number of figures drawn.

    Returns:
        The files written.
    """
    if all(record.result is None for record in records):
        return []
    files = write_tables(records, grid, out)
    from .figures import write_figures  # after the tables: they are written even if nothing can be drawn
    from .pages import write_report

    return [*files, *write_figures(records, grid, out, progress), write_report(out)]
