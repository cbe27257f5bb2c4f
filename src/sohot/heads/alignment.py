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
from ..functional.row_weights import ClassRows, RowWeights, class_rows, effective_rows, positive
from ..functional.terms import RowsNeeded, shares_of_rows
from .layout import StackBucket, StackLayout
from .slot_weights import slot_weights


class Group(NamedTuple):
    """Rows to align: B = F × classes of a bucket, or F if all rows of a fit are one class; W slots each."""

    bucket: StackBucket | None  # None: all slots of a fit
    averages: Tensor  # (B, 2, W) computes the mean of each domain; for the unbiased estimator the joint mean twice
    members: Tensor  # (B, W, 2) maps each row to the mean it is centred on
    signs: Tensor  # (B, W), a = (1/N, …, −1/N*, …), or w/Σw in place of 1/N
    energy_weights: Tensor  # (B, W) weight of an included row among all rows of its fit; without weights 1
    pairs: Tensor | None  # (B, W, W), A = a aᵀ or the weights of a U-statistic; None if covariances are used


def make_groups(
    layout: StackLayout,
    orders: tuple[int, ...],
    scope: str,
    unbiased: bool,
    size: int,
    like: Tensor,
    weights: RowWeights,
) -> list[Group]:
    """Build the groups of a stack.

    Args:
        layout: The layout of the rows.
        orders: Orders of the scatters; none for the means alone.
        scope: "class" or "marginal".
        unbiased: U-statistics instead of the plug-in estimate.
        size: Number of features.
        like: A tensor of the type and device to use.
        weights: Weights of the slots, 0 where there is no row.
    """
    slots = torch.stack([torch.cat(weights, 1), torch.cat(weights.overall(), 1)], 2)
    needs_pairs = unbiased or orders not in ((), (2,))
    if scope == "marginal":
        is_source = torch.arange(layout.slots) < layout.sizes[0]
        return [_group(None, slots, is_source, unbiased, needs_pairs or layout.slots <= size, like)]
    groups = []
    for bucket in layout.buckets:
        rows = rows_of(slots, bucket, layout.sizes[0])
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
    bucket: StackBucket | None, slots: Tensor, is_source: Tensor, unbiased: bool, with_pairs: bool, like: Tensor
) -> Group:
    """Build a group from the weights of its slots (B, W, 2): for the distances and for the energy."""
    weights, of_energy = slots.unbind(2)
    in_both = (weights * is_source).any(1, keepdim=True) & (weights * ~is_source).any(1, keepdim=True)
    weights, of_energy = weights * in_both, of_energy * in_both
    taken = (weights > 0).double()
    domains = [own / positive(own.amax(1, keepdim=True)) for own in (weights * is_source, weights * ~is_source)]
    source, target = taken * is_source, taken * ~is_source
    means = [own / positive(own.sum(1, keepdim=True)) for own in domains]
    signs = means[0] - means[1]
    averages, members = torch.stack(means, 1), torch.stack([source, target], 2)
    pairs = None
    if with_pairs:
        rows = [effective_rows(own.sum(1, keepdim=True), own.square().sum(1, keepdim=True)) for own in domains]
        pairs = pair_weights(signs, source * rows[0] + target * rows[1] if unbiased else None)
    if unbiased:  # all rows are centred on the joint mean of both domains, without weights: see `functional.gram`
        pooled = taken / taken.sum(1, keepdim=True).clamp(min=1)
        averages, members = torch.stack([pooled, pooled], 1), torch.stack([taken, torch.zeros_like(taken)], 2)
    averages, members, signs, of_energy = (x.to(like) for x in (averages, members, signs, of_energy))
    return Group(bucket, averages, members, signs, of_energy, None if pairs is None else pairs.to(like))


def _class_rows(layout: StackLayout, order: Tensor | None, weights: RowWeights) -> list[ClassRows]:
    """Count the rows of the classes in the given order, or of all rows as one class, in both domains: (F, classes)."""
    parts = torch.split(layout.classes(), list(layout.sizes))
    if order is None:
        return [class_rows(torch.zeros_like(own), 1, w) for own, w in zip(parts, weights, strict=True)]
    found = [class_rows(own, layout.num_classes, w) for own, w in zip(parts, weights, strict=True)]
    return [ClassRows(*(column[:, order] for column in rows)) for rows in found]


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
        weights: Weights of the slots, (F, slots) or (slots,): see `slot_weights`; None for equal weights.
        full_rows: See `sohot.ScatterAlignment`.
        scatter_rows: See `sohot.ScatterAlignment`.

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
        weights: Tensor | None = None,
        full_rows: float = 1,
        scatter_rows: float = 1,
    ) -> None:
        self.orders = tuple(orders)
        self.unbiased = estimator == "unbiased"
        self.fits = len(layout.source_slots)
        self.source_slots = layout.sizes[0]
        slots = slot_weights(torch.ones(layout.slots) if weights is None else weights, layout)
        self.groups = make_groups(layout, self.orders, scope, self.unbiased, size, like, slots)
        order = None
        if scope == "class":
            order = torch.tensor([c for bucket in layout.buckets for c in bucket.classes])
        self.classes = None if order is None else order.to(like.device)
        source, target = _class_rows(layout, order, slots)
        needed = RowsNeeded(full_rows, scatter_rows).checked()
        self.shares = shares_of_rows(source, target, self.orders, estimator, torch.float64, needed).to(like)
        of_groups = [group.energy_weights.view(self.fits, -1).sum(1) for group in self.groups]
        self.rows = positive(torch.stack(of_groups).sum(0))

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
                energies.append((centred.square().sum(2) * group.energy_weights).view(self.fits, -1).sum(1))
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
