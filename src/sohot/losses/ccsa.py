"""CCSA: classification and contrastive semantic alignment."""

from torch import Tensor

from ..functional.plain_checks import check_not_negative
from ..methods.registry import default_loss_weight
from .cross_pairs import cross_pairs, mean_over
from .domain_loss import RivalLoss


class ContrastiveSemanticAlignment(RivalLoss):
    """Draw pairs of one class together across the domains, push pairs of two classes apart up to a margin.

    Over all pairs of a source row and a target row at the distance D the loss is the mean of D²/2 over pairs of one
    class plus the mean of max(0, margin − D)²/2 over pairs of two. The paper weighs it by γ against 1 − γ for the
    cross-entropy, γ = 0.25; `weight` is γ / (1 − γ).

    Motiian, Piccirilli, Adjeroh, Doretto: Unified deep supervised domain adaptation and generalization. ICCV 2017.

    Args:
        num_classes: Number of classes.
        weight: Factor of the loss.
        margin: Distance beyond which two classes are apart enough.
        feature_scale: "none" or "initial", see `RivalLoss`.
        check_values: Look at labels and features in each call.

    Example:
        >>> import torch
        >>> loss = ContrastiveSemanticAlignment(num_classes=2, weight=1.0)
        >>> x, y = torch.tensor([[0.0], [3.0]]), torch.tensor([0, 1])
        >>> loss(x, y, x + 0.5, y)  # the classes are far apart, so only the shift of 0.5 counts
        tensor(0.1250)
    """

    def __init__(
        self,
        num_classes: int,
        weight: float = default_loss_weight("ccsa"),
        margin: float = 1.0,
        feature_scale: str = "none",
        check_values: bool = True,
    ) -> None:
        super().__init__(num_classes, weight, feature_scale, check_values)
        self.margin = check_not_negative(margin, "margin")

    def compute(self, source: Tensor, source_labels: Tensor, target: Tensor, target_labels: Tensor) -> Tensor:
        """Give the mean of the attraction plus the mean of the repulsion."""
        squared, same = cross_pairs(source, source_labels, target, target_labels)
        # The root has no slope at 0, where two rows coincide: such a pair is pushed nowhere rather than to NaN.
        distance = squared.clamp(min=1e-12).sqrt()
        apart = (self.margin - distance).clamp(min=0).square() / 2
        return mean_over(squared / 2, same) + mean_over(apart, ~same)
