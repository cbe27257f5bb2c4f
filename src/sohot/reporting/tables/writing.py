"""The table of an experiment in every form, and as files."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..._files import to_json, write_atomically
from ..results import Record, show_value
from .formats import FORMATS, Document, to_latex, to_markdown, to_text
from .layout import lay_out
from .summary import table_json

if TYPE_CHECKING:
    from ...experiments.grid import Grid

_NUMBERS = ("mean", "std", "count", "expected", "failed", "printed")
_DIFFERENCE = ("mean", "low", "high", "p_t", "p_wilcoxon", "wins", "ties", "losses")


def write_tables(records: Iterable[Record], grid: "Grid", out: Path, accuracy: str = "micro") -> list[Path]:
    """Write table.txt, .md, .tex, .csv and .json.

    Args:
        records: Records as the store gives them.
        grid: The grid that they belong to.
        out: Folder of the experiment; made if it is not there.
        accuracy: "micro" (the paper) or "macro".

    Returns:
        The files.
    """
    table = table_json(records, grid, accuracy)
    return write_documents(lay_out(table), table, long_csv(table), out)


def write_documents(document: Document, data: Any, csv_text: str, out: Path) -> list[Path]:
    """Write one table in all forms, each file whole or not at all."""
    out.mkdir(parents=True, exist_ok=True)
    contents = {suffix: f"{form(document)}\n".encode() for suffix, form in FORMATS.items()}
    contents |= {"csv": csv_text.encode(), "json": to_json(data)}
    for suffix, content in contents.items():
        write_atomically(out / f"table.{suffix}", content)
    return [out / f"table.{suffix}" for suffix in contents]


def text_table(records: Iterable[Record], grid: "Grid", accuracy: str = "micro") -> str:
    """Give the table for a terminal; see `table_json` for the arguments."""
    return to_text(lay_out(table_json(records, grid, accuracy)))


def markdown_table(records: Iterable[Record], grid: "Grid", accuracy: str = "micro") -> str:
    """Give the table in Markdown; see `table_json` for the arguments."""
    return to_markdown(lay_out(table_json(records, grid, accuracy)))


def latex_table(records: Iterable[Record], grid: "Grid", accuracy: str = "micro") -> str:
    """Give the table in LaTeX with booktabs; see `table_json` for the arguments."""
    return to_latex(lay_out(table_json(records, grid, accuracy)))


def csv_table(records: Iterable[Record], grid: "Grid", accuracy: str = "micro") -> str:
    """Give the table as CSV, a line for each row and shift; see `table_json` for the arguments."""
    return long_csv(table_json(records, grid, accuracy))


def long_csv(table: Mapping[str, Any]) -> str:
    """Write what `table_json` gave as CSV: a line for each row and shift, the average over the shifts as one more."""
    names = ["origin", "method", "backbone", *table["varied"], "shift"]
    header = [*names, *_NUMBERS, *(f"difference_{name}" for name in _DIFFERENCE)]
    return to_csv(header, _csv_rows(table))


def to_csv(header: list[str], rows: Iterable[list[Any]]) -> str:
    """Write CSV with newlines alone; what is not there is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([header, *rows])
    return text.getvalue()


def _csv_rows(table: Mapping[str, Any]) -> Iterator[list[Any]]:
    differences = {(one["label"], one["backbone"]): one for one in table["differences"]}
    for origin in ("rows", "published"):
        for row in table[origin]:
            difference = differences.get((row["label"], row["backbone"])) if origin == "rows" else None
            for shift in (*table["shifts"], "average"):
                cell = row["average"] if shift == "average" else row["cells"].get(shift)
                if cell is not None:
                    varied = [_plain(row["values"].get(name)) for name in table["varied"]]
                    start = ["ours" if origin == "rows" else origin, row["method"], row["backbone"], *varied, shift]
                    yield [*start, *(cell.get(name) for name in _NUMBERS), *_difference_cells(difference, shift)]


def _difference_cells(difference: Mapping[str, Any] | None, shift: str) -> list[Any]:
    one = None
    if difference is not None:
        one = difference["average"] if shift == "average" else difference["cells"][shift]
    return [None if one is None else one[name] for name in _DIFFERENCE]


def _plain(value: Any) -> Any:
    return show_value(value) if isinstance(value, list) else value
