"""Engines: what computes the cells of a grid, in processes of this machine or on many."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ...functional.plain_checks import check_choice
from ..cell import Cell

if TYPE_CHECKING:  # it imports torch, which a wrong option need not wait for
    from ..result import CellResult

ENGINES = ("local", "ray")

Work = Callable[[Cell], "CellResult"]
"""Computes a cell; can be pickled: a function of a module, or `functools.partial` of one."""


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
    result: "CellResult | None"
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


def make_engine(
    name: str = "local",
    *,
    workers: int | None = None,
    device: str = "auto",
    address: str | None = None,
    threads: int | None = None,
) -> Engine:
    """Make an engine.

    Args:
        name: "local" or "ray".
        workers: Cells computed side by side; None for what the machine, or the cluster, has room for.
        device: "auto", "cpu", "cuda" or "mps".
        address: Where the Ray cluster is; None to start one on this machine.
        threads: Threads of each cell; None for its share of this machine's, or one on a cluster.
    """
    check_choice(name, ENGINES, "engine")
    if name == "local":
        if address is not None:
            raise ValueError("--address belongs to --engine ray")
        from .local import LocalEngine

        return LocalEngine(workers, device, threads)
    from .ray import RayEngine

    return RayEngine(address=address, workers=workers, device=device, cpus_per_cell=float(threads or 1))
