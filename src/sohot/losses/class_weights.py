"""Learned weights ζ and ζ̄: how strongly each class is aligned (Eq. 6 of the paper)."""

import torch
from torch import Tensor, nn

from ..functional.plain_checks import check_count


class ClassWeights(nn.Module):
    """One weight for each class and term, pulled towards 1 and kept at 0 or above.

    The paper's objective is unbounded below in its weights: a class with a large distance would get a negative weight
    and then be pushed apart. Each call of `ScatterAlignment` first resets weights that the optimiser moved below 0 to 0
    (projected gradient descent), so the objective is bounded and a weight at 0 can recover at once.

    Args:
        num_orders: Number of scatter orders R.
        num_classes: Number of classes C.

    Example:
        >>> weights = ClassWeights(num_orders=1, num_classes=3)
        >>> weights.zeta
        tensor([[1., 1., 1.]])
    """

    def __init__(self, num_orders: int, num_classes: int) -> None:
        super().__init__()
        check_count(num_orders, "num_orders")
        check_count(num_classes, "num_classes")
        self.raw_zeta = nn.Parameter(torch.ones(num_orders, num_classes))
        self.raw_zeta_bar = nn.Parameter(torch.ones(num_classes))

    @property
    def zeta(self) -> Tensor:
        """ζ, the weights of the scatters, for inspection: shape (R, C), at least 0, without gradient."""
        return self.raw_zeta.detach().clamp(min=0)

    @property
    def zeta_bar(self) -> Tensor:
        """ζ̄, the weights of the means, for inspection: shape (C,), at least 0, without gradient."""
        return self.raw_zeta_bar.detach().clamp(min=0)
