"""Masks of rows and pairs of rows by the labels of both domains: for one model, or for many fits at once.

Shapes start with "…": nothing for one model, (fits,) for many, so each loss is written only once. A loss is made of
sums over pairs of rows, so that many rows can be summed part by part (`over_pairs`, `over_anchors`).
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from ..functional.recomputed import recomputed

T = TypeVar("T")
Sums = tuple[Tensor, ...]

MOST_PAIRS = 2**24
"""Most pairs of rows that are computed at once: 64 MiB for each number of a pair."""
PAIRS_OF_PART = 2**20
"""Pairs of rows in a part, if there are more; backward computes each part again."""


class _Once(Generic[T]):
    """A `functools.cached_property` without the lock of older Pythons, which torch.compile cannot trace."""

    def __init__(self, work: Callable[[Any], T]) -> None:
        self.work, self.__doc__ = work, work.__doc__

    def __get__(self, owner: Any, kind: type) -> T:
        value: T = self.work(owner)
        owner.__dict__[self.work.__name__] = value
        return value


class Mask:
    """Entries that count, and their sum and mean; 0 with a zero gradient if no entry counts.

    Args:
        where: True for the entries that count.
        over: The dimensions to sum over.

    Example:
        >>> Mask(torch.tensor([True, True, False]), over=(-1,)).mean(torch.tensor([1.0, 2.0, 9.0]))
        tensor(1.5000)
    """

    def __init__(self, where: Tensor, over: tuple[int, ...] = (-2, -1)) -> None:
        self.where, self.left_out, self.over = where, ~where, over

    @_Once
    def count(self) -> Tensor:
        """Number of entries that count."""
        return self.where.sum(self.over)

    def sum(self, values: Tensor) -> Tensor:
        """Sum the values that count."""
        return values.masked_fill(self.left_out, 0).sum(self.over)

    def sum_and_count(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Sum the values that count, and count them in the same type."""
        return self.sum(values), self.count.to(values.dtype)

    def mean(self, values: Tensor) -> Tensor:
        """Average the values that count."""
        return self.sum(values) / self.count.clamp(min=1)


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
        self, source: Tensor, target: Tensor, num_classes: int, taken: tuple[Tensor, Tensor] | None = None
    ) -> None:
        self.source, self.target, self.num_classes, self.taken = source, target, num_classes, taken

    @_Once
    def same(self) -> Mask:
        """Pairs of a source row and a target row of one class: (…, n, m)."""
        return Mask(self._of_pairs(self.source.unsqueeze(1) == self.target))

    @_Once
    def other(self) -> Mask:
        """Pairs of a source row and a target row of two classes: (…, n, m)."""
        return Mask(self._of_pairs(self.source.unsqueeze(1) != self.target))

    @_Once
    def between(self) -> Mask:
        """Target rows that have source rows both of their own class and of another: (…, 1, m)."""
        return Mask(self.same.where.any(-2, keepdim=True) & self.other.where.any(-2, keepdim=True))

    @_Once
    def anchors(self) -> "Anchors":
        """Each row of both domains, and the rows it is compared with."""
        labels = torch.cat([self.source, self.target])
        place = torch.arange(len(labels), device=labels.device)
        return Anchors(labels, labels, place, None if self.taken is None else torch.cat(self.taken, -1))

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
        taken = () if self.taken is None else (self.taken[0],)
        of_target = () if self.taken is None else (torch.split(self.taken[1], at_once, -1),)
        parts = zip(torch.split(y, at_once, -2), torch.split(self.target, at_once), *of_target, strict=True)
        of_part = partial(_sums_of_pairs, sums, self.num_classes)
        return _total(recomputed(of_part, (x, part[0]), (self.source, part[1], *taken, *part[2:])) for part in parts)

    def over_anchors(self, sums: Callable[[Tensor, Tensor, "Anchors"], Sums], rows: Tensor) -> Sums:
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
        return _total(recomputed(of_part, (x, rows), (own, every.labels, at, *taken)) for x, own, at in parts)

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
        sums = x.new_zeros(number, x.shape[1]).index_add(0, groups, x)
        means = sums / counts.clamp(min=1).unsqueeze(1)
        squares = (x - means[groups]).square().sum(1)
        return x.new_zeros(number).index_add(0, groups, squares) / counts.clamp(min=1), counts

    def spread(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the root mean squared distance of a row from its mean, over groups of two rows or more: (…).

        0 if no group has two rows.
        """
        variances, counts = self.class_variances(source, target)
        rows = torch.where(counts > 1, counts, 0.0)
        return ((variances * rows).sum() / rows.sum().clamp(min=1)).sqrt()


class Anchors:
    """Some rows of both domains, and the rows each of them is compared with.

    Args:
        own: Classes of the anchors, (k,).
        labels: Classes of all rows, (n + m,).
        place: Which of all rows the anchors are, (k,).
        taken: Which of all rows exist, (…, n + m); None for all.

    Example:
        >>> DomainLabels(torch.tensor([0, 1]), torch.tensor([1]), num_classes=2).anchors.partners.where
        tensor([[False, False, False],
                [False, False,  True],
                [False,  True, False]])
    """

    def __init__(self, own: Tensor, labels: Tensor, place: Tensor, taken: Tensor | None = None) -> None:
        self.own, self.labels, self.place, self.taken = own, labels, place, taken

    @_Once
    def partners(self) -> Mask:
        """For each anchor, the other rows of its class: (…, k, n + m), summed for each anchor."""
        alike = (self.own.unsqueeze(1) == self.labels) & ~self._itself
        if self.taken is not None:
            alike = alike & self.taken[..., self.place].unsqueeze(-1) & self.taken.unsqueeze(-2)
        return Mask(alike, over=(-1,))

    @_Once
    def unseen(self) -> Tensor:
        """For each anchor, what it cannot be compared with: itself, and slots without a row."""
        return self._itself if self.taken is None else self._itself | ~self.taken.unsqueeze(-2)

    @property
    def _itself(self) -> Tensor:
        return self.place.unsqueeze(1) == torch.arange(len(self.labels), device=self.labels.device)


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
    source: Tensor,
    target: Tensor,
    *taken: Tensor,
) -> Sums:
    both = (taken[0], taken[1]) if taken else None
    return sums(_squared_distances(x, y), DomainLabels(source, target, num_classes, both))


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
