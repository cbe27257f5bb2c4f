"""Work done in turns: it pauses where it has handed its work to a GPU, so that other work can be handed over, too."""

from collections.abc import Generator
from typing import TypeAlias, TypeVar

Result = TypeVar("Result")

Turns: TypeAlias = Generator[None, None, Result]
"""Work that pauses between its turns and returns its result after the last one."""


def do_all(work: Turns[Result]) -> Result:
    """Do all turns of a piece of work, one after the other.

    Example:
        >>> def work() -> Turns[int]:
        ...     yield
        ...     return 3
        >>> do_all(work())
        3
    """
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: Result = end.value
            return result
