"""The alignment loss: weighted mean and scatter distances, averaged over the classes present in both domains."""

from collections.abc import Sequence

from torch import Tensor

from .autograd import separate_distances
from .checks import check_alignment_input
from .composed import Alignment, align
from .plain_checks import ESTIMATORS, check_choice, check_count, check_orders
from .settings import Settings
from .terms import check_weights, term_weights

__all__ = ["Alignment", "class_distances", "scatter_alignment"]


def scatter_alignment(
    source: Tensor,
    source_labels: Tensor,
    target: Tensor,
    target_labels: Tensor,
    num_classes: int,
    orders: tuple[int, ...] = (2,),
    *,
    weights: Tensor | Sequence[float] | None = None,
    estimator: str = "plugin",
    scale: Tensor | None = None,
    most_rows: int | None = None,
    check_values: bool = True,
) -> Alignment:
    """Average weighted mean and scatter distances over the classes present in both domains.

    Args:
        source: Source features, shape (n, d), rows in any order.
        source_labels: Their classes, integers in 0 … num_classes − 1.
        target: Target features, shape (m, d).
        target_labels: Their classes.
        num_classes: Number of classes C. A class may be missing from either domain.
        orders: Orders of the scatter tensors, each at least 2.
        weights: Weight of each term, the means first: one number each, or a tensor of shape (1 + orders, C) or
            (1 + orders, 1); differentiable. Default: 1 for the means and 1 / number of orders for each order.
        estimator: "plugin" (the paper) or "unbiased" (zero on average if both domains follow one distribution).
        scale: A one-element tensor that divides the features; 0 means this batch's own `spread`.
        most_rows: Most rows of a class, of both domains together, if this is known. Kernels on a GPU hold 64; without
            this number labels are counted there, which waits for the GPU. A class with more makes the loss NaN.
        check_values: Check for labels out of range, and NaN or infinite features.

    Returns:
        The loss with its parts. If no class is present in both domains the loss is 0, with a zero gradient.

    Example:
        >>> import torch
        >>> source, target = torch.tensor([[0.0], [2.0]]), torch.tensor([[5.0], [9.0]])
        >>> labels = torch.tensor([0, 0])
        >>> scatter_alignment(source, labels, target, labels, num_classes=1).terms  # (1 − 7)², (1 − 4)²
        tensor([36.,  9.])
    """
    orders = check_orders(orders)
    if weights is None:
        weights = term_weights(1.0, [1.0] * len(orders))
    check_weights(weights, orders, check_count(num_classes, "num_classes"))
    of_terms, of_classes = (None, weights) if isinstance(weights, Tensor) else (tuple(weights), None)
    settings = Settings(
        num_classes,
        orders,
        of_terms,
        check_choice(estimator, ESTIMATORS, "estimator") == "unbiased",
        check_values,
    )
    result = align(
        source,
        source_labels,
        target,
        target_labels,
        settings,
        weights=of_classes,
        scale=scale,
        most_rows=None if most_rows is None else check_count(most_rows, "most_rows"),
    ).alignment
    return Alignment(result.loss, result.terms, result.distances, result.spread)


def class_distances(
    source: Tensor,
    source_labels: Tensor,
    target: Tensor,
    target_labels: Tensor,
    num_classes: int,
    orders: tuple[int, ...] = (2,),
    *,
    estimator: str = "plugin",
) -> Tensor:
    """Compute the distances of each class in plain operations, for losses that are not a weighted sum of them.

    Slower than `scatter_alignment`, since backward computes the distances again; ratios, roots or any other function of
    the distances can be differentiated.

    Returns:
        Shape (1 + orders, C), the means first; 0 for classes missing from a domain.

    Example:
        >>> import torch
        >>> source, target = torch.tensor([[0.0], [2.0]]), torch.tensor([[5.0], [9.0]])
        >>> labels = torch.tensor([1, 1])
        >>> class_distances(source, labels, target, labels, num_classes=2)
        tensor([[ 0., 36.],
                [ 0.,  9.]])
    """
    check_alignment_input(source, source_labels, target, target_labels)
    check_count(num_classes, "num_classes")
    orders = check_orders(orders)
    check_choice(estimator, ESTIMATORS, "estimator")
    unbiased = estimator == "unbiased"
    return separate_distances(source, source_labels, target, target_labels, num_classes, orders, unbiased)
