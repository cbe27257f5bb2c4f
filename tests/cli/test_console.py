"""No name can control the terminal, wherever it is printed."""

import io
import json

from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from sohot.cli.console import Console
from sohot.cli.output import print_json, print_text, say

HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m\x7f\r\u202egnp.\udce9"


def controls(text: str) -> set[str]:
    """The characters that a terminal might obey; a line may end."""
    return {one for one in text if (not one.isprintable() and one not in "\n ") or "\ud800" <= one <= "\udfff"}


def test_sentences_and_results(capsys):
    say(f"left out {HOSTILE}")
    print_text(HOSTILE)
    captured = capsys.readouterr()
    assert not controls(captured.out + captured.err)
    assert "\\u001b[2J" in captured.out


def test_tables_and_progress_keep_their_own_codes_alone():
    plain, hostile = io.StringIO(), io.StringIO()
    for stream, name in ((plain, "x" * 13), (hostile, HOSTILE)):
        console = Console(file=stream, force_terminal=True, color_system="standard", width=200)
        table = Table(title=Text(name))
        table.add_column(Text(name, "red"))
        table.add_row(Text(name))
        console.print(table)
        with Progress(console=console) as progress:
            progress.add_task(name)
    count = {stream: stream.getvalue().count("\x1b") for stream in (plain, hostile)}
    assert count[plain] > 2  # colours of our own
    assert count[plain] == count[hostile]
    assert controls(hostile.getvalue()) == controls(plain.getvalue())


def test_json_stays_json(capsys):
    print_json({"file": HOSTILE})
    printed = capsys.readouterr().out
    assert not controls(printed)
    assert json.loads(printed) == {"file": HOSTILE}


def test_markup_and_emoji_are_plain_text(capsys):
    print_text(":dog: [red]x[/red]")
    assert capsys.readouterr().out == ":dog: [red]x[/red]\n"


def test_errors(sohot):
    ended = sohot("info", "run\x1b[2J")
    assert not controls(ended.err)
    assert "\\u001b[2J" in ended.last
