"""Live progress of commands, on standard error."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.progress import Progress, TaskID

from ..data.names import enumerate_words
from ..experiments.cell import Cell
from ..experiments.engines import Outcome
from ..experiments.grid_run import GridWatcher
from ..methods.settings import FitSettings
from ..runs.pipeline import Watcher
from ..runs.run_data import RunData
from ..selection.choice import Choice
from ..training.progress import RichProgress, live_line
from .output import HOURS, Bar, errors, percent, say, say_left_out, show_scores


class TerminalWatcher(Watcher):
    """Reports the progress of `fit_run` on standard error; without a bar (--quiet) only what may be wrong."""

    def __init__(self, progress: Bar | None) -> None:
        self.progress = progress
        self._said: set[str] = set()
        self._left_out = 0

    def note(self, sentence: str) -> None:
        """Print what a method stands for, or what was chosen: once, also if it is noted with the data."""
        self._said.add(f"note: {sentence}")
        if self.progress is not None:
            say(sentence)

    def chosen(self, choice: Choice) -> None:
        """Show the candidates' scores on held-out images and which one is trained; the reason comes with the result."""
        if self.progress is not None:
            show_scores(choice)

    def data(self, data: RunData) -> None:
        """Print what was found, each line once."""
        sentences = [] if self.progress is None else list(_found(data))
        sentences += [f"note: {note}" for note in data.notes]
        for sentence in sentences:
            if sentence not in self._said:
                say(sentence)
        self._said.update(sentences)
        say_left_out(data.left_out[self._left_out :])
        self._left_out = len(data.left_out)

    @contextmanager
    def steps(self, settings: FitSettings) -> Iterator[RichProgress | None]:
        """Show the steps as they are done."""
        if self.progress is None:
            yield None
            return
        with RichProgress(settings.steps) as progress:
            yield progress


def _found(data: RunData) -> Iterator[str]:
    yield f"{len(data.classes)} classes"
    for name, images in {"source": data.source, "target": data.target, "test": data.test}.items():
        if images is not None:
            least, most = min(images.counts()), max(images.counts())
            each = f"{least}" if least == most else f"{least} to {most}"
            yield f"{name}: {len(images)} images, {each} per class, from {images.origin}"
    if data.pool is not None:
        yield f"pool: {len(data.pool)} images without labels, from {data.pool.origin}"


class TerminalGridWatcher(GridWatcher):
    """Shows a bar of cells on a terminal, and prints a line for each finished cell."""

    def __init__(self, bar: Bar) -> None:
        self.progress = self._stages = bar
        self._console = errors()
        self._total = self._done = self._failed = self._running = 0
        self._said_waiting = False
        self._bar: Progress | None = None
        self._task = TaskID(0)

    def begin(self, total: int, done: int, failed: int) -> None:
        """Print how many cells there are, and how many are done or failed."""
        self._total, self._done, self._failed = total, done, failed
        known = f"{done} done before" + (f", {failed} failed before" if failed else "")
        say(f"{total} cells, {known}" if done or failed else f"{total} cells")

    def started(self, cell: Cell) -> None:  # noqa: ARG002 - only counted
        """Show one more running cell."""
        self._running += 1
        self._show()

    def finished(self, outcome: Outcome) -> None:
        """Print the outcome of a cell."""
        self._running -= 1
        self._done += outcome.error is None
        self._failed += outcome.error is not None
        if outcome.result is None:
            found = f"failed: {outcome.error}"
        else:
            found = f"{percent(outcome.result.accuracy.micro)} % correct"
        place = f"[{self._done + self._failed}/{self._total}]"
        say(f"{place} {outcome.cell.label()}: {found}, {outcome.seconds:.0f} s")
        self._show()

    def waiting(self, count: int, hosts: Sequence[str]) -> None:
        """Print once that other processes hold the remaining cells."""
        if not self._said_waiting:
            places = f" on {enumerate_words(hosts)}; if it is dead, stop this one and add --retry" if hosts else ""
            say(f"waiting for {count} cells that another command is computing{places}")
            self._said_waiting = True

    def _show(self) -> None:
        if not self._console.is_terminal:
            return
        if self._bar is None:
            self._bar = live_line(self._console, transient=True, average_over=HOURS)
            self._task = self._bar.add_task("cells", total=self._total, completed=self._done + self._failed)
            self._bar.start()
        state = f"cells: {self._running} running, {self._failed} failed"
        self._bar.update(self._task, completed=self._done + self._failed, description=state, refresh=True)

    def close(self) -> None:
        """Restore the terminal."""
        self._stages.close()
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


@contextmanager
def watch_grid(quiet: bool) -> Iterator[GridWatcher]:
    """Yield a watcher of an experiment's progress, and always remove it at the end."""
    if quiet:
        yield GridWatcher()
        return
    watcher = TerminalGridWatcher(Bar())
    try:
        yield watcher
    finally:
        watcher.close()
