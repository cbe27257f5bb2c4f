"""The next batch, read while a GPU works on the current one."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

import torch

from .randomness import random_state

Batch = TypeVar("Batch")


class ReadAhead(Generic[Batch]):
    """Reads batches by the number of their step, one ahead in a thread of its own.

    Reading may draw from the processor's random generators. What is drawn ahead belongs to a step still to come, so a
    checkpoint needs the state from before: `random_state` gives it. What reading starts on the GPU queues behind the
    work of the current step (both threads use one stream), so only the processor's part of it runs beside that.

    Args:
        read: Gives the batch of a step.
        last: Number of steps: none is read beyond them.
        gpu: The GPU to read ahead for; None to read in the calling thread, in order.
    """

    def __init__(self, read: Callable[[int], Batch], last: int, gpu: torch.device | None) -> None:
        self._read, self._last = read, last
        self._pool = None
        if gpu is not None:  # pinned memory belongs to the current device, which each thread chooses for itself
            self._pool = ThreadPoolExecutor(1, "sohot-ahead", initializer=torch.cuda.set_device, initargs=(gpu,))
        self._next: tuple[int, Future[Batch]] | None = None
        self._before: dict[str, Any] | None = None

    def batch(self, step: int) -> Batch:
        """Give the batch of a step, and begin to read the one after it."""
        if self._pool is None:
            return self._read(step)
        waiting, self._next = self._next, None
        batch = waiting[1].result() if waiting is not None and waiting[0] == step else self._read(step)
        if step + 1 < self._last:
            self._before = random_state()
            self._next = step + 1, self._pool.submit(self._read, step + 1)
        return batch

    def random_state(self) -> dict[str, Any]:
        """Give the state of all generators as it would be had nothing been read ahead."""
        now = random_state()
        if self._next is None or self._before is None:
            return now
        return {**self._before, "cuda": now["cuda"]}  # what the step itself has drawn, it has drawn on the GPU

    def close(self) -> None:
        """End the thread."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
