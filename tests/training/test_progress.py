import io
import re

import pytest
from rich.cells import cell_len
from rich.console import Console

from sohot.training import RichProgress


def test_a_terminal_shows_parts_accuracy_and_time_left(train):
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=220, color_system=None)
    with RichProgress(12, console) as progress:
        train(method="so+to+zeta", on_step=progress)
    last = text.getvalue().replace("\r", "\n").strip().splitlines()[-2]
    for part in ("12/12", "left", "loss", "cross-entropy", "means", "order 2", "order 3", "accuracy source", "%"):
        assert part in last


RECORD = {"step": 120, "loss": 0.75, "cross_entropy": 0.5, "means": 0.05, "order2": 0.1, "order3": 0.1}


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_in_a_narrow_terminal_the_description_gives_way(width):
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=width, color_system=None)
    with RichProgress(1000, console) as progress:
        progress({**RECORD, "accuracy_source": 0.9, "accuracy_target": 0.8})
    last = text.getvalue().replace("\r", "\n").strip().splitlines()[-2].removeprefix("\x1b[2K")
    assert re.match(r"━━ {18} +120/1000 0:00:\d\d left -:--:-- loss 0\.", last)
    assert last.endswith("…")
    assert cell_len(last) == width


def test_elsewhere_a_line_for_each_tenth(train):
    text = io.StringIO()
    with RichProgress(40, Console(file=text, width=200)) as progress:
        train(on_step=progress, steps=40)
    lines = text.getvalue().splitlines()
    assert [line.split()[1] for line in lines] == [f"{step}/40" for step in range(4, 41, 4)]


def test_nothing_goes_to_standard_output(train, capsys):
    with RichProgress(3) as progress:
        train(on_step=progress, steps=3)
    output = capsys.readouterr()
    assert output.out == ""
    assert "step 3/3" in output.err
