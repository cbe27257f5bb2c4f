"""The alignment of every fit of a stack in a few batched products.

The same numbers as `sohot.ScatterAlignment` gives for each fit, on a layout that stays the same in every step: which
rows belong together, their signs and their weights are worked out once. Rows are centred and divided by the scale
before they are multiplied, so that the powers stay in the range of float32.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .groups import Group, class_order, make_groups, rows_of, term_shares
from .layout import Layout


class Alignment(NamedTuple):
    """What the alignment of a stack gives."""

    distances: Tensor  # (F, 1 + orders, classes) the means first; meaningless where the share is 0
    energy: Tensor  # (F,) mean squared distance of a row from its centre, without gradient


class StackedAlignment:
    """Mean and scatter distances of all fits of a stack.

    Args:
        layout: Where the rows lie.
        orders: Orders of the scatters; none for the means alone.
        scope: "class" or "marginal".
        estimator: "plugin" or "unbiased".
        size: Number of features.
        like: A tensor that tells the type and the device.

    Attributes:
        shares: 1 / (classes in both domains) for each term, or 0 where it has too few rows: (F, 1 + orders, classes).
        classes: The class of each column of shares and distances; None where all rows of a domain are one class.
    """

    def __init__(
        self, layout: Layout, orders: Sequence[int], scope: str, estimator: str, size: int, like: Tensor
    ) -> None:
        self.orders = tuple(orders)
        self.unbiased = estimator == "unbiased"
        self.fits = len(layout.source_slots)
        self.source_slots = layout.sizes[0]
        self.groups = make_groups(layout, self.orders, scope, self.unbiased, size, like)
        self.shares = term_shares(layout, self.orders, scope, self.unbiased).to(like)
        self.classes = None if scope == "marginal" else class_order(layout).to(like.device)
        self.rows = torch.stack([group.taken.view(self.fits, -1).sum(1) for group in self.groups]).sum(0).clamp(min=1)

    def __call__(self, features: Tensor, scale: Tensor) -> Alignment:
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
        return Alignment(torch.cat(distances, 2).transpose(0, 1), energy)

    def _distances(self, group: Group, centred: Tensor, of_means: Tensor) -> Tensor:
        """Distances of each group, the means first: (1 + orders, B)."""
        if not (self.orders or self.unbiased):
            return of_means.unsqueeze(0)
        if group.pairs is None:
            difference = (centred * group.signs.unsqueeze(2)).transpose(1, 2) @ centred
            return torch.stack([of_means, difference.square().sum((1, 2))])
        gram = centred @ centred.transpose(1, 2)
        of_order = {1: (group.pairs * gram).sum((1, 2)) if self.unbiased else of_means}
        power = gram
        for order in range(
            2, max(self.orders, default=1) + 1
        ):  # by multiplication: entries are negative as often as not
            power = power * gram
            if order in self.orders:
                of_order[order] = (group.pairs * power).sum((1, 2))
        return torch.stack([of_order[order] for order in (1, *self.orders)])
