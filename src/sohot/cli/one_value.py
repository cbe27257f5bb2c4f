"""Commands that refuse an option given twice, where click would silently use the last."""

from collections import Counter
from typing import Any

from typer.core import TyperCommand

_SPELLINGS = {"--unlabeled": "--unlabelled"}


class OneValueCommand(TyperCommand):
    """A command whose options take one value, unless they are declared as lists; switches may be repeated.

    American spellings are taken, too, but not shown.
    """

    def make_parser(self, ctx: Any) -> Any:
        """Make the parser of the command line, with one more check."""
        parser = super().make_parser(ctx)
        parse = parser.parse_args

        def parse_once(args: list[str]) -> Any:
            values, rest, order = parse([_known_spelling(word) for word in args])
            for parameter, times in Counter(order).items():
                takes_many = parameter.multiple or getattr(parameter, "is_flag", False)
                if times > 1 and parameter.param_type_name == "option" and not takes_many:
                    raise ValueError(f"{parameter.opts[0]} takes one value, but was given {times} times")
            return values, rest, order

        parser.parse_args = parse_once  # type: ignore[method-assign] # click offers no hook here
        return parser


def _known_spelling(word: str) -> str:
    name, equals, value = word.partition("=")
    return _SPELLINGS.get(name, name) + equals + value
