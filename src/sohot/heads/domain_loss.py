"""A loss of another paper for all fits of a stack, in a few batched products; `sohot.losses` has the formula."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..functional.row_weights import positive
from ..losses.domain_labels import DomainLabels, LabelWeights
from ..losses.domain_loss import DomainLoss, loss_class
from ..methods.settings import HeadSettings
from .layout import StackLayout
from .slot_weights import slot_weights


class _ClassSlots(NamedTuple):
    """Slots of one bucket in one domain: G classes of W slots each."""

    of_target: bool
    first: int  # within the domain's part
    classes: int
    width: int
    weights: Tensor  # (F, G, W, 1) of the rows, relative to the largest of a class: at most 1, 0 where there is no row
    roots: Tensor  # (F, G, W, 1) of the weights
    totals: Tensor  # (F, G, 1, 1) sum of the weights of each class; 1 without rows

    def of(self, features: Tensor) -> Tensor:
        """Select the block from all slots of its domain: (F, G, W, k)."""
        slots = features[:, self.first : self.first + self.classes * self.width]
        return slots.reshape(len(features), self.classes, self.width, -1)


class StackedLabels(DomainLabels):
    """The labels of all fits of a stack. Slots are laid out by class, so sums over a class need no search for rows.

    Args:
        layout: The layout of the rows.
        like: A tensor of the type and device to use.
        weights: Weights of the slots, (F, slots) or (slots,): see `slot_weights`; None for equal weights.

    Attributes:
        counts: Number of rows of each group (one class in one domain): (F, groups).
        totals: The sum of their weights, relative to the largest of the group: (F, groups).
        shares: The sum of their weights, relative to the largest of the fit: (F, groups).
    """

    def __init__(self, layout: StackLayout, like: Tensor, weights: Tensor | None = None) -> None:
        first, classes = layout.sizes[0], layout.classes().to(like.device)
        slots = slot_weights(torch.ones(layout.slots) if weights is None else weights, layout)
        there = (slots.source > 0).to(like.device), (slots.target > 0).to(like.device)
        given = None if weights is None else LabelWeights.of(slots).to(like)
        super().__init__(classes[:first], classes[first:], layout.num_classes, there, given)
        target = (slots.target > 0).double()
        self.target_shares: Tensor = (target / positive(target.sum(1, keepdim=True))).unsqueeze(2).to(like)
        self.blocks: list[_ClassSlots] = []
        overall, counts, totals, shares = slots.overall(), [], [], []
        for bucket in layout.buckets:
            firsts, widths = (bucket.source_first, bucket.target_first), (bucket.source_width, bucket.target_width)
            for of_target, first, width in zip((False, True), firsts, widths, strict=True):
                if not width:
                    continue
                block = _ClassSlots(of_target, first, len(bucket.classes), width, target, target, target)
                own = block.of(slots[of_target].unsqueeze(2))
                counts.append((own > 0).sum(2).flatten(1))
                shares.append(block.of(overall[of_target].unsqueeze(2)).sum(2).flatten(1))
                own = own / positive(own.amax(2, keepdim=True))
                total = own.sum(2, keepdim=True)
                totals.append(total.flatten(1))
                weighting = own.to(like), own.sqrt().to(like), positive(total).to(like)
                self.blocks.append(_ClassSlots(*block[:4], *weighting))
        self.counts, self.totals, self.shares = (torch.cat(parts, 1).to(like) for parts in (counts, totals, shares))

    def target_mean(self, target: Tensor) -> Tensor:
        """Average the target rows of each fit: (F, 1, k)."""
        return (target * self.target_shares).sum(1, keepdim=True)

    def class_variances(self, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Average the squared distance of each group's rows from their mean; also return the number of rows."""
        return self._squares(source, target) / positive(self.totals), self.counts

    def spread(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the root mean squared distance of a row from its mean, over groups of two rows or more: (F,)."""
        left_out = self.counts <= 1
        shares = self.shares.masked_fill(left_out, 0)
        squares = self._squares(source, target) * (shares / positive(self.totals))
        return (squares.masked_fill(left_out, 0).sum(1) / positive(shares.sum(1))).sqrt()

    def _squares(self, source: Tensor, target: Tensor) -> Tensor:
        """Sum the weighted squared distances of each group's rows from their mean: (F, groups)."""
        squares = []
        for block in self.blocks:
            rows = block.of(target if block.of_target else source)
            centred = rows - (rows * block.weights).sum(2, keepdim=True) / block.totals
            squares.append((centred * block.roots).square().sum((2, 3)))
        return torch.cat(squares, 1)


class StackedLoss:
    """A loss on the features of both domains.

    Args:
        kind: Class of the loss.
        settings: Settings of each fit.
        layout: The layout of the rows.
        like: A tensor of the type and device to use.
        weights: Weights of the slots, (F, slots) or (slots,): see `slot_weights`; None for equal weights.
    """

    def __init__(
        self,
        kind: type[DomainLoss],
        settings: Sequence[HeadSettings],
        layout: StackLayout,
        like: Tensor,
        weights: Tensor | None = None,
    ) -> None:
        self.labels = StackedLabels(layout, like, weights)
        self.source_slots = layout.sizes[0]
        self.loss = kind(layout.num_classes)
        for name in kind.numbers:
            setattr(self.loss, name, column([getattr(of_fit, name) for of_fit in settings], like).view(-1, 1, 1))
        self.weight = column([of_fit.used_loss_weight() for of_fit in settings], like)

    def __call__(self, features: Tensor, scale: Tensor) -> Tensor:
        """Compute the weighted loss of features (F, slots, k), divided by `scale` (F,) where that matters: (F,)."""
        if self.loss.is_scaled:
            features = features / scale.view(-1, 1, 1)
        source, target = features[:, : self.source_slots], features[:, self.source_slots :]
        return self.weight * self.loss.compute(source, target, self.labels)

    @torch.no_grad()
    def spread(self, features: Tensor) -> Tensor:
        """Measure the `scale` to use: (F,)."""
        return self.labels.spread(features[:, : self.source_slots], features[:, self.source_slots :])


def make_loss(
    settings: Sequence[HeadSettings], layout: StackLayout, like: Tensor, weights: Tensor | None = None
) -> StackedLoss | None:
    """Build the loss that the method of the fits needs; None for a method without one. See `StackedLoss`."""
    kind = loss_class(settings[0].resolved_method().loss)
    return None if kind is None else StackedLoss(kind, settings, layout, like, weights)


def column(values: Sequence[float | None], like: Tensor) -> Tensor:
    """Collect one number of each fit: (F,)."""
    return torch.tensor(values, dtype=torch.float64).to(like)
