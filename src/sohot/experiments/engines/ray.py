"""The engine for many machines: cells run as tasks of a Ray cluster."""

import logging
import math
import os
import time
import traceback
from collections.abc import Iterator, Mapping
from typing import Any

from ..._process import describe_error
from ..._ray_cluster import connection, gpus_each, host_and_port, import_ray, slots
from ..._start import prepare_process
from ...functional.plain_checks import check_choice
from ..cell import Cell
from ..result import CellResult
from . import Outcome, Work

_QUEUED = 2
_LOOK_AGAIN_SECONDS = 1.0
_log = logging.getLogger(__name__)


class RayEngine:
    """Computes cells on a Ray cluster, or with Ray on this machine.

    Each cell is a task that requests CPUs and GPUs, so Ray chooses where it runs. When a worker process dies or a
    machine is lost, Ray restarts its cells elsewhere. Machines may join and leave while cells are computed. Only the
    process that calls `run` sees outcomes, one per cell, however often a cell was started.

    Machines need the same versions of Python, Ray and sohot as here, and every path that `work` names (data, weights,
    folders for features and for selection) under the same name, as on a shared file system.

    Args:
        address: `HOST:PORT` of the cluster, if this machine is part of it, or `ray://HOST:PORT` of its client server.
            None uses the variable RAY_ADDRESS, and without it starts Ray on this machine only.
        workers: Maximum number of cells in parallel; None for as many as fit on the cluster.
        device: "auto", "cpu", "cuda" or "mps"; decides on GPUs if `gpus_per_cell` is None.
        cpus_per_cell: CPUs that a cell requests. PyTorch uses that many threads, at least one.
        gpus_per_cell: GPUs that a cell requests; 0.25 lets four cells share one. None means one with device
            "cuda", and with "auto" if the cluster has any when the first cell starts; otherwise none.
        max_retries: How often a cell is restarted after its worker or machine died. An error raised by the work is
            the outcome at once.
        runtime_env: Ray's description of what workers need, such as `{"env_vars": {...}}`. Only used if this object
            opens the connection.

    Raises:
        ValueError: A number or the address is invalid.
    """

    def __init__(
        self,
        address: str | None = None,
        workers: int | None = None,
        device: str = "auto",
        *,
        cpus_per_cell: float = 1.0,
        gpus_per_cell: float | None = None,
        max_retries: int = 3,
        runtime_env: Mapping[str, Any] | None = None,
    ) -> None:
        check_choice(device, ("auto", "cpu", "cuda", "mps"), "device")
        if workers is not None and workers < 1:
            raise ValueError(f"workers must be at least 1, got {workers}")
        if not 0 < cpus_per_cell < math.inf:
            raise ValueError(f"cpus_per_cell must be above 0, got {cpus_per_cell}")
        if gpus_per_cell is not None and not 0 <= gpus_per_cell < math.inf:
            raise ValueError(f"gpus_per_cell must be 0 or more, got {gpus_per_cell}")
        if max_retries < 0:
            raise ValueError(f"max_retries must be 0 or more, got {max_retries}")
        if address is not None:
            host_and_port(address)
        self.address = address
        self.workers = workers
        self.device = device
        self.cpus_per_cell = cpus_per_cell
        self.gpus_per_cell = gpus_per_cell
        self.max_retries = max_retries
        self.runtime_env = dict(runtime_env or {})

    def run(self, cells: Iterator[Cell], work: Work) -> Iterator[Outcome]:
        """Compute cells.

        Args:
            cells: The cells. The next one is taken when the cluster has room for it, or will have soon.
            work: Computes a cell; a function that can be imported on every machine, or `functools.partial` of one.

        Yields:
            Outcomes in order of completion, also of cells that fail or whose workers die repeatedly.

        Raises:
            ModuleNotFoundError: Ray is not installed.
            ConnectionError: The cluster cannot be reached.
            ValueError: No machine of the cluster is large enough for a cell.
        """
        ray = import_ray()
        with connection(self.address, self.runtime_env):
            gpus = self._gpus()
            if not slots(self.cpus_per_cell, gpus):
                raise ValueError(f"no machine of the Ray cluster has {self.cpus_per_cell:g} CPUs and {gpus:g} GPUs")
            task = ray.remote(num_cpus=self.cpus_per_cell, num_gpus=gpus, max_retries=self.max_retries)(_compute)
            # Stopping early leaves some tasks behind: closing the connection ends them. `ray.cancel` would crash our
            # own process if a task ended at the same moment.
            yield from self._outcomes(cells, work, task, gpus)

    def _outcomes(self, cells: Iterator[Cell], work: Work, task: Any, gpus: float) -> Iterator[Outcome]:
        threads = max(1, int(self.cpus_per_cell))
        handed: dict[Any, tuple[Cell, float]] = {}
        more, waited = True, False
        while more or handed:
            room = slots(self.cpus_per_cell, gpus)
            if not room and not waited:
                _log.warning("no machine of the Ray cluster has room for a cell: waiting for one to join")
            waited = not room
            while more and len(handed) < min(room + _QUEUED, self.workers or math.inf):
                cell = next(cells, None)
                if cell is None:
                    more = False
                    break
                named = task.options(name=f"sohot {cell.shift} {cell.split} {cell.method}")
                handed[named.remote(work, cell, threads)] = cell, time.monotonic()
            for reference in _finished(list(handed)):
                cell, since = handed.pop(reference)
                yield self._outcome(reference, cell, since)

    def _outcome(self, reference: Any, cell: Cell, since: float) -> Outcome:
        ray = import_ray()
        try:
            result, error, seconds = ray.get(reference)
        except ray.exceptions.RayTaskError as failure:  # before our own code ran, or when Ray sent back its result
            return Outcome(cell, None, f"Ray could not run the cell: {_end_of(str(failure))}", time.monotonic() - since)
        except ray.exceptions.RayError as failure:
            sentence = f"Ray gave up after {self.max_retries} retries: {' '.join(str(failure).split())}"
            set_up = not isinstance(failure, ray.exceptions.RuntimeEnvSetupError)
            return Outcome(cell, None, sentence, time.monotonic() - since, killed=set_up)
        return Outcome(cell, result, error, seconds)

    def _gpus(self) -> float:
        if self.gpus_per_cell is not None:
            return self.gpus_per_cell
        return gpus_each(self.device)


def _finished(references: list[Any]) -> list[Any]:
    """Wait briefly for a task to finish: machines may have joined meanwhile."""
    if not references:
        return []
    try:
        done, _ = import_ray().wait(references, timeout=_LOOK_AGAIN_SECONDS)
    except SystemError as error:  # how Ray passes on what a signal handler raised
        raise error.__cause__ or error from None
    return list(done)


def _compute(work: Work, cell: Cell, threads: int) -> tuple[CellResult | None, str | None, float]:
    """Compute a cell in a worker; return its result, its error, and how long it took."""
    prepare_process()
    import torch

    os.environ["OMP_NUM_THREADS"] = str(threads)  # for processes that the work starts
    torch.set_num_threads(threads)
    since = time.monotonic()
    result, error = None, None
    try:
        result = work(cell)
    except (Exception, SystemExit) as failure:  # as text: the driver may not know the error's class
        where = "".join(traceback.format_tb(failure.__traceback__, limit=-3))
        error = f"{describe_error(failure)}\n{where}".rstrip()
    return result, error, time.monotonic() - since


def _end_of(text: str) -> str:
    """Return the last non-empty line: Ray puts the error itself there."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no reason given")
