"""The weight of each term of the alignment loss, and which terms have enough rows to be defined.

A scatter is meaningful only with enough rows. With one target row of a class the target scatter is zero, and pulling
the source scatter towards it would collapse the class; with two rows every odd order is zero. Such terms are left out;
the mean term stays.
"""

from collections.abc import Sequence
from math import isfinite

import torch
from torch import Tensor

from .grouping import class_counts


def term_weights(sigma2: float, sigma1: Sequence[float]) -> tuple[float, ...]:
    """Return weights shared by all classes: σ2 for the means, then each σ1 / number of orders."""
    return (sigma2, *(sigma / len(sigma1) for sigma in sigma1))


def check_weights(weights: Tensor | Sequence[float], orders: tuple[int, ...], num_classes: int) -> None:
    """Require one weight for each term, or one for each term and class."""
    terms = 1 + len(orders)
    if not isinstance(weights, (Tensor, Sequence)) or isinstance(weights, str):
        raise TypeError(f"weights must be a tensor or {terms} numbers, the means first, got {weights!r}")
    if not isinstance(weights, Tensor):
        if len(weights) != terms:
            raise ValueError(f"weights must hold {terms} numbers, the means first, got {len(weights)}")
        for value in weights:
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise TypeError(f"each of weights must be a number, got {value!r}")
            if not isfinite(value):
                raise ValueError(f"each of weights must be a finite number, got {value}")
    elif weights.is_complex() or weights.dtype == torch.bool:
        raise TypeError(f"weights must hold real numbers, got {weights.dtype}")
    elif tuple(weights.shape) not in ((terms, num_classes), (terms, 1)):
        raise ValueError(
            f"weights must have the shape ({terms}, {num_classes}) or ({terms}, 1), the means first, "
            f"got {tuple(weights.shape)}"
        )


def constant_weights(values: Sequence[float], features: Tensor) -> Tensor:
    """Return the weights as a tensor of shape (1 + orders, 1), in the precision of the features.

    It is filled on their device: nothing is copied from the host.
    """
    dtype = torch.promote_types(features.dtype, torch.float32)
    return torch.stack([torch.full((1,), value, dtype=dtype, device=features.device) for value in values])


def term_shares(
    source_labels: Tensor,
    target_labels: Tensor,
    num_classes: int,
    orders: tuple[int, ...],
    estimator: str,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Give each term 1 / (number of classes present in both domains), or 0 if it has too few rows to be defined.

    Returns:
        Shape (1 + orders, C), the means first. Plug-in scatters of even order need two rows in both domains, of odd
        order three; the unbiased estimator needs two for any order. The means need one.
    """
    counts = class_counts(source_labels, num_classes), class_counts(target_labels, num_classes)
    return shares_of_counts(*counts, orders, estimator, dtype)


def shares_of_counts(
    source: Tensor, target: Tensor, orders: tuple[int, ...], estimator: str, dtype: torch.dtype
) -> Tensor:
    """Compute `term_shares` from the numbers of rows of each class (…, C) in both domains: (…, 1 + orders, C)."""
    fewest = torch.minimum(source, target)
    least = [1, *(3 if order % 2 and estimator == "plugin" else 2 for order in orders)]
    defined = torch.stack([fewest >= rows for rows in least], -2)
    return defined.to(dtype) / (fewest > 0).sum(-1).clamp(min=1).unsqueeze(-1).unsqueeze(-1)
