"""Which fits train together, and stacks side by side on the cores of a processor."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import chain, islice
from typing import NamedTuple, TypeVar

import torch

from ..methods.settings import HeadSettings
from .network import Shape, tensor_shapes

_CPU_CACHE = 32 * 2**20
"""Bytes at work in one stack on a CPU. Below it more fits at once are quicker, beyond the cache they are slower."""
_CPU_MEMORY = 2**30
_GPU_SHARE = 0.5


class Algorithm(NamedTuple):
    """The settings that all fits of a stack have in common; all others are numbers of each fit's own."""

    orders: tuple[int, ...]
    scope: str | None
    loss: str | None
    pairs: str
    class_weights: str | None
    estimator: str
    feature_scale: str
    is_bounded: bool
    optimizer: str
    momentum: float
    schedule: str
    warmup: float
    steps: int
    steps_of_head: int

    @classmethod
    def of(cls, settings: HeadSettings) -> "Algorithm":
        """Take them out of the settings of a fit."""
        method = settings.resolved_method()
        aligns = method.scope is not None
        return cls(
            method.orders,
            method.scope,
            method.loss,
            method.pairs,
            method.class_weights,
            settings.estimator if aligns else "",
            settings.feature_scale if "feature_scale" in method.looks_at else "",
            settings.norm_bound is not None,
            settings.optimizer,
            settings.momentum,
            settings.schedule,
            settings.warmup,
            settings.steps,
            settings.steps_of_head(),
        )


class StackKey(NamedTuple):
    """What decides with which other fits one can train."""

    shape: Shape
    algorithm: Algorithm
    dtype: torch.dtype
    widths: tuple[int, int]  # rows of the largest class in each domain


def split_stacks(keys: Sequence[StackKey], device: torch.device, memory: int | None) -> list[list[int]]:
    """Split fits into stacks.

    Args:
        keys: What each fit needs.
        device: Where they train.
        memory: Most bytes at work (one fit trains in any case); None for 1 GB on a CPU and half of what is free on a
            GPU.

    Returns:
        For each stack the numbers of its fits.
    """
    on_cpu = device.type == "cpu"
    budget = _budget(device) if memory is None else memory
    groups: dict[StackKey, list[int]] = {}
    for number, key in enumerate(keys):
        # Padding to one width costs arithmetic, which a CPU has little of; on a GPU a second stack costs more.
        groups.setdefault(key if on_cpu else key._replace(widths=(0, 0)), []).append(number)
    stacks = []
    for members in groups.values():
        source, target = (max(keys[number].widths[side] for number in members) for side in (0, 1))
        each = fit_bytes(keys[members[0]]._replace(widths=(source, target)))
        most = max(1, (min(budget // torch.get_num_threads(), _CPU_CACHE) if on_cpu else budget) // each)
        stacks += [members[start : start + most] for start in range(0, len(members), most)]
    return stacks


def fit_bytes(key: StackKey) -> int:
    """About how many bytes one fit needs while it trains: rows, what autograd keeps of them, and parameters."""
    shape, (source, target) = key.shape, key.widths
    algorithm = key.algorithm
    slots = shape.num_classes * (source + target)
    parameters = sum(torch.Size(of_one).numel() for of_one in tensor_shapes(shape).values())
    numbers = slots * (6 * shape.size + 4 * shape.num_classes + 3 * (shape.hidden or 0)) + 7 * parameters
    if algorithm.scope is not None:
        side = source + target if algorithm.scope == "class" else slots
        if algorithm.orders in ((), (2,)) and algorithm.estimator == "plugin":
            side = min(side, shape.size)
        numbers += slots * (5 * shape.size + (3 + 2 * max(algorithm.orders, default=0)) * side)
    elif algorithm.loss is not None:
        pairs = {"none": 0, "cross": shape.num_classes * target, "all": slots}[algorithm.pairs]
        numbers += slots * (5 * shape.size + 6 * pairs)
    return int(numbers * key.dtype.itemsize)


def _budget(device: torch.device) -> int:
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free * _GPU_SHARE)
    return _CPU_MEMORY


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
