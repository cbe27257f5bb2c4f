"""The losses of other papers, and rows to try them on."""

import torch
from torch import Tensor

from sohot.losses import (
    ContrastiveSemanticAlignment,
    GraphEmbeddingAlignment,
    StochasticNeighborhoodAlignment,
    SupervisedContrastive,
    VariancePenalty,
)

CLASSES = 4
LOSSES = {
    "ccsa": lambda **more: ContrastiveSemanticAlignment(CLASSES, margin=3.0, **more),
    "dsne": lambda **more: StochasticNeighborhoodAlignment(CLASSES, **more),
    "dage": lambda **more: GraphEmbeddingAlignment(CLASSES, **more),
    "supcon": lambda **more: SupervisedContrastive(CLASSES, **more),
    "variance": lambda **more: VariancePenalty(CLASSES, **more),
}
SCALED = ("ccsa", "dsne", "variance")


def draw(seed: int = 0, rows: tuple[int, int] = (14, 7), size: int = 5) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Unequal classes: class 2 has one target row, class 3 none, and the rows are shuffled."""
    generator = torch.Generator().manual_seed(seed)
    source_labels = torch.tensor([0, 1, 2, 3] * rows[0])[: rows[0]][torch.randperm(rows[0], generator=generator)]
    target_labels = torch.tensor([0, 1, 0, 1, 2, 0, 1])[: rows[1]]

    def shape(n: int) -> Tensor:
        return torch.randn(n, size, dtype=torch.float64, generator=generator)

    centres = shape(CLASSES)
    return (
        shape(rows[0]) + centres[source_labels],
        source_labels,
        shape(rows[1]) + centres[target_labels] + 0.5,
        target_labels,
    )
