"""Weights ζ of classes: the penalty that pulls them towards 1, and the best ones for fixed distances."""

from typing import NamedTuple

import torch
from torch import Tensor


class ClassWeighting(NamedTuple):
    """What decides how classes are weighed: σ and α of the scatters (1) and of the means (2)."""

    sigma1: tuple[float, ...]  # of each order
    sigma2: float
    alpha1: float
    alpha2: float

    @property
    def alphas(self) -> tuple[float, ...]:
        """The strength of the penalty on each term; the orders share one budget."""
        return self.alpha2, *(self.alpha1 / len(self.sigma1) for _ in self.sigma1)


def weight_penalty(zeta: Tensor, zeta_bar: Tensor, alpha1: float, alpha2: float) -> Tensor:
    """Penalise the distance of the weights from 1; the orders share one budget."""
    return alpha1 / zeta.shape[0] * (zeta - 1).square().sum() + alpha2 * (zeta_bar - 1).square().sum()


def closed_form_weight(distance: Tensor, shares: Tensor, sigma: float, alpha: float) -> Tensor:
    """Minimise σ·share·ζ·distance + α(ζ − 1)² over 0 ≤ ζ ≤ 1: the best weight for a fixed distance.

    `shares` is 1/C for a term that enters the loss and 0 for one that does not (its weight stays 1). An unbiased
    distance can be negative; the upper bound keeps the weight of such a class from growing.

    >>> closed_form_weight(torch.tensor([0.0, 1.0, 9.0]), torch.tensor(0.5), sigma=1.0, alpha=1.0)
    tensor([1.0000, 0.7500, 0.0000])
    """
    pull = sigma * shares * distance / 2
    if alpha == 0:
        return torch.where(pull > 0, 0.0, 1.0).to(distance.dtype)
    return (1 - pull / alpha).clamp(0, 1)
