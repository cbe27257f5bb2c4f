"""d-SNE: domain adaptation by stochastic neighbourhood embedding."""

from torch import Tensor

from ..methods.registry import default_loss_weight
from .domain_labels import DomainLabels
from .domain_loss import MarginLoss


class StochasticNeighborhoodAlignment(MarginLoss):
    """Bring the farthest source row of a target row's class closer than the nearest row of another class.

    For each target row the loss is max(0, largest D² within its class − smallest D² to another class + margin), over
    the source rows; then the mean over the target rows that have both. The paper's probabilities reduce to these two
    distances.

    Xu, Zhou, Venkatesan, Swaminathan, Majumder: d-SNE: Domain adaptation using stochastic neighborhood embedding. CVPR
    2019.

    Args:
        num_classes: Number of classes.
        weight: Factor of the loss.
        margin: Required difference of the squared distances.
        feature_scale: "none" or "initial", see `DomainLoss`.
        check_values: Check labels and features in each call.

    Example:
        >>> import torch
        >>> loss = StochasticNeighborhoodAlignment(num_classes=2, weight=1.0)
        >>> source, labels = torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([0, 0, 1])
        >>> loss(source, labels, torch.tensor([[3.0]]), torch.tensor([0]))  # 3² − 2² + 1
        tensor(6.)
    """

    usual_weight = default_loss_weight("dsne")

    def compute(self, source: Tensor, target: Tensor, labels: DomainLabels) -> Tensor:
        """Return the mean hinge over the target rows."""
        gaps, rows = labels.over_pairs(self._sums, source, target)
        return gaps / rows.clamp(min=1)

    def _sums(self, squared: Tensor, labels: DomainLabels) -> tuple[Tensor, Tensor]:
        between = labels.between
        farthest = squared.masked_fill(labels.same.left_out, -1).amax(-2, keepdim=True)
        nearest = squared.masked_fill(labels.other.left_out, float("inf")).amin(-2, keepdim=True)
        gap = (farthest - nearest.masked_fill(between.left_out, 0) + self.margin).clamp(min=0)
        return between.sum_and_count(gap)
