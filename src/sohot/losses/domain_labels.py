"""Which rows and pairs of rows count, and how much, by the labels of both domains: for one model, or for many fits.

Shapes start with "…": nothing for one model, (fits,) for many, so each loss is written only once. A loss is made of
sums over pairs of rows, so that many rows can be summed part by part (`over_pairs`, `over_anchors`).
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from ..functional.recomputed import recomputed
from ..functional.row_weights import RowWeights, positive, relative_to_largest
from .anchors import Anchors
from .masks import Mask, Once

Sums = tuple[Tensor, ...]

MOST_PAIRS = 2**24
"""Most pairs of rows that are computed at once: 64 MiB for each number of a pair."""
PAIRS_OF_PART = 2**20
"""Pairs of rows in a part, if there are more; backward computes each part again."""


class LabelWeights(NamedTuple):
    """Weights of rows (…, n) and (…, m), so that equal weights are exactly 1."""

    by_domain: RowWeights  # relative to the largest of each domain, for pairs of a source and a target row
    overall: RowWeights  # relative to the largest of both, for sums over the rows of both

    @classmethod
    def of(cls, weights: RowWeights) -> "LabelWeights":
        """Divide the weights by their largest."""
        return cls(weights.within_domains(), weights.overall())

    def to(self, like: Tensor) -> "LabelWeights":
        """Convert the weights to the type and device of a tensor."""
        return LabelWeights(*(RowWeights(*(own.to(like) for own in pair)) for pair in self))


class DomainLabels:
    """The classes of the rows of both domains. Everything derived from them is computed once, on first use.

    Args:
        source: Classes of the source rows, (n,).
        target: Classes of the target rows, (m,).
        num_classes: Number of classes C.
        taken: Which source and target rows exist, (…, n) and (…, m); None for all.
        weights: Weights of the rows, in the type of the features; rows of weight 0 do not exist. None for equal ones.

    Example:
        >>> labels = DomainLabels(torch.tensor([0, 1]), torch.tensor([1]), num_classes=2)
        >>> labels.same.where
        tensor([[False], [ True]])
        >>> labels.squared_distances(torch.tensor([[0.0, 0.0], [3.0, 4.0]]), torch.tensor([[0.0, 0.0]]))
        tensor([[ 0.], [25.]])
    """

    def __init__(
        self,
        source: Tensor,
        target: Tensor,
        num_classes: int,
        taken: tuple[Tensor, Tensor] | None = None,
        weights: LabelWeights | None = None,
    ) -> None:
        self.source, self.target, self.num_classes, self.weights = source, target, num_classes, weights
        if weights is not None:
            present = weights.by_domain.source > 0, weights.by_domain.target > 0
            taken = present if taken is None else (taken[0] & present[0], taken[1] & present[1])
        self.taken = taken

    @Once
    def same(self) -> Mask:
        """Pairs of a source row and a target row of one class: (…, n, m)."""
        return Mask(self._of_pairs(self.source.unsqueeze(1) == self.target), weights=self._pair_weights)

    @Once
    def other(self) -> Mask:
        """Pairs of a source row and a target row of two classes: (…, n, m)."""
        return Mask(self._of_pairs(self.source.unsqueeze(1) != self.target), weights=self._pair_weights)

    @Once
    def between(self) -> Mask:
        """Target rows that have source rows both of their own class and of another: (…, 1, m)."""
        where = self.same.where.any(-2, keepdim=True) & self.other.where.any(-2, keepdim=True)
        return Mask(where, weights=None if self.weights is None else self.weights.by_domain.target.unsqueeze(-2))

    @Once
    def anchors(self) -> Anchors:
        """Each row of both domains, and the rows it is compared with."""
        labels = torch.cat([self.source, self.target])
        place = torch.arange(len(labels), device=labels.device)
        taken = None if self.taken is None else torch.cat(self.taken, -1)
        weights = None if self.weights is None else torch.cat(self.weights.overall, -1)
        return Anchors(labels, labels, place, taken, weights)

    @Once
    def _pair_weights(self) -> Tensor | None:
        """Weights of pairs, products of those of rows: (…, n, m)."""
        if self.weights is None:
            return None
        return self.weights.by_domain.source.unsqueeze(-1) * self.weights.by_domain.target.unsqueeze(-2)

    def _of_pairs(self, pairs: Tensor) -> Tensor:
        if self.taken is None:
            return pairs
        return pairs & self.taken[0].unsqueeze(-1) & self.taken[1].unsqueeze(-2)

    def squared_distances(self, source: Tensor, target: Tensor) -> Tensor:
        """Compute the squared distance of each source row to each target row: (…, n, m).

        Rows are first shifted by the target mean, which changes no distance but keeps the digits that ‖x‖² + ‖y‖² − 2xy
        would lose to a large common mean.
        """
        centre = self.target_mean(target.detach())
        return _squared_distances(source - centre, target - centre)

    def over_pairs(self, sums: Callable[[Tensor, "DomainLabels"], Sums], source: Tensor, target: Tensor) -> Sums:
        """Add up sums over pairs of a source and a target row.

        Args:
            sums: Computes them from the squared distances of some target rows to all source rows, and their labels.
            source: Source rows (…, n, d).
            target: Target rows (…, m, d).
        """
        at_once = _rows_at_once(source, len(self.target))
        if at_once is None:
            return sums(self.squared_distances(source, target), self)
        centre = self.target_mean(target.detach())
        x, y = source - centre, target - centre
        more = [pair for pair in (self.taken, self.weights and self.weights.by_domain) if pair is not None]
        of_source, of_target = [self.source, *(pair[0] for pair in more)], [self.target, *(pair[1] for pair in more)]
        parts = zip(*(torch.split(t, at_once, -1) for t in of_target), strict=True)
        of_part = partial(_sums_of_pairs, sums, self.num_classes)
        return _total(
            recomputed(of_part, (x, rows), (*of_source, *part))
            for rows, part in zip(torch.split(y, at_once, -2), parts, strict=True)
        )

    def over_anchors(self, sums: Callable[[Tensor, Tensor, Anchors], Sums], rows: Tensor) -> Sums:
        """Add up sums over all pairs of rows of both domains.

        Args:
            sums: Computes them from some rows, all rows, and the labels of those rows as anchors.
            rows: The rows of both domains, (…, n + m, d).
        """
        at_once, every = _rows_at_once(rows, rows.shape[-2]), self.anchors
        if at_once is None:
            return sums(rows, rows, every)
        more = [t for t in (every.taken, every.weights) if t is not None]
        places = torch.split(every.place, at_once)
        parts = zip(torch.split(rows, at_once, -2), torch.split(every.own, at_once), places, strict=True)
        of_part = partial(_sums_of_anchors, sums)
        return _total(recomputed(of_part, (x, rows), (own, every.labels, at, *more)) for x, own, at in parts)

    def target_mean(self, target: Tensor) -> Tensor:
        """Average the target rows: (…, 1, d)."""
        return target.mean(-2, keepdim=True)

    def class_variances(self, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Average the squared distance of the rows of each class and domain from their mean, both by weight.

        Returns:
            The variances summed over the features (…, groups), and the number of rows of each group (…, groups).

        Example:
            >>> labels = DomainLabels(torch.tensor([0, 0]), torch.tensor([1]), num_classes=2)
            >>> labels.class_variances(torch.tensor([[1.0], [3.0]]), torch.tensor([[5.0]]))
            (tensor([1., 0., 0., 0.]), tensor([2., 0., 0., 1.]))
        """
        x = torch.cat([source, target])
        groups, number = torch.cat([self.source.long(), self.target.long() + self.num_classes]), 2 * self.num_classes
        if self.weights is None:
            counts = totals = x.new_zeros(number).index_add(0, groups, x.new_ones(len(groups)))
            sums = x.new_zeros(number, x.shape[1]).index_add(0, groups, x)
            means = sums / positive(totals).unsqueeze(1)
            squares = (x - means[groups]).square().sum(1)
        else:
            weights = torch.cat(self.weights.overall)
            counts = x.new_zeros(number).index_add(0, groups, (weights > 0).to(x.dtype))
            weights = relative_to_largest(weights, groups, number)
            totals = x.new_zeros(number).index_add(0, groups, weights)
            sums = x.new_zeros(number, x.shape[1]).index_add(0, groups, x * weights.unsqueeze(1))
            means = sums / positive(totals).unsqueeze(1)
            squares = (x - means[groups]).square().sum(1) * weights
        return x.new_zeros(number).index_add(0, groups, squares) / positive(totals), counts

    def spread(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the root mean squared distance of a row from its mean, over groups of two rows or more: (…).

        0 if no group has two rows.
        """
        variances, counts = self.class_variances(source, target)
        totals = counts
        if self.weights is not None:
            groups = torch.cat([self.source.long(), self.target.long() + self.num_classes])
            totals = torch.zeros_like(counts).index_add(0, groups, torch.cat(self.weights.overall))
        rows = torch.where(counts > 1, totals, 0.0)
        return ((variances * rows).sum() / positive(rows.sum())).sqrt()


def _rows_at_once(rows: Tensor, others: int) -> int | None:
    """Return how many others to compare with the rows (…, n, d) at once; None for all."""
    each = rows.shape[:-1].numel()
    if each * others <= MOST_PAIRS or torch.compiler.is_compiling():
        return None
    return max(PAIRS_OF_PART // each, 1)


def _total(parts: Iterable[Sums]) -> Sums:
    return tuple(torch.stack(of_parts).sum(0) for of_parts in zip(*parts, strict=True))


def _squared_distances(x: Tensor, y: Tensor) -> Tensor:
    lengths = x.square().sum(-1).unsqueeze(-1) + y.square().sum(-1).unsqueeze(-2)
    if x.dim() == 2:
        return (lengths - 2 * x @ y.T).clamp(min=0)
    return torch.baddbmm(lengths, x, y.mT, alpha=-2).clamp(min=0)  # many fits: saves a pass over all pairs


def _sums_of_pairs(
    sums: Callable[[Tensor, DomainLabels], Sums],
    num_classes: int,
    x: Tensor,
    y: Tensor,
    *of_rows: Tensor,
) -> Sums:
    """Take labels and, where there are any, which rows exist and their weights: first of all source rows, then of y."""
    half = len(of_rows) // 2
    (source, *of_source), (target, *of_target) = of_rows[:half], of_rows[half:]
    more = list(zip(of_source, of_target, strict=True))
    taken = more[0] if more else None
    weights = RowWeights(*more[1]) if len(more) > 1 else None
    both = None if weights is None else LabelWeights(weights, weights)
    return sums(_squared_distances(x, y), DomainLabels(source, target, num_classes, taken, both))


def _sums_of_anchors(
    sums: Callable[[Tensor, Tensor, Anchors], Sums],
    x: Tensor,
    rows: Tensor,
    own: Tensor,
    labels: Tensor,
    place: Tensor,
    *more: Tensor,
) -> Sums:
    return sums(x, rows, Anchors(own, labels, place, *more))
