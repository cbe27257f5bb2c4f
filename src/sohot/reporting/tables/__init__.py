"""Tables of an experiment: as text, Markdown, LaTeX, CSV and JSON."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..._files import to_csv
from ...experiments.result import Attempt
from ..results import show_value
from .formats import Document, TextTable, to_latex, to_markdown, to_text, write_documents
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
    "text_table",
    "to_latex",
    "to_markdown",
    "to_text",
    "write_tables",
]

_NUMBERS = ("mean", "std", "count", "expected", "failed", "printed")
_DIFFERENCE = ("mean", "low", "high", "p_t", "p_wilcoxon", "wins", "ties", "losses")


def write_tables(records: Iterable[Attempt], grid: "Grid", out: Path, accuracy: str = "micro") -> list[Path]:
    """Write table.txt, .md, .tex, .csv and .json.

    Args:
        records: Records as the store returns them.
        grid: The grid that they belong to.
        out: Folder of the experiment; created if missing.
        accuracy: "micro" (the paper) or "macro".

    Returns:
        The files.
    """
    table = result_table(records, grid, accuracy)
    return write_documents(lay_out(table), table.as_json(), long_csv(table), out)


def text_table(records: Iterable[Attempt], grid: "Grid", accuracy: str = "micro") -> str:
    """Return the table for a terminal; see `result_table` for the arguments."""
    return to_text(lay_out(result_table(records, grid, accuracy)))


def markdown_table(records: Iterable[Attempt], grid: "Grid", accuracy: str = "micro") -> str:
    """Return the table in Markdown; see `result_table` for the arguments."""
    return to_markdown(lay_out(result_table(records, grid, accuracy)))


def latex_table(records: Iterable[Attempt], grid: "Grid", accuracy: str = "micro") -> str:
    """Return the table in LaTeX with booktabs; see `result_table` for the arguments."""
    return to_latex(lay_out(result_table(records, grid, accuracy)))


def csv_table(records: Iterable[Attempt], grid: "Grid", accuracy: str = "micro") -> str:
    """Return the table as CSV, one line per row and shift; see `result_table` for the arguments."""
    return long_csv(result_table(records, grid, accuracy))


def long_csv(table: ResultTable) -> str:
    """Write a table as CSV: one line per row and shift, and one for the average over the shifts."""
    names = ["origin", "method", "backbone", *table.varied, "shift"]
    header = [*names, *_NUMBERS, *(f"difference_{name}" for name in _DIFFERENCE)]
    return to_csv([header, *_csv_rows(table)])


def _csv_rows(table: ResultTable) -> Iterator[list[Any]]:
    differences = {(one.label, one.backbone): one for one in table.differences}
    for row in table.all_rows():
        ours = isinstance(row, TableRow)
        difference = differences.get((row.label, row.backbone)) if ours else None
        for shift in (*table.shifts, "average"):
            cell = row.average if shift == "average" else row.cells.get(shift)
            if cell is not None:
                varied = [_plain(row.values.get(name)) for name in table.varied]
                start = ["ours" if ours else "published", row.method, row.backbone, *varied, shift]
                numbers = (getattr(cell, name, None) for name in _NUMBERS)  # not every kind of accuracy has all of them
                yield [*start, *numbers, *_difference_cells(difference, shift)]


def _difference_cells(difference: DifferenceRow | None, shift: str) -> list[Any]:
    one = None
    if difference is not None:
        one = difference.average if shift == "average" else difference.cells[shift]
    return [None if one is None else getattr(one, name) for name in _DIFFERENCE]


def _plain(value: Any) -> Any:
    return show_value(value) if isinstance(value, list) else value
