"""What an experiment leaves to look at: tables, figures and the report."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..data.labelled import Progress
from ..experiments.grid import Grid


def write_outputs(
    records: Sequence[dict[str, Any]], grid: Grid, out: Path, progress: Progress | None = None
) -> list[Path]:
    """Write tables, figures and the report of an experiment into its folder.

    Args:
        records: The latest attempt at each cell.
        grid: The grid.
        out: The folder.
        progress: Told how many figures are drawn.

    Returns:
        The files written.
    """
    from .tables.writing import write_tables

    if not any(record["status"] == "done" for record in records):
        return []
    files = write_tables(list(records), grid, out)
    from .figures.writing import write_figures  # after the tables: they are written even where nothing can be drawn
    from .pages.writing import write_report

    return [*files, *write_figures(list(records), grid, out, progress), write_report(out)]


def describe_table(records: Sequence[dict[str, Any]], grid: Grid) -> tuple[str, dict[str, Any] | None]:
    """Give the table of an experiment as text and as JSON holds it; empty while nothing is done."""
    from .tables.summary import table_json
    from .tables.writing import text_table

    if not any(record["status"] == "done" for record in records):
        return "", None
    return text_table(list(records), grid), table_json(list(records), grid)
