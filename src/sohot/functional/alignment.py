"""The alignment loss: weighted mean and scatter distances, averaged over the classes present in both domains."""

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from .checks import check_alignment_input, check_rows
from .composed import Alignment
from .dispatch import align
from .gram import signed_gram
from .plain_checks import ESTIMATORS, check_choice, check_count, check_orders
from .recomputed import recomputed
from .row_weights import RowWeights, row_weights
from .settings import Settings
from .terms import RowsNeeded, check_weights, term_weights

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
    source_weights: Tensor | None = None,
    target_weights: Tensor | None = None,
    full_rows: float = 1,
    scatter_rows: float = 1,
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
        source_weights: Weight of each source row (n,), at least 0, a constant to autograd; 0 leaves the row out.
            Distances depend on the ratios within a class and domain, `spread` on those among all rows. Default: equal.
        target_weights: The same for the target rows (m,).
        full_rows: A class weighs min(1, n_eff / full_rows), n_eff = (Σw)² / Σw² being its effective rows (without
            weights, its rows) in the domain that has fewer.
        scatter_rows: Effective rows that a class needs in both domains for its scatters to enter; means always enter.
        check_values: Check for labels out of range, NaN or infinite features, and row weights below 0.

    Returns:
        The loss with its parts. If no class is present in both domains the loss is 0, with a zero gradient.

    Example:
        >>> source, target = torch.tensor([[0.0], [2.0]]), torch.tensor([[5.0], [9.0]])
        >>> labels = torch.tensor([0, 0])
        >>> scatter_alignment(source, labels, target, labels, num_classes=1).terms  # (1 − 7)², (1 − 4)²
        tensor([36.,  9.])
        >>> halves = torch.tensor([0.5, 0.0])  # the second target row is absent, and a lone row has no scatter
        >>> scatter_alignment(source, labels, target, labels, num_classes=1, target_weights=halves).terms  # (1 − 5)²
        tensor([16.,  0.])
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
        RowsNeeded(full_rows, scatter_rows).checked(),
        check_values,
    )
    found = align(
        source,
        source_labels,
        target,
        target_labels,
        settings,
        weights=of_classes,
        scale=scale,
        source_weights=source_weights,
        target_weights=target_weights,
    )
    return Alignment(found.loss, found.terms, found.distances, found.spread)


def class_distances(
    source: Tensor,
    source_labels: Tensor,
    target: Tensor,
    target_labels: Tensor,
    num_classes: int,
    orders: tuple[int, ...] = (2,),
    *,
    estimator: str = "plugin",
    source_weights: Tensor | None = None,
    target_weights: Tensor | None = None,
) -> Tensor:
    """Compute the distances of each class in plain operations, for losses that are not a weighted sum of them.

    Slower than `scatter_alignment`, since backward computes the distances again; ratios, roots or any other function of
    the distances can be differentiated. `source_weights` and `target_weights` weigh rows as in `scatter_alignment`.

    Returns:
        Shape (1 + orders, C), the means first; 0 for classes missing from a domain.

    Example:
        >>> source, target = torch.tensor([[0.0], [2.0]]), torch.tensor([[5.0], [9.0]])
        >>> labels = torch.tensor([1, 1])
        >>> class_distances(source, labels, target, labels, num_classes=2)
        tensor([[ 0., 36.],
                [ 0.,  9.]])
        >>> class_distances(source, labels, target, labels, num_classes=2, source_weights=torch.tensor([3.0, 1.0]))
        tensor([[ 0.0000, 42.2500],
                [ 0.0000, 10.5625]])
    """
    check_alignment_input(source, source_labels, target, target_labels)
    check_count(num_classes, "num_classes")
    orders = check_orders(orders)
    check_choice(estimator, ESTIMATORS, "estimator")
    function = partial(_distances, num_classes=num_classes, orders=orders, unbiased=estimator == "unbiased")
    given = row_weights(source, target, source_weights, target_weights)
    return recomputed(function, (source, target), (source_labels, target_labels, *(given or ())))[0]


def _distances(
    source: Tensor,
    target: Tensor,
    source_labels: Tensor,
    target_labels: Tensor,
    *weights_of_rows: Tensor,
    num_classes: int,
    orders: tuple[int, ...],
    unbiased: bool,
) -> tuple[Tensor]:
    data = source, source_labels, target, target_labels
    check_rows(*data, *weights_of_rows, num_classes=num_classes)
    weights = torch.zeros(1 + len(orders), num_classes, device=source.device)
    scale = torch.ones((), device=source.device)
    given = RowWeights(*weights_of_rows) if weights_of_rows else None
    with torch.autocast(source.device.type, enabled=False):
        result = signed_gram(*data, weights, list(orders), unbiased, scale, row_weights=given)
    return (result.distances,)
