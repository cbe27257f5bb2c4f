"""The logs of a run: a CSV file that is always written, and others by name."""

import csv
import hashlib
import importlib
import importlib.util
import io
import math
from pathlib import Path
from types import ModuleType
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


def make_loggers(names: tuple[str, ...] | None, run_dir: Path | None, start: int) -> list[Logger]:
    """Build the loggers of a run.

    Args:
        names: "tensorboard", "wandb", "mlflow"; None for TensorBoard where it is installed.
        run_dir: The run's folder; None for no files: then only requested loggers that need none.
        start: The step the run resumes from.

    Returns:
        The loggers; with a folder, the CSV log is always included.
    """
    if names is None:
        names = ("tensorboard",) if run_dir is not None and _installed("tensorboard") else ()
    loggers: list[Logger] = []
    if run_dir is not None:
        loggers.append(CSVLog(run_dir / "log.csv", start))
    for name in names:
        loggers.append(_BUILDERS[name](run_dir, start))
    return loggers


class _Remote(Logger):
    """A logger that passes numbers to a tracking library and needs only that library."""

    def __init__(self, library: ModuleType, run_dir: Path | None) -> None:
        self.library = library
        self.run_dir = run_dir

    @property
    def name(self) -> str:
        """The name of the library."""
        return self.library.__name__

    @property
    def version(self) -> str:
        """Empty: one run has one log."""
        return ""

    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        """Do nothing: the settings are passed at the start."""

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        """Send the numbers of a step."""
        raise NotImplementedError


class WandbLog(_Remote):
    """Logs to Weights & Biases; a resumed run continues under its name."""

    def __init__(self, run_dir: Path | None, start: int) -> None:  # noqa: ARG002 - it tracks its own steps
        super().__init__(_require("wandb"), run_dir)
        if run_dir is not None:
            refuse_link(run_dir / "wandb")
        kept = {} if run_dir is None else {"name": run_dir.name, "dir": str(run_dir), "id": _identifier(run_dir)}
        self._run = self.library.init(project="sohot", resume="allow", **kept)

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        """Send the numbers of a step."""
        self._run.log(metrics, step=step)

    def finalize(self, status: str) -> None:
        """End the run."""
        self._run.finish(exit_code=0 if status == "success" else 1)


class MLflowLog(_Remote):
    """Logs to MLflow, in the experiment "sohot"; a resumed run continues under its number."""

    def __init__(self, run_dir: Path | None, start: int) -> None:
        super().__init__(_require("mlflow"), run_dir)
        self.library.set_experiment("sohot")
        note = run_dir / "mlflow_run.txt" if run_dir else None
        if start and note and note.exists():
            self.library.start_run(run_id=read_text(note).strip())
            return
        run = self.library.start_run(run_name=run_dir.name if run_dir else None)
        if note:
            write_atomically(note, run.info.run_id.encode())

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        """Send the numbers of a step."""
        self.library.log_metrics(metrics, step=step)

    def finalize(self, status: str) -> None:
        """End the run."""
        self.library.end_run("FINISHED" if status == "success" else "FAILED")


def _tensorboard(run_dir: Path | None, start: int) -> Logger:
    _require("tensorboard")
    if run_dir is None:
        raise ValueError("loggers: 'tensorboard' writes files, so it needs a run_dir")
    refuse_link(run_dir / "tensorboard")
    return TensorBoardLogger(run_dir, name="tensorboard", version="", purge_step=start + 1 if start else None)


_BUILDERS = {"tensorboard": _tensorboard, "wandb": WandbLog, "mlflow": MLflowLog}


def _identifier(run_dir: Path) -> str:
    """Name a run the same way when it is resumed, and differently for another run in a folder of the same name."""
    return hashlib.sha256(str(run_dir.resolve()).encode()).hexdigest()[:16]


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _require(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ValueError(f"loggers: {name!r} is not installed; try: pip install {name}") from error
