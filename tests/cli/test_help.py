"""`--help` shows the options that most people need first, then all others in panels."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import typer
from command_line import Ended

from sohot.cli.commands import app
from sohot.methods.options import GROUPS

Sohot = Callable[..., Ended]
MOST = 12


def _commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(_commands(typer.main.get_command(app)))


def options_of(text: str) -> set[str]:
    """Give the options that have a line of their own in a help text."""
    return set(re.findall(r"^│ (?:[* ]  )?(--[a-z0-9-]+)", text, flags=re.MULTILINE))


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 100)


@pytest.mark.parametrize("path", COMMANDS, ids="-".join)
def test_every_option_is_shown_and_the_main_ones_are_few_and_first(sohot: Sohot, path: tuple[str, ...]) -> None:
    ended = sohot(*path, "--help")
    declared = [option for option in COMMANDS[path].params if option.param_type_name == "option"]
    first = options_of(ended.out[ended.out.index("╭─ Options ─") :].partition("╰")[0])
    assert ended.code == 0
    assert options_of(ended.out) == {option.opts[0] for option in declared} | {"--help"}
    assert {option.opts[0] for option in declared if option.required} <= first
    assert len(first - {"--help"}) <= MOST


def test_other_options_come_in_groups(sohot: Sohot) -> None:
    text = sohot("fit", "--help").out
    assert all(f"╭─ {group} ─" in text for group in GROUPS)


@pytest.mark.parametrize(("wrong", "meant"), [("--sourceshots", "--source-shots"), ("--pool-los", "--pool-loss")])
def test_a_mistyped_option_is_answered_with_the_nearest(sohot: Sohot, wrong: str, meant: str) -> None:
    ended = sohot("fit", wrong, "1")
    assert (ended.code, meant in ended.last) == (2, True)
