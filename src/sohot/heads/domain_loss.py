"""A loss of another paper for all fits of a stack, in a few batched products; `sohot.losses` has the formula."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..losses.domain_labels import DomainLabels
from ..losses.domain_loss import DomainLoss, loss_class
from ..methods.settings import HeadSettings
from .layout import StackLayout


class _ClassSlots(NamedTuple):
    """Slots of one bucket in one domain: G classes of W slots each."""

    of_target: bool
    first: int  # within the domain's part
    classes: int
    width: int

    def of(self, features: Tensor) -> Tensor:
        """Select the block from all slots of its domain: (F, G, W, k)."""
        slots = features[:, self.first : self.first + self.classes * self.width]
        return slots.reshape(len(features), self.classes, self.width, -1)


class StackedLabels(DomainLabels):
    """The labels of all fits of a stack. Slots are laid out by class, so sums over a class need no search for rows.

    Args:
        layout: The layout of the rows.
        like: A tensor of the type and device to use.

    Attributes:
        counts: Number of rows of each group (one class in one domain): (F, groups).
    """

    def __init__(self, layout: StackLayout, like: Tensor) -> None:
        first, classes = layout.sizes[0], layout.classes().to(like.device)
        slots = torch.split(layout.taken().double(), list(layout.sizes), 1)
        source, target = ((side > 0).to(like.device) for side in slots)
        super().__init__(classes[:first], classes[first:], layout.num_classes, (source, target))
        self.target_shares = (slots[1] / slots[1].sum(1, keepdim=True).clamp(min=1)).unsqueeze(2).to(like)
        self.blocks: list[tuple[_ClassSlots, Tensor, Tensor]] = []  # 1 for each row, and what divides sums
        counts = []
        for bucket in layout.buckets:
            firsts, widths = (bucket.source_first, bucket.target_first), (bucket.source_width, bucket.target_width)
            for of_target, first, width in zip((False, True), firsts, widths, strict=True):
                if not width:
                    continue
                block = _ClassSlots(of_target, first, len(bucket.classes), width)
                taken = block.of(slots[of_target].unsqueeze(2))
                count = taken.sum(2, keepdim=True)
                counts.append(count.flatten(1))
                self.blocks.append((block, taken.to(like), count.clamp(min=1).to(like)))
        self.counts = torch.cat(counts, 1).to(like)

    def target_mean(self, target: Tensor) -> Tensor:
        """Average the target rows of each fit: (F, 1, k)."""
        return (target * self.target_shares).sum(1, keepdim=True)

    def class_variances(self, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Average the squared distance of each group's rows from their mean; also return the number of rows."""
        return self._squares(source, target) / self.counts.clamp(min=1), self.counts

    def spread(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the root mean squared distance of a row from its mean, over groups of two rows or more: (F,)."""
        left_out = self.counts <= 1
        squares = self._squares(source, target).masked_fill(left_out, 0)
        return (squares.sum(1) / self.counts.masked_fill(left_out, 0).sum(1).clamp(min=1)).sqrt()

    def _squares(self, source: Tensor, target: Tensor) -> Tensor:
        """Sum the squared distances of each group's rows from their mean: (F, groups)."""
        squares = []
        for block, taken, divisor in self.blocks:
            rows = block.of(target if block.of_target else source)
            centred = rows - (rows * taken).sum(2, keepdim=True) / divisor
            squares.append((centred * taken).square().sum((2, 3)))
        return torch.cat(squares, 1)


class StackedLoss:
    """A loss on the features of both domains.

    Args:
        kind: Class of the loss.
        settings: Settings of each fit.
        layout: The layout of the rows.
        like: A tensor of the type and device to use.
    """

    def __init__(
        self,
        kind: type[DomainLoss],
        settings: Sequence[HeadSettings],
        layout: StackLayout,
        like: Tensor,
    ) -> None:
        self.labels = StackedLabels(layout, like)
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


def make_loss(settings: Sequence[HeadSettings], layout: StackLayout, like: Tensor) -> StackedLoss | None:
    """Build the loss that the method of the fits needs; None for a method without one. See `StackedLoss`."""
    kind = loss_class(settings[0].resolved_method().loss)
    return None if kind is None else StackedLoss(kind, settings, layout, like)


def column(values: Sequence[float | None], like: Tensor) -> Tensor:
    """Collect one number of each fit: (F,)."""
    return torch.tensor(values, dtype=torch.float64).to(like)
