"""Tables of an experiment: as text, Markdown, LaTeX, CSV and JSON."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..._files import to_csv
from ...data.pools import POOLS
from ...experiments.result import Attempt
from ..results import show_value
from .formats import TABLE, Document, Formatter, TextTable, to_latex, to_markdown, to_text, write_documents
from .layout import lay_out
from .result_table import DifferenceRow, ResultTable, TableRow, result_table

if TYPE_CHECKING:
    from ...experiments.grid import Grid

__all__ = [
    "Document",
    "ResultTable",
    "TextTable",
    "csv_table",
    "latex_table",
    "lay_out",
    "markdown_table",
    "result_table",
    "result_tables",
    "text_table",
    "to_latex",
    "to_markdown",
    "to_text",
    "write_tables",
]

_NUMBERS = ("mean", "std", "count", "expected", "failed", "printed")
_DIFFERENCE = ("mean", "low", "high", "p_t", "p_wilcoxon", "wins", "ties", "losses")


def result_tables(records: Iterable[Attempt], grid: "Grid", accuracy: str = "micro") -> list[ResultTable]:
    """Summarise the records of a grid in one table for each value of its `pool`; see `result_table`."""
    records = list(records)
    return [result_table(records, one, accuracy) for one in grid.by_pool()]


def write_tables(records: Iterable[Attempt], grid: "Grid", out: Path, accuracy: str = "micro") -> list[Path]:
    """Write table.txt, .md, .tex, .csv and .json; for several values of `pool` table-transductive.txt and so on.

    Args:
        records: Records as the store returns them.
        grid: The grid that they belong to.
        out: Folder of the experiment; created if missing.
        accuracy: "micro" (the paper) or "macro".

    Returns:
        The files.
    """
    tables = result_tables(records, grid, accuracy)
    names = {TABLE: tables[0]} if len(tables) == 1 else {f"{TABLE}-{table.pool}": table for table in tables}
    files: list[Path] = []
    for name, table in names.items():
        files += write_documents(lay_out(table), table.as_json(), long_csv([table]), out, name)
    for stale in {TABLE, *(f"{TABLE}-{pool}" for pool in POOLS)} - {*names}:  # of an earlier grid in this folder
        for file in files:
            (out / f"{stale}{file.suffix}").unlink(missing_ok=True)
    return files


def text_table(records: Iterable[Attempt], grid: "Grid", accuracy: str = "micro") -> str:
    """Return the table for a terminal, or one below the other; see `result_tables` for the arguments."""
    return _formatted(to_text, result_tables(records, grid, accuracy))


def markdown_table(records: Iterable[Attempt], grid: "Grid", accuracy: str = "micro") -> str:
    """Return the table in Markdown, or one below the other; see `result_tables` for the arguments."""
    return _formatted(to_markdown, result_tables(records, grid, accuracy))


def latex_table(records: Iterable[Attempt], grid: "Grid", accuracy: str = "micro") -> str:
    """Return the table in LaTeX with booktabs, or one below the other; see `result_tables` for the arguments."""
    return _formatted(to_latex, result_tables(records, grid, accuracy))


def _formatted(form: Formatter, tables: Iterable[ResultTable]) -> str:
    return "\n\n\n".join(form(lay_out(table)) for table in tables)


def csv_table(records: Iterable[Attempt], grid: "Grid", accuracy: str = "micro") -> str:
    """Return the tables as CSV, one line per pool, row and shift; see `result_tables` for the arguments."""
    return long_csv(result_tables(records, grid, accuracy))


def long_csv(tables: Sequence[ResultTable]) -> str:
    """Write tables of one grid as CSV: one line per row and shift, and one for the average over the shifts."""
    names = ["origin", "method", "backbone", "pool", *tables[0].varied, "shift"]
    header = [*names, *_NUMBERS, *(f"difference_{name}" for name in _DIFFERENCE)]
    return to_csv([header, *(row for table in tables for row in _csv_rows(table))])


def _csv_rows(table: ResultTable) -> Iterator[list[Any]]:
    differences = {(one.label, one.backbone): one for one in table.differences}
    for row in table.all_rows():
        ours = isinstance(row, TableRow)
        difference = differences.get((row.label, row.backbone)) if ours else None
        for shift in (*table.shifts, "average"):
            cell = row.average if shift == "average" else row.cells.get(shift)
            if cell is not None:
                varied = [_plain(row.values.get(name)) for name in table.varied]
                start = ["ours" if ours else "published", row.method, row.backbone, table.pool, *varied, shift]
                numbers = (getattr(cell, name, None) for name in _NUMBERS)  # not every kind of accuracy has all of them
                yield [*start, *numbers, *_difference_cells(difference, shift)]


def _difference_cells(difference: DifferenceRow | None, shift: str) -> list[Any]:
    one = None
    if difference is not None:
        one = difference.average if shift == "average" else difference.cells[shift]
    return [None if one is None else getattr(one, name) for name in _DIFFERENCE]


def _plain(value: Any) -> Any:
    return show_value(value) if isinstance(value, list) else value
