"""The processes (ranks) that train together: which one this is, its share of a batch, and what all must agree on."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from .errors import Diverged, Interrupted

Value = TypeVar("Value")


@dataclass(frozen=True)
class Ranks:
    """How many processes train together, and which one this is.

    Attributes:
        count: Number of processes over all machines.
        own: Number of this one, from 0.
        local_count: Number of processes on this machine.
        local: Number of this one on its machine.
    """

    count: int = 1
    own: int = 0
    local_count: int = 1
    local: int = 0

    @classmethod
    def here(cls) -> "Ranks":
        """Read the ranks set by `torchrun` or `sohot fit --devices`; one rank if there are none.

        >>> Ranks.here()
        Ranks(count=1, own=0, local_count=1, local=0)
        """
        if "TORCHELASTIC_RUN_ID" not in os.environ:
            return cls()
        names = ("WORLD_SIZE", "RANK", "LOCAL_WORLD_SIZE", "LOCAL_RANK")
        return cls(*(int(os.environ[name]) for name in names))

    @property
    def first(self) -> bool:
        """Whether this process is the one that writes and prints."""
        return self.own == 0

    @property
    def several(self) -> bool:
        """Whether there is more than one process."""
        return self.count > 1

    def shares(self, rows: int) -> list[int]:
        """Divide rows: how many each rank gets, in rank order; the numbers differ by at most one.

        >>> Ranks(count=3).shares(7)
        [2, 2, 3]
        """
        ends = [rows * (rank + 1) // self.count for rank in range(self.count)]
        return [end - start for start, end in zip([0, *ends], ends, strict=False)]

    def share(self, rows: Tensor) -> Tensor:
        """Return this rank's rows of a batch.

        A rank without rows gets the batch's first row, so that its layers run (batch normalisation and the exchange of
        gradients wait for every rank); `gather` leaves that row out.

        >>> Ranks(count=2, own=1).share(torch.arange(5))
        tensor([2, 3, 4])
        """
        sizes = self.shares(len(rows))
        start = sum(sizes[: self.own])
        return rows[start : start + sizes[self.own]] if sizes[self.own] else rows[:1]

    def from_first(self, make: Callable[[], Value]) -> Value:
        """Let the first rank compute a value and send it to every rank."""
        if not self.several:
            return make()
        box: list[Any] = [make() if self.first else None]
        dist.broadcast_object_list(box, src=0)
        result: Value = box[0]
        return result

    def highest(self, values: Sequence[int], device: torch.device) -> list[int]:
        """Return the largest of each value over all ranks, so that all of them decide the same."""
        if not self.several:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.int64, device=device)
        dist.all_reduce(tensor, dist.ReduceOp.MAX)
        numbers: list[int] = tensor.tolist()
        return numbers

    def wait(self, device: torch.device) -> None:
        """Wait for all ranks."""
        self.highest([0], device)

    def gather(self, own: Tensor, rows: int) -> Tensor:
        """Join the rows of all ranks, in the order of the batch, with a gradient to this rank's.

        Args:
            own: Outputs for the rows of `share`.
            rows: Number of rows in the whole batch.
        """
        if not self.several:
            return own
        gathered: Tensor = _Gather.apply(own, self, rows)  # type: ignore[no-untyped-call]
        return gathered

    def mean(self, value: Tensor, weight: int) -> Tensor:
        """Average a number over all ranks, weighted by how many rows each has seen."""
        if not self.several:
            return value
        pair = torch.stack([value.detach().double() * weight, torch.full_like(value, weight, dtype=torch.float64)])
        dist.all_reduce(pair)
        return (pair[0] / pair[1]).to(value.dtype)


class _Gather(torch.autograd.Function):
    """Rows of all ranks. Each rank computes the same loss of all of them, so nothing has to be sent back."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, ranks: Ranks, rows: int) -> Tensor:
        sizes = ranks.shares(rows)
        ctx.ranks, ctx.sizes, ctx.shape = ranks, sizes, own.shape
        padded = own.new_zeros(max(sizes), *own.shape[1:])  # collectives need equal blocks
        padded[: sizes[ranks.own]] = own[: sizes[ranks.own]]
        blocks = [torch.empty_like(padded) for _ in sizes]
        dist.all_gather(blocks, padded)
        return torch.cat([block[:size] for block, size in zip(blocks, sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = gradients
        own = ctx.sizes[ctx.ranks.own]
        start = sum(ctx.sizes[: ctx.ranks.own])
        back = gradient.new_zeros(ctx.shape)
        # Gradients of parameters are averaged over the ranks. Here each rank has only the part of its own rows, and
        # their sum is needed. What does not depend on rows (penalties, class weights) is complete on each rank.
        back[:own] = gradient[start : start + own] * ctx.ranks.count
        return back, None, None


def lost_connection(error: BaseException | None) -> bool:
    """Return whether an error means that another rank is gone."""
    known = isinstance(error, (dist.DistError, ConnectionError))
    return known or (isinstance(error, RuntimeError) and ("gloo" in str(error) or "NCCL" in str(error)))


SETTLING = 0.5
"""Seconds that ranks wait before they separate."""


@contextmanager
def parting(device: torch.device | str = "cpu") -> Iterator[None]:
    """Dissolve the group of ranks at the end of a block that all of them leave: finished, stopped, or diverged.

    A rank that fails alone does not wait, and the process that started it ends the rest.

    Gloo's threads release what they have sent only after this thread has learned that it arrived, and they need the
    interpreter for that. If it is exiting meanwhile, they abort the process; if it waits for them, there is a deadlock
    (github.com/pytorch/pytorch/pull/179291). So they always get some time.
    """
    together = False
    try:
        yield
        together = True
    except (Diverged, Interrupted):
        together = True
        raise
    finally:
        ranks = Ranks.here()
        if ranks.several and dist.is_initialized():
            if together:
                with suppress(RuntimeError):  # a rank that is already gone has finished as well
                    ranks.wait(torch.device(device))
            time.sleep(SETTLING)
            if together:
                dist.destroy_process_group()
