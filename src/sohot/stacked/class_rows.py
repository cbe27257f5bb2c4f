"""The rows of each class and domain of every fit, and how far they lie from their mean."""

from typing import NamedTuple

import torch
from torch import Tensor

from .layout import Layout


class _Block(NamedTuple):
    """Slots of one bucket in one domain: G classes of W slots each."""

    first: int
    classes: int
    width: int
    taken: Tensor  # (F, G, W, 1) 1 where there is a row
    counts: Tensor  # (F, G, 1, 1) rows of each class, 1 at least

    def of(self, features: Tensor) -> Tensor:
        """Take the block out of all slots: (F, G, W, k)."""
        slots = features[:, self.first : self.first + self.classes * self.width]
        return slots.reshape(len(features), self.classes, self.width, -1)


class ClassRows:
    """Groups of rows of one class and one domain.

    Args:
        layout: Where the rows lie.
        like: A tensor that tells the type and the device.

    Attributes:
        counts: Rows of each group, (F, groups).
    """

    def __init__(self, layout: Layout, like: Tensor) -> None:
        taken = layout.taken()
        self.blocks: list[_Block] = []
        counts = []
        for bucket in layout.buckets:
            sides = (
                (bucket.source_first, bucket.source_width),
                (layout.sizes[0] + bucket.target_first, bucket.target_width),
            )
            for first, width in sides:
                if not width:
                    continue
                block = _Block(first, len(bucket.classes), width, taken, taken)
                own = block.of(taken.unsqueeze(2))
                rows = own.sum(2, keepdim=True)
                counts.append(rows.flatten(1))
                self.blocks.append(block._replace(taken=own.to(like), counts=rows.clamp(min=1).to(like)))
        self.counts = torch.cat(counts, 1).to(like)

    def squares(self, features: Tensor) -> Tensor:
        """Sum up the squared distances of each group's rows from their mean: (F, groups)."""
        found = []
        for block in self.blocks:
            rows = block.of(features) * block.taken
            centred = rows - rows.sum(2, keepdim=True) / block.counts
            found.append((centred * block.taken).square().sum((2, 3)))
        return torch.cat(found, 1)

    @torch.no_grad()
    def spread(self, features: Tensor) -> Tensor:
        """Give the root mean squared distance of a row from its mean, over groups of two rows or more: (F,).

        The measure is that of `sohot.losses.rivals.base.RivalLoss`; 0 where no group has two rows.
        """
        shown = self.counts > 1
        rows = self.counts.masked_fill(~shown, 0).sum(1).clamp(min=1)
        return (self.squares(features).masked_fill(~shown, 0).sum(1) / rows).sqrt()
