"""Supervised contrastive loss over the rows of both domains."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from ..functional.plain_checks import check_positive
from ..methods.registry import default_loss_weight
from .anchors import Anchors
from .domain_labels import DomainLabels
from .domain_loss import DomainLoss


class SupervisedContrastive(DomainLoss):
    """Make the rows of a class find each other among all rows, whatever their domain.

    On features of length 1, each row is an anchor; the loss is the mean over its class of −log of the softmax of
    similarity / temperature over all other rows, then the mean over anchors whose class has another row.

    Khosla et al.: Supervised contrastive learning. NeurIPS 2020 (their L_out).

    Args:
        num_classes: Number of classes.
        weight: Factor of the loss.
        temperature: Above 0; a low value focuses on the nearest rows.
        check_values: Check labels and features in each call.

    Example:
        >>> import torch
        >>> loss = SupervisedContrastive(num_classes=2, weight=1.0)
        >>> x, y = torch.eye(2), torch.tensor([0, 1])
        >>> f"{loss(x, y, x, y):.4f}"  # each finds its partner: −log e¹⁰ / (e¹⁰ + 2)
        '0.0001'
    """

    usual_weight = default_loss_weight("supcon")
    is_scaled = False
    numbers = ("temperature",)

    temperature: float | Tensor

    def __init__(
        self,
        num_classes: int,
        weight: float | None = None,
        temperature: float = 0.1,
        check_values: bool = True,
    ) -> None:
        super().__init__(num_classes, weight, "none", check_values)
        self.temperature = check_positive(temperature, "temperature")

    def compute(self, source: Tensor, target: Tensor, labels: DomainLabels) -> Tensor:
        """Return the mean over the anchors that have a partner."""
        rows = normalize(torch.cat([source, target], -2), dim=-1)
        losses, anchors = labels.over_anchors(self._sums, rows)
        return losses / anchors.clamp(min=1)

    def _sums(self, own: Tensor, rows: Tensor, anchors: Anchors) -> tuple[Tensor, Tensor]:
        similarity = (own @ rows.mT / self.temperature).masked_fill(anchors.unseen, -torch.inf)
        return anchors.with_partners.sum_and_count(-anchors.partners.mean(similarity.log_softmax(-1)))
