"""Rows of two domains with clusters, a shift, and a pool."""

import torch

from sohot.classifiers import Rows


def made_rows(
    classes: int = 4,
    source: int = 12,
    shots: int = 3,
    pool: int = 30,
    size: int = 24,
    passes: int = 1,
    shift: float = 1.0,
    noise: float = 1.0,
    seed: int = 0,
) -> tuple[Rows, torch.Tensor]:
    """Draw rows; returns them with the true classes of all (also of the pool)."""
    random = torch.Generator().manual_seed(seed)
    centres = 2 * torch.randn(classes, size, generator=random)
    moved = centres + shift * torch.randn(classes, size, generator=random)
    parts, truth, labels, is_target = [], [], [], []
    for count, of_target, labelled in ((source, False, True), (shots, True, True), (pool, True, False)):
        classes_of = torch.arange(classes).repeat_interleave(count)
        means = (moved if of_target else centres)[classes_of]
        parts.append(means + noise * torch.randn(len(classes_of), size, generator=random))
        truth.append(classes_of)
        labels.append(classes_of if labelled else torch.full_like(classes_of, -1))
        is_target.append(torch.full((len(classes_of),), of_target))
    features = torch.cat(parts).unsqueeze(1).repeat(1, passes, 1)
    if passes > 1:
        features[:, 1] += 0.3 * torch.randn(features[:, 1].shape, generator=random)
    return Rows(features, torch.cat(labels), torch.cat(is_target)), torch.cat(truth)
