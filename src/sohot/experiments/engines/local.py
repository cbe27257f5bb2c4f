"""Cells in processes on this machine, each with its share of the CPU threads or of a GPU."""

import multiprocessing
import os
import pickle
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

from ..._limits import check_processes, check_threads, usable_cores
from ..._process import describe_error, search_path
from ..._start import prepare_process
from ...data.decode import default_workers
from ..cell import Cell
from . import Outcome, Work

MOST_PER_GPU, CORES, GPU_MEMORY, MEMORY = 8, 2, 8 << 30, 4 << 30
"""Most processes that share a GPU by default; and what each needs: cores, bytes of the GPU and of main memory."""
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_DIED = "a worker process died meanwhile, probably because memory ran out; try fewer --workers"
_work: Work


class _Context(SpawnContext):  # a fork would inherit torch's threads and open files in a broken state
    """Starts processes that the pool would wait for at exit, remembers them, and lets them end with this one."""

    def __init__(self) -> None:
        self.workers: list[SpawnProcess] = []

    def Process(self, *args: Any, **options: Any) -> SpawnProcess:  # type: ignore[override] # noqa: N802
        """Make a process."""
        self.workers.append(SpawnProcess(*args, **options, daemon=True))
        return self.workers[-1]


class WorkersCannotStart(RuntimeError):  # noqa: N818 - it names what happened
    """The worker processes ended before they could take a cell."""


class LocalEngine:
    """Processes on this machine. They import what they need once and then take one cell after another.

    If a process dies, mostly because memory ran out, the others start anew with one process less, and the cells that
    were under way are tried again alone, after the others; so are cells for which a GPU had no memory left. All
    processes end with the one that started them, however that ends.

    Args:
        workers: Number of processes; None for one per core, at most 8, or for up to 8 per GPU, as many as cores and
            memory are enough for.
        device: "auto", "cpu", "cuda" or "mps". With "cuda", or "auto" and a GPU, each process sees one GPU.
        threads: Threads per process; None for its share of the cores.
    """

    def __init__(self, workers: int | None = None, device: str = "auto", threads: int | None = None) -> None:
        self.gpus = _gpus() if device in ("auto", "cuda") else []
        usual = len(self.gpus) * _processes_per_gpu(len(self.gpus)) if self.gpus else default_workers()
        self.workers = usual if workers is None else check_processes(workers, "workers")
        share = max(1, usable_cores() // self.workers)
        self.threads = share if threads is None else check_threads(threads, "threads")

    def run(self, cells: Iterator[Cell], work: Work) -> Iterator[Outcome]:
        """Compute cells; see `Engine`."""
        task = pickle.dumps(work)  # here, where an error gives the reason
        workers, again, before = self.workers, list[Cell](), -1
        while len(again) > before:
            before = len(again)
            for outcome in self._compute(cells, task, workers):
                if outcome.killed:
                    again.append(outcome.cell)
                    sentence = f"{outcome.cell.label()}: {outcome.error}; it is tried again at the end"
                    warnings.warn(sentence, stacklevel=2)
                else:
                    yield outcome
            workers = max(1, workers - 1)
        while again:
            for outcome in self._compute(iter([*again]), task, 1):
                again.remove(outcome.cell)
                yield outcome

    def _compute(self, cells: Iterator[Cell], task: bytes, workers: int) -> Iterator[Outcome]:
        """Compute cells until there are no more, or a process dies."""
        context = _Context()
        with self._starting():
            begun = context.Value("i", 0)
            pool = ProcessPoolExecutor(workers, context, _begin, (task, self.threads, self.gpus, begun))
        running, outcomes, died = dict[Future[Outcome], Cell](), list[Outcome](), False
        try:
            while True:
                # Workers get their next cells before outcomes are yielded, so they compute while those are stored.
                for cell in islice(cells, 0 if died else workers - len(running)):
                    with self._starting():
                        running[_submit(pool, cell)] = cell
                yield from outcomes
                if not running:
                    return
                outcomes = []
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    cell = running.pop(future)
                    try:
                        outcomes.append(future.result())
                    except BrokenProcessPool:
                        outcomes.append(Outcome(cell, None, _DIED, 0.0, killed=True))
                        died = True
                    except Exception as error:  # its result cannot be sent back
                        outcomes.append(Outcome(cell, None, describe_error(error), 0.0))
                if died and not begun.value:
                    raise WorkersCannotStart("the worker processes ended before they began; see their output above")
        finally:
            for process in context.workers:
                if process.pid is not None:  # None if it was not started
                    process.kill()  # its current work is lost, and its cell becomes free again
            pool.shutdown()

    @contextmanager
    def _starting(self) -> Iterator[None]:
        """Let processes start with variables that libraries read on import, and out of reach of Ctrl-C."""
        variables = {**dict.fromkeys(_THREADS, str(self.threads)), **search_path()}
        before = {name: os.environ[name] for name in variables if name in os.environ}
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if hasattr(signal, "pthread_sigmask") else None
        os.environ.update(variables)
        try:
            yield
        finally:
            for name in variables.keys() - before.keys():
                del os.environ[name]
            os.environ.update(before)
            if mask is not None:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _submit(pool: ProcessPoolExecutor, cell: Cell) -> Future[Outcome]:
    try:
        return pool.submit(_run, cell)
    except BrokenProcessPool as error:  # since we last looked
        future = Future[Outcome]()
        future.set_exception(error)
        return future


def _begin(task: bytes, threads: int, gpus: Sequence[str], begun: Any) -> None:
    """Prepare a worker process: its threads, its work and its GPU."""
    global _work
    threading.Thread(target=_die_with_parent, name="sohot-parent", daemon=True).start()
    prepare_process()
    if hasattr(os, "setsid"):
        os.setsid()  # signals to the driver's group reach only the driver, which ends its workers itself
    import torch

    torch.set_num_threads(threads)
    _work = pickle.loads(task)
    with begun.get_lock():
        if gpus:
            os.environ["CUDA_VISIBLE_DEVICES"] = gpus[begun.value % len(gpus)]
        begun.value += 1


def _run(cell: Cell) -> Outcome:
    """Compute a cell in a worker process."""
    from torch import OutOfMemoryError

    began = time.perf_counter()
    try:
        return Outcome(cell, _work(cell), None, time.perf_counter() - began)
    except Exception as error:
        if os.environ.get("SOHOT_TRACEBACK"):
            traceback.print_exception(error)
        full = isinstance(error, OutOfMemoryError)  # of a GPU that it shares
        return Outcome(cell, None, describe_error(error), time.perf_counter() - began, killed=full)


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)  # even during a computation


def _gpus() -> list[str]:
    """List the GPUs that this process may use, as in CUDA_VISIBLE_DEVICES."""
    import torch

    count = torch.cuda.device_count()
    visible = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    return visible[:count] if visible else [str(number) for number in range(count)]


def _processes_per_gpu(gpus: int) -> int:
    """Return how many processes share a GPU by default: one alone leaves it idle while it computes in Python."""
    import psutil
    import torch

    room = torch.cuda.get_device_properties(0).total_memory // GPU_MEMORY
    here = min(usable_cores() // CORES, psutil.virtual_memory().available // MEMORY) // gpus
    return max(min(room, here, MOST_PER_GPU), 1)
