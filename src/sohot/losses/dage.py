"""DAGE-LDA: domain adaptation by graph embedding, with the graphs of linear discriminant analysis."""

from torch import Tensor

from ..methods.registry import default_loss_weight
from .domain_labels import DomainLabels
from .domain_loss import DomainLoss


class GraphEmbeddingAlignment(DomainLoss):
    """Make pairs of one class close relative to pairs of two classes, across the domains.

    The loss is Σ D² over pairs of a source and a target row of one class, divided by Σ D² over pairs of two classes:
    the trace ratio of the paper's two graph Laplacians. It does not depend on the scale of the features, and is 0 for a
    batch that lacks one kind of pair.

    Hedegaard, Sheikh-Omar, Iosifidis: Supervised domain adaptation: a graph embedding perspective and a rectified
    experimental protocol. IEEE Transactions on Image Processing 2021.

    Args:
        num_classes: Number of classes.
        weight: Factor of the loss.
        check_values: Check labels and features in each call.

    Example:
        >>> import torch
        >>> loss = GraphEmbeddingAlignment(num_classes=2, weight=1.0)
        >>> x, y = torch.tensor([[0.0], [2.0]]), torch.tensor([0, 1])
        >>> loss(x, y, x + 1, y)  # (1 + 1) / (9 + 1)
        tensor(0.2000)
    """

    usual_weight = default_loss_weight("dage")
    is_scaled = False

    def __init__(self, num_classes: int, weight: float | None = None, check_values: bool = True) -> None:
        super().__init__(num_classes, weight, "none", check_values)

    def compute(self, source: Tensor, target: Tensor, labels: DomainLabels) -> Tensor:
        """Return the ratio of the sums."""
        near, far = labels.over_pairs(_sums, source, target)
        return (near / far.masked_fill(far == 0, 1)) * (far > 0)


def _sums(squared: Tensor, labels: DomainLabels) -> tuple[Tensor, Tensor]:
    return labels.same.sum(squared), labels.other.sum(squared)
