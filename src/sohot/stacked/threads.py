"""Stacks side by side on the cores of a processor."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import chain, islice
from typing import TypeVar

import torch

Result = TypeVar("Result")

MOST = 8
"""Jobs at a time: Python itself, which takes a small share of each, does one thing at a time."""


def side_by_side(jobs: Iterable[Callable[[], Result]], device: torch.device) -> Iterator[Result]:
    """Do jobs, on a processor as many at a time as torch has threads (at most 8), each with one of them.

    The products of a stack are too small to share out among threads, so each core had better have stacks of its own.
    A job that is alone has all threads. Jobs are asked for one by one, when there is room.

    Args:
        jobs: What to do.
        device: Where it is computed; on a GPU one after the other.

    Yields:
        What the jobs give, as they end.

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
    with ThreadPoolExecutor(workers, "stack", torch.set_num_threads, (1,)) as pool:
        try:
            for job in chain(first, coming):
                waiting.add(pool.submit(job))
                if len(waiting) > workers:  # one is ready for whoever is free next
                    ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    yield from (one.result() for one in ended)
            while waiting:
                ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (one.result() for one in ended)
        finally:
            pool.shutdown(cancel_futures=True)
            torch.set_num_threads(threads)  # what new threads begin with is one number for the whole process
