"""Weights of rows: how much each row counts in the statistics of its class and domain.

A row of weight 0 is absent. Only ratios of weights matter, so they are divided by their largest value before use. Equal
weights become exactly 1, and the result is the one without weights, bit for bit. Weights are constants to autograd.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from .checks import check_row_weights
from .grouping import class_counts
from .pairs import exact_type


class RowWeights(NamedTuple):
    """Weights of the rows of both domains, at least 0."""

    source: Tensor  # (n,), or of many fits (fits, n)
    target: Tensor  # (m,)

    def present(self, source_labels: Tensor, target_labels: Tensor, num_classes: int) -> tuple[Tensor, Tensor]:
        """Give rows of weight 0 a class that the other domain lacks: C in the source, C + 1 in the target."""
        return (
            torch.where(self.source > 0, source_labels.long(), num_classes),
            torch.where(self.target > 0, target_labels.long(), num_classes + 1),
        )

    def within_classes(self, source_labels: Tensor, target_labels: Tensor, num_classes: int) -> "RowWeights":
        """Divide each weight by the largest of its class and domain."""
        return RowWeights(
            relative_to_largest(self.source, source_labels, num_classes),
            relative_to_largest(self.target, target_labels, num_classes),
        )

    def within_domains(self) -> "RowWeights":
        """Divide each weight by the largest of its domain."""
        return RowWeights(*(own / positive(own.amax(-1, keepdim=True)) for own in self))

    def overall(self) -> "RowWeights":
        """Divide all weights by the largest of both domains."""
        largest = torch.maximum(*(own.amax(-1, keepdim=True) for own in self))
        return RowWeights(*(own / positive(largest) for own in self))


def row_weights(
    source: Tensor,
    target: Tensor,
    source_weights: Tensor | None,
    target_weights: Tensor | None,
    rows_are_called: tuple[str, str] = ("source", "target"),
) -> RowWeights | None:
    """Check the weights of both domains; those not given are 1. None if neither is given."""
    if source_weights is None and target_weights is None:
        return None
    return RowWeights(
        _given_or_ones(source, source_weights, ("source_weights", rows_are_called[0])),
        _given_or_ones(target, target_weights, ("target_weights", rows_are_called[1])),
    )


def _given_or_ones(rows: Tensor, weights: Tensor | None, names: tuple[str, str]) -> Tensor:
    exact = exact_type(rows.device)
    if weights is None:
        return torch.ones(rows.shape[0], dtype=exact, device=rows.device)
    check_row_weights(weights, rows, names)
    return weights.detach().to(exact)


def positive(total: Tensor) -> Tensor:
    """Replace 0 by 1, to divide by: a sum without rows is 0 too."""
    return torch.where(total > 0, total, 1)


def effective_rows(total: Tensor, squares: Tensor) -> Tensor:
    """The number of equal weights that tell as much: (Σw)² / Σw², given both sums."""
    return total.square() / positive(squares)


class ClassRows(NamedTuple):
    """How many rows each class has in one domain."""

    counts: Tensor  # (…, C) rows of a weight above 0
    effective: Tensor  # (…, C) (Σw)² / Σw²: as many rows of equal weights tell as much


def class_rows(labels: Tensor, num_classes: int, weights: Tensor | None = None) -> ClassRows:
    """Count the rows of each class.

    Args:
        labels: Classes of the rows, (n,).
        num_classes: Number of classes C.
        weights: Weights of the rows, (…, n); None for equal weights.

    Example:
        >>> class_rows(torch.tensor([0, 0, 1]), 2, torch.tensor([1.0, 3.0, 0.0]))
        ClassRows(counts=tensor([2, 0]), effective=tensor([1.6000, 0.0000]))
    """
    if weights is None:
        counts = class_counts(labels, num_classes)
        return ClassRows(counts, counts)
    inside = labels.long().clamp(0, num_classes - 1)
    own, nothing = relative_to_largest(weights, inside, num_classes), _nothing(weights, num_classes)
    total, squares = nothing.index_add(-1, inside, own), nothing.index_add(-1, inside, own.square())
    counts = nothing.long().index_add(-1, inside, (weights > 0).long())
    return ClassRows(counts, effective_rows(total, squares))


def relative_to_largest(weights: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """Divide each weight (…, n) by the largest of its class: equal weights become exactly 1."""
    inside = labels.long().clamp(0, num_classes - 1)
    largest = _nothing(weights, num_classes).scatter_reduce(-1, inside.expand_as(weights), weights, "amax")
    return weights / positive(largest).index_select(-1, inside)


def _nothing(weights: Tensor, num_classes: int) -> Tensor:
    return weights.new_zeros(*weights.shape[:-1], num_classes)
