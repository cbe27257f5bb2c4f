"""Cells in processes on this machine, each with its share of the CPU threads or of a GPU."""

import multiprocessing
import os
import pickle
import signal
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from operator import length_hint
from typing import NamedTuple

from ..._limits import check_processes, check_threads, usable_cores
from ..._process import search_path
from ...data.decode import default_workers
from ..cell import Cell
from . import Outcome, Work
from .worker import DONE, FULL, READY, Message, serve

RETRIES = 2
"""How often a cell is tried again whose worker was killed from outside."""
MOST_PER_GPU, CORES, GPU_MEMORY, MEMORY = 8, 2, 8 << 30, 4 << 30
"""Most processes that share a GPU by default; and what each needs: cores, bytes of the GPU and of main memory."""
_OUTSIDE = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP")
"""Signals that others send: the system sends SIGKILL when memory runs out."""
_CONTEXT = multiprocessing.get_context("spawn")  # a fork would inherit torch's threads and open files in a broken state


class WorkersCannotStart(RuntimeError):  # noqa: N818 - it names what happened
    """A worker process ended before it could take a cell."""


@dataclass
class _Worker:
    """One process, and the cell that it computes."""

    process: BaseProcess
    pipe: Connection
    ready: bool = False
    cell: Cell | None = None
    began: float = field(default_factory=time.perf_counter)

    def hand(self, cell: Cell) -> None:
        """Let it compute a cell."""
        with suppress(BrokenPipeError):  # it has just died, which `_wait` notices
            self.pipe.send(cell)
        self.cell, self.began = cell, time.perf_counter()


class _News(NamedTuple):
    """How a worker's cell ended."""

    slot: int
    outcome: Outcome
    crowded: bool = False  # memory has run out, which says nothing about the cell: there should be fewer workers


class LocalEngine:
    """Processes on this machine. They import what they need once and then take one cell after another.

    If a process is killed from outside, mostly because memory ran out, it is not replaced, and its cell is tried again
    alone, after the others; so is a cell for which a GPU had no memory left. If it crashes, only its own cell fails.
    All of them end with the process that started them, however that ends.

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
        slots, workers = list(range(self.workers)), dict[int, _Worker]()
        tries, again = Counter[Cell](), list[Cell]()
        outcomes: list[Outcome] = []
        try:
            for slot in slots[: length_hint(cells)]:  # they start while the first cell is being prepared
                workers[slot] = self._start(slot, task)
            while True:
                # Workers get their next cells before outcomes are yielded, so they compute while those are stored.
                for slot in slots:
                    worker = workers.get(slot)
                    if (worker is None or not worker.cell) and (cell := next(cells, None)):
                        workers[slot] = self._hand(worker, slot, cell, task)
                yield from outcomes
                _stop(workers.pop(slot) for slot in list(workers) if slot not in slots and not workers[slot].cell)
                busy = [slot for slot, worker in workers.items() if worker.cell]
                if not busy and again:
                    busy = slots[:1]
                    _stop(workers.pop(slot) for slot in list(workers) if slot not in busy)  # they hold memory
                    workers[busy[0]] = self._hand(workers.get(busy[0]), busy[0], again.pop(0), task)
                if not busy:
                    return
                outcomes = []
                for news in _wait({slot: workers[slot] for slot in busy}):
                    cell = news.outcome.cell
                    tries[cell] += 1
                    if not news.crowded or tries[cell] > RETRIES:
                        outcomes.append(news.outcome)
                        continue
                    again.append(cell)
                    if len(slots) > 1 and news.slot in slots:
                        slots.remove(news.slot)
                    _say_again(news.outcome, len(slots))
        finally:
            _stop(workers.values())

    def _hand(self, worker: _Worker | None, slot: int, cell: Cell, task: bytes) -> _Worker:
        """Give a cell to a worker, or to a new one if there is none or it has died."""
        if worker is not None and not worker.process.is_alive():
            _stop([worker])
            worker = None
        worker = worker or self._start(slot, task)
        worker.hand(cell)
        return worker

    def _start(self, slot: int, task: bytes) -> _Worker:
        ours, theirs = _CONTEXT.Pipe()
        process = _CONTEXT.Process(
            target=serve, args=(theirs, task, self.threads), name=f"sohot-worker-{slot}", daemon=True
        )
        with _environment(self._variables(slot)), _ctrl_c_held():
            process.start()
        theirs.close()
        return _Worker(process, ours)

    def _variables(self, slot: int) -> dict[str, str]:
        """Environment variables of a worker, which libraries read on import."""
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        variables = {**dict.fromkeys(names, str(self.threads)), **search_path()}
        if self.gpus:
            variables["CUDA_VISIBLE_DEVICES"] = self.gpus[slot % len(self.gpus)]
        return variables


def _wait(busy: Mapping[int, _Worker]) -> list[_News]:
    """Wait until a worker sends a message or dies."""
    heard = wait([worker.pipe for worker in busy.values()])  # a pipe whose other end is closed counts as ready
    return [news for slot, worker in busy.items() if worker.pipe in heard and (news := _hear(slot, worker))]


def _hear(slot: int, worker: _Worker) -> _News | None:
    """Read a worker's message; None if it only reports that it is ready."""
    try:
        message: Message = worker.pipe.recv()
    except (EOFError, OSError):
        return _end_of(slot, worker)
    if message.kind == READY:
        worker.ready, worker.began = True, time.perf_counter()
        return None
    kind, cell, value, seconds = message
    assert cell is not None
    worker.cell = None
    outcome = Outcome(cell, value, None, seconds) if kind == DONE else Outcome(cell, None, value, seconds)
    return _News(slot, outcome, crowded=kind == FULL)


def _end_of(slot: int, worker: _Worker) -> _News:
    """Say what became of the cell of a worker that has ended."""
    worker.process.join()
    ending, killed = _ending(worker.process.exitcode or 0)
    if not worker.ready and not killed:
        raise WorkersCannotStart(f"a worker process ended before it began ({ending}); see its output above") from None
    sentence = f"its worker process ended during the computation ({ending})"
    seconds = time.perf_counter() - worker.began
    cell, worker.cell = worker.cell, None
    assert cell is not None  # only workers that compute are waited for
    return _News(slot, Outcome(cell, None, sentence, seconds, killed), crowded=killed)


def _ending(code: int) -> tuple[str, bool]:
    """Say how a process ended, and whether it was killed from outside.

    >>> _ending(3), _ending(-15)
    (('exit code 3', False), ('killed by SIGTERM', True))
    """
    if code >= 0:
        return f"exit code {code}", False
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    advice = ", probably because memory ran out; try fewer --workers" if name == "SIGKILL" else ""
    return f"killed by {name}{advice}", name in _OUTSIDE


def _say_again(outcome: Outcome, workers: int) -> None:
    """Say that a cell is tried again, and with how many workers the others go on."""
    left = f"{workers} worker{'s go' if workers > 1 else ' goes'} on"
    sentence = f"{outcome.cell.label()}: {outcome.error}: {left}, and the cell is tried again alone at the end"
    warnings.warn(sentence, stacklevel=3)


def _stop(workers: Iterable[_Worker]) -> None:
    """End processes at once: their current work is lost, and their cells become free again."""
    stopped = list(workers)
    for worker in stopped:
        worker.pipe.close()
        worker.process.kill()
    for worker in stopped:
        worker.process.join()
        worker.process.close()


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _ctrl_c_held() -> Iterator[None]:
    """Block Ctrl-C for a moment: a process started meanwhile never receives it, not even while it imports."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
