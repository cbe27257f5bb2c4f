"""The plain variance penalty: what is left of aligning scatters if nothing is aligned."""

import torch
from torch import Tensor

from ..methods.registry import default_loss_weight
from .class_moments import class_variances
from .domain_loss import RivalLoss


class VariancePenalty(RivalLoss):
    """Penalise the spread of each class in each domain, without comparing the domains.

    With three target rows the plug-in scatter distance mostly shrinks the classes. This loss shrinks them and does
    nothing else, so a gain of the alignment counts only if it is larger than the gain of this one. It is the mean, over
    the pairs of a class and a domain with two rows or more, of the mean squared distance from their mean.

    Args:
        num_classes: Number of classes.
        weight: Factor of the loss.
        feature_scale: "none" or "initial", see `RivalLoss`.
        check_values: Look at labels and features in each call.

    Example:
        >>> import torch
        >>> loss = VariancePenalty(num_classes=1, weight=1.0)
        >>> source, target = torch.tensor([[0.0], [2.0]]), torch.tensor([[9.0]])
        >>> loss(source, torch.tensor([0, 0]), target, torch.tensor([0]))  # one target row has no spread
        tensor(1.)
    """

    def __init__(
        self,
        num_classes: int,
        weight: float = default_loss_weight("variance"),
        feature_scale: str = "none",
        check_values: bool = True,
    ) -> None:
        super().__init__(num_classes, weight, feature_scale, check_values)

    def compute(self, source: Tensor, source_labels: Tensor, target: Tensor, target_labels: Tensor) -> Tensor:
        """Give the mean over classes and domains."""
        labels = torch.cat([source_labels, target_labels + self.num_classes])
        variances, counts = class_variances(torch.cat([source, target]), labels, 2 * self.num_classes)
        shown = counts > 1
        return variances.masked_fill(~shown, 0).sum() / shown.sum().clamp(min=1)
