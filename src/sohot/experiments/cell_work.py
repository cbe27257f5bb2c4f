"""The work on a grid's cells: one at a time, or several in turns on one GPU."""

import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from .._device import choose_device
from .._turns import Turns, do_all
from ..data.pools import SUPERVISED
from ..training.loop import StopRequest
from ..training.randomness import reproducible
from .cell import Cell
from .cell_training import Company, Workplace
from .engines import Ended
from .result import CellResult
from .run_cell import run_cell, run_cell_in_turns

_BROKEN: tuple[type[Exception], ...] = (torch.AcceleratorError,) if hasattr(torch, "AcceleratorError") else ()
"""Errors after which a process cannot use its GPU any more; nobody knows whose work caused them."""

ROOM = 0.25
"""Share of a GPU's memory that stays free for cells that grow, and for other processes."""


@dataclass(frozen=True)
class CellWork:
    """Computes cells of a grid; see `sohot.experiments.engines.Work`.

    Args:
        where: The folders of images and features, and the device.
    """

    where: Workplace

    def __call__(self, cell: Cell) -> CellResult:
        """Train and test a cell."""
        result = run_cell(cell, self.where)
        _has_room(choose_device(self.where.device))  # else what it used may be missing to other processes
        return result

    def together(self, cells: Sequence[Cell]) -> Iterator[Ended]:
        """Train and test several cells in turns on one GPU, each as if it were alone.

        The steps of a small network leave most of a GPU idle, and a process waits for them whenever it reads their
        numbers. So each cell hands over some steps, on a stream of its own, while the GPU computes those of the others.

        Args:
            cells: The cells.

        Yields:
            The result of each, or its error.
        """
        device = choose_device(self.where.device)
        clock = _SharedClock()
        waiting, taking = list(reversed(cells)), list[_Taking]()
        with reproducible(0, device.type):  # kernels stay deterministic until the last cell has ended
            while waiting or taking:
                while waiting and (_has_room(device) or not taking):
                    clock.share(len(taking) + 1)
                    taking.append(_Taking(waiting.pop(), self.where, clock, device))
                    taking[-1].turn()
                    taking[-1].place.wait()  # for what others share with it
                    taking[-1].turn()  # its first steps are computed while the next cell is set up
                for one in taking:
                    one.turn()
                yield from (one.ended for one in taking if one.ended is not None)
                taking = [one for one in taking if one.ended is None]
                clock.share(len(taking))


def takes_turns(cell: Cell) -> bool:
    """Tell whether the steps of a cell draw no random numbers outside the GPU, and so may alternate with others'.

    >>> takes_turns(Cell("office31", "A-W", 1, "so", "lite0"))
    True
    >>> takes_turns(Cell("office31", "A-W", 1, "so", "lite0", pool="inductive"))
    False
    """
    changed = any(cell.settings.get(name) for name in ("augment", "compile"))
    return cell.pool == SUPERVISED and cell.select == "none" and not changed


class _SharedClock:
    """Counts seconds divided by the number of cells under way, so that their times add up to the time that passed."""

    def __init__(self) -> None:
        self._count, self._since, self._passed = 1, time.perf_counter(), 0.0

    def __call__(self) -> float:
        return self._passed + (time.perf_counter() - self._since) / self._count

    def share(self, count: int) -> None:
        """Divide the time from now on among so many cells."""
        self._passed, self._since, self._count = self(), time.perf_counter(), max(count, 1)


class _Taking:
    """A cell under way, until it has `ended`."""

    def __init__(self, cell: Cell, where: Workplace, clock: _SharedClock, device: torch.device) -> None:
        self.cell, self.clock, self.began = cell, clock, clock()
        self.place = _Place(device)
        self.turns: Turns[CellResult] = run_cell_in_turns(cell, where, Company(StopRequest(), clock))
        self.ended: Ended | None = None

    def turn(self) -> None:
        """Do its next turn, if it has not ended, or all of them if it has to do them at once."""
        if self.ended is not None:
            return
        try:
            with self.place.taken():
                if takes_turns(self.cell):
                    next(self.turns)
                else:
                    self._end(do_all(self.turns), None)
        except StopIteration as end:
            self._end(end.value, None)
        except _BROKEN:
            raise
        except Exception as error:  # one cell's failure does not affect the others
            self._end(None, error)

    def _end(self, result: CellResult | None, error: Exception | None) -> None:
        self.ended = Ended(self.cell, result, error, self.clock() - self.began)
        self.place.leave()


class _Place:
    """A stream of work on a GPU, and one of random numbers, of one cell; a CPU, for tests, has neither.

    A captured step keeps to the random numbers that were in use when it was captured.
    """

    def __init__(self, device: torch.device) -> None:
        self.stream: torch.cuda.Stream | None = None
        if device.type == "cuda":
            self.stream = _streams.pop() if _streams else torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
            self.stream.wait_stream(torch.cuda.default_stream(device))
            self.random = _generator().clone_state()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Let work inside use them."""
        if self.stream is None:
            yield
            return
        generator = _generator()
        before = generator.graphsafe_get_state()
        generator.graphsafe_set_state(self.random)
        try:
            with torch.cuda.stream(self.stream):
                yield
        finally:
            generator.graphsafe_set_state(before)

    def wait(self) -> None:
        """Wait for the work that was handed over."""
        if self.stream is not None:
            self.stream.synchronize()

    def leave(self) -> None:
        """Let another cell have the stream: libraries keep memory for every one they see."""
        if self.stream is not None:
            self.wait()
            _streams.append(self.stream)


_streams: list[torch.cuda.Stream] = []
"""Streams that no cell uses."""


def _generator() -> torch.Generator:
    return torch.cuda.default_generators[torch.cuda.current_device()]


def _has_room(device: torch.device) -> bool:
    """Tell whether a GPU has memory for one more cell; return what is not in use first, if not."""
    if device.type != "cuda" or _free(device) >= ROOM:
        return True
    gc.collect()  # the end of a cell frees what it used, except for circles
    torch.cuda.empty_cache()
    return _free(device) >= ROOM


def _free(device: torch.device) -> float:
    free, total = torch.cuda.mem_get_info(device)
    return free / total
