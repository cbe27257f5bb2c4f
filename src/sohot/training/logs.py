"""The logs of a run: a CSV file that is always written, and TensorBoard's."""

import csv
import importlib.util
import io
import math
from pathlib import Path
from typing import Any, TextIO

from lightning_fabric.loggers.logger import Logger
from lightning_fabric.loggers.tensorboard import TensorBoardLogger

from .._files import no_follow, refuse_link, write_atomically
from .._reading import read_text


class CSVLog(Logger):
    """Appends one line per step to a CSV file, so that a killed run keeps all but the line being written.

    Args:
        file: The file.
        start: The step the run resumes from; later lines are dropped, because their steps are repeated.
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
        """Empty: one run has one log."""
        return ""

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        """Append a line."""
        metrics = {"step": step or 0, **metrics}
        if new := [name for name in metrics if name not in self._columns]:
            self.finalize("")
            self._columns += new
            self._rewrite(read_csv_log(self.file))
        if self._stream is None:
            self._stream = open(  # noqa: SIM115 - closed in finalize
                self.file, "a", encoding="utf-8", newline="", opener=no_follow
            )
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

    def finalize(self, status: str) -> None:  # noqa: ARG002 - the interface of a logger
        """Close the file."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def read_csv_log(file: Path) -> list[dict[str, float]]:
    """Read the complete lines of a log; a line cut off by a kill is left out.

    Args:
        file: The file; it need not exist.

    Returns:
        One dict for each step.
    """
    if not file.exists():
        return []
    text = read_text(file, errors="replace")
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


def make_loggers(name: str | None, run_dir: Path | None, start: int) -> list[Logger]:
    """Build the loggers of a run.

    Args:
        name: "tensorboard" or "none"; None for TensorBoard where it is installed and there is a folder.
        run_dir: The run's folder; None for no files.
        start: The step the run resumes from.

    Returns:
        The loggers; with a folder, the CSV log is always included.
    """
    loggers: list[Logger] = [] if run_dir is None else [CSVLog(run_dir / "log.csv", start)]
    if name == "tensorboard" or (name is None and run_dir is not None and _has_tensorboard()):
        loggers.append(_tensorboard(run_dir, start))
    return loggers


def _has_tensorboard() -> bool:
    return importlib.util.find_spec("tensorboard") is not None


def _tensorboard(run_dir: Path | None, start: int) -> Logger:
    if not _has_tensorboard():
        raise ValueError("loggers: 'tensorboard' is not installed; try: pip install tensorboard")
    if run_dir is None:
        raise ValueError("loggers: 'tensorboard' writes files, so it needs a run_dir")
    refuse_link(run_dir / "tensorboard")
    return TensorBoardLogger(run_dir, name="tensorboard", version="", purge_step=start + 1 if start else None)
