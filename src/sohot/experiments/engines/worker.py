"""A worker process of the local engine: it computes the cells that it is handed, and tells how each ended."""

import multiprocessing
import os
import pickle
import threading
import time
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from ..._process import describe_error
from ..._start import prepare_process
from ..cell import Cell
from . import Work

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
            pipe.send(_compute(work, pipe.recv()))


def _compute(work: Work, cell: Cell) -> Message:
    from torch import OutOfMemoryError

    began = time.perf_counter()
    try:
        return Message(DONE, cell, work(cell), time.perf_counter() - began)
    except Exception as error:
        if os.environ.get("SOHOT_TRACEBACK"):
            traceback.print_exception(error)
        kind = FULL if isinstance(error, OutOfMemoryError) else FAILED
        return Message(kind, cell, describe_error(error), time.perf_counter() - began)


def _die_with_parent() -> None:
    """End this process when its parent is gone, even during a computation."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, name="sohot-parent", daemon=True).start()
