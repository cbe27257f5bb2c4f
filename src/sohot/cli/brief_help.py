"""Help that fits on a screen: `--help` shows the options that most people need, `--help-all` shows all."""

import re
from copy import copy
from typing import Any

import typer

from .one_value import OneValueCommand

MOST_SHOWN = 10
"""A command with more options than this has a brief help."""
_ALL = "sohot.help_all"


class BriefCommand(OneValueCommand):
    """A command of many options, of which `--help` shows some, each with the first sentence of its help."""

    usual: tuple[str, ...] = ()
    _help_all: Any = None

    def get_params(self, ctx: Any) -> list[Any]:
        """List the parameters, with `--help` and `--help-all`."""
        parameters: list[Any] = super().get_params(ctx)
        if self._help_all is None:  # made of --help, because versions of typer make options differently
            self._help_all = copy(parameters[-1])
            self._help_all.name, self._help_all.opts = "help_all", ["--help-all"]
            self._help_all.help, self._help_all.callback = "Show every option and exit.", _show_all
        return [*parameters, self._help_all]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help: of a copy of this command that has fewer options, unless all were asked for."""
        shown = self if ctx.meta.get(_ALL) else self._brief(ctx.command_path)
        OneValueCommand.format_help(shown, ctx, formatter)

    def _brief(self, path: str) -> "BriefCommand":
        options: dict[Any, Any] = {one.name: one for one in self.params if one.param_type_name == "option"}
        arguments = [one for one in self.params if one.name not in options]
        shown = copy(self)
        shown.params = [*arguments, *(_brief_option(options[name]) for name in self.usual)]
        shown.epilog = f"{path} --help-all lists {len(options) - len(self.usual)} more options."
        return shown


def showing(*usual: str) -> type[BriefCommand]:
    """Make the class of a command whose `--help` shows these options alone, in this order."""
    return type("BriefCommand", (BriefCommand,), {"usual": usual})


def _show_all(context: typer.Context, _: Any, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        context.meta[_ALL] = True
        typer.echo(context.get_help(), color=context.color)
        raise typer.Exit


def _brief_option(option: Any) -> Any:
    brief = copy(option)
    brief.help, brief.rich_help_panel = first_sentence(option.help), None
    return brief


def first_sentence(text: str) -> str:
    """Return the first sentence of a text.

    >>> first_sentence("Train on 1.5 % of them, or so. Test on the rest.")
    'Train on 1.5 % of them, or so.'
    """
    return re.split(r"(?<=\.)\s+(?=[A-Z])", text, maxsplit=1)[0]
