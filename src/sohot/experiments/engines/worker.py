"""A worker process of the local engine: it computes the cells that it is handed, and tells how each ended."""

import multiprocessing
import os
import pickle
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from ..._process import describe_error
from ..._start import prepare_process
from ..cell import Cell
from . import Ended, Work, WorkTogether

READY, DONE, FAILED, FULL = "ready", "done", "failed", "full"
"""What a worker tells: that it begins, that a cell is done or has failed, and that a GPU's memory was full."""


class Message(NamedTuple):
    """What a worker tells of a cell: the result or the error, and how long it took."""

    kind: str
    cell: Cell | None = None
    value: Any = None
    seconds: float = 0.0


def serve(pipe: Connection, task: bytes, threads: int) -> None:
    """Compute cells until there are no more; the main function of a worker process."""
    _die_with_parent()
    prepare_process()
    if hasattr(os, "setsid"):
        os.setsid()  # signals to the driver's group reach only the driver, which ends its workers itself
    import torch

    torch.set_num_threads(threads)
    work: Work = pickle.loads(task)
    pipe.send(Message(READY))
    with suppress(EOFError, BrokenPipeError):
        while True:
            for ended in _compute(work, pipe.recv()):
                pipe.send(_message(ended))


def _compute(work: Work, cells: Sequence[Cell]) -> Iterator[Ended]:
    if len(cells) > 1 and isinstance(work, WorkTogether):
        yield from work.together(cells)
        return
    for cell in cells:
        began = time.perf_counter()
        try:
            yield Ended(cell, work(cell), None, time.perf_counter() - began)
        except Exception as error:
            yield Ended(cell, None, error, time.perf_counter() - began)


def _message(ended: Ended) -> Message:
    from torch import OutOfMemoryError

    cell, result, error, seconds = ended
    if error is None:
        return Message(DONE, cell, result, seconds)
    if os.environ.get("SOHOT_TRACEBACK"):
        traceback.print_exception(error)
    return Message(FULL if isinstance(error, OutOfMemoryError) else FAILED, cell, describe_error(error), seconds)


def _die_with_parent() -> None:
    """End this process when its parent is gone, even during a computation."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, name="sohot-parent", daemon=True).start()
