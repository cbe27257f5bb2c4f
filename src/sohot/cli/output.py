"""Printing: tables and one JSON object on standard output, progress and everything else on standard error."""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from datetime import timedelta
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.progress import Progress, TaskID
from rich.table import Table

from .._outputs import STDOUT
from ..data.names import visible
from ..selection.choice import Choice
from ..training.progress import live_line
from .console import Console

MOST_LISTED = 20
HOURS = 36000.0
"""The time that the speed of a bar is averaged over: its parts may take long."""


def errors() -> Console:
    """Return the console on standard error."""
    return Console(stderr=True)


def say(sentence: str) -> None:
    """Print a sentence on standard error."""
    errors().print(sentence, markup=False, highlight=False, soft_wrap=True)


_NOW_AND_THEN = 10.0
"""Seconds between lines about a long stage where there is no terminal."""


class Bar:
    """Shows stages one after another; without a terminal it prints a line now and then, and when a stage is done.

    Call it with the stage, the number done, and the total. What follows a colon in the stage is a detail that may
    change: the bar stays the same, and without a terminal each finished detail has its line.
    """

    def __init__(self) -> None:
        self.console = errors()
        self._progress: Progress | None = None
        self._stage, self._task = "", TaskID(0)
        self._began = self._told_at = 0.0
        self._before = self._told = 0

    def __call__(self, stage: str, done: int, of: int) -> None:
        """Show how far a stage has come."""
        name, _, detail = stage.partition(": ")
        if name != self._stage:
            self._begin(name, done, of)
        if self._progress is not None:
            self._progress.update(self._task, completed=done, total=of, description=stage)
        elif done < of and (time.monotonic() - self._told_at > _NOW_AND_THEN or (detail and done > self._told)):
            self._tell(stage, done, of)
        if done >= of:
            self.close()
            say(f"{name}: {of} done")

    def _begin(self, name: str, done: int, of: int) -> None:
        self.close()
        self._stage, self._before, self._told = name, done, done
        self._began = self._told_at = time.monotonic()
        if self.console.is_terminal:
            self._progress = live_line(self.console, transient=True, average_over=HOURS)
            self._task = self._progress.add_task(name, total=of, completed=done)
            self._progress.start()

    def _tell(self, stage: str, done: int, of: int) -> None:
        self._told, self._told_at = done, time.monotonic()
        new = done - self._before
        left = (self._told_at - self._began) / new * (of - done) if new else None
        say(f"[{done}/{of}] {stage}" + ("" if left is None else f", about {timedelta(seconds=round(left))} left"))

    def close(self) -> None:
        """Restore the terminal."""
        self._stage = ""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


@contextmanager
def bar(quiet: bool) -> Iterator[Bar | None]:
    """Yield a progress bar, or None if quiet, and always remove it at the end."""
    shown = None if quiet else Bar()
    try:
        yield shown
    finally:
        if shown is not None:
            shown.close()


@contextmanager
def results_only() -> Iterator[None]:
    """Send what libraries and users' own networks print to standard error, so that only results reach stdout."""
    with redirect_stdout(sys.stderr):
        yield


def require_one_output(file: Path | None, option: str, json: bool) -> None:
    """Refuse to mix a file that goes to standard output with the JSON object that goes there."""
    if file == STDOUT and json:
        raise ValueError(f"{option} - and --json both write to standard output: give a file, or leave out --json")


def print_json(value: Any) -> None:
    """Print one JSON object on standard output."""
    sys.stdout.write(visible(json.dumps(value, ensure_ascii=False, allow_nan=False)) + "\n")
    sys.stdout.flush()


def print_text(text: str = "") -> None:
    """Print a line of results."""
    Console().print(text, markup=False, highlight=False, soft_wrap=True)


def say_left_out(left_out: Sequence[Any]) -> None:
    """List what was left out and why."""
    if left_out:
        say(f"left out {len(left_out)}:")
        for one in left_out[:MOST_LISTED]:
            say(f"  {one}")
        if len(left_out) > MOST_LISTED:
            say(f"  … and {len(left_out) - MOST_LISTED} more")


def percent(share: float | None) -> str:
    """Format a share in per cent.

    >>> percent(0.8123)
    '81.2'
    """
    return "–" if share is None else f"{100 * share:.1f}"


def print_accuracy(accuracy: dict[str, Any], name: str = "accuracy") -> None:
    """Print accuracies, under the name that the protocol gives them: each class, the total, the most mistakes."""
    from ..training.evaluation import Evaluation  # it imports torch, which help and errors do without

    table = Table(title=f"{name.capitalize()} on the target with its 95 % interval, per cent")
    for name in ("class", "images", "accuracy", "interval", "precision", "F1"):
        table.add_column(name, justify="left" if name == "class" else "right")
    for place, (name, share) in enumerate(accuracy["per_class"].items()):
        count = sum(accuracy["confusion"][place])
        interval, others = accuracy["per_class_interval95"][name], (accuracy[one][name] for one in ("precision", "f1"))
        table.add_row(escape(name), str(count), percent(share), _interval(interval), *map(percent, others))
    table.add_section()
    table.add_row(
        "all images (micro)", str(accuracy["rows"]), percent(accuracy["micro"]), _interval(accuracy["interval95"])
    )
    table.add_row("mean of classes (macro)", "", percent(accuracy["macro"]), "")
    Console().print(table)
    for sentence in Evaluation.from_json(accuracy).mistakes():
        print_text(sentence)
    if calibration := accuracy.get("calibration"):
        from ..selection.calibration import Effect

        print_text(Effect(**calibration).sentence())


def show_scores(choice: Choice) -> None:
    """Print the scores of the candidates of a selection on standard error."""
    table = Table(title="Held-out labelled target images, per cent correct")
    for name in ("candidate", "accuracy", "standard error", "images"):
        table.add_column(name, justify="left" if name == "candidate" else "right")
    for score in choice.scores:
        mark = " ←" if score.name == choice.chosen else ""
        accuracy = "failed" if score.failure else percent(score.accuracy)
        table.add_row(escape(score.name) + mark, accuracy, percent(score.standard_error), str(score.held))
    errors().print(table)


def _interval(bounds: Sequence[float] | None) -> str:
    return "" if bounds is None else f"{percent(bounds[0])}–{percent(bounds[1])}"  # no blanks, to fit in 80 columns
