"""Pairs of a source row and a target row."""

from typing import NamedTuple

from torch import Tensor


class CrossPairs(NamedTuple):
    """All pairs of a source row and a target row."""

    squared: Tensor  # (n, m) squared Euclidean distances
    same: Tensor  # (n, m) True where the classes are equal


def cross_pairs(source: Tensor, source_labels: Tensor, target: Tensor, target_labels: Tensor) -> CrossPairs:
    """Measure every source row against every target row.

    Rows are first moved by the mean of the target, which changes no distance but keeps the digits that a large common
    mean would cost in ‖x‖² + ‖y‖² − 2xy.

    Example:
        >>> import torch
        >>> x, y = torch.tensor([[0.0, 0.0], [3.0, 4.0]]), torch.tensor([[0.0, 0.0]])
        >>> cross_pairs(x, torch.tensor([0, 1]), y, torch.tensor([1]))
        CrossPairs(squared=tensor([[ 0.], [25.]]), same=tensor([[False], [ True]]))
    """
    centre = target.detach().mean(0)
    x, y = source - centre, target - centre
    squared = x.square().sum(1, keepdim=True) + y.square().sum(1) - 2 * x @ y.T
    return CrossPairs(squared.clamp(min=0), source_labels.unsqueeze(1) == target_labels)


def mean_over(values: Tensor, chosen: Tensor) -> Tensor:
    """Average the chosen values; 0, with a zero gradient, if there are none.

    Example:
        >>> import torch
        >>> mean_over(torch.tensor([1.0, 2.0, 9.0]), torch.tensor([True, True, False]))
        tensor(1.5000)
    """
    return values.masked_fill(~chosen, 0).sum() / chosen.sum().clamp(min=1)
