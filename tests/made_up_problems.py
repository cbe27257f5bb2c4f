"""Small made-up problems."""

import torch
from oracle import batch

from sohot.heads import FeatureProblem


def problem(
    seed: int = 0,
    source: tuple[int, ...] = (5, 4, 6),
    target: tuple[int, ...] = (3, 3, 3),
    size: int = 5,
    dtype: torch.dtype = torch.float64,
) -> FeatureProblem:
    """Random rows with the given numbers of each class; 0 leaves a class out."""
    return FeatureProblem(*batch(seed, list(source), list(target), size, dtype), num_classes=len(source))


def blobs(seed: int) -> tuple[FeatureProblem, torch.Tensor, torch.Tensor]:
    """Six classes whose target is moved as a whole: 30 source rows and 3 target rows of each.

    Returns the problem and test rows of the target with their labels.
    """
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(6, 16, generator=generator)
    moved = 3 * torch.randn(16, generator=generator)

    def draw(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        labels = torch.arange(6).repeat(rows)
        return centres[labels] + 1.5 * torch.randn(len(labels), 16, generator=generator), labels

    source, target, test = draw(30), draw(3), draw(60)
    return FeatureProblem(*source, target[0] + moved, target[1], 6), test[0] + moved, test[1]
