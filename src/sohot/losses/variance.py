"""The plain variance penalty: what remains of scatter alignment without the alignment."""

from torch import Tensor

from ..methods.registry import default_loss_weight
from .domain_labels import DomainLabels
from .domain_loss import DomainLoss
from .masks import Mask


class VariancePenalty(DomainLoss):
    """Penalise the spread of each class in each domain, without comparing the domains.

    With three target rows the plug-in scatter distance mostly shrinks the classes. This loss shrinks them and does
    nothing else, so a gain from alignment counts only if it exceeds the gain from this penalty. It is the mean, over
    the pairs of a class and a domain with two rows or more, of the mean squared distance from their mean.

    Args:
        num_classes: Number of classes.
        weight: Factor of the loss.
        feature_scale: "none" or "initial", see `DomainLoss`.
        check_values: Check labels and features in each call.

    Example:
        >>> import torch
        >>> loss = VariancePenalty(num_classes=1, weight=1.0)
        >>> source, target = torch.tensor([[0.0], [2.0]]), torch.tensor([[9.0]])
        >>> loss(source, torch.tensor([0, 0]), target, torch.tensor([0]))  # one target row has no spread
        tensor(1.)
    """

    usual_weight = default_loss_weight("variance")

    def compute(self, source: Tensor, target: Tensor, labels: DomainLabels) -> Tensor:
        """Return the mean over classes and domains."""
        variances, counts = labels.class_variances(source, target)
        return Mask(counts > 1, over=(-1,)).mean(variances)
