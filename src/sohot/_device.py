"""The device that torch uses, its threads, and work done side by side on them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import chain, islice
from typing import TypeVar

import torch

from ._limits import check_threads, usable_cores

KINDS = ("cuda", "mps", "cpu")
"""Kinds of devices, most preferred first."""


def choose_device(name: str, kinds: Sequence[str] = KINDS) -> torch.device:
    """Choose a device by name; "auto" means the first kind that this machine has.

    Args:
        name: "auto" or one of the kinds.
        kinds: The acceptable kinds.

    Raises:
        ValueError: This machine has no such device.

    Example:
        >>> choose_device("cpu")
        device(type='cpu')
    """
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    found = [kind for kind in kinds if there.get(kind) and name in ("auto", kind)]
    if not found:
        raise ValueError(f"--device {name}: this machine has no such device")
    return torch.device(found[0])


def use_threads(count: int | None) -> None:
    """Compute on this many threads; None for one per core that this process may use."""
    torch.set_num_threads(min(torch.get_num_threads(), usable_cores()) if count is None else check_threads(count))


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread: no slower for small work, and a fixed order of summation gives the same result.

    >>> with one_thread():
    ...     torch.get_num_threads()
    1
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


Result = TypeVar("Result")

MOST = 8
"""Most jobs at a time: each spends a small share in Python, which runs one thread at a time."""


def side_by_side(jobs: Iterable[Callable[[], Result]], device: torch.device) -> Iterator[Result]:
    """Run jobs; on a CPU as many in parallel as torch has threads (at most 8), with one thread each.

    Work too small to split among threads is faster so, and no core waits for another one, which on a busy machine may
    have other work. A single job gets all threads. Jobs are taken from the iterable one by one, as workers become free.

    Args:
        jobs: The jobs.
        device: Where they compute; on a GPU they run one after the other.

    Yields:
        The results, as jobs finish.

    Example:
        >>> sorted(side_by_side([lambda: 2, lambda: 1], torch.device("cpu")))
        [1, 2]
    """
    threads = torch.get_num_threads()
    workers = min(threads, MOST) if device.type == "cpu" else 1
    coming = iter(jobs)
    first = list(islice(coming, 2))
    if workers == 1 or len(first) < 2:
        for job in chain(first, coming):
            yield job()
        return
    waiting: set[Future[Result]] = set()
    with ThreadPoolExecutor(workers, "sohot-job", torch.set_num_threads, (1,)) as pool:
        try:
            for job in chain(first, coming):
                waiting.add(pool.submit(job))
                if len(waiting) > workers:  # one job waits for the next free worker
                    ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    yield from (one.result() for one in ended)
            while waiting:
                ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (one.result() for one in ended)
        finally:
            pool.shutdown(cancel_futures=True)
            torch.set_num_threads(threads)  # the default of new threads is process-wide


def in_order(numbered: Iterable[tuple[int, Result]]) -> Iterator[Result]:
    """Return results in the order of their numbers 0, 1, …, each as soon as those before it are there.

    >>> list(in_order([(1, "b"), (0, "a"), (2, "c")]))
    ['a', 'b', 'c']
    """
    early: dict[int, Result] = {}
    due = 0
    for number, result in numbered:
        early[number] = result
        while due in early:
            yield early.pop(due)
            due += 1
