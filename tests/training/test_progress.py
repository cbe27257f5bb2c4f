import io

from rich.console import Console

from sohot.training import RichProgress


def test_a_terminal_shows_parts_accuracy_and_time_left(train):
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=200, color_system=None)
    with RichProgress(12, console) as progress:
        train(method="so+to+zeta", on_step=progress)
    last = text.getvalue().replace("\r", "\n").strip().splitlines()[-2]
    for part in ("12/12", "left", "loss", "cross-entropy", "means", "order 2", "order 3", "accuracy source", "%"):
        assert part in last


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
