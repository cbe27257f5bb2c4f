"""d-SNE: domain adaptation by stochastic neighbourhood embedding."""

from torch import Tensor

from ..functional.plain_checks import check_not_negative
from ..methods.registry import default_loss_weight
from .cross_pairs import cross_pairs, mean_over
from .domain_loss import RivalLoss


class StochasticNeighborhoodAlignment(RivalLoss):
    """Bring the farthest source row of a target row's class nearer than the nearest one of another class.

    For each target row the loss is max(0, largest D² within its class − smallest D² to another class + margin), over
    the source rows; then the mean over the target rows that have both. The paper's probabilities reduce to these two
    distances.

    Xu, Zhou, Venkatesan, Swaminathan, Majumder: d-SNE: Domain adaptation using stochastic neighborhood embedding. CVPR
    2019.

    Args:
        num_classes: Number of classes.
        weight: Factor of the loss.
        margin: By how much the squared distances have to differ.
        feature_scale: "none" or "initial", see `RivalLoss`.
        check_values: Look at labels and features in each call.

    Example:
        >>> import torch
        >>> loss = StochasticNeighborhoodAlignment(num_classes=2, weight=1.0)
        >>> source, labels = torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([0, 0, 1])
        >>> loss(source, labels, torch.tensor([[3.0]]), torch.tensor([0]))  # 3² − 2² + 1
        tensor(6.)
    """

    def __init__(
        self,
        num_classes: int,
        weight: float = default_loss_weight("dsne"),
        margin: float = 1.0,
        feature_scale: str = "none",
        check_values: bool = True,
    ) -> None:
        super().__init__(num_classes, weight, feature_scale, check_values)
        self.margin = check_not_negative(margin, "margin")

    def compute(self, source: Tensor, source_labels: Tensor, target: Tensor, target_labels: Tensor) -> Tensor:
        """Give the mean hinge over the target rows."""
        squared, same = cross_pairs(source, source_labels, target, target_labels)
        farthest = squared.masked_fill(~same, -1).amax(0)
        nearest = squared.masked_fill(same, float("inf")).amin(0)
        has_both = same.any(0) & ~same.all(0)
        gap = (farthest - nearest.masked_fill(~has_both, 0) + self.margin).clamp(min=0)
        return mean_over(gap, has_both)
