"""The log that is always there: one line of numbers for each step."""

import csv
import io
import math
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
        self._columns: list[str] = []
        self._stream: TextIO | None = None
        rows = read_csv_log(file)
        if start and rows:
            self._columns = list(rows[0])
            self._rewrite([row for row in rows if row["step"] <= start])
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
        metrics = {"step": step or 0, **metrics}
        if new := [name for name in metrics if name not in self._columns]:
            self.finalize("")
            self._columns += new
            self._rewrite(read_csv_log(self.file))
        if self._stream is None:
            self._stream = open(self.file, "a", encoding="utf-8", newline="")  # noqa: SIM115 - closed in finalize
        line = io.StringIO()
        csv.DictWriter(line, self._columns, lineterminator="\n").writerow(metrics)
        self._stream.write(line.getvalue())
        self._stream.flush()

    def _rewrite(self, rows: list[dict[str, float]]) -> None:
        text = io.StringIO()
        writer = csv.DictWriter(text, self._columns, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            numbers = {name: value for name, value in row.items() if not math.isnan(value)}
            writer.writerow({**numbers, "step": int(row["step"])})
        write_atomically(self.file, text.getvalue().encode())

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
        if None in row or None in row.values():  # too many or too few columns
            continue
        try:
            rows.append({name: float(value) if value else math.nan for name, value in row.items()})
        except ValueError:
            continue
    return rows
