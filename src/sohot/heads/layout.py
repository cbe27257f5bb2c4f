"""The position of each row of each fit while a stack trains.

Labels never change during training, so rows are laid out class by class once, and no step needs to sort. A class has
the same slots in every fit of the stack; slots without a row are zero and have no weight. Classes of very different
sizes go to different buckets, as in `sohot.functional.grouping`. All source slots come before all target slots.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..functional.grouping import class_counts


class StackBucket(NamedTuple):
    """Classes of similar size; class number i has the slots first + i·width … of each domain's part."""

    classes: list[int]
    source_width: int
    target_width: int
    source_first: int
    target_first: int  # within the target's part

    @property
    def slots(self) -> tuple[int, int]:
        """Number of source slots and target slots."""
        return len(self.classes) * self.source_width, len(self.classes) * self.target_width


class StackLayout(NamedTuple):
    """The slots of a stack, on the CPU."""

    num_classes: int
    buckets: list[StackBucket]
    source_counts: Tensor  # (F, C)
    target_counts: Tensor  # (F, C)
    source_slots: list[Tensor]  # for each fit, the slot of each source row
    target_slots: list[Tensor]  # and of each target row
    sizes: tuple[int, int]  # slots of the source and of the target

    @property
    def slots(self) -> int:
        """Number of slots of a fit."""
        return sum(self.sizes)

    def taken(self) -> Tensor:
        """Which slots hold a row: (F, slots), 1 or 0."""
        taken = torch.zeros(len(self.source_slots), self.slots)
        for own, source, target in zip(taken, self.source_slots, self.target_slots, strict=True):
            own[source] = 1
            own[target] = 1
        return taken

    def classes(self) -> Tensor:
        """Class of each slot."""
        parts = [
            torch.tensor(bucket.classes).repeat_interleave(width)
            for side in ("source_width", "target_width")
            for bucket in self.buckets
            for width in (getattr(bucket, side),)
        ]
        return torch.cat(parts)

    def fill(self, source: Sequence[Tensor], target: Sequence[Tensor]) -> Tensor:
        """Put the rows of all fits into their slots: (F, slots, k)."""
        first = target[0]
        filled = first.new_zeros(len(target), self.slots, first.shape[1])
        for own, rows, slots in zip(filled, target, self.target_slots, strict=True):
            own[slots.to(own.device)] = rows
        for own, rows, slots in zip(filled, source, self.source_slots, strict=False):
            own[slots.to(own.device)] = rows
        return filled


def lay_out(labels: Sequence[tuple[Tensor, Tensor]], num_classes: int) -> StackLayout:
    """Lay out the rows of a stack of fits.

    Args:
        labels: For each fit the classes of its source rows (empty if one domain trains alone) and of its target rows.
        num_classes: Number of classes.

    Example:
        >>> layout = lay_out([(torch.tensor([1, 0, 1]), torch.tensor([0, 1]))], num_classes=2)
        >>> layout.classes(), layout.source_slots[0]
        (tensor([0, 0, 1, 1, 0, 1]), tensor([2, 0, 3]))
    """
    sources, targets = ([of_fit[side].cpu() for of_fit in labels] for side in (0, 1))
    source_counts = torch.stack([class_counts(of_fit, num_classes) for of_fit in sources])
    target_counts = torch.stack([class_counts(of_fit, num_classes) for of_fit in targets])
    buckets = _buckets(source_counts.amax(0), target_counts.amax(0))
    sizes = sum(bucket.slots[0] for bucket in buckets), sum(bucket.slots[1] for bucket in buckets)
    source_start = torch.zeros(num_classes, dtype=torch.int64)
    target_start = torch.zeros(num_classes, dtype=torch.int64)
    for bucket in buckets:
        places = torch.arange(len(bucket.classes))
        source_start[bucket.classes] = bucket.source_first + places * bucket.source_width
        target_start[bucket.classes] = sizes[0] + bucket.target_first + places * bucket.target_width
    return StackLayout(
        num_classes,
        buckets,
        source_counts,
        target_counts,
        [source_start[of_fit.long()] + _ranks(of_fit.long()) for of_fit in sources],
        [target_start[of_fit.long()] + _ranks(of_fit.long()) for of_fit in targets],
        sizes,
    )


def _ranks(labels: Tensor) -> Tensor:
    """Number the rows of each class from 0."""
    order = labels.argsort(stable=True)
    _, counts = torch.unique_consecutive(labels[order], return_counts=True)
    ranks = torch.empty_like(labels)
    ranks[order] = torch.cat([torch.arange(int(n)) for n in counts] or [labels.new_empty(0)])
    return ranks


def _buckets(source: Tensor, target: Tensor) -> list[StackBucket]:
    """Keep all classes together if padding costs little, else split them by powers of two of their sizes."""
    present = [c for c in range(len(source)) if source[c] + target[c] > 0]
    together = len(present) * int(source.max() + target.max())
    if together <= 1.5 * int((source + target).sum()):
        groups = [present]
    else:
        keys = {c: (int(source[c]).bit_length(), int(target[c]).bit_length()) for c in present}
        groups = [[c for c in present if keys[c] == key] for key in sorted(set(keys.values()))]
    buckets: list[StackBucket] = []
    for classes in groups:
        before = [sum(bucket.slots[side] for bucket in buckets) for side in (0, 1)]
        widths = int(source[classes].max()), int(target[classes].max())
        buckets.append(StackBucket(classes, *widths, *before))
    return buckets
