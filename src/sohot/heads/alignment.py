"""The alignment of every fit of a stack in a few batched products.

With fit · C + class as the class of a row, `functional.gram` could also compute a stack. It takes 0.7 to 0.85 of the
time and half the memory (60 fits × 31 classes × 128 features, one thread), but needs one scale for all fits and at
least one order, and its float64 Gram matrices would change the last digits of every trained fit. So the layout, which
is computed once, stays separate; pair weights, powers and shares come from `functional`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..functional.pairs import pair_weights, powers
from ..functional.terms import shares_of_counts
from .layout import StackBucket, StackLayout


class Group(NamedTuple):
    """Rows to align: B = F × classes of a bucket, or F if all rows of a fit are one class; W slots each."""

    bucket: StackBucket | None  # None: all slots of a fit
    averages: Tensor  # (B, 2, W) computes the mean of each domain; for the unbiased estimator the joint mean twice
    members: Tensor  # (B, W, 2) maps each row to the mean it is centred on
    signs: Tensor  # (B, W), a = (1/N, …, −1/N*, …)
    taken: Tensor  # (B, W) 1 for an included row, else 0
    pairs: Tensor | None  # (B, W, W), A = a aᵀ or the weights of a U-statistic; None if covariances are used


def make_groups(
    layout: StackLayout,
    orders: tuple[int, ...],
    scope: str,
    unbiased: bool,
    size: int,
    like: Tensor,
) -> list[Group]:
    """Build the groups of a stack.

    Args:
        layout: The layout of the rows.
        orders: Orders of the scatters; none for the means alone.
        scope: "class" or "marginal".
        unbiased: U-statistics instead of the plug-in estimate.
        size: Number of features.
        like: A tensor of the type and device to use.
    """
    taken = layout.taken().double().unsqueeze(2)
    needs_pairs = unbiased or orders not in ((), (2,))
    if scope == "marginal":
        is_source = torch.arange(layout.slots) < layout.sizes[0]
        return [_group(None, taken.squeeze(2), is_source, unbiased, needs_pairs or layout.slots <= size, like)]
    groups = []
    for bucket in layout.buckets:
        rows = rows_of(taken, bucket, layout.sizes[0]).squeeze(2)
        is_source = torch.arange(rows.shape[1]) < bucket.source_width
        # With fewer features than rows, covariances are smaller than a Gram matrix.
        groups.append(_group(bucket, rows, is_source, unbiased, needs_pairs or rows.shape[1] <= size, like))
    return groups


def rows_of(features: Tensor, bucket: StackBucket | None, source_slots: int) -> Tensor:
    """Put the source and target rows of each class side by side: (F·G, W, k)."""
    if bucket is None:
        return features
    fits, _, size = features.shape
    firsts = bucket.source_first, source_slots + bucket.target_first
    widths = bucket.source_width, bucket.target_width
    sides = [
        features[:, first : first + slots].reshape(fits * len(bucket.classes), width, size)
        for first, slots, width in zip(firsts, bucket.slots, widths, strict=True)
    ]
    return torch.cat(sides, 1)


def _group(
    bucket: StackBucket | None, taken: Tensor, is_source: Tensor, unbiased: bool, with_pairs: bool, like: Tensor
) -> Group:
    """Build a group from which of its slots hold a row: (B, W), 1 or 0."""
    taken = taken * ((taken * is_source).any(1, keepdim=True) & (taken * ~is_source).any(1, keepdim=True))
    source, target = taken * is_source, taken * ~is_source
    counts = source.sum(1, keepdim=True), target.sum(1, keepdim=True)
    means = source / counts[0].clamp(min=1), target / counts[1].clamp(min=1)
    signs = means[0] - means[1]
    averages, members = torch.stack(means, 1), torch.stack([source, target], 2)
    pairs = None
    if with_pairs:
        pairs = pair_weights(signs, source * counts[0] + target * counts[1] if unbiased else None)
    if unbiased:  # all rows are centred on the joint mean of both domains: see `functional.gram`
        pooled = taken / taken.sum(1, keepdim=True).clamp(min=1)
        averages, members = torch.stack([pooled, pooled], 1), torch.stack([taken, torch.zeros_like(taken)], 2)
    averages, members, signs, taken = (x.to(like) for x in (averages, members, signs, taken))
    return Group(bucket, averages, members, signs, taken, None if pairs is None else pairs.to(like))


def _class_counts(layout: StackLayout, order: Tensor | None) -> list[Tensor]:
    """Count the rows of the classes in the given order, or of all rows as one class, in both domains: (F, classes)."""
    sides = layout.source_counts, layout.target_counts
    return [of_side.sum(1, keepdim=True) if order is None else of_side[:, order] for of_side in sides]


class StackedDistances(NamedTuple):
    """Result of aligning a stack."""

    distances: Tensor  # (F, 1 + orders, classes) the means first; meaningless where the share is 0
    energy: Tensor  # (F,) mean squared distance of a row from its centre, without gradient


class StackedAlignment:
    """Mean and scatter distances of all fits of a stack.

    Args:
        layout: The layout of the rows.
        orders: Orders of the scatters; none for the means alone.
        scope: "class" or "marginal".
        estimator: "plugin" or "unbiased".
        size: Number of features.
        like: A tensor of the type and device to use.

    Attributes:
        shares: 1 / (classes in both domains) for each term, or 0 where it has too few rows: (F, 1 + orders, classes).
        classes: The class of each column of shares and distances; None if all rows of a domain are one class.
    """

    def __init__(
        self,
        layout: StackLayout,
        orders: Sequence[int],
        scope: str,
        estimator: str,
        size: int,
        like: Tensor,
    ) -> None:
        self.orders = tuple(orders)
        self.unbiased = estimator == "unbiased"
        self.fits = len(layout.source_slots)
        self.source_slots = layout.sizes[0]
        self.groups = make_groups(layout, self.orders, scope, self.unbiased, size, like)
        order = None
        if scope == "class":
            order = torch.tensor([c for bucket in layout.buckets for c in bucket.classes])
        self.classes = None if order is None else order.to(like.device)
        source, target = _class_counts(layout, order)
        self.shares = shares_of_counts(source, target, self.orders, estimator, torch.float64).to(like)
        of_groups = [group.taken.view(self.fits, -1).sum(1) for group in self.groups]
        self.rows = torch.stack(of_groups).sum(0).clamp(min=1)

    def __call__(self, features: Tensor, scale: Tensor) -> StackedDistances:
        """Compute the distances of features (F, slots, k), divided by `scale` (F,)."""
        distances, energies = [], []
        for group in self.groups:
            rows = rows_of(features, group.bucket, self.source_slots)
            inverse = scale.reciprocal().unsqueeze(1).expand(-1, len(rows) // self.fits).reshape(-1, 1, 1)
            means = group.averages @ rows
            centred = torch.baddbmm(rows, group.members, means, alpha=-1) * inverse
            difference = (means[:, 0] - means[:, 1]) * inverse.squeeze(2)
            found = self._distances(group, centred, difference.square().sum(1))
            distances.append(found.view(1 + len(self.orders), self.fits, -1))
            with torch.no_grad():
                energies.append((centred.square().sum(2) * group.taken).view(self.fits, -1).sum(1))
        energy = torch.stack(energies).sum(0) * scale.square() / self.rows
        return StackedDistances(torch.cat(distances, 2).transpose(0, 1), energy)

    def _distances(self, group: Group, centred: Tensor, of_means: Tensor) -> Tensor:
        """Distances of each group, the means first: (1 + orders, B)."""
        if not (self.orders or self.unbiased):
            return of_means.unsqueeze(0)
        if group.pairs is None:
            difference = (centred * group.signs.unsqueeze(2)).transpose(1, 2) @ centred
            return torch.stack([of_means, difference.square().sum((1, 2))])
        gram = centred @ centred.transpose(1, 2)
        if self.unbiased:
            of_means = (group.pairs * gram).sum((1, 2))
        of_order = powers(gram, max(self.orders, default=1))
        return torch.stack([of_means, *((group.pairs * of_order[order]).sum((1, 2)) for order in self.orders)])
