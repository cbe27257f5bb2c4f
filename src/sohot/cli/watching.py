"""Live progress of a command, on standard error."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from ..runs import RunData, Watcher
from ..runs.choice import Choice
from ..training import FitSettings, RichProgress
from .output import errors, say, say_left_out, show_scores


class Bar:
    """Shows stages one after the other; on no terminal it says a line when a stage is done.

    Call it with what is being done, how many are done, and of how many.
    """

    def __init__(self) -> None:
        self.console = errors()
        self._progress: Progress | None = None
        self._stage, self._task = "", TaskID(0)

    def __call__(self, stage: str, done: int, of: int) -> None:
        """Show how far a stage has come."""
        if self.console.is_terminal:
            self._show(stage, done, of)
        if done >= of:
            self.close()
            say(f"{stage}: {of} done")

    def _show(self, stage: str, done: int, of: int) -> None:
        if self._progress is None:
            columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
            self._progress = Progress(*columns, console=self.console, transient=True)
            self._task = self._progress.add_task(stage, total=of)
            self._progress.start()
        self._progress.update(self._task, completed=done)

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


class TerminalWatcher(Watcher):
    """Tells on standard error what `fit_run` does; without a bar it tells of the data alone."""

    def __init__(self, progress: Bar | None) -> None:
        self.progress = progress
        self._said: set[str] = set()
        self._left_out = 0

    def note(self, sentence: str) -> None:
        """Say what a method stands for."""
        say(sentence)

    def chosen(self, choice: Choice) -> None:
        """Show how the candidates did on images that were held back, and which one is trained."""
        show_scores(choice)
        say(f"chosen: {choice.reason()}")

    def data(self, data: RunData) -> None:
        """Say what was found: this is always said, for a wrong folder is seen here first. Nothing is said twice."""
        parts = {"source": data.source, "target": data.target, "test": data.test}
        sentences = [f"{len(data.classes)} classes"]
        for name, images in parts.items():
            if images is not None:
                least, most = min(images.counts()), max(images.counts())
                each = f"{least}" if least == most else f"{least} to {most}"
                sentences.append(f"{name}: {len(images)} images, {each} per class, from {images.root}")
        sentences += [f"note: {note}" for note in data.notes]
        for sentence in sentences:
            if sentence not in self._said:
                say(sentence)
        self._said.update(sentences)
        say_left_out(data.left_out[self._left_out :])
        self._left_out = len(data.left_out)

    @contextmanager
    def steps(self, settings: FitSettings) -> Iterator[RichProgress | None]:
        """Show the steps while they are done."""
        if self.progress is None:
            yield None
            return
        with RichProgress(settings.steps) as progress:
            yield progress


@contextmanager
def bar(quiet: bool) -> Iterator[Bar | None]:
    """Give a progress bar, or None, and clear it away in the end whatever happens."""
    shown = None if quiet else Bar()
    try:
        yield shown
    finally:
        if shown is not None:
            shown.close()
