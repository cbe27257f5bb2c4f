"""The bar that a notebook shows."""

import sys
from types import SimpleNamespace

import pytest

from sohot.api.notebook_progress import NotebookBar, NotebookWatcher, progress_bar, watcher_of
from sohot.cli.output import Bar
from sohot.methods import FitSettings


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """All that IPython was asked to show, where IPython is not installed."""
    drawn: list[str] = []

    def display(content: str, display_id: bool) -> SimpleNamespace:
        assert display_id
        drawn.append(content)
        return SimpleNamespace(update=drawn.append)

    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(HTML=str, display=display))
    monkeypatch.setattr("sohot.api.notebook_progress.Console", lambda: SimpleNamespace(is_jupyter=True))
    return drawn


def test_one_bar_is_drawn_anew_and_removed(shown: list[str]) -> None:
    with progress_bar(True) as bar:
        assert isinstance(bar, NotebookBar)
        for done in range(1, 101):
            bar("reading <images>", done, 100)
    assert shown[0] == '<progress value="1" max="100"></progress> 1/100 reading &lt;images&gt;'
    assert len(shown) < 50
    assert shown[-2].startswith('<progress value="100"')
    assert shown[-1] == ""


def test_steps_are_in_the_bar(shown: list[str]) -> None:
    with progress_bar(True) as bar:
        watcher = watcher_of(bar)
        assert isinstance(watcher, NotebookWatcher)
        with watcher.steps(FitSettings(steps=2)) as step:
            step({"step": 2, "loss": 0.5, "cross_entropy": 0.5})
    assert "2/2 training: loss 0.5 = cross-entropy 0.5" in shown[0]


def test_elsewhere_it_is_the_bar_of_the_command_line() -> None:
    with progress_bar(True) as bar:
        assert isinstance(bar, Bar)
    with progress_bar(False) as bar:
        assert bar is None
