"""Cells in processes on this machine, each with its share of the CPU threads or one GPU."""

import multiprocessing
import os
import pickle
import signal
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from ..._limits import check_processes, check_threads, usable_cores
from ..._process import search_path
from ..._start import prepare_process
from ...data.decode import default_workers
from ..cell import Cell
from . import Outcome, Work, describe_error

READY, DONE, FAILED = "ready", "done", "failed"
RETRIES = 2
"""How often a cell is tried again whose worker was killed from outside."""
_OUTSIDE = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP")
"""Signals that others send: the system sends SIGKILL when memory runs out."""
_CONTEXT = multiprocessing.get_context("spawn")  # a fork would inherit torch's threads and open files in a broken state


class WorkersCannotStart(RuntimeError):  # noqa: N818 - it names what happened
    """A worker process ended before it could take a cell."""


@dataclass
class _Worker:
    """One process, and the cell it computes."""

    process: BaseProcess
    pipe: Connection
    ready: bool = False
    cell: Cell | None = None
    began: float = field(default_factory=time.perf_counter)


class LocalEngine:
    """Processes on this machine. They import what they need once and then take one cell after another.

    If a process is killed from outside, mostly because memory ran out, it is not replaced, and its cell is tried again
    alone, after the others. If it crashes, only its own cell fails. All of them end with the process that started them,
    however that ends.

    Args:
        workers: Number of processes; None for one per core, at most 8, or one per GPU.
        device: "auto", "cpu", "cuda" or "mps". With "cuda", or "auto" and a GPU, each process sees one GPU.
        threads: Threads per process; None for its share of the cores.
    """

    def __init__(self, workers: int | None = None, device: str = "auto", threads: int | None = None) -> None:
        self.gpus = _gpus() if device in ("auto", "cuda") else []
        usual = len(self.gpus) or default_workers()
        self.workers = usual if workers is None else check_processes(workers, "workers")
        share = max(1, usable_cores() // self.workers)
        self.threads = share if threads is None else check_threads(threads, "threads")

    def run(self, cells: Iterator[Cell], work: Work) -> Iterator[Outcome]:
        """Compute cells; see `Engine`."""
        task = pickle.dumps(work)  # here, where an error gives the reason
        slots, workers = list(range(self.workers)), dict[int, _Worker]()
        tries, killed = Counter[Cell](), list[Cell]()
        outcomes: list[Outcome] = []
        try:
            while True:
                # Workers get their next cell before outcomes are yielded, so they compute while those are stored.
                for slot in slots:
                    worker = workers.get(slot)
                    if (worker is None or worker.cell is None) and (cell := next(cells, None)) is not None:
                        workers[slot] = self._hand(worker, slot, cell, task)
                yield from outcomes
                busy = [slot for slot, worker in workers.items() if worker.cell is not None]
                if not busy and killed:
                    busy = slots[:1]
                    _stop([workers.pop(slot) for slot in list(workers) if slot not in busy])  # they hold memory
                    workers[busy[0]] = self._hand(workers.get(busy[0]), busy[0], killed.pop(0), task)
                if not busy:
                    return
                outcomes = []
                for slot, outcome in _wait({slot: workers[slot] for slot in busy}):
                    tries[outcome.cell] += 1
                    if outcome.killed and tries[outcome.cell] <= RETRIES:
                        killed.append(outcome.cell)
                        if len(slots) > 1 and slot in slots:
                            slots.remove(slot)
                        _say_killed(outcome, len(slots))
                    else:
                        outcomes.append(outcome)
        finally:
            _stop(workers.values())

    def _hand(self, worker: _Worker | None, slot: int, cell: Cell, task: bytes) -> _Worker:
        """Give a cell to a worker, or to a new one if there is none or it has died."""
        if worker is not None and not worker.process.is_alive():
            _stop([worker])
            worker = None
        worker = worker or self._start(slot, task)
        with suppress(BrokenPipeError):  # it has just died, which `_wait` notices
            worker.pipe.send(cell)
        worker.cell, worker.began = cell, time.perf_counter()
        return worker

    def _start(self, slot: int, task: bytes) -> _Worker:
        ours, theirs = _CONTEXT.Pipe()
        process = _CONTEXT.Process(
            target=_serve, args=(theirs, task, self.threads), name=f"sohot-worker-{slot}", daemon=True
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


def _wait(busy: Mapping[int, _Worker]) -> list[tuple[int, Outcome]]:
    """Wait until a worker sends a message or dies; return the outcomes by slot."""
    outcomes = []
    heard = wait([worker.pipe for worker in busy.values()])  # a pipe whose other end is closed counts as ready
    for slot, worker in busy.items():
        if worker.pipe in heard and (outcome := _hear(worker)) is not None:
            worker.cell = None
            outcomes.append((slot, outcome))
    return outcomes


def _hear(worker: _Worker) -> Outcome | None:
    """Read a worker's message; None if it only reports that it is ready."""
    cell = worker.cell
    assert cell is not None
    try:
        kind, value, seconds = worker.pipe.recv()
    except (EOFError, OSError):
        worker.process.join()
        ending, killed = _ending(worker.process.exitcode or 0)
        if not worker.ready and not killed:
            raise WorkersCannotStart(
                f"a worker process ended before it began ({ending}); see its output above"
            ) from None
        sentence = f"its worker process ended during the computation ({ending})"
        return Outcome(cell, None, sentence, time.perf_counter() - worker.began, killed)
    if kind == READY:
        worker.ready, worker.began = True, time.perf_counter()
        return None
    return Outcome(cell, value, None, seconds) if kind == DONE else Outcome(cell, None, value, seconds)


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


def _say_killed(outcome: Outcome, workers: int) -> None:
    left = f"{workers} worker{'s go' if workers > 1 else ' goes'} on"
    warnings.warn(
        f"{outcome.cell.label()}: {outcome.error}: {left}, and the cell is tried again alone at the end", stacklevel=3
    )


def _stop(workers: Any) -> None:
    """End processes at once: their current work is lost, and their cells become free again."""
    stopped = list(workers)
    for worker in stopped:
        worker.pipe.close()
        worker.process.kill()
    for worker in stopped:
        worker.process.join()
        worker.process.close()


def _serve(pipe: Connection, task: bytes, threads: int) -> None:
    """Compute cells until there are no more; the main function of a worker process."""
    _die_with_parent()
    prepare_process()
    if hasattr(os, "setsid"):
        os.setsid()  # signals to the driver's group reach only the driver, which ends its workers itself
    import torch

    torch.set_num_threads(threads)
    work: Work = pickle.loads(task)
    pipe.send((READY, None, 0.0))
    with suppress(EOFError, BrokenPipeError):
        while True:
            pipe.send(_attempt(work, pipe.recv()))


def _attempt(work: Work, cell: Cell) -> tuple[str, Any, float]:
    began = time.perf_counter()
    try:
        result = work(cell)
        return DONE, result, time.perf_counter() - began
    except Exception as error:
        if os.environ.get("SOHOT_TRACEBACK"):
            import traceback

            traceback.print_exc()
        return FAILED, describe_error(error), time.perf_counter() - began


def _die_with_parent() -> None:
    """End this process when its parent is gone, even during a computation."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, name="sohot-parent", daemon=True).start()


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
