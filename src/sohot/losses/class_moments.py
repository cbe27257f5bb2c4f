"""Means and spreads of classes, without a loop and without a wait for the device."""

import torch
from torch import Tensor


def class_means(x: Tensor, labels: Tensor, num_classes: int) -> tuple[Tensor, Tensor]:
    """Average the rows of each class.

    Args:
        x: Rows (n, d).
        labels: Their classes (n,).
        num_classes: Number of classes C.

    Returns:
        The means (C, d), zero for a class without rows, and the number of rows of each class (C,), of the type of `x`.

    Example:
        >>> class_means(torch.tensor([[1.0], [3.0], [5.0]]), torch.tensor([0, 0, 1]), 3)
        (tensor([[2.], [5.], [0.]]), tensor([2., 1., 0.]))
    """
    labels = labels.long()
    counts = x.new_zeros(num_classes).index_add(0, labels, x.new_ones(labels.shape[0]))
    sums = x.new_zeros(num_classes, x.shape[1]).index_add(0, labels, x)
    return sums / counts.clamp(min=1).unsqueeze(1), counts


def class_variances(x: Tensor, labels: Tensor, num_classes: int) -> tuple[Tensor, Tensor]:
    """Average the squared distance of the rows of each class from their mean.

    Returns:
        The variances summed over the features (C,), and the number of rows of each class (C,).

    Example:
        >>> class_variances(torch.tensor([[1.0], [3.0], [5.0]]), torch.tensor([0, 0, 1]), 2)
        (tensor([1., 0.]), tensor([2., 1.]))
    """
    means, counts = class_means(x, labels, num_classes)
    squares = (x - means[labels.long()]).square().sum(1)
    return x.new_zeros(num_classes).index_add(0, labels.long(), squares) / counts.clamp(min=1), counts


def within_class_energy(x: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """Average the squared distance of a row from the mean of its class, over the rows of classes of two or more.

    Returns:
        A scalar, 0 if no class has two rows.

    Example:
        >>> within_class_energy(torch.tensor([[1.0], [3.0], [5.0]]), torch.tensor([0, 0, 1]), 2)
        tensor(1.)
    """
    variances, counts = class_variances(x, labels, num_classes)
    rows = torch.where(counts > 1, counts, 0.0)
    return (variances * rows).sum() / rows.sum().clamp(min=1)
