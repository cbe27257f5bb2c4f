"""Learned weights ζ and ζ̄: how strongly each class is aligned (Eq. 6 of the paper)."""

import torch
from torch import Tensor, nn

from ..functional.plain_checks import check_count, check_not_negative


class ClassWeights(nn.Module):
    """One weight for each class and term, pulled towards 1 and kept at 0 or above.

    The paper's objective is unbounded below in its weights: a class with a large distance would get a negative weight
    and then be pushed apart. Here each call first resets weights that the optimiser moved below 0 to 0 (projected
    gradient descent), so the objective is bounded and a weight at 0 can recover at once.

    Args:
        num_orders: Number of scatter orders R.
        num_classes: Number of classes C.
        alpha1: Strength of the penalty on ζ, the weights of the scatters.
        alpha2: Strength of the penalty on ζ̄, the weights of the means.

    Example:
        >>> weights = ClassWeights(num_orders=1, num_classes=3, alpha1=1.0, alpha2=1.0)
        >>> weights.zeta
        tensor([[1., 1., 1.]])
    """

    def __init__(self, num_orders: int, num_classes: int, alpha1: float, alpha2: float) -> None:
        super().__init__()
        check_count(num_orders, "num_orders")
        check_count(num_classes, "num_classes")
        self.raw_zeta = nn.Parameter(torch.ones(num_orders, num_classes))
        self.raw_zeta_bar = nn.Parameter(torch.ones(num_classes))
        self.alpha1 = check_not_negative(alpha1, "alpha1")
        self.alpha2 = check_not_negative(alpha2, "alpha2")

    @property
    def zeta(self) -> Tensor:
        """ζ, the weights of the scatters, for inspection: shape (R, C), at least 0, without gradient."""
        return self.raw_zeta.detach().clamp(min=0)

    @property
    def zeta_bar(self) -> Tensor:
        """ζ̄, the weights of the means, for inspection: shape (C,), at least 0, without gradient."""
        return self.raw_zeta_bar.detach().clamp(min=0)

    def forward(self) -> Tensor:
        """Stack the weights for the alignment: (1 + R, C), the means first."""
        with torch.no_grad():  # nothing below keeps these tensors for backward, so changing them in place is safe
            self.raw_zeta.clamp_(min=0)
            self.raw_zeta_bar.clamp_(min=0)
        return torch.cat([self.raw_zeta_bar.unsqueeze(0), self.raw_zeta])

    def penalty(self) -> Tensor:
        """α1/R Σ_r ‖ζ_r − 1‖² + α2 ‖ζ̄ − 1‖²."""
        return weight_penalty(self.raw_zeta, self.raw_zeta_bar, self.alpha1, self.alpha2)


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
