"""What is shown while a command works, on a terminal and elsewhere."""

import io

import pytest
from rich.console import Console

from sohot.cli import output
from sohot.cli.output import Bar


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


@pytest.mark.parametrize(("command", "words"), [("evaluate", "micro"), ("predict", "path,label")])
def test_quiet_commands_print_their_result_alone(sohot, trained, command, words):
    run, domains = trained
    loud, quiet = (sohot(command, run, domains.test, *more) for more in ((), ("--quiet",)))
    assert words in quiet.out
    assert quiet.out == loud.out
    assert loud.err
    assert quiet.err == ""
