"""Default numbers of images per class in a batch."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..data.batches import BalancedBatches
from ..data.labelled import LabelledImages
from .config import RunConfig

LEAST = 4
"""Minimum number of images per class and domain; if they do not fit, a batch shows fewer classes."""


@dataclass(frozen=True)
class BatchShape:
    """Classes in a batch and images per class; None means all."""

    classes: int | None
    source: int | None
    target: int | None


def shape_batches(source_counts: Sequence[int], target_counts: Sequence[int], rows: int) -> BatchShape:
    """Choose a batch of at most `rows` images.

    The whole training set if it fits. Otherwise all classes, so that the classifier sees them against each other,
    with all target images (they are few) and as many source images as fit; if that is under 4, fewer classes.

    Args:
        source_counts: Source images of each class.
        target_counts: Target images of each class.
        rows: Maximum number of images in a batch; 0 for no limit.

    Example:
        >>> shape_batches([20] * 31, [3] * 31, rows=256)
        BatchShape(classes=None, source=5, target=None)
        >>> shape_batches([20] * 5, [3] * 5, rows=256)
        BatchShape(classes=None, source=None, target=None)
    """
    if not rows or sum(source_counts) + sum(target_counts) <= rows:
        return BatchShape(None, None, None)
    shown = sum(1 for counts in zip(source_counts, target_counts, strict=True) if any(counts))
    most_source, most_target = max(source_counts), max(target_counts)
    least = min(most_source, LEAST) + min(most_target, LEAST)
    classes = min(shown, max(1, rows // least))
    each = max(least, rows // classes)
    target = min(most_target, max(each - most_source, each // 2))
    source = min(most_source, each - target)
    return BatchShape(
        classes if classes < shown else None,
        source if 0 < source < most_source else None,
        target if 0 < target < most_target else None,
    )


def make_batches(config: RunConfig, source: LabelledImages | None, target: LabelledImages | None) -> BalancedBatches:
    """Make the batches of a run from the configuration, with suitable values for what it leaves open."""
    num_classes = max(len(images.classes) for images in (source, target) if images is not None)
    none = [0] * num_classes
    chosen = shape_batches(
        none if source is None else source.counts(), none if target is None else target.counts(), config.batch_rows
    )
    return BalancedBatches(
        _labels(source),
        _labels(target),
        num_classes,
        config.batch_classes or chosen.classes,
        config.source_per_class or chosen.source,
        config.target_per_class or chosen.target,
        config.seed,
    )


def _labels(images: LabelledImages | None) -> Tensor:
    return torch.tensor(() if images is None else images.labels, dtype=torch.int64)
