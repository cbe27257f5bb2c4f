"""Engines: what computes the cells of a grid, in processes of this machine or on many."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from ..cell import Cell

ENGINES = ("local", "ray")

Work = Callable[[Cell], dict[str, Any]]
"""Computes a cell: can be pickled (a function of a module, or `functools.partial` of one), returns what JSON holds."""


@dataclass(frozen=True)
class Outcome:
    """What became of a cell.

    Attributes:
        cell: The cell.
        result: What the work returned; None if it failed.
        error: Why it failed, in a sentence; None if it did not.
        seconds: How long it took, measured where it was computed.
    """

    cell: Cell
    result: dict[str, Any] | None
    error: str | None
    seconds: float


class Engine(Protocol):
    """Computes cells side by side."""

    def run(self, cells: Iterator[Cell], work: Work) -> Iterator[Outcome]:
        """Compute cells.

        Args:
            cells: The cells. The next one is taken only when a worker is free for it, for taking one claims it.
            work: Computes a cell.

        Yields:
            Outcomes as they come. A cell that fails, or whose worker dies, is an outcome too, never an exception.
        """


def describe_error(error: BaseException) -> str:
    """Write an error as one sentence: our own say enough, others are named.

    >>> describe_error(ValueError("lr must be above 0")), describe_error(KeyError("a"))
    ('lr must be above 0', "KeyError: 'a'")
    """
    sentence = " ".join(str(error).split())
    ours = isinstance(error, (ValueError, TypeError, OSError, RuntimeError)) and sentence
    return sentence if ours else f"{type(error).__name__}: {sentence}".rstrip(": ")
