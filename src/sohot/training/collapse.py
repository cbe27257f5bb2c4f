"""Signs that learning from the pool has gone wrong: one class swallows it, or the features shrink to a point."""

from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from torch import Tensor

SWALLOWED = 0.5
"""Share of the pool that one class may not win from the others. A class may well be as frequent as that, but then the
classifier from which training starts names most of its images, too."""

SHRUNK = 0.1
"""Least spread of the features, as a share of that at the start."""


def spread(features: Tensor) -> Tensor:
    """Return the root mean squared distance of a feature from the mean of all."""
    return (features - features.mean(0)).square().sum(1).mean().sqrt()


class Collapse(Enum):
    """What went wrong, in words."""

    SWALLOWED = "one class had swallowed the unlabelled images"
    SHRUNK = "the features of the unlabelled images had shrunk to a point"


@dataclass(frozen=True)
class PoolHealth:
    """How the pool looked at the start.

    Attributes:
        shares: Share of each class among the first labels.
        spread: Root mean squared distance of a feature from the mean of all.

    Example:
        >>> import torch
        >>> start = PoolHealth.of(torch.tensor([0, 0, 1, 2]), 3, torch.tensor(2.0))
        >>> start.check(torch.tensor([0, 0, 0, 2]), torch.tensor(1.9))
        >>> start.check(torch.tensor([0, 0, 0, 0]), torch.tensor(1.9))
        <Collapse.SWALLOWED: 'one class had swallowed the unlabelled images'>
        >>> start.check(torch.tensor([0, 0, 1, 2]), torch.tensor(0.1))
        <Collapse.SHRUNK: 'the features of the unlabelled images had shrunk to a point'>
    """

    shares: list[float]
    spread: float

    @classmethod
    def of(cls, labels: Tensor, num_classes: int, spread: Tensor) -> "PoolHealth":
        """Look at the pool before the first step."""
        return cls((labels.bincount(minlength=num_classes) / len(labels)).tolist(), float(spread))

    def check(self, labels: Tensor, spread: Tensor) -> Collapse | None:
        """Compare the pool with how it was; None while it is well."""
        if not float(spread) >= SHRUNK * self.spread:  # also true for NaN
            return Collapse.SHRUNK
        now = (labels.bincount(minlength=len(self.shares)) / len(labels)).tolist()
        swallowed = any(share - was >= SWALLOWED for share, was in zip(now, self.shares, strict=True))
        return Collapse.SWALLOWED if swallowed else None

    def as_json(self) -> dict[str, Any]:
        """Return the values, for a checkpoint."""
        return asdict(self)
