"""The position of each row when the rows of both domains are laid out class by class.

Rows come in any order and classes in any size; a batched matrix product needs equal blocks. Each class that occurs in
both domains becomes a block of `source_width + target_width` slots; unused slots stay zero and carry no weight.
Classes of very different sizes go to different buckets, so that padding at most about doubles the work.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Bucket(NamedTuple):
    """Classes of similar size, and the slot of every row.

    `source_slots` and `target_slots` number the slots of all blocks consecutively; a row of none of the classes gets
    the slot after the last block.
    """

    classes: Tensor  # (G,) the classes, ascending
    source_counts: Tensor  # (G,) rows of each class
    target_counts: Tensor  # (G,)
    source_slots: Tensor  # (n,)
    target_slots: Tensor  # (m,)
    source_width: int  # slots of each block for source rows
    target_width: int  # and for target rows


def class_counts(labels: Tensor, num_classes: int) -> Tensor:
    """Count the rows of each class.

    The shape is fixed, so a compiler can trace it; a label out of range cannot write out of bounds.
    """
    inside = labels.long().clamp(0, num_classes - 1)
    return torch.zeros(num_classes, dtype=torch.int64, device=labels.device).index_add(
        0, inside, torch.ones_like(inside)
    )


def largest_class(source_labels: Tensor, target_labels: Tensor, num_classes: int) -> int:
    """Return how many rows the largest class has, in both domains together (reads the labels)."""
    counts = class_counts(source_labels, num_classes) + class_counts(target_labels, num_classes)
    return int(counts.max())


def group_by_class(source_labels: Tensor, target_labels: Tensor, num_classes: int, extra: int = 0) -> list[Bucket]:
    """Lay out the classes that occur in both domains; `extra` slots stay free at the end of each block."""
    source_labels, target_labels = source_labels.long(), target_labels.long()
    source_counts = class_counts(source_labels, num_classes)
    target_counts = class_counts(target_labels, num_classes)
    shared = ((source_counts > 0) & (target_counts > 0)).nonzero().flatten()
    source_ranks = _rank_within_class(source_labels, source_counts)
    target_ranks = _rank_within_class(target_labels, target_counts)

    buckets = []
    for classes in _split_by_size(shared, source_counts, target_counts):
        source_width, target_width = int(source_counts[classes].max()), int(target_counts[classes].max())
        width = source_width + target_width + extra
        first_slot = torch.full_like(source_counts, -1)
        first_slot[classes] = torch.arange(classes.numel(), device=classes.device) * width
        nowhere = classes.numel() * width
        source_start, target_start = first_slot[source_labels], first_slot[target_labels]
        buckets.append(
            Bucket(
                classes,
                source_counts[classes],
                target_counts[classes],
                torch.where(source_start < 0, nowhere, source_start + source_ranks),
                torch.where(target_start < 0, nowhere, target_start + source_width + target_ranks),
                source_width,
                target_width,
            )
        )
    return buckets


def _rank_within_class(labels: Tensor, counts: Tensor) -> Tensor:
    """Number the rows of each class from 0, in their order of appearance."""
    by_class = labels.argsort(stable=True)
    class_start = counts.cumsum(0) - counts
    ranks = torch.empty_like(labels)
    ranks[by_class] = torch.arange(labels.numel(), device=labels.device) - class_start[labels[by_class]]
    return ranks


def _split_by_size(classes: Tensor, source_counts: Tensor, target_counts: Tensor) -> list[Tensor]:
    """Keep the classes together if padding costs less than the rows themselves, else split by powers of two."""
    if classes.numel() == 0:
        return []
    source, target = source_counts[classes], target_counts[classes]
    padded = classes.numel() * (source.max() + target.max())
    if padded <= 2 * (source + target).sum():
        return [classes]
    magnitude = source.float().log2().floor() * 64 + target.float().log2().floor()
    return [classes[magnitude == one] for one in torch.unique(magnitude)]
