"""Which rows and pairs of rows count, by the labels of both domains: for one model, or for many fits.

Shapes start with "…": nothing for one model, (fits,) for many, so each loss is written only once. A loss is made of
sums over pairs of rows, so that many rows can be summed part by part (`over_pairs`, `over_anchors`).
"""

from collections.abc import Callable, Iterable
from functools import partial

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from .anchors import Anchors
from .masks import Mask, Once

Sums = tuple[Tensor, ...]

MOST_PAIRS = 2**24
"""Most pairs of rows that are computed at once: 64 MiB for each number of a pair."""
PAIRS_OF_PART = 2**20
"""Pairs of rows in a part, if there are more; backward computes each part again."""


class DomainLabels:
    """The classes of the rows of both domains. Everything derived from them is computed once, on first use.

    Args:
        source: Classes of the source rows, (n,).
        target: Classes of the target rows, (m,).
        num_classes: Number of classes C.
        taken: Which source and target rows exist, (…, n) and (…, m); None for all.

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
    ) -> None:
        self.source, self.target, self.num_classes, self.taken = source, target, num_classes, taken

    @Once
    def same(self) -> Mask:
        """Pairs of a source row and a target row of one class: (…, n, m)."""
        return Mask(self._of_pairs(self.source.unsqueeze(1) == self.target))

    @Once
    def other(self) -> Mask:
        """Pairs of a source row and a target row of two classes: (…, n, m)."""
        return Mask(self._of_pairs(self.source.unsqueeze(1) != self.target))

    @Once
    def between(self) -> Mask:
        """Target rows that have source rows both of their own class and of another: (…, 1, m)."""
        return Mask(self.same.where.any(-2, keepdim=True) & self.other.where.any(-2, keepdim=True))

    @Once
    def anchors(self) -> Anchors:
        """Each row of both domains, and the rows it is compared with."""
        labels = torch.cat([self.source, self.target])
        place = torch.arange(len(labels), device=labels.device)
        taken = None if self.taken is None else torch.cat(self.taken, -1)
        return Anchors(labels, labels, place, taken)

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
        of_source, of_target = [self.source], [self.target]
        if self.taken is not None:
            of_source.append(self.taken[0])
            of_target.append(self.taken[1])
        parts = zip(*(torch.split(t, at_once, -1) for t in of_target), strict=True)
        of_part = partial(_sums_of_pairs, sums, self.num_classes)
        return _total(
            checkpoint(of_part, x, rows, *of_source, *part, use_reentrant=False)
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
        taken = () if every.taken is None else (every.taken,)
        places = torch.split(every.place, at_once)
        parts = zip(torch.split(rows, at_once, -2), torch.split(every.own, at_once), places, strict=True)
        of_part = partial(_sums_of_anchors, sums)
        return _total(
            checkpoint(of_part, x, rows, own, every.labels, at, *taken, use_reentrant=False) for x, own, at in parts
        )

    def target_mean(self, target: Tensor) -> Tensor:
        """Average the target rows: (…, 1, d)."""
        return target.mean(-2, keepdim=True)

    def class_variances(self, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Average the squared distance of the rows of each class and domain from their mean.

        Returns:
            The variances summed over the features (…, groups), and the number of rows of each group (…, groups).

        Example:
            >>> labels = DomainLabels(torch.tensor([0, 0]), torch.tensor([1]), num_classes=2)
            >>> labels.class_variances(torch.tensor([[1.0], [3.0]]), torch.tensor([[5.0]]))
            (tensor([1., 0., 0., 0.]), tensor([2., 0., 0., 1.]))
        """
        x = torch.cat([source, target])
        groups, number = torch.cat([self.source.long(), self.target.long() + self.num_classes]), 2 * self.num_classes
        counts = x.new_zeros(number).index_add(0, groups, x.new_ones(len(groups)))
        divisors = counts.clamp(min=1)
        means = x.new_zeros(number, x.shape[1]).index_add(0, groups, x) / divisors.unsqueeze(1)
        squares = (x - means[groups]).square().sum(1)
        return x.new_zeros(number).index_add(0, groups, squares) / divisors, counts

    def spread(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the root mean squared distance of a row from its mean, over groups of two rows or more: (…).

        0 if no group has two rows.
        """
        variances, counts = self.class_variances(source, target)
        rows = torch.where(counts > 1, counts, 0.0)
        return ((variances * rows).sum() / rows.sum().clamp(min=1)).sqrt()


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
    """Take labels and, if some rows do not exist, which do: first of all source rows, then of y."""
    half = len(of_rows) // 2
    (source, *of_source), (target, *of_target) = of_rows[:half], of_rows[half:]
    taken = (of_source[0], of_target[0]) if of_source else None
    return sums(_squared_distances(x, y), DomainLabels(source, target, num_classes, taken))


def _sums_of_anchors(
    sums: Callable[[Tensor, Tensor, Anchors], Sums],
    x: Tensor,
    rows: Tensor,
    own: Tensor,
    labels: Tensor,
    place: Tensor,
    *taken: Tensor,
) -> Sums:
    return sums(x, rows, Anchors(own, labels, place, *taken))
