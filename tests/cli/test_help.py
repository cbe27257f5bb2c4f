"""`--help` fits on a screen and leads to `--help-all`, which hides nothing; both say the same of every command."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import typer
from command_line import Ended

from sohot.cli.brief_help import MOST_SHOWN, BriefCommand, first_sentence
from sohot.cli.commands import app
from sohot.methods.options import GROUPS

Sohot = Callable[..., Ended]


def _commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(_commands(typer.main.get_command(app)))
BRIEF = [path for path, command in COMMANDS.items() if isinstance(command, BriefCommand)]


def options_of(command: Any) -> dict[str, Any]:
    return {one.name: one for one in command.params if one.param_type_name == "option"}


def shown(text: str) -> set[str]:
    """Give the options that have a line of their own in a help text."""
    return set(re.findall(r"^│ (?:[* ]  )?(--[a-z0-9-]+)", text, flags=re.MULTILINE))


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 100)


@pytest.mark.parametrize("path", COMMANDS, ids="-".join)
def test_no_help_shows_more_than_a_screen_of_options(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    assert len(command.usual if path in BRIEF else options_of(command)) <= MOST_SHOWN


@pytest.mark.parametrize("path", BRIEF, ids="-".join)
def test_every_option_is_in_one_of_the_two(sohot: Sohot, path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    names = {one.opts[0] for one in options_of(command).values()} | {"--help", "--help-all"}
    brief, full = sohot(*path, "--help"), sohot(*path, "--help-all")
    assert (brief.code, full.code) == (0, 0)
    assert shown(full.out) == names
    assert shown(brief.out) == {options_of(command)[name].opts[0] for name in command.usual} | {"--help", "--help-all"}
    hidden = len(names) - len(shown(brief.out))
    assert brief.out.split("╯")[-1].split() == f"sohot {' '.join(path)} --help-all lists {hidden} more options.".split()
    assert "more options" not in full.out
    assert brief.out.count(f"sohot {' '.join(path)} ") >= 3, "usage, an example, the closing line"


@pytest.mark.parametrize("path", BRIEF, ids="-".join)
def test_what_must_be_given_is_shown(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    assert {name for name, one in options_of(command).items() if one.required} <= set(command.usual)


def test_asking_for_one_help_leaves_the_other_as_it_was(sohot: Sohot) -> None:
    texts = [sohot("suggest", word).out for word in ("--help", "--help-all", "-h", "--help-all")]
    assert texts[:2] == texts[2:]
    assert texts[0] != texts[1]


def test_all_options_come_in_groups(sohot: Sohot) -> None:
    text = sohot("fit", "--help-all").out
    assert all(f"╭─ {group} ─" in text for group in GROUPS)


@pytest.mark.parametrize(("wrong", "meant"), [("--sourceshots", "--source-shots"), ("--pool-los", "--pool-loss")])
def test_an_option_that_the_help_hides_is_still_suggested(sohot: Sohot, wrong: str, meant: str) -> None:
    ended = sohot("fit", wrong, "1")
    assert (ended.code, meant in ended.last) == (2, True)
    assert meant.removeprefix("--").replace("-", "_") not in COMMANDS[("fit",)].usual


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("One. Two.", "One."),
        ("One.", "One."),
        ("Write FILE.py:function, 0.5 of it. Then more.", "Write FILE.py:function, 0.5 of it."),
        ("", ""),
    ],
)
def test_first_sentences(text: str, first: str) -> None:
    assert first_sentence(text) == first
