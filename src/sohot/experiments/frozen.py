"""Cells that train heads on frozen features: all of them at once, in one call."""

from collections.abc import Iterator, Sequence

from .cell import Cell
from .engines import Outcome, Work
from .run_cell import Where


class FrozenEngine:
    """Takes all cells at once and trains their heads together, in the process that asked for it.

    Args:
        where: Where images and features lie, and the device.
    """

    def __init__(self, where: Where) -> None:
        self.where = where

    def run(self, cells: Iterator[Cell], work: Work) -> Iterator[Outcome]:  # noqa: ARG002 - an engine's signature
        """Compute cells; see `sohot.experiments.engines.Engine`."""
        claimed = list(cells)
        if claimed:
            yield from run_frozen(claimed, self.where)


def run_frozen(cells: Sequence[Cell], where: Where) -> Iterator[Outcome]:  # noqa: ARG001 - not built yet
    """Train the heads of many cells together; outcomes come one by one.

    Args:
        cells: Cells with `frozen`.
        where: Where images and features lie, and the device.
    """
    raise ValueError("--frozen is not built yet: leave it out to train the network's last layers")
