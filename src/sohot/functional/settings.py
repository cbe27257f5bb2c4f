"""What an alignment computes, apart from its tensors."""

from typing import NamedTuple

from torch import Tensor

from .class_weighting import ClassWeighting

Labelled = tuple[Tensor, Tensor, Tensor, Tensor]
"""Source, its labels, target and its labels."""


class Settings(NamedTuple):
    """Settings of one call, all of them checked."""

    num_classes: int
    orders: tuple[int, ...]
    sigmas: tuple[float, ...] | None = None  # constant weight of each term, the means first; None for 1
    unbiased: bool = False
    check_values: bool = True
    weighting: ClassWeighting | None = None  # of classes; None for none
    momentum: float | None = None  # of the running scale, 0 to keep the first; None: it stays

    @property
    def estimator(self) -> str:
        """The name of the estimator."""
        return "unbiased" if self.unbiased else "plugin"
