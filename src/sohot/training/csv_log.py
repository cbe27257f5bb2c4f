"""The log that is always there: one line of numbers for each step."""

import csv
import io
from pathlib import Path
from typing import Any, TextIO

from lightning_fabric.loggers.logger import Logger

from .files import write_atomically


class CSVLog(Logger):
    """Appends one line a step to a CSV file, so that a killed run keeps all but the line being written.

    Args:
        file: The file.
        start: The step the run goes on from; lines after it are dropped, for their steps are done again.
    """

    def __init__(self, file: Path, start: int = 0) -> None:
        self.file = file
        self._columns: list[str] | None = None
        self._stream: TextIO | None = None
        rows = read_csv_log(file)
        if start and rows:
            self._columns = list(rows[0])
            write_atomically(file, _lines(self._columns, [row for row in rows if row["step"] <= start]).encode())
        elif file.exists():
            file.unlink()

    @property
    def name(self) -> str:
        """The name of the kind of log."""
        return "csv"

    @property
    def version(self) -> str:
        """Nothing: one run has one log."""
        return ""

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        """Append a line."""
        if self._stream is None:
            new = self._columns is None
            self._columns = self._columns or ["step", *(name for name in metrics if name != "step")]
            self._stream = open(self.file, "a", encoding="utf-8", newline="")  # noqa: SIM115 - closed in finalize
            if new:
                self._stream.write(_lines(self._columns, []))
        line = io.StringIO()
        csv.DictWriter(line, self._columns or [], extrasaction="ignore", lineterminator="\n").writerow(
            {**metrics, "step": step}
        )
        self._stream.write(line.getvalue())
        self._stream.flush()

    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        """Do nothing: the settings are in run.json."""

    def finalize(self, status: str) -> None:  # noqa: ARG002 - the shape of a logger
        """Close the file."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def read_csv_log(file: Path) -> list[dict[str, float]]:
    """Read the whole lines of a log; a line cut off by a kill is left out.

    Args:
        file: The file; it need not exist.

    Returns:
        One dict for each step.
    """
    if not file.exists():
        return []
    text = file.read_text(encoding="utf-8", errors="replace")
    whole = text[: text.rfind("\n") + 1]
    rows = []
    for row in csv.DictReader(io.StringIO(whole)):
        try:
            rows.append({name: float(value) for name, value in row.items()})
        except (TypeError, ValueError):  # too few or too many columns, or no number
            continue
    return rows


def _lines(columns: list[str], rows: list[dict[str, float]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({**row, "step": int(row["step"])})
    return text.getvalue()
