"""Which slots of the blocks of a bucket hold rows, and how much these weigh."""

from typing import NamedTuple

import torch
from torch import Tensor

from .grouping import Bucket
from .pairs import exact_type
from .row_weights import RowWeights, effective_rows

Weighting = tuple[RowWeights, ...]
"""Weights relative to the largest of each class and domain, for the distances, and to the largest of all, for the
energy; none if rows have no weights."""


class Slots(NamedTuple):
    """The slots of the blocks of a bucket: G classes of S slots, in `exact_type`."""

    in_source: Tensor  # (G, S) 1 where a slot holds a source row, else 0
    in_target: Tensor  # (G, S)
    counts: tuple[Tensor, Tensor]  # (G, 1) source rows and target rows
    source: Tensor  # (G, S) weight of a source row, at most 1, else 0: without weights `in_source`
    target: Tensor  # (G, S)
    totals: tuple[Tensor, Tensor]  # (G, 1) sums of the weights
    effective: tuple[Tensor, Tensor]  # (G, 1) effective rows (Σw)² / Σw²
    of_energy: Tensor  # (G, S) weight of each row among all rows of all classes: without weights 1

    @property
    def taken(self) -> Tensor:
        """1 where a slot holds a row, else 0."""
        return self.in_source + self.in_target


def slots_of(bucket: Bucket, weighting: Weighting) -> Slots:
    """Tell source slots, target slots and empty ones apart, and weigh them."""
    device, exact, width = bucket.classes.device, exact_type(bucket.classes.device), bucket.source_width
    slot = torch.arange(width + bucket.target_width, device=device)
    n, m = (counts.view(-1, 1).to(exact) for counts in (bucket.source_counts, bucket.target_counts))
    in_source = (slot < n).to(exact)
    in_target = ((slot >= width) & (slot < width + m)).to(exact)
    if not weighting:
        return Slots(
            in_source, in_target, (n, m), in_source, in_target, (n, m), (n, m), of_energy=in_source + in_target
        )
    within, overall = (_by_slot(own, bucket) for own in weighting)
    source, target = in_source * within, in_target * within
    totals = source.sum(1, keepdim=True), target.sum(1, keepdim=True)
    squares = source.square().sum(1, keepdim=True), target.square().sum(1, keepdim=True)
    effective = effective_rows(totals[0], squares[0]), effective_rows(totals[1], squares[1])
    return Slots(in_source, in_target, (n, m), source, target, totals, effective, overall)


def _by_slot(weights: RowWeights, bucket: Bucket) -> Tensor:
    """Put the weights of the rows into their slots: (G, S)."""
    groups, width = bucket.classes.numel(), bucket.source_width + bucket.target_width
    flat = weights.source.new_zeros(groups * (width + 1) + 1)
    flat[bucket.source_slots] = weights.source
    flat[bucket.target_slots] = weights.target
    return flat[:-1].view(groups, width + 1)[:, :width]
