"""Engines compute the cells of a grid, in processes on this machine or on many machines."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ...functional.plain_checks import check_choice
from ..cell import Cell

if TYPE_CHECKING:  # it imports torch; wrong options are reported without
    from ..result import CellResult

ENGINES = ("local", "ray")

Work = Callable[[Cell], "CellResult"]
"""Computes a cell; must be picklable: a module-level function, or `functools.partial` of one."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a cell.

    Attributes:
        cell: The cell.
        result: The result of the work; None if it failed.
        error: Why it failed, in one sentence; None if it did not.
        seconds: How long it took, measured by the worker.
        killed: Whether its worker died, or a GPU had no memory left, each time it was tried: that says nothing about
            the cell, and is not stored.
    """

    cell: Cell
    result: "CellResult | None"
    error: str | None
    seconds: float
    killed: bool = False


class Engine(Protocol):
    """Computes cells in parallel."""

    def run(self, cells: Iterator[Cell], work: Work) -> Iterator[Outcome]:
        """Compute cells.

        Args:
            cells: The cells. The next one is taken only when a worker is free for it, because taking one claims it.
            work: Computes a cell.

        Yields:
            Outcomes in order of completion. A cell that fails, or whose worker dies, is an outcome, not an exception.
        """


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
        workers: Cells to compute in parallel; None for as many as fit on the machine or the cluster.
        device: "auto", "cpu", "cuda" or "mps".
        address: Address of the Ray cluster; None to start one on this machine.
        threads: Threads per cell; None for its share of this machine's, or one on a cluster.
    """
    check_choice(name, ENGINES, "engine")
    if name == "local":
        if address is not None:
            raise ValueError("--address needs --engine ray")
        from .local import LocalEngine

        return LocalEngine(workers, device, threads)
    from .ray import RayEngine

    return RayEngine(address=address, workers=workers, device=device, cpus_per_cell=float(threads or 1))
