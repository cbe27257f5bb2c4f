"""Progress in a notebook: one bar of HTML that is drawn anew, without widgets."""

import html
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from rich.console import Console

from ..cli.live_progress import TerminalWatcher
from ..cli.output import Bar, bar
from ..data.labelled import Progress
from ..methods.settings import FitSettings
from ..training.progress import describe

_INTERVAL = 0.2  # seconds between two drawings


class NotebookBar:
    """Shows stages one after another in the output of a cell; call it with the stage, the number done, and the total.

    Args:
        show: Shows HTML and returns an object whose `update` replaces it.
    """

    def __init__(self, show: Callable[[Any], Any] | None = None) -> None:
        self._show = show or _display
        self._shown: Any = None
        self._drawn = 0.0

    def __call__(self, stage: str, done: int, of: int) -> None:
        """Show how far a stage has come."""
        now = time.monotonic()
        if self._shown is not None and done < of and now - self._drawn < _INTERVAL:
            return
        self._drawn = now
        self._draw(f'<progress value="{done}" max="{max(of, 1)}"></progress> {done}/{of} {html.escape(stage)}')

    def _draw(self, text: str) -> None:
        if self._shown is None:
            self._shown = self._show(text)
        else:
            self._shown.update(_html(text))

    def close(self) -> None:
        """Remove the bar."""
        if self._shown is not None:
            self._shown.update(_html(""))
            self._shown = None


class NotebookWatcher(TerminalWatcher):
    """Reports the progress of `fit_run` in a notebook: sentences as on a terminal, steps in the bar."""

    def __init__(self, progress: NotebookBar) -> None:
        super().__init__(progress)  # type: ignore[arg-type] # all it does with a bar is to call it
        self._bar = progress

    @contextmanager
    def steps(self, settings: FitSettings) -> Iterator[Any]:
        """Show the steps as they are done."""

        def step(record: dict[str, float]) -> None:
            self._bar(f"training: {describe(record)}", int(record["step"]), settings.steps)

        yield step


@contextmanager
def progress_bar(shown: bool) -> Iterator[Bar | NotebookBar | None]:
    """Yield a progress bar for where this program runs, or None, and always remove it at the end."""
    if not shown or not Console().is_jupyter:
        with bar(quiet=not shown) as terminal:
            yield terminal
        return
    notebook = NotebookBar()
    try:
        yield notebook
    finally:
        notebook.close()


def watcher_of(shown: Progress | None) -> TerminalWatcher:
    """Return what reports the progress of `fit_run` beside a bar."""
    return NotebookWatcher(shown) if isinstance(shown, NotebookBar) else TerminalWatcher(shown)  # type: ignore[arg-type]


def _html(text: str) -> Any:
    return import_module("IPython.display").HTML(text)


def _display(text: str) -> Any:
    return import_module("IPython.display").display(_html(text), display_id=True)
