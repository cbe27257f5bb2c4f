"""The rows of a list of images, a file of paths and labels: CSV, JSON lines or Parquet."""

import csv
import io
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from .._reading import parse_json, read_regular, require_regular
from .names import enumerate_words, printable

PATH, LABEL, DOMAIN = "path", "label", "domain"
"""The columns that are read."""
FILE = "file"
"""Another name for `PATH`, if there is no column of that name."""
_COLUMNS = (PATH, LABEL, DOMAIN)
LIST = "list (CSV, JSON lines, Parquet)"
"""What help calls such a file."""
_SHOWN = 200  # characters of a value that a message repeats


class Row(NamedTuple):
    """One row: its number in the file, the path as written, and its label and domain ("" if empty, None if missing)."""

    number: int
    path: str
    label: str | None = None
    domain: str | None = None


Cells = Iterator[tuple[int, Mapping[str, Any]]]
"""The values of each row by column, and the row's number."""


def is_manifest(place: str | os.PathLike[str]) -> bool:
    """Tell by its name whether a path is a list of images; a folder never is.

    >>> is_manifest("photos.csv"), is_manifest("photos")
    (True, False)
    """
    return Path(place).suffix.lower() in _READERS and not os.path.isdir(place)


def read_rows(file: Path, needed: Sequence[str] = (PATH,)) -> Iterator[Row]:
    """Read the rows of a list, in its order.

    Args:
        file: The list.
        needed: The columns that it must have; JSON lines must have a `path`, each of them.

    Raises:
        FileNotFoundError: There is no such file.
        ModuleNotFoundError: It is a Parquet file, and nothing that reads those is installed.
        ValueError: It cannot be read or lacks a column; the message names the line.
    """
    try:
        for number, cells in _READERS[file.suffix.lower()](file, needed):
            path, label, domain = (_text(file, number, cells, column) for column in _COLUMNS)
            yield Row(number, path or "", label, domain)
    except FileNotFoundError:
        raise FileNotFoundError(f"the list {printable(file)} does not exist") from None
    except OSError as error:
        raise ValueError(f"the list {printable(file)} cannot be read: {error.strerror}") from None


def place_of(file: Path, number: int) -> str:
    """Name a row by its line, or its number in a file without lines."""
    return f"{'row' if file.suffix.lower() == '.parquet' else 'line'} {number}"


def wrong(file: Path, number: int, reason: str) -> ValueError:
    """Build the error about one row of a list: file, line and reason."""
    return ValueError(f"{printable(file)}, {place_of(file, number)}: {reason}")


def quoted(text: str) -> str:
    r"""Quote a value of a list for a message: on one line, and not endless.

    >>> quoted("a\nb.png")
    "'a\\nb.png'"
    """
    return repr(printable(text[:_SHOWN])) + ("…" if len(text) > _SHOWN else "")


def _text(file: Path, number: int, cells: Mapping[str, Any], column: str) -> str | None:
    """Return a value as text: whole numbers are written out, nothing is ""; None if there is no such column."""
    if column not in cells:
        return None
    value = cells[column]
    if not isinstance(value, str):
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return ""
        if isinstance(value, bool) or not (isinstance(value, int) or (isinstance(value, float) and value.is_integer())):
            raise wrong(file, number, f"the {column} must be text or a whole number, got {quoted(repr(value))}")
        value = str(int(value))  # a column of whole numbers with gaps holds floats
    # File names may begin or end with spaces; around a label they are an accident.
    return value if column == PATH else printable(value.strip())


def _renamed(columns: Sequence[str]) -> list[str]:
    return [PATH if name == FILE and PATH not in columns else name for name in columns]


def _missing(columns: Sequence[str], needed: Sequence[str]) -> str | None:
    """Say which column is missing, and which there are; None if all are there."""
    lacking = [name for name in needed if name not in columns]
    if not lacking:
        return None
    return f"the column {lacking[0]!r} is missing: the columns are {enumerate_words(map(quoted, columns)) or 'none'}"


def _decoded(file: Path) -> str:
    content = read_regular(file)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise wrong(file, content.count(b"\n", 0, error.start) + 1, "this is not UTF-8 text") from None


def _csv_cells(file: Path, needed: Sequence[str]) -> Cells:
    """Read CSV as RFC 4180 has it; the first line names the columns."""
    reader = csv.reader(io.StringIO(_decoded(file), newline=""), strict=True)
    columns: list[str] = []
    while True:
        number = reader.line_num + 1  # where the row begins: a quoted value may have several lines
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise wrong(file, number, f"this is not CSV: {error}") from None
        if not cells:  # an empty line
            continue
        if not columns:
            columns = _renamed([name.strip() for name in cells])
            if lacking := _missing(columns, needed):
                raise wrong(file, number, lacking)
            if twice := [name for name in _COLUMNS if columns.count(name) > 1]:
                raise wrong(file, number, f"there are two columns {twice[0]!r}")
        elif len(cells) != len(columns):
            raise wrong(
                file,
                number,
                f"there are {len(cells)} values for {len(columns)} columns; a value that holds a comma needs quotes",
            )
        else:
            yield number, dict(zip(columns, cells, strict=True))


def _json_cells(file: Path, _: Sequence[str]) -> Cells:
    """Read one JSON object a line."""
    for number, line in enumerate(_decoded(file).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            cells = parse_json(line)
        except ValueError as error:
            raise wrong(file, number, f"this is not JSON: {error}") from None
        if not isinstance(cells, dict):
            raise wrong(file, number, "this is not a JSON object")
        cells = dict(zip(_renamed([*cells]), cells.values(), strict=True))
        if lacking := _missing(list(cells), [PATH]):
            raise wrong(file, number, lacking)
        yield number, cells


def _parquet_cells(file: Path, needed: Sequence[str]) -> Cells:
    require_regular(file)
    try:
        columns, rows = _read_parquet(file)
    except ImportError:
        raise ModuleNotFoundError(
            f"reading {printable(file)} needs pyarrow: pip install 'sohot[parquet]', or write the list as CSV"
        ) from None
    except Exception as error:  # each library has errors of its own for a damaged file
        raise ValueError(f"{printable(file)} is not a Parquet file: {' '.join(str(error).split())}") from None
    if lacking := _missing(_renamed(columns), needed):
        raise ValueError(f"{printable(file)}: {lacking}")
    for number, row in enumerate(rows, start=1):
        yield number, dict(zip(_renamed([*row]), row.values(), strict=True))


def _read_parquet(file: Path) -> tuple[list[str], list[Mapping[str, Any]]]:
    """Read the columns' names, and the rows of those that matter, by pyarrow or what pandas reads Parquet with."""
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError:
        table = import_module("pandas").read_parquet(file)
        columns = list(map(str, table.columns))
        return columns, table[_wanted(columns)].astype(object).to_dict("records")
    opened = parquet.ParquetFile(file)
    columns = list(opened.schema_arrow.names)
    return columns, opened.read(columns=_wanted(columns)).to_pylist()


def _wanted(columns: Sequence[str]) -> list[str]:
    return [name for name, meant in zip(columns, _renamed(columns), strict=True) if meant in _COLUMNS]


_READERS = {".csv": _csv_cells, ".jsonl": _json_cells, ".ndjson": _json_cells, ".parquet": _parquet_cells}
SUFFIXES = tuple(_READERS)
"""How the name of a list ends."""
