"""CCSA: classification and contrastive semantic alignment."""

from torch import Tensor

from ..methods.registry import default_loss_weight
from .domain_labels import DomainLabels
from .domain_loss import MarginLoss


class ContrastiveSemanticAlignment(MarginLoss):
    """Pull pairs of one class together across the domains, push pairs of two classes apart up to a margin.

    Over all pairs of a source row and a target row at distance D the loss is the mean of D²/2 over pairs of one
    class plus the mean of max(0, margin − D)²/2 over pairs of two. The paper weighs it by γ against 1 − γ for the
    cross-entropy, γ = 0.25; `weight` is γ / (1 − γ).

    Motiian, Piccirilli, Adjeroh, Doretto: Unified deep supervised domain adaptation and generalization. ICCV 2017.

    Args:
        num_classes: Number of classes.
        weight: Factor of the loss.
        margin: Distance beyond which two classes are far enough apart.
        feature_scale: "none" or "initial", see `DomainLoss`.
        check_values: Check labels and features in each call.

    Example:
        >>> import torch
        >>> loss = ContrastiveSemanticAlignment(num_classes=2, weight=1.0)
        >>> x, y = torch.tensor([[0.0], [3.0]]), torch.tensor([0, 1])
        >>> loss(x, y, x + 0.5, y)  # the classes are far apart, so only the shift of 0.5 counts
        tensor(0.1250)
    """

    usual_weight = default_loss_weight("ccsa")

    def compute(self, source: Tensor, target: Tensor, labels: DomainLabels) -> Tensor:
        """Return the mean attraction plus the mean repulsion."""
        near, pairs, far, other_pairs = labels.over_pairs(self._sums, source, target)
        return (near / pairs.clamp(min=1) + far / other_pairs.clamp(min=1)) / 2

    def _sums(self, squared: Tensor, labels: DomainLabels) -> tuple[Tensor, ...]:
        # The root has no slope at 0, where two rows coincide: such a pair gets a zero gradient instead of NaN.
        apart = (self.margin - squared.clamp(min=1e-12).sqrt()).clamp(min=0).square()
        return *labels.same.sum_and_count(squared), *labels.other.sum_and_count(apart)
