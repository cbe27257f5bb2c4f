"""What is shown while a command works, on a terminal and elsewhere."""

import io

import pytest
from rich.console import Console

from sohot.cli import output
from sohot.cli.output import Bar
from sohot.demo import DemoProgress
from sohot.experiments.demo_result import DemoResult, SplitAccuracies


@pytest.fixture
def shown(monkeypatch):
    """Make a bar on a terminal of some width and return what it shows."""

    def show(calls, width):
        text = io.StringIO()
        console = Console(file=text, force_terminal=True, width=width, color_system=None)
        monkeypatch.setattr(output, "errors", lambda: console)
        bar = Bar()
        for call in calls:
            bar(*call)
        bar.close()
        return text.getvalue().replace("\r", "\n").replace("\x1b[2K", "")

    return show


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_a_narrow_terminal_keeps_the_bar_the_count_and_the_time(shown, width):
    stage = "choosing a method: gentle s+t, fold 2 of 3, step 45 of 100, on the labelled target images [/]"
    lines = shown([(stage, 3, 18), (stage, 5, 18)], width).splitlines()
    last = next(line for line in reversed(lines) if "5/18" in line)
    assert "━" in last
    assert " left " in last
    assert "choosing" in last
    assert len(last) <= width


def test_details_change_within_one_bar(shown):
    calls = [(f"choosing: {name}", done, 3) for done, name in enumerate(("s+t", "m", "so", "so"))]
    lines = shown(calls, 100)
    assert lines.count("\x1b[?25l") == 1  # the cursor was hidden once: there was one bar
    assert lines.splitlines()[-1].endswith("choosing: 3 done")


def test_elsewhere_a_quick_stage_has_one_line_and_a_long_one_some(capsys, monkeypatch):
    bar = Bar()
    for done in range(1, 101):
        bar("reading images", done, 100)
    assert capsys.readouterr().err == "reading images: 100 done\n"
    clock = iter(range(100_000))
    monkeypatch.setattr(output.time, "monotonic", lambda: next(clock))
    for done in range(1, 101):
        bar("reading images", done, 100)
    said = capsys.readouterr().err.splitlines()
    assert 5 < len(said) < 15
    assert all(line.startswith("[") for line in said[:-1])


def test_quiet_commands_print_their_result_alone(sohot, trained, tmp_path, monkeypatch):
    def run_demo(*_, on_progress, **__):
        on_progress(DemoProgress(1, 1, 0, "s+t", 80.0))
        return DemoResult({"s+t": SplitAccuracies.of([80.0])}, 1.0, [])

    run, domains = trained
    monkeypatch.setattr("sohot.demo.run_demo", run_demo)
    calls = {
        "80.0 ± 0.0": ("demo", "--out", tmp_path / "demo"),
        "micro": ("evaluate", run, domains.test),
        "path,label": ("predict", run, domains.test),
    }
    for words, call in calls.items():
        loud, quiet = sohot(*call), sohot(*call, "--quiet")
        assert words in quiet.out
        assert quiet.out == loud.out
        assert loud.err
        assert quiet.err == ""
