"""A training in a process of its own: started, watched through the files that it writes, and stopped."""

import math
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from .._files import no_follow
from .._process import search_path
from ..data.names import printable, visible
from ..runs.description import DESCRIPTION, REPORT
from ..training.errors import TrainingError
from ..training.logs import read_csv_log
from ..training.run_files import read_description

MOST_POINTS = 300
"""Points of a curve; of a longer training some steps are left out."""
CURVES = ("loss", "accuracy_source", "accuracy_target")
_TAIL = 4096
_PATIENCE = 20.0  # seconds to save what there is


class TrainingJob:
    """One `sohot fit`.

    Args:
        config: The file of its options.
        out: The folder of the new run.
        log: File for what it says.
        trust: Whether it may import the Python file that its options name.
    """

    def __init__(self, config: Path, out: Path, log: Path, *, trust: bool = False) -> None:
        self.out, self.log, self.stopped = out, log, False
        words = [sys.executable, "-m", "sohot", "fit", "--config", str(config), "--out", str(out), "--json"]
        with open(log, "wb", opener=no_follow) as said:  # in a session of its own: Ctrl-C is ours to pass on
            self._process = subprocess.Popen(
                [*words, *(["--trust"] if trust else [])],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                env={**os.environ, **search_path()},
                start_new_session=True,
            )

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self._process.poll() is None

    @property
    def finished(self) -> bool:
        """Whether it ended with a new run."""
        return self._process.poll() == 0 and (self.out / REPORT).is_file()

    def state(self) -> str:
        """Return "running", "finished", "stopped" or "failed"."""
        if self.running:
            return "running"
        if self.finished:
            return "finished"
        return "stopped" if self.stopped else "failed"

    def stop(self) -> None:
        """Ask it to save and end, and wait for that; what does not listen is killed."""
        if self.running:
            self.stopped = True
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def as_json(self) -> dict[str, Any]:
        """Describe how far it is: state, what it said last, steps and curves."""
        return {
            "state": self.state(),
            "run": printable(self.out.name),
            "folder": printable(self.out),
            "said": self.last_words(),
            "steps": self._steps(),
            "curves": self.curves(),
        }

    def last_words(self) -> str:
        """Return the last line that it printed."""
        with suppress(OSError), open(self.log, "rb") as said:
            said.seek(max(0, self.log.stat().st_size - _TAIL))
            lines = said.read().decode(errors="replace").split("\n")
            return next((visible(line.strip()).removeprefix("sohot: ") for line in reversed(lines) if line.strip()), "")
        return ""

    def _steps(self) -> int | None:
        """Return how many steps it is to do; None before that is known."""
        with suppress(OSError, TrainingError, LookupError, TypeError):
            return int(read_description(self.out / DESCRIPTION)["settings"]["steps"])
        return None

    def curves(self) -> dict[str, list[list[float]]]:
        """Return the points (step, value) of each curve; none for a training without steps."""
        rows = read_csv_log(self.out / "log.csv")
        stride = math.ceil(len(rows) / MOST_POINTS) or 1
        some = [row for place, row in enumerate(rows, start=1) if place % stride == 0 or place == len(rows)]
        found = {name: [[row["step"], row[name]] for row in some if name in row] for name in CURVES}
        return {
            name: [point for point in points if math.isfinite(point[1])] for name, points in found.items() if points
        }
