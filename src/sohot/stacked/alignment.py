"""The alignment of every fit of a stack in a few batched products.

The same numbers as `sohot.ScatterAlignment` gives for each fit, on a layout that stays the same in every step: which
rows belong together, their signs and their weights are worked out once. Rows are centred before they are multiplied,
and divided by the scale, so that the powers stay in range of float32.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .layout import Bucket, Layout


class Alignment(NamedTuple):
    """What the alignment of a stack gives."""

    distances: Tensor  # (F, 1 + orders, groups) the means first; meaningless where the share is 0
    energy: Tensor  # (F,) mean squared distance of a row from its centre, without gradient


class _Group(NamedTuple):
    """Rows of one group (a class, or a whole domain) of every fit, B = F × groups; constant in training."""

    bucket: Bucket | None  # None: all slots of a fit are one group
    averages: Tensor  # (B, 2, W) takes the mean of each domain; for the unbiased estimator twice that of both together
    members: Tensor  # (B, W, 2) gives back to each row the mean it is centred on
    signs: Tensor  # (B, W) a
    taken: Tensor  # (B, W) 1 where a row takes part
    pairs: Tensor | None  # (B, W, W) A = a aᵀ, or the weights of a U-statistic; None where covariances are formed


class StackedAlignment:
    """Mean and scatter distances of all fits of a stack.

    Args:
        layout: Where the rows lie.
        orders: Orders of the scatters.
        scope: "class" or "marginal".
        estimator: "plugin" or "unbiased".
        features: A tensor that tells the type and the device.
        size: Number of features.
    """

    def __init__(
        self, layout: Layout, orders: Sequence[int], scope: str, estimator: str, features: Tensor, size: int
    ) -> None:
        self.orders = tuple(orders)
        self.unbiased = estimator == "unbiased"
        self.fits = len(layout.source_slots)
        self.source_size = layout.sizes[0]
        taken = layout.taken()
        if scope == "marginal":
            is_source = torch.arange(layout.slots) < layout.sizes[0]
            found: list[tuple[Bucket | None, Tensor, Tensor]] = [(None, taken * is_source, taken * ~is_source)]
            counts = layout.source_counts.sum(1, keepdim=True), layout.target_counts.sum(1, keepdim=True)
            self.groups_of: Tensor | None = None
        else:
            found = [(bucket, *self._of_bucket(taken, bucket)) for bucket in layout.buckets]
            order = torch.tensor([c for bucket in layout.buckets for c in bucket.classes])
            counts = layout.source_counts[:, order], layout.target_counts[:, order]
            self.groups_of = order.to(features.device)
        self.shares = self._shares(*counts).to(features)
        self.groups = [self._group(bucket, source, target, features, size) for bucket, source, target in found]

    def _of_bucket(self, taken: Tensor, bucket: Bucket) -> tuple[Tensor, Tensor]:
        """Which slots of each class hold a source row, and which a target row: each (F·G, W)."""
        rows = self._rows(taken.unsqueeze(2), bucket).squeeze(2)
        is_source = torch.arange(rows.shape[1]) < bucket.source_width
        return rows * is_source, rows * ~is_source

    def _rows(self, features: Tensor, bucket: Bucket | None) -> Tensor:
        """Set source and target rows of each class side by side: (F·G, W, k)."""
        if bucket is None:
            return features
        fits, _, size = features.shape
        shape = fits * len(bucket.classes)
        firsts = bucket.source_first, self.source_size + bucket.target_first
        sides = [
            features[:, first : first + slots].reshape(shape, width, size)
            for first, slots, width in zip(
                firsts, bucket.slots, (bucket.source_width, bucket.target_width), strict=True
            )
        ]
        return torch.cat(sides, 1)

    def _shares(self, source: Tensor, target: Tensor) -> Tensor:
        """Give each term 1 / (classes in both domains), or 0 where it has too few rows: (F, 1 + orders, groups)."""
        fewest = torch.minimum(source, target)
        needed = [1, *(3 if order % 2 and not self.unbiased else 2 for order in self.orders)]
        defined = torch.stack([fewest >= rows for rows in needed], 1)
        return defined.double() / (fewest > 0).sum(1).clamp(min=1).view(-1, 1, 1)

    def _group(self, bucket: Bucket | None, source: Tensor, target: Tensor, features: Tensor, size: int) -> _Group:
        source, target = source.double(), target.double()
        counts = source.sum(1, keepdim=True), target.sum(1, keepdim=True)
        in_both = ((counts[0] > 0) & (counts[1] > 0)).double()
        source, target = source * in_both, target * in_both
        means = source / counts[0].clamp(min=1), target / counts[1].clamp(min=1)
        signs, taken = means[0] - means[1], source + target
        averages, members = torch.stack(means, 1), torch.stack([source, target], 2)
        if self.unbiased:  # all rows are centred on the mean of both domains together
            pooled = taken / taken.sum(1, keepdim=True).clamp(min=1)
            averages, members = torch.stack([pooled, pooled], 1), torch.stack([taken, torch.zeros_like(taken)], 2)
        pairs = None
        if self.unbiased or self.orders != (2,) or signs.shape[1] <= size:
            pairs = signs.unsqueeze(2) * signs.unsqueeze(1)
            if self.unbiased:
                pairs = _without_self_pairs(pairs, source * counts[0] + target * counts[1])
            pairs = pairs.to(features)
        averages, members, signs, taken = (x.to(features) for x in (averages, members, signs, taken))
        return _Group(bucket, averages, members, signs, taken, pairs)

    def __call__(self, features: Tensor, scale: Tensor) -> Alignment:
        """Compute the distances of features (F, slots, k), divided by `scale` (F,)."""
        distances, energies, rows = [], [], []
        for group in self.groups:
            stacked = self._rows(features, group.bucket)
            inverse = scale.reciprocal().unsqueeze(1).expand(-1, len(stacked) // self.fits).reshape(-1, 1, 1)
            means = group.averages @ stacked
            centred = torch.baddbmm(stacked, group.members, means, alpha=-1) * inverse
            difference = (means[:, 0] - means[:, 1]) * inverse.squeeze(2)
            found = self._distances(group, centred, difference.square().sum(1))
            distances.append(found.view(1 + len(self.orders), self.fits, -1))
            with torch.no_grad():
                energy = (centred.square().sum(2) * group.taken).view(self.fits, -1).sum(1) * scale.square()
                energies.append(energy)
                rows.append(group.taken.view(self.fits, -1).sum(1))
        mean_energy = torch.stack(energies).sum(0) / torch.stack(rows).sum(0).clamp(min=1)
        return Alignment(torch.cat(distances, 2).transpose(0, 1), mean_energy)

    def _distances(self, group: _Group, centred: Tensor, of_means: Tensor) -> Tensor:
        """Distances of each group, the means first: (1 + orders, B)."""
        if group.pairs is None:  # fewer features than rows: the difference of the covariances themselves is smaller
            difference = (centred * group.signs.unsqueeze(2)).transpose(1, 2) @ centred
            return torch.stack([of_means, difference.square().sum((1, 2))])
        gram = centred @ centred.transpose(1, 2)
        of_order = {1: (group.pairs * gram).sum((1, 2)) if self.unbiased else of_means}
        power = gram
        for order in range(2, max(self.orders) + 1):  # by multiplication: entries are negative as often as not
            power = power * gram
            if order in self.orders:
                of_order[order] = (group.pairs * power).sum((1, 2))
        return torch.stack([of_order[order] for order in (1, *self.orders)])


def _without_self_pairs(pairs: Tensor, count: Tensor) -> Tensor:
    """Turn 1/n² over all pairs of one domain into 1/(n(n−1)) over different rows; a lone row keeps its one pair."""
    n = count.unsqueeze(2)
    same_domain = (pairs > 0) & (n > 1)
    diagonal = torch.eye(pairs.shape[1], dtype=torch.bool)
    return torch.where(same_domain, torch.where(diagonal, 0.0, pairs * n / (n - 1).clamp(min=1)), pairs)
