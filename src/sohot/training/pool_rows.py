"""What a step knows of the pool: its inputs, and the teacher's answers for the whole pool."""

from typing import NamedTuple

import torch
from torch import Tensor

from ..data.batches import BalancedBatches
from .inputs import Domain, Inputs


class PoolInputs(NamedTuple):
    """Unlabelled target images in two views: a weak one, which the teacher labels, and a strong one to learn from."""

    weak: Inputs
    strong: Inputs


class PoolDomain(Domain):
    """The inputs of the pool in one view. There are no labels: in their place are the numbers of the rows.

    Args:
        name: For messages.
        inputs: Its inputs.
    """

    def __init__(self, name: str, inputs: Inputs) -> None:
        rows = len(inputs) if isinstance(inputs, Inputs) else 1
        super().__init__(name, inputs, torch.arange(rows), max(rows, 1))


class PoolBatches:
    """The pool rows of each step: every row equally often, as a pure function of the step.

    Args:
        rows: Number of rows of the pool.
        take: Rows per step.
        seed: The seed.

    Example:
        >>> PoolBatches(rows=3, take=8, seed=0).batch(step=0)
        tensor([0, 1, 2])
    """

    def __init__(self, rows: int, take: int, seed: int) -> None:
        nothing, one_class = torch.empty(0, dtype=torch.int64), torch.zeros(rows, dtype=torch.int64)
        self._batches = BalancedBatches(nothing, one_class, 1, target_per_class=take, seed=seed)

    def batch(self, step: int) -> Tensor:
        """Return the rows of a step, in ascending order."""
        return self._batches.batch(step)[1]


class PoolBatch(NamedTuple):
    """What a step learns from: pool rows with pseudo-labels."""

    inputs: Tensor  # this rank's rows
    labels: Tensor  # (n,) pseudo-labels of all rows of the batch
    kept: Tensor  # (n,) 1 where a pseudo-label is trusted, else 0
    prior: Tensor  # (C,)
    ramp: Tensor  # scalar: factor of the losses on the pool
    source_rows: Tensor | None  # numbers of the batch's source rows
